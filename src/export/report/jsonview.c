/*
 * jsonview.c - the views of text.c for programs. Values are in the event's unit, unrounded.
 *
 * Trees are lists of nodes, each before those below it, with their depth: no nesting on which a parser
 * could fail.
 */
#include <stdio.h>

#include "analyze/blocks/phases.h"
#include "analyze/tree/share.h"
#include "base/json.h"
#include "export/export.h"
#include "export/report/table.h"
#include "export/report/view.h"
#include "profile/profile.h"

/* PREFIX_samples and PREFIX. */
static void put_weight(struct json *j, const char *prefix, const struct weight *w)
{
	char key[48];

	snprintf(key, sizeof(key), "%s_samples", prefix);
	json_put_uint(j, key, w->samples);
	json_put_uint(j, prefix, w->value);
}

/* The same, of the report itself: it begins a line. */
static void put_sum(struct json *j, const char *prefix, const struct weight *w)
{
	json_break(j, 0);
	put_weight(j, prefix, w);
}

static void put_ident(struct json *j, const struct ident *id)
{
	json_put_string(j, "name", id->name);
	json_put_string(j, "module", id->module);
	json_put_string(j, "kind", view_kind(id->kind));
}

static void put_function(struct json *j, const char *pattern, uint32_t matched)
{
	json_break(j, 0);
	json_put_string(j, "function", pattern);
	json_break(j, 0);
	json_put_uint(j, "matched", matched);
}

/* --- trees --- */

static void put_node(const struct export_job *job, const struct callers *callers, uint32_t i, struct json *j)
{
	const struct calltree_node *n = &callers->nodes.v[i];

	json_open_row(j, 1);
	json_put_uint(j, "depth", n->depth);
	if (!i && callers->matched > 1) /* the root is several functions */
		json_put_string(j, "name", job->options.pattern);
	else
		put_ident(j, callers_ident(callers, i));
	if (job->options.view != EXPORT_VIEW_CALLERS)
		put_weight(j, "self", &n->self);
	put_weight(j, "total", &n->total);
	json_close(j);
}

static void put_nodes(const struct export_job *job, const struct callers *callers, struct json *j)
{
	enum export_view view = job->options.view;
	uint64_t left_out = 0;

	if (view != EXPORT_VIEW_TREE) {
		put_function(j, job->options.pattern, callers->matched);
		put_sum(j, "self", &callers->self);
	}
	json_open_array_line(j, view == EXPORT_VIEW_CALLERS ? "callers" : view == EXPORT_VIEW_CALLEES ? "callees" : "tree", 0);
	for (uint32_t i = 0; i != CALLTREE_NONE;) {
		bool shown = view_shows(job, callers, i);

		if (shown)
			put_node(job, callers, i, j);
		left_out += !shown;
		i = shown ? callers_next(callers, i) : callers_skip(callers, i);
	}
	json_close_line(j, 0);
	json_put_uint(j, "left_out", left_out);
}

int jsonview_tree(const struct export_job *job, struct json *j, struct err *err)
{
	struct calltree tree;
	struct callers callers;
	int r = view_tree(job, &tree, &callers, err);

	if (!r)
		put_nodes(job, &callers, j);
	callers_done(&callers);
	calltree_done(&tree);
	return r;
}

/* --- shares --- */

void jsonview_crates(const struct export_job *job, struct json *j, const struct calltree *tree)
{
	struct calltree made;
	struct shares s;

	if (!tree)
		view_merged(job, &made);
	shares_build(&s, tree ? tree : &made, job->options.own);
	if (job->options.order == TOP_BY_TOTAL)
		shares_sort_total(&s);
	json_open_array_line(j, "crates", 0);
	for (size_t i = 0; i < table_shown(job, s.crates.n); i++) {
		const struct share_row *row = &s.crates.v[i];

		json_open_row(j, 1);
		json_put_string(j, "crate", row->name);
		json_put_string(j, "kind", code_kind_key(row->kind));
		put_weight(j, "self", &row->self);
		put_weight(j, "total", &row->total);
		if (row->outermost.samples || row->nearest.samples) {
			put_weight(j, "outermost", &row->outermost);
			put_weight(j, "nearest", &row->nearest);
		}
		json_close(j);
	}
	json_close(j);
	put_sum(j, "no_own", &s.no_own);
	shares_done(&s);
	if (!tree)
		calltree_done(&made);
}

void jsonview_groups(const struct export_job *job, struct json *j)
{
	struct calltree tree;
	struct shares s;

	if (!job->options.grouped)
		return;
	view_merged(job, &tree);
	shares_build(&s, &tree, job->options.own);
	json_open_array_line(j, "groups", 0);
	for (size_t i = 0; i < table_shown(job, s.groups.n); i++) {
		json_open_row(j, 1);
		json_put_string(j, "group", s.groups.v[i].name);
		put_weight(j, "nearest", &s.groups.v[i].nearest);
		put_weight(j, "total", &s.groups.v[i].total);
		json_close(j);
	}
	json_close(j);
	put_sum(j, "no_group", &s.no_group);
	shares_done(&s);
	calltree_done(&tree);
}

static void put_callers(const struct export_job *job, const struct share_callers *c, const struct calltree *tree,
			struct json *j)
{
	put_function(j, job->options.pattern, c->matched);
	put_sum(j, "function_total", &c->total);
	json_open_array_line(j, "nearest_own", 0);
	for (size_t i = 0; i < table_shown(job, c->rows.n); i++) {
		const struct share_caller *row = &c->rows.v[i];

		json_open_row(j, 1);
		json_put_string(j, "crate", row->crate);
		if (row->ident != PROFILE_NONE)
			put_ident(j, &tree->idents.list.v[row->ident]);
		put_weight(j, "total", &row->weight);
		json_close(j);
	}
	json_close(j);
}

int jsonview_nearest(const struct export_job *job, struct json *j, struct err *err)
{
	struct share_callers c;
	struct calltree tree;
	struct crates names;
	int r;

	view_merged(job, &tree);
	crates_init(&names, job->profile, job->options.own);
	r = share_callers_build(&c, &names, &tree, job->options.pattern, err);
	if (!r)
		put_callers(job, &c, &tree, j);
	share_callers_done(&c);
	crates_done(&names);
	calltree_done(&tree);
	return r;
}

/* --- phases --- */

static void put_thread(struct json *j, const struct profile *p, uint32_t thread)
{
	if (thread >= p->threads.n)
		return;
	json_put_string(j, "thread", profile_str(p, p->threads.v[thread].name));
	json_put_uint(j, "tid", p->threads.v[thread].tid);
}

static void put_phases(const struct profile *p, const struct phases *f, struct json *j)
{
	json_open_array_line(j, "phases", 0);
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct phase *row = &f->rows.v[i];

		json_open_row(j, 1);
		json_put_string(j, "phase", row->name);
		put_weight(j, "innermost", &row->weight);
		put_weight(j, "total", &row->total);
		if (row->threads) {
			json_put_uints(j, { "first_ns", row->first_ns }, { "last_ns", row->last_ns },
				       { "threads", row->threads });
			put_thread(j, p, row->thread);
		}
		json_close(j);
	}
	json_close(j);
	put_sum(j, "outside", &f->outside);
	put_sum(j, "other_threads", &f->elsewhere);
}

int jsonview_phases(const struct export_job *job, struct json *j, struct err *err)
{
	struct phases f;
	int r = phases_build(&f, job->profile, job->selection, job->options.phases, err);

	if (!r)
		put_phases(job->profile, &f, j);
	phases_done(&f);
	return r;
}

static void put_kinds(struct json *j, const struct marks *m)
{
	json_open_array_line(j, "mark_kinds", 0);
	for (size_t i = 0; i < m->kinds.n; i++) {
		const struct mark_kind *k = &m->kinds.v[i];

		json_open_row(j, 1);
		json_put_string(j, "kind", k->name);
		json_put_uints(j, { "marks", k->count }, { "time_ns", k->time_ns }, { "longest_ns", k->longest_ns });
		put_weight(j, "total", &k->weight);
		json_close(j);
	}
	json_close(j);
	put_sum(j, "outside", &m->outside);
}

static void put_marks(const struct export_job *job, const struct marks *m, struct json *j)
{
	const struct profile *p = job->profile;

	put_kinds(j, m);
	json_open_array_line(j, "marks", 0);
	for (size_t i = 0; i < table_shown(job, m->rows.n); i++) {
		const struct mark_row *row = &m->rows.v[i];
		const struct profile_mark *mark = &p->marks.v[row->mark];

		json_open_row(j, 1);
		json_put_string(j, "name", profile_str(p, mark->name));
		json_put_string(j, "kind", profile_str(p, mark->kind));
		json_put_uints(j, { "start_ns", row->start_ns }, { "end_ns", row->end_ns });
		put_thread(j, p, mark->thread);
		put_weight(j, "total", &row->weight);
		json_close(j);
	}
	json_close(j);
}

int jsonview_marks(const struct export_job *job, struct json *j, struct err *err)
{
	struct marks m;
	int r = marks_build(&m, job->profile, job->selection, err);

	if (!r)
		put_marks(job, &m, j);
	marks_done(&m);
	return r;
}
