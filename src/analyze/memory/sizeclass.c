#include "analyze/memory/sizeclass.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

#define PREFIX "jemalloc.class."

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

	if (sizeclass_waste(x) != sizeclass_waste(y))
		return sizeclass_waste(x) < sizeclass_waste(y) ? 1 : -1;
	if (x->held_bytes != y->held_bytes)
		return x->held_bytes < y->held_bytes ? 1 : -1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static uint64_t of_class(const struct profile *p, uint64_t size, const char *what)
{
	_cleanup_free_ char *name = mem_printf(PREFIX "%llu.%s", (unsigned long long)size, what);

	return profile_counter(p, name);
}

void sizeclasses_read(struct sizeclasses *c, const struct profile *p)
{
	*c = (struct sizeclasses){ .cached_bytes = profile_counter(p, "jemalloc.cached bytes"),
				   .without_stats = profile_counter(p, "jemalloc.without stats"),
				   .without_answer = profile_counter(p, "jemalloc.without answer"),
				   .all.objects = 1 };
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *name = profile_str(p, p->counters.v[i].name);
		struct sizeclass x = { .held_bytes = p->counters.v[i].value };

		if (!str_starts(name, PREFIX) || !str_ends(name, ".held"))
			continue;
		x.size = strtoull(name + strlen(PREFIX), NULL, 10);
		x.objects = of_class(p, x.size, "objects");
		x.slabs = of_class(p, x.size, "slabs");
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
