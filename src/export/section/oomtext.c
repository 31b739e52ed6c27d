#include "export/section/oomtext.h"

#include <string.h>

#include "analyze/memory/leak.h"
#include "analyze/memory/oom.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { LIVE_ROWS = 10, SAID_ROWS = 40, BEFORE_NAME = 34 };

void leaktext_put(const struct leak *l, size_t rows, unsigned columns, struct buf *out)
{
	char bytes[32], count[32];

	buf_printf(out, "%10s %7s %12s   %s\n", "alive", "%", "objects", "function");
	for (size_t i = 0; i < MIN(rows, l->rows.n); i++) {
		const struct leak_row *r = &l->rows.v[i];

		buf_printf(out, "%10s %7.2f %12s   ", str_bytes(bytes, r->bytes), str_percent(r->bytes, l->bytes),
			   str_count(count, r->objects));
		cleantext_last(out, r->name, columns, BEFORE_NAME);
		buf_putc(out, '\n');
	}
}

static void put_head(const struct oom *o, const struct profile *p, struct buf *out)
{
	char limit[32], swap[32], when[32], peak[32], hits[32];

	buf_printf(out, "\nMemory limit: %s", str_bytes(limit, o->limit));
	if (o->swap_limit != UINT64_MAX)
		buf_printf(out, ", swap %s", str_bytes(swap, o->swap_limit));
	if (o->kills)
		buf_printf(out, "; the kernel killed %llu process%s, the first after %s",
			   (unsigned long long)o->kills, o->kills == 1 ? "" : "es",
			   str_duration(when, o->kill_ns));
	else
		buf_printf(out, "; nothing was killed");
	buf_printf(out, ". At most %s was in use, %.1f %% of the limit; it was met %s time%s.\n",
		   str_bytes(peak, o->peak), str_percent(o->peak, o->limit), str_count(hits, o->hits),
		   o->hits == 1 ? "" : "s");
}

/* Puts a sentence: the largest part of the limit, and its owner. */
static void put_blame(const struct oom *o, unsigned columns, struct buf *out)
{
	const struct oom_point *end = o->points.n ? &o->points.v[o->points.n - 1] : NULL;
	const char *blame = oom_blame(o);
	char a[32], b[32];

	/* Far from the limit nothing filled it. */
	if (!end || (!o->kills && o->peak < o->limit / 10 * 9))
		return;
	if (!strcmp(blame, "heap")) {
		buf_printf(out, "The heap filled it: %s alive%s, ", str_bytes(a, o->live.bytes),
			   o->kills ? " at the kill" : " at the end");
		buf_printf(out, "%.0f %% of it allocated by ",
			   str_percent(o->live.rows.v[0].bytes, o->live.bytes));
		cleantext_last(out, o->live.rows.v[0].name, columns, 0);
		buf_puts(out, ".\n");
	} else if (!strcmp(blame, "cache")) {
		buf_printf(out,
			   "Files fill it: %s of page cache and mapped files of %s; what is clean is given "
			   "back before anything is killed, tmpfs and locked pages are not.\n",
			   str_bytes(a, end->file), str_bytes(b, end->usage));
	} else if (!strcmp(blame, "kernel")) {
		buf_printf(out,
			   "The kernel's own memory for it fills it: %s (page tables, sockets, inodes).\n",
			   str_bytes(a, end->kernel));
	} else if (!strcmp(blame, "other")) {
		buf_printf(
			out, "Anonymous memory filled it: %s%s.\n", str_bytes(a, end->anon),
			!o->live.recorded
				? "; the heap was not recorded: --what minor-faults says who touched it first"
				: "; the heap that was seen is less than half of it: stacks, mappings of its "
				  "own, or what the allocator keeps; --what minor-faults says who touched it "
				  "first");
	}
	if (*o->trigger && o->kills) {
		buf_puts(out, "The page that was one too many was asked for by ");
		cleantext_last(out, o->trigger, columns, 0);
		buf_puts(out, ".\n");
	}
}

static void put_points(const struct oom *o, struct buf *out)
{
	char a[32], b[32], c[32], d[32], e[32];

	if (!o->points.n)
		return;
	buf_printf(out, "\n%9s %10s %7s %10s %10s %10s %10s\n", "time", "in use", "%", "anonymous", "files",
		   "kernel", "swap");
	for (size_t i = 0; i < o->points.n; i++) {
		const struct oom_point *p = &o->points.v[i];

		buf_printf(out, "%7.1f s %10s %7.1f %10s %10s %10s %10s\n", p->time_ns / 1e9,
			   str_bytes(a, p->usage), str_percent(p->usage, o->limit), str_bytes(b, p->anon),
			   str_bytes(c, p->file), str_bytes(d, p->kernel), str_bytes(e, p->swap));
	}
}

static void put_said(const struct oom *o, unsigned columns, struct buf *out)
{
	if (!o->said.n)
		return;
	buf_puts(out, "\nThe kernel's log:\n");
	for (size_t i = 0; i < MIN(o->said.n, (size_t)SAID_ROWS); i++) {
		struct buf clean = { 0 };

		cleantext_put(&clean, o->said.v[i]);
		buf_puts(out, "  ");
		if (columns > 4)
			cleantext_cut(out, clean.data, columns - 2);
		else
			buf_puts(out, clean.data);
		buf_putc(out, '\n');
		buf_done(&clean);
	}
	if (o->said.n > SAID_ROWS)
		buf_printf(out, "  (%zu more lines are in the capture, in its table of marks)\n",
			   o->said.n - SAID_ROWS);
}

void oomtext_put(const struct profile *p, unsigned columns, struct buf *out)
{
	struct oom o;

	oom_build(&o, p);
	if (o.recorded) {
		put_head(&o, p, out);
		put_blame(&o, columns, out);
		put_points(&o, out);
		if (o.live.rows.n) {
			buf_printf(out, "\nThe heap %s:\n", o.kills ? "at the kill" : "at the end");
			leaktext_put(&o.live, LIVE_ROWS, columns, out);
		}
		put_said(&o, columns, out);
	}
	oom_done(&o);
}

/* --- JSON --- */

static void put_json_lists(const struct oom *o, struct json *j)
{
	json_open_array(j, "points");
	for (size_t i = 0; i < o->points.n; i++) {
		const struct oom_point *p = &o->points.v[i];

		json_open_row(j, 0);
		json_put_uints(j, { "time_ns", p->time_ns }, { "usage", p->usage }, { "anon", p->anon },
			       { "file", p->file }, { "kernel", p->kernel }, { "swap", p->swap });
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "live");
	for (size_t i = 0; i < o->live.rows.n; i++) {
		json_open_row(j, 0);
		json_put_uints(j, { "bytes", o->live.rows.v[i].bytes }, { "objects", o->live.rows.v[i].objects });
		json_put_string(j, "function", o->live.rows.v[i].name);
		json_put_string(j, "module", o->live.rows.v[i].module);
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "kernel_log");
	for (size_t i = 0; i < o->said.n; i++) {
		json_break(j, 0);
		json_put_string(j, NULL, o->said.v[i]);
	}
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct oom o;

	oom_build(&o, job->profile);
	if (o.recorded) {
		json_open_object_line(j, "limit", 0);
		json_put_uint(j, "memory", o.limit);
		if (o.swap_limit != UINT64_MAX)
			json_put_uint(j, "swap", o.swap_limit);
		json_put_uints(j, { "hits", o.hits }, { "kills", o.kills });
		if (o.kills)
			json_put_uint(j, "kill_ns", o.kill_ns);
		json_put_uints(j, { "peak", o.peak }, { "live_bytes", o.live.bytes });
		json_put_string(j, "filled_by", oom_blame(&o));
		json_put_string(j, "asked_by", o.trigger);
		put_json_lists(&o, j);
		json_close(j);
	}
	oom_done(&o);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	oomtext_put(job->profile, job->options.columns, out);
}

const struct section section_limit = { .name = "limit", .text = put_text, .json = put_json };
