#include "capture/scan/coarse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "profile/profile.h"

enum { BUCKETS = 1 << 17, BUCKET_SHIFT = 32 - 17, EVENTS_MOST = 64, MOST_GROUPS = 1 << 20 };

/* The largest share that a node has of the weight of any event. A caller has at least that of what it calls. */
static float *weigh(const struct profile *p)
{
	size_t n = p->stacks.n;
	float *shares = mem_alloc((n + 1) * sizeof(*shares));
	_cleanup_free_ double *total = mem_alloc((n + 1) * sizeof(*total));

	for (uint32_t e = 0; e < MIN(p->events.n, (size_t)EVENTS_MOST); e++) {
		memset(total, 0, n * sizeof(*total));
		for (size_t i = 0; i < p->samples.n; i++)
			if (p->samples.v[i].event == e)
				total[p->samples.v[i].stack] += (double)p->samples.v[i].value;
		for (size_t i = n; i-- > 1;)
			total[p->stacks.v[i].parent] += total[i];
		for (size_t i = 0; i < n && total[0] > 0; i++)
			shares[i] = MAX(shares[i], (float)(total[i] / total[0]));
	}
	return shares;
}

/* Floats that are not negative are in the order of their bits. */
static uint32_t bucket_of(float share)
{
	uint32_t bits;

	memcpy(&bits, &share, sizeof(bits));
	return bits >> BUCKET_SHIFT;
}

/* The bucket from which on nodes stay: at most so many of them. */
static uint32_t find_limit(const float *shares, size_t n, size_t nodes)
{
	_cleanup_free_ size_t *counts = mem_alloc(BUCKETS * sizeof(*counts));
	uint32_t limit = BUCKETS;
	size_t above = 0;

	for (size_t i = 0; i < n; i++)
		counts[bucket_of(shares[i])]++;
	while (limit > 1 && above + counts[limit - 1] <= nodes)
		above += counts[--limit];
	return limit;
}

/* By stack: the one that stands for it. Caller frees. */
static uint32_t *replace_stacks(struct profile *p, size_t nodes)
{
	size_t n = p->stacks.n;
	_cleanup_free_ float *shares = weigh(p);
	uint32_t *with = mem_alloc((n + 1) * sizeof(*with)), limit = find_limit(shares, n, nodes);
	uint32_t note = profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "[left out]");

	for (uint32_t i = 1; i < n; i++) {
		uint32_t parent = p->stacks.v[i].parent;

		if (bucket_of(shares[i]) >= limit)
			with[i] = i;
		else
			with[i] = with[parent] == parent ? profile_stack(p, parent, note) : with[parent];
	}
	return with;
}

/* Puts the samples of one event and thread together: a counting sort. The recorder's sums are so already. */
static void group_samples(struct profile *p)
{
	size_t groups = p->events.n * p->threads.n, n = p->samples.n;
	_cleanup_free_ size_t *next = NULL;
	struct profile_sample *sorted;

	if (groups > MOST_GROUPS || !n)
		return;
	next = mem_alloc((groups + 2) * sizeof(*next));
	sorted = mem_resize(NULL, n, sizeof(*sorted));
	for (size_t i = 0; i < n; i++)
		next[p->samples.v[i].event * p->threads.n + p->samples.v[i].thread + 1]++;
	for (size_t i = 1; i <= groups; i++)
		next[i] += next[i - 1];
	for (size_t i = 0; i < n; i++)
		sorted[next[p->samples.v[i].event * p->threads.n + p->samples.v[i].thread]++] = p->samples.v[i];
	free(p->samples.v);
	p->samples.v = sorted;
	p->samples.capacity = n;
}

void coarse_make(struct profile *p, size_t nodes)
{
	_cleanup_free_ uint32_t *with = replace_stacks(p, nodes);
	/* By stack: 1 + the last sample of it. Those of one event and thread mostly come together. */
	_cleanup_free_ uint32_t *last = mem_alloc((p->stacks.n + 1) * sizeof(*last));
	size_t n = 0;

	group_samples(p);
	for (size_t i = 0; i < p->samples.n; i++) {
		struct profile_sample s = p->samples.v[i], *to;

		s.stack = with[s.stack];
		s.count = MAX(s.count, 1u);
		s.time_ns = 0;
		to = last[s.stack] ? &p->samples.v[last[s.stack] - 1] : NULL;
		if (to && to->event == s.event && to->thread == s.thread && s.count <= UINT32_MAX - to->count &&
		    s.value <= UINT64_MAX - to->value) {
			to->value += s.value;
			to->count += s.count;
			continue;
		}
		p->samples.v[n++] = s;
		last[s.stack] = MIN(n, (size_t)UINT32_MAX - 1);
	}
	p->samples.n = n;
}
