#include "export/foreign/stacksums.h"

#include "base/mem.h"
#include "export/export.h"
#include "profile/profile.h"

static void add_row(struct stacksums *s, struct map *index, const struct samplerow *row, const uint32_t *column)
{
	uint64_t *at = map_put(index, row->stack, s->list.n);

	if (*at == s->list.n) {
		vec_push(&s->list, (struct stacksum){ .stack = row->stack });
		for (size_t i = 0; i < s->events.n; i++)
			vec_push(&s->values, 0);
	}
	s->list.v[*at].count += row->count;
	s->values.v[*at * s->events.n + column[row->event]] += row->value;
}

int stacksums_make(struct stacksums *s, const struct export_job *job, struct err *err)
{
	_cleanup_free_ uint32_t *column = mem_alloc((job->profile->events.n + 1) * sizeof(*column));
	struct map index = { 0 };
	struct samplerows rows;
	int r;

	*s = (struct stacksums){ 0 };
	strtab_init(&s->files);
	strtab_init(&s->names);
	stackcalls_init(&s->calls, job);
	r = samplerows_make(&rows, job, 0, err);
	for (size_t i = 0; i < rows.events.n; i++) {
		column[rows.events.v[i]] = i;
		vec_push(&s->events, rows.events.v[i]);
	}
	for (size_t i = 0; i < rows.list.n; i++)
		add_row(s, &index, &rows.list.v[i], column);
	samplerows_done(&rows);
	map_done(&index);
	return r;
}

void stacksums_done(struct stacksums *s)
{
	vec_done(&s->events);
	vec_done(&s->list);
	vec_done(&s->functions);
	vec_done(&s->places);
	vec_done(&s->values);
	strtab_done(&s->files);
	strtab_done(&s->names);
	stackcalls_done(&s->calls);
	map_done(&s->links);
}

static void add_place(struct stacksums *s, const struct stackcall *call)
{
	uint32_t name = strtab_add(&s->names, call->name), module = strtab_add(&s->names, call->module);
	uint64_t *id = map_put(&s->links, map_pair(name, module), s->functions.n);
	struct stackplace place = { .function = *id, .file = strtab_add(&s->files, call->file), .line = call->line };

	if (*id == s->functions.n)
		vec_push(&s->functions, (struct stackfunction){ strtab_get(&s->names, name), strtab_get(&s->names, module),
								.kind = call->kind });
	if (!s->functions.v[place.function].file)
		s->functions.v[place.function].file = place.file;
	vec_push(&s->places, place);
}

void stacksums_places(struct stacksums *s, size_t i)
{
	vec_clear(&s->places);
	stackcalls_of(&s->calls, s->list.v[i].stack);
	for (size_t k = 0; k < s->calls.list.n; k++)
		add_place(s, &s->calls.list.v[k]);
	if (!s->places.n)
		add_place(s, &(struct stackcall){ .name = "[no stack]", .file = "", .module = "", .kind = IDENT_NOTE });
}
