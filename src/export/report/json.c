/*
 * json.c - the tables of text.c for programs. Values are in the event's unit, unrounded.
 */
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/report/json.h"
#include "export/section/ownertext.h"
#include "export/section/section.h"
#include "export/report/view.h"
#include "profile/profile.h"

void jsonfield_string(struct buf *b, const char *key, const char *value)
{
	buf_json(b, key);
	buf_putc(b, ':');
	buf_json(b, value);
}

void jsonfield_number(struct buf *b, const char *key, uint64_t value)
{
	buf_printf(b, "\"%s\":%llu", key, (unsigned long long)value);
}

const char *jsonfield_kind(enum ident_kind kind)
{
	static const char *const names[] = {
		[IDENT_ROOT] = "all",
		[IDENT_GROUP] = "thread",
		[IDENT_USER] = "user",
		[IDENT_INLINED] = "user",
		[IDENT_KERNEL] = "kernel",
		[IDENT_UNNAMED] = "unnamed",
		[IDENT_TRUNCATED] = "truncated",
		[IDENT_NOTE] = "note",
		[IDENT_CAUSE] = "cause",
	};

	return names[kind];
}

static void put_weights(struct buf *b, const struct top_row *row, bool with_self)
{
	if (with_self) {
		jsonfield_number(b, "self_samples", row->self.samples);
		buf_putc(b, ',');
		jsonfield_number(b, "self", row->self.value);
		buf_putc(b, ',');
	}
	jsonfield_number(b, "total_samples", row->total.samples);
	buf_putc(b, ',');
	jsonfield_number(b, "total", row->total.value);
}

enum table { FUNCTIONS, MODULES, THREADS };

static void put_row(struct buf *b, enum table table, const struct top_row *row)
{
	jsonfield_string(b, table == MODULES ? "module" : "name", row->name);
	buf_putc(b, ',');
	if (table == FUNCTIONS) {
		jsonfield_string(b, "module", row->module);
		buf_putc(b, ',');
		jsonfield_string(b, "kind", jsonfield_kind(row->kind));
		buf_putc(b, ',');
	} else if (table == THREADS) {
		jsonfield_number(b, "tid", row->id);
		buf_putc(b, ',');
		jsonfield_number(b, "pid", row->process);
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
	jsonfield_number(b, "samples", q->samples);
	buf_putc(b, ',');
	jsonfield_number(b, "complete", q->complete);
	buf_putc(b, ',');
	if (q->by_time) {
		jsonfield_number(b, "time_ns", q->weight);
		buf_putc(b, ',');
		jsonfield_number(b, "complete_ns", q->complete_weight);
		buf_putc(b, ',');
	}
	jsonfield_number(b, "lost", q->lost);
	buf_putc(b, ',');
	jsonfield_number(b, "frames", q->frames);
	buf_putc(b, ',');
	jsonfield_number(b, "unnamed", q->unnamed);
	buf_putc(b, ',');
	jsonfield_number(b, "own_cpu_ns", q->own_cpu_ns);
	buf_putc(b, ',');
	jsonfield_number(b, "target_cpu_ns", q->target_cpu_ns);
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

static void put_head(const struct export_job *job, struct buf *out)
{
	const struct profile *p = job->profile;
	const struct selection *s = job->selection;

	jsonfield_string(out, "target", profile_str(p, p->target));
	ownertext_json(p, out);
	buf_puts(out, ",\n");
	jsonfield_string(out, "host", profile_str(p, p->host));
	buf_puts(out, ",\n");
	jsonfield_string(out, "kernel", profile_str(p, p->kernel));
	buf_puts(out, ",\n");
	jsonfield_number(out, "start_wall_ns", p->start_wall_ns);
	buf_puts(out, ",\n");
	jsonfield_number(out, "duration_ns", select_duration_ns(p));
	buf_puts(out, ",\n");
	jsonfield_string(out, "event", export_event(job));
	buf_puts(out, ",\n");
	jsonfield_string(out, "unit", s->unit);
	buf_puts(out, ",\n");
	jsonfield_number(out, "samples", s->all.samples);
	buf_puts(out, ",\n");
	jsonfield_number(out, "total", s->all.value);
	if (s->waits) {
		buf_puts(out, ",\n");
		jsonfield_number(out, "idle_left_out", s->idle.value);
	}
	if (s->root) {
		buf_puts(out, ",\n");
		jsonfield_string(out, "root", s->root);
		buf_puts(out, ",\n");
		jsonfield_number(out, "outside_root", s->outside.value);
	}
}

/* The tables of functions, modules and threads, all of them or one. */
static void put_top(const struct export_job *job, struct buf *out)
{
	const struct export_options *o = &job->options;
	enum export_view view = o->view;
	struct top top;

	top_build(&top, job->profile, job->selection, o->no_inline, o->order);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_FUNCTIONS)
		put_table(out, "functions", FUNCTIONS, top.functions.v, top.functions.n, o->limit);
	if (view == EXPORT_VIEW_ALL)
		jsonview_crates(job, out, &top.tree);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_MODULES)
		put_table(out, "modules", MODULES, top.modules.v, top.modules.n, o->limit);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_THREADS)
		put_table(out, "threads", THREADS, top.threads.v, top.threads.n, o->limit);
	top_done(&top);
}

static void put_sections(const struct export_job *job, struct buf *out, bool after_tables)
{
	for (size_t i = 0; sections[i]; i++)
		if (sections[i]->json_after_tables == after_tables)
			sections[i]->json(job, out);
}

static int put_view(const struct export_job *job, struct buf *out, struct err *err)
{
	bool whole = job->options.view == EXPORT_VIEW_ALL && !job->selection->root;

	switch (job->options.view) {
	case EXPORT_VIEW_ALL:
	case EXPORT_VIEW_FUNCTIONS:
	case EXPORT_VIEW_MODULES:
	case EXPORT_VIEW_THREADS:
		if (whole)
			put_sections(job, out, false);
		if (job->options.view == EXPORT_VIEW_ALL)
			jsonview_groups(job, out);
		put_top(job, out);
		if (whole)
			put_sections(job, out, true);
		return 0;
	case EXPORT_VIEW_CRATES:
		jsonview_crates(job, out, NULL);
		return 0;
	case EXPORT_VIEW_GROUPS:
		jsonview_groups(job, out);
		return 0;
	case EXPORT_VIEW_NEAREST_OWN:
		return jsonview_nearest(job, out, err);
	case EXPORT_VIEW_TREE:
	case EXPORT_VIEW_CALLERS:
	case EXPORT_VIEW_CALLEES:
		return jsonview_tree(job, out, err);
	case EXPORT_VIEW_PHASES:
		return jsonview_phases(job, out, err);
	case EXPORT_VIEW_MARKS:
		return jsonview_marks(job, out, err);
	}
	return 0;
}

int json_write(const struct export_job *job, struct buf *out, struct err *err)
{
	int r;

	buf_puts(out, "{");
	put_head(job, out);
	r = put_view(job, out, err);
	put_quality(out, job->quality, job->selection);
	buf_puts(out, "}\n");
	return r;
}
