/*
 * json.c - the tables of text.c for programs. Values are in the event's unit, unrounded.
 */

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/json.h"
#include "export/export.h"
#include "export/section/ownertext.h"
#include "export/section/section.h"
#include "export/report/view.h"
#include "profile/profile.h"

const char *view_kind(enum ident_kind kind)
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

static void put_weights(struct json *j, const struct top_row *row, bool with_self)
{
	if (with_self) {
		json_put_uints(j, { "self_samples", row->self.samples }, { "self", row->self.value });
	}
	json_put_uints(j, { "total_samples", row->total.samples }, { "total", row->total.value });
}

enum table { FUNCTIONS, MODULES, THREADS };

static void put_row(struct json *j, enum table table, const struct top_row *row)
{
	json_open_row(j, 1);
	json_put_string(j, table == MODULES ? "module" : "name", row->name);
	if (table == FUNCTIONS) {
		json_put_string(j, "module", row->module);
		json_put_string(j, "kind", view_kind(row->kind));
	} else if (table == THREADS) {
		json_put_uints(j, { "tid", row->id }, { "pid", row->process });
	}
	put_weights(j, row, table != THREADS);
	json_close(j);
}

static void put_table(struct json *j, const char *key, enum table table, const struct top_row *rows, size_t n,
		      size_t limit)
{
	json_open_array_line(j, key, 0);
	for (size_t i = 0; i < n && (!limit || i < limit); i++)
		put_row(j, table, &rows[i]);
	json_close(j);
}

static void put_quality(struct json *j, const struct quality *q)
{
	json_open_object_line(j, "quality", 0);
	json_put_uints(j, { "samples", q->samples }, { "complete", q->complete });
	if (q->unwound_elsewhere)
		json_put_bool(j, "unwound_elsewhere", true);
	if (q->by_time) {
		json_put_uints(j, { "time_ns", q->weight }, { "complete_ns", q->complete_weight }, { "error_ns", q->error_ns });
	}
	if (q->missed)
		json_put_uint(j, "missed", q->missed);
	json_put_uints(j, { "lost", q->lost }, { "frames", q->frames }, { "unnamed", q->unnamed },
		       { "own_cpu_ns", q->own_cpu_ns }, { "own_samples", q->own_samples },
		       { "guessed", q->guessed }, { "derived", q->derived },
		       { "target_cpu_ns", q->target_cpu_ns });
	json_open_object(j, "truncated");
	for (size_t i = 0; i < q->reasons.n; i++)
		json_put_uint(j, q->reasons.v[i].reason, q->reasons.v[i].samples);
	json_close(j);
	json_put_strings(j, "warnings", (const char *const *)q->warnings.v, q->warnings.n);
	json_put_bool(j, "fit", q->fit);
	json_close(j);
}

/* A member of the report itself begins a line. */
static void put_string(struct json *j, const char *key, const char *value)
{
	json_break(j, 0);
	json_put_string(j, key, value);
}

static void put_number(struct json *j, const char *key, uint64_t value)
{
	json_break(j, 0);
	json_put_uint(j, key, value);
}

static void put_head(const struct export_job *job, struct json *j)
{
	const struct profile *p = job->profile;
	const struct selection *s = job->selection;

	json_put_string(j, "target", profile_str(p, p->target));
	ownertext_json(p, j);
	put_string(j, "host", profile_str(p, p->host));
	put_string(j, "kernel", profile_str(p, p->kernel));
	put_number(j, "start_wall_ns", p->start_wall_ns);
	put_number(j, "duration_ns", select_duration_ns(p));
	put_string(j, "event", export_event(job));
	put_string(j, "unit", s->unit);
	put_number(j, "samples", s->all.samples);
	put_number(j, "total", s->all.value);
	if (s->waits)
		put_number(j, "idle_left_out", s->idle.value);
	if (s->root) {
		put_string(j, "root", s->root);
		put_number(j, "outside_root", s->outside.value);
	}
}

/* The tables of functions, modules and threads, all of them or one. */
static void put_top(const struct export_job *job, struct json *j)
{
	const struct export_options *o = &job->options;
	enum export_view view = o->view;
	struct top top;

	top_build(&top, job->profile, job->selection, o->no_inline, o->order);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_FUNCTIONS)
		put_table(j, "functions", FUNCTIONS, top.functions.v, top.functions.n, o->limit);
	if (view == EXPORT_VIEW_ALL)
		jsonview_crates(job, j, &top.tree);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_MODULES)
		put_table(j, "modules", MODULES, top.modules.v, top.modules.n, o->limit);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_THREADS)
		put_table(j, "threads", THREADS, top.threads.v, top.threads.n, o->limit);
	top_done(&top);
}

static void put_sections(const struct export_job *job, struct json *j, bool after_tables)
{
	for (size_t i = 0; sections[i]; i++)
		if (sections[i]->json && sections[i]->json_after_tables == after_tables)
			sections[i]->json(job, j);
}

static int put_view(const struct export_job *job, struct json *j, struct err *err)
{
	bool whole = job->options.view == EXPORT_VIEW_ALL && !job->selection->root;

	switch (job->options.view) {
	case EXPORT_VIEW_ALL:
	case EXPORT_VIEW_FUNCTIONS:
	case EXPORT_VIEW_MODULES:
	case EXPORT_VIEW_THREADS:
		if (whole)
			put_sections(job, j, false);
		if (job->options.view == EXPORT_VIEW_ALL)
			jsonview_groups(job, j);
		put_top(job, j);
		if (whole)
			put_sections(job, j, true);
		return 0;
	case EXPORT_VIEW_CRATES:
		jsonview_crates(job, j, NULL);
		return 0;
	case EXPORT_VIEW_GROUPS:
		jsonview_groups(job, j);
		return 0;
	case EXPORT_VIEW_SUBSYSTEMS:
		section_subsystems.json(job, j);
		return 0;
	case EXPORT_VIEW_NEAREST_OWN:
		return jsonview_nearest(job, j, err);
	case EXPORT_VIEW_TREE:
	case EXPORT_VIEW_CALLERS:
	case EXPORT_VIEW_CALLEES:
		return jsonview_tree(job, j, err);
	case EXPORT_VIEW_PHASES:
		return jsonview_phases(job, j, err);
	case EXPORT_VIEW_MARKS:
		return jsonview_marks(job, j, err);
	}
	return 0;
}

int json_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct json j = json_begin(out);
	int r;

	json_open_object(&j, NULL);
	put_head(job, &j);
	r = put_view(job, &j, err);
	put_quality(&j, job->quality);
	json_end_line(&j);
	return r;
}
