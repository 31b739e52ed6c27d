/*
 * callgrindstacks.c - stacks of a call graph, as callgrind.h says what of them is estimated.
 *
 * Functions that call each other in a circle are one group (a strongly connected component); groups have an order, callers before
 * callees. A context is a way into a group: the stack of the call, and what of the group's cost came this way. From the first group
 * to the last, each cost in it, and each call out of it, is divided among its contexts in proportion; the part of a call is a
 * context of the group that is called.
 *
 * The number of contexts may double from group to group: of each group the heaviest are kept, all others are one whose stack is
 * marked as cut. All numbers are integers, and no division loses a unit: see part_of().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "import/frames.h"
#include "import/text/callgrind.h"
#include "profile/profile.h"

enum {
	CONTEXTS = 256,        /* of a group */
	CONTEXTS_LEAST = 4,
	SAMPLES = 4000000,     /* about as many at most, by fewer contexts */
	GROUP_SAMPLES = 20000, /* of a group of many functions or lines */
	DEEPEST = 2000,
};

struct context {
	uint32_t stack; /* of the caller */
	uint32_t entry; /* function */
	uint32_t depth;
	uint64_t order; /* as they came */
};

struct group {
	uint32_t first, count; /* of members */
	VEC(struct context) contexts;
	VEC(uint64_t) weights; /* of each context, as many as events */
};

struct making {
	const struct callgrind *c;
	const struct callgrind_graph *g;
	struct frames *frames;
	struct err *err;
	uint32_t thread, first_event;
	size_t events;
	size_t contexts_most;
	uint32_t *self_first, *call_first; /* of each function, into by_self and by_call; one more at the end */
	uint32_t *by_self, *by_call;
	uint32_t *group_of;                /* of each function */
	VEC(uint32_t) members;
	VEC(struct group) groups;          /* callees before callers */
	/* Of the group at hand. */
	uint32_t *place;                   /* of a function among its group's members */
	uint32_t *parents, *depths;        /* context * members + place: the stack of a member's callers */
	uint32_t root;                     /* the function above all others that gasflame writes, PROFILE_NONE = none */
};

/* --- the order of groups --- */

/* Indexes of records, sorted by function; *ret_first has one more than there are functions. */
static uint32_t *by_function(const struct callgrind_cost *list, size_t n, size_t functions, uint32_t **ret_first)
{
	uint32_t *first = mem_alloc((functions + 2) * sizeof(*first)), *order = mem_alloc((n + 1) * sizeof(*order));

	for (size_t i = 0; i < n; i++)
		first[list[i].function + 2]++;
	for (size_t i = 2; i < functions + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < n; i++)
		order[first[list[i].function + 1]++] = i;
	*ret_first = first;
	return order;
}

struct visit {
	uint32_t function, next; /* call to look at */
};

struct finding {
	uint32_t *number, *low; /* 0 = not visited */
	bool *waiting;
	VEC(uint32_t) open;
	VEC(struct visit) path;
	uint32_t count;
};

static void enter(struct finding *f, const struct making *m, uint32_t function)
{
	f->number[function] = f->low[function] = ++f->count;
	f->waiting[function] = true;
	vec_push(&f->open, function);
	vec_push(&f->path, (struct visit){ function, m->call_first[function] });
}

/* All of its group are on top of those that are open. */
static void close_group(struct finding *f, struct making *m, uint32_t function)
{
	struct group group = { .first = m->members.n };
	uint32_t last;

	do {
		last = f->open.v[--f->open.n];
		f->waiting[last] = false;
		m->group_of[last] = m->groups.n;
		m->place[last] = group.count++;
		vec_push(&m->members, last);
	} while (last != function);
	vec_push(&m->groups, group);
}

/* Tarjan's algorithm, without recursion. */
static void find_groups(struct making *m)
{
	size_t n = m->g->functions.n;
	struct finding f = { .number = mem_alloc((n + 1) * sizeof(*f.number)), .low = mem_alloc((n + 1) * sizeof(*f.low)),
			     .waiting = mem_alloc(n + 1) };

	for (uint32_t start = 0; start < n; start++) {
		if (!f.number[start])
			enter(&f, m, start);
		while (f.path.n) {
			struct visit *v = &f.path.v[f.path.n - 1];
			uint32_t at = v->function;

			if (v->next < m->call_first[at + 1]) {
				uint32_t to = m->g->calls.v[m->by_call[v->next++]].callee;

				if (!f.number[to])
					enter(&f, m, to);
				else if (f.waiting[to])
					f.low[at] = MIN(f.low[at], f.number[to]);
				continue;
			}
			if (f.low[at] == f.number[at])
				close_group(&f, m, at);
			f.path.n--;
			if (f.path.n)
				f.low[f.path.v[f.path.n - 1].function] = MIN(f.low[f.path.v[f.path.n - 1].function], f.low[at]);
		}
	}
	free(f.number);
	free(f.low);
	free(f.waiting);
	vec_done(&f.open);
	vec_done(&f.path);
}

/* --- contexts --- */

static uint64_t *weights_of(const struct making *m, struct group *group, size_t context)
{
	return &group->weights.v[context * m->events];
}

static uint64_t *add_context(const struct making *m, struct group *group, struct context context)
{
	context.order = group->contexts.n;
	vec_push(&group->contexts, context);
	for (size_t i = 0; i < m->events; i++)
		vec_push(&group->weights, 0);
	return weights_of(m, group, group->contexts.n - 1);
}

static int too_much(const struct making *m, uint32_t function)
{
	return err_set(m->err, ERANGE, "the calls of %.200s add up to more than can be counted",
		       strtab_get(&m->c->strings, m->g->functions.v[function].name));
}

/* Adds what the members cost themselves, and by calls out of the group. */
static int add_inclusive(const struct making *m, const struct group *group, uint64_t *sum)
{
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t f = m->members.v[group->first + i];

		for (uint32_t k = m->self_first[f]; k < m->self_first[f + 1]; k++)
			for (size_t e = 0; e < m->events; e++)
				if (__builtin_add_overflow(sum[e], m->g->self_costs.v[m->by_self[k] * m->events + e], &sum[e]))
					return too_much(m, f);
		for (uint32_t k = m->call_first[f]; k < m->call_first[f + 1]; k++)
			for (size_t e = 0; e < m->events && m->group_of[m->g->calls.v[m->by_call[k]].callee] != m->group_of[f]; e++)
				if (__builtin_add_overflow(sum[e], m->g->call_costs.v[m->by_call[k] * m->events + e], &sum[e]))
					return too_much(m, f);
	}
	return 0;
}

/* What a group cost beyond its calls came from nowhere: it, or a part of it, is outermost. all: the sum of all contexts. */
static int add_outermost(const struct making *m, struct group *group, uint64_t *all)
{
	uint64_t inclusive[CALLGRIND_EVENTS] = { 0 };
	uint32_t f = m->members.v[group->first + group->count - 1];
	uint64_t *outermost = NULL;
	int r = add_inclusive(m, group, inclusive);

	if (r)
		return r;
	memset(all, 0, CALLGRIND_EVENTS * sizeof(*all));
	for (size_t i = 0; i < group->weights.n; i++)
		if (__builtin_add_overflow(all[i % m->events], group->weights.v[i], &all[i % m->events]))
			return too_much(m, f);
	for (size_t e = 0; e < m->events; e++) {
		if (inclusive[e] <= all[e])
			continue;
		if (!outermost)
			outermost = add_context(m, group, (struct context){ .entry = f });
		outermost[e] = inclusive[e] - all[e];
		all[e] = inclusive[e];
	}
	return 0;
}

static int compare_contexts(const void *a, const void *b, void *weights_and_events)
{
	const struct context *x = a, *y = b;
	const struct making *m = ((void **)weights_and_events)[0];
	const uint64_t *weights = ((void **)weights_and_events)[1];

	for (size_t e = 0; e < m->events; e++) {
		int order = ORDER(weights[y->order * m->events + e], weights[x->order * m->events + e]);

		if (order)
			return order;
	}
	return ORDER(x->order, y->order);
}

static size_t contexts_of(const struct making *m, const struct group *group)
{
	size_t records = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t f = m->members.v[group->first + i];

		records += 1 + m->self_first[f + 1] - m->self_first[f] + m->call_first[f + 1] - m->call_first[f];
	}
	return MAX(1, MIN(m->contexts_most, GROUP_SAMPLES / records));
}

/* Keeps the heaviest; the rest are one that is marked. */
static void limit_contexts(struct making *m, struct group *group)
{
	size_t keep = contexts_of(m, group);
	void *sorting[2] = { m, group->weights.v };
	struct group kept = { .first = group->first, .count = group->count };

	if (group->contexts.n <= keep)
		return;
	qsort_r(group->contexts.v, group->contexts.n, sizeof(*group->contexts.v), compare_contexts, sorting);
	for (size_t i = 0; i < group->contexts.n; i++) {
		struct context *context = &group->contexts.v[i];
		const uint64_t *from = weights_of(m, group, context->order);
		uint64_t *to;

		if (i + 1 == keep) {
			context->stack = profile_stack(m->frames->p, 0, profile_truncation_frame(m->frames->p, "many ways to call it"));
			context->depth = 1;
		}
		to = i < keep ? add_context(m, &kept, *context) : weights_of(m, &kept, keep - 1);
		for (size_t e = 0; e < m->events; e++)
			to[e] += from[e];
	}
	vec_done(&group->contexts);
	vec_done(&group->weights);
	*group = kept;
}

/* --- stacks --- */

static const char *known(const struct making *m, uint32_t string)
{
	const char *s = strtab_get(&m->c->strings, string);

	return *s && strcmp(s, "???") ? s : NULL;
}

static uint32_t frame_of(const struct making *m, const struct callgrind_cost *at)
{
	const struct callgrind_function *f = &m->g->functions.v[at->function];
	const char *object = known(m, f->object);
	struct frames_call call = { known(m, f->name), known(m, at->file), at->line };

	return frames_named(m->frames, frames_module(m->frames, object, NULL, 0),
			    object && frames_is_kernel(object) ? FRAME_KERNEL : FRAME_USER, 0, &call, 1);
}

/* A stack that is one call longer, or one that begins anew where it is too deep already. */
static uint32_t below(const struct making *m, uint32_t stack, uint32_t *depth, uint32_t frame)
{
	if (*depth >= DEEPEST) {
		stack = profile_stack(m->frames->p, 0, profile_truncation_frame(m->frames->p, "calls too deep"));
		*depth = 1;
	}
	++*depth;
	return profile_stack(m->frames->p, stack, frame);
}

/* The callers of each member in a context: the fewest calls from the one that was entered. */
static void find_parents(struct making *m, const struct group *group, size_t context)
{
	const struct context *x = &group->contexts.v[context];
	uint32_t *parents = &m->parents[context * group->count], *depths = &m->depths[context * group->count];
	VEC(uint32_t) queue = { 0 };

	memset(parents, 0xff, group->count * sizeof(*parents));
	parents[m->place[x->entry]] = x->stack;
	depths[m->place[x->entry]] = x->depth;
	vec_push(&queue, x->entry);
	for (size_t i = 0; i < queue.n && queue.n < group->count; i++) {
		uint32_t f = queue.v[i];

		for (uint32_t k = m->call_first[f]; k < m->call_first[f + 1]; k++) {
			const struct callgrind_cost *call = &m->g->calls.v[m->by_call[k]];
			uint32_t to = m->place[call->callee];

			if (m->group_of[call->callee] != m->group_of[f] || parents[to] != PROFILE_NONE)
				continue;
			depths[to] = depths[m->place[f]];
			parents[to] = below(m, parents[m->place[f]], &depths[to], frame_of(m, call));
			vec_push(&queue, call->callee);
		}
	}
	vec_done(&queue);
}

/* What lies between two partial sums of the contexts: all parts of a cost add up to it. */
static uint64_t part_of(uint64_t cost, uint64_t before, uint64_t weight, uint64_t all)
{
	unsigned __int128 from = (unsigned __int128)cost * before, to = (unsigned __int128)cost * (before + weight);

	return all ? (uint64_t)(to / all) - (uint64_t)(from / all) : 0;
}

/* The parts of one record in one context; false: there are none. */
static bool parts_of(const struct making *m, struct group *group, size_t context, const uint64_t *costs, const uint64_t *all,
		     uint64_t *before, uint64_t *parts)
{
	const uint64_t *weights = weights_of(m, group, context);
	bool some = false;

	for (size_t e = 0; e < m->events; e++) {
		parts[e] = part_of(costs[e], before[e], weights[e], all[e]);
		before[e] += weights[e];
		some |= parts[e] != 0;
	}
	return some;
}

static void divide_self(struct making *m, struct group *group, uint32_t record, const uint64_t *all)
{
	const struct callgrind_cost *at = &m->g->self.v[record];
	uint64_t before[CALLGRIND_EVENTS] = { 0 }, parts[CALLGRIND_EVENTS];
	uint32_t frame = frame_of(m, at);

	for (size_t i = 0; i < group->contexts.n; i++) {
		size_t member = i * group->count + m->place[at->function];
		uint32_t depth = m->depths[member], stack;

		if (!parts_of(m, group, i, &m->g->self_costs.v[record * m->events], all, before, parts))
			continue;
		stack = below(m, m->parents[member], &depth, frame);
		for (size_t e = 0; e < m->events; e++)
			if (parts[e])
				profile_add_sample(m->frames->p, &(struct profile_sample){ .value = parts[e], .thread = m->thread,
											   .stack = stack, .event = m->first_event + e });
	}
}

static void divide_call(struct making *m, struct group *group, uint32_t record, const uint64_t *all)
{
	const struct callgrind_cost *at = &m->g->calls.v[record];
	struct group *to = &m->groups.v[m->group_of[at->callee]];
	uint64_t before[CALLGRIND_EVENTS] = { 0 }, parts[CALLGRIND_EVENTS];
	uint32_t frame = at->function == m->root ? PROFILE_NONE : frame_of(m, at);

	if (to == group)
		return;
	for (size_t i = 0; i < group->contexts.n; i++) {
		size_t member = i * group->count + m->place[at->function];
		struct context context = { .stack = m->parents[member], .entry = at->callee, .depth = m->depths[member] };

		if (!parts_of(m, group, i, &m->g->call_costs.v[record * m->events], all, before, parts))
			continue;
		if (frame != PROFILE_NONE)
			context.stack = below(m, context.stack, &context.depth, frame);
		memcpy(add_context(m, to, context), parts, m->events * sizeof(*parts));
	}
}

static int divide_group(struct making *m, struct group *group)
{
	uint64_t all[CALLGRIND_EVENTS];
	int r = add_outermost(m, group, all);

	if (r)
		return r;
	limit_contexts(m, group);
	m->parents = mem_resize(NULL, group->contexts.n * group->count + 1, sizeof(*m->parents));
	m->depths = mem_resize(NULL, group->contexts.n * group->count + 1, sizeof(*m->depths));
	for (size_t i = 0; i < group->contexts.n; i++)
		find_parents(m, group, i);
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t f = m->members.v[group->first + i];

		for (uint32_t k = m->self_first[f]; k < m->self_first[f + 1]; k++)
			divide_self(m, group, m->by_self[k], all);
		for (uint32_t k = m->call_first[f]; k < m->call_first[f + 1]; k++)
			divide_call(m, group, m->by_call[k], all);
	}
	free(m->parents);
	free(m->depths);
	vec_done(&group->contexts);
	vec_done(&group->weights);
	return 0;
}

static uint32_t find_root(const struct callgrind *c, const struct callgrind_graph *g)
{
	if (strncmp(strtab_get(&c->strings, c->creator), "gasflame", strlen("gasflame")))
		return PROFILE_NONE;
	for (size_t i = 0; i < g->functions.n; i++)
		if (!strcmp(strtab_get(&c->strings, g->functions.v[i].name), CALLGRIND_ROOT))
			return i;
	return PROFILE_NONE;
}

int callgrind_stacks(const struct callgrind *c, const struct callgrind_graph *g, struct frames *frames, uint32_t thread,
		     uint32_t first_event, struct err *err)
{
	struct making m = { .c = c, .g = g, .frames = frames, .err = err, .thread = thread, .first_event = first_event,
			    .events = c->event_count, .root = find_root(c, g) };
	size_t n = g->functions.n, records = (g->self.n + g->calls.n + 1) * m.events;
	int r = 0;

	m.contexts_most = MIN(CONTEXTS, MAX(CONTEXTS_LEAST, SAMPLES / records));
	m.by_self = by_function(g->self.v, g->self.n, n, &m.self_first);
	m.by_call = by_function(g->calls.v, g->calls.n, n, &m.call_first);
	m.group_of = mem_alloc((n + 1) * sizeof(*m.group_of));
	m.place = mem_alloc((n + 1) * sizeof(*m.place));
	find_groups(&m);
	for (size_t i = m.groups.n; i-- > 0 && !r;)
		r = divide_group(&m, &m.groups.v[i]);
	vec_done_each(&m.groups, group, vec_done(&group->contexts); vec_done(&group->weights));
	vec_done(&m.members);
	free(m.by_self);
	free(m.by_call);
	free(m.self_first);
	free(m.call_first);
	free(m.group_of);
	free(m.place);
	return r;
}
