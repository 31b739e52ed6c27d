#include "export/foreign/heap/heapplaces.h"

#include "profile/profile.h"

/* Beyond all addresses of processes, which have 57 bits at most. */
static const uint64_t nowhere = 0xf00000000000000ULL;
enum { APART = 16 };

void heapplaces_init(struct heapplaces *h, const struct profile *p)
{
	*h = (struct heapplaces){ .p = p };
	for (size_t i = 0; i < p->mappings.n; i++)
		vec_push(&h->next, PROFILE_NONE);
	/* The first of a module is to be found first. */
	for (size_t i = p->mappings.n; i-- > 0;) {
		uint64_t *first = map_put(&h->of_module, p->mappings.v[i].module, PROFILE_NONE);

		h->next.v[i] = *first;
		*first = i;
	}
}

void heapplaces_done(struct heapplaces *h)
{
	vec_done(&h->mapped);
	vec_done(&h->next);
	map_done(&h->frames);
	map_done(&h->taken);
	map_done(&h->of_module);
	map_done(&h->known);
}

/* The mapping with the frame's code, or PROFILE_NONE. */
static uint32_t mapping_of(const struct heapplaces *h, const struct profile_frame *f)
{
	const uint64_t *first = f->kind == FRAME_USER && f->module != PROFILE_NONE ? map_get(&h->of_module, f->module) : NULL;

	for (uint32_t i = first ? *first : PROFILE_NONE; i != PROFILE_NONE; i = h->next.v[i]) {
		const struct profile_mapping *m = &h->p->mappings.v[i];

		if (f->address + m->bias >= m->start && f->address + m->bias < m->end)
			return i;
	}
	return PROFILE_NONE;
}

uint64_t heapplaces_of(struct heapplaces *h, uint32_t frame)
{
	const struct profile_frame *f = &h->p->frames.v[frame];
	uint64_t *known = map_get(&h->frames, frame), address = 0;
	uint32_t mapping;

	if (known)
		return *known;
	mapping = f->address ? mapping_of(h, f) : PROFILE_NONE;
	if (mapping != PROFILE_NONE)
		address = f->address + h->p->mappings.v[mapping].bias;
	if (!address || map_get(&h->taken, address))
		address = nowhere + (uint64_t)frame * APART;
	else if (!map_get(&h->known, mapping)) {
		map_put(&h->known, mapping, 1);
		vec_push(&h->mapped, mapping);
	}
	map_put(&h->taken, address, frame);
	map_put(&h->frames, frame, address);
	return address;
}
