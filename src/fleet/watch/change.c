#include "fleet/watch/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/stats.h"

#define INTERVAL 0.05
#define NEGLIGIBLE 0.05        /* relative change that is none */
#define NEGLIGIBLE_SHARE 0.001 /* and of shares, as one of the whole */
enum { ANCHOR = 50, ANCHORS = 6, ROUNDS = 8 };

struct work {
	struct change_set *s;
	size_t targets;
	bool *both;           /* by target: it is on both sides */
	double *minus[2];     /* by unit: what is taken out of the wholes of shares */
	double *residual;     /* room for one side */
	double *sums[2][2];   /* by target: value and whole of a row, of each side; room */
	bool *changed;        /* by row */
};

struct rate {
	double value;
	struct stats_spread spread;
};

static double square_of(double x)
{
	return x * x;
}

/* --- one row of one side --- */

static double whole_at(const struct work *w, const struct change_row *r, int side, size_t unit)
{
	return r->whole[side][unit] - (r->share ? w->minus[side][unit] : 0);
}

static bool counts(const struct work *w, int side, size_t unit)
{
	return !w->s->paired || w->both[w->s->side[side].target[unit]];
}

static void sum_targets(struct work *w, const struct change_row *r)
{
	for (int side = 0; side < 2; side++) {
		memset(w->sums[side][0], 0, w->targets * sizeof(double));
		memset(w->sums[side][1], 0, w->targets * sizeof(double));
		for (size_t i = 0; i < w->s->side[side].n; i++) {
			/* Not paired: all are one. */
			uint32_t t = w->s->paired ? w->s->side[side].target[i] : 0;

			if (!counts(w, side, i))
				continue;
			w->sums[side][0][t] += r->value[side][i];
			w->sums[side][1][t] += whole_at(w, r, side, i);
		}
	}
}

/* Each target counts as much on both sides: a node that was up for longer after a change does not shift the mean. */
static double weight_of(const struct work *w, size_t target)
{
	double all = 0;

	for (size_t t = 0; t < w->targets; t++)
		if (w->sums[0][1][t] > 0 && w->sums[1][1][t] > 0)
			all += w->sums[0][1][t] + w->sums[1][1][t];
	return all > 0 && w->sums[0][1][target] > 0 && w->sums[1][1][target] > 0 ? (w->sums[0][1][target] + w->sums[1][1][target]) / all : 0;
}

/* The excess of each unit over its share of its target's rate, weighted: their sum is 0, and the variance of it that of the rate. */
static struct rate rate_of(struct work *w, const struct change_row *r, int side, const double *weights)
{
	struct rate rate = { 0 };
	size_t n = 0;

	for (size_t t = 0; t < w->targets; t++)
		if (weights[t] > 0)
			rate.value += weights[t] * w->sums[side][0][t] / w->sums[side][1][t];
	for (size_t i = 0; i < w->s->side[side].n; i++) {
		uint32_t t = w->s->paired ? w->s->side[side].target[i] : 0;

		if (!counts(w, side, i) || !(weights[t] > 0))
			continue;
		w->residual[n++] = weights[t] / w->sums[side][1][t] *
				   (r->value[side][i] - w->sums[side][0][t] / w->sums[side][1][t] * whole_at(w, r, side, i));
	}
	rate.spread = stats_sum_spread(w->residual, n);
	return rate;
}

/* Nodes that are on one side only: a node is a measurement. */
static struct rate rate_of_nodes(struct work *w, const struct change_row *r, int side)
{
	double value = w->sums[side][0][0], whole = w->sums[side][1][0];
	struct rate rate = { .value = whole > 0 ? value / whole : 0 };
	size_t n = 0;
	uint32_t last = UINT32_MAX;

	for (size_t i = 0; whole > 0 && i < w->s->side[side].n; i++) {
		uint32_t t = w->s->side[side].target[i];

		if (t != last)
			w->residual[n++] = 0;
		last = t;
		w->residual[n - 1] += (r->value[side][i] - rate.value * whole_at(w, r, side, i)) / whole;
	}
	rate.spread = stats_sum_spread(w->residual, n);
	/* Of two nodes nobody knows how nodes differ: one degree of freedom, as it is. */
	return rate;
}

/* What sampling alone makes, with the rate of both sides: of a side without a sample its own would say 0. */
static double sampling_variance(const struct work *w, const struct change_row *r, int side)
{
	double value = 0, whole = 0, own = 0, samples = r->samples[0] + r->samples[1], share, each;

	if (!(samples > 0))
		return 0;
	for (int i = 0; i < 2; i++)
		for (size_t t = 0; t < w->targets; t++) {
			value += w->sums[i][0][t];
			whole += w->sums[i][1][t];
			own += i == side ? w->sums[i][1][t] : 0;
		}
	if (!(value > 0) || !(own > 0))
		return 0;
	share = value / whole;
	each = value / samples;
	return share * each * (r->share ? fmax(0, 1 - share) : 1) / own;
}

/* --- both sides --- */

static void compare_row(struct work *w, struct change_row *r, double scale)
{
	_cleanup_free_ double *weights = mem_alloc((w->targets + 1) * sizeof(*weights));
	struct rate rate[2];
	double error, df, half;
	struct stats_spread parts[3];

	sum_targets(w, r);
	for (size_t t = 0; t < w->targets; t++)
		weights[t] = weight_of(w, t);
	for (int side = 0; side < 2; side++) {
		double least = sampling_variance(w, r, side);

		rate[side] = w->s->paired ? rate_of(w, r, side, weights) : rate_of_nodes(w, r, side);
		if (!(rate[side].spread.variance > least))
			rate[side].spread = (struct stats_spread){ least, INFINITY };
	}
	parts[0] = rate[0].spread;
	parts[1] = (struct stats_spread){ rate[1].spread.variance * scale * scale, rate[1].spread.df };
	parts[2] = (struct stats_spread){ square_of(r->noise * rate[0].value) + square_of(r->noise * rate[1].value * scale), INFINITY };
	error = sqrt(parts[0].variance + parts[1].variance + parts[2].variance);
	df = stats_sum_df(parts, ARRAY_LEN(parts));
	r->a = rate[0].value;
	r->b = rate[1].value;
	r->delta = r->b * scale - r->a;
	r->p = error > 0 ? stats_t_p(r->delta / error, df) : 1;
	half = error > 0 ? stats_t_bound(INTERVAL, df) * error : 0;
	r->low = r->delta - half;
	r->high = r->delta + half;
	if (!r->tested)
		r->p = 1;
}

static bool negligible(const struct change_row *r)
{
	return fabs(r->delta) < NEGLIGIBLE * fmax(r->a, r->delta + r->a) || (r->share && fabs(r->delta) < NEGLIGIBLE_SHARE);
}

/* --- equal work --- */

static bool is_anchor(const struct change_row *r)
{
	return r->share && r->tested && r->samples[0] + r->samples[1] >= ANCHOR;
}

static void set_minus(struct work *w)
{
	for (int side = 0; side < 2; side++) {
		memset(w->minus[side], 0, w->s->side[side].n * sizeof(double));
		for (size_t i = 0; i < w->s->rows.n; i++)
			for (size_t k = 0; w->changed[i] && k < w->s->side[side].n; k++)
				w->minus[side][k] += w->s->rows.v[i].value[side][k];
	}
}

static size_t find_changed(struct work *w, double scale, bool *changed)
{
	size_t rows = w->s->rows.n, n = 0, found = 0;
	_cleanup_free_ double *p = mem_alloc((rows + 1) * sizeof(*p));
	_cleanup_free_ size_t *at = mem_alloc((rows + 1) * sizeof(*at));

	memset(changed, 0, rows * sizeof(*changed));
	for (size_t i = 0; i < rows; i++) {
		struct change_row *r = &w->s->rows.v[i];

		if (!is_anchor(r))
			continue;
		compare_row(w, r, scale);
		at[n] = i;
		p[n++] = negligible(r) ? 1 : r->p;
	}
	stats_adjust(p, n, p);
	for (size_t i = 0; i < n; i++) {
		changed[at[i]] = p[i] <= CHANGE_FALSE;
		found += changed[at[i]];
	}
	return found;
}

/* From a first guess of the scale on: takes out what changed until it converges. SIZE_MAX: too much did. */
static size_t settle(struct work *w, double scale, size_t anchors)
{
	size_t rows = w->s->rows.n, found = 0;
	_cleanup_free_ bool *next = mem_alloc((rows + 1) * sizeof(*next));

	memset(w->changed, 0, rows * sizeof(*w->changed));
	set_minus(w);
	for (int round = 0; round < ROUNDS; round++) {
		found = find_changed(w, scale, next);
		if (found > anchors / 2)
			return SIZE_MAX;
		if (round && !memcmp(next, w->changed, rows * sizeof(*next)))
			break;
		memcpy(w->changed, next, rows * sizeof(*next));
		set_minus(w);
		scale = 1;
	}
	return found;
}

/* The ratio that most rows have. */
static double common_scale(struct work *w, size_t *ret_n)
{
	_cleanup_free_ double *logs = mem_alloc((w->s->rows.n + 1) * sizeof(*logs));
	size_t n = 0;

	for (size_t i = 0; i < w->s->rows.n; i++) {
		struct change_row *r = &w->s->rows.v[i];

		if (!is_anchor(r))
			continue;
		compare_row(w, r, 1);
		if (r->a > 0 && r->b > 0)
			logs[n++] = log(r->b / r->a);
	}
	*ret_n = n;
	return exp(-stats_median(logs, n));
}

/* Which rows are left out of the wholes. Two ways to look for them, as in diff.c: the one that needs fewer explains more. */
static void find_work(struct work *w)
{
	size_t anchors, plain, common = SIZE_MAX;
	double guess;

	memset(w->changed, 0, w->s->rows.n * sizeof(*w->changed));
	set_minus(w);
	guess = common_scale(w, &anchors);
	plain = settle(w, 1, anchors);
	if (plain > 1 && anchors >= ANCHORS) {
		common = settle(w, guess, anchors);
		if (plain <= common)
			plain = settle(w, 1, anchors);
	}
	if ((plain == SIZE_MAX && common == SIZE_MAX) || anchors < ANCHORS) {
		memset(w->changed, 0, w->s->rows.n * sizeof(*w->changed));
		set_minus(w);
	}
}

/* --- all of it --- */

static void work_init(struct work *w, struct change_set *s)
{
	size_t units = MAX(s->side[0].n, s->side[1].n);
	bool *seen[2];

	*w = (struct work){ .s = s };
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < s->side[side].n; i++)
			w->targets = MAX(w->targets, (size_t)s->side[side].target[i] + 1);
	for (int side = 0; side < 2; side++) {
		seen[side] = mem_alloc(w->targets + 1);
		for (size_t i = 0; i < s->side[side].n; i++)
			seen[side][s->side[side].target[i]] = true;
		w->minus[side] = mem_alloc((s->side[side].n + 1) * sizeof(double));
		for (int k = 0; k < 2; k++)
			w->sums[side][k] = mem_alloc((w->targets + 1) * sizeof(double));
	}
	w->both = mem_alloc(w->targets + 1);
	s->paired = false;
	for (size_t t = 0; t < w->targets; t++) {
		w->both[t] = seen[0][t] && seen[1][t];
		s->paired |= w->both[t];
	}
	free(seen[0]);
	free(seen[1]);
	w->residual = mem_alloc((units + 1) * sizeof(double));
	w->changed = mem_alloc(s->rows.n + 1);
}

static void work_done(struct work *w)
{
	for (int side = 0; side < 2; side++) {
		free(w->minus[side]);
		for (int k = 0; k < 2; k++)
			free(w->sums[side][k]);
	}
	free(w->both);
	free(w->residual);
	free(w->changed);
}

void change_adjust(struct change_set *const *sets, size_t n)
{
	size_t all = 0, at = 0;
	_cleanup_free_ double *p = NULL;

	for (size_t i = 0; i < n; i++)
		all += sets[i]->rows.n;
	p = mem_alloc((all + 1) * sizeof(*p));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sets[i]->rows.n; k++)
			if (sets[i]->rows.v[k].tested)
				p[at++] = sets[i]->rows.v[k].p;
	stats_adjust(p, at, p);
	at = 0;
	for (size_t i = 0; i < n; i++) {
		sets[i]->tested = sets[i]->significant = 0;
		for (size_t k = 0; k < sets[i]->rows.n; k++) {
			struct change_row *r = &sets[i]->rows.v[k];

			r->q = r->tested ? p[at++] : 1;
			r->significant = r->tested && r->q <= CHANGE_FALSE && !negligible(r);
			sets[i]->tested += r->tested;
			sets[i]->significant += r->significant;
		}
	}
}

void change_compare(struct change_set *s)
{
	double all[2] = { 0 }, left[2] = { 0 };
	struct work w;

	work_init(&w, s);
	for (size_t i = 0; i < s->rows.n; i++) {
		struct change_row *r = &s->rows.v[i];
		uint64_t samples = r->samples[0] + r->samples[1];

		r->tested = s->side[0].n >= CHANGE_UNITS_MIN && s->side[1].n >= CHANGE_UNITS_MIN && (!r->share || samples >= CHANGE_SAMPLES_MIN);
	}
	find_work(&w);
	s->scale = 1;
	for (size_t i = 0; i < s->rows.n; i++) {
		struct change_row *r = &s->rows.v[i];
		double a, b;

		compare_row(&w, r, 1);
		if (!r->share)
			continue;
		/* Rates were those of what did not change; people read shares of all. */
		sum_targets(&w, r);
		for (int side = 0; side < 2; side++) {
			all[side] = left[side] = 0;
			for (size_t k = 0; k < s->side[side].n; k++)
				if (counts(&w, side, k)) {
					all[side] += r->whole[side][k];
					left[side] += whole_at(&w, r, side, k);
				}
		}
		if (!(left[0] > 0) || !(left[1] > 0))
			continue;
		a = left[0] / all[0];
		b = left[1] / all[1];
		s->scale = a / b;
		r->a *= a;
		r->delta *= a;
		r->low *= a;
		r->high *= a;
		r->b *= b;
	}
	change_adjust(&s, 1);
	work_done(&w);
}

double change_percent(const struct change_row *r, double of)
{
	return r->a > 0 ? 100 * of / r->a : of > 0 ? INFINITY : 0;
}
