#include "analyze/task/taskchains.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

/* A wait of a thread, or the time for which it was in the run queue. */
struct off {
	uint64_t begin, end;
	uint32_t thread, sample;
};

/* What is known of the stack of a waker. */
struct waker {
	enum wakekind kind;
	const char *function;
};

struct maker {
	struct taskchains *c;
	const struct profile *p;
	const struct select_options *o;
	const struct tasks *t;
	VEC(uint32_t) rows; /* of the profile's taskwakes: by task and time */
	VEC(struct off) offs; /* by thread and time */
	VEC(struct waker) wakers;
	struct map stacks;  /* to waker */
	struct map index;   /* string of a chain to chain */
	struct strtab keys;
	bool waits;         /* were recorded */
	uint8_t *workers;   /* by thread: it polls tasks */
};

/* --- rows and waits in order --- */

static int compare_wakes(const void *a, const void *b, void *list)
{
	const struct profile_taskwake *all = list, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];

	return ORDER(x->task, y->task) ?: ORDER(x->time_ns, y->time_ns) ?: ORDER(x, y);
}

static int compare_offs(const void *a, const void *b)
{
	const struct off *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->begin, y->begin) ?: ORDER(x->sample, y->sample);
}

static void sort_rows(struct maker *m)
{
	for (uint32_t i = 0; i < m->p->taskwakes.n; i++)
		vec_push(&m->rows, i);
	if (m->rows.n)
		qsort_r(m->rows.v, m->rows.n, sizeof(*m->rows.v), compare_wakes, m->p->taskwakes.v);
}

/* Those of threads that woke tasks are all that is asked for. */
static void find_offs(struct maker *m)
{
	const struct profile *p = m->p;
	_cleanup_free_ uint8_t *woke = mem_alloc(p->threads.n + 1);

	for (size_t i = 0; i < p->taskwakes.n; i++)
		if (p->taskwakes.v[i].waker < p->threads.n)
			woke[p->taskwakes.v[i].waker] = 1;
	for (size_t i = 0; i < p->events.n; i++)
		m->waits |= cause_role(p, i) == ROLE_WAIT;
	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		enum role role = cause_role(p, s->event);
		struct off off = { .thread = s->thread, .sample = i };

		if ((role != ROLE_WAIT && role != ROLE_QUEUE) || !woke[s->thread])
			continue;
		select_span(p, i, role, &off.begin, &off.end);
		vec_push(&m->offs, off);
	}
	vec_sort(&m->offs, compare_offs);
}

static const struct waker *waker_of(struct maker *m, uint32_t stack)
{
	uint64_t *at = map_put(&m->stacks, stack, m->wakers.n);
	struct waker w = { WAKEKIND_NO_STACK, "" };

	if (*at == m->wakers.n) {
		if (stack)
			w.kind = wakekind_of_stack(m->p, stack, 0, &w.function);
		vec_push(&m->wakers, w);
	}
	return &m->wakers.v[*at];
}

/* --- following --- */

/* The last await of a task that ended between two moments; NULL = none. */
static const struct profile_taskwake *last_await(const struct maker *m, uint32_t task, uint64_t from_ns, uint64_t to_ns)
{
	const struct profile_taskwake *all = m->p->taskwakes.v, *w;
	size_t at = vec_search(i, 0, m->rows.n, all[m->rows.v[i]].task < task || (all[m->rows.v[i]].task == task &&
										  all[m->rows.v[i]].time_ns < to_ns));

	if (!at)
		return NULL;
	w = &all[m->rows.v[at - 1]];
	return w->task == task && w->time_ns > from_ns ? w : NULL;
}

/* What a thread did most between two moments: the longest wait, or the CPU where its waits are less than half. */
static void find_end(struct maker *m, struct taskchain *c, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sums[CAUSE_COUNT] = { 0 }, all = 0, longest = 0;
	size_t i = vec_search(k, 0, m->offs.n, m->offs.v[k].thread < thread ||
						       (m->offs.v[k].thread == thread && m->offs.v[k].end <= from_ns));
	enum cause most = CAUSE_CPU;

	c->end_cause = m->waits ? CAUSE_CPU : CAUSE_UNKNOWN;
	for (; i < m->offs.n && m->offs.v[i].thread == thread && m->offs.v[i].begin < to_ns; i++) {
		const struct profile_sample *s = &m->p->samples.v[m->offs.v[i].sample];
		uint64_t ns = select_value(m->p, m->offs.v[i].sample, cause_role(m->p, s->event), from_ns, to_ns);
		enum cause cause = m->o->causes ? causes_of(m->o->causes, s) : CAUSE_UNKNOWN;
		uint32_t ident;

		sums[cause] += ns;
		all += ns;
		most = sums[cause] > sums[most] ? cause : most;
		if (ns <= longest)
			continue;
		longest = ns;
		ident = ownfunction_of_stack(&m->c->idents, s->stack);
		c->end_function = ident == OWNFUNCTION_NONE ? "" : m->c->idents.list.v[ident].name;
	}
	if (all * 2 >= to_ns - from_ns && all)
		c->end_cause = most;
	else
		c->end_function = "";
}

/* False: it is of no interest, as nobody in the program was waited for. */
static bool follow(struct maker *m, const struct profile_taskwake *w, struct taskchain *c)
{
	uint64_t from = w->time_ns - MIN(w->await_ns, w->time_ns), to = w->time_ns;

	*c = (struct taskchain){ .end_type = TASKS_NONE, .end_thread = PROFILE_NONE, .end_function = "", .ns = w->await_ns,
				 .count = 1, .longest_ns = w->await_ns };
	for (;;) {
		struct waker by = *waker_of(m, w->waker_stack);
		const struct profile_taskwake *next;

		if (by.kind == WAKEKIND_NO_STACK && !w->waker_task && w->waker < m->p->threads.n && m->workers[w->waker])
			by.kind = WAKEKIND_DRIVER;
		c->links[c->link_count++] = (struct taskchains_link){ tasks_find(m->t, profile_str(m->p, w->type)), by.kind, by.function };
		if (wakekind_is_outer(by.kind))
			return c->link_count > 1;
		next = w->waker_task ? last_await(m, w->waker_task, from, to) : NULL;
		if (!next || c->link_count == TASKCHAINS_LINKS)
			break;
		from = MAX(from, next->time_ns - MIN(next->await_ns, next->time_ns));
		to = next->time_ns;
		w = next;
	}
	c->end_type = w->waker_task ? tasks_find(m->t, profile_str(m->p, w->waker_type)) : TASKS_NONE;
	if (w->waker < m->p->threads.n) {
		c->end_thread = w->waker;
		find_end(m, c, w->waker, from, to);
	}
	return c->link_count > 1 || c->end_type != TASKS_NONE || c->end_thread != PROFILE_NONE;
}

/* Chains of the same links and end are one. Of threads the name counts. */
static uint32_t key_of(struct maker *m, const struct taskchain *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (uint32_t i = 0; i < c->link_count; i++)
		buf_printf(&b, "%u %d %s\n", c->links[i].type, c->links[i].kind, c->links[i].function);
	buf_printf(&b, "%u %d %s\n%s", c->end_type, c->end_cause, c->end_function,
		   c->end_thread < m->p->threads.n ? profile_str(m->p, m->p->threads.v[c->end_thread].name) : "");
	return strtab_add(&m->keys, b.data);
}

static void add_chain(struct maker *m, const struct taskchain *c)
{
	uint64_t *at = map_put(&m->index, key_of(m, c), m->c->list.n);
	struct taskchain *to;

	if (*at == m->c->list.n) {
		vec_push(&m->c->list, *c);
		return;
	}
	to = &m->c->list.v[*at];
	to->ns += c->ns;
	to->count++;
	to->longest_ns = MAX(to->longest_ns, c->longest_ns);
}

static int compare_chains(const void *a, const void *b)
{
	const struct taskchain *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(y->count, x->count) ?: ORDER(x->links[0].type, y->links[0].type);
}

void taskchains_make(struct taskchains *c, const struct profile *p, const struct select_options *o, const struct tasks *t)
{
	_cleanup_free_ uint8_t *picked = NULL;
	struct maker m = { .c = c, .p = p, .o = o, .t = t };
	struct taskchain chain;

	*c = (struct taskchains){ 0 };
	idents_init(&c->idents, p, 0);
	if (!p->taskwakes.n || select_threads(p, o, &picked, NULL))
		return;
	strtab_init(&m.keys);
	m.workers = mem_alloc(p->threads.n + 1);
	for (size_t i = 0; i < p->taskwakes.n; i++)
		m.workers[p->taskwakes.v[i].thread] = 1;
	sort_rows(&m);
	find_offs(&m);
	for (size_t i = 0; i < p->taskwakes.n; i++) {
		const struct profile_taskwake *w = &p->taskwakes.v[i];

		if (picked[w->thread] && w->time_ns >= o->from_ns && (!o->to_ns || w->time_ns < o->to_ns) && follow(&m, w, &chain))
			add_chain(&m, &chain);
	}
	vec_sort(&c->list, compare_chains);
	strtab_done(&m.keys);
	free(m.workers);
	vec_done(&m.rows);
	vec_done(&m.offs);
	vec_done(&m.wakers);
	map_done(&m.stacks);
	map_done(&m.index);
}

void taskchains_done(struct taskchains *c)
{
	vec_done(&c->list);
	idents_done(&c->idents);
}
