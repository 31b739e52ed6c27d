/*
 * textshare.c - shares for the terminal: by crate, by own crate, by group, and the callers of a hot
 * function.
 */
#include <string.h>

#include "analyze/tree/share.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/report/view.h"
#include "profile/profile.h"

enum { KIND_COLUMNS = 10, CRATE_COLUMNS = 18 };

static int compare_outermost(const void *a, const void *b)
{
	const struct share_row *x = a, *y = b;

	return ORDER(y->outermost.value, x->outermost.value) ?: ORDER(y->nearest.value, x->nearest.value) ?:
	       strcmp(x->name, y->name);
}

static void put_crates(struct table *t, const struct shares *s)
{
	size_t shown = table_shown(t->job, s->crates.n);
	bool narrow = table_narrow(t->job);
	char count[32];

	table_heading(t, "By crate", shown, s->crates.n);
	buf_printf(t->out, "%17s  ", "self");
	if (!narrow)
		buf_printf(t->out, "%9s  ", table_count(t->job));
	buf_printf(t->out, "%17s  %-*s  %s\n", "total", KIND_COLUMNS, "kind", "crate");
	for (size_t i = 0; i < shown; i++) {
		const struct share_row *row = &s->crates.v[i];

		table_amount(t, row->self.value);
		if (!narrow)
			buf_printf(t->out, "%9s  ", str_count(count, row->self.samples));
		table_amount(t, row->total.value);
		table_dim(t, code_kind_key(row->kind), KIND_COLUMNS);
		table_name(t, row->name, (narrow ? 38 : 49) + KIND_COLUMNS + 2);
		buf_putc(t->out, '\n');
	}
}

static void put_own(struct table *t, struct shares *s)
{
	size_t n = 0, shown;

	for (size_t i = 0; i < s->crates.n; i++)
		n += s->crates.v[i].outermost.samples || s->crates.v[i].nearest.samples;
	if (!n) {
		buf_puts(t->out, "\nNo crate here counts as your own: say which do with --own 'name*'\n");
		return;
	}
	vec_sort(&s->crates, compare_outermost);
	shown = table_shown(t->job, n);
	table_heading(t, "By own crate", shown, n);
	buf_printf(t->out, "%17s  %17s  %s\n", "outermost", "nearest",
		   "crate of the own function on the stack");
	for (size_t i = 0, k = 0; i < s->crates.n && k < shown; i++) {
		const struct share_row *row = &s->crates.v[i];

		if (!row->outermost.samples && !row->nearest.samples)
			continue;
		k++;
		table_amount(t, row->outermost.value);
		table_amount(t, row->nearest.value);
		table_name(t, row->name, 38);
		buf_putc(t->out, '\n');
	}
	table_amount(t, s->no_own.value);
	table_amount(t, s->no_own.value);
	buf_puts(t->out, "[no own code]\n");
}

void textshare_crates(const struct export_job *job, struct buf *out, const struct calltree *tree, bool short_)
{
	struct table t = { .job = job, .out = out, .all = job->selection->all.value };
	struct calltree made;
	struct shares s;

	if (!tree)
		view_merged(job, &made);
	shares_build(&s, tree ? tree : &made, job->options.own);
	if (job->options.order == TOP_BY_TOTAL)
		shares_sort_total(&s);
	if (!short_ || s.rust)
		put_crates(&t, &s);
	if (!short_)
		put_own(&t, &s);
	shares_done(&s);
	if (!tree)
		calltree_done(&made);
}

void textshare_groups(const struct export_job *job, struct buf *out)
{
	struct table t = { .job = job, .out = out, .all = job->selection->all.value };
	struct calltree tree;
	struct shares s;
	size_t shown;

	if (!job->options.grouped)
		return;
	view_merged(job, &tree);
	shares_build(&s, &tree, job->options.own);
	shown = table_shown(job, s.groups.n);
	table_heading(&t, "By group", shown, s.groups.n);
	buf_printf(out, "%17s  %17s  %s\n", "nearest", "total", "group");
	for (size_t i = 0; i < shown; i++) {
		table_amount(&t, s.groups.v[i].nearest.value);
		table_amount(&t, s.groups.v[i].total.value);
		table_name(&t, s.groups.v[i].name, 38);
		buf_putc(out, '\n');
	}
	table_amount(&t, s.no_group.value);
	table_amount(&t, s.no_group.value);
	buf_puts(out, "[no group]\n");
	shares_done(&s);
	calltree_done(&tree);
}

static void put_nearest(struct table *t, const struct calltree *tree, const struct share_callers *c)
{
	size_t shown = table_shown(t->job, c->rows.n);
	uint64_t all = t->job->selection->all.value;
	_cleanup_(buf_done) struct buf title = { 0 }, clean = { 0 };
	char a[32], b[32];

	buf_printf(&title, "Own functions that lead to `%s`", t->job->options.pattern);
	cleantext_put(&clean, title.data);
	table_heading(t, clean.data, shown, c->rows.n);
	buf_printf(t->out, "  which is %s of %s", str_share(b, str_percent(t->all, all)),
		   export_value(a, t->job, all));
	if (c->matched > 1)
		buf_printf(t->out, "; %u functions match", c->matched);
	buf_printf(t->out, "\n%17s  %9s  %-*s  %s\n", "total", table_count(t->job), CRATE_COLUMNS, "crate",
		   "nearest own function above it");
	for (size_t i = 0; i < shown; i++) {
		const struct share_caller *row = &c->rows.v[i];

		table_amount(t, row->weight.value);
		buf_printf(t->out, "%9s  ", str_count(a, row->weight.samples));
		table_dim(t, row->crate, CRATE_COLUMNS);
		if (row->ident == PROFILE_NONE)
			buf_puts(t->out, "[no own code]");
		else
			table_function(t, tree->idents.list.v[row->ident].name, 30 + CRATE_COLUMNS + 2);
		buf_putc(t->out, '\n');
	}
	if (c->rows.n == 1 && c->rows.v[0].ident == PROFILE_NONE)
		buf_puts(t->out, "No function above it counts as your own: say which crates do with --own 'name*'\n");
}

int textshare_nearest(const struct export_job *job, struct buf *out, struct err *err)
{
	struct table t = { .job = job, .out = out };
	struct share_callers c;
	struct calltree tree;
	struct crates names;
	int r;

	view_merged(job, &tree);
	crates_init(&names, job->profile, job->options.own);
	r = share_callers_build(&c, &names, &tree, job->options.pattern, err);
	if (!r) {
		t.all = c.total.value;
		put_nearest(&t, &tree, &c);
	}
	cleantext_set_done(&t.functions);
	share_callers_done(&c);
	crates_done(&names);
	calltree_done(&tree);
	return r;
}
