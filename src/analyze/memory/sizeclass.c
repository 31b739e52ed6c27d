#include "analyze/memory/sizeclass.h"

#include <stdlib.h>

#include "base/mem.h"
#include "profile/keys.h"
#include "profile/profile.h"

uint64_t sizeclass_used(const struct sizeclass *c)
{
	return c->objects && c->size > UINT64_MAX / c->objects ? UINT64_MAX : c->size * c->objects;
}

uint64_t sizeclass_waste(const struct sizeclass *c)
{
	uint64_t used = sizeclass_used(c);

	return c->held_bytes > used ? c->held_bytes - used : 0;
}

static int compare(const void *a, const void *b)
{
	const struct sizeclass *x = a, *y = b;

	return ORDER(sizeclass_waste(y), sizeclass_waste(x)) ?: ORDER(y->held_bytes, x->held_bytes) ?:
	       ORDER(x->size, y->size);
}

void sizeclasses_read(struct sizeclasses *c, const struct profile *p)
{
	*c = (struct sizeclasses){ .cached_bytes = profile_counter(p, KEY_JEMALLOC_CACHED_BYTES),
				   .without_stats = profile_counter(p, KEY_JEMALLOC_WITHOUT_STATS),
				   .without_answer = profile_counter(p, KEY_JEMALLOC_WITHOUT_ANSWER),
				   .all.objects = 1 };
	for (size_t i = 0; i < p->counters.n; i++) {
		_cleanup_free_ char *size = key_which(KEY_JEMALLOC_CLASS_HELD_OF, profile_str(p, p->counters.v[i].name));
		struct sizeclass x = { .held_bytes = p->counters.v[i].value };

		if (!size)
			continue;
		x.size = strtoull(size, NULL, 10);
		x.objects = profile_counter_of(p, KEY_JEMALLOC_CLASS_OBJECTS_OF, size);
		x.slabs = profile_counter_of(p, KEY_JEMALLOC_CLASS_SLABS_OF, size);
		vec_push(&c->list, x);
		c->all.size += sizeclass_used(&x);
		c->all.slabs += x.slabs;
		c->all.held_bytes += x.held_bytes;
	}
	vec_sort(&c->list, compare);
}

void sizeclasses_done(struct sizeclasses *c)
{
	vec_done(&c->list);
}
