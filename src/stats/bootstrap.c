#include "stats/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "base/mem.h"

/* --- one side, so that a draw costs a walk and no sorting --- */

struct ranked {
	double value;
	uint32_t cluster;
};

struct pool {
	struct ranked *sorted;
	size_t n;
	uint32_t clusters;
	double *sums;      /* of each cluster */
	uint32_t *sizes;
	uint32_t *weights; /* how often each is in this draw */
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return ORDER(x->value, y->value);
}

static void pool_init(struct pool *p, const struct bootstrap_side *s)
{
	p->n = s->n;
	p->clusters = s->cluster ? s->clusters : s->n;
	p->sorted = mem_alloc((s->n + 1) * sizeof(*p->sorted));
	p->sums = mem_alloc((p->clusters + 1) * sizeof(*p->sums));
	p->sizes = mem_alloc((p->clusters + 1) * sizeof(*p->sizes));
	p->weights = mem_alloc((p->clusters + 1) * sizeof(*p->weights));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t c = s->cluster ? s->cluster[i] : i;

		p->sorted[i] = (struct ranked){ s->values[i], c };
		p->sums[c] += s->values[i];
		p->sizes[c]++;
	}
	if (s->n > 1)
		qsort(p->sorted, s->n, sizeof(*p->sorted), compare_ranked);
	for (uint32_t c = 0; c < p->clusters; c++)
		p->weights[c] = 1;
}

static void pool_done(struct pool *p)
{
	free(p->sorted);
	free(p->sums);
	free(p->sizes);
	free(p->weights);
}

/* A number below n, from the upper half of a well mixed counter. */
static uint32_t draw_below(uint64_t *state, uint32_t n)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	x ^= x >> 31;
	return (uint32_t)(((x >> 32) * n) >> 32);
}

static void pool_draw(struct pool *p, uint64_t *state)
{
	memset(p->weights, 0, p->clusters * sizeof(*p->weights));
	for (uint32_t i = 0; i < p->clusters; i++)
		p->weights[draw_below(state, p->clusters)]++;
}

/* The values as often as their cluster was drawn. */
static double pool_figure(const struct pool *p, double figure)
{
	uint64_t total = 0, below, seen = 0;
	double sum = 0, at, value = NAN;
	size_t i;

	for (uint32_t c = 0; c < p->clusters; c++) {
		total += (uint64_t)p->weights[c] * p->sizes[c];
		sum += p->weights[c] * p->sums[c];
	}
	if (!total)
		return NAN;
	if (figure < 0)
		return sum / (double)total;
	at = (double)(total - 1) * figure;
	below = (uint64_t)at;
	for (i = 0; i < p->n && seen <= below; i++) {
		seen += p->weights[p->sorted[i].cluster];
		value = p->sorted[i].value;
	}
	if (seen > below + 1 || at <= (double)below)
		return value; /* the next one is the same, or is not asked for */
	while (i < p->n && !p->weights[p->sorted[i].cluster])
		i++;
	return i < p->n ? value + (at - (double)below) * (p->sorted[i].value - value) : value;
}

double bootstrap_figure(const struct bootstrap_side *s, double figure)
{
	struct pool p;
	double value;

	pool_init(&p, s);
	value = pool_figure(&p, figure);
	pool_done(&p);
	return value;
}

/* --- intervals --- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return ORDER(x, y);
}

/* The share of draws outside of one end of the interval. */
static double tail(double confidence, uint32_t clusters, uint32_t df)
{
	double t = stats_t_bound(1 - confidence, df);

	return stats_normal_cdf(-sqrt(clusters / (clusters - 1.0)) * t);
}

/* draws is a table of figures by draws; sorted here. */
static void cut_tails(double *draws, unsigned n, double out, struct bootstrap_interval *ret)
{
	for (unsigned i = 0; i < n; i++)
		if (!isfinite(draws[i]))
			return;
	qsort(draws, n, sizeof(*draws), compare_doubles);
	ret->low = stats_quantile(draws, n, out);
	ret->high = stats_quantile(draws, n, 1 - out);
}

static double change(const struct pool *a, const struct pool *b, double figure)
{
	double before = a ? pool_figure(a, figure) : 1, after = pool_figure(b, figure);

	if (!a)
		return after;
	return before != 0 ? after / before - 1 : NAN;
}

/* a NULL: the level of b. */
static void intervals(struct pool *a, struct pool *b, const double *figures, size_t count,
		      const struct bootstrap_options *o, struct bootstrap_interval *ret)
{
	unsigned draws = o->draws ? o->draws : BOOTSTRAP_DRAWS;
	double confidence = o->confidence > 0 ? o->confidence : 0.95;
	uint32_t fewest = a && a->clusters < b->clusters ? a->clusters : b->clusters;
	uint32_t df = a && !o->paired ? a->clusters + b->clusters - 2 : fewest - 1;
	_cleanup_free_ double *table = NULL;
	uint64_t state = o->seed;

	for (size_t f = 0; f < count; f++)
		ret[f] = (struct bootstrap_interval){ change(a, b, figures[f]), NAN, NAN };
	if (fewest < BOOTSTRAP_CLUSTERS_MIN)
		return;
	table = mem_resize(NULL, count * draws, sizeof(*table));
	for (unsigned d = 0; d < draws; d++) {
		if (a)
			pool_draw(a, &state);
		if (a && o->paired)
			memcpy(b->weights, a->weights, b->clusters * sizeof(*b->weights));
		else
			pool_draw(b, &state);
		for (size_t f = 0; f < count; f++)
			table[f * draws + d] = change(a, b, figures[f]);
	}
	for (size_t f = 0; f < count; f++)
		cut_tails(table + f * draws, draws, tail(confidence, fewest, df), &ret[f]);
}

void bootstrap_level(const struct bootstrap_side *s, const double *figures, size_t count,
		     const struct bootstrap_options *o, struct bootstrap_interval *ret)
{
	struct pool p;

	pool_init(&p, s);
	intervals(NULL, &p, figures, count, o, ret);
	pool_done(&p);
}

void bootstrap_change(const struct bootstrap_side *a, const struct bootstrap_side *b, const double *figures,
		      size_t count, const struct bootstrap_options *o, struct bootstrap_interval *ret)
{
	struct pool before, after;

	pool_init(&before, a);
	pool_init(&after, b);
	intervals(&before, &after, figures, count, o, ret);
	pool_done(&before);
	pool_done(&after);
}
