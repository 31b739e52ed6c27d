/*
 * blockcompare.c - slow blocks against typical ones: which part of their time is the difference.
 */
#include <stdlib.h>

#include "analyze/blocks/blocks.h"
#include "base/buf.h"
#include "base/text/str.h"

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

	return ORDER(x->wall_ns, y->wall_ns) ?: ORDER(x->mark, y->mark);
}

static void add_row(struct typical *t, const struct block_row *r, double n)
{
	t->wall_ns += r->wall_ns / n;
	t->gas += r->block.gas / n;
	t->gas_known &= (r->block.known & BLOCK_GAS) != 0;
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
static const struct block_item *heaviest(const struct block_row *r, enum block_part part)
{
	if (part == BLOCK_QUEUE || part == BLOCK_IDLE || part == BLOCK_UNKNOWN)
		return NULL;
	for (size_t i = 0; i < r->functions.n; i++)
		if (r->functions.v[i].part == part)
			return &r->functions.v[i];
	return NULL;
}

/* ", most in mdbx_page_get under `state_root`". */
static void put_function(struct buf *out, const struct block_item *item)
{
	if (!item)
		return;
	if (item->under)
		buf_printf(out, ", most in %s under `%s`", item->name, item->under);
	else
		buf_printf(out, ", most under `%s`", item->name);
}

/* "4.1 times as long in page faults of mdbx.dat (12 ms, not 3 ms), most in mdbx_page_get under `state_root`". */
static void put_difference(struct buf *out, const struct typical *a, const struct typical *b, enum block_part part,
			   const struct block_item *item)
{
	const char *of = item && item->file ? " of " : "", *file = item && item->file ? str_base_name(item->file) : "";
	char more[32], less[32];

	str_duration(more, b->ns[part]);
	str_duration(less, a->ns[part]);
	if (a->ns[part] >= b->wall_ns / 1000 && a->ns[part] > 0)
		buf_printf(out, "%.1f times as long in %s%s%s (%s, not %s)", b->ns[part] / a->ns[part],
			   block_part_name(part), of, file, more, less);
	else
		buf_printf(out, "%s in %s%s%s, where typical ones spend %s", more, block_part_name(part), of, file,
			   a->ns[part] >= 1000 ? less : "nothing");
	put_function(out, item);
}

/* More gas takes longer: that is an answer, too. */
static bool gas_explains(const struct typical *a, const struct typical *b)
{
	return a->gas_known && b->gas_known && a->gas > 0 && a->wall_ns > 0 &&
	       b->gas / a->gas >= 0.8 * b->wall_ns / a->wall_ns;
}

static char *reason_of(struct block_row *r, const struct typical *a)
{
	struct typical b = { .gas_known = true };
	struct buf out = { 0 };
	enum block_part part;

	add_row(&b, r, 1);
	r->by_gas = gas_explains(a, &b);
	if (r->by_gas) {
		buf_printf(&out, "%.1f times the gas of a typical one", b.gas / a->gas);
		return out.data;
	}
	part = largest_difference(a, &b);
	put_difference(&out, a, &b, part, heaviest(r, part));
	return out.data;
}

static bool same_function(const struct block_item *a, const struct block_item *b)
{
	return a->part == b->part && a->name == b->name && a->under == b->under;
}

/* Under which function the slow ones together have most of a part; the file is that of the block with most of it. */
static struct block_item *heaviest_of_all(struct block_row **slow, size_t n, enum block_part part,
					  struct block_item *ret)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		const struct block_item *item = heaviest(slow[i], part), *largest = item;
		uint64_t sum = 0;

		for (size_t k = 0; item && k < n; k++)
			for (size_t f = 0; f < slow[k]->functions.n; f++) {
				const struct block_item *other = &slow[k]->functions.v[f];

				if (!same_function(other, item))
					continue;
				sum += other->ns;
				if (other->file && (!largest->file || other->ns > largest->ns))
					largest = other;
			}
		if (sum > most) {
			most = sum;
			*ret = *largest;
		}
	}
	return most ? ret : NULL;
}

static char *say_difference(struct block_row **slow, size_t n, const struct typical *a, size_t of)
{
	struct typical b = { .gas_known = true };
	struct buf out = { 0 };
	struct block_item item;
	enum block_part part;

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
	put_difference(&out, a, &b, part, heaviest_of_all(slow, n, part, &item));
	buf_putc(&out, '.');
	return out.data;
}

void blocks_compare(struct blocks *b)
{
	struct block_row **order = mem_alloc((b->rows.n + 1) * sizeof(*order));
	struct typical typical = { .gas_known = true };
	size_t n = 0, from, to, first, full = 0;

	/* A group of blocks is no slow block. */
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i].split && block_group_count(b->rows.v[i].name) == 1)
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
	for (size_t i = from; i < to; i++)
		full += !order[i]->summed;
	/* Slow blocks are in full, and their waits are followed: compare them with others of these, where there are some. */
	b->typical = full >= ENOUGH ? full : to - from;
	for (size_t i = from; i < to; i++) {
		order[i]->typical = full < ENOUGH || !order[i]->summed;
		if (order[i]->typical)
			add_row(&typical, order[i], b->typical);
	}
	b->typical_ns = typical.wall_ns;
	b->typical_gas = typical.gas_known ? typical.gas : 0;
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
