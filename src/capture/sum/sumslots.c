#include "capture/sum/sumslots.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "profile/profile.h"

enum {
	ENOUGH = 4,             /* marks of a kind, below which none is slow; as `gasflame blocks` has it */
	SLOW_PERCENT = 150,     /* of the median; the same */
	RECENT = 4096,          /* marks of which the median is taken */
	MOMENT_NS = 1000000000, /* a moment lasts until the next one: as long a mark it counts among the others */
};

/* Where a slot may end, and the length of the mark that begins or ends there. */
struct border {
	uint64_t time_ns, mark_ns;
};

struct borders {
	struct border *v;
	size_t n, capacity;
};

static int compare_lengths(const void *a, const void *b)
{
	const struct border *x = a, *y = b;

	return ORDER(y->mark_ns, x->mark_ns) ?: ORDER(x->time_ns, y->time_ns);
}

static int compare_times(const void *a, const void *b)
{
	return ORDER(((const struct border *)a)->time_ns, ((const struct border *)b)->time_ns);
}

static void add_borders(struct borders *b, uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t length = end_ns > start_ns ? end_ns - start_ns : MOMENT_NS;

	if (start_ns > from_ns && start_ns < to_ns)
		vec_push(b, (struct border){ start_ns, length });
	if (end_ns != start_ns && end_ns > from_ns && end_ns < to_ns)
		vec_push(b, (struct border){ end_ns, length });
}

/* Borders of the longest marks and of all spans that stay, by time. */
static void find_borders(struct borders *b, const struct profile *p, const struct sumspans *full, uint64_t from_ns,
			 uint64_t to_ns)
{
	for (size_t i = 0; i < p->marks.n; i++)
		add_borders(b, p->marks.v[i].start_ns, p->marks.v[i].end_ns, from_ns, to_ns);
	vec_sort(b, compare_lengths);
	b->n = MIN(b->n, (size_t)SUMSLOTS_CUTS);
	for (size_t i = 0; i < full->n; i++)
		add_borders(b, full->v[i].start_ns, full->v[i].end_ns, from_ns, to_ns);
	vec_sort(b, compare_times);
}

static bool is_full(const struct sumspans *full, uint64_t time_ns)
{
	for (size_t i = 0; i < full->n; i++)
		if (full->v[i].start_ns <= time_ns && time_ns < full->v[i].end_ns)
			return true;
	return false;
}

static size_t first_from(const struct sumslots *s, uint64_t time_ns)
{
	return vec_search(i, 0, s->n, s->v[i].start_ns < time_ns);
}

void sumslots_cut(struct sumslots *s, const struct profile *p, const struct sumspans *full, uint64_t from_ns, uint64_t to_ns)
{
	struct borders borders = { 0 };
	struct sumslots new = { 0 };
	size_t first = first_from(s, from_ns), after = first_from(s, to_ns);
	uint64_t start = from_ns;

	find_borders(&borders, p, full, from_ns, to_ns);
	for (size_t i = 0; i <= borders.n && from_ns < to_ns; i++) {
		uint64_t end = i < borders.n ? borders.v[i].time_ns : to_ns;

		if (end > start)
			vec_push(&new, (struct sumslot){ start, end, is_full(full, start) });
		start = end;
	}
	vec_reserve(s, new.n);
	if (s->n > after)
		memmove(s->v + first + new.n, s->v + after, (s->n - after) * sizeof(*s->v));
	if (new.n)
		memcpy(s->v + first, new.v, new.n * sizeof(*s->v));
	s->n += new.n - (after - first);
	vec_done(&new);
	vec_done(&borders);
}

const struct sumslot *sumslots_at(const struct sumslots *s, uint64_t time_ns)
{
	size_t after = vec_search(i, 0, s->n, s->v[i].start_ns <= time_ns);

	return after && time_ns < s->v[after - 1].end_ns ? &s->v[after - 1] : NULL;
}

/* --- marks that stay as they are --- */

static int compare_u64(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* 0: there are too few. */
static uint64_t median_ns(const struct profile *p, uint32_t kind)
{
	size_t first = p->marks.n > RECENT ? p->marks.n - RECENT : 0;
	VEC(uint64_t) lengths = { 0 };
	uint64_t median;

	for (size_t i = first; i < p->marks.n; i++)
		if (p->marks.v[i].kind == kind && p->marks.v[i].end_ns > p->marks.v[i].start_ns)
			vec_push(&lengths, p->marks.v[i].end_ns - p->marks.v[i].start_ns);
	vec_sort(&lengths, compare_u64);
	median = lengths.n < ENOUGH ? 0 : lengths.v[lengths.n / 2];
	vec_done(&lengths);
	return median;
}

void sumspans_add_slow(struct sumspans *full, const struct profile *p, uint64_t from_ns, uint64_t to_ns)
{
	_cleanup_(map_done) struct map medians = { 0 };

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];
		uint64_t *median;

		if (m->start_ns < from_ns || m->start_ns >= to_ns || m->end_ns <= m->start_ns)
			continue;
		median = map_get(&medians, m->kind);
		if (!median)
			median = map_put(&medians, m->kind, median_ns(p, m->kind));
		if (*median && (m->end_ns - m->start_ns) / SLOW_PERCENT >= *median / 100)
			vec_push(full, (struct sumspan){ m->start_ns, m->end_ns });
	}
}

bool sumspans_drop_shortest(struct sumspans *full, struct sumspan *ret)
{
	size_t shortest = 0;

	if (!full->n)
		return false;
	for (size_t i = 1; i < full->n; i++)
		if (full->v[i].end_ns - full->v[i].start_ns < full->v[shortest].end_ns - full->v[shortest].start_ns)
			shortest = i;
	*ret = full->v[shortest];
	full->v[shortest] = full->v[--full->n];
	return true;
}
