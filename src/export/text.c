/*
 * text.c - tables for the terminal: by function, by module, by thread.
 *
 * Names are whole in a pipe and cut from the left of their path on a terminal.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/str.h"
#include "export/export.h"
#include "export/faulttext.h"
#include "export/iotext.h"
#include "export/label.h"
#include "profile/profile.h"

enum { MODULE_COLUMNS = 18, NAME_MINIMUM = 20 };

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define NORMAL "\033[0m"

struct table {
	const struct export_job *job;
	struct buf *out;
	uint64_t all;
	unsigned module_columns; /* 0 = no column of modules */
	bool self;
};

static void heading(const struct table *t, const char *what, size_t shown, size_t n)
{
	char amount[32], a[32], b[32];
	const struct export_options *o = &t->job->options;

	buf_printf(t->out, "\n%sBy %s%s, %% of %s%s%s", o->colour ? BOLD : "", what,
		   o->colour ? NORMAL : "", export_value(amount, t->job, t->all),
		   t->job->account ? " of " : "", t->job->account ? export_event(t->job) : "");
	if (shown < n)
		buf_printf(t->out, ", the first %s of %s (--limit 0 shows all)", str_count(a, shown),
			   str_count(b, n));
	buf_putc(t->out, '\n');
}

static void amount(const struct table *t, uint64_t value)
{
	char text[32];

	buf_printf(t->out, "%6.2f%% %9s  ", t->all ? 100.0 * value / t->all : 0,
		   export_value(text, t->job, value));
}

/* The name, cut to what is left of a terminal's line after used columns. */
static void name(const struct table *t, const char *s, unsigned used)
{
	unsigned columns = t->job->options.columns;
	struct buf clean = { 0 };

	label_clean(&clean, *s ? s : "[no name]");
	if (columns)
		label_fit(t->out, clean.data, columns > used + NAME_MINIMUM ? columns - used : NAME_MINIMUM);
	else
		buf_puts(t->out, clean.data);
	buf_done(&clean);
}

/* What a module is called in the column beside the functions. */
static void module(const struct table *t, const struct top_row *row)
{
	const char *base = row->kind == IDENT_KERNEL ? row->module : ident_basename(row->module);
	struct buf clean = { 0 }, fitted = { 0 };
	bool colour = t->job->options.colour;

	label_clean(&clean, *base ? base : "-");
	label_cut(&fitted, clean.data, MODULE_COLUMNS);
	buf_printf(t->out, "%s%s%s%*s  ", colour ? DIM : "", fitted.data, colour ? NORMAL : "",
		   (int)(t->module_columns - label_columns(fitted.data)), "");
	buf_done(&clean);
	buf_done(&fitted);
}

static unsigned widest_module(const struct top_row *rows, size_t n)
{
	size_t widest = strlen("module");

	for (size_t i = 0; i < n; i++) {
		struct buf clean = { 0 };

		label_clean(&clean, ident_basename(rows[i].module));
		if (clean.n)
			widest = MAX(widest, label_columns(clean.data));
		buf_done(&clean);
	}
	return MIN(widest, MODULE_COLUMNS);
}

static void put_table(struct table *t, const char *what, const struct top_row *rows, size_t n)
{
	size_t limit = t->job->options.limit, shown = limit && limit < n ? limit : n;
	unsigned used = (t->self ? 38 : 19) + 11 + (t->module_columns ? t->module_columns + 2 : 0);
	char count[32];

	heading(t, what, shown, n);
	/* The samples are those of the column before. */
	buf_printf(t->out, "%17s  %9s  %s", t->self ? "self" : "total",
		   t->job->selection->options.event == SELECT_WALL ? "count" :
		   t->job->selection->waits ? "waits" : "samples",
		   t->self ? "            total  " : "");
	if (t->module_columns)
		buf_printf(t->out, "%-*s  ", (int)t->module_columns, "module");
	buf_printf(t->out, "%s\n", what);
	for (size_t i = 0; i < shown; i++) {
		amount(t, rows[i].self.value);
		buf_printf(t->out, "%9s  ", str_count(count, rows[i].self.samples));
		if (t->self)
			amount(t, rows[i].total.value);
		if (t->module_columns)
			module(t, &rows[i]);
		if (rows[i].kind == IDENT_GROUP) {
			char id[32];
			int length = snprintf(id, sizeof(id), " (%u)", rows[i].id);

			name(t, rows[i].name, used + length);
			buf_puts(t->out, id);
		} else {
			name(t, rows[i].name, used);
		}
		buf_putc(t->out, '\n');
	}
}

static void put_head(const struct export_job *job, struct buf *out)
{
	const char *target = profile_str(job->profile, job->profile->target);
	const char *describe = export_event_describe(job);
	struct buf line = { 0 }, clean = { 0 };
	char value[32], count[32];

	if (*target)
		buf_printf(&line, "%s, ", target);
	export_when(job, &line);
	label_clean(&clean, line.data);
	buf_printf(out, "%s%s%s\n", job->options.colour ? BOLD : "", clean.data,
		   job->options.colour ? NORMAL : "");
	line.n = clean.n = 0;
	buf_printf(&line, "%s%s%s: %s in %s %s", export_event(job), *describe ? ", " : "", describe,
		   export_value(value, job, job->selection->all.value),
		   str_count(count, job->selection->all.samples),
		   quality_noun(job->selection, job->selection->all.samples));
	if (job->selection->idle.value)
		buf_printf(&line, "; idle left out: %s (--idle takes it in)",
			   str_duration(value, job->selection->idle.value));
	label_clean(&clean, line.data);
	buf_printf(out, "%s\n", clean.data);
	buf_done(&line);
	buf_done(&clean);
}

int text_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct table t = { .job = job, .out = out, .all = job->selection->all.value, .self = true };
	size_t shown;
	struct top top;

	top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
	put_head(job, out);
	waittext_put(job, out);
	iotext_write(job, out);
	faulttext_write(job, out);
	shown = job->options.limit ? MIN(job->options.limit, top.functions.n) : top.functions.n;
	t.module_columns = widest_module(top.functions.v, shown);
	put_table(&t, "function", top.functions.v, top.functions.n);
	t.module_columns = 0;
	put_table(&t, "module", top.modules.v, top.modules.n);
	t.self = false;
	put_table(&t, "thread", top.threads.v, top.threads.n);
	top_done(&top);
	return 0;
}
