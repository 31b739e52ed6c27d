#include "bench/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/runs.h"
#include "base/err.h"

enum { P90_VALUES_MIN = 10, P99_VALUES_MIN = 125 };

const char *const compare_figure_names[COMPARE_FIGURES] = { "mean", "p50", "p90", "p99" };
static const double figures[COMPARE_FIGURES] = { BOOTSTRAP_MEAN, 0.5, 0.9, 0.99 };
static const double floors[COMPARE_FIGURES] = { 0.012, 0.012, 0.0135, 0.05 };

double compare_floor(const struct comparison *c, enum compare_figure f)
{
	return c->floor >= 0 ? c->floor : floors[f];
}

void comparison_done(struct comparison *c)
{
	vec_done(&c->rows);
}

/* --- values of one side, and the cluster of each --- */

struct values {
	VEC(double) x;
	VEC(uint32_t) cluster;
	VEC(uint64_t) key; /* the key of a pair: the run, or the block */
	uint32_t clusters;
};

static void values_done(struct values *v)
{
	vec_done(&v->x);
	vec_done(&v->cluster);
	vec_done(&v->key);
}

static void collect(const struct compare_side *s, const char *metric, enum compare_design design,
		    struct values *v)
{
	for (size_t f = 0; f < s->count; f++) {
		const struct runs *r = s->files[f];
		uint32_t m = runs_find_metric(r, metric);

		for (size_t i = 0; i < r->rows.n && m != UINT32_MAX; i++) {
			const struct runs_row *row = &r->rows.v[i];

			if (row->command != s->command || !isfinite(runs_value(r, i, m)))
				continue;
			vec_push(&v->x, runs_value(r, i, m));
			vec_push(&v->key, design == COMPARE_PAIRS ? f : row->block ? row->block : row->round);
		}
	}
}

static int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t sort_keys(const struct values *v, uint64_t *ret)
{
	size_t n = 0;

	if (!v->key.n)
		return 0;
	memcpy(ret, v->key.v, v->key.n * sizeof(*ret));
	if (v->key.n > 1)
		qsort(ret, v->key.n, sizeof(*ret), compare_keys);
	for (size_t i = 0; i < v->key.n; i++)
		if (!n || ret[n - 1] != ret[i])
			ret[n++] = ret[i];
	return n;
}

static void number_clusters(struct values *v, const uint64_t *keys, size_t count)
{
	size_t kept = 0;

	v->clusters = count;
	for (size_t i = 0; i < v->x.n; i++) {
		const uint64_t *found = bsearch(&v->key.v[i], keys, count, sizeof(*keys), compare_keys);

		if (!found)
			continue; /* the other side has no such run */
		v->x.v[kept] = v->x.v[i];
		v->key.v[kept++] = v->key.v[i];
		vec_push(&v->cluster, (uint32_t)(found - keys));
	}
	v->x.n = v->key.n = kept;
}

/* Keeps the clusters that both sides have, if they are paired; else each side keeps its own. */
static void cluster_sides(struct values v[2], bool paired)
{
	_cleanup_free_ uint64_t *first = mem_alloc((v[0].key.n + 1) * sizeof(*first));
	_cleanup_free_ uint64_t *second = mem_alloc((v[1].key.n + 1) * sizeof(*second));
	size_t n = sort_keys(&v[0], first), m = sort_keys(&v[1], second), both = 0;

	if (!paired) {
		number_clusters(&v[0], first, n);
		number_clusters(&v[1], second, m);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (m && bsearch(&first[i], second, m, sizeof(*second), compare_keys))
			first[both++] = first[i];
	number_clusters(&v[0], first, both);
	number_clusters(&v[1], first, both);
}

/* --- words --- */

static enum compare_word judge(const struct bootstrap_interval *i, double floor, bool more_is_better)
{
	if (isnan(i->low))
		return COMPARE_UNKNOWN;
	if (i->low > floor)
		return more_is_better ? COMPARE_BETTER : COMPARE_WORSE;
	if (i->high < -floor)
		return more_is_better ? COMPARE_WORSE : COMPARE_BETTER;
	return COMPARE_SAME;
}

static enum compare_word join_words(const enum compare_word *words)
{
	bool better = false, worse = false, any = false;

	for (size_t f = 0; f < COMPARE_FIGURES; f++) {
		any |= words[f] != COMPARE_UNKNOWN;
		better |= words[f] == COMPARE_BETTER;
		worse |= words[f] == COMPARE_WORSE;
	}
	if (!any)
		return COMPARE_UNKNOWN;
	return better && worse ? COMPARE_MIXED
	       : better	       ? COMPARE_BETTER
	       : worse	       ? COMPARE_WORSE
			       : COMPARE_SAME;
}

static size_t figures_for(size_t fewest)
{
	return fewest >= P99_VALUES_MIN	  ? COMPARE_FIGURES
	       : fewest >= P90_VALUES_MIN ? COMPARE_P90 + 1
					  : COMPARE_P50 + 1;
}

static bool is_paired(enum compare_design d)
{
	return d != COMPARE_INDEPENDENT && d != COMPARE_OTHER_BLOCKS;
}

static void compare_row(struct comparison *c, const struct runs_metric *m, struct values v[2], uint64_t seed,
			double doubt)
{
	struct compare_row row = { .name = m->name, .unit = m->unit, .part = m->part,
				   .n = { v[0].x.n, v[1].x.n } };
	struct bootstrap_side sides[2];
	const struct bootstrap_options o = { .confidence = 1 - doubt, .seed = seed,
					     .paired = is_paired(c->design) };
	size_t count = figures_for(MIN(v[0].x.n, v[1].x.n));

	for (size_t i = 0; i < 2; i++) {
		sides[i] = (struct bootstrap_side){ v[i].x.v, v[i].cluster.v, v[i].x.n, v[i].clusters };
		for (size_t f = 0; f < COMPARE_FIGURES; f++)
			row.level[i][f] = f < count ? bootstrap_figure(&sides[i], figures[f]) : NAN;
	}
	for (size_t f = 0; f < COMPARE_FIGURES; f++)
		row.change[f] = (struct bootstrap_interval){ NAN, NAN, NAN };
	bootstrap_change(&sides[0], &sides[1], figures, count, &o, row.change);
	for (size_t f = 0; f < COMPARE_FIGURES; f++)
		row.word[f] = judge(&row.change[f], compare_floor(c, f), runs_more_is_better(m->unit));
	row.verdict = join_words(row.word);
	vec_push(&c->rows, row);
}

/* --- the whole --- */

static bool has_blocks(const struct compare_side *s)
{
	return s->files[0]->rows.n && s->files[0]->rows.v[0].block;
}

/* Blocks come in order, or nearly so: a walk would do, but nothing says that they must. */
static bool have_block_in_common(const struct compare_side *a, const struct compare_side *b)
{
	const struct runs *x = a->files[0], *y = b->files[0];
	_cleanup_free_ uint64_t *blocks = mem_resize(NULL, y->rows.n + 1, sizeof(*blocks));

	for (size_t i = 0; i < y->rows.n; i++)
		blocks[i] = y->rows.v[i].block;
	if (y->rows.n > 1)
		qsort(blocks, y->rows.n, sizeof(*blocks), compare_keys);
	for (size_t i = 0; i < x->rows.n; i++)
		if (bsearch(&x->rows.v[i].block, blocks, y->rows.n, sizeof(*blocks), compare_keys))
			return true;
	return false;
}

static enum compare_design find_design(const struct compare_side *a, const struct compare_side *b)
{
	if (a->count > 1)
		return COMPARE_PAIRS;
	if (has_blocks(a) && has_blocks(b))
		return have_block_in_common(a, b) ? COMPARE_BLOCKS : COMPARE_OTHER_BLOCKS;
	return a->files[0] == b->files[0] && a->files[0]->interleaved ? COMPARE_ROUNDS : COMPARE_INDEPENDENT;
}

static double mean_of(const struct values *v)
{
	const struct bootstrap_side side = { .values = v->x.v, .n = v->x.n };

	return bootstrap_figure(&side, BOOTSTRAP_MEAN);
}

/* A part of the time that is less than this share of it on both sides explains nothing, however it changed. */
#define PART_MIN 0.005

static bool is_worth_a_row(const struct comparison *c, const struct runs_metric *m, const struct values v[2])
{
	const struct compare_row *first = &c->rows.v[0];

	if (!v[0].x.n || !v[1].x.n)
		return false;
	return !m->part || strcmp(m->unit, first->unit) ||
	       mean_of(&v[0]) >= PART_MIN * first->level[0][COMPARE_MEAN] ||
	       mean_of(&v[1]) >= PART_MIN * first->level[1][COMPARE_MEAN];
}

static int choose_metric(const struct runs *r, const char *wanted, uint32_t *ret, struct err *err)
{
	*ret = wanted ? runs_find_metric(r, wanted) : runs_main_metric(r);
	if (*ret == UINT32_MAX)
		return err_set(err, EINVAL, "there is no figure '%s'; the first of those there are is '%s'",
			       wanted ? wanted : "wall", r->metrics.n ? r->metrics.v[0].name : "");
	return 0;
}

int compare_make(const struct compare_side *a, const struct compare_side *b, const struct compare_options *o,
		 struct comparison *ret, struct err *err)
{
	const struct runs *r = a->files[0];
	double doubt = 1 - (o->confidence > 0 ? o->confidence : 0.95);
	size_t metrics = r->metrics.n;
	uint32_t chosen;
	int e = choose_metric(r, o->metric, &chosen, err);

	*ret = (struct comparison){ .design = find_design(a, b), .confidence = 1 - doubt, .floor = o->floor };
	/* The judged metric comes first, then the others in their order. */
	for (size_t i = 0; i < metrics && !e; i++) {
		size_t m = !i ? chosen : i <= chosen ? i - 1 : i;
		struct values v[2] = { 0 };

		collect(a, r->metrics.v[m].name, ret->design, &v[0]);
		collect(b, r->metrics.v[m].name, ret->design, &v[1]);
		cluster_sides(v, is_paired(ret->design));
		if (!i) {
			ret->clusters[0] = v[0].clusters;
			ret->clusters[1] = v[1].clusters;
			if (!v[0].x.n || !v[1].x.n)
				e = err_set(err, EINVAL, "both sides have no '%s' of the same %s",
					    r->metrics.v[m].name,
					    ret->design == COMPARE_BLOCKS ? "blocks" : "runs");
		}
		if (!e && (!i || is_worth_a_row(ret, &r->metrics.v[m], v)))
			compare_row(ret, &r->metrics.v[m], v, o->seed,
				    i ? doubt / (double)(metrics - 1) : doubt);
		values_done(&v[0]);
		values_done(&v[1]);
	}
	if (e)
		comparison_done(ret);
	return e;
}

static double change_of_mean(const struct compare_row *row)
{
	return row->level[1][COMPARE_MEAN] - row->level[0][COMPARE_MEAN];
}

const struct compare_row *compare_explain(const struct comparison *c)
{
	const struct compare_row *first = &c->rows.v[0], *most = NULL;
	double way = change_of_mean(first) < 0 ? -1 : 1;

	if (first->part || (first->verdict != COMPARE_BETTER && first->verdict != COMPARE_WORSE))
		return NULL;
	for (size_t i = 1; i < c->rows.n; i++) {
		const struct compare_row *row = &c->rows.v[i];

		if (!row->part || row->word[COMPARE_MEAN] != first->verdict || strcmp(row->unit, first->unit))
			continue;
		if (!most || way * change_of_mean(row) > way * change_of_mean(most))
			most = row;
	}
	return most && way * change_of_mean(most) > 0 ? most : NULL;
}
