#include "collect/heap/heapsums.h"

#include <string.h>

#include "collect/heap/liveheap.h"
#include "collect/shared.h"
#include "profile/keys.h"
#include "profile/profile.h"

void heapsums_done(struct heapsums *h)
{
	vec_done(&h->sums);
	vec_done(&h->used);
}

/* There was another peak since: all of it came before that. */
static void fold(struct heapsums_sum *s, uint64_t peaks)
{
	if (s->peaks == peaks)
		return;
	for (int i = 0; i < HEAPSUMS_COUNT; i++) {
		s->before[i].bytes += s->after[i].bytes;
		s->before[i].count += s->after[i].count;
		s->after[i] = (struct heapsums_pair){ 0 };
	}
	s->peaks = peaks;
}

/* The sums of a part, as they are since the last peak. */
static struct heapsums_sum *sum_of(struct heapsums *h, uint32_t part, uint64_t peaks)
{
	struct heapsums_sum *s;

	while (h->sums.n <= part)
		vec_push(&h->sums, (struct heapsums_sum){ 0 });
	s = &h->sums.v[part];
	if (!s->used) {
		*s = (struct heapsums_sum){ .used = true, .peaks = peaks };
		vec_push(&h->used, part);
	}
	fold(s, peaks);
	return s;
}

void heapsums_alloc(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks)
{
	struct heapsums_pair *p = &sum_of(h, part, peaks)->after[HEAPSUMS_ALLOC];

	p->bytes += bytes;
	p->count++;
}

static void note_lifetime(struct heapsums *h, uint64_t ns)
{
	h->lifetimes[ns ? 63 - __builtin_clzll(ns) : 0]++;
}

void heapsums_free(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks, uint64_t ns, bool at_once)
{
	struct heapsums_sum *s = sum_of(h, part, peaks);

	s->after[HEAPSUMS_FREED].bytes += bytes;
	s->after[HEAPSUMS_FREED].count++;
	if (at_once) {
		s->after[HEAPSUMS_TEMPORARY].bytes += bytes;
		s->after[HEAPSUMS_TEMPORARY].count++;
	}
	note_lifetime(h, ns);
}

void heapsums_pair(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks, uint64_t ns)
{
	struct heapsums_sum *s = sum_of(h, part, peaks);

	for (int i = 0; i < HEAPSUMS_COUNT; i++) {
		s->after[i].bytes += bytes;
		s->after[i].count++;
	}
	note_lifetime(h, ns);
}

static void add_samples(const struct heapsums *h, struct profile *p, const struct liveheap_part *part,
			const struct heapsums_pair *pairs, uint64_t time_ns)
{
	for (int i = 0; i < HEAPSUMS_COUNT; i++)
		if (pairs[i].count)
			profile_add_sample(p, &(struct profile_sample){
				.event = h->events[i], .time_ns = time_ns, .thread = part->thread, .stack = part->stack,
				.value = pairs[i].bytes, .count = MIN(pairs[i].count, UINT32_MAX) });
}

void heapsums_flush_now(struct heapsums *h, const struct liveheap *live, struct profile *p, uint64_t time_ns)
{
	struct profile_histogram *histogram;

	h->until_ns = time_ns + SHARED_SLOT_NS;
	for (size_t i = 0; i < h->used.n; i++) {
		struct heapsums_sum *s = &h->sums.v[h->used.v[i]];
		const struct liveheap_part *part = &live->parts.v[h->used.v[i]];

		fold(s, live->peaks);
		add_samples(h, p, part, s->before, live->peak_ns);
		add_samples(h, p, part, s->after, time_ns);
		s->used = false;
	}
	if (!h->used.n)
		return;
	vec_clear(&h->used);
	histogram = profile_histogram(p, KEY_HEAP_LIFETIME);
	for (int i = 0; i < 64; i++)
		histogram->counts[i] += h->lifetimes[i];
	memset(h->lifetimes, 0, sizeof(h->lifetimes));
}
