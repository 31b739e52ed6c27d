/*
 * json.c - the tables of text.c for programs. Values are in the event's unit, unrounded.
 */
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/faulttext.h"
#include "export/iotext.h"
#include "profile/profile.h"

static void put_string(struct buf *b, const char *key, const char *value)
{
	buf_json(b, key);
	buf_putc(b, ':');
	buf_json(b, value);
}

static void put_number(struct buf *b, const char *key, uint64_t value)
{
	buf_printf(b, "\"%s\":%llu", key, (unsigned long long)value);
}

static const char *kind_name(enum ident_kind kind)
{
	return kind == IDENT_KERNEL ? "kernel" : kind == IDENT_UNNAMED ? "unnamed" : "user";
}

static void put_weights(struct buf *b, const struct top_row *row, bool with_self)
{
	if (with_self) {
		put_number(b, "self_samples", row->self.samples);
		buf_putc(b, ',');
		put_number(b, "self", row->self.value);
		buf_putc(b, ',');
	}
	put_number(b, "total_samples", row->total.samples);
	buf_putc(b, ',');
	put_number(b, "total", row->total.value);
}

enum table { FUNCTIONS, MODULES, THREADS };

static void put_row(struct buf *b, enum table table, const struct top_row *row)
{
	put_string(b, table == MODULES ? "module" : "name", row->name);
	buf_putc(b, ',');
	if (table == FUNCTIONS) {
		put_string(b, "module", row->module);
		buf_putc(b, ',');
		put_string(b, "kind", kind_name(row->kind));
		buf_putc(b, ',');
	} else if (table == THREADS) {
		put_number(b, "tid", row->id);
		buf_putc(b, ',');
		put_number(b, "pid", row->process);
		buf_putc(b, ',');
	}
	put_weights(b, row, table != THREADS);
}

static void put_table(struct buf *b, const char *key, enum table table, const struct top_row *rows, size_t n,
		      size_t limit)
{
	buf_printf(b, ",\n\"%s\":[", key);
	for (size_t i = 0; i < n && (!limit || i < limit); i++) {
		buf_puts(b, i ? ",\n {" : "\n {");
		put_row(b, table, &rows[i]);
		buf_putc(b, '}');
	}
	buf_puts(b, "]");
}

static void put_quality(struct buf *b, const struct quality *q, const struct selection *s)
{
	buf_puts(b, ",\n\"quality\":{");
	put_number(b, "samples", q->samples);
	buf_putc(b, ',');
	put_number(b, "complete", q->complete);
	buf_putc(b, ',');
	put_number(b, "lost", q->lost);
	buf_putc(b, ',');
	put_number(b, "frames", q->frames);
	buf_putc(b, ',');
	put_number(b, "unnamed", q->unnamed);
	buf_putc(b, ',');
	put_number(b, "own_cpu_ns", q->own_cpu_ns);
	buf_putc(b, ',');
	put_number(b, "target_cpu_ns", q->target_cpu_ns);
	buf_puts(b, ",\"truncated\":{");
	for (size_t i = 0; i < q->reasons.n; i++) {
		if (i)
			buf_putc(b, ',');
		buf_json(b, q->reasons.v[i].reason);
		buf_printf(b, ":%llu", (unsigned long long)q->reasons.v[i].samples);
	}
	buf_puts(b, "},\"warnings\":[");
	for (size_t i = 0; i < q->warnings.n; i++) {
		if (i)
			buf_putc(b, ',');
		buf_json(b, q->warnings.v[i]);
	}
	buf_printf(b, "],\"fit\":%s}", q->fit ? "true" : "false");
}

int json_write(const struct export_job *job, struct buf *out, struct err *err)
{
	const struct profile *p = job->profile;
	const struct selection *s = job->selection;
	const struct export_options *o = &job->options;
	struct top top;

	top_build(&top, p, s, o->no_inline, o->order);
	buf_puts(out, "{");
	put_string(out, "target", profile_str(p, p->target));
	buf_puts(out, ",\n");
	put_string(out, "host", profile_str(p, p->host));
	buf_puts(out, ",\n");
	put_string(out, "kernel", profile_str(p, p->kernel));
	buf_puts(out, ",\n");
	put_number(out, "start_wall_ns", p->start_wall_ns);
	buf_puts(out, ",\n");
	put_number(out, "duration_ns", select_duration_ns(p));
	buf_puts(out, ",\n");
	put_string(out, "event", export_event(job));
	buf_puts(out, ",\n");
	put_string(out, "unit", s->unit);
	buf_puts(out, ",\n");
	put_number(out, "samples", s->all.samples);
	buf_puts(out, ",\n");
	put_number(out, "total", s->all.value);
	if (s->waits) {
		buf_puts(out, ",\n");
		put_number(out, "idle_left_out", s->idle.value);
	}
	waitjson_put(job, out);
	iojson_write(job, out);
	put_table(out, "functions", FUNCTIONS, top.functions.v, top.functions.n, o->limit);
	put_table(out, "modules", MODULES, top.modules.v, top.modules.n, o->limit);
	put_table(out, "threads", THREADS, top.threads.v, top.threads.n, o->limit);
	faulttext_json(job, out);
	put_quality(out, job->quality, s);
	buf_puts(out, "}\n");
	top_done(&top);
	return 0;
}
