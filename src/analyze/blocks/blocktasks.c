#include "analyze/blocks/blocktasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "profile/profile.h"

uint64_t blocktasks_polled_ns(const struct profile_taskwake *w)
{
	return w->time_ns + MIN(w->queue_ns, UINT64_MAX - w->time_ns);
}

static int compare_by_task(const void *a, const void *b, void *list)
{
	const struct profile_taskwake *all = list, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];

	return ORDER(x->task, y->task) ?: ORDER(x->time_ns, y->time_ns) ?: ORDER(x, y);
}

static int compare_by_thread(const void *a, const void *b, void *list)
{
	const struct profile_taskwake *all = list, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];

	return ORDER(x->thread, y->thread) ?: ORDER(blocktasks_polled_ns(x), blocktasks_polled_ns(y)) ?: ORDER(x, y);
}

void blocktasks_init(struct blocktasks *t, const struct profile *p)
{
	*t = (struct blocktasks){ .p = p };
	if (!p->taskwakes.n)
		return;
	for (uint32_t i = 0; i < p->taskwakes.n; i++) {
		vec_push(&t->by_task, i);
		vec_push(&t->by_thread, i);
	}
	qsort_r(t->by_task.v, t->by_task.n, sizeof(*t->by_task.v), compare_by_task, p->taskwakes.v);
	qsort_r(t->by_thread.v, t->by_thread.n, sizeof(*t->by_thread.v), compare_by_thread, p->taskwakes.v);
	tasktypes_init(&t->units, p);
}

void blocktasks_done(struct blocktasks *t)
{
	if (t->by_task.n)
		tasktypes_done(&t->units);
	vec_done(&t->by_task);
	vec_done(&t->by_thread);
}

const struct profile_taskwake *blocktasks_polled(const struct blocktasks *t, uint32_t thread, uint64_t after_ns,
						 uint64_t until_ns)
{
	const struct profile_taskwake *all = t->p->taskwakes.v, *w;
	size_t at = vec_search(i, 0, t->by_thread.n, all[t->by_thread.v[i]].thread < thread ||
				(all[t->by_thread.v[i]].thread == thread && blocktasks_polled_ns(&all[t->by_thread.v[i]]) <= until_ns));

	if (!at)
		return NULL;
	w = &all[t->by_thread.v[at - 1]];
	return w->thread == thread && blocktasks_polled_ns(w) > after_ns ? w : NULL;
}

const struct profile_taskwake *blocktasks_before(const struct blocktasks *t, uint32_t task, uint64_t time_ns)
{
	const struct profile_taskwake *all = t->p->taskwakes.v, *w;
	size_t at = vec_search(i, 0, t->by_task.n, all[t->by_task.v[i]].task < task ||
				(all[t->by_task.v[i]].task == task && all[t->by_task.v[i]].time_ns < time_ns));

	if (!at)
		return NULL;
	w = &all[t->by_task.v[at - 1]];
	return w->task == task ? w : NULL;
}

bool blocktasks_is_other(const struct blocktasks *t, const struct profile_taskwake *w, uint32_t stack)
{
	const struct tasktype *unit = &t->units.list.v[tasktypes_of(&t->units, stack)];

	return unit->named && (unit->kind == TASKTYPE_TASK || unit->kind == TASKTYPE_BLOCKING) &&
	       strcmp(unit->name, profile_str(t->p, w->type));
}
