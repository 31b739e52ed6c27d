/*
 * texttree.c - trees for the terminal: the call tree, callers, callees.
 *
 *	100.00%    2.00 s    0.00%  all
 *	 52.50%    1.05 s    0.00%  - main
 *	 52.50%    1.05 s    2.50%    node::run
 *	 35.00%    700 ms   35.00%    - node::fib
 *
 * Where a tree branches each branch begins with a dash and further to the right; a line below a dash, in
 * the same column, is called by the line above it. So a deep stack is a long list, not a wide one.
 */

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/report/view.h"

enum { DEEPEST_INDENT = 40, FIGURES = 19 };

/* --- views --- */

void view_merged(const struct export_job *job, struct calltree *tree)
{
	calltree_build(tree, job->profile, job->selection,
		       &(struct calltree_options){ .no_inline = job->options.no_inline });
}

int view_tree(const struct export_job *job, struct calltree *tree, struct callers *callers, struct err *err)
{
	const struct export_options *o = &job->options;
	enum callers_way way = o->view == EXPORT_VIEW_CALLERS ? CALLERS_OF :
			       o->view == EXPORT_VIEW_CALLEES ? CALLEES_OF : CALLERS_ALL;

	calltree_build(tree, job->profile, job->selection,
		       &(struct calltree_options){ .group = way == CALLEES_OF ? CALLTREE_MERGED : o->group,
						   .no_inline = o->no_inline,
						   .causes = export_shows_causes(job) &&
							     job->selection->options.event == SELECT_WALL });
	return callers_build(callers, tree, way, o->pattern, err);
}

bool view_shows(const struct export_job *job, const struct callers *c, uint32_t node)
{
	const struct calltree_node *n = &c->nodes.v[node];
	double all = c->nodes.v[0].total.value;

	if (job->options.depth && n->depth > job->options.depth)
		return false;
	return !node || n->total.value * 100.0 >= all * job->options.percent_limit;
}

/* --- lines --- */

struct tree {
	struct table table;
	const struct callers *c;
	bool self;
	VEC(unsigned) indents; /* by depth */
};

/* Returns whether the node has a sibling that is shown. The first one is the heaviest. */
static bool branches(const struct tree *t, uint32_t node)
{
	const struct calltree_node *n = &t->c->nodes.v[node];
	uint32_t second;

	if (!node)
		return false;
	second = t->c->nodes.v[t->c->nodes.v[n->parent].first_child].next_sibling;
	return second != CALLTREE_NONE && view_shows(t->table.job, t->c, second);
}

static void put_function(struct tree *t, uint32_t node)
{
	const struct calltree_node *n = &t->c->nodes.v[node];
	const struct ident *id = callers_ident(t->c, node);
	unsigned indent = n->depth ? t->indents.v[n->depth - 1] : 0, used = FIGURES + (t->self ? 9 : 0);
	bool branch = branches(t, node);
	char share[32];

	indent = MIN(indent + (branch ? 2 : 0), DEEPEST_INDENT);
	t->indents.n = n->depth;
	vec_push(&t->indents, indent);
	table_amount(&t->table, n->total.value);
	if (t->self)
		buf_printf(t->table.out, "%7s  ", str_share(share, str_percent(n->self.value, t->table.all)));
	buf_printf(t->table.out, "%*s%s", (int)indent - (branch ? 2 : 0), "", branch ? "- " : "");
	if ((!node && t->c->matched > 1) || id->kind == IDENT_GROUP)
		table_name(&t->table, id->kind == IDENT_GROUP ? id->name : t->table.job->options.pattern, used + indent);
	else
		table_function(&t->table, id->name, used + indent);
	buf_putc(t->table.out, '\n');
}

static void put_title(const struct tree *t)
{
	const struct export_job *job = t->table.job;
	const struct callers *c = t->c;
	_cleanup_(buf_done) struct buf title = { 0 }, clean = { 0 };
	uint64_t all = job->selection->all.value;
	char a[32], b[32], share[32], self[32];

	if (job->options.view == EXPORT_VIEW_TREE) {
		table_heading(&t->table, "Call tree", 1, 1);
		return;
	}
	buf_printf(&title, "%s `%s`", job->options.view == EXPORT_VIEW_CALLERS ? "Callers of" : "Called by",
		   c->matched > 1 ? job->options.pattern : callers_ident(c, 0)->name);
	cleantext_put(&clean, title.data);
	table_heading(&t->table, clean.data, 1, 1);
	buf_printf(t->table.out, "  which is %s of %s, and %s (%s) itself",
		   str_share(share, str_percent(t->table.all, all)), export_value(a, job, all),
		   str_share(self, str_percent(c->self.value, all)), export_value(b, job, c->self.value));
	if (c->matched > 1)
		buf_printf(t->table.out, "; %u functions match", c->matched);
	buf_putc(t->table.out, '\n');
}

static void put_left_out(const struct export_job *job, size_t n, struct buf *out)
{
	char count[32];
	double limit = job->options.percent_limit;
	bool deep = job->options.depth;

	buf_printf(out, "%s %s ", str_count(count, n), n == 1 ? "branch" : "branches");
	if (limit > 0)
		buf_printf(out, "below %g %%", limit);
	buf_printf(out, "%s%s left out (%s%s%s shows all)\n", limit > 0 && deep ? " or " : "",
		   deep ? "too deep" : "", limit > 0 ? "--percent-limit 0" : "",
		   limit > 0 && deep ? " --depth 0" : "", limit > 0 || !deep ? "" : "--depth 0");
}

int texttree_put(const struct export_job *job, struct buf *out, struct err *err)
{
	struct tree t = { .table = { .job = job, .out = out },
			  .self = job->options.view != EXPORT_VIEW_CALLERS };
	struct calltree tree;
	struct callers callers;
	size_t left_out = 0;
	int r = view_tree(job, &tree, &callers, err);

	if (!r) {
		t.c = &callers;
		t.table.all = callers.nodes.v[0].total.value;
		put_title(&t);
		buf_printf(out, "%17s  %s%s\n", "total", t.self ? "   self  " : "",
			   job->options.view == EXPORT_VIEW_CALLERS ? "called by" : "function");
	}
	for (uint32_t i = 0; !r && i != CALLTREE_NONE;) {
		bool shown = view_shows(job, &callers, i);

		if (shown)
			put_function(&t, i);
		else
			left_out++;
		i = shown ? callers_next(&callers, i) : callers_skip(&callers, i);
	}
	if (left_out)
		put_left_out(job, left_out, out);
	callers_done(&callers);
	calltree_done(&tree);
	vec_done(&t.indents);
	cleantext_set_done(&t.table.functions);
	return r;
}
