#include "collect/heap/liveheap.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void liveheap_init(struct liveheap *h, uint64_t interval)
{
	*h = (struct liveheap){ .interval = interval };
}

void liveheap_done(struct liveheap *h)
{
	vec_done(&h->objects);
	vec_done(&h->parts);
	map_done(&h->part_index);
	free(h->slots);
	h->slots = NULL;
}

/* --- the table of objects --- */

static size_t home_of(const struct liveheap *h, uint32_t pid, uint64_t address)
{
	return (address >> 3 ^ (uint64_t)pid << 44) * 0x9e3779b97f4a7c15ULL >> (64 - h->slot_bits);
}

static size_t next_slot(const struct liveheap *h, size_t at)
{
	return (at + 1) & ((1ULL << h->slot_bits) - 1);
}

/* The slot of an object, or the free one where it belongs. */
static size_t find_slot(const struct liveheap *h, uint32_t pid, uint64_t address)
{
	size_t at = home_of(h, pid, address);

	while (h->slots[at]) {
		const struct liveheap_object *o = &h->objects.v[h->slots[at] - 1];

		if (o->address == address && o->pid == pid)
			break;
		at = next_slot(h, at);
	}
	return at;
}

/* Room for one more. */
static void grow_slots(struct liveheap *h)
{
	if (h->slots && (h->objects.n + 1) * 2 <= 1ULL << h->slot_bits)
		return;
	h->slot_bits = h->slots ? h->slot_bits + 1 : 10;
	free(h->slots);
	h->slots = mem_alloc((1ULL << h->slot_bits) * sizeof(*h->slots));
	for (size_t i = 0; i < h->objects.n; i++)
		h->slots[find_slot(h, h->objects.v[i].pid, h->objects.v[i].address)] = i + 1;
}

/* Frees a slot; later ones of the same run move back, so that none is behind a free one. */
static void clear_slot(struct liveheap *h, size_t hole)
{
	size_t mask = (1ULL << h->slot_bits) - 1;

	for (size_t i = next_slot(h, hole); h->slots[i]; i = next_slot(h, i)) {
		const struct liveheap_object *o = &h->objects.v[h->slots[i] - 1];

		if (((i - home_of(h, o->pid, o->address)) & mask) < ((i - hole) & mask))
			continue;
		h->slots[hole] = h->slots[i];
		hole = i;
	}
	h->slots[hole] = 0;
}

/* Takes an object out; the last one gets its place. */
static void remove_object(struct liveheap *h, size_t slot)
{
	size_t here = h->slots[slot] - 1, last = h->objects.n - 1;

	clear_slot(h, slot);
	if (here != last) {
		size_t at = home_of(h, h->objects.v[last].pid, h->objects.v[last].address);

		while (h->slots[at] != last + 1)
			at = next_slot(h, at);
		h->slots[at] = here + 1;
		h->objects.v[here] = h->objects.v[last];
	}
	h->objects.n--;
}

/* --- what they stand for --- */

static double chance_of(const struct liveheap *h, const struct liveheap_object *o)
{
	uint64_t interval = o->interval ? o->interval : h->interval;
	double chance = interval > 1 ? -expm1(-(double)o->size / interval) : 1;

	return chance > 0 ? chance : 1; /* of nothing, which is sampled only where everything is */
}

static void weigh(const struct liveheap *h, struct liveheap_object *o)
{
	double chance;

	o->count = 1;
	o->bytes = o->size;
	if (h->interval <= 1)
		return;
	chance = chance_of(h, o);
	o->count = 1 / chance < UINT32_MAX ? lrint(1 / chance) : UINT32_MAX;
	o->bytes = llrint(o->size / chance);
}

static double variance_of(const struct liveheap *h, const struct liveheap_object *o)
{
	return h->interval > 1 ? (double)o->bytes * o->bytes * (1 - chance_of(h, o)) : 0;
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

static uint32_t part_of(struct liveheap *h, uint32_t thread, uint32_t stack)
{
	struct liveheap_seen *seen = &h->seen[(stack ^ thread * 31) % LIVEHEAP_SEEN];
	uint64_t *at;

	if (seen->part && seen->thread == thread && seen->stack == stack)
		return seen->part - 1;
	at = map_put(&h->part_index, map_pair(thread, stack), h->parts.n);
	if (*at == h->parts.n)
		vec_push(&h->parts, (struct liveheap_part){ .thread = thread, .stack = stack });
	*seen = (struct liveheap_seen){ thread, stack, *at + 1 };
	return *at;
}

static void add_part(struct liveheap *h, const struct liveheap_object *o)
{
	struct liveheap_part *part = &h->parts.v[o->part];

	note_peak(h, part);
	part->bytes += o->bytes;
	part->count += o->count;
	h->bytes += o->bytes;
	h->count += o->count;
	h->variance += variance_of(h, o);
}

static void take_part(struct liveheap *h, const struct liveheap_object *o)
{
	struct liveheap_part *part = &h->parts.v[o->part];

	note_peak(h, part);
	part->bytes -= o->bytes;
	part->count -= o->count;
	h->bytes -= o->bytes;
	h->count -= o->count;
	h->variance -= variance_of(h, o);
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

const struct liveheap_object *liveheap_find(const struct liveheap *h, uint32_t pid, uint64_t address, size_t *ret_slot)
{
	if (!h->slots)
		return NULL;
	*ret_slot = find_slot(h, pid, address);
	return h->slots[*ret_slot] ? &h->objects.v[h->slots[*ret_slot] - 1] : NULL;
}

void liveheap_remove(struct liveheap *h, size_t slot)
{
	take_part(h, &h->objects.v[h->slots[slot] - 1]);
	remove_object(h, slot);
}

bool liveheap_free(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *ret)
{
	size_t slot;
	const struct liveheap_object *o = liveheap_find(h, pid, address, &slot);

	if (!o)
		return false;
	*ret = *o;
	liveheap_remove(h, slot);
	return true;
}

bool liveheap_pass(struct liveheap *h, uint32_t pid, uint64_t address, const struct liveheap_object *object, uint32_t *ret_part)
{
	size_t slot;

	if (h->interval > 1 || object->size > h->peak_bytes - h->bytes || liveheap_find(h, pid, address, &slot))
		return false;
	*ret_part = part_of(h, object->thread, object->stack);
	return true;
}

bool liveheap_alloc(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *object,
		    struct liveheap_object *ret_old)
{
	bool stale;
	size_t slot;

	grow_slots(h);
	slot = find_slot(h, pid, address);
	stale = h->slots[slot] && liveheap_free(h, pid, address, ret_old);
	if (stale)
		slot = find_slot(h, pid, address);
	object->pid = pid;
	object->address = address;
	object->part = part_of(h, object->thread, object->stack);
	weigh(h, object);
	/* Member by member: a copy in wider pieces than were written waits until all of them are in the cache. */
	vec_push(&h->objects, (struct liveheap_object){
		.size = object->size, .time_ns = object->time_ns, .thread = object->thread, .stack = object->stack,
		.count = object->count, .bytes = object->bytes, .address = address, .pid = pid, .part = object->part,
		.interval = object->interval });
	h->slots[slot] = h->objects.n;
	add_part(h, object);
	look_for_peak(h, object->time_ns);
	return stale;
}
