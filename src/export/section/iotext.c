/*
 * iotext.c - the tables of I/O, for the terminal and as JSON: totals, functions, files, operations, disks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/io.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"

struct tables {
	const struct export_job *job;
	const struct io_figures *f;
	struct buf *out;
};

static void heading(const struct tables *t, const char *what, const char *rest, size_t n)
{
	size_t shown = table_shown(t->job, n);
	bool colour = t->job->options.colour;
	char a[32], b[32];

	buf_printf(t->out, "\n%s%s%s%s", colour ? TABLE_BOLD : "", what, colour ? TABLE_NORMAL : "", rest);
	if (shown < n)
		buf_printf(t->out, ", the first %s of %s (--limit 0 shows all)", str_count(a, shown),
			   str_count(b, n));
	buf_putc(t->out, '\n');
}

static void name(const struct tables *t, const char *s, unsigned used)
{
	cleantext_last(t->out, s, t->job->options.columns, used);
	buf_putc(t->out, '\n');
}

static uint64_t ratio(uint64_t a, uint64_t b)
{
	return b ? a / b : 0;
}

static double megabytes_a_second(uint64_t bytes, uint64_t ns)
{
	return ns ? bytes / (ns / 1e9) / (1 << 20) : 0;
}

/* --- text --- */

static void put_way(const struct tables *t, const char *way, uint64_t calls, uint64_t bytes)
{
	char a[32], b[32], c[32];

	buf_printf(t->out, "%18s %12s %10s %10.2f  %s\n", str_bytes(b, bytes), str_count(a, calls),
		   str_bytes(c, ratio(bytes, calls)), megabytes_a_second(bytes, t->f->duration_ns), way);
}

/* Totals and files are exact; which function made a call is not where its stack was not walked. */
static void put_error(const struct tables *t)
{
	const struct io_figures *f = t->f;
	uint64_t stacks = f->walked + f->remembered;
	char error[32];

	if (!f->remembered)
		return;
	buf_printf(t->out, "Stacks were walked for %.1f %% of the calls; the others, at high rates, have the stack last walked "
			   "at the\nsame instruction, stack pointer and file: calls of a function ±%s (%.2f %% of all)\n",
		   100.0 * f->walked / stacks, str_count(error, f->calls_error), 100.0 * f->calls_error / stacks);
}

static void put_totals(const struct tables *t)
{
	const struct io_row *all = &t->f->all;
	char a[32], b[32], c[32], rest[80];

	snprintf(rest, sizeof(rest), " in %s", str_duration(a, t->f->duration_ns));
	heading(t, "Reads and writes", rest, 0);
	buf_printf(t->out, "%18s %12s %10s %10s\n", "bytes, time", "calls", "average", "MB/s");
	put_way(t, "read", all->read_calls, all->read_bytes);
	put_way(t, "write", all->write_calls, all->write_bytes);
	buf_printf(t->out, "%s %12s %s %10s  sync\n", str_right(b, str_duration(b, all->sync_ns), 18), str_count(a, all->sync_calls),
		   str_right(c, str_duration(c, ratio(all->sync_ns, all->sync_calls)), 10), "");
	if (all->read_bytes >= all->write_bytes && all->write_bytes)
		buf_printf(t->out, "%.2f bytes read for each byte written; ",
			   (double)all->read_bytes / all->write_bytes);
	else if (all->read_bytes && all->write_bytes)
		buf_printf(t->out, "%.2f bytes written for each byte read; ",
			   (double)all->write_bytes / all->read_bytes);
	buf_printf(t->out, "%s call%s failed\n", str_count(a, all->errors), all->errors == 1 ? "" : "s");
	put_error(t);
	if (!t->f->chosen)
		buf_puts(t->out, "By function and file: --what read, --what write or --what sync\n");
	for (size_t i = 0; i < t->f->remarks.n; i++)
		buf_printf(t->out, "Not in these figures: %s.\n", t->f->remarks.v[i]);
}

enum way { READ, WRITE, SYNC };

static uint64_t value_of(const struct io_row *r, enum way way)
{
	return way == READ ? r->read_bytes : way == WRITE ? r->write_bytes : r->sync_ns;
}

static uint64_t calls_of(const struct io_row *r, enum way way)
{
	return way == READ ? r->read_calls : way == WRITE ? r->write_calls : r->sync_calls;
}

static int compare_for(const void *a, const void *b, void *context)
{
	const struct io_row *x = *(const struct io_row *const *)a, *y = *(const struct io_row *const *)b;
	enum way way = *(enum way *)context;

	return ORDER(value_of(y, way), value_of(x, way)) ?: ORDER(calls_of(y, way), calls_of(x, way)) ?:
	       strcmp(x->name, y->name);
}

/* The rows that did this at all, most of it first. Caller frees. */
static const struct io_row **rows_for(const struct io_row *rows, size_t n, enum way way, size_t *ret_n)
{
	const struct io_row **list = mem_alloc((n + 1) * sizeof(*list));

	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		if (calls_of(&rows[i], way))
			list[(*ret_n)++] = &rows[i];
	if (*ret_n > 1)
		qsort_r(list, *ret_n, sizeof(*list), compare_for, &way);
	return list;
}

static void put_rows(const struct tables *t, const char *title, const char *what, enum way way)
{
	bool files = !strcmp(what, "file");
	const struct io_row *rows = files ? t->f->files.v : t->f->functions.v;
	size_t n = files ? t->f->files.n : t->f->functions.n;
	const struct io_row **list = rows_for(rows, n, way, &n);
	uint64_t all = value_of(&t->f->all, way);
	char a[32], b[32], c[32], share[32];

	if (n) {
		heading(t, title, "", n);
		buf_printf(t->out, "%18s %12s %10s  %s\n", way == SYNC ? "time" : "bytes", "calls", "average",
			   what);
	}
	for (size_t i = 0; i < table_shown(t->job, n); i++) {
		uint64_t value = value_of(list[i], way), calls = calls_of(list[i], way);
		uint64_t each = ratio(value, calls);

		buf_printf(t->out, "%7s %s %12s %s  ", str_share(share, str_percent(value, all)),
			   str_right(a, way == SYNC ? str_duration(a, value) : str_bytes(a, value), 10), str_count(b, calls),
			   str_right(c, way == SYNC ? str_duration(c, each) : str_bytes(c, each), 10));
		name(t, list[i]->name, 43);
	}
	free(list);
}

static void put_latency(const struct tables *t, const struct io_latency *l)
{
	char a[32], b[32], c[32], d[32];

	if (l->count)
		buf_printf(t->out, "%s %s %s %s  ", str_right(a, str_duration(a, l->p50_ns), 9), str_right(b, str_duration(b, l->p90_ns), 9),
			   str_right(c, str_duration(c, l->p99_ns), 9), str_right(d, str_duration(d, l->max_ns), 9));
	else
		buf_printf(t->out, "%9s %9s %9s %9s  ", "-", "-", "-", "-");
}

static void put_operations(const struct tables *t)
{
	char a[32], b[32], c[32];

	if (!t->f->operations.n)
		return;
	heading(t, "By operation", t->f->filtered ? " (of the whole recording)" : "", t->f->operations.n);
	buf_printf(t->out, "%12s %9s %10s %9s %9s %9s %9s  operation\n", "calls", "failed", "bytes", "p50", "p90",
		   "p99", "below");
	for (size_t i = 0; i < table_shown(t->job, t->f->operations.n); i++) {
		const struct io_operation *o = &t->f->operations.v[i];

		buf_printf(t->out, "%12s %9s %10s ", str_count(a, o->calls), str_count(b, o->errors),
			   str_bytes(c, o->bytes));
		put_latency(t, &o->latency);
		name(t, o->name, 76);
	}
}

static void put_disks(const struct tables *t)
{
	char a[32], b[32], c[32], d[32];

	if (!t->f->disks.n)
		return;
	heading(t, "By disk",
		", all that the machine did in this time; own: issued by the target's threads. What the kernel "
		"writes back later is nobody's", t->f->disks.n);
	buf_printf(t->out, "%10s %10s %10s %10s %9s %9s %9s %9s  disk\n", "requests", "own", "bytes", "own",
		   "p50", "p90", "p99", "below");
	for (size_t i = 0; i < table_shown(t->job, t->f->disks.n); i++) {
		const struct io_disk *x = &t->f->disks.v[i];

		buf_printf(t->out, "%10s %10s %10s %10s ", str_count(a, x->requests),
			   str_count(b, x->own_requests), str_bytes(c, x->bytes), str_bytes(d, x->own_bytes));
		put_latency(t, &x->latency);
		name(t, x->name, 86);
	}
}

/* From 256 ns to 17 s, a column for each power of two; the first and the last include the values beyond. */
enum { STEP_FIRST = 8, STEP_LAST = 33 };

static void put_steps(const struct tables *t, const struct io_latency *l, const char *what)
{
	static const char levels[] = ".:-=+*#@";
	uint64_t columns[STEP_LAST - STEP_FIRST + 1] = { 0 }, most = 1;

	if (!l->count || !l->steps)
		return;
	for (int i = 0; i < 64; i++)
		columns[MIN(MAX(i, STEP_FIRST), STEP_LAST) - STEP_FIRST] += l->steps[i];
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		most = MAX(most, columns[i]);
	buf_puts(t->out, "  |");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		buf_putc(t->out, columns[i] ? levels[(unsigned)((double)columns[i] * 7 / most)] : ' ');
	buf_puts(t->out, "|  ");
	name(t, what, 33);
}

static void put_histograms(const struct tables *t)
{
	if (!t->f->operations.n && !t->f->disks.n)
		return;
	heading(t, "Latencies", ", a column for each power of two; @ is where most of a row's calls are", 0);
	buf_puts(t->out, "     1us  33us 1ms  34ms 1s\n");
	for (size_t i = 0; i < table_shown(t->job, t->f->operations.n); i++)
		put_steps(t, &t->f->operations.v[i].latency, t->f->operations.v[i].name);
	for (size_t i = 0; i < table_shown(t->job, t->f->disks.n); i++)
		put_steps(t, &t->f->disks.v[i].latency, t->f->disks.v[i].name);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	struct io_figures f;
	struct tables t = { .job = job, .f = &f, .out = out };

	if (io_measure(&f, job->profile, &job->selection->options))
		put_totals(&t);
	if (f.chosen) { /* else this report is about something else */
		put_rows(&t, "Functions that read", "function", READ);
		put_rows(&t, "Functions that write", "function", WRITE);
		put_rows(&t, "Functions that sync", "function", SYNC);
		put_rows(&t, "Files read", "file", READ);
		put_rows(&t, "Files written", "file", WRITE);
		put_rows(&t, "Files synced", "file", SYNC);
		put_operations(&t);
		put_disks(&t);
		put_histograms(&t);
	}
	io_done(&f);
}

/* --- JSON --- */

static void put_json_row(struct json *j, const struct io_row *r)
{
	json_put_uints(j, { "read_bytes", r->read_bytes }, { "read_calls", r->read_calls },
		       { "write_bytes", r->write_bytes }, { "write_calls", r->write_calls }, { "sync_ns", r->sync_ns },
		       { "sync_calls", r->sync_calls }, { "errors", r->errors });
}

static void put_json_latency(struct json *j, const struct io_latency *l)
{
	json_put_uints(j, { "p50_ns", l->p50_ns }, { "p90_ns", l->p90_ns }, { "p99_ns", l->p99_ns },
		       { "below_ns", l->max_ns });
	/* [from, calls]: up to twice as long */
	json_open_array(j, "latency");
	for (int i = 0; l->steps && i < 64; i++) {
		if (!l->steps[i])
			continue;
		json_open_array(j, NULL);
		json_put_uint(j, NULL, i ? 1ULL << i : 0);
		json_put_uint(j, NULL, l->steps[i]);
		json_close(j);
	}
	json_close(j);
}

static void put_json_rows(struct json *j, const char *key, const struct io_row *rows, size_t n, size_t limit)
{
	json_open_array_line(j, key, 1);
	for (size_t i = 0; i < n && (!limit || i < limit); i++) {
		json_open_row(j, 2);
		json_put_string(j, "name", rows[i].name);
		json_put_string(j, "module", rows[i].module);
		put_json_row(j, &rows[i]);
		json_close(j);
	}
	json_close(j);
}

static void put_json_operations(struct json *j, const struct io_figures *f)
{
	json_open_array_line(j, "operations", 1);
	for (size_t i = 0; i < f->operations.n; i++) {
		const struct io_operation *o = &f->operations.v[i];

		json_open_row(j, 2);
		json_put_string(j, "name", o->name);
		json_put_uints(j, { "calls", o->calls }, { "errors", o->errors }, { "bytes", o->bytes },
			       { "ns", o->ns });
		put_json_latency(j, &o->latency);
		json_close(j);
	}
	json_close(j);
}

static void put_json_disks(struct json *j, const struct io_figures *f)
{
	json_open_array_line(j, "disks", 1);
	for (size_t i = 0; i < f->disks.n; i++) {
		const struct io_disk *d = &f->disks.v[i];

		json_open_row(j, 2);
		json_put_string(j, "name", d->name);
		json_put_uints(j, { "requests", d->requests }, { "bytes", d->bytes }, { "sectors", d->bytes / 512 },
			       { "own_requests", d->own_requests }, { "own_bytes", d->own_bytes },
			       { "errors", d->errors }, { "ns", d->ns });
		put_json_latency(j, &d->latency);
		json_close(j);
	}
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	size_t limit = job->options.limit;
	struct io_figures f;

	if (io_measure(&f, job->profile, &job->selection->options)) {
		json_open_object_line(j, "io", 0);
		json_put_uint(j, "duration_ns", f.duration_ns);
		put_json_row(j, &f.all);
		put_json_rows(j, "functions", f.functions.v, f.functions.n, limit);
		put_json_rows(j, "files", f.files.v, f.files.n, limit);
		put_json_operations(j, &f);
		put_json_disks(j, &f);
		json_put_uint(j, "stacks_walked", f.walked);
		json_put_uint(j, "stacks_remembered", f.remembered);
		json_put_uint(j, "calls_error", f.calls_error);
		json_break(j, 1);
		json_put_strings(j, "remarks", (const char *const *)f.remarks.v, f.remarks.n);
		json_close(j);
	}
	io_done(&f);
}

const struct section section_io = { .name = "io", .text = put_text, .json = put_json };
