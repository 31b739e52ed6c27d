/*
 * massif.c - a heap over time as valgrind's massif writes it, for ms_print and massif-visualizer.
 *
 * Snapshots at intervals and at the peak, some of them with the tree of live memory, from the
 * allocating function up to its callers. There are no addresses: a function is one node for all its
 * call sites.
 */

#include "analyze/tree/calltree.h"
#include "analyze/memory/heapseries.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { SNAPSHOTS = 100, DETAILED_EVERY = 10, FEW = 20, DEPTH = 30, THRESHOLD_PERCENT = 1 };

struct tree {
	const struct calltree *calls;
	struct buf *out;
	uint64_t threshold;
	unsigned depth;
};

static int compare_children(const void *a, const void *b)
{
	const struct calltree_node *x = *(const struct calltree_node *const *)a,
				   *y = *(const struct calltree_node *const *)b;

	return ORDER(y->total.value, x->total.value) ?: ORDER(x, y);
}

static void put_name(struct tree *t, const struct calltree_node *n)
{
	const struct ident *ident = &t->calls->idents.list.v[n->ident];

	if (!n->depth) {
		buf_puts(t->out, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
		return;
	}
	buf_puts(t->out, "0x0: ");
	cleantext_put(t->out, *ident->name ? ident->name : "???");
	if (*ident->module) {
		buf_puts(t->out, " (in ");
		cleantext_put(t->out, ident->module);
		buf_putc(t->out, ')');
	}
}

static void put_node(struct tree *t, const struct calltree_node *n)
{
	VEC(const struct calltree_node *) children = { 0 };
	size_t small = 0, lines;
	uint64_t small_bytes = 0;

	for (uint32_t i = n->first_child; i != CALLTREE_NONE && n->depth < t->depth;
	     i = t->calls->nodes.v[i].next_sibling) {
		const struct calltree_node *c = &t->calls->nodes.v[i];

		if (!c->total.value)
			continue;
		if (c->total.value >= t->threshold) {
			vec_push(&children, c);
			continue;
		}
		small++;
		small_bytes += c->total.value;
	}
	vec_sort(&children, compare_children);
	lines = children.n + !!small;
	buf_printf(t->out, "%*sn%zu: %llu ", (int)n->depth, "", lines, (unsigned long long)n->total.value);
	put_name(t, n);
	buf_putc(t->out, '\n');
	for (size_t i = 0; i < children.n; i++)
		put_node(t, children.v[i]);
	if (small)
		buf_printf(t->out, "%*sn0: %llu in %zu place%s, %sbelow massif's threshold (%d.00%%)\n",
			   (int)n->depth + 1, "", (unsigned long long)small_bytes, small,
			   small == 1 ? "" : "s", children.n ? "" : "all ", THRESHOLD_PERCENT);
	vec_done(&children);
}

static void put_tree(const struct export_job *job, const struct selection *s, struct buf *out)
{
	struct calltree calls;
	struct tree t = { &calls, out, MAX(s->all.value / 100 * THRESHOLD_PERCENT, 1),
			  job->options.depth ? MIN(job->options.depth, (unsigned)DEPTH) : DEPTH };

	calltree_build(&calls, job->profile, s,
		       &(struct calltree_options){ .group = CALLTREE_MERGED,
						   .reverse = true,
						   .no_inline = job->options.no_inline });
	put_node(&t, &calls.nodes.v[0]);
	calltree_done(&calls);
}

static void put_head(const struct export_job *job, struct buf *out)
{
	const struct profile *p = job->profile;
	const char *command = p->processes.n ? profile_str(p, p->processes.v[0].command) : "";

	if (!*command && p->processes.n)
		command = profile_str(p, p->processes.v[0].exe);
	buf_printf(out, "desc: gasflame, %s\ncmd: ",
		   profile_counter(p, KEY_HEAP_INTERVAL_BYTES) == 1 ? "each allocation" : "estimated from samples");
	cleantext_put(out, *command ? command : profile_str(p, p->target));
	buf_puts(out, "\ntime_unit: ms\n");
}

int massif_write(const struct export_job *job, struct buf *out, struct err *err)
{
	uint64_t moments[SNAPSHOTS];
	struct heapseries h;
	size_t n;
	int r = heapseries_make(&h, job->profile, &job->selection->options, err);

	if (r) {
		heapseries_done(&h);
		return r;
	}
	put_head(job, out);
	n = heapseries_moments(&h, moments, SNAPSHOTS);
	for (size_t i = 0; i < n; i++) {
		bool peak = h.peak_bytes && moments[i] == h.peak_ns;
		bool detailed = n <= FEW || i % DETAILED_EVERY == DETAILED_EVERY - 1 || i + 1 == n;
		struct selection s;

		heapseries_at(&h, moments[i], &s);
		buf_printf(out,
			   "#-----------\n"
			   "snapshot=%zu\n"
			   "#-----------\n"
			   "time=%llu\n"
			   "mem_heap_B=%llu\n"
			   "mem_heap_extra_B=0\n"
			   "mem_stacks_B=0\n"
			   "heap_tree=%s\n",
			   i, (unsigned long long)moments[i] / 1000000, (unsigned long long)s.all.value,
			   peak       ? "peak"
			   : detailed ? "detailed"
				      : "empty");
		if (peak || detailed)
			put_tree(job, &s, out);
		selection_done(&s);
	}
	heapseries_done(&h);
	return 0;
}
