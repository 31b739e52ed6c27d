#include "analyze/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "base/err.h"
#include "profile/profile.h"

/* Why these figures: docs/decisions/0007-diff.md. */
enum {
	ENOUGH = 20,       /* samples of both sides together: below that nothing is tested */
	ANCHOR = 50,       /* the same, of self, for a function that speaks for the amount of work */
	ANCHORS = 6,       /* functions that must do so */
};
#define FALSE_DISCOVERIES 0.01
#define INTERVAL 0.05
/* The relative variation of a function from run to run beyond what slices can see: of CPU time, and of
 * waits, I/O and faults, which depend on the state of the machine. */
#define RUN_NOISE_CPU 0.01
#define RUN_NOISE_OTHER 0.1
#define NEGLIGIBLE 0.05    /* relative change that is none */
#define LEAF 0.01          /* the relative total of callees up to which a function is a leaf */
#define NEGLIGIBLE_ALL 0.001 /* and as a share of the whole */

static double square_of(double x)
{
	return x * x;
}

struct work {
	struct diff *d;
	const struct diff_options *o;
	struct slices side[2];
	/* The denominator of values: the sum of all that did not change, or the time. */
	double whole[2], *whole_at[2]; /* at: by slice */
	double everything[2];          /* the same of all, changed or not */
	double run_noise;
	uint32_t *pick;   /* row to series, SLICES_NONE = too few samples */
	bool *changed;    /* rows that are not in whole */
	double *residual; /* room for one series */
};

/* A rate of one side: its value and its variance. */
struct rate {
	double value;
	struct stats_spread spread;
};

/* --- one side --- */

/* The ratio of two correlated sums: each slice's residual is its excess over its share. */
static struct stats_spread slice_spread(struct work *w, int side, const double *x, double value)
{
	if (w->side[side].timeless)
		return (struct stats_spread){ 0 };
	for (size_t k = 0; k < w->side[side].n; k++)
		w->residual[k] = (x[k] - value / w->whole[side] * w->whole_at[side][k]) / w->whole[side];
	return stats_sum_spread(w->residual, w->side[side].n);
}

/*
 * The variance that sampling alone makes, with the rate that both sides have together: of a side that has
 * no sample of it, its own rate would say 0. Of shares it is that of the binomial distribution.
 */
static double sampling_variance(const struct work *w, int side, const struct slices_sum *sum[2])
{
	double value = sum[0]->value + sum[1]->value, square = sum[0]->square + sum[1]->square;
	double share, squares;

	if (!(value > 0))
		return 0;
	share = value / (w->everything[0] + w->everything[1]);
	squares = square / value * share * w->everything[side]; /* as this side's samples would have it */
	if (!w->o->absolute)
		squares = (1 - share) * (1 - share) * squares +
			  share * share * fmax(0, w->side[side].everything.square - squares);
	return squares / square_of(w->whole[side]);
}

static struct rate rate_of(struct work *w, int side, size_t row, bool total)
{
	const struct slices_sum *sum[2];
	struct rate r = { 0 };
	double least;

	for (int i = 0; i < 2; i++)
		sum[i] = total ? &w->side[i].total[row] : &w->side[i].self[row];
	if (!(w->whole[side] > 0))
		return r;
	r.value = sum[side]->value / w->whole[side];
	if (w->pick[row] != SLICES_NONE)
		r.spread = slice_spread(w, side, slices_of(&w->side[side], w->pick[row], total),
					sum[side]->value);
	least = sampling_variance(w, side, sum);
	if (!(r.spread.variance > least))
		r.spread = (struct stats_spread){ least, INFINITY };
	return r;
}

/* --- both sides --- */

/* unit: what rates are multiplied by for people; scale: b's for the test. */
static struct diff_value compare(const struct work *w, const struct rate *a, const struct rate *b,
				 double scale, double unit)
{
	struct stats_spread parts[] = {
		a->spread,
		{ b->spread.variance * scale * scale, b->spread.df },
		{ square_of(w->run_noise * a->value) + square_of(w->run_noise * b->value * scale), INFINITY },
	};
	struct diff_value v = { .a = a->value * unit, .b = b->value * unit, .p = 1, .q = 1 };
	double error = sqrt(parts[0].variance + parts[1].variance + parts[2].variance);
	double df = stats_sum_df(parts, ARRAY_LEN(parts)), half;

	v.delta = v.b * scale - v.a;
	if (error > 0)
		v.p = stats_t_p(v.delta / (unit * error), df);
	half = stats_t_bound(INTERVAL, df) * error * unit;
	v.low = v.delta - half;
	v.high = v.delta + half;
	return v;
}

static bool enough(const struct slices_sum *a, const struct slices_sum *b)
{
	return a->samples + b->samples >= ENOUGH;
}

/* A smaller change may be real, but is not worth showing. Both in one unit. */
static bool negligible(double delta, double a, double b, double whole)
{
	return fabs(delta) < NEGLIGIBLE * fmax(a, b) || fabs(delta) < NEGLIGIBLE_ALL * whole;
}

static void compare_rows(struct work *w)
{
	struct diff *d = w->d;
	double unit = w->o->absolute ? 1e9 : 100;

	/* Rates are relative to the unchanged functions; people read shares of all. */
	if (!w->o->absolute && w->everything[0] > 0)
		unit *= w->whole[0] / w->everything[0];
	for (size_t i = 0; i < d->table.rows.n; i++) {
		const struct slices_row *r = &d->table.rows.v[i];
		const struct slices *a = &w->side[0], *b = &w->side[1];
		struct diff_row row = { .name = r->name, .module = r->module, .kind = r->kind,
					.samples_a = a->total[i].samples, .samples_b = b->total[i].samples,
					.outside = r->outside };

		row.only_a = row.samples_a && !row.samples_b;
		row.only_b = row.samples_b && !row.samples_a;
		for (int total = 0; total < 2; total++) {
			struct rate x = rate_of(w, 0, i, total), y = rate_of(w, 1, i, total);
			struct diff_value *v = total ? &row.total : &row.self;

			*v = compare(w, &x, &y, 1, unit);
			v->b /= d->scale; /* as it is */
			v->tested = w->pick[i] != SLICES_NONE && !r->outside &&
				    (total || enough(&a->self[i], &b->self[i]));
			if (!v->tested)
				v->p = 1;
		}
		vec_push(&d->rows, row);
	}
}

/* Values per second; sampling noise is that of the samples. */
static void compare_whole(struct work *w)
{
	struct diff *d = w->d;
	struct rate r[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		const struct slices *sl = &w->side[i];
		double least = sl->everything.square / square_of(sl->duration_ns);

		for (size_t k = 0; k < sl->n; k++)
			w->residual[k] = (sl->all[k] - sl->everything.value / sl->n) / sl->duration_ns;
		r[i].value = sl->everything.value / sl->duration_ns;
		if (!sl->timeless)
			r[i].spread = stats_sum_spread(w->residual, sl->n);
		if (!(r[i].spread.variance > least))
			r[i].spread = (struct stats_spread){ least, INFINITY };
	}
	d->all = compare(w, &r[0], &r[1], 1, 1e9);
	d->all_a = d->all.a;
	d->all_b = d->all.b;
	d->all.tested = enough(&w->side[0].everything, &w->side[1].everything);
	if (!d->all.tested)
		d->all.p = 1;
	d->all.q = d->all.p;
	d->all.significant = d->all.q <= FALSE_DISCOVERIES &&
			     !negligible(d->all.delta, d->all.a, d->all.b, 0);
}

/* --- how much work --- */

/* Takes the changed functions out of what values are divided by. */
static void set_whole(struct work *w)
{
	for (int i = 0; i < 2; i++) {
		const struct slices *sl = &w->side[i];

		w->whole[i] = w->everything[i];
		for (size_t k = 0; k < sl->n; k++)
			w->whole_at[i][k] = w->o->absolute ? w->whole[i] / sl->n : sl->all[k];
		for (size_t row = 0; row < w->d->table.rows.n; row++) {
			const double *x;

			if (!w->changed[row] || w->pick[row] == SLICES_NONE)
				continue;
			x = slices_of(sl, w->pick[row], false);
			w->whole[i] -= sl->self[row].value;
			for (size_t k = 0; k < sl->n; k++)
				w->whole_at[i][k] -= x[k];
		}
	}
}

static bool is_anchor(const struct work *w, size_t row)
{
	return !w->d->table.rows.v[row].outside && w->pick[row] != SLICES_NONE &&
	       w->side[0].self[row].samples + w->side[1].self[row].samples >= ANCHOR;
}

/* The functions that changed, if after is scaled so, by their self time. Returns how many. */
static size_t find_changed(struct work *w, double scale, bool *changed)
{
	size_t rows = w->d->table.rows.n, n = 0, found = 0;
	double *p = mem_alloc((rows + 1) * sizeof(*p));
	uint32_t *at = mem_alloc((rows + 1) * sizeof(*at));

	memset(changed, 0, rows * sizeof(*changed));
	for (size_t i = 0; i < rows; i++) {
		struct rate a, b;
		struct diff_value v;

		changed[i] = w->d->table.rows.v[i].outside; /* never a measure of the work */
		if (!is_anchor(w, i))
			continue;
		a = rate_of(w, 0, i, false);
		b = rate_of(w, 1, i, false);
		v = compare(w, &a, &b, scale, 1);
		at[n] = i;
		p[n++] = negligible(v.delta, v.a, v.b * scale, 1) ? 1 : v.p;
	}
	stats_adjust(p, n, p);
	for (size_t i = 0; i < n; i++)
		if (p[i] <= FALSE_DISCOVERIES) {
			changed[at[i]] = true;
			found++;
		}
	free(p);
	free(at);
	return found;
}

/*
 * Starts from a first guess of the scale: leaves out the functions that changed, takes the next guess
 * from the rest, until it converges. Returns how many changed; SIZE_MAX if too many did.
 */
static size_t settle(struct work *w, double scale)
{
	size_t rows = w->d->table.rows.n, anchors = 0, found = 0;
	bool *next = mem_alloc((rows + 1) * sizeof(*next));

	for (size_t i = 0; i < rows; i++) {
		anchors += is_anchor(w, i);
		w->changed[i] = w->d->table.rows.v[i].outside;
	}
	set_whole(w);
	scale *= w->whole[1] / w->everything[1] / (w->whole[0] / w->everything[0]);
	for (int round = 0; round < 8; round++) {
		found = find_changed(w, scale, next);
		if (found > anchors / 2) {
			found = SIZE_MAX;
			break;
		}
		if (round && !memcmp(next, w->changed, rows * sizeof(*next)))
			break;
		memcpy(w->changed, next, rows * sizeof(*next));
		set_whole(w);
		scale = 1;
	}
	free(next);
	return found;
}

/* The ratio that most functions have, as a guess. */
static double common_scale(struct work *w, size_t *ret_n)
{
	size_t rows = w->d->table.rows.n, n = 0;
	double *logs = mem_alloc((rows + 1) * sizeof(*logs)), middle;

	for (size_t i = 0; i < rows; i++)
		if (is_anchor(w, i) && w->side[0].self[i].value > 0 && w->side[1].self[i].value > 0)
			logs[n++] = log(w->side[1].self[i].value / w->everything[1]) -
				    log(w->side[0].self[i].value / w->everything[0]);
	middle = stats_median(logs, n);
	free(logs);
	*ret_n = n;
	return exp(-middle);
}

/*
 * Where a few functions explain all differences, the others tell how much work was done. They are
 * looked for from two sides: from plain shares, and from the ratio that most functions have, which is right
 * where one function pushed all others aside. The one with fewer changed functions explains more.
 */
static void find_scale(struct work *w)
{
	struct diff *d = w->d;
	size_t anchors, plain, common = SIZE_MAX;
	double guess = common_scale(w, &anchors);

	plain = settle(w, 1);
	if (plain > 1 && anchors >= ANCHORS) {
		common = settle(w, guess);
		if (plain <= common)
			plain = settle(w, 1);
	}
	if ((plain == SIZE_MAX && common == SIZE_MAX) || anchors < ANCHORS) {
		for (size_t i = 0; i < d->table.rows.n; i++)
			w->changed[i] = d->table.rows.v[i].outside;
		set_whole(w);
	} else {
		d->scaled = true;
	}
	if (w->whole[0] > 0 && w->whole[1] > 0)
		d->scale = w->whole[0] / w->everything[0] / (w->whole[1] / w->everything[1]);
}

/* --- what counts --- */

/* Does a function call so little that its total is its self? Then it is one question, not two. */
static bool is_leaf(const struct diff_row *r)
{
	return r->self.tested && r->total.a - r->self.a <= LEAF * r->total.a &&
	       r->total.b - r->self.b <= LEAF * r->total.b;
}

static void judge(struct diff *d)
{
	size_t n = 0;
	double *p = mem_alloc((2 * d->rows.n + 1) * sizeof(*p));
	double whole = d->normalized ? 100 : fmax(d->all_a, d->all_b);

	for (size_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *r = &d->rows.v[i];

		if (r->self.tested)
			p[n++] = r->self.p;
		if (r->total.tested && !is_leaf(r))
			p[n++] = r->total.p;
	}
	stats_adjust(p, n, p);
	n = 0;
	for (size_t i = 0; i < d->rows.n; i++) {
		struct diff_row *r = &d->rows.v[i];
		struct diff_value *v[] = { &r->self, &r->total };

		for (int k = 0; k < 2; k++) {
			if (!v[k]->tested)
				continue;
			v[k]->q = k && is_leaf(r) ? r->self.q : p[n++];
			v[k]->significant = v[k]->q <= FALSE_DISCOVERIES &&
					    !negligible(v[k]->delta, v[k]->a, v[k]->b * d->scale, whole);
		}
		d->tested += r->self.tested || r->total.tested;
		d->significant_self += r->self.significant;
		d->significant += r->self.significant || r->total.significant;
	}
	free(p);
}

static int compare_order(const struct diff_row *x, const struct diff_row *y,
			 const struct diff_value *first[2], const struct diff_value *second[2])
{
	return first[1]->significant - first[0]->significant ?: second[1]->significant - second[0]->significant ?:
	       ORDER(fabs(first[1]->delta), fabs(first[0]->delta)) ?:
	       ORDER(fabs(second[1]->delta), fabs(second[0]->delta)) ?: ORDER(first[1]->a, first[0]->a) ?:
	       strcmp(x->name, y->name) ?: strcmp(x->module, y->module) ?: ORDER(x->kind, y->kind);
}

static int compare_self(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	return compare_order(x, y, (const struct diff_value *[]){ &x->self, &y->self },
			     (const struct diff_value *[]){ &x->total, &y->total });
}

static int compare_total(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	return compare_order(x, y, (const struct diff_value *[]){ &x->total, &y->total },
			     (const struct diff_value *[]){ &x->self, &y->self });
}

/* --- */

static const char *unit_of(const struct selection *s)
{
	return !strcmp(s->unit, "ns") ? "ns/s" : !strcmp(s->unit, "bytes") ? "bytes/s" : "/s";
}

static int check_sides(const struct diff_side *a, const struct diff_side *b, const struct diff_options *o,
		       struct err *err)
{
	const struct selection *x = a->selection, *y = b->selection;

	if (x->all.samples && y->all.samples && strcmp(x->unit, y->unit))
		return err_set(err, EINVAL, "%s is in %s before and in %s after: they cannot be compared",
			       x->name, x->unit, y->unit);
	if ((x->all.samples && !x->moments.n) || (y->all.samples && !y->moments.n))
		return err_set(err, EINVAL, "the selections have no moments to compare");
	if (o->absolute && ((x->all.samples && !select_duration_ns(a->profile)) ||
			    (y->all.samples && !select_duration_ns(b->profile))))
		return err_set(err, EINVAL,
			       "there are no times to compare values each second: leave out --absolute");
	return 0;
}

/* Sampled CPU time, also as stacks that were counted elsewhere. */
static bool is_cpu(const struct diff_side *side)
{
	const struct profile *p = side->profile;
	uint32_t event = side->selection->options.event;

	return cause_role(p, event) == ROLE_CPU ||
	       (event < p->events.n && !strcmp(profile_str(p, p->events.v[event].name), "samples"));
}

static double run_noise(const struct diff_side *a, const struct diff_side *b)
{
	return is_cpu(a) && is_cpu(b) ? RUN_NOISE_CPU : RUN_NOISE_OTHER;
}

static void prepare(struct work *w)
{
	size_t rows = w->d->table.rows.n, n = 0;
	bool both;

	for (int i = 0; i < 2; i++) {
		const struct slices *sl = &w->side[i];

		w->everything[i] = w->o->absolute ? sl->duration_ns : sl->everything.value;
		w->whole_at[i] = mem_alloc(sl->n * sizeof(*w->whole_at[i]));
	}
	both = w->everything[0] > 0 && w->everything[1] > 0;
	w->pick = mem_alloc((rows + 1) * sizeof(*w->pick));
	w->changed = mem_alloc((rows + 1) * sizeof(*w->changed));
	for (size_t i = 0; i < rows; i++)
		w->pick[i] = both && (enough(&w->side[0].total[i], &w->side[1].total[i]) ||
				      w->d->table.rows.v[i].outside) ? n++ : SLICES_NONE;
	for (int i = 0; i < 2; i++)
		slices_series(&w->side[i], w->pick, n);
	w->residual = mem_alloc((MAX(w->side[0].n, w->side[1].n) + 1) * sizeof(*w->residual));
	set_whole(w);
}

static void work_done(struct work *w)
{
	for (int i = 0; i < 2; i++) {
		slices_done(&w->side[i]);
		free(w->whole_at[i]);
	}
	free(w->pick);
	free(w->changed);
	free(w->residual);
}

int diff_make(struct diff *d, const struct diff_side *a, const struct diff_side *b,
	      const struct diff_options *o, struct err *err)
{
	struct work w = { .d = d, .o = o };
	unsigned flags = o->no_inline ? IDENTS_NO_INLINE : 0;
	int r = check_sides(a, b, o, err);

	*d = (struct diff){ .normalized = !o->absolute, .grouped = o->grouped, .scale = 1 };
	if (r)
		return r;
	d->unit = o->absolute ? unit_of(a->selection->all.samples ? a->selection : b->selection) : "%";
	slices_table_init(&d->table);
	slices_init(&w.side[0], &d->table, a->profile, a->selection, flags);
	slices_init(&w.side[1], &d->table, b->profile, b->selection, flags);
	for (int i = 0; i < 2; i++)
		slices_sum(&w.side[i], d->table.rows.n);
	d->samples_a = w.side[0].everything.samples;
	d->samples_b = w.side[1].everything.samples;
	d->slices_a = w.side[0].n;
	d->slices_b = w.side[1].n;
	d->timeless = w.side[0].timeless || w.side[1].timeless;
	w.run_noise = run_noise(a, b);
	prepare(&w);
	compare_whole(&w);
	if (!o->absolute)
		find_scale(&w);
	compare_rows(&w);
	judge(d);
	vec_sort(&d->rows, o->by_total ? compare_total : compare_self);
	work_done(&w);
	return 0;
}

void diff_done(struct diff *d)
{
	vec_done(&d->rows);
	slices_table_done(&d->table);
	*d = (struct diff){ 0 };
}
