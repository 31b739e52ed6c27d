/*
 * csv.c - the tables as comma-separated values, for spreadsheets: by function, or what another view shows.
 *
 * Values are in the event's unit, without separators; the unit is a column. All rows are there unless --limit says otherwise.
 */
#include <errno.h>

#include "analyze/select.h"
#include "analyze/tree/share.h"
#include "analyze/tree/top.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/foreign/csvfield.h"
#include "export/report/view.h"

static size_t rows_of(const struct export_job *job, size_t n)
{
	return job->options.limit && !job->options.default_limit ? MIN(job->options.limit, n) : n;
}

static void put_weight(struct csvline *c, const struct weight *w, uint64_t all)
{
	csvline_uint(c, w->value);
	csvline_percent(c, str_percent(w->value, all));
	csvline_uint(c, w->samples);
}

#define WEIGHTS "self,self_percent,self_samples,total,total_percent,total_samples,event,unit"

/* self NULL: there is none, as of callers. */
static void put_weights(struct csvline *c, const struct export_job *job, const struct weight *self, const struct weight *total,
			uint64_t all)
{
	if (self)
		put_weight(c, self, all);
	for (int i = 0; i < 3 && !self; i++)
		csvline_none(c);
	put_weight(c, total, all);
	csvline_text(c, export_event(job));
	csvline_text(c, job->selection->unit);
	csvline_end(c);
}

/* --- functions, modules, threads --- */

static void put_functions(const struct export_job *job, const struct top *top, struct buf *out)
{
	csvline_head(out, "function,module,kind," WEIGHTS);
	for (size_t i = 0; i < rows_of(job, top->functions.n); i++) {
		const struct top_row *r = &top->functions.v[i];
		struct csvline c = csvline_begin(out, true);

		csvline_text(&c, r->name);
		csvline_text(&c, r->module);
		csvline_text(&c, view_kind(r->kind));
		put_weights(&c, job, &r->self, &r->total, top->all.value);
	}
}

static void put_modules(const struct export_job *job, const struct top *top, struct buf *out)
{
	csvline_head(out, "module," WEIGHTS);
	for (size_t i = 0; i < rows_of(job, top->modules.n); i++) {
		const struct top_row *r = &top->modules.v[i];
		struct csvline c = csvline_begin(out, true);

		csvline_text(&c, r->name);
		put_weights(&c, job, &r->self, &r->total, top->all.value);
	}
}

static void put_threads(const struct export_job *job, const struct top *top, struct buf *out)
{
	csvline_head(out, "thread,tid,process,pid," WEIGHTS);
	for (size_t i = 0; i < rows_of(job, top->threads.n); i++) {
		const struct top_row *r = &top->threads.v[i];
		struct csvline c = csvline_begin(out, true);

		csvline_text(&c, r->name);
		csvline_uint(&c, r->id);
		csvline_text(&c, r->program);
		csvline_uint(&c, r->process);
		put_weights(&c, job, &r->self, &r->total, top->all.value);
	}
}

static void put_top(const struct export_job *job, struct buf *out)
{
	struct top top;

	top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
	if (job->options.view == EXPORT_VIEW_MODULES)
		put_modules(job, &top, out);
	else if (job->options.view == EXPORT_VIEW_THREADS)
		put_threads(job, &top, out);
	else
		put_functions(job, &top, out);
	top_done(&top);
}

/* --- crates, trees --- */

static void put_crates(const struct export_job *job, struct buf *out)
{
	struct calltree tree;
	struct shares s;

	view_merged(job, &tree);
	shares_build(&s, &tree, job->options.own);
	if (job->options.order == TOP_BY_TOTAL)
		shares_sort_total(&s);
	csvline_head(out, "crate,kind," WEIGHTS);
	for (size_t i = 0; i < rows_of(job, s.crates.n); i++) {
		struct csvline c = csvline_begin(out, true);

		csvline_text(&c, s.crates.v[i].name);
		csvline_text(&c, code_kind_key(s.crates.v[i].kind));
		put_weights(&c, job, &s.crates.v[i].self, &s.crates.v[i].total, s.all.value);
	}
	shares_done(&s);
	calltree_done(&tree);
}

/* Each node before those below it, with its depth. */
static int put_tree(const struct export_job *job, struct buf *out, struct err *err)
{
	struct calltree tree;
	struct callers callers;
	int r = view_tree(job, &tree, &callers, err);

	if (!r)
		csvline_head(out, "depth,function,module,kind," WEIGHTS);
	for (uint32_t i = 0; i != CALLTREE_NONE && !r;) {
		const struct calltree_node *n = &callers.nodes.v[i];
		const struct ident *id = callers_ident(&callers, i);
		struct csvline c = csvline_begin(out, true);

		if (!view_shows(job, &callers, i)) {
			i = callers_skip(&callers, i);
			continue;
		}
		csvline_uint(&c, n->depth);
		csvline_text(&c, !i && callers.matched > 1 ? job->options.pattern : id->name);
		csvline_text(&c, id->module);
		csvline_text(&c, view_kind(id->kind));
		put_weights(&c, job, job->options.view == EXPORT_VIEW_CALLERS ? NULL : &n->self, &n->total, job->selection->all.value);
		i = callers_next(&callers, i);
	}
	callers_done(&callers);
	calltree_done(&tree);
	return r;
}

int csv_write(const struct export_job *job, struct buf *out, struct err *err)
{
	switch (job->options.view) {
	case EXPORT_VIEW_ALL:
	case EXPORT_VIEW_FUNCTIONS:
	case EXPORT_VIEW_MODULES:
	case EXPORT_VIEW_THREADS:
		put_top(job, out);
		return 0;
	case EXPORT_VIEW_CRATES:
		put_crates(job, out);
		return 0;
	case EXPORT_VIEW_TREE:
	case EXPORT_VIEW_CALLERS:
	case EXPORT_VIEW_CALLEES:
		return put_tree(job, out, err);
	default:
		return err_set(err, ENOTSUP, "csv has tables of functions, modules, threads and crates, and trees: "
					     "--format json has all others");
	}
}
