#include "analyze/task/pollstacks.h"

#include <string.h>

#include "analyze/select.h"
#include "analyze/task/tasks.h"
#include "analyze/task/tasktype.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "profile/profile.h"

/* A type of task that was polled. */
struct polled {
	const char *name;
	uint32_t stack;   /* of its frame alone */
	uint64_t ns;      /* exactly */
	uint64_t covered; /* by samples */
	uint64_t given;   /* of it, after scaling */
};

struct maker {
	struct profile *p;
	struct selection *s;
	struct tasktypes units;
	VEC(struct polled) types;
	uint32_t *of_unit; /* by unit: its type, TASKS_NONE = none */
	struct map stacks; /* to the stack below the type's frame */
};

static void find_types(struct maker *m)
{
	const struct profile *p = m->p;
	struct map index = { 0 };

	for (size_t i = 0; i < m->s->entries.n; i++) {
		const struct select_entry *e = &m->s->entries.v[i];
		const char *name = e->stack ? tasks_frame_type(p, p->stacks.v[e->stack].frame) : NULL;
		uint64_t *at;

		if (!name)
			continue;
		at = map_put(&index, e->stack, m->types.n);
		if (*at == m->types.n)
			vec_push(&m->types, (struct polled){ .name = name, .stack = e->stack });
		m->types.v[*at].ns += e->weight.value;
	}
	map_done(&index);
}

static void find_units(struct maker *m)
{
	tasktypes_init(&m->units, m->p);
	m->of_unit = mem_alloc((m->units.list.n + 1) * sizeof(*m->of_unit));
	for (size_t i = 0; i < m->units.list.n; i++) {
		const struct tasktype *unit = &m->units.list.v[i];

		m->of_unit[i] = TASKS_NONE;
		for (size_t k = 0; k < m->types.n && (unit->kind == TASKTYPE_TASK || unit->kind == TASKTYPE_BLOCKING); k++)
			if (!strcmp(m->types.v[k].name, unit->name))
				m->of_unit[i] = k;
	}
}

/* The frames of a stack from the one on with which its unit begins. */
static uint32_t stack_below(struct maker *m, uint32_t type, uint32_t stack)
{
	uint32_t unit = tasktypes_of(&m->units, stack), to = m->types.v[type].stack;
	uint64_t *known = map_get(&m->stacks, stack);
	VEC(uint32_t) frames = { 0 };

	if (known)
		return *known;
	for (uint32_t at = stack; at && tasktypes_of(&m->units, at) == unit; at = m->p->stacks.v[at].parent)
		vec_push(&frames, m->p->stacks.v[at].frame);
	for (size_t i = frames.n; i-- > 0;)
		to = profile_stack(m->p, to, frames.v[i]);
	vec_done(&frames);
	*map_put(&m->stacks, stack, 0) = to;
	return to;
}

/* CPU time and waits where both were recorded, else what there is. False: neither. */
static bool select_work(struct maker *m, struct selection *ret)
{
	struct select_options o = m->s->options;

	o.function = NULL;
	o.idle = true; /* a task that is polled has work */
	if (select_event(m->p, "wall", &o.event, NULL) && select_event(m->p, "cpu", &o.event, NULL))
		return false;
	return !selection_make(m->p, &o, ret, NULL);
}

static uint64_t scaled(const struct polled *t, uint64_t ns)
{
	return t->covered > t->ns ? (unsigned __int128)ns * t->ns / t->covered : ns;
}

static void add_work(struct maker *m, const struct selection *work)
{
	for (size_t i = 0; i < work->entries.n; i++) {
		uint32_t type = m->of_unit[tasktypes_of(&m->units, work->entries.v[i].stack)];

		if (type != TASKS_NONE)
			m->types.v[type].covered += work->entries.v[i].weight.value;
	}
	for (size_t i = 0; i < work->entries.n; i++) {
		struct select_entry e = work->entries.v[i];
		uint32_t type = m->of_unit[tasktypes_of(&m->units, e.stack)];

		if (type == TASKS_NONE)
			continue;
		e.stack = stack_below(m, type, e.stack);
		/* The number of polls stays with the type. */
		e.weight = (struct weight){ .value = scaled(&m->types.v[type], e.weight.value) };
		m->types.v[type].given += e.weight.value;
		vec_push(&m->s->entries, e);
	}
}

/* Takes from the polls of a type what its stacks have. */
static void take_rest(struct maker *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct select_entry *e = &m->s->entries.v[i];

		for (size_t k = 0; k < m->types.n; k++) {
			struct polled *t = &m->types.v[k];
			uint64_t ns;

			if (t->stack != e->stack)
				continue;
			ns = MIN(t->given, e->weight.value);
			e->weight.value -= ns;
			t->given -= ns;
		}
	}
}

void pollstacks_apply(struct profile *p, struct selection *s)
{
	struct maker m = { .p = p, .s = s };
	struct selection work = { 0 };
	size_t n = s->entries.n;

	if (s->kind != SELECT_POLLS || s->options.moments || !tasks_recorded(p) || !select_work(&m, &work))
		return;
	find_types(&m);
	find_units(&m);
	add_work(&m, &work);
	take_rest(&m, n);
	s->mixed = true;
	selection_done(&work);
	tasktypes_done(&m.units);
	vec_done(&m.types);
	map_done(&m.stacks);
	free(m.of_unit);
}
