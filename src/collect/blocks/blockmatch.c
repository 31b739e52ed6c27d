#include "collect/blocks/blockmatch.h"

#include <string.h>

enum { MOST = 65536 };
static const uint64_t farthest_ns = 2000000000; /* from the return to where the block is seen */
static const uint64_t blurred_ns = 20000000;    /* how late a look may be for a block that was there at the last one */

void blockmatch_add(struct blockmatch *b, const struct blockmatch_span *s)
{
	size_t at;

	if (b->spans.n == MOST) {
		memmove(b->spans.v, b->spans.v + 1, (MOST - 1) * sizeof(*b->spans.v));
		b->spans.n--;
	}
	vec_push(&b->spans, *s);
	/* They come nearly in order. */
	for (at = b->spans.n - 1; at && b->spans.v[at - 1].end_ns > s->end_ns; at--)
		b->spans.v[at] = b->spans.v[at - 1];
	b->spans.v[at] = *s;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool fits(const struct blockmatch_span *s, uint64_t seen_ns)
{
	return !s->used && s->start_ns <= seen_ns && distance(s->end_ns, seen_ns) <= farthest_ns;
}

const struct blockmatch_span *blockmatch_at(struct blockmatch *b, uint64_t seen_ns, size_t later)
{
	struct blockmatch_span *best = NULL, *s;

	for (size_t i = 0; i < b->spans.n; i++) {
		s = &b->spans.v[i];
		if (fits(s, seen_ns) && (!best || distance(s->end_ns, seen_ns) < distance(best->end_ns, seen_ns)))
			best = s;
	}
	/* That is the last one's; those before it are of the spans before. */
	for (s = best; s && later; later--) {
		do
			s = s > b->spans.v ? s - 1 : NULL;
		while (s && !fits(s, seen_ns));
	}
	if (s)
		s->used = true;
	return s;
}

/* Did it end between two looks, or, under_way, was it not done at the second? */
static bool lies_between(const struct blockmatch_span *s, uint64_t since_ns, uint64_t seen_ns, bool under_way)
{
	if (s->used || s->start_ns > seen_ns || s->end_ns + blurred_ns < since_ns)
		return false;
	return under_way ? s->end_ns <= seen_ns + farthest_ns : s->end_ns <= seen_ns;
}

const struct blockmatch_span *blockmatch_between(struct blockmatch *b, uint64_t since_ns, uint64_t seen_ns, size_t later)
{
	bool under_way;
	size_t n = 0, pick;

	for (size_t i = 0; i < b->spans.n; i++)
		n += lies_between(&b->spans.v[i], since_ns, seen_ns, false);
	/* A block may be there before its function returns: where too few have ended. */
	under_way = n < later + 1;
	if (under_way)
		for (size_t i = n = 0; i < b->spans.n; i++)
			n += lies_between(&b->spans.v[i], since_ns, seen_ns, true);
	if (n < later + 1)
		return NULL;
	pick = under_way ? 0 : n - 1 - later;
	for (size_t i = 0; i < b->spans.n; i++)
		if (lies_between(&b->spans.v[i], since_ns, seen_ns, under_way) && !pick--) {
			b->spans.v[i].used = true;
			return &b->spans.v[i];
		}
	return NULL;
}

void blockmatch_expire(struct blockmatch *b, uint64_t before_ns, blockmatch_fn *fn, void *context)
{
	size_t n = 0;

	while (n < b->spans.n && b->spans.v[n].end_ns < before_ns) {
		if (!b->spans.v[n].used)
			fn(context, &b->spans.v[n]);
		n++;
	}
	if (!n)
		return;
	b->spans.n -= n;
	memmove(b->spans.v, b->spans.v + n, b->spans.n * sizeof(*b->spans.v));
}

void blockmatch_done(struct blockmatch *b)
{
	vec_done(&b->spans);
}
