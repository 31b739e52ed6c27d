#include "export/foreign/heap/heapsteps.h"

#include <errno.h>
#include <string.h>

#include "analyze/memory/heapseries.h"
#include "analyze/select.h"
#include "base/err.h"
#include "base/map.h"
#include "export/export.h"
#include "export/samplerows.h"
#include "profile/profile.h"

void heapsteps_done(struct heapsteps *h)
{
	vec_done(&h->list);
}

/* --- over time --- */

struct finding {
	struct heapsteps *h;
	const struct profile *p;
	VEC(struct heapstep) temporary; /* by time */
	struct map keys;     /* thread and stack to a number */
	VEC(uint32_t) last;  /* by that number: the last allocation of it so far, PROFILE_NONE = none */
	VEC(struct heapsteps_sum) taken; /* the same: of what is freed now, what was freed at once */
};

static void see_temporary(void *context, const struct select_hit *hit)
{
	struct finding *f = context;
	const struct profile_sample *s = &f->p->samples.v[hit->index];

	vec_push(&f->temporary, (struct heapstep){ .time_ns = s->time_ns, .thread = s->thread, .stack = hit->stack,
						   .sum = { hit->weight.value, hit->weight.samples } });
}

static int compare_steps(const void *a, const void *b)
{
	const struct heapstep *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: x->down - y->down ?: ORDER(x->stack, y->stack) ?: ORDER(x->thread, y->thread);
}

/* Steps of one stack, thread and time become one: which of them were freed at once is known of their sum only. */
static void merge(struct heapstep *list, size_t *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		if (kept && !compare_steps(&list[kept - 1], &list[i])) {
			list[kept - 1].sum.bytes += list[i].sum.bytes;
			list[kept - 1].sum.count += list[i].sum.count;
		} else {
			list[kept++] = list[i];
		}
	}
	*n = kept;
}

static uint32_t key_of(struct finding *f, const struct heapstep *s)
{
	uint64_t *key = map_put(&f->keys, map_pair(s->thread, s->stack), f->last.n);

	if (*key == f->last.n) {
		vec_push(&f->last, PROFILE_NONE);
		vec_push(&f->taken, (struct heapsteps_sum){ 0 });
	}
	return *key;
}

static void move(struct heapsteps_sum *from, struct heapsteps_sum *to, const struct heapsteps_sum *sum)
{
	from->bytes -= sum->bytes;
	from->count -= sum->count;
	to->bytes += sum->bytes;
	to->count += sum->count;
}

/* What of the objects that are left can be of this allocation. */
static struct heapsteps_sum part_of(const struct heapsteps_sum *up, const struct heapsteps_sum *left, uint64_t most)
{
	struct heapsteps_sum take = { MIN(left->bytes, up->bytes), MIN(MIN(left->count, up->count), most) };

	/* Some of the objects of a sum have their share of its bytes. */
	if (take.count < left->count)
		take.bytes = MIN(take.bytes, (uint64_t)((unsigned __int128)left->bytes * take.count / left->count));
	/* Bytes that stay want an object. */
	if (take.count && take.count == up->count && take.bytes < up->bytes)
		take = (struct heapsteps_sum){ MIN(take.bytes, take.bytes / take.count * (take.count - 1)), take.count - 1 };
	return take;
}

/* Finds the allocations of objects that were freed at once: the last ones before that. */
static void find_allocations(struct finding *f, const struct heapstep *temporary)
{
	struct heapsteps *h = f->h;
	uint32_t key = key_of(f, temporary);
	struct heapsteps_sum left = temporary->sum;

	for (uint32_t i = f->last.v[key]; i != PROFILE_NONE && left.count; i = h->list.v[i].before) {
		struct heapstep *up = &h->list.v[i];
		bool at_peak = up->time_ns <= h->peak_ns && temporary->time_ns > h->peak_ns;
		struct heapsteps_sum take;

		if (at_peak && (h->topped || up->time_ns < h->peak_ns))
			break;
		take = part_of(&up->sum, &left, at_peak ? 1 : UINT64_MAX);
		if (!take.count)
			continue;
		move(&up->sum, at_peak ? &up->topmost : &up->temporary, &take);
		h->topped |= at_peak;
		move(&left, &f->taken.v[key], &take);
		if (!up->sum.count && i == f->last.v[key])
			f->last.v[key] = up->before;
	}
	h->lost += left.count;
}

static void find_all(struct finding *f)
{
	size_t k = 0;

	for (size_t i = 0; i < f->h->list.n; i++) {
		struct heapstep *s = &f->h->list.v[i];
		uint32_t key = key_of(f, s);

		if (!s->down) {
			s->before = f->last.v[key];
			f->last.v[key] = i;
			continue;
		}
		for (; k < f->temporary.n && f->temporary.v[k].time_ns <= s->time_ns; k++)
			find_allocations(f, &f->temporary.v[k]);
		s = &f->h->list.v[i];
		s->sum.bytes -= MIN(s->sum.bytes, f->taken.v[key].bytes);
		s->sum.count -= MIN(s->sum.count, f->taken.v[key].count);
		s->sum.count += s->sum.bytes && !s->sum.count;
		f->taken.v[key] = (struct heapsteps_sum){ 0 };
	}
}

static void find_temporary(struct heapsteps *h, const struct export_job *job)
{
	struct finding f = { .h = h, .p = job->profile };
	struct select_options o = job->selection->options;

	o.from_ns = o.to_ns = 0;
	o.event = profile_find_event(job->profile, "temporary", "bytes");
	if (o.event == PROFILE_NONE || profile_find_event(job->profile, "rise", NULL) != PROFILE_NONE)
		return;
	select_each(job->profile, &o, see_temporary, &f, NULL); /* that there are none is no error */
	vec_sort(&f.temporary, compare_steps);
	merge(f.temporary.v, &f.temporary.n);
	find_all(&f);
	vec_done(&f.temporary);
	vec_done(&f.last);
	vec_done(&f.taken);
	map_done(&f.keys);
}

static int over_time(struct heapsteps *h, const struct export_job *job, struct err *err)
{
	struct heapseries series;
	int r = heapseries_make(&series, job->profile, &job->selection->options, err);

	for (size_t i = 0; i < series.steps.n && !r; i++) {
		const struct heapseries_step *s = &series.steps.v[i];

		vec_push(&h->list, (struct heapstep){ .time_ns = s->time_ns, .stack = s->stack, .thread = s->thread, .down = s->down,
						      .sum = { s->bytes, s->count } });
	}
	h->end_ns = series.end_ns;
	h->peak_ns = series.peak_ns;
	heapseries_done(&series);
	vec_sort(&h->list, compare_steps);
	merge(h->list.v, &h->list.n);
	if (!r)
		find_temporary(h, job);
	return r;
}

/* --- of totals --- */

enum what { ALLOC, PEAK, HEAP, WHATS };

struct total {
	uint32_t stack, thread;
	struct heapsteps_sum sums[WHATS];
};

static void push(struct heapsteps *h, const struct total *t, uint64_t time_ns, bool down, uint64_t bytes, uint64_t count)
{
	if (count)
		vec_push(&h->list, (struct heapstep){ .time_ns = time_ns, .stack = t->stack, .thread = t->thread, .down = down,
						      .sum = { bytes, count } });
}

/* Objects that are neither of the peak nor of the end came and went first; those of both stay from the peak on. */
static void add_total(struct heapsteps *h, const struct total *t, const uint64_t times_ns[WHATS])
{
	const struct heapsteps_sum *all = &t->sums[ALLOC], *peak = &t->sums[PEAK], *end = &t->sums[HEAP];
	struct heapsteps_sum both = { MIN(peak->bytes, end->bytes), MIN(peak->count, end->count) };
	struct heapsteps_sum most = { peak->bytes + end->bytes - both.bytes, peak->count + end->count - both.count };
	struct heapsteps_sum rest = { all->bytes > most.bytes ? all->bytes - most.bytes : 0,
				      all->count > most.count ? all->count - most.count : 0 };

	push(h, t, 0, false, rest.bytes, rest.count);
	push(h, t, 0, true, rest.bytes, rest.count);
	push(h, t, times_ns[PEAK], false, peak->bytes, peak->count);
	push(h, t, times_ns[HEAP], true, peak->bytes - both.bytes, peak->count - both.count);
	push(h, t, times_ns[HEAP], false, end->bytes - both.bytes, end->count - both.count);
}

static int of_totals(struct heapsteps *h, const struct export_job *job, struct err *err)
{
	static const char *const names[WHATS] = { "alloc", "peak", "heap" };
	const struct profile *p = job->profile;
	uint64_t end_ns = MAX(select_duration_ns(p), 2), times_ns[WHATS] = { end_ns, 1, end_ns };
	VEC(struct total) totals = { 0 };
	struct map index = { 0 };
	struct samplerows rows;
	int r = samplerows_make(&rows, job, SAMPLEROWS_EVERY, err);

	for (size_t i = 0; i < rows.list.n && !r; i++) {
		const struct samplerow *row = &rows.list.v[i];
		uint64_t *at = map_put(&index, map_pair(row->thread, row->stack), totals.n);

		if (*at == totals.n)
			vec_push(&totals, (struct total){ .stack = row->stack, .thread = row->thread });
		for (int k = 0; k < WHATS; k++)
			if (row->event == profile_find_event(p, names[k], "bytes")) {
				totals.v[*at].sums[k].bytes += row->value;
				totals.v[*at].sums[k].count += row->count;
				if (k == PEAK)
					times_ns[k] = MIN(MAX(row->begin_ns, 1), end_ns - 1);
			}
	}
	for (size_t i = 0; i < totals.n; i++)
		add_total(h, &totals.v[i], times_ns);
	h->end_ns = end_ns;
	vec_sort(&h->list, compare_steps);
	vec_done(&totals);
	map_done(&index);
	samplerows_done(&rows);
	if (!r && !h->list.n)
		r = err_set(err, ENODATA, "there is no heap in this recording: record with -e heap");
	return r;
}

int heapsteps_make(struct heapsteps *h, const struct export_job *job, struct err *err)
{
	int r;

	*h = (struct heapsteps){ 0 };
	r = over_time(h, job, err);
	if (r == -ENODATA) {
		h->list.n = 0;
		r = of_totals(h, job, err);
	}
	for (size_t i = 0; i < h->list.n; i++)
		h->calls += h->list.v[i].down ? 0 : h->list.v[i].sum.count + h->list.v[i].temporary.count + h->list.v[i].topmost.count;
	return r;
}
