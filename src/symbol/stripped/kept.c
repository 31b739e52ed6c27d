#include "symbol/stripped/kept.h"

#include "base/vec.h"
#include "elf/unwind/functions.h"
#include "profile/profile.h"

static int compare_ranges(const void *a, const void *b)
{
	const struct functions_range *x = a, *y = b;

	return ORDER(x->start, y->start);
}

/* A hostile capture may have some that overlap: these are left out. */
void kept_functions(const struct profile *p, uint32_t module, struct functions *ret)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->ranges.n; i++)
		if (p->ranges.v[i].module == module)
			vec_push(ret, (struct functions_range){ p->ranges.v[i].start, p->ranges.v[i].end });
	vec_sort(ret, compare_ranges);
	for (size_t i = 0; i < ret->n; i++)
		if (!kept || ret->v[i].start >= ret->v[kept - 1].end)
			ret->v[kept++] = ret->v[i];
	ret->n = kept;
	ret->from = FUNCTIONS_FDES;
}
