#include "analyze/wait/cause.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/tree/ident.h"
#include "analyze/tree/ownfunction.h"
#include "profile/profile.h"

enum {
	INNERMOST = 48,   /* functions that patterns look at, as their file says */
	FOUND_CAUSE = 16, /* found is 1 + cause + FOUND_CAUSE * (1 + pattern), */
	FOUND_OWN = 0x8000, /* and this if a function on the stack is the program's own */
};

static const char preempted[] = "[preempted]", throttled[] = "throttled";

const char *cause_frame_name(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	if (!f->line_count)
		return "";
	return profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
}

bool cause_is_marker(const struct profile *p, uint32_t stack)
{
	const struct profile_node *n = &p->stacks.v[stack];
	const struct profile_frame *f;

	if (!stack || n->parent)
		return false;
	f = &p->frames.v[n->frame];
	return (f->kind == FRAME_KERNEL || f->kind == FRAME_NOTE) && f->module >= p->modules.n &&
	       *cause_frame_name(p, n->frame) == '[';
}

enum role cause_role(const struct profile *p, uint32_t event)
{
	static const struct {
		const char *name;
		enum role role;
	} roles[] = { { "cpu", ROLE_CPU }, { "wait", ROLE_WAIT }, { "queue", ROLE_QUEUE },
		      { throttled, ROLE_QUEUE } };
	const struct profile_event *e;

	if (event >= p->events.n)
		return ROLE_OTHER;
	e = &p->events.v[event];
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (!strcmp(profile_str(p, e->name), roles[i].name) && !strcmp(profile_str(p, e->unit), "ns"))
			return roles[i].role;
	return ROLE_OTHER;
}

void causes_init(struct causes *c, const struct profile *p, struct patterns *patterns)
{
	*c = (struct causes){ .p = p, .patterns = patterns };
	underway_init(&c->work, p, patterns);
	causes_grow(c);
}

/* Finds the processes that only watch over a child which is recorded itself: su, a shell, timeout. A thread among others of
 * its process that waits for a child may well be kept from work by it. */
static void find_parents(struct causes *c)
{
	const struct profile *p = c->p;
	_cleanup_free_ uint32_t *threads = mem_alloc((p->processes.n + 1) * sizeof(*threads));
	_cleanup_(map_done) struct map pids = { 0 };

	if (c->processes == p->processes.n && c->threads == p->threads.n)
		return;
	c->processes = p->processes.n;
	c->threads = p->threads.n;
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i].process < c->processes)
			threads[p->threads.v[i].process]++;
	c->parents = mem_resize(c->parents, c->processes, sizeof(*c->parents));
	memset(c->parents, 0, c->processes);
	for (size_t i = 0; i < c->processes; i++)
		*map_put(&pids, p->processes.v[i].pid, i) = i;
	for (size_t i = 0; i < c->processes; i++) {
		const uint64_t *parent = map_get(&pids, p->processes.v[i].parent_pid);

		if (parent && *parent != i && threads[*parent] == 1)
			c->parents[*parent] = 1;
	}
}

void causes_grow(struct causes *c)
{
	const struct profile *p = c->p;
	size_t n = p->stacks.n + 1;

	c->roles = mem_resize(c->roles, p->events.n + 1, sizeof(*c->roles));
	c->quota_event = PROFILE_NONE;
	for (size_t i = 0; i < p->events.n; i++) {
		c->roles[i] = cause_role(p, i);
		if (c->roles[i] == ROLE_QUEUE && !strcmp(profile_str(p, p->events.v[i].name), throttled))
			c->quota_event = i;
	}
	find_parents(c);
	if (n <= c->stacks)
		return;
	n = MAX(n, c->stacks + c->stacks / 2);
	c->found = mem_resize(c->found, n, sizeof(*c->found));
	c->busy = mem_resize(c->busy, n, sizeof(*c->busy));
	memset(c->found + c->stacks, 0, (n - c->stacks) * sizeof(*c->found));
	memset(c->busy + c->stacks, 0, (n - c->stacks) * sizeof(*c->busy));
	c->stacks = n;
}

void causes_done(struct causes *c)
{
	free(c->roles);
	free(c->found);
	free(c->busy);
	free(c->parents);
	underway_done(&c->work);
	map_done(&c->functions);
	vec_done(&c->sets);
	*c = (struct causes){ 0 };
}

enum role causes_role(const struct causes *c, uint32_t event)
{
	return event < c->p->events.n ? c->roles[event] : ROLE_OTHER;
}

/* Matches a function against the patterns, once for each function. */
static const struct pattern_match *match_function(struct causes *c, uint32_t function, bool kernel)
{
	uint64_t *id = map_put(&c->functions, map_pair(function, kernel), PROFILE_NONE);

	if (*id == PROFILE_NONE) {
		struct pattern_match m = { 0 };

		*id = c->sets.n;
		patterns_match_name(c->patterns, profile_str(c->p, c->p->functions.v[function].name), kernel,
				    m.parts);
		vec_push(&c->sets, m);
	}
	return &c->sets.v[*id];
}

static void add_matches(struct pattern_match *to, const struct pattern_match *from)
{
	for (int k = 0; k < PATTERN_PARTS; k++)
		for (size_t i = 0; i < ARRAY_LEN(to->parts[k].bits); i++)
			to->parts[k].bits[i] |= from->parts[k].bits[i];
}

static const char *module_of(const struct profile *p, const struct profile_frame *f)
{
	return f->module < p->modules.n ? profile_str(p, p->modules.v[f->module].path) : "";
}

/* From the leaf outwards: the kernel's functions, then the innermost ones of the program. */
static const struct pattern *look(struct causes *c, uint32_t stack, struct pattern_wait *w, enum cause *ret_cause)
{
	const struct profile *p = c->p;
	struct kernel_reader reader = { 0 };
	struct pattern_match all = { 0 };
	const struct pattern *pattern;
	unsigned user = 0;

	for (; stack && user < INNERMOST; stack = p->stacks.v[stack].parent) {
		const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];
		bool kernel = f->kind == FRAME_KERNEL;

		if (f->kind != FRAME_KERNEL && f->kind != FRAME_USER)
			continue;
		if (ident_frame_unnamed(p, p->stacks.v[stack].frame)) {
			user += !kernel;
			w->own |= !kernel && !ownfunction_is_library("", module_of(p, f));
			continue;
		}
		for (uint32_t i = 0; i < f->line_count; i++) {
			uint32_t function = p->lines.v[f->first_line + i].function;
			const char *name = profile_str(p, p->functions.v[function].name);

			if (kernel)
				kernel_read(&reader, name);
			user += !kernel;
			w->own = w->own || (!kernel && !ownfunction_is_library(name, module_of(p, f)));
			add_matches(&all, match_function(c, function, kernel));
		}
	}
	w->kind = kernel_wait_of(&reader);
	pattern = patterns_find(c->patterns, w, all.parts);
	*ret_cause = pattern ? pattern->cause : CAUSE_UNKNOWN;
	/* That it is not idle is known, even where no other pattern says more. */
	if (!pattern && w->work && patterns_find(c->patterns, &(struct pattern_wait){ w->kind, w->own, false }, all.parts))
		*ret_cause = CAUSE_PARK;
	return pattern;
}

/* busy: work is under way, whatever the stack says. */
static uint16_t found(struct causes *c, uint32_t stack, bool busy)
{
	struct pattern_wait w = { .work = busy || underway_on_stack(&c->work, stack) };
	uint16_t *list = w.work ? c->busy : c->found;
	const struct pattern *pattern = NULL;
	enum cause cause;

	if (list[stack])
		return list[stack];
	if (cause_is_marker(c->p, stack)) {
		cause = strcmp(cause_frame_name(c->p, c->p->stacks.v[stack].frame), preempted) ? CAUSE_UNKNOWN
											       : CAUSE_QUEUE;
	} else {
		pattern = look(c, stack, &w, &cause);
	}
	list[stack] = (1 + cause) | (w.own ? FOUND_OWN : 0);
	if (pattern)
		list[stack] += FOUND_CAUSE * (1 + (pattern - c->patterns->list.v));
	return list[stack];
}

static struct causes_wait read_found(const struct causes *c, uint16_t found)
{
	unsigned value = (found & ~FOUND_OWN) - 1, pattern = value / FOUND_CAUSE;

	return (struct causes_wait){ value % FOUND_CAUSE, pattern ? &c->patterns->list.v[pattern - 1] : NULL, false };
}

enum cause causes_of_stack(struct causes *c, uint32_t stack)
{
	return read_found(c, found(c, stack, false)).cause;
}

const struct pattern *causes_pattern(struct causes *c, uint32_t stack)
{
	return read_found(c, found(c, stack, false)).pattern;
}

struct causes_wait causes_of_wait(struct causes *c, uint32_t thread, uint32_t stack, uint64_t begin_ns,
				  uint64_t end_ns)
{
	uint16_t of_stack = found(c, stack, false);
	struct causes_wait w = read_found(c, of_stack);
	bool sum = end_ns <= begin_ns;

	if (underway_on_stack(&c->work, stack))
		return w;
	/* A runtime's worker without a task has none of the program's functions on its stack: a span that another thread, or
	 * a later poll, goes on with does not make it busy. */
	if (w.cause == CAUSE_IDLE && of_stack & FOUND_OWN && !sum && underway_in_span(&c->work, thread, begin_ns, end_ns)) {
		w = read_found(c, found(c, stack, true));
		w.changed = true;
	} else if (w.pattern && w.pattern->outside && w.cause != CAUSE_IDLE) {
		unsigned known = underway_known(&c->work, thread);

		if (sum ? known == UNDERWAY_BY_STACKS : known && !underway_in_span(&c->work, thread, begin_ns, end_ns)) {
			w.cause = CAUSE_IDLE;
			w.changed = true;
		}
	} else if (w.pattern && w.pattern->child && thread < c->p->threads.n) {
		uint32_t process = c->p->threads.v[thread].process;

		if (process < c->processes && c->parents[process]) {
			w.cause = CAUSE_IDLE;
			w.changed = true;
		}
	}
	return w;
}

struct causes_wait causes_of_sample(struct causes *c, const struct profile_sample *s)
{
	/* No slot reaches beyond a mark: all that is summed in it was in the mark's time, or nothing of it. */
	const struct profile_summed *sum = profile_summed_of(c->p, s);

	return causes_of_wait(c, s->thread, s->stack, s->time_ns,
			      sum ? sum->end_ns : s->count > 1 ? s->time_ns : s->time_ns + s->value);
}

enum cause causes_of(struct causes *c, const struct profile_sample *s)
{
	switch (causes_role(c, s->event)) {
	case ROLE_CPU:
		return CAUSE_CPU;
	case ROLE_QUEUE:
		return s->event == c->quota_event ? CAUSE_QUOTA : CAUSE_QUEUE;
	case ROLE_WAIT:
		return causes_of_sample(c, s).cause;
	case ROLE_OTHER:
		break;
	}
	return CAUSE_UNKNOWN;
}

uint32_t cause_trim(const struct profile *p, uint32_t stack)
{
	uint32_t s = stack;

	while (s && p->frames.v[p->stacks.v[s].frame].kind == FRAME_KERNEL &&
	       kernel_is_machinery(cause_frame_name(p, p->stacks.v[s].frame)))
		s = p->stacks.v[s].parent;
	return s ? s : stack;
}
