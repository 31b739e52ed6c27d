#include "analyze/task/blockers.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/task/tasks.h"
#include "analyze/task/tasktype.h"
#include "analyze/task/taskwakers.h"
#include "analyze/tree/ownfunction.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum {
	SLOT_NS = 10000000, /* short waits are summed by this */
	LONG_NS = 1000000,  /* times in the queue from here on are kept one by one */
};

/* A function with what it did in a poll. */
struct site {
	uint32_t poll, ident;
	enum cause cause;
	uint64_t ns, stack_ns;
	uint32_t stack; /* with most of it */
	uint32_t leaf;  /* the identity with most of it */
	uint64_t leaf_ns;
};

struct maker {
	struct blockers *b;
	const struct profile *p;
	const struct select_options *o;
	const struct tasks *t;
	enum role *roles;      /* by event */
	size_t *first;         /* by thread, into polls, which are by thread and time; one more ends the last */
	uint64_t *sampled;     /* by poll: CPU time by samples */
	struct tasktypes units; /* of stacks */
	uint32_t *of_unit;     /* by unit: its type, TASKS_NONE = not known */
	VEC(struct site) sites;
	struct map site_index; /* poll, cause and function */
	struct map leaf_index; /* site and leaf to its time */
	struct map own;        /* stack to the nearest function of own crates + 1, 0 = none */
	VEC(uint8_t) kinds;    /* by identity: 1 + enum code_kind, 0 = not asked for yet */
};

/* --- polls --- */

static int compare_by_thread(const void *a, const void *b)
{
	const struct blockers_poll *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->start_ns, y->start_ns) ?: ORDER(x->end_ns, y->end_ns);
}

static void find_polls(struct maker *m, const uint8_t *picked)
{
	const struct profile *p = m->p;
	uint64_t to = m->o->to_ns ? m->o->to_ns : UINT64_MAX;

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *mark = &p->marks.v[i];

		uint32_t type;

		if (strcmp(profile_str(p, mark->kind), "long poll") || mark->thread >= p->threads.n || !picked[mark->thread] ||
		    mark->end_ns <= mark->start_ns || mark->end_ns <= m->o->from_ns || mark->start_ns >= to)
			continue;
		type = tasks_find(m->t, profile_str(p, mark->name));
		if (type != TASKS_NONE && m->t->types.v[type].blocking)
			continue; /* that pool is there for it */
		vec_push(&m->b->polls, (struct blockers_poll){ .type = type, .thread = mark->thread, .start_ns = mark->start_ns,
							       .end_ns = mark->end_ns, .function = "" });
	}
	vec_sort(&m->b->polls, compare_by_thread);
	m->first = mem_alloc((p->threads.n + 2) * sizeof(*m->first));
	for (size_t i = 0; i < m->b->polls.n; i++)
		m->first[m->b->polls.v[i].thread + 1]++;
	for (size_t i = 0; i <= p->threads.n; i++)
		m->first[i + 1] += m->first[i];
}

/* The first poll of a thread that ends after a moment; m->first[thread + 1] where there is none. Polls of a thread do not
 * overlap. */
static size_t first_after(const struct maker *m, uint32_t thread, uint64_t time_ns)
{
	return vec_search(i, m->first[thread], m->first[thread + 1], m->b->polls.v[i].end_ns <= time_ns);
}

/* --- what the thread did in them --- */

static bool is_own(struct maker *m, uint32_t ident)
{
	while (m->kinds.n <= ident)
		vec_push(&m->kinds, 0);
	if (!m->kinds.v[ident])
		m->kinds.v[ident] = 1 + crate_kind(&m->b->names, &m->b->idents.list.v[ident]);
	return m->kinds.v[ident] == 1 + CODE_OWN;
}

/* The innermost function of the program's own crates, + 1; 0: there is none. A dependency that computes has many functions,
 * and is called at one place. */
static uint32_t own_of_stack(struct maker *m, uint32_t stack)
{
	uint64_t *known = map_get(&m->own, stack);
	uint32_t n, found = 0;

	if (known)
		return *known;
	for (uint32_t at = stack; at && !found; at = m->p->stacks.v[at].parent) {
		uint32_t frame = m->p->stacks.v[at].frame;
		const uint32_t *list;

		if (m->p->frames.v[frame].kind != FRAME_USER)
			continue;
		list = idents_of_frame(&m->b->idents, frame, &n);
		for (uint32_t k = n; k-- > 0 && !found;)
			found = is_own(m, list[k]) ? list[k] + 1 : 0;
	}
	*map_put(&m->own, stack, 0) = found;
	return found;
}

static void add_site(struct maker *m, uint32_t poll, enum cause cause, uint32_t stack, uint64_t ns)
{
	uint32_t leaf = ownfunction_of_stack(&m->b->idents, stack), own = own_of_stack(m, stack), ident = own ? own - 1 : leaf;
	uint64_t *at = map_put(&m->site_index, map_pair(poll, ident) ^ (uint64_t)cause << 60, m->sites.n), *sum;
	struct site *s;

	if (*at == m->sites.n)
		vec_push(&m->sites, (struct site){ .poll = poll, .ident = ident, .cause = cause });
	s = &m->sites.v[*at];
	s->ns += ns;
	if (ns > s->stack_ns) {
		s->stack_ns = ns;
		s->stack = stack;
	}
	sum = map_put(&m->leaf_index, map_pair(*at, leaf), 0);
	*sum += ns;
	if (*sum > s->leaf_ns) {
		s->leaf_ns = *sum;
		s->leaf = leaf;
	}
}

/* Sums of short waits are spread over their 10 ms. */
static bool is_sum(const struct maker *m, const struct profile_sample *s, enum role role)
{
	return role != ROLE_CPU && s->count > 1 && !profile_summed_of(m->p, s);
}

/* Is a stack that of the runtime itself, or of another type of task? Then it is from before or after the poll, or was drawn
 * from those of other waits. */
static bool is_other(const struct maker *m, uint32_t type, uint32_t stack)
{
	uint32_t unit = tasktypes_of(&m->units, stack);

	return m->units.list.v[unit].kind == TASKTYPE_RUNTIME || (m->of_unit[unit] != TASKS_NONE && m->of_unit[unit] != type);
}

static void add_sample(struct maker *m, size_t i, enum role role)
{
	const struct profile_sample *s = &m->p->samples.v[i];
	enum cause cause = role == ROLE_CPU ? CAUSE_CPU : m->o->causes ? causes_of(m->o->causes, s) : CAUSE_UNKNOWN;
	const struct profile_summed slot = { s->time_ns, s->time_ns + SLOT_NS };
	bool sum = is_sum(m, s, role);
	uint64_t begin, end;

	select_span(m->p, i, role, &begin, &end);
	end = sum ? slot.end_ns : end;
	for (size_t k = first_after(m, s->thread, begin); k < m->first[s->thread + 1]; k++) {
		struct blockers_poll *poll = &m->b->polls.v[k];
		uint64_t length = poll->end_ns - poll->start_ns, used = 0, ns;
		bool other = is_other(m, poll->type, s->stack);

		if (poll->start_ns > end || (poll->start_ns == end && begin < end))
			return;
		if (sum && other)
			continue;
		ns = sum ? select_part(s->value, &slot, poll->start_ns, poll->end_ns) :
			   select_value(m->p, i, role, poll->start_ns, poll->end_ns);
		for (int c = 0; c < CAUSE_COUNT; c++)
			used += poll->ns[c];
		if (role == ROLE_CPU)
			m->sampled[k] += ns;
		else
			poll->ns[cause] += ns = MIN(ns, length - used);
		if (ns && !other)
			add_site(m, k, cause, s->stack, ns);
	}
}

/* CPU time is the rest where waits are known. */
static void settle(struct maker *m)
{
	for (size_t i = 0; i < m->b->polls.n; i++) {
		struct blockers_poll *poll = &m->b->polls.v[i];
		uint64_t left = poll->end_ns - poll->start_ns;

		for (int c = 0; c < CAUSE_COUNT; c++)
			left -= poll->ns[c];
		poll->ns[CAUSE_CPU] = m->b->waits ? left : MIN(left, m->sampled[i]);
		poll->ns[CAUSE_UNKNOWN] += left - poll->ns[CAUSE_CPU];
	}
}

static bool is_without_cpu(enum cause cause)
{
	return cause == CAUSE_QUEUE || cause == CAUSE_QUOTA;
}

/* The part of a poll in which its thread ran or waited: the rest is other threads' fault. */
static uint64_t own_ns(const struct blockers_poll *x)
{
	return x->end_ns - x->start_ns - x->ns[CAUSE_QUEUE] - x->ns[CAUSE_QUOTA];
}

/* The site with most time of each poll. CPU samples are few: they are weighed as parts of the CPU time. A thread that lost
 * its CPU was computing, too: that place will do where there is no other one. */
static void choose_sites(struct maker *m)
{
	_cleanup_free_ uint64_t *most = mem_alloc((m->b->polls.n + 1) * sizeof(*most));
	_cleanup_free_ bool *found = mem_alloc((m->b->polls.n + 1) * sizeof(*found));

	for (size_t i = 0; i < m->sites.n; i++) {
		const struct site *s = &m->sites.v[i];
		struct blockers_poll *poll = &m->b->polls.v[s->poll];
		bool guess = is_without_cpu(s->cause);
		uint64_t ns = s->ns;

		if (s->cause == CAUSE_CPU && m->sampled[s->poll])
			ns = (double)poll->ns[CAUSE_CPU] * s->ns / m->sampled[s->poll];
		if (guess ? found[s->poll] || ns <= most[s->poll] : found[s->poll] && ns <= most[s->poll])
			continue;
		found[s->poll] |= !guess;
		most[s->poll] = ns;
		poll->cause = guess ? CAUSE_CPU : s->cause;
		poll->stack = s->stack;
		poll->function = s->ident == OWNFUNCTION_NONE ? "" : m->b->idents.list.v[s->ident].name;
		poll->leaf = s->leaf == OWNFUNCTION_NONE || s->leaf == s->ident ? NULL : m->b->idents.list.v[s->leaf].name;
	}
	for (size_t i = 0; i < m->b->polls.n; i++) {
		struct blockers_poll *poll = &m->b->polls.v[i];

		if (!poll->stack) /* between two ticks of the clock */
			poll->cause = m->b->waits ? CAUSE_CPU : CAUSE_UNKNOWN;
		if (own_ns(poll) < m->b->least_ns && own_ns(poll) * 2 < poll->end_ns - poll->start_ns) {
			poll->cause = CAUSE_QUEUE;
			poll->function = "";
			poll->leaf = NULL;
			poll->stack = 0;
		}
	}
}

/* --- rows --- */

static struct blockers_row *row_of(struct maker *m, struct map *index, struct strtab *names, size_t poll)
{
	struct blockers *b = m->b;
	struct blockers_poll *x = &b->polls.v[poll];
	uint64_t key = map_pair(x->type, strtab_add(names, x->function)) ^ map_hash(x->cause);
	uint64_t *at = map_put(index, key, b->rows.n);

	if (*at == b->rows.n)
		vec_push(&b->rows, (struct blockers_row){ .type = x->type, .function = x->function, .module = "", .cause = x->cause });
	x->row = *at;
	return &b->rows.v[*at];
}

/* Keeps the leaf with most of a row's time. */
static void add_leaf(struct blockers_row *r, struct map *leaves, uint64_t key, const char *leaf, uint64_t ns)
{
	uint64_t *sum = map_put(leaves, key, 0);

	*sum += ns;
	if (*sum > r->leaf_ns) {
		r->leaf_ns = *sum;
		r->leaf = leaf;
	}
}

static void make_rows(struct maker *m)
{
	struct blockers *b = m->b;
	struct map index = { 0 }, leaves = { 0 };
	struct strtab names;

	strtab_init(&names);
	for (size_t i = 0; i < b->polls.n; i++) {
		const struct blockers_poll *x = &b->polls.v[i];
		uint64_t ns = x->end_ns - x->start_ns;
		struct blockers_row *r = row_of(m, &index, &names, i);

		r->count++;
		r->ns += ns;
		b->ns += ns;
		for (int c = 0; c < CAUSE_COUNT; c++)
			r->by_cause[c] += x->ns[c];
		add_leaf(r, &leaves, map_pair(x->row, strtab_add(&names, x->leaf ? x->leaf : "")), x->leaf, ns);
		if (ns <= r->longest_ns)
			continue;
		r->longest_ns = ns;
		r->longest = i;
		r->stack = x->stack;
	}
	strtab_done(&names);
	map_done(&index);
	map_done(&leaves);
}

/* What else is known of the stack of a row. */
static void describe_rows(struct maker *m)
{
	for (size_t i = 0; i < m->b->rows.n; i++) {
		struct blockers_row *r = &m->b->rows.v[i];
		uint32_t own = r->stack ? own_of_stack(m, r->stack) : 0;
		uint32_t ident = own ? own - 1 : r->stack ? ownfunction_of_stack(&m->b->idents, r->stack) : OWNFUNCTION_NONE;

		if (ident != OWNFUNCTION_NONE)
			r->module = m->b->idents.list.v[ident].module;
		if (r->stack && r->cause != CAUSE_CPU && r->cause != CAUSE_QUEUE) {
			r->operation = ownfunction_operation(m->p, r->stack);
			r->pattern = m->o->causes ? causes_pattern(m->o->causes, r->stack) : NULL;
		}
	}
}

/* --- victims --- */

static void add_victim(struct blockers_row *r, uint32_t type, uint64_t ns, uint64_t count)
{
	size_t i = 0;

	while (i < r->victims.n && r->victims.v[i].type != type)
		i++;
	if (i == r->victims.n)
		vec_push(&r->victims, (struct blockers_victim){ .type = type });
	r->victims.v[i].ns += ns;
	r->victims.v[i].count += count;
	r->queued += count;
	r->queued_ns += ns;
}

/* A task that lay in the queue behind a poll of another one was polled after it, on the same thread: of the long polls of
 * that type and thread it is the last that had ended then. */
static void add_queued(struct maker *m, const struct profile_sample *s, uint32_t victim, uint32_t behind)
{
	size_t from = m->first[s->thread];
	size_t k = vec_search(i, from, m->first[s->thread + 1], m->b->polls.v[i].end_ns <= s->time_ns);

	while (k-- > from) {
		struct blockers_poll *x = &m->b->polls.v[k];

		if (x->end_ns + s->value <= s->time_ns)
			return;
		if (x->type != behind)
			continue;
		x->queued++;
		x->queued_ns += s->value;
		add_victim(&m->b->rows.v[x->row], victim, s->value, 1);
		m->b->queued++;
		m->b->queued_ns += s->value;
		return;
	}
}

/* Short times in the queue are sums, of which nobody knows which poll they were behind. */
static void find_victims(struct maker *m)
{
	const struct profile *p = m->p;
	uint32_t queue = profile_find_event(p, "taskqueue", "ns");

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		uint32_t parent = p->stacks.v[s->stack].parent;
		const char *victim, *behind;

		if (s->event != queue || !parent || s->count > 1 || s->value < LONG_NS || m->first[s->thread] == m->first[s->thread + 1] ||
		    s->time_ns < m->o->from_ns || (m->o->to_ns && s->time_ns >= m->o->to_ns))
			continue;
		victim = tasks_frame_type(p, taskwakers_root(p, s->stack));
		behind = tasks_frame_type(p, p->stacks.v[s->stack].frame);
		if (victim && behind)
			add_queued(m, s, tasks_find(m->t, victim), tasks_find(m->t, behind));
	}
}

/* --- all of it --- */

static int compare_victims(const void *a, const void *b)
{
	const struct blockers_victim *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(x->type, y->type);
}

static int compare_rows(const void *a, const void *b)
{
	const struct blockers_row *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(x->type, y->type) ?: strcmp(x->function, y->function) ?: ORDER(x->cause, y->cause);
}

static int compare_polls(const void *a, const void *b)
{
	const struct blockers_poll *x = a, *y = b;

	return ORDER(y->end_ns - y->start_ns, x->end_ns - x->start_ns) ?: ORDER(x->start_ns, y->start_ns) ?:
	       ORDER(x->thread, y->thread);
}

/* Rows and polls point at each other: by their order now. */
static void sort_all(struct blockers *b)
{
	_cleanup_free_ uint32_t *now = mem_alloc((b->rows.n + 1) * sizeof(*now));

	/* The row's old number is where its longest poll says. */
	for (size_t i = 0; i < b->rows.n; i++)
		vec_sort(&b->rows.v[i].victims, compare_victims);
	vec_sort(&b->rows, compare_rows);
	for (size_t i = 0; i < b->rows.n; i++)
		now[b->polls.v[b->rows.v[i].longest].row] = i;
	for (size_t i = 0; i < b->polls.n; i++)
		b->polls.v[i].row = now[b->polls.v[i].row];
	vec_sort(&b->polls, compare_polls);
	for (size_t i = b->polls.n; i-- > 0;)
		b->rows.v[b->polls.v[i].row].longest = i;
}

static void find_units(struct maker *m)
{
	tasktypes_init(&m->units, m->p);
	m->of_unit = mem_alloc((m->units.list.n + 1) * sizeof(*m->of_unit));
	for (size_t i = 0; i < m->units.list.n; i++)
		m->of_unit[i] = m->units.list.v[i].kind == TASKTYPE_TASK ? tasks_find(m->t, m->units.list.v[i].name) : TASKS_NONE;
}

static void find_least(struct blockers *b, const struct profile *p)
{
	b->least_ns = profile_counter(p, KEY_TASK_LONG_POLL_NS);
	for (size_t i = 0; i < b->polls.n && !profile_counter(p, KEY_TASK_LONG_POLL_NS); i++) {
		uint64_t ns = b->polls.v[i].end_ns - b->polls.v[i].start_ns;

		b->least_ns = i ? MIN(b->least_ns, ns) : ns;
	}
}

static void read_samples(struct maker *m)
{
	const struct profile *p = m->p;

	m->roles = mem_alloc((p->events.n + 1) * sizeof(*m->roles));
	for (size_t i = 0; i < p->events.n; i++) {
		m->roles[i] = cause_role(p, i);
		m->b->waits |= m->roles[i] == ROLE_WAIT;
	}
	m->sampled = mem_alloc((m->b->polls.n + 1) * sizeof(*m->sampled));
	for (size_t i = 0; i < p->samples.n; i++) {
		enum role role = m->roles[p->samples.v[i].event];

		if (role != ROLE_OTHER && m->first[p->samples.v[i].thread] < m->first[p->samples.v[i].thread + 1])
			add_sample(m, i, role);
	}
}

void blockers_make(struct blockers *b, const struct profile *p, const struct select_options *o, const struct tasks *t)
{
	_cleanup_free_ uint8_t *picked = NULL;
	struct maker m = { .b = b, .p = p, .o = o, .t = t };

	*b = (struct blockers){ 0 };
	idents_init(&b->idents, p, 0);
	crates_init(&b->names, p, NULL);
	if (select_threads(p, o, &picked, NULL))
		return;
	find_polls(&m, picked);
	if (b->polls.n) {
		find_units(&m);
		find_least(b, p);
		read_samples(&m);
		settle(&m);
		choose_sites(&m);
		make_rows(&m);
		find_victims(&m);
		describe_rows(&m);
		sort_all(b);
		tasktypes_done(&m.units);
	}
	free(m.first);
	free(m.roles);
	free(m.sampled);
	free(m.of_unit);
	vec_done(&m.sites);
	map_done(&m.site_index);
	map_done(&m.leaf_index);
	map_done(&m.own);
	vec_done(&m.kinds);
}

void blockers_done(struct blockers *b)
{
	vec_done_each(&b->rows, e, vec_done(&e->victims));
	vec_done(&b->polls);
	crates_done(&b->names);
	idents_done(&b->idents);
}
