/*
 * jsonview.c - the views of text.c for programs. Values are in the event's unit, unrounded.
 *
 * Trees are lists of nodes, each before those below it, with their depth: no nesting on which a parser
 * could fail.
 */
#include <string.h>

#include "analyze/blocks/phases.h"
#include "analyze/tree/share.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/report/json.h"
#include "export/report/table.h"
#include "export/report/view.h"
#include "profile/profile.h"

static void put_weight(struct buf *b, const char *key, const struct weight *w)
{
	buf_printf(b, "\"%s_samples\":%llu,\"%s\":%llu", key, (unsigned long long)w->samples, key,
		   (unsigned long long)w->value);
}

/* ",\n {" before a row, and "\n {" before the first. */
static void begin_row(struct buf *b, bool first)
{
	buf_puts(b, first ? "\n {" : ",\n {");
}

static void put_ident(struct buf *b, const struct ident *id)
{
	jsonfield_string(b, "name", id->name);
	buf_putc(b, ',');
	jsonfield_string(b, "module", id->module);
	buf_putc(b, ',');
	jsonfield_string(b, "kind", jsonfield_kind(id->kind));
}

/* --- trees --- */

int jsonview_tree(const struct export_job *job, struct buf *out, struct err *err)
{
	enum export_view view = job->options.view;
	const char *key = view == EXPORT_VIEW_CALLERS ? "callers" :
			  view == EXPORT_VIEW_CALLEES ? "callees" : "tree";
	struct calltree tree;
	struct callers callers;
	uint64_t left_out = 0;
	int r = view_tree(job, &tree, &callers, err);

	if (!r && view != EXPORT_VIEW_TREE) {
		buf_puts(out, ",\n\"function\":");
		buf_json(out, job->options.pattern);
		buf_printf(out, ",\n\"matched\":%u,\n", callers.matched);
		put_weight(out, "self", &callers.self);
	}
	if (!r)
		buf_printf(out, ",\n\"%s\":[", key);
	for (uint32_t i = 0; !r && i != CALLTREE_NONE;) {
		const struct calltree_node *n = &callers.nodes.v[i];

		if (!view_shows(job, &callers, i)) {
			left_out++;
			i = callers_skip(&callers, i);
			continue;
		}
		begin_row(out, !i);
		jsonfield_number(out, "depth", n->depth);
		buf_putc(out, ',');
		if (!i && callers.matched > 1) /* it stands for several */
			jsonfield_string(out, "name", job->options.pattern);
		else
			put_ident(out, callers_ident(&callers, i));
		buf_putc(out, ',');
		if (view != EXPORT_VIEW_CALLERS) {
			put_weight(out, "self", &n->self);
			buf_putc(out, ',');
		}
		put_weight(out, "total", &n->total);
		buf_putc(out, '}');
		i = callers_next(&callers, i);
	}
	if (!r)
		buf_printf(out, "],\n\"left_out\":%llu", (unsigned long long)left_out);
	callers_done(&callers);
	calltree_done(&tree);
	return r;
}

/* --- shares --- */

void jsonview_crates(const struct export_job *job, struct buf *out, const struct calltree *tree)
{
	struct calltree made;
	struct shares s;

	if (!tree)
		view_merged(job, &made);
	shares_build(&s, tree ? tree : &made, job->options.own);
	if (job->options.order == TOP_BY_TOTAL)
		shares_sort_total(&s);
	buf_puts(out, ",\n\"crates\":[");
	for (size_t i = 0; i < table_shown(job, s.crates.n); i++) {
		const struct share_row *row = &s.crates.v[i];

		begin_row(out, !i);
		jsonfield_string(out, "crate", row->name);
		buf_putc(out, ',');
		jsonfield_string(out, "kind", code_kind_key(row->kind));
		buf_putc(out, ',');
		put_weight(out, "self", &row->self);
		buf_putc(out, ',');
		put_weight(out, "total", &row->total);
		if (row->outermost.samples || row->nearest.samples) {
			buf_putc(out, ',');
			put_weight(out, "outermost", &row->outermost);
			buf_putc(out, ',');
			put_weight(out, "nearest", &row->nearest);
		}
		buf_putc(out, '}');
	}
	buf_puts(out, "],\n");
	put_weight(out, "no_own", &s.no_own);
	shares_done(&s);
	if (!tree)
		calltree_done(&made);
}

void jsonview_groups(const struct export_job *job, struct buf *out)
{
	struct calltree tree;
	struct shares s;

	if (!job->options.grouped)
		return;
	view_merged(job, &tree);
	shares_build(&s, &tree, job->options.own);
	buf_puts(out, ",\n\"groups\":[");
	for (size_t i = 0; i < table_shown(job, s.groups.n); i++) {
		begin_row(out, !i);
		jsonfield_string(out, "group", s.groups.v[i].name);
		buf_putc(out, ',');
		put_weight(out, "nearest", &s.groups.v[i].nearest);
		buf_putc(out, ',');
		put_weight(out, "total", &s.groups.v[i].total);
		buf_putc(out, '}');
	}
	buf_puts(out, "],\n");
	put_weight(out, "no_group", &s.no_group);
	shares_done(&s);
	calltree_done(&tree);
}

int jsonview_nearest(const struct export_job *job, struct buf *out, struct err *err)
{
	struct share_callers c;
	struct calltree tree;
	struct crates names;
	int r;

	view_merged(job, &tree);
	crates_init(&names, job->profile, job->options.own);
	r = share_callers_build(&c, &names, &tree, job->options.pattern, err);
	if (!r) {
		buf_puts(out, ",\n\"function\":");
		buf_json(out, job->options.pattern);
		buf_printf(out, ",\n\"matched\":%u,\n", c.matched);
		put_weight(out, "function_total", &c.total);
		buf_puts(out, ",\n\"nearest_own\":[");
	}
	for (size_t i = 0; !r && i < table_shown(job, c.rows.n); i++) {
		const struct share_caller *row = &c.rows.v[i];

		begin_row(out, !i);
		jsonfield_string(out, "crate", row->crate);
		buf_putc(out, ',');
		if (row->ident != PROFILE_NONE) {
			put_ident(out, &tree.idents.list.v[row->ident]);
			buf_putc(out, ',');
		}
		put_weight(out, "total", &row->weight);
		buf_putc(out, '}');
	}
	if (!r)
		buf_putc(out, ']');
	share_callers_done(&c);
	crates_done(&names);
	calltree_done(&tree);
	return r;
}

/* --- phases --- */

static void put_thread(struct buf *b, const struct profile *p, uint32_t thread)
{
	if (thread >= p->threads.n)
		return;
	buf_putc(b, ',');
	jsonfield_string(b, "thread", profile_str(p, p->threads.v[thread].name));
	buf_putc(b, ',');
	jsonfield_number(b, "tid", p->threads.v[thread].tid);
}

int jsonview_phases(const struct export_job *job, struct buf *out, struct err *err)
{
	struct phases f;
	int r = phases_build(&f, job->profile, job->selection, job->options.phases, err);

	if (!r)
		buf_puts(out, ",\n\"phases\":[");
	for (size_t i = 0; !r && i < f.rows.n; i++) {
		const struct phase *row = &f.rows.v[i];

		begin_row(out, !i);
		jsonfield_string(out, "phase", row->name);
		buf_putc(out, ',');
		put_weight(out, "innermost", &row->weight);
		buf_putc(out, ',');
		put_weight(out, "total", &row->total);
		if (row->threads) {
			buf_printf(out, ",\"first_ns\":%llu,\"last_ns\":%llu,\"threads\":%u",
				   (unsigned long long)row->first_ns, (unsigned long long)row->last_ns,
				   row->threads);
			put_thread(out, job->profile, row->thread);
		}
		buf_putc(out, '}');
	}
	if (!r) {
		buf_puts(out, "],\n");
		put_weight(out, "outside", &f.outside);
		buf_puts(out, ",\n");
		put_weight(out, "other_threads", &f.elsewhere);
	}
	phases_done(&f);
	return r;
}

static void put_kinds(struct buf *out, const struct marks *m)
{
	buf_puts(out, ",\n\"mark_kinds\":[");
	for (size_t i = 0; i < m->kinds.n; i++) {
		const struct mark_kind *k = &m->kinds.v[i];

		begin_row(out, !i);
		jsonfield_string(out, "kind", k->name);
		buf_printf(out, ",\"marks\":%llu,\"time_ns\":%llu,\"longest_ns\":%llu,",
			   (unsigned long long)k->count, (unsigned long long)k->time_ns,
			   (unsigned long long)k->longest_ns);
		put_weight(out, "total", &k->weight);
		buf_putc(out, '}');
	}
	buf_puts(out, "],\n");
	put_weight(out, "outside", &m->outside);
}

int jsonview_marks(const struct export_job *job, struct buf *out, struct err *err)
{
	const struct profile *p = job->profile;
	struct marks m;
	int r = marks_build(&m, p, job->selection, err);

	if (!r) {
		put_kinds(out, &m);
		buf_puts(out, ",\n\"marks\":[");
	}
	for (size_t i = 0; !r && i < table_shown(job, m.rows.n); i++) {
		const struct mark_row *row = &m.rows.v[i];
		const struct profile_mark *mark = &p->marks.v[row->mark];

		begin_row(out, !i);
		jsonfield_string(out, "name", profile_str(p, mark->name));
		buf_putc(out, ',');
		jsonfield_string(out, "kind", profile_str(p, mark->kind));
		buf_printf(out, ",\"start_ns\":%llu,\"end_ns\":%llu", (unsigned long long)row->start_ns,
			   (unsigned long long)row->end_ns);
		put_thread(out, p, mark->thread);
		buf_putc(out, ',');
		put_weight(out, "total", &row->weight);
		buf_putc(out, '}');
	}
	if (!r)
		buf_putc(out, ']');
	marks_done(&m);
	return r;
}
