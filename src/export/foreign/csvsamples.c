/*
 * csvsamples.c - a row for each sample, for DuckDB, ClickHouse and pandas, which make Parquet of it.
 *
 * Columns are always the same, and each has one type. Numbers are integers without separators, a field that is empty is NULL. Text
 * is as it is: what a spreadsheet would take for a formula is not changed here, as it is in csv.c.
 */
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/csvfield.h"
#include "export/foreign/roworder.h"
#include "export/samplerows.h"
#include "profile/profile.h"

static const char columns[] = "time_ns,end_ns,time,event,unit,value,count,pid,process,tid,thread,cause,block,depth,function,module,file,"
			      "line,stack";

/* "2026-11-15T10:02:11.000000007Z"; nothing where it is not known when the recording began. */
static void put_time(struct csvline *c, uint64_t start_wall_ns, uint64_t time_ns)
{
	uint64_t ns = start_wall_ns + time_ns;
	time_t seconds = ns / 1000000000;
	struct tm tm;

	csvline_none(c);
	if (!start_wall_ns || ns < time_ns || !gmtime_r(&seconds, &tm))
		return;
	buf_printf(c->out, "%04d-%02d-%02dT%02d:%02d:%02d.%09lluZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		   tm.tm_sec, (unsigned long long)(ns % 1000000000));
}

static void put_known(struct csvline *c, uint64_t value)
{
	if (value)
		csvline_uint(c, value);
	else
		csvline_none(c);
}

static void put_thread(struct csvline *c, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *t = &p->threads.v[thread];
	const struct profile_process *process = t->process < p->processes.n ? &p->processes.v[t->process] : NULL;

	put_known(c, process ? process->pid : 0);
	csvline_text(c, process ? profile_str(p, process->name) : "");
	put_known(c, t->tid);
	csvline_text(c, profile_str(p, t->name));
}

/* The leaf, and all names as in folded stacks: from the outermost on, a semicolon in a name becomes a colon. */
static void put_stack(struct csvline *c, const struct stackcalls *calls, struct buf *text)
{
	const struct stackcall *leaf = calls->list.n ? &calls->list.v[0] : NULL;

	csvline_uint(c, calls->list.n);
	csvline_text(c, leaf ? leaf->name : "");
	csvline_text(c, leaf ? leaf->module : "");
	csvline_text(c, leaf ? leaf->file : "");
	put_known(c, leaf ? leaf->line : 0);
	text->n = 0;
	buf_add(text, "", 0);
	for (size_t i = calls->list.n; i-- > 0;) {
		for (const char *s = calls->list.v[i].name; *s; s++)
			buf_putc(text, *s == ';' ? ':' : *s);
		if (i)
			buf_putc(text, ';');
	}
	csvline_text(c, text->data);
}

static void put_row(const struct profile *p, const struct samplerow *row, struct stackcalls *calls, struct buf *text, struct buf *out)
{
	const struct profile_event *e = &p->events.v[row->event];
	struct csvline c = csvline_begin(out, false);

	csvline_uint(&c, row->begin_ns);
	csvline_uint(&c, row->end_ns);
	put_time(&c, p->start_wall_ns, row->begin_ns);
	csvline_text(&c, profile_str(p, e->name));
	csvline_text(&c, profile_str(p, e->unit));
	csvline_uint(&c, row->value);
	csvline_uint(&c, row->count);
	put_thread(&c, p, row->thread);
	csvline_text(&c, samplerow_cause(row));
	csvline_text(&c, row->block == PROFILE_NONE ? "" : profile_str(p, p->marks.v[row->block].name));
	stackcalls_of(calls, row->stack);
	put_stack(&c, calls, text);
	csvline_end(&c);
}

int csvsamples_write(const struct export_job *job, struct buf *out, struct err *err)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct stackcalls calls;
	struct samplerows rows;
	int r = samplerows_make(&rows, job, 0, err);
	_cleanup_free_ uint32_t *order = roworder_by_time(&rows);

	if (!r)
		csvline_head(out, columns);
	stackcalls_init(&calls, job);
	for (size_t i = 0; i < rows.list.n && !r; i++)
		put_row(job->profile, &rows.list.v[order[i]], &calls, &text, out);
	stackcalls_done(&calls);
	samplerows_done(&rows);
	return r;
}
