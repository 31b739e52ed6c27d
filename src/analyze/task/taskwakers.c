#include "analyze/task/taskwakers.h"

#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "analyze/wait/cause.h"
#include "base/mem.h"
#include "profile/profile.h"

void taskwakers_begin(struct taskwakers *m)
{
	tasktypes_init(&m->units, m->p);
	strtab_init(&m->functions);
	/* All types, as each may be the waker of any. */
	for (uint32_t i = 0; i < m->p->frames.n; i++)
		taskwakers_type(m, i);
	m->of_unit = mem_alloc((m->units.list.n + 1) * sizeof(*m->of_unit));
	for (size_t i = 0; i < m->units.list.n; i++) {
		const struct tasktype *unit = &m->units.list.v[i];

		m->of_unit[i] = unit->kind == TASKTYPE_TASK || unit->kind == TASKTYPE_BLOCKING ? tasks_find(m->t, unit->name) : TASKS_NONE;
	}
}

uint32_t taskwakers_root(const struct profile *p, uint32_t stack)
{
	while (p->stacks.v[stack].parent)
		stack = p->stacks.v[stack].parent;
	return p->stacks.v[stack].frame;
}

/* The node below the outermost one; 0: there is none. */
static uint32_t second(const struct profile *p, uint32_t stack)
{
	uint32_t found = 0;

	for (; p->stacks.v[stack].parent; stack = p->stacks.v[stack].parent)
		found = stack;
	return found;
}

/* At the end of the recording it awaited, or was queued, still. below: the node after the type's. */
static bool is_not_ended(const struct profile *p, uint32_t below)
{
	return below && !strcmp(cause_frame_name(p, p->stacks.v[below].frame), "[not ended]");
}

/* --- wakers --- */

uint32_t taskwakers_type_of_stack(const struct taskwakers *m, uint32_t stack)
{
	return m->of_unit[tasktypes_of(&m->units, stack)];
}

/* The waker of that kind, function and type, which is made if there is none. */
static struct tasks_waker *waker_of(struct taskwakers *m, uint32_t type, enum wakekind kind, const char *function,
				    uint32_t by)
{
	struct tasks_type *y = &m->t->types.v[type];
	uint64_t key = map_pair(type, strtab_add(&m->functions, function)) ^ map_hash(map_pair(kind, by));
	uint64_t *at = map_put(&m->wakers, key, y->wakers.n);

	/* The key is a hash: that of another type's waker may be the same. */
	if (*at >= y->wakers.n) {
		*at = y->wakers.n;
		vec_push(&y->wakers, (struct tasks_waker){ .kind = kind, .function = function, .type = by, .thread = PROFILE_NONE });
	}
	return &y->wakers.v[*at];
}

/* The same for a stack that begins with the type's frame; below: the node after it, 0 = none. Many samples share a stack. */
static struct tasks_waker *waker_of_stack(struct taskwakers *m, uint32_t stack, uint32_t below)
{
	struct tasks_type *y = &m->t->types.v[m->type];
	uint64_t *known = map_put(&m->stacks, stack, PROFILE_NONE);
	enum wakekind kind = WAKEKIND_NO_STACK;
	const char *function = "";

	if (*known == PROFILE_NONE) {
		if (below)
			kind = wakekind_of_stack(m->p, stack, m->p->stacks.v[below].parent, &function);
		*known = waker_of(m, m->type, kind, function, below ? taskwakers_type_of_stack(m, stack) : TASKS_NONE) - y->wakers.v;
	}
	return &y->wakers.v[*known];
}

static void add_thread(struct taskwakers *m, struct tasks_waker *w, uint64_t waker, uint32_t thread, uint64_t ns)
{
	uint64_t *sum = map_put(&m->threads, map_hash(waker) ^ thread, 0), *most;

	*sum += ns;
	if (w->thread == PROFILE_NONE)
		w->thread = thread;
	most = map_get(&m->threads, map_hash(waker) ^ w->thread);
	if (most && *map_get(&m->threads, map_hash(waker) ^ thread) > *most)
		w->thread = thread;
}

void taskwakers_add_await(struct taskwakers *m, const struct profile_sample *s, uint64_t ns, uint64_t count)
{
	struct tasks_type *y = &m->t->types.v[m->type];
	uint32_t below = second(m->p, s->stack);
	struct tasks_waker *w;

	y->await_ns += ns;
	if (is_not_ended(m->p, below)) {
		y->not_ended_ns += ns;
		return;
	}
	y->awaits += count;
	y->woken_ns += below ? ns : 0;
	w = waker_of_stack(m, s->stack, below);
	w->ns += ns;
	w->count += count;
	add_thread(m, w, map_pair(m->type, w - y->wakers.v), s->thread, ns);
	/* Stacks of one waker differ little: the one with the largest sample is as good as any. */
	if (ns > w->stack_ns) {
		w->stack_ns = ns;
		w->stack = s->stack;
	}
}

void taskwakers_add_row(struct taskwakers *m, const struct profile_taskwake *r, uint32_t type)
{
	struct tasks_type *y = &m->t->types.v[type];
	uint32_t by = r->waker_type ? tasks_find(m->t, profile_str(m->p, r->waker_type)) : TASKS_NONE;
	enum wakekind kind = WAKEKIND_NO_STACK;
	const char *function = "";

	y->longest_queue_ns = MAX(y->longest_queue_ns, r->queue_ns);
	if (r->waker_stack)
		kind = wakekind_of_stack(m->p, r->waker_stack, 0, &function);
	for (size_t i = 0; i < y->wakers.n; i++) {
		struct tasks_waker *w = &y->wakers.v[i];

		if (w->kind == kind && !strcmp(w->function, function) && (w->type == by || w->type == TASKS_NONE)) {
			w->longest_ns = MAX(w->longest_ns, r->await_ns);
			/* The row knows the task, the stack may have no name for it. */
			w->type = by;
			return;
		}
	}
}

/* --- the queue and spawns --- */

void taskwakers_add_queue(struct taskwakers *m, const struct profile_sample *s, uint64_t ns, uint64_t count)
{
	uint32_t below = second(m->p, s->stack);
	uint32_t behind = below ? taskwakers_type(m, m->p->stacks.v[below].frame) : TASKS_NONE;
	struct tasks_type *y = &m->t->types.v[m->type];
	uint64_t *at;

	y->queue_ns += ns;
	if (is_not_ended(m->p, below))
		return;
	y->queued += count;
	at = map_put(&m->behind, map_pair(m->type, behind), y->behind.n);
	if (*at == y->behind.n)
		vec_push(&y->behind, (struct tasks_behind){ .type = behind });
	y->behind.v[*at].ns += ns;
	y->behind.v[*at].count += count;
}

void taskwakers_add_spawn(struct taskwakers *m, const struct profile_sample *s, uint64_t count)
{
	struct tasks_type *y = &m->t->types.v[m->type];
	uint32_t parent = m->p->stacks.v[s->stack].parent, ident = OWNFUNCTION_NONE;
	const char *function = "";
	uint64_t *at;

	if (parent)
		ident = ownfunction_of_stack(&m->t->idents, parent);
	if (ident != OWNFUNCTION_NONE)
		function = m->t->idents.list.v[ident].name;
	at = map_put(&m->places, map_pair(m->type, ident), y->places.n);
	if (*at == y->places.n)
		vec_push(&y->places, (struct tasks_place){ .function = function, .stack = s->stack });
	y->places.v[*at].count += count;
	y->spawned += count;
}

/* --- the end --- */

static int compare_wakers(const void *a, const void *b)
{
	const struct tasks_waker *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(x->kind, y->kind) ?: strcmp(x->function, y->function) ?: ORDER(x->type, y->type);
}

static int compare_behind(const void *a, const void *b)
{
	const struct tasks_behind *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(x->type, y->type);
}

static int compare_places(const void *a, const void *b)
{
	const struct tasks_place *x = a, *y = b;

	return ORDER(y->count, x->count) ?: strcmp(x->function, y->function);
}

void taskwakers_end(struct taskwakers *m)
{
	for (size_t i = 0; i < m->t->types.n; i++) {
		struct tasks_type *y = &m->t->types.v[i];

		vec_sort(&y->wakers, compare_wakers);
		vec_sort(&y->behind, compare_behind);
		vec_sort(&y->places, compare_places);
	}
	map_done(&m->wakers);
	map_done(&m->behind);
	map_done(&m->places);
	map_done(&m->threads);
	map_done(&m->stacks);
	strtab_done(&m->functions);
	tasktypes_done(&m->units);
	free(m->of_unit);
}

void taskwakers_renumber(struct tasks_type *y, const uint32_t *now)
{
	for (size_t i = 0; i < y->wakers.n; i++)
		if (y->wakers.v[i].type != TASKS_NONE)
			y->wakers.v[i].type = now[y->wakers.v[i].type];
	for (size_t i = 0; i < y->behind.n; i++)
		if (y->behind.v[i].type != TASKS_NONE)
			y->behind.v[i].type = now[y->behind.v[i].type];
}
