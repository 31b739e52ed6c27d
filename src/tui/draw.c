/*
 * draw.c - draws the screen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "tui/screen.h"
#include "tui/state.h"

enum { MIN_LINES = 8, MIN_COLUMNS = 40, HEADER = 4 };

/* --- the header --- */

static void put_title(struct state *s, int columns)
{
	_cleanup_(buf_done) struct buf left = { 0 }, right = { 0 };
	const struct scope *scope = &s->look.scope;
	uint64_t duration = select_duration_ns(s->look.p);
	char text[32];
	int n;

	buf_printf(&left, "gasflame top  %s", s->source->title);
	s->source->state(s->source->context, &right);
	if (right.n)
		buf_puts(&right, "  ");
	if (s->ended)
		buf_puts(&right, "ENDED  ");
	if (s->look.paused)
		buf_puts(&right, "PAUSED  ");
	if (scope->from_ns || scope->to_ns)
		buf_printf(&right, "%.4g to %.4g s", scope->from_ns / 1e9,
			   (scope->to_ns ? scope->to_ns : duration) / 1e9);
	else if (!s->source->live)
		buf_printf(&right, "all %s", str_duration(text, duration));
	else
		buf_printf(&right, "%s %s", s->look.since_start ? "since the start," : "last",
			   str_duration(text, duration));
	n = right.n;
	screen_put(0, 0, columns - (n + 2 < columns / 2 ? n + 2 : 0), left.data, STYLE_BOLD);
	if (n + 2 < columns * 2 / 3)
		screen_put(0, columns - n, n, right.data, STYLE_BOLD);
}

static void put_tabs(struct state *s, int columns)
{
	/* With one blank between them all titles and the help fit into 80 columns. */
	bool narrow = columns < 76, wide = columns >= 90;
	int x = 0;

	for (int i = 0; i < PAGE_COUNT; i++) {
		_cleanup_free_ char *tab = mem_printf(narrow && i != (int)s->page ? " %d " : wide ? " %d %s " : " %d %s", i + 1,
						      pages[i].title);

		x += screen_put(1, x, columns - x, tab, i == (int)s->page ? STYLE_CURSOR : STYLE_PLAIN);
	}
	if (columns >= x + 6)
		screen_put(1, columns - 6, 6, "? help", STYLE_DIM);
}

static void put_fitting(struct buf *b, const char *name, size_t columns)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, name);
	cleantext_fit(b, clean.data ? clean.data : "", columns);
}

static void put_facts(struct state *s, int columns)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct scope *scope = &s->look.scope;
	const struct detail *d = state_detail(s);
	static const char *const kinds[] = { "callers", "callees", "lines", "instructions", "waits" };

	page_summary(&s->look.model, &b);
	screen_put(2, 0, columns, b.data ? b.data : "", STYLE_DIM);
	b.n = 0;
	if (d) {
		size_t room = columns > 60 ? columns - 40 : 20;

		buf_printf(&b, "%s %s ", kinds[d->kind], d->kind == DETAIL_WAIT ? "in" : "of");
		put_fitting(&b, d->name, room);
		buf_printf(&b, " (c d l i)");
	} else if (s->page == PAGE_FUNCTIONS || s->page == PAGE_TREE) {
		buf_printf(&b, "%s", model_what(&s->look.model));
	} else {
		buf_puts(&b, pages[s->page].title);
	}
	if (d)
		buf_printf(&b, " %s", d->kind == DETAIL_WAIT ? cause_name(d->cause) : model_what(&s->look.model));
	if (!s->table.fixed && s->table.column_count)
		buf_printf(&b, " by %s%s", s->table.columns[s->table.sort].title, s->table.up ? " (up)" : "");
	if (scope->thread)
		buf_printf(&b, "  thread %s", scope->thread);
	if (scope->function)
		buf_printf(&b, "  with %s", scope->function);
	if (*state_spot(s)->filter)
		buf_printf(&b, "  /%s: %zu of %zu", state_spot(s)->filter, s->table.rows.n, s->table.all);
	if (scope->idle)
		buf_puts(&b, "  idle too");
	screen_put(3, 0, columns, b.data, STYLE_PLAIN);
}

/* --- the rows --- */

static void put_titles(struct state *s, const unsigned *widths)
{
	int x = 0;

	screen_fill(HEADER, 0, STYLE_HEAD);
	for (size_t c = 0; c < s->table.column_count; c++) {
		const char *title = s->table.columns[c].title;
		_cleanup_free_ char *text = NULL;

		if (!widths[c])
			continue;
		text = mem_printf(table_is_left(&s->table, c) ? "%-*.*s" : "%*.*s", (int)widths[c],
				  (int)widths[c], title);
		screen_put(HEADER, x, widths[c], text, STYLE_HEAD);
		x += widths[c] + 1;
	}
}

static int style_of(const struct row *r)
{
	switch (r->kind) {
	case ROW_KERNEL:
		return STYLE_KERNEL;
	case ROW_LIBRARY:
		return STYLE_LIBRARY;
	case ROW_UNNAMED:
	case ROW_NOTE:
		return STYLE_DIM;
	case ROW_HOT:
		return STYLE_ALERT;
	case ROW_PLAIN:
		break;
	}
	return STYLE_PLAIN;
}

static void put_bar(const struct row *r, int line, int x, unsigned width)
{
	char text[128], one[2] = "";
	uint8_t causes[128];

	width = MIN(width, sizeof(text) - 1);
	table_bar(r, width, text, causes);
	for (unsigned i = 0; i < width; i++) {
		one[0] = text[i];
		screen_put(line, x + i, 1, one, text[i] == ' ' ? STYLE_PLAIN : STYLE_CAUSE + causes[i]);
	}
}

static void put_row(struct state *s, const struct row *r, int line, const unsigned *widths, bool cursor)
{
	int x = 0;

	if (cursor)
		screen_fill(line, 0, STYLE_CURSOR);
	for (size_t c = 0; c < s->table.column_count; c++) {
		_cleanup_(buf_done) struct buf cell = { 0 };
		bool name = s->table.columns[c].type == COLUMN_NAME;

		if (!widths[c])
			continue;
		if (s->table.columns[c].type == COLUMN_BAR) {
			put_bar(r, line, x, widths[c]);
		} else {
			table_cell(&s->table, r, c, widths[c], &cell);
			screen_put(line, x, widths[c], cell.data ? cell.data : "",
				   cursor ? STYLE_CURSOR : name ? style_of(r) : STYLE_PLAIN);
		}
		x += widths[c] + 1;
	}
}

static void put_legend(int line, int columns)
{
	/* Short enough for 80 columns. */
	static const char *const names[CAUSE_COUNT] = {
		[CAUSE_CPU] = "run",         [CAUSE_QUEUE] = "queue",     [CAUSE_LOCK] = "lock",
		[CAUSE_PARK] = "cond",       [CAUSE_DISK_READ] = "read",  [CAUSE_DISK_WRITE] = "write",
		[CAUSE_FAULT] = "fault",     [CAUSE_NETWORK] = "net",     [CAUSE_SLEEP] = "sleep",
		[CAUSE_PIPE] = "pipe",       [CAUSE_RECLAIM] = "mem",     [CAUSE_IDLE] = "idle",
		[CAUSE_UNKNOWN] = "?",       [CAUSE_QUOTA] = "quota",
	};
	int x = 0;

	for (int i = CAUSE_CPU; i < CAUSE_COUNT && x + 2 + (int)strlen(names[i]) <= columns; i++) {
		char letter[2] = { table_letter(i) };

		x += screen_put(line, x, 1, letter, STYLE_CAUSE + i);
		x += screen_put(line, x, columns - x, names[i], STYLE_DIM) + 1;
	}
}

/* More about the row at the cursor: names are cut in the table. */
static void put_note(struct state *s, int line, int columns)
{
	const struct row *r = s->table.rows.n ? &s->table.rows.v[state_spot(s)->cursor] : NULL;
	_cleanup_(buf_done) struct buf b = { 0 };

	if (s->page == PAGE_THREADS && !s->details.n) {
		put_legend(line, columns);
		return;
	}
	for (size_t c = 0; r && !r->note && c < s->table.column_count; c++)
		if (s->table.columns[c].type == COLUMN_NAME)
			put_fitting(&b, r->text[c] ? r->text[c] : "", columns);
	if (r)
		screen_put(line, 0, columns, r->note ? r->note : b.data ? b.data : "", STYLE_DIM);
}

static void put_rows(struct state *s, int lines, int columns)
{
	struct spot *spot = state_spot(s);
	bool note = lines > MIN_LINES + 4;
	int room = lines - HEADER - 2 - note;
	unsigned widths[TABLE_COLUMNS] = { 0 };

	table_layout(&s->table, columns, widths);
	put_titles(s, widths);
	table_begin(&s->table);
	s->rows_shown = room;
	if (spot->cursor < spot->top)
		spot->top = spot->cursor;
	if (spot->cursor >= spot->top + room)
		spot->top = spot->cursor - room + 1 + (spot->cursor > spot->top + 2 * room ? room / 2 : 0);
	if (spot->top + room > s->table.rows.n)
		spot->top = s->table.rows.n > (size_t)room ? s->table.rows.n - room : 0;
	for (int i = 0; i < room && spot->top + i < s->table.rows.n; i++)
		put_row(s, &s->table.rows.v[spot->top + i], HEADER + 1 + i, widths,
			spot->top + i == spot->cursor);
	if (!s->table.rows.n)
		screen_put(HEADER + 2, 2, columns - 2, s->table.empty, STYLE_PLAIN);
	if (note)
		put_note(s, lines - 2, columns);
}

/* --- the last line --- */

static void put_status(struct state *s, int line, int columns)
{
	static const char *const prompts[] = { "", "only rows with: ", "only stacks with (regex): ",
					       "only thread (name, pattern or tid): ",
					       "from-to, in seconds: " };
	_cleanup_free_ char *text = NULL;

	if (s->prompt) {
		text = mem_printf("%s%s_", prompts[s->prompt], s->input);
		screen_put(line, 0, columns, text, STYLE_BOLD);
	} else if (*s->message) {
		screen_put(line, 0, columns, s->message, s->alert ? STYLE_ALERT : STYLE_BOLD);
	} else {
		screen_put(line, 0, columns,
			   s->source->live ? "Enter open  / filter  s sort  w weigh  t window  p pause  f "
					     "flame graph  q quit"
					   : "Enter open  / filter  s sort  w weigh  r range  h thread  f "
					     "flame graph  q quit",
			   STYLE_DIM);
	}
}

static void put_help(int lines, int columns)
{
	int y = 2;

	screen_put(0, 0, columns, "gasflame top: keys (any key goes back)", STYLE_BOLD);
	for (const struct key_help *k = keys_help; k->key && y < lines; k++, y++) {
		screen_put(y, 1, 17, k->key, STYLE_BOLD);
		screen_put(y, 19, columns - 19, k->does, STYLE_PLAIN);
	}
	if (y + 2 < lines)
		put_legend(y + 1, columns);
}

void draw(struct state *s)
{
	int lines, columns;

	s->redraw = false;
	screen_size(&lines, &columns);
	screen_clear();
	if (lines < MIN_LINES || columns < MIN_COLUMNS) {
		_cleanup_free_ char *text = mem_printf("%d x %d is too small: %d x %d at least", columns,
						       lines, MIN_COLUMNS, MIN_LINES);

		screen_put(0, 0, columns, text, STYLE_PLAIN);
	} else if (s->help) {
		put_help(lines, columns);
	} else {
		put_title(s, columns);
		put_tabs(s, columns);
		put_facts(s, columns);
		put_rows(s, lines, columns);
		put_status(s, lines - 1, columns);
	}
	screen_show();
}
