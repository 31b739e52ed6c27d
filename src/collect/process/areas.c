#include "collect/process/areas.h"

#include <string.h>

/* The first that ends behind an address. */
static size_t first_behind(const struct areas *a, uint64_t address)
{
	return vec_search(i, 0, a->list.n, a->list.v[i].end <= address);
}

/* Is every byte of it there as it should be? Neighbours may have been told as one, or one as several. */
static bool is_there(const struct areas *a, size_t i, const struct area *new)
{
	uint64_t at = new->start;

	for (; at < new->end && i < a->list.n; i++) {
		const struct area *old = &a->list.v[i];

		if (old->start > at || old->file != new->file ||
		    (new->file && old->offset + (at - old->start) != new->offset + (at - new->start)))
			return false;
		at = old->end;
	}
	return at >= new->end;
}

/* Makes room for count entries at i in place of those up to last. */
static void replace(struct areas *a, size_t i, size_t last, size_t count)
{
	size_t behind = a->list.n - last, n = i + count + behind;

	vec_reserve(&a->list, count);
	memmove(&a->list.v[i + count], &a->list.v[last], behind * sizeof(*a->list.v));
	a->list.n = n;
}

bool areas_put(struct areas *a, struct area new)
{
	size_t i = first_behind(a, new.start), last = i, n = 0;
	struct area parts[3];

	if (new.start >= new.end || is_there(a, i, &new))
		return false;
	/* The parts of an area outside of the new one stay, on both sides. */
	if (i < a->list.n && a->list.v[i].start < new.start) {
		parts[n] = a->list.v[i];
		parts[n++].end = new.start;
	}
	parts[n++] = new;
	while (last < a->list.n && a->list.v[last].start < new.end)
		last++;
	if (last > i && a->list.v[last - 1].end > new.end) {
		parts[n] = a->list.v[last - 1];
		parts[n].offset += new.end - parts[n].start;
		parts[n++].start = new.end;
	}
	replace(a, i, last, n);
	memcpy(&a->list.v[i], parts, n * sizeof(*parts));
	return true;
}
