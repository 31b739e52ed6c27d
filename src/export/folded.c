/*
 * folded.c - a line a stack, "thread;outer;...;leaf 123", as flamegraph.pl reads it.
 *
 * Waits weigh microseconds. Kernel functions end in "_[k]", inlined ones in "_[i]" if that is asked for.
 * Lines are in the order of the tree: sorted frame by frame.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "export/export.h"
#include "export/report/cleantext.h"

/* A name that is one field: no separator, no line break. */
static char *field(const struct ident *ident)
{
	struct buf b = { 0 };

	cleantext_put(&b, *ident->name ? ident->name : "[no name]");
	for (size_t i = 0; i < b.n; i++)
		if (b.data[i] == ';')
			b.data[i] = ':';
	if (ident->kind == IDENT_KERNEL)
		buf_puts(&b, "_[k]");
	else if (ident->kind == IDENT_INLINED)
		buf_puts(&b, "_[i]");
	return b.data;
}

int folded_write(const struct export_job *job, struct buf *out, struct err *err)
{
	const struct export_options *o = &job->options;
	struct calltree tree;
	char **fields;
	_cleanup_(buf_done) struct buf path = { 0 };
	VEC(size_t) ends = { 0 }; /* of the path at each depth */
	bool samples = export_weighs_samples(job);
	uint64_t parts = export_unit_parts(job->selection->unit);
	bool micro = !samples && job->selection->waits; /* as offcputime has it */

	calltree_build(&tree, job->profile, job->selection,
		       &(struct calltree_options){ .group = o->group,
						   .reverse = o->reverse,
						   .no_inline = o->no_inline,
						   .split_inlined = o->mark_inlined,
						   .causes = export_shows_causes(job) &&
							     job->selection->options.event == SELECT_WALL,
						   .names_only = true });
	fields = mem_alloc((tree.idents.list.n + 1) * sizeof(*fields));
	for (size_t i = 0; i < tree.idents.list.n; i++)
		fields[i] = field(&tree.idents.list.v[i]);

	vec_push(&ends, 0);
	for (uint32_t i = calltree_next(&tree, 0); i != CALLTREE_NONE; i = calltree_next(&tree, i)) {
		const struct calltree_node *n = &tree.nodes.v[i];
		uint64_t self = samples ? n->self.samples : n->self.value;

		if (micro)
			self = (self + 500) / 1000;
		ends.n = n->depth;
		path.n = ends.v[n->depth - 1];
		if (n->depth > 1)
			buf_putc(&path, ';');
		buf_puts(&path, fields[n->ident]);
		vec_push(&ends, path.n);
		if (!self)
			continue;
		buf_add(out, path.data, path.n);
		buf_putc(out, ' ');
		export_decimal(out, self, samples ? 1 : parts);
		buf_putc(out, '\n');
	}
	for (size_t i = 0; i < tree.idents.list.n; i++)
		free(fields[i]);
	free(fields);
	vec_done(&ends);
	calltree_done(&tree);
	return 0;
}
