#include "analyze/wait/waits.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "analyze/wait/wakers.h"
#include "profile/profile.h"

const char *waits_interrupt(enum kernel_interrupt i)
{
	static const char *const names[] = {
		[INTERRUPT_NONE] = "",
		[INTERRUPT_TIMER] = "timer",
		[INTERRUPT_DISK] = "disk interrupt",
		[INTERRUPT_NETWORK] = "network interrupt",
		[INTERRUPT_OTHER] = "interrupt",
	};

	return names[i];
}

size_t waits_slot(uint32_t stack, const struct causes_wait *wait)
{
	return (size_t)stack * 2 + wait->changed;
}

/* The site of a stack at which a wait has a cause, made if it is new. */
static uint32_t site_of(struct waits *w, struct map *index, uint32_t *of_stack, uint32_t stack,
			const struct causes_wait *wait)
{
	size_t slot = waits_slot(stack, wait);
	enum cause cause = wait->cause;
	uint32_t ident;
	uint64_t *id;

	if (of_stack[slot] != OWNFUNCTION_NONE)
		return of_stack[slot];
	ident = ownfunction_of_stack(&w->idents, stack);
	if (ident == OWNFUNCTION_NONE)
		ident = idents_add(&w->idents, "[no stack]", "", IDENT_TRUNCATED);
	id = map_put(index, map_pair(cause, ident), OWNFUNCTION_NONE);
	if (*id == OWNFUNCTION_NONE) {
		*id = w->sites.n;
		vec_push(&w->sites,
			 (struct waits_site){ .cause = cause, .ident = ident, .thread = PROFILE_NONE,
					      .longest_thread = PROFILE_NONE });
	}
	of_stack[slot] = *id;
	return *id;
}

/* Adds a sample to its site, and to what its thread waited there. */
static void add_sample(struct waits *w, struct map *by_thread, uint32_t site, const struct profile_sample *s,
		       uint64_t value)
{
	struct waits_site *to = &w->sites.v[site];
	uint64_t *sum = map_put(by_thread, map_pair(site, s->thread), 0);

	if (!*sum)
		to->threads++;
	*sum += value;
	if (*sum > to->thread_ns || to->thread == PROFILE_NONE) {
		to->thread_ns = *sum;
		to->thread = s->thread;
	}
	to->ns += value;
	to->count += s->count ? s->count : 1;
	if (s->count <= 1 && value > to->longest_ns) {
		to->longest_ns = value;
		to->longest_at_ns = s->time_ns;
		to->longest_thread = s->thread;
	}
}

static int compare_waiters(const void *a, const void *b)
{
	const struct waits_waiter *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: strcmp(x->thread, y->thread);
}

/* Lists who waited at each site. by_thread: site and thread to nanoseconds. */
static void list_waiters(struct waits *w, const struct profile *p, const struct map *by_thread)
{
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < by_thread->capacity; i++) {
		const struct map_slot *slot = &by_thread->slots[i];
		struct waits_site *site;
		uint32_t name;
		uint64_t *at;

		if (!slot->used)
			continue;
		site = &w->sites.v[slot->key >> 32];
		name = p->threads.v[(uint32_t)slot->key].name;
		at = map_put(&index, map_pair(slot->key >> 32, name), site->waiters.n);
		if (*at == site->waiters.n)
			vec_push(&site->waiters, (struct waits_waiter){ .thread = profile_str(p, name) });
		site->waiters.v[*at].threads++;
		site->waiters.v[*at].ns += slot->value;
	}
	for (size_t i = 0; i < w->sites.n; i++)
		vec_sort(&w->sites.v[i].waiters, compare_waiters);
}

/* Describes a site by the stack with the most of its time. */
static void characterize(struct waits *w, const struct profile *p, const uint32_t *of_stack, const uint64_t *ns,
			 const struct pattern *const *patterns)
{
	for (size_t i = 0; i < p->stacks.n * 2; i++) {
		struct waits_site *s;

		if (of_stack[i] == OWNFUNCTION_NONE)
			continue;
		s = &w->sites.v[of_stack[i]];
		if (ns[i] <= s->heaviest_ns)
			continue;
		s->heaviest_ns = ns[i];
		s->pattern = patterns[i];
		s->operation = ownfunction_operation(p, i / 2);
	}
}

static int compare_sites(const void *a, const void *b, void *context)
{
	const struct waits_site *sites = context, *x = &sites[*(const uint32_t *)a],
				*y = &sites[*(const uint32_t *)b];

	if ((x->cause == CAUSE_SLEEP) != (y->cause == CAUSE_SLEEP))
		return x->cause == CAUSE_SLEEP ? 1 : -1;
	return ORDER(y->ns, x->ns) ?: ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Longest first, but sleep, which is intended, last; of_stack follows. */
static void sort_sites(struct waits *w, uint32_t *of_stack, size_t slots)
{
	size_t n = w->sites.n;
	_cleanup_free_ uint32_t *order = mem_alloc((n + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *place = mem_alloc((n + 1) * sizeof(*place));
	struct waits_site *sorted = mem_alloc((n + 1) * sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n > 1)
		qsort_r(order, n, sizeof(*order), compare_sites, w->sites.v);
	for (size_t i = 0; i < n; i++) {
		sorted[i] = w->sites.v[order[i]];
		place[order[i]] = i;
	}
	free(w->sites.v);
	w->sites.v = sorted;
	w->sites.capacity = n + 1;
	for (size_t i = 0; i < slots; i++)
		if (of_stack[i] != OWNFUNCTION_NONE)
			of_stack[i] = place[of_stack[i]];
}

void waits_make(struct waits *w, const struct profile *p, const struct select_options *o, size_t detailed)
{
	size_t slots = (p->stacks.n + 1) * 2;
	_cleanup_free_ uint32_t *of_stack = mem_alloc(slots * sizeof(*of_stack));
	_cleanup_free_ uint64_t *ns_of_stack = mem_alloc(slots * sizeof(*ns_of_stack));
	_cleanup_free_ const struct pattern **patterns = mem_alloc(slots * sizeof(*patterns));
	_cleanup_free_ uint8_t *picked = NULL;
	_cleanup_(map_done) struct map index = { 0 }, by_thread = { 0 };
	struct causes *c = o->causes;

	*w = (struct waits){ 0 };
	idents_init(&w->idents, p, 0);
	if (select_threads(p, o, &picked, NULL))
		return;
	memset(of_stack, 0xff, slots * sizeof(*of_stack));
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		struct causes_wait wait;
		uint64_t value;

		if (causes_role(c, s->event) != ROLE_WAIT || !picked[s->thread])
			continue;
		value = select_value(p, i, ROLE_WAIT, o->from_ns, o->to_ns);
		if (!value)
			continue;
		wait = causes_of_sample(c, s);
		if (wait.cause == CAUSE_IDLE && !o->idle) {
			w->idle_ns += value;
			continue;
		}
		add_sample(w, &by_thread, site_of(w, &index, of_stack, s->stack, &wait), s, value);
		ns_of_stack[waits_slot(s->stack, &wait)] += value;
		patterns[waits_slot(s->stack, &wait)] = wait.pattern;
		w->ns += value;
		w->count += s->count ? s->count : 1;
	}
	characterize(w, p, of_stack, ns_of_stack, patterns);
	list_waiters(w, p, &by_thread);
	sort_sites(w, of_stack, p->stacks.n * 2);
	wakers_find(w, p, o, picked, of_stack, MIN(detailed, w->sites.n));
	for (size_t i = 0; i < w->sites.n; i++) {
		w->sites.v[i].function = w->idents.list.v[w->sites.v[i].ident].name;
		w->sites.v[i].module = w->idents.list.v[w->sites.v[i].ident].module;
	}
}

void waits_done(struct waits *w)
{
	vec_done_each(&w->sites, e, vec_done(&e->waiters); vec_done(&e->wakers); vec_done(&e->ran); vec_done(&e->chains));
	idents_done(&w->idents);
}
