#include "collect/heap/residency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/heap/liveheap.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/memory/memory.h"

enum { SHARE = 100 /* one part in so many of the time */ };

uint64_t residency_size_class(const char *allocators, uint64_t n)
{
	uint64_t step = 16;

	if (n > UINT64_MAX / 2)
		return 0;
	/* Two allocators in one process: nearly all is jemalloc's, or it would not be there. */
	if (strstr(allocators, "jemalloc")) { /* four classes for each doubling, at least 16 apart */
		if (n <= 8)
			return 8;
		if (n > 128)
			step = 1ULL << (61 - __builtin_clzll(n - 1));
		return (n + step - 1) / step * step;
	}
	if (strstr(allocators, "C library")) /* glibc: 8 bytes before each, in steps of 16 */
		return MAX(32, (n + 8 + 15) / 16 * 16);
	return 0;
}

/* The objects of one process, from first on; those are marked as done. */
static void note_process(const struct liveheap *h, size_t first, uint8_t *done, struct memory_resident *sum)
{
	VEC(struct memory_object) objects = { 0 };
	struct memory_resident one;

	for (size_t i = first; i < h->objects.n; i++) {
		const struct liveheap_object *o = &h->objects.v[i];

		if (o->pid != h->objects.v[first].pid)
			continue;
		done[i] = 1;
		vec_push(&objects, (struct memory_object){ o->address, o->size, o->bytes });
	}
	if (!memory_resident(h->objects.v[first].pid, objects.v, objects.n, &one)) {
		sum->bytes += one.bytes;
		sum->arena_bytes += one.arena_bytes;
	}
	vec_done(&objects);
}

static void count_class(struct profile *p, const char *family, uint64_t size, uint64_t bytes)
{
	char class[24];

	snprintf(class, sizeof(class), "%llu", (unsigned long long)size);
	profile_count_set_of(p, family, class, bytes);
}

void residency_classes(struct profile *p, const struct liveheap *h, const char *allocators)
{
	_cleanup_(map_done) struct map live = { 0 }, rounding = { 0 };
	uint64_t all = 0;

	for (size_t i = 0; i < h->objects.n; i++) {
		const struct liveheap_object *o = &h->objects.v[i];
		uint64_t size = residency_size_class(allocators, o->size);
		uint64_t more = size > o->size ? (size - o->size) * o->count : 0;

		if (!size)
			continue;
		*map_put(&live, size, 0) += o->bytes;
		*map_put(&rounding, size, 0) += more;
		all += more;
	}
	for (size_t i = 0; i < live.capacity; i++)
		if (live.slots[i].used) {
			count_class(p, KEY_HEAP_CLASS_LIVE_OF, live.slots[i].key, live.slots[i].value);
			count_class(p, KEY_HEAP_CLASS_ROUNDING_OF, live.slots[i].key,
				    *map_get(&rounding, live.slots[i].key));
		}
	profile_count_set(p, KEY_HEAP_ROUNDING_BYTES, all);
}

void residency_note(struct residency *r, struct profile *p, const struct liveheap *h, uint64_t time_ns, bool must)
{
	uint64_t begin = clock_mono_ns();
	_cleanup_free_ uint8_t *done = NULL;
	struct memory_resident sum = { 0 };

	if (begin < r->next_ns && !must)
		return;
	done = mem_alloc(h->objects.n + 1);
	for (size_t i = 0; i < h->objects.n; i++)
		if (!done[i])
			note_process(h, i, done, &sum);
	r->next_ns = clock_mono_ns() + (clock_mono_ns() - begin) * SHARE;
	if (!sum.arena_bytes) /* nothing is alive, or the process is gone: what was seen last stays */
		return;
	if (!r->begun) {
		r->resident_series = profile_series(p, KEY_HEAP_RESIDENT);
		r->arenas_series = profile_series(p, KEY_HEAP_ARENAS);
		r->begun = true;
	}
	profile_add_point(p, r->resident_series, time_ns, sum.bytes);
	profile_add_point(p, r->arenas_series, time_ns, sum.arena_bytes);
	profile_count_set(p, KEY_HEAP_RESIDENT_BYTES, sum.bytes);
}
