/*
 * tui.c - the loop of the terminal.
 */
#include "tui/tui.h"

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "tui/screen.h"
#include "tui/detail/waitdetail.h"
#include "tui/state.h"

enum { STEP_MS = 40, IDLE_MS = 250 };

static const uint64_t message_ns = 6000000000;

void state_say(struct state *s, bool alert, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->message, sizeof(s->message), fmt, ap);
	va_end(ap);
	s->alert = alert;
	s->message_until_ns = clock_mono_ns() + message_ns;
	s->redraw = true;
}

/* Warnings of collectors, while we draw. */
static void got_log(void *context, const char *text)
{
	state_say(context, true, "%s", text);
}

/* --- the table --- */

/* Follows the row that the user chose, wherever it went; else stays. */
static void find_cursor(struct state *s)
{
	struct spot *spot = state_spot(s);
	size_t n = s->table.rows.n;

	for (size_t i = 0; spot->moved && i < n; i++)
		if (s->table.rows.v[i].id == spot->id) {
			spot->cursor = i;
			return;
		}
	spot->cursor = MIN(spot->cursor, n ? n - 1 : 0);
	if (n)
		spot->id = s->table.rows.v[spot->cursor].id;
}

static void fill_detail(struct state *s, struct detail *d)
{
	struct model *m = &s->look.model;
	const struct top *top;

	switch (d->kind) {
	case DETAIL_LINES:
		code_lines(&s->table, m, d->name, d->module);
		return;
	case DETAIL_CODE:
		code_instructions(&s->table, m, d->name, d->module, &d->text);
		return;
	case DETAIL_WAIT:
		waitdetail_fill(&s->table, m, &(struct waitdetail_key){ d->name, d->module, d->cause }, &d->open);
		return;
	case DETAIL_CALLERS:
	case DETAIL_CALLEES:
		break;
	}
	page_fill(&s->table, PAGE_TREE, m, 0);
	top = model_top(m);
	if (top) {
		s->table.unit = m->selection.unit;
		tree_fill(&d->tree, &top->tree, top->all.value, &s->table);
	} else {
		snprintf(s->table.empty, sizeof(s->table.empty),
			 "It has no samples here now: Esc goes back.");
	}
}

/* A long function opens where its time goes. */
static void find_hottest(struct state *s)
{
	struct spot *spot = state_spot(s);
	double most = 0;

	for (size_t i = 0; i < s->table.rows.n; i++) {
		const struct row *r = &s->table.rows.v[i];
		/* Where nothing is spent at its own instructions, the calls count. */
		double heat = isnan(r->value[WEIGHT_SELF_PERCENT]) ? 0 : r->value[WEIGHT_SELF_PERCENT] * 1000 + r->value[WEIGHT_TOTAL_PERCENT];

		if (heat <= most)
			continue;
		most = heat;
		spot->id = r->id;
		spot->moved = true;
	}
}

static void fill(struct state *s)
{
	struct spot *spot = state_spot(s);
	struct detail *d = state_detail(s);

	s->refill = false;
	s->redraw = true;
	table_done(&s->table);
	if (d)
		fill_detail(s, d);
	else
		look_fill(&s->look, &s->table, s->page, s->variant[s->page], &s->calls);
	table_filter(&s->table, spot->filter);
	if (spot->sorted) {
		s->table.sort = spot->sort;
		s->table.up = spot->up;
		s->table.natural = false;
	}
	table_sort(&s->table);
	if (d && d->kind == DETAIL_CODE && !d->seen)
		find_hottest(s);
	if (d)
		d->seen = true;
	find_cursor(s);
}

/* --- the loop --- */

static void handle_keys(struct state *s)
{
	int key;

	while (!s->quit && (key = screen_key()) != KEY_NONE_YET) {
		keys_handle(s, key);
		/* Rows and analyses must be of the same moment. */
		if (s->refill)
			fill(s);
	}
}

static void wait_for_key(int timeout_ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	poll(&p, 1, timeout_ms);
}

/* Goes on recording; the final state is shown once more. */
static bool end_of(struct state *s)
{
	if (!s->source->step(s->source->context, STEP_MS))
		return false;
	look_refresh(&s->look);
	s->refill = true;
	state_say(s, true, "The target has ended: this is the last of it. q quits.");
	return true;
}

static void loop(struct state *s)
{
	uint64_t next = clock_mono_ns() + s->options->interval_ns, left = s->options->count;

	while (!s->quit) {
		uint64_t now;

		if (s->source->step && !s->ended)
			s->ended = end_of(s);
		else
			wait_for_key(IDLE_MS);
		handle_keys(s);
		now = clock_mono_ns();
		if (s->source->live && !s->ended && now >= next) {
			next = now + s->options->interval_ns;
			look_refresh(&s->look);
			s->refill = s->refill || !s->look.paused;
			s->redraw = true;
			s->quit = s->quit || (left && !--left);
		}
		if (*s->message && now >= s->message_until_ns) {
			*s->message = 0;
			s->redraw = true;
		}
		if (s->refill)
			fill(s);
		if (s->redraw && !s->quit)
			draw(s);
	}
}

static void state_done(struct state *s)
{
	table_done(&s->table);
	vec_done_each(&s->details, e, detail_done(e));
	tree_done(&s->calls);
	look_done(&s->look);
}

int tui_run(const struct source *source, const struct tui_options *o, const struct scope *scope,
	    struct err *err)
{
	struct state s = { .source = source,
			   .options = o,
			   .page = o->page < PAGE_COUNT ? o->page : PAGE_FUNCTIONS };
	int r;

	look_init(&s.look, source, scope, o->window_ns);
	s.look.since_start = s.look.since_start || !o->window_ns;
	tree_init(&s.calls, TREE_CALLS, NULL, NULL);
	for (int i = 0; i < PAGE_COUNT; i++)
		snprintf(s.spots[i].filter, sizeof(s.spots[i].filter), "%s", o->filter ? o->filter : "");
	r = look_begin(&s.look, err);
	if (!r)
		r = screen_open(err);
	if (!r) {
		log_set_sink(got_log, &s);
		fill(&s);
		draw(&s);
		loop(&s);
		screen_close();
		log_set_sink(NULL, NULL);
		r = s.ended;
	}
	state_done(&s);
	return r;
}
