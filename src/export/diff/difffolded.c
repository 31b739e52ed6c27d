/*
 * difffolded.c - a line a stack with two counts, "outer;leaf 12 15", before and after.
 *
 * flamegraph.pl makes a differential graph of it, and `gasflame flamegraph` too. Lines are sorted bytewise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "export/diff/difftext.h"

struct counted {
	const char *stack;
	uint64_t count[2];
};

struct counted_list {
	VEC(struct counted) list; /* by id in the table */
	struct strtab stacks;
	uint64_t sum[2];
};

/* The lines of one side: the last space is before the count. */
static void add_lines(struct counted_list *c, const struct buf *folded, int side)
{
	const char *line = folded->data, *end = line + folded->n;

	while (line && line < end) {
		const char *stop = memchr(line, '\n', end - line), *space;
		uint32_t id;

		if (!stop)
			break;
		space = memrchr(line, ' ', stop - line);
		if (space) {
			uint64_t count = strtoull(space + 1, NULL, 10);

			id = strtab_add_n(&c->stacks, line, space - line);
			while (c->list.n <= id)
				vec_push(&c->list, (struct counted){ 0 });
			c->list.v[id].stack = strtab_get(&c->stacks, id);
			c->list.v[id].count[side] += count;
			c->sum[side] += count;
		}
		line = stop + 1;
	}
}

static int compare_stacks(const void *a, const void *b)
{
	return strcmp(((const struct counted *)a)->stack, ((const struct counted *)b)->stack);
}

int difffolded_write(const struct diff_job *job, struct buf *out, struct err *err)
{
	struct export_job sides[] = { *job->before, *job->after };
	struct counted_list c = { 0 };
	double scale = 1;
	bool alike = export_weighs_samples(&sides[0]) && export_weighs_samples(&sides[1]);

	strtab_init(&c.stacks);
	vec_push(&c.list, (struct counted){ .stack = "" });
	for (int i = 0; i < 2; i++) {
		struct buf folded = { 0 };

		if (sides[i].options.weigh == EXPORT_WEIGH_AUTO && !alike)
			sides[i].options.weigh = EXPORT_WEIGH_VALUE; /* the same on both sides */
		folded_write(&sides[i], &folded, NULL);
		add_lines(&c, &folded, i);
		buf_done(&folded);
	}
	if (job->diff->normalized && c.sum[0] && c.sum[1])
		scale = (double)c.sum[1] / c.sum[0];
	vec_sort(&c.list, compare_stacks);
	for (size_t i = 0; i < c.list.n; i++) {
		const struct counted *s = &c.list.v[i];

		if (*s->stack)
			buf_printf(out, "%s %llu %llu\n", s->stack,
				   (unsigned long long)llround(s->count[0] * scale),
				   (unsigned long long)s->count[1]);
	}
	vec_done(&c.list);
	strtab_done(&c.stacks);
	return 0;
}
