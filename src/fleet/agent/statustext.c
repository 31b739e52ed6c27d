#include "fleet/agent/statustext.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "fleet/agent/statusview.h"

/* --- JSON --- */

/* Many readers take no more than 63 bits, and only a lie is larger. */
static void put_counts(struct json *j, const struct json_count *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_put_uint(j, list[i].key, MIN(list[i].value, (uint64_t)INT64_MAX));
}

#define put_figures(j, ...) \
	put_counts(j, (const struct json_count[]){ __VA_ARGS__ }, ARRAY_LEN(((const struct json_count[]){ __VA_ARGS__ })))

static void target_json(const struct statusview *v, const struct board_target *t, struct json *j)
{
	json_open_row(j, 2);
	json_put_string(j, "name", t->name);
	json_put_string(j, "state", statusview_state(t));
	json_put_string(j, "note", t->note);
	json_put_string(j, "what", t->what);
	put_figures(j, { "since_wall_ns", t->since_wall_ns }, { "restarts", t->restarts }, { "level", t->level }, { "pid", t->pid },
		       { "hz", t->hz }, { "processes", t->processes }, { "windows", t->windows }, { "lost_windows", t->lost_windows },
		       { "last_window_wall_ns", t->last_window_wall_ns }, { "samples", t->samples },
		       { "lost_samples", t->lost_samples }, { "blocks", t->blocks }, { "cpu_ns", t->cpu_ns }, { "bpf_ns", t->bpf_ns },
		       { "past_cpu_ns", t->past_cpu_ns }, { "past_bpf_ns", t->past_bpf_ns });
	json_put_fixed(j, "cpu_percent", statusview_target_percent(v, t), 4);
	put_figures(j, { "anon_bytes", t->anon_bytes }, { "table_bytes", t->table_bytes });
	json_put_bool(j, "bpf", t->bpf);
	json_close(j);
}

static void sink_json(const struct board_sink *s, struct json *j)
{
	json_open_row(j, 2);
	json_put_string(j, "name", s->name);
	json_put_string(j, "note", s->note);
	put_figures(j, { "delivered", s->delivered }, { "failures", s->failures }, { "refused", s->refused },
		       { "dropped", s->dropped }, { "waiting", s->waiting }, { "waiting_bytes", s->waiting_bytes },
		       { "oldest_wall_ns", s->oldest_wall_ns }, { "last_wall_ns", s->last_wall_ns },
		       { "next_mono_ns", s->next_mono_ns });
	json_close(j);
}

void statustext_json(const struct board *b, uint64_t now_wall_ns, struct buf *out)
{
	_cleanup_(statusview_done) struct statusview v;
	struct json j = json_begin(out);

	statusview_init(&v, b, now_wall_ns);
	b = v.b;
	json_open_object(&j, NULL);
	put_figures(&j, { "now_wall_ns", now_wall_ns }, { "now_mono_ns", v.now_mono_ns }, { "started_wall_ns", b->started_wall_ns },
		       { "reloaded_wall_ns", b->reloaded_wall_ns }, { "pid", b->pid }, { "sender_pid", b->sender_pid },
		       { "window_ns", b->window_ns });
	json_put_string(&j, "config", b->config);
	json_put_string(&j, "note", b->note);
	json_open_object_line(&j, "budget", 1);
	json_put_fixed(&j, "cpu_percent", b->budget_percent, 4);
	put_figures(&j, { "bytes", b->budget_bytes });
	json_close(&j);
	json_open_object_line(&j, "cost", 1);
	json_put_fixed(&j, "cpu_percent", v.percent, 4);
	json_put_fixed(&j, "recent_cpu_percent", b->recent_percent, 4);
	put_figures(&j, { "resident_bytes", b->resident_bytes }, { "all_cpu_ns", b->all_cpu_ns }, { "cpu_ns", b->cpu_ns },
		       { "sender_cpu_ns", b->sender_cpu_ns }, { "begun_mono_ns", b->begun_mono_ns }, { "all_mono_ns", b->all_mono_ns });
	json_close(&j);
	json_open_object_line(&j, "spool", 1);
	put_figures(&j, { "bytes", b->spool_bytes }, { "limit_bytes", b->spool_limit_bytes }, { "windows", b->spool_windows },
		       { "lost_windows", b->lost_windows });
	json_close(&j);
	json_open_array_line(&j, "troubles", 1);
	for (size_t i = 0; i < v.troubles.n; i++)
		json_put_string(&j, NULL, v.troubles.v[i]);
	json_close(&j);
	json_open_array_line(&j, "targets", 1);
	for (size_t i = 0; i < BOARD_TARGETS; i++)
		if (statusview_is_target(&b->targets[i]))
			target_json(&v, &b->targets[i], &j);
	json_close(&j);
	json_open_array_line(&j, "sinks", 1);
	for (size_t i = 0; i < BOARD_SINKS; i++)
		if (statusview_is_sink(&b->sinks[i]))
			sink_json(&b->sinks[i], &j);
	json_close(&j);
	json_end_line(&j);
}

/* --- lines --- */

enum { COLUMNS = 9, CELL = 64 };

struct row {
	char cells[COLUMNS][CELL];
	enum statusview_mood mood; /* of the second column */
	const char *note;          /* below it; may be NULL */
};

struct lines {
	struct buf *out;
	bool colour;
	const char *const *titles; /* COLUMNS */
	size_t words;              /* the first columns; the others are figures */
	VEC(struct row) rows;
};

static void paint(const struct lines *l, const char *colour)
{
	if (l->colour)
		buf_puts(l->out, colour);
}

static void put_cell(const struct lines *l, const char *text, size_t width, bool right)
{
	size_t n = cleantext_columns(text), fill = width > n ? width - n : 0;

	buf_printf(l->out, "%*s%s%*s", right ? (int)fill : 0, "", text, right ? 0 : (int)fill, "");
}

static void put_table(const struct lines *l)
{
	static const char *const moods[] = { [STATUSVIEW_WELL] = "\033[32m", [STATUSVIEW_IDLE] = "\033[2m", [STATUSVIEW_BAD] = "\033[31m" };
	size_t width[COLUMNS];

	for (size_t c = 0; c < COLUMNS; c++) {
		width[c] = strlen(l->titles[c]);
		for (size_t i = 0; i < l->rows.n; i++) {
			size_t n = cleantext_columns(l->rows.v[i].cells[c]);

			width[c] = MAX(width[c], n);
		}
	}
	paint(l, "\033[2m");
	for (size_t c = 0; c < COLUMNS; c++) {
		put_cell(l, l->titles[c], width[c], c >= l->words);
		buf_puts(l->out, c + 1 < COLUMNS ? "  " : "");
	}
	paint(l, "\033[0m");
	buf_putc(l->out, '\n');
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct row *r = &l->rows.v[i];

		for (size_t c = 0; c < COLUMNS; c++) {
			if (c == 1)
				paint(l, moods[r->mood]);
			put_cell(l, r->cells[c], width[c], c >= l->words);
			if (c == 1)
				paint(l, "\033[0m");
			buf_puts(l->out, c + 1 < COLUMNS ? "  " : "\n");
		}
		if (r->note && *r->note)
			buf_printf(l->out, "    %s\n", r->note);
	}
}

static void cell(struct row *r, size_t column, const char *text)
{
	struct buf fits = { 0 };

	cleantext_cut(&fits, text, 40);
	board_set(r->cells[column], CELL, fits.data ? fits.data : "");
	buf_done(&fits);
}

static void put_targets(const struct statusview *v, struct buf *out, bool colour)
{
	static const char *const titles[COLUMNS] = { "Target", "State", "Records", "Windows", "Samples", "Lost", "CPU", "Memory", "Last window" };
	struct lines l = { .out = out, .colour = colour, .titles = titles, .words = 3 };
	char text[32];

	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		const struct board_target *t = &v->b->targets[i];
		struct row r = { .mood = statusview_target_mood(t), .note = t->note };
		_cleanup_free_ char *what = mem_printf("%s @ %u Hz", t->what, t->hz);

		if (!statusview_is_target(t))
			continue;
		cell(&r, 0, t->name);
		cell(&r, 1, statusview_state(t));
		cell(&r, 2, *t->what ? what : "-");
		cell(&r, 3, str_count(text, t->windows));
		cell(&r, 4, str_count(text, t->samples));
		cell(&r, 5, str_count(text, t->lost_samples));
		cell(&r, 6, str_share(text, statusview_target_percent(v, t)));
		cell(&r, 7, str_bytes(text, t->anon_bytes));
		cell(&r, 8, statusview_age(text, v->now_wall_ns, t->last_window_wall_ns));
		vec_push(&l.rows, r);
	}
	if (l.rows.n)
		put_table(&l);
	else
		buf_puts(out, "No targets: no name of the configuration runs, or it has none.\n");
	vec_done(&l.rows);
}

static void put_sinks(const struct statusview *v, struct buf *out, bool colour)
{
	static const char *const titles[COLUMNS] = { "Sink", "State", "Waiting", "Bytes", "Oldest", "Delivered", "Failures", "Refused", "Dropped" };
	struct lines l = { .out = out, .colour = colour, .titles = titles, .words = 2 };
	char text[32], state[48];

	for (size_t i = 0; i < BOARD_SINKS; i++) {
		const struct board_sink *s = &v->b->sinks[i];
		struct row r = { .mood = statusview_sink_mood(s), .note = s->note };

		if (!statusview_is_sink(s))
			continue;
		cell(&r, 0, s->name);
		cell(&r, 1, statusview_sink_state(v, s, state));
		cell(&r, 2, str_count(text, s->waiting));
		cell(&r, 3, str_bytes(text, s->waiting_bytes));
		cell(&r, 4, statusview_age(text, v->now_wall_ns, s->oldest_wall_ns));
		cell(&r, 5, str_count(text, s->delivered));
		cell(&r, 6, str_count(text, s->failures));
		cell(&r, 7, str_count(text, s->refused));
		cell(&r, 8, str_count(text, s->dropped));
		vec_push(&l.rows, r);
	}
	if (l.rows.n) {
		buf_putc(out, '\n');
		put_table(&l);
	}
	vec_done(&l.rows);
}

void statustext_lines(const struct board *b, uint64_t now_wall_ns, bool colour, struct buf *out)
{
	_cleanup_(statusview_done) struct statusview v;
	char one[32], two[32], three[32];

	statusview_init(&v, b, now_wall_ns);
	b = v.b;
	put_targets(&v, out, colour);
	put_sinks(&v, out, colour);
	buf_printf(out, "\nAgent %u for %s: %s of one CPU (%s in the last minutes", b->pid,
		   statusview_age(one, now_wall_ns, b->started_wall_ns), str_share(two, v.percent), str_share(three, b->recent_percent));
	buf_printf(out, ", %s promised), %s of memory", b->budget_percent > 0 ? str_share(one, b->budget_percent) : "nothing",
		   str_bytes(two, b->resident_bytes));
	if (b->budget_bytes)
		buf_printf(out, " (%s promised)", str_bytes(one, b->budget_bytes));
	buf_printf(out, "\nSpool: %s windows, %s", str_count(one, b->spool_windows), str_bytes(two, b->spool_bytes));
	if (b->spool_limit_bytes)
		buf_printf(out, " of %s", str_bytes(one, b->spool_limit_bytes));
	buf_puts(out, "\n");
	for (size_t i = 0; i < v.troubles.n; i++)
		buf_printf(out, "%sLook at: %s%s\n", colour ? "\033[33m" : "", v.troubles.v[i], colour ? "\033[0m" : "");
}
