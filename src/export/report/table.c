#include "export/report/table.h"

#include <stdio.h>
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"

enum { SHORT_COLUMNS = 18, NARROW_COLUMNS = 104, FEW_SAMPLES = 30 };

void table_heading(const struct table *t, const char *title, size_t shown, size_t n)
{
	char amount[32], a[32], b[32];
	const struct export_options *o = &t->job->options;
	const struct selection *s = t->job->selection;

	buf_printf(t->out, "\n%s%s%s, %% of %s%s%s", o->colour ? TABLE_BOLD : "", title,
		   o->colour ? TABLE_NORMAL : "", export_value(amount, t->job, t->all),
		   t->job->account ? " of " : "", t->job->account ? export_event(t->job) : "");
	/* Of so few no share is sure. */
	if (s->kind == SELECT_SAMPLES && s->all.samples && s->all.samples < FEW_SAMPLES)
		buf_printf(t->out, ", only %s %s", str_count(a, s->all.samples), quality_noun(s, s->all.samples));
	if (shown < n)
		buf_printf(t->out, ", the first %s of %s (--limit 0 shows all)", str_count(a, shown),
			   str_count(b, n));
	buf_putc(t->out, '\n');
}

size_t table_shown(const struct export_job *job, size_t n)
{
	return job->options.limit && job->options.limit < n ? job->options.limit : n;
}

void table_amount(const struct table *t, uint64_t value)
{
	char share[32], text[32];

	buf_printf(t->out, "%7s %s  ", str_share(share, str_percent(value, t->all)),
		   str_right(text, export_value(text, t->job, value), 9));
}

void table_name(const struct table *t, const char *name, unsigned used)
{
	cleantext_last(t->out, name, t->job->options.columns, used);
}

void table_function(struct table *t, const char *name, unsigned used)
{
	cleantext_last_function(&t->functions, t->out, name, t->job->options.columns, used);
}

void table_title(const struct export_job *job, struct buf *out, const char *title)
{
	bool colour = job->options.colour;

	buf_printf(out, "\n%s%s%s\n", colour ? TABLE_BOLD : "", title, colour ? TABLE_NORMAL : "");
}

void table_dim(const struct table *t, const char *text, unsigned columns)
{
	_cleanup_(buf_done) struct buf clean = { 0 }, fitted = { 0 };
	bool colour = t->job->options.colour;

	cleantext_put(&clean, *text ? text : "-");
	cleantext_cut(&fitted, clean.data, columns);
	buf_printf(t->out, "%s%s%s%*s  ", colour ? TABLE_DIM : "", fitted.data, colour ? TABLE_NORMAL : "",
		   (int)(columns - cleantext_columns(fitted.data)), "");
}

unsigned table_widest(const char *title, const char *const *texts, size_t n)
{
	size_t widest = strlen(title);

	for (size_t i = 0; i < n; i++) {
		struct buf clean = { 0 };

		cleantext_put(&clean, texts[i]);
		if (clean.n)
			widest = MAX(widest, cleantext_columns(clean.data));
		buf_done(&clean);
	}
	return MIN(widest, SHORT_COLUMNS);
}

bool table_narrow(const struct export_job *job)
{
	return job->options.columns && job->options.columns < NARROW_COLUMNS;
}

const char *table_count(const struct export_job *job)
{
	return job->selection->options.event == SELECT_WALL ? "count" : quality_noun(job->selection, 2);
}

/* Returns the name of a module for the column beside the functions. */
static const char *module_name(const struct top_row *row)
{
	return row->kind == IDENT_KERNEL ? row->module : str_base_name(row->module);
}

/* " (4711)", " (2,113 threads)", " (2,113 threads of 40 processes)"; returns its length. */
static int thread_id(const struct top_row *row, char *out, size_t size)
{
	char threads[32], processes[32];

	if (!row->threads)
		return snprintf(out, size, " (%u)", row->id);
	if (row->processes < 2)
		return snprintf(out, size, " (%s threads)", str_count(threads, row->threads));
	return snprintf(out, size, " (%s threads of %s processes)", str_count(threads, row->threads),
			str_count(processes, row->processes));
}

void table_rows(struct table *t, const char *what, const struct top_row *rows, size_t n)
{
	size_t shown = table_shown(t->job, n);
	unsigned used = (t->self ? 38 : 19) + 11 + (t->module_columns ? t->module_columns + 2 : 0);
	_cleanup_free_ char *title = mem_printf("By %s", what);
	bool functions = !strcmp(what, "function");
	char count[32];

	table_heading(t, title, shown, n);
	/* The samples belong to the column before. */
	buf_printf(t->out, "%17s  %9s  %s", t->self ? "self" : "total", table_count(t->job),
		   t->self ? "            total  " : "");
	if (t->module_columns)
		buf_printf(t->out, "%-*s  ", (int)t->module_columns, "module");
	buf_printf(t->out, "%s\n", what);
	for (size_t i = 0; i < shown; i++) {
		table_amount(t, rows[i].self.value);
		buf_printf(t->out, "%9s  ", str_count(count, rows[i].self.samples));
		if (t->self)
			table_amount(t, rows[i].total.value);
		if (t->module_columns)
			table_dim(t, module_name(&rows[i]), t->module_columns);
		if (rows[i].kind == IDENT_GROUP) {
			char id[96];
			int length = thread_id(&rows[i], id, sizeof(id));

			table_name(t, rows[i].name, used + length);
			buf_puts(t->out, id);
		} else if (functions) {
			table_function(t, rows[i].name, used);
		} else {
			table_name(t, rows[i].name, used);
		}
		buf_putc(t->out, '\n');
	}
}
