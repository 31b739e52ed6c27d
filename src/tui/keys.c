/*
 * keys.c - the actions of the keys.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text/str.h"
#include "tui/screen.h"
#include "tui/state.h"

const struct key_help keys_help[] = {
	{ "1-8 Tab", "pages: functions, threads, waits, I/O, memory, call tree, blocks, tasks" },
	{ "arrows PgUp PgDn", "move; Home and End (g, G) go to the ends" },
	{ "Enter", "open: callers of a function, wakers of a wait or task, functions of a thread, a branch" },
	{ "c d l i", "callers, callees (down), lines, instructions of the function" },
	{ "Esc Left", "back; closes a row of a tree" },
	{ "s S R", "sort by the next or previous column; the other way round" },
	{ "w W", "weigh something else: cpu, wait, queue, read, ..., wall" },
	{ "t", "the last seconds, or all since the start" },
	{ "p", "pause: the picture stands still, recording goes on" },
	{ "/", "only rows with these words" },
	{ "F h", "only stacks with a function (regex); only one thread" },
	{ "r", "a recording: only a time range, as 10-12.5 (seconds)" },
	{ "x", "take all filters away" },
	{ "v", "the page's other table: I/O by file, by function" },
	{ "z", "waits of threads that have nothing to do, too" },
	{ "f", "write the flame graph of what is shown" },
	{ "? q", "this help; quit" },
	{ 0 },
};

/* --- filters --- */

static void take_filters_away(struct state *s)
{
	scope_set(&s->look.scope.thread, NULL);
	scope_set(&s->look.scope.function, NULL);
	s->look.scope.from_ns = s->look.scope.to_ns = 0;
	s->from_threads = s->from_blocks = false;
	*state_spot(s)->filter = 0;
	look_again(&s->look);
	s->refill = true;
}

/* "10-12.5", "10-", "-3", "": all. */
static void set_range(struct state *s)
{
	char text[sizeof(s->input)], *dash;
	uint64_t from = 0, to = 0;

	snprintf(text, sizeof(text), "%s", s->input);
	dash = strchr(text, '-');
	if (dash)
		*dash++ = 0;
	if ((*text && str_parse_duration(text, &from)) || (dash && *dash && str_parse_duration(dash, &to)) ||
	    (*text && !dash) || (to && from >= to)) {
		state_say(s, true, "A range is FROM-TO in seconds: 10-12.5, 10- or -3.");
		return;
	}
	s->look.scope.from_ns = from;
	s->look.scope.to_ns = to;
}

static void end_prompt(struct state *s)
{
	enum prompt prompt = s->prompt;

	s->prompt = PROMPT_NONE;
	s->redraw = true;
	if (prompt == PROMPT_FILTER)
		return;
	if (prompt == PROMPT_FUNCTION)
		scope_set(&s->look.scope.function, s->input);
	else if (prompt == PROMPT_THREAD)
		scope_set(&s->look.scope.thread, s->input);
	else
		set_range(s);
	look_again(&s->look);
	/* An invalid regex is reported, and the old one restored. */
	if (prompt == PROMPT_FUNCTION && !model_selection(&s->look.model) &&
	    s->look.model.err.code == EINVAL) {
		state_say(s, true, "'%s' is not a regular expression.", s->input);
		scope_set(&s->look.scope.function, NULL);
		look_again(&s->look);
	}
	s->refill = true;
}

static void begin_prompt(struct state *s, enum prompt prompt, const char *text)
{
	s->prompt = prompt;
	snprintf(s->input, sizeof(s->input), "%s", text ? text : "");
	s->redraw = true;
}

static void prompt_key(struct state *s, int key)
{
	size_t n = strlen(s->input);

	if (key == SCREEN_ENTER) {
		end_prompt(s);
		return;
	}
	if (key == SCREEN_ESCAPE) {
		s->prompt = s->prompt == PROMPT_FILTER ? (*s->input = 0, PROMPT_FILTER) : PROMPT_NONE;
	} else if (key == SCREEN_ERASE) {
		if (n)
			s->input[n - 1] = 0;
	} else if (key == 21) { /* Ctrl-U */
		*s->input = 0;
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof(s->input)) {
		s->input[n] = key;
		s->input[n + 1] = 0;
	} else {
		return;
	}
	s->redraw = true;
	if (s->prompt == PROMPT_FILTER) {
		snprintf(state_spot(s)->filter, sizeof(state_spot(s)->filter), "%.63s", s->input);
		s->refill = true;
	}
	if (key == SCREEN_ESCAPE)
		s->prompt = PROMPT_NONE;
}

/* --- the rest --- */

static void sort_by(struct state *s, int step)
{
	struct spot *spot = state_spot(s);

	if (s->table.fixed) {
		state_say(s, false, "This has an order of its own.");
		return;
	}
	spot->sort = table_next_sort(&s->table, s->table.sort, step);
	spot->up = false;
	spot->sorted = true;
	spot->moved = false;
	spot->cursor = spot->top = 0;
	s->refill = true;
}

static void turn_sort(struct state *s)
{
	struct spot *spot = state_spot(s);

	spot->sort = s->table.sort;
	spot->up = !spot->up;
	spot->sorted = true;
	s->refill = true;
}

static void weigh(struct state *s, int step)
{
	scope_set(&s->look.scope.what, model_next_what(&s->look.model, step));
	look_again(&s->look);
	s->refill = true;
}

static void draw_flames(struct state *s)
{
	_cleanup_free_ char *paths = NULL;
	struct err err = { 0 };

	if (look_picture(&s->look, &paths, &err) < 0)
		state_say(s, true, "%s", err.text);
	else
		state_say(s, false, "wrote %s", paths);
}

static void toggle_window(struct state *s)
{
	if (!s->source->live) {
		state_say(s, false, "A recording is shown whole; r chooses a time range.");
		return;
	}
	if (s->look.paused) {
		state_say(s, false, "It is paused: p goes on.");
		return;
	}
	s->look.since_start = !s->look.since_start;
	look_refresh(&s->look);
	s->refill = true;
}

static void toggle_pause(struct state *s)
{
	if (!s->source->live) {
		state_say(s, false, "A recording does not move.");
		return;
	}
	s->look.paused = !s->look.paused;
	look_refresh(&s->look);
	s->refill = true;
}

static void choose_range(struct state *s)
{
	if (s->source->live)
		state_say(s, false, "t chooses between the last seconds and all since the start.");
	else
		begin_prompt(s, PROMPT_RANGE, "");
}

static bool move_key(struct state *s, int key)
{
	struct spot *spot = state_spot(s);
	long page = s->rows_shown > 1 ? s->rows_shown - 1 : 1, at = spot->cursor;

	switch (key) {
	case SCREEN_UP: case 'k': navigation_move(s, at - 1); break;
	case SCREEN_DOWN: case 'j': navigation_move(s, at + 1); break;
	case SCREEN_PAGE_UP: navigation_move(s, at - page); break;
	case SCREEN_PAGE_DOWN: case ' ': navigation_move(s, at + page); break;
	case SCREEN_HOME: case 'g': navigation_move(s, 0); break;
	case SCREEN_END: case 'G': navigation_move(s, s->table.rows.n); break;
	case SCREEN_TAB: navigation_open_page(s, s->page + 1); break;
	case SCREEN_BACK_TAB: navigation_open_page(s, s->page - 1); break;
	case SCREEN_ENTER: navigation_open_row(s); break;
	case SCREEN_RIGHT: navigation_right(s); break;
	case SCREEN_LEFT:
		if (!navigation_left(s))
			navigation_back(s);
		break;
	case SCREEN_ESCAPE: case SCREEN_ERASE: navigation_back(s); break;
	default: return false;
	}
	return true;
}

void keys_handle(struct state *s, int key)
{
	s->redraw = true;
	if (key == SCREEN_QUIT || (key == 'q' && !s->prompt && !s->help)) {
		s->quit = true;
		return;
	}
	if (s->help) {
		s->help = key == SCREEN_RESIZE;
		return;
	}
	if (s->prompt) {
		prompt_key(s, key);
		return;
	}
	*s->message = 0;
	if (move_key(s, key))
		return;
	switch (key) {
	case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': navigation_open_page(s, key - '1'); break;
	case 'c': navigation_open_function(s, DETAIL_CALLERS); break;
	case 'd': navigation_open_function(s, DETAIL_CALLEES); break;
	case 'l': navigation_open_function(s, DETAIL_LINES); break;
	case 'i': navigation_open_function(s, DETAIL_CODE); break;
	case 's': sort_by(s, 1); break;
	case 'S': sort_by(s, -1); break;
	case 'R': turn_sort(s); break;
	case 'w': weigh(s, 1); break;
	case 'W': weigh(s, -1); break;
	case 't': toggle_window(s); break;
	case 'p': toggle_pause(s); break;
	case '/': begin_prompt(s, PROMPT_FILTER, state_spot(s)->filter); break;
	case 'F': begin_prompt(s, PROMPT_FUNCTION, s->look.scope.function); break;
	case 'h': begin_prompt(s, PROMPT_THREAD, s->look.scope.thread); break;
	case 'r': choose_range(s); break;
	case 'x': take_filters_away(s); break;
	case 'v':
		s->variant[s->page] = (s->variant[s->page] + 1) % pages[s->page].variants;
		s->refill = true;
		break;
	case 'z':
		s->look.scope.idle = !s->look.scope.idle;
		look_again(&s->look);
		s->refill = true;
		break;
	case 'f': draw_flames(s); break;
	case '?': s->help = true; break;
	default: break;
	}
}
