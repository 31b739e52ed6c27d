/*
 * blockcompare.c - slow blocks against typical ones: which part of their time is the difference.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks.h"
#include "base/buf.h"
#include "base/str.h"
#include "profile/profile.h"

enum {
	ENOUGH = 4,           /* blocks, below which none is typical */
	SLOW_PERCENT = 150,   /* of the median */
	SLOWEST_PERCENT = 20, /* of the blocks, at most, are slow */
};

/* The typical block: the mean over the middle half. */
struct typical {
	double wall_ns, gas, ns[BLOCK_PARTS];
	bool gas_known;
};

static int compare_wall(const void *a, const void *b)
{
	const struct block_row *x = *(const struct block_row *const *)a, *y = *(const struct block_row *const *)b;

	if (x->wall_ns != y->wall_ns)
		return x->wall_ns < y->wall_ns ? -1 : 1;
	return (x->mark > y->mark) - (x->mark < y->mark);
}

static void add_row(struct typical *t, const struct block_row *r, double n)
{
	t->wall_ns += r->wall_ns / n;
	t->gas += r->gas / n;
	t->gas_known &= (r->known & MARK_GAS) != 0;
	for (int i = 0; i < BLOCK_PARTS; i++)
		t->ns[i] += r->ns[i] / n;
}

static enum block_part largest_difference(const struct typical *a, const struct typical *b)
{
	enum block_part most = BLOCK_OWN;

	for (int i = 0; i < BLOCK_PARTS; i++)
		if (b->ns[i] - a->ns[i] > b->ns[most] - a->ns[most])
			most = i;
	return most;
}

/* Where a thread was preempted, or had nothing to do, explains nothing. */
static const char *heaviest(const struct block_row *r, enum block_part part)
{
	if (part == BLOCK_QUEUE || part == BLOCK_IDLE || part == BLOCK_UNKNOWN)
		return NULL;
	for (size_t i = 0; i < r->functions.n; i++)
		if (r->functions.v[i].part == part)
			return r->functions.v[i].name;
	return NULL;
}

/* "4.1 x as long in locks as typical ones (12 ms, not 3 ms)". */
static void put_difference(struct buf *out, const struct typical *a, const struct typical *b, enum block_part part)
{
	char more[32], less[32];

	str_duration(more, b->ns[part]);
	str_duration(less, a->ns[part]);
	if (a->ns[part] >= b->wall_ns / 1000 && a->ns[part] > 0)
		buf_printf(out, "%.1f times as long in %s (%s, not %s)", b->ns[part] / a->ns[part],
			   block_part_name(part), more, less);
	else
		buf_printf(out, "%s in %s, where typical ones spend %s", more, block_part_name(part),
			   a->ns[part] >= 1000 ? less : "nothing");
}

/* More gas takes longer: that is an answer, too. */
static bool gas_explains(const struct typical *a, const struct typical *b)
{
	return a->gas_known && b->gas_known && a->gas > 0 && a->wall_ns > 0 &&
	       b->gas / a->gas >= 0.8 * b->wall_ns / a->wall_ns;
}

static char *reason_of(const struct block_row *r, const struct typical *a)
{
	struct typical b = { .gas_known = true };
	struct buf out = { 0 };
	enum block_part part;
	const char *function;

	add_row(&b, r, 1);
	if (gas_explains(a, &b)) {
		buf_printf(&out, "%.1f times the gas of a typical one", b.gas / a->gas);
		return out.data;
	}
	part = largest_difference(a, &b);
	put_difference(&out, a, &b, part);
	function = heaviest(r, part);
	if (function)
		buf_printf(&out, ", most under %s", function);
	return out.data;
}

/* Under which function the slow ones together have most of a part. */
static const char *heaviest_of_all(struct block_row **slow, size_t n, enum block_part part)
{
	const char *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = heaviest(slow[i], part);
		uint64_t sum = 0;

		for (size_t k = 0; name && k < n; k++)
			for (size_t f = 0; f < slow[k]->functions.n; f++) {
				const struct block_item *item = &slow[k]->functions.v[f];

				sum += item->part == part && item->name == name ? item->ns : 0;
			}
		if (sum > most) {
			most = sum;
			best = name;
		}
	}
	return best;
}

static char *say_difference(struct block_row **slow, size_t n, const struct typical *a, size_t of)
{
	struct typical b = { .gas_known = true };
	struct buf out = { 0 };
	enum block_part part;
	const char *function;

	for (size_t i = 0; i < n; i++)
		add_row(&b, slow[i], n);
	buf_printf(&out, "The %zu slow of %zu blocks ", n, of);
	if (gas_explains(a, &b)) {
		buf_printf(&out, "have %.1f times the gas of typical ones, and take %.1f times as long.",
			   b.gas / a->gas, b.wall_ns / a->wall_ns);
		return out.data;
	}
	part = largest_difference(a, &b);
	buf_puts(&out, "spend ");
	put_difference(&out, a, &b, part);
	function = heaviest_of_all(slow, n, part);
	if (function)
		buf_printf(&out, ", most under %s", function);
	buf_putc(&out, '.');
	return out.data;
}

void blocks_compare(struct blocks *b)
{
	struct block_row **order = mem_alloc((b->rows.n + 1) * sizeof(*order));
	struct typical typical = { .gas_known = true };
	size_t n = 0, from, to, first;

	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i].split)
			order[n++] = &b->rows.v[i];
	if (n > 1)
		qsort(order, n, sizeof(*order), compare_wall);
	b->median_ns = n ? (order[(n - 1) / 2]->wall_ns + order[n / 2]->wall_ns) / 2 : 0;
	if (n < ENOUGH) {
		free(order);
		return;
	}
	from = n / 4;
	to = n - n / 4;
	b->typical = to - from;
	for (size_t i = from; i < to; i++)
		add_row(&typical, order[i], to - from);
	first = n - MAX(n * SLOWEST_PERCENT / 100, (size_t)1);
	while (first < n && order[first]->wall_ns * 100 < b->median_ns * SLOW_PERCENT)
		first++;
	b->slow = n - first;
	for (size_t i = first; i < n; i++) {
		order[i]->slow = true;
		order[i]->reason = reason_of(order[i], &typical);
	}
	if (b->slow)
		b->difference = say_difference(order + first, b->slow, &typical, n);
	free(order);
}
