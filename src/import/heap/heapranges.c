#include "import/heap/heapranges.h"

#include "import/heap/heapsink.h"
#include "profile/profile.h"

void heapranges_done(struct heapranges *h)
{
	vec_done(&h->list);
	map_done(&h->frames);
}

void heapranges_clear(struct heapranges *h)
{
	vec_clear(&h->list);
	map_clear(&h->frames);
}

void heapranges_add(struct heapranges *h, uint32_t module, uint64_t base, uint64_t address, uint64_t size)
{
	struct heaprange r = { .start = base + address, .base = base, .module = module };

	if (__builtin_add_overflow(r.start, size, &r.end))
		r.end = UINT64_MAX;
	vec_push(&h->list, r);
	h->sorted = false;
}

static int compare(const void *a, const void *b)
{
	const struct heaprange *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->end, y->end);
}

static struct heaprange *find(struct heapranges *h, uint64_t address)
{
	size_t after;

	if (!h->sorted)
		vec_sort(&h->list, compare);
	h->sorted = true;
	after = vec_search(i, 0, h->list.n, h->list.v[i].start <= address);
	return after && address < h->list.v[after - 1].end ? &h->list.v[after - 1] : NULL;
}

static uint32_t make_frame(struct heapranges *h, uint64_t address)
{
	struct heaprange *r = find(h, address);
	struct profile *p = h->sink->p;

	if (!r)
		return profile_frame(p, PROFILE_NONE, FRAME_USER, address);
	if (!r->mapped)
		profile_add_mapping(p, &(struct profile_mapping){ .module = r->module, .start = r->start, .end = r->end,
								  .bias = r->base });
	r->mapped = true;
	return profile_frame(p, r->module, FRAME_USER, address - r->base);
}

uint32_t heapranges_frame(struct heapranges *h, uint64_t address)
{
	uint64_t *frame = map_put(&h->frames, address, PROFILE_NONE);

	if (*frame == PROFILE_NONE)
		*frame = make_frame(h, address);
	return *frame;
}
