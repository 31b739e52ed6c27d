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

void heapsums_add(struct heapsums *h, enum heapsums_what what, uint32_t part, uint64_t bytes, uint64_t peaks)
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
	s->after[what].bytes += bytes;
	s->after[what].count++;
}

void heapsums_lifetime(struct heapsums *h, uint64_t ns)
{
	h->lifetimes[ns ? 63 - __builtin_clzll(ns) : 0]++;
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

void heapsums_flush(struct heapsums *h, const struct liveheap *live, struct profile *p, uint64_t time_ns, bool must)
{
	struct profile_histogram *histogram;

	if (time_ns < h->until_ns && !must)
		return;
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
