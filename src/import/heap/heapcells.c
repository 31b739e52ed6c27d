#include "import/heap/heapcells.h"

#include <errno.h>

#include "base/err.h"
#include "import/heap/heapsink.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { SLOT_NS = 10000000, SLOT_PART = 256, LAST_NS = 1000000 };

void heapcells_init(struct heapcells *c, struct heapsink *sink)
{
	struct profile *p = sink->p;

	*c = (struct heapcells){ .sink = sink };
	c->heap = profile_add_event(p, "heap", "bytes", "never freed", 0);
	c->events[HEAPCELLS_ALLOC] = profile_add_event(p, "alloc", "bytes", "allocated", 0);
	c->events[HEAPCELLS_FREED] = profile_add_event(p, "freed", "bytes", "freed, by where it was allocated", 0);
	c->events[HEAPCELLS_TEMPORARY] =
		profile_add_event(p, "temporary", "bytes", "freed before the next allocation, by where it was allocated", 0);
	c->peak = profile_add_event(p, "peak", "bytes", "alive when it was most", 0);
	c->live_series = profile_series(p, KEY_HEAP_LIVE);
	c->rate_series = profile_series(p, KEY_HEAP_ALLOCATED);
}

void heapcells_done(struct heapcells *c)
{
	vec_done(&c->list);
	vec_done(&c->used);
}

uint32_t heapcells_new(struct heapcells *c, uint32_t stack)
{
	vec_push(&c->list, (struct heapcell){ .stack = stack });
	return c->list.n - 1;
}

/* --- what happens --- */

/* If there was another peak since something happened here last, all of that came before it. */
static void fold(struct heapcells *c, struct heapcell *cell)
{
	if (cell->peaks == c->peaks)
		return;
	cell->peak = cell->live;
	cell->peaks = c->peaks;
	for (int i = 0; i < HEAPCELLS_WHATS; i++) {
		cell->before[i].bytes += cell->after[i].bytes;
		cell->before[i].count += cell->after[i].count;
		cell->after[i] = (struct heapcells_pair){ 0 };
	}
}

static struct heapcell *touch(struct heapcells *c, uint32_t at)
{
	struct heapcell *cell = &c->list.v[at];

	fold(c, cell);
	if (!cell->used)
		vec_push(&c->used, at);
	cell->used = true;
	return cell;
}

int heapcells_alloc(struct heapcells *c, uint32_t at, uint64_t bytes, struct err *err)
{
	struct heapcell *cell;

	if (__builtin_add_overflow(c->allocated_bytes, bytes, &c->allocated_bytes) || c->allocated_bytes > INT64_MAX)
		return err_set(err, ERANGE, "allocations add up to more than can be counted");
	cell = touch(c, at);
	cell->after[HEAPCELLS_ALLOC].bytes += bytes;
	cell->after[HEAPCELLS_ALLOC].count++;
	cell->live.bytes += bytes;
	cell->live.count++;
	c->allocations++;
	c->live_bytes += bytes;
	if (c->live_bytes > c->peak_bytes) {
		c->peak_bytes = c->live_bytes;
		c->peak_ns = c->now_ns;
		c->peaks++;
	}
	return 0;
}

bool heapcells_free(struct heapcells *c, uint32_t at, uint64_t bytes, bool temporary)
{
	struct heapcell *cell = &c->list.v[at];

	/* A file that was made of sums may have more frees than allocations, of the same bytes. */
	if (cell->live.bytes < bytes || (!cell->live.count && !bytes))
		return false;
	cell = touch(c, at);
	cell->after[HEAPCELLS_FREED].bytes += bytes;
	cell->after[HEAPCELLS_FREED].count++;
	if (temporary) {
		cell->after[HEAPCELLS_TEMPORARY].bytes += bytes;
		cell->after[HEAPCELLS_TEMPORARY].count++;
	}
	cell->live.bytes -= bytes;
	cell->live.count -= !!cell->live.count;
	c->live_bytes -= bytes;
	return true;
}

void heapcells_reset(struct heapcells *c)
{
	for (size_t i = 0; i < c->list.n; i++)
		c->list.v[i] = (struct heapcell){ .stack = c->list.v[i].stack };
	vec_clear(&c->used);
	heapsink_forget(c->sink);
	c->live_bytes = c->peak_bytes = c->allocations = c->allocated_bytes = c->peaks = c->slot_bytes = 0;
}

/* --- samples --- */

static int add_pairs(struct heapcells *c, uint32_t stack, const struct heapcells_pair *pairs, uint64_t time_ns, struct err *err)
{
	int r = 0;

	for (int i = 0; i < HEAPCELLS_WHATS && !r; i++)
		r = heapsink_add(c->sink, &(struct heapsink_value){ c->events[i], stack, pairs[i].bytes, pairs[i].count, time_ns },
				 err);
	return r;
}

static int flush(struct heapcells *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->used.n && !r; i++) {
		struct heapcell *cell = &c->list.v[c->used.v[i]];

		fold(c, cell);
		r = add_pairs(c, cell->stack, cell->before, c->peak_ns, err);
		r = r ?: add_pairs(c, cell->stack, cell->after, c->now_ns, err);
		for (int k = 0; k < HEAPCELLS_WHATS; k++)
			cell->before[k] = cell->after[k] = (struct heapcells_pair){ 0 };
		cell->used = false;
	}
	vec_clear(&c->used);
	profile_add_point(c->sink->p, c->live_series, c->now_ns, c->live_bytes);
	profile_add_point(c->sink->p, c->rate_series, c->now_ns, c->allocated_bytes - c->slot_bytes);
	c->slot_bytes = c->allocated_bytes;
	c->slot_ns = c->now_ns;
	return r;
}

int heapcells_time(struct heapcells *c, uint64_t now_ns, struct err *err)
{
	c->now_ns = now_ns;
	return now_ns - c->slot_ns >= MAX((uint64_t)SLOT_NS, now_ns / SLOT_PART) ? flush(c, err) : 0;
}

int heapcells_end(struct heapcells *c, struct err *err)
{
	int r;

	/* What came after a peak at the last time must not be a part of it. */
	c->now_ns += LAST_NS;
	r = flush(c, err);
	for (size_t i = 0; i < c->list.n && !r; i++) {
		struct heapcell *cell = &c->list.v[i];

		fold(c, cell);
		r = heapsink_add(c->sink, &(struct heapsink_value){ c->heap, cell->stack, cell->live.bytes, cell->live.count, c->now_ns },
				 err);
		r = r ?: heapsink_add(c->sink, &(struct heapsink_value){ c->peak, cell->stack, cell->peak.bytes, cell->peak.count,
									 c->peak_ns }, err);
	}
	profile_count_set(c->sink->p, KEY_HEAP_ALLOCATED_BYTES, c->allocated_bytes);
	profile_count_set(c->sink->p, KEY_HEAP_ALLOCATIONS, c->allocations);
	profile_count_set(c->sink->p, KEY_HEAP_INTERVAL_BYTES, 1);
	return r;
}
