/*
 * faulttext.c - the section on page faults and memory pressure, as text and as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/memory/faults.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "profile/keys.h"

enum { STRIP = 64, FILES_WITH_STRIP = 5, USED = 43 };

static void name(const struct export_job *job, struct buf *out, const char *s)
{
	cleantext_last(out, s, job->options.columns, USED);
	buf_putc(out, '\n');
}

/* --- totals --- */

static void put_count(struct buf *out, const struct faults *f, const char *what, uint64_t n, uint64_t ns,
		      const char *meaning)
{
	double seconds = f->duration_ns / 1e9;
	char count[32], time[32];

	buf_printf(out, "  %-16s %12s %10.1f/s %s  %s\n", what, str_count(count, n),
		   seconds ? n / seconds : 0, str_right(time, f->timed ? str_duration(time, ns) : "?", 10), meaning);
}

static void put_totals(const struct export_job *job, struct buf *out, const struct faults *f)
{
	char count[32];

	table_title(job, out, "Page faults");
	put_count(out, f, "major", f->all.major, f->all.major_ns, "had to wait for the disk");
	put_count(out, f, "minor", f->all.minor, f->all.minor_ns, "served from memory");
	buf_printf(out, "  %-16s %10.2f %%  minor / (major + minor)\n", "hit rate", faults_hit_percent(f));
	buf_printf(out, "  %-16s %9.2f MB  4 KB a major fault\n", "read from disk",
		   f->all.major * 4 / 1024.0);
	if (f->without_stack)
		buf_printf(out, "  %-16s %12s  in the recording; the kernel took them for a thread: populating, "
			   "locking, direct I/O\n", "without a stack", str_count(count, f->without_stack));
	if (f->remembered)
		buf_printf(out, "  Stacks were walked for %.1f %% of the faults; the others, at high rates, have the "
				"stack last\n  seen at the same instruction and stack pointer.\n",
			   100.0 * f->walked / (f->walked + f->remembered));
	if (!f->timed)
		buf_puts(out, "  Their time is not known: this kernel has no page_fault_user tracepoint.\n");
	if (f->all.major)
		buf_puts(out, "  → Major faults are reads of mapped files from the disk. The tables below say by "
			      "which\n    functions, and which parts of which files.\n");
}

/* --- tables --- */

static void put_weight(struct buf *out, const struct faults *f, const struct faults_weight *w)
{
	char major[32], major_time[32], minor[32], minor_time[32];

	buf_printf(out, "%9s %s %11s %s  ", str_count(major, w->major),
		   str_right(major_time, f->timed ? str_duration(major_time, w->major_ns) : "?", 9), str_count(minor, w->minor),
		   str_right(minor_time, f->timed ? str_duration(minor_time, w->minor_ns) : "?", 9));
}

static void put_functions(const struct export_job *job, struct buf *out, const struct faults *f)
{
	size_t limit = job->options.limit ? job->options.limit : f->functions.n, shown = 0;

	table_title(job, out, "Page faults by function of the program");
	buf_puts(out, "    major      time       minor      time  function\n");
	for (size_t i = 0; i < f->functions.n && shown < limit; i++) {
		const struct faults_function *row = &f->functions.v[i];

		if (!row->weight.major && !row->weight.minor)
			continue;
		put_weight(out, f, &row->weight);
		name(job, out, row->name);
		shown++;
	}
}

/* The file from its beginning to the last part that was read, a character a part: its major faults. */
static void put_strip(struct buf *out, const struct faults_file *file)
{
	static const char levels[] = ".:-=+*#@";
	uint64_t counts[STRIP] = { 0 }, most = 1, end = 1, step = 4096;
	char size[32];

	for (size_t i = 0; i < file->ranges.n; i++)
		end = MAX(end, file->ranges.v[i].to);
	while ((end - 1) / step >= STRIP)
		step *= 2;
	for (size_t i = 0; i < file->ranges.n; i++) {
		uint64_t *c = &counts[file->ranges.v[i].from / step];

		*c += file->ranges.v[i].major;
		most = MAX(most, *c);
	}
	buf_puts(out, "        |");
	for (uint64_t i = 0; i <= (end - 1) / step; i++)
		buf_putc(out, counts[i] ? levels[(counts[i] * (sizeof(levels) - 2)) / most] : ' ');
	buf_printf(out, "|  %s each\n", str_bytes(size, step));
}

/* Parts side by side are one. */
static void put_cold_parts(struct buf *out, const struct faults_file *file)
{
	size_t parts = 0;

	for (size_t i = 0; i < file->ranges.n; parts++) {
		uint64_t from = file->ranges.v[i].from, to = file->ranges.v[i].to, n = 0;
		char a[32], b[32], count[32];

		for (; i < file->ranges.n && file->ranges.v[i].from <= to; i++) {
			to = MAX(to, file->ranges.v[i].to);
			n += file->ranges.v[i].major;
		}
		if (parts < 8)
			buf_printf(out, "        %s at %s - %s\n", str_count(count, n), str_bytes(a, from),
				   str_bytes(b, to));
	}
	if (parts > 8)
		buf_printf(out, "        and %zu parts more\n", parts - 8);
}

static void put_files(const struct export_job *job, struct buf *out, const struct faults *f)
{
	size_t limit = job->options.limit ? job->options.limit : f->files.n;

	table_title(job, out, "Page faults by what was touched, with the cold parts of files");
	buf_puts(out, "    major      time       minor      time  file\n");
	for (size_t i = 0; i < f->files.n && i < limit; i++) {
		const struct faults_file *row = &f->files.v[i];

		put_weight(out, f, &row->weight);
		name(job, out, row->name);
		if (row->ranges.n && i < FILES_WITH_STRIP) {
			put_strip(out, row);
			put_cold_parts(out, row);
		}
	}
}

/* --- pressure --- */

static void put_reclaims(const struct export_job *job, struct buf *out, const struct faults *f)
{
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };
	char count[32], time[32];

	if (!f->reclaims_seen) {
		buf_puts(out, "  direct reclaims   not known: this kernel has no vmscan tracepoints\n");
		return;
	}
	buf_printf(out, "  %-17s %s, %s\n", "direct reclaims", str_count(count, f->all.reclaims),
		   str_duration(time, f->all.reclaim_ns));
	for (size_t i = 0; i < f->functions.n && f->all.reclaims; i++) {
		const struct faults_weight *w = &f->functions.v[i].weight;

		if (!w->reclaims)
			continue;
		buf_printf(out, "    %9s %s  ", str_count(count, w->reclaims),
			   str_right(time, str_duration(time, w->reclaim_ns), 9));
		cleantext_last_function(&functions, out, f->functions.v[i].name, job->options.columns, USED);
		buf_putc(out, '\n');
	}
	if (f->all.reclaims)
		buf_puts(out, "  → Direct reclaims mean memory pressure: threads had to free memory first. The\n"
			      "    program needs more memory than the machine or its cgroup has.\n");
}

static void put_psi(struct buf *out, const struct faults *f, bool cgroup, const char *whose)
{
	static const struct {
		const char *resource, *some[2], *full[2]; /* of the machine, of the cgroup */
	} rows[] = {
		{ "memory",
		  { KEY_PRESSURE_MEMORY_SOME, KEY_CGROUP_MEMORY_SOME },
		  { KEY_PRESSURE_MEMORY_FULL, KEY_CGROUP_MEMORY_FULL } },
		{ "io", { KEY_PRESSURE_IO_SOME, KEY_CGROUP_IO_SOME }, { KEY_PRESSURE_IO_FULL, KEY_CGROUP_IO_FULL } },
		{ "cpu", { KEY_PRESSURE_CPU_SOME, KEY_CGROUP_CPU_SOME }, { KEY_PRESSURE_CPU_FULL, KEY_CGROUP_CPU_FULL } },
	};
	double us = f->duration_ns / 1e3;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		buf_printf(out, "  stalled on %-6s some tasks %6.2f %%, all tasks %6.2f %% of the time (%s)\n",
			   rows[i].resource, us ? 100 * faults_series_sum(f, rows[i].some[cgroup]) / us : 0,
			   us ? 100 * faults_series_sum(f, rows[i].full[cgroup]) / us : 0, whose);
}

static void put_limits(struct buf *out, const struct faults *f)
{
	char count[32];

	for (size_t i = 0; i < f->series.n; i++) {
		const struct faults_series *s = &f->series.v[i];
		const char *event = key_rest(KEY_CGROUP_MEMORY_EVENTS_OF, s->name);

		if (event)
			buf_printf(out, "  memory.events %s: %s (the target's cgroup)\n", event,
				   str_count(count, s->sum));
		else if (!strcmp(s->name, KEY_CGROUP_MEMORY_FAILCNT))
			buf_printf(out, "  memory.failcnt: %s times the limit of the target's cgroup was hit\n",
				   str_count(count, s->sum));
	}
	if (f->no_memory_events)
		buf_puts(out, "  The target's cgroup has no memory.events (version 2) or memory.failcnt (1).\n");
}

static void put_pressure(const struct export_job *job, struct buf *out, const struct faults *f)
{
	char count[32];

	table_title(job, out, "Memory pressure");
	put_reclaims(job, out, f);
	if (f->kswapd_seen)
		buf_printf(out, "  %-17s %s (the whole system, the whole recording)\n", "kswapd wakes",
			   str_count(count, f->kswapd_wakes));
	else
		buf_puts(out, "  kswapd wakes      not known: this kernel has no vmscan tracepoints\n");
	if (f->no_psi)
		buf_puts(out, "  This kernel has no pressure information (/proc/pressure: CONFIG_PSI, or psi=1 at "
			      "boot).\n");
	else
		put_psi(out, f, false, "the whole machine");
	if (f->no_cgroup_psi)
		buf_puts(out, "  The target has no cgroup (version 2) of its own with pressure information.\n");
	else
		put_psi(out, f, true, "the target's cgroup");
	put_limits(out, f);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	struct faults f;

	faults_build(&f, job->profile, &job->selection->options);
	if (f.recorded) {
		put_totals(job, out, &f);
		if (f.all.major || f.all.minor) {
			put_functions(job, out, &f);
			put_files(job, out, &f);
		}
		put_pressure(job, out, &f);
	}
	faults_done(&f);
}

/* --- JSON --- */

static void json_weight(struct json *j, const struct faults *f, const struct faults_weight *w)
{
	json_put_uints(j, { "major", w->major }, { "minor", w->minor });
	if (f->timed) {
		json_put_uints(j, { "major_ns", w->major_ns }, { "minor_ns", w->minor_ns });
	}
	json_put_uints(j, { "reclaims", w->reclaims }, { "reclaim_ns", w->reclaim_ns });
}

static void json_functions(const struct export_job *job, struct json *j, const struct faults *f)
{
	size_t limit = job->options.limit ? job->options.limit : f->functions.n;

	json_open_array_line(j, "functions", 1);
	for (size_t i = 0; i < f->functions.n && i < limit; i++) {
		json_open_row(j, 2);
		json_put_string(j, "name", f->functions.v[i].name);
		json_put_string(j, "module", f->functions.v[i].module);
		json_weight(j, f, &f->functions.v[i].weight);
		json_close(j);
	}
	json_close(j);
}

static void json_files(const struct export_job *job, struct json *j, const struct faults *f)
{
	size_t limit = job->options.limit ? job->options.limit : f->files.n;

	json_open_array_line(j, "files", 1);
	for (size_t i = 0; i < f->files.n && i < limit; i++) {
		const struct faults_file *file = &f->files.v[i];

		json_open_row(j, 2);
		json_put_string(j, "name", file->name);
		json_weight(j, f, &file->weight);
		json_open_array(j, "ranges");
		for (size_t k = 0; k < file->ranges.n; k++) {
			json_open_object(j, NULL);
			json_put_uints(j, { "from", file->ranges.v[k].from }, { "to", file->ranges.v[k].to },
				       { "major", file->ranges.v[k].major });
			json_close(j);
		}
		json_close(j);
		json_close(j);
	}
	json_close(j);
}

static void json_faults(const struct export_job *job, struct json *j, const struct faults *f)
{
	json_open_object_line(j, "faults", 0);
	json_weight(j, f, &f->all);
	json_put_uint(j, "duration_ns", f->duration_ns);
	json_put_fixed(j, "hit_percent", faults_hit_percent(f), 4);
	json_put_uints(j, { "read_bytes", faults_read_bytes(f) }, { "without_stack", f->without_stack });
	json_functions(job, j, f);
	json_files(job, j, f);
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct faults f;

	faults_build(&f, job->profile, &job->selection->options);
	if (f.recorded) {
		json_faults(job, j, &f);
		json_open_object_line(j, "pressure", 0);
		json_put_uint(j, "kswapd_wakes", f.kswapd_wakes);
		for (size_t i = 0; i < f.series.n; i++)
			json_put_uint(j, f.series.v[i].name, f.series.v[i].sum);
		json_close(j);
	}
	faults_done(&f);
}

const struct section section_faults = {
	.name = "faults", .text = put_text, .json = put_json, .json_after_tables = true
};
