#include "analyze/memory/leak.h"

#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "profile/profile.h"

/* Names in order where the bytes are the same: the same profile gives the same table. */
static int by_bytes(const void *a, const void *b)
{
	const struct leak_row *x = a, *y = b;

	return ORDER(y->bytes, x->bytes) ?: strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

static void add(struct leak *l, struct map *index, uint32_t site, const struct profile_sample *s)
{
	uint64_t *at = map_put(index, (uint64_t)site + 1, UINT64_MAX);
	uint64_t objects = s->count ? s->count : 1;

	if (*at == UINT64_MAX) {
		struct leak_row row = { .name = "[no stack]", .module = "" };

		if (site != OWNFUNCTION_NONE)
			row = (struct leak_row){ .name = l->idents.list.v[site].name,
						 .module = l->idents.list.v[site].module };
		*at = l->rows.n;
		vec_push(&l->rows, row);
	}
	l->rows.v[*at].bytes += s->value;
	l->rows.v[*at].objects += objects;
	l->bytes += s->value;
	l->objects += objects;
}

void leak_build(struct leak *l, const struct profile *p, const char *event)
{
	uint32_t id = profile_find_event(p, event, NULL);
	_cleanup_(map_done) struct map index = { 0 }, sites = { 0 };

	*l = (struct leak){ .recorded = id != PROFILE_NONE };
	idents_init(&l->idents, p, 0);
	for (size_t i = 0; l->recorded && i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		uint64_t *site;

		if (s->event != id)
			continue;
		site = map_put(&sites, (uint64_t)s->stack + 1, UINT64_MAX);
		if (*site == UINT64_MAX)
			*site = ownfunction_of_stack(&l->idents, s->stack);
		add(l, &index, *site, s);
	}
	vec_sort(&l->rows, by_bytes);
}

void leak_done(struct leak *l)
{
	vec_done(&l->rows);
	idents_done(&l->idents);
}
