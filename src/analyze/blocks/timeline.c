#include "analyze/blocks/timeline.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 8 };

void timeline_clear(struct timeline *t)
{
	vec_clear(&t->added);
	vec_clear(&t->list);
	vec_clear(&t->threads);
}

void timeline_add(struct timeline *t, const struct span *s)
{
	vec_push(&t->added, *s);
}

void timeline_done(struct timeline *t)
{
	vec_done(&t->added);
	vec_done(&t->list);
	vec_done(&t->threads);
	free(t->first);
	free(t->spare);
	free(t->runs);
}

static int compare_spans(const void *a, const void *b)
{
	return timeline_is_before(a, b) ? -1 : 1;
}

static bool is_sorted(const struct span *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (timeline_is_before(&v[i], &v[i - 1]))
			return false;
	return true;
}

/*
 * Says which of a few sorted runs each span continues, and how long they become: of these the one that ends last. False: that
 * takes more than RUNS of them. A recorder writes its rows in a few orders at once: sums have the time when their slot began,
 * other rows their own.
 */
static bool split_runs(const struct span *v, size_t n, uint8_t *run, size_t *lengths)
{
	const struct span *ends[RUNS] = { 0 };

	memset(lengths, 0, RUNS * sizeof(*lengths));
	for (size_t i = 0; i < n; i++) {
		int best = -1;

		for (int k = 0; k < RUNS; k++) {
			if (!ends[k]) {
				best = best < 0 ? k : best;
				break;
			}
			if (timeline_is_before(ends[k], &v[i]) && (best < 0 || timeline_is_before(ends[best], ends[k])))
				best = k;
		}
		if (best < 0)
			return false;
		ends[best] = &v[i];
		run[i] = best;
		lengths[best]++;
	}
	return true;
}

static void merge(const struct span *a, size_t na, const struct span *b, size_t nb, struct span *out)
{
	const struct span *a_end = a + na, *b_end = b + nb;

	while (a < a_end && b < b_end)
		*out++ = timeline_is_before(b, a) ? *b++ : *a++;
	memcpy(out, a, (a_end - a) * sizeof(*a));
	memcpy(out + (a_end - a), b, (b_end - b) * sizeof(*b));
}

/* Puts the spans of each run together, then merges one run after the other into those before it. */
static void merge_runs(struct span *v, size_t n, const uint8_t *run, const size_t *lengths, struct span *spare)
{
	size_t at[RUNS] = { 0 }, done = lengths[0];

	for (int k = 1; k < RUNS; k++)
		at[k] = at[k - 1] + lengths[k - 1];
	for (size_t i = 0; i < n; i++)
		spare[at[run[i]]++] = v[i];
	memcpy(v, spare, n * sizeof(*v));
	for (int k = 1; k < RUNS && lengths[k]; k++) {
		merge(v, done, v + done, lengths[k], spare);
		done += lengths[k];
		memcpy(v, spare, done * sizeof(*v));
	}
}

static void sort_spans(struct timeline *t, struct span *v, size_t n)
{
	size_t lengths[RUNS];

	if (is_sorted(v, n))
		return;
	if (split_runs(v, n, t->runs, lengths))
		merge_runs(v, n, t->runs, lengths, t->spare);
	else
		qsort(v, n, sizeof(*v), compare_spans);
}

static void make_room(struct timeline *t)
{
	size_t n = t->added.n + 1;

	if (n > t->room) {
		t->room = MAX(n, 2 * t->room);
		t->spare = mem_resize(t->spare, t->room, sizeof(*t->spare));
		t->runs = mem_resize(t->runs, t->room, sizeof(*t->runs));
	}
	vec_reserve(&t->list, n);
	t->list.n = t->added.n;
}

/* By thread: a counting sort. */
static void put_threads(struct timeline *t, size_t threads)
{
	_cleanup_free_ size_t *next = mem_alloc((threads + 1) * sizeof(*next));

	free(t->first);
	t->first = mem_alloc((threads + 2) * sizeof(*t->first));
	for (size_t i = 0; i < t->added.n; i++)
		t->first[t->added.v[i].thread + 1]++;
	for (size_t i = 0; i < threads; i++) {
		if (t->first[i + 1])
			vec_push(&t->threads, i);
		t->first[i + 1] += t->first[i];
		next[i] = t->first[i];
	}
	for (size_t i = 0; i < t->added.n; i++)
		t->list.v[next[t->added.v[i].thread]++] = t->added.v[i];
}

void timeline_sort(struct timeline *t, size_t threads)
{
	make_room(t);
	put_threads(t, threads);
	for (size_t k = 0; k < t->threads.n; k++) {
		size_t from = t->first[t->threads.v[k]], to = t->first[t->threads.v[k] + 1];
		uint64_t last = 0;

		sort_spans(t, t->list.v + from, to - from);
		for (size_t i = from; i < to; i++)
			t->list.v[i].last = last = MAX(last, t->list.v[i].end);
	}
}
