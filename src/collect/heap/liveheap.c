#include "collect/heap/liveheap.h"

#include <math.h>

void liveheap_init(struct liveheap *h, uint64_t interval)
{
	*h = (struct liveheap){ .interval = interval };
}

void liveheap_done(struct liveheap *h)
{
	vec_done(&h->objects);
	vec_done(&h->parts);
	map_done(&h->index);
	map_done(&h->part_index);
}

static uint64_t key_of(uint32_t pid, uint64_t address)
{
	return (uint64_t)pid << 44 ^ address >> 3;
}

static double chance_of(const struct liveheap *h, uint64_t size)
{
	double chance = h->interval > 1 ? -expm1(-(double)size / h->interval) : 1;

	return chance > 0 ? chance : 1; /* of nothing, which is sampled only where everything is */
}

static void weigh(const struct liveheap *h, struct liveheap_object *o)
{
	double chance = chance_of(h, o->size);

	o->count = 1;
	o->bytes = o->size;
	if (h->interval <= 1)
		return;
	o->count = 1 / chance < UINT32_MAX ? lrint(1 / chance) : UINT32_MAX;
	o->bytes = llrint(o->size / chance);
}

/* A part that has not changed since the last peak is still as it was then: it is written down before it changes. */
static void note_peak(const struct liveheap *h, struct liveheap_part *part)
{
	if (part->peak == h->peaks)
		return;
	part->peak = h->peaks;
	part->peak_bytes = part->bytes;
	part->peak_count = part->count;
}

void liveheap_end_peak(struct liveheap *h)
{
	for (size_t i = 0; i < h->parts.n; i++)
		note_peak(h, &h->parts.v[i]);
}

static uint32_t part_of(struct liveheap *h, const struct liveheap_object *o)
{
	uint64_t *at = map_put(&h->part_index, map_pair(o->thread, o->stack), h->parts.n);

	if (*at == h->parts.n)
		vec_push(&h->parts, (struct liveheap_part){ .thread = o->thread, .stack = o->stack });
	return *at;
}

static void add_part(struct liveheap *h, const struct liveheap_object *o, bool freed)
{
	struct liveheap_part *part = &h->parts.v[o->part];
	double variance = h->interval > 1 ? (double)o->bytes * o->bytes * (1 - chance_of(h, o->size)) : 0;

	note_peak(h, part);
	h->variance += freed ? -variance : variance;
	part->bytes += freed ? -o->bytes : o->bytes;
	part->count += freed ? -(uint64_t)o->count : o->count;
	h->bytes += freed ? -o->bytes : o->bytes;
	h->count += freed ? -(uint64_t)o->count : o->count;
}

static void look_for_peak(struct liveheap *h, uint64_t time_ns)
{
	if (h->bytes <= h->peak_bytes)
		return;
	h->peaks++;
	h->peak_bytes = h->bytes;
	h->peak_ns = time_ns;
	h->peak_objects = h->objects.n;
	h->peak_variance = h->variance;
}

bool liveheap_free(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *ret)
{
	uint64_t key = key_of(pid, address), *at = map_get(&h->index, key), here;

	if (!at)
		return false;
	here = *at;
	*ret = h->objects.v[here];
	add_part(h, ret, true);
	map_remove(&h->index, key);
	h->objects.n--;
	if (here != h->objects.n) {
		h->objects.v[here] = h->objects.v[h->objects.n];
		*map_put(&h->index, key_of(h->objects.v[here].pid, h->objects.v[here].address), here) = here;
	}
	return true;
}

bool liveheap_alloc(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *object,
		    struct liveheap_object *ret_old)
{
	bool stale = liveheap_free(h, pid, address, ret_old);

	object->pid = pid;
	object->address = address;
	object->part = part_of(h, object);
	weigh(h, object);
	map_put(&h->index, key_of(pid, address), h->objects.n);
	vec_push(&h->objects, *object);
	add_part(h, object, false);
	look_for_peak(h, object->time_ns);
	return stale;
}
