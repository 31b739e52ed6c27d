#include "analyze/wait/wakers.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "analyze/wait/goroutines.h"
#include "analyze/wait/waits.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum {
	SHOWN = 8,          /* wakers, functions and chains kept for a site */
	CHAINED = 1000,     /* the longest waits of a site whose chains are followed: they hold its time */
	LOOKED_AT = 4096,   /* waits of one waker that are examined for a link */
	LINK_PERCENT = 25,  /* of a wait, that its waker must itself have waited to be a link */
};

/* Samples or wakes of one thread after the other, by time. */
struct timeline {
	uint32_t *order;  /* ids */
	size_t *first;    /* of each thread, and the end of the last */
};

struct finder {
	struct waits *w;
	const struct profile *p;
	const struct select_options *o;
	struct timeline wakes, waits, cpu;
	struct waker_facts {
		bool known;
		enum kernel_interrupt interrupt;
		uint32_t ident; /* of its function */
	} *facts; /* by waker's stack */
};

static uint64_t end_of(const struct profile_wake *w)
{
	return w->time_ns + w->blocked_ns;
}

/* --- by time --- */

static int compare_wakes(const void *a, const void *b, void *context)
{
	const struct profile_wake *list = context, *x = &list[*(const uint32_t *)a],
				  *y = &list[*(const uint32_t *)b];

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct profile_sample *list = context, *x = &list[*(const uint32_t *)a],
				    *y = &list[*(const uint32_t *)b];

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

typedef int compare_fn(const void *a, const void *b, void *context);

/* Turns counts into places: first[t + 2] is the count of thread t before, first[t + 1] where its ids begin after it. */
static void timeline_begin(struct timeline *t, size_t threads)
{
	for (size_t i = 2; i <= threads + 1; i++)
		t->first[i] += t->first[i - 1];
}

/* Appends an id to those of its thread. first[t] is where they begin once all were added. */
static void timeline_add(struct timeline *t, uint32_t thread, uint32_t id)
{
	t->order[t->first[thread + 1]++] = id;
}

/* Sorts the ids of each thread by time. Rows are appended as time goes on: most threads are in order already. */
static void timeline_end(struct timeline *t, size_t threads, compare_fn *compare, void *rows)
{
	for (size_t i = 0; i < threads; i++) {
		uint32_t *list = t->order + t->first[i];
		size_t count = t->first[i + 1] - t->first[i], k = 1;

		while (k < count && compare(&list[k - 1], &list[k], rows) < 0)
			k++;
		if (k < count)
			qsort_r(list, count, sizeof(*list), compare, rows);
	}
}

static void make_wakes(struct timeline *t, const struct profile *p)
{
	t->order = mem_alloc((p->wakes.n + 1) * sizeof(*t->order));
	t->first = mem_alloc((p->threads.n + 2) * sizeof(*t->first));
	/* No thread waited while a goroutine did. */
	for (size_t i = 0; i < p->wakes.n; i++)
		t->first[p->wakes.v[i].thread + 2] += !goroutines_is_stack(p, p->wakes.v[i].stack);
	timeline_begin(t, p->threads.n);
	for (size_t i = 0; i < p->wakes.n; i++)
		if (!goroutines_is_stack(p, p->wakes.v[i].stack))
			timeline_add(t, p->wakes.v[i].thread, i);
	timeline_end(t, p->threads.n, compare_wakes, p->wakes.v);
}

static void make_samples(struct timeline *t, const struct profile *p, const struct causes *c, enum role role)
{
	const struct profile_sample *v = p->samples.v;
	size_t n = 0;

	t->first = mem_alloc((p->threads.n + 2) * sizeof(*t->first));
	for (size_t i = 0; i < p->samples.n; i++)
		if (causes_role(c, v[i].event) == role) {
			t->first[v[i].thread + 2]++;
			n++;
		}
	t->order = mem_alloc((n + 1) * sizeof(*t->order));
	timeline_begin(t, p->threads.n);
	for (size_t i = 0; i < p->samples.n; i++)
		if (causes_role(c, v[i].event) == role)
			timeline_add(t, v[i].thread, i);
	timeline_end(t, p->threads.n, compare_samples, p->samples.v);
}

static void timeline_done(struct timeline *t)
{
	free(t->order);
	free(t->first);
}

/* The first of a thread's samples that is not before time. */
static size_t seek(const struct timeline *t, const struct profile_sample *samples, uint32_t thread,
		   uint64_t time)
{
	return vec_search(i, t->first[thread], t->first[thread + 1], samples[t->order[i]].time_ns < time);
}

static struct causes_wait wait_of(const struct finder *f, const struct profile_wake *w)
{
	return causes_of_wait(f->o->causes, w->thread, w->stack, w->time_ns, w->time_ns + w->blocked_ns);
}

/* --- wakers --- */

/* Classifies a waker's stack: an interrupt, or the function from which it woke the other thread. */
static const struct waker_facts *facts_of(struct finder *f, uint32_t stack)
{
	const struct profile *p = f->p;
	struct waker_facts *facts = &f->facts[stack];
	struct interrupt_reader r = { 0 };
	uint32_t kernel = OWNFUNCTION_NONE, n;
	bool user = false;

	if (facts->known)
		return facts;
	facts->known = true;
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent) {
		uint32_t frame = p->stacks.v[s].frame;
		const char *name = cause_frame_name(p, frame);

		user |= p->frames.v[frame].kind == FRAME_USER;
		if (p->frames.v[frame].kind != FRAME_KERNEL)
			continue;
		interrupt_read(&r, kernelname_of(name));
		if (kernel == OWNFUNCTION_NONE && !kernel_is_waking(name))
			kernel = idents_of_frame(&f->w->idents, frame, &n)[0];
	}
	facts->interrupt = interrupt_of(&r);
	facts->ident = user || kernel == OWNFUNCTION_NONE ? ownfunction_of_stack(&f->w->idents, stack) : kernel;
	if (facts->ident == OWNFUNCTION_NONE)
		facts->ident = idents_add(&f->w->idents, "[no stack]", "", IDENT_TRUNCATED);
	return facts;
}

static bool in_range(const struct finder *f, const struct profile_wake *w)
{
	return end_of(w) > f->o->from_ns && (!f->o->to_ns || w->time_ns < f->o->to_ns);
}

static const char *waker_thread(const struct profile *p, const struct profile_wake *w)
{
	return profile_str(p, w->waker < p->threads.n ? p->threads.v[w->waker].name : w->waker_name);
}

/* A site may have thousands of wakers: index has those that are in its list, by_stack what each ended from each stack.
 * Names of threads are interned, so one name has one address. */
static void add_waker(struct finder *f, struct waits_site *site, struct map *index, struct map *by_stack,
		      const struct profile_wake *wake)
{
	const struct waker_facts *facts = facts_of(f, wake->waker_stack);
	struct waits_waker w = { .interrupt = facts->interrupt, .function = "", .thread = "" };
	struct waits_waker *to;
	uint64_t key, *i, *ns;

	if (!w.interrupt) {
		w.function = f->w->idents.list.v[facts->ident].name;
		w.thread = waker_thread(f->p, wake);
	}
	key = map_hash((uintptr_t)w.function) ^ map_hash((uintptr_t)w.thread + 1) ^ (uintptr_t)w.interrupt;
	for (;; key++) {
		const struct waits_waker *there;

		i = map_put(index, key, site->wakers.n);
		if (*i == site->wakers.n)
			vec_push(&site->wakers, w);
		there = &site->wakers.v[*i];
		if (there->interrupt == w.interrupt && there->function == w.function && !strcmp(there->thread, w.thread))
			break;
	}
	to = &site->wakers.v[*i];
	to->ns += wake->blocked_ns;
	to->count++;
	to->longest_ns = MAX(to->longest_ns, wake->blocked_ns);
	site->woken_ns += wake->blocked_ns;
	ns = map_put(by_stack, map_pair(*i, wake->waker_stack), 0);
	*ns += wake->blocked_ns;
	if (*ns > to->stack_ns) {
		to->stack_ns = *ns;
		to->stack = wake->waker_stack;
	}
}

static int compare_wakers(const void *a, const void *b)
{
	const struct waits_waker *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: strcmp(x->function, y->function);
}

/* --- what wakers ran meanwhile --- */

struct interval {
	uint32_t thread;
	uint64_t begin, end;
};

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->begin, y->begin);
}

static void add_ran(struct finder *f, struct waits_site *site, struct map *index,
		    const struct profile_sample *s)
{
	uint32_t ident = ownfunction_of_stack(&f->w->idents, s->stack);
	uint64_t *id;

	if (ident == OWNFUNCTION_NONE)
		return;
	id = map_put(index, ident, site->ran.n);
	if (*id == site->ran.n)
		vec_push(&site->ran, (struct waits_ran){ .function = f->w->idents.list.v[ident].name });
	site->ran.v[*id].ns += s->value;
}

static int compare_ran(const void *a, const void *b)
{
	const struct waits_ran *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: strcmp(x->function, y->function);
}

/* Waits of several threads for one waker overlap: each of its samples counts once. */
static void find_ran(struct finder *f, struct waits_site *site, struct interval *list, size_t n)
{
	const struct profile_sample *samples = f->p->samples.v;
	_cleanup_(map_done) struct map index = { 0 };
	uint64_t done = 0;

	if (n > 1)
		qsort(list, n, sizeof(*list), compare_intervals);
	for (size_t i = 0; i < n; i++) {
		uint32_t thread = list[i].thread;
		uint64_t begin = list[i].begin;

		if (i && list[i - 1].thread == thread)
			begin = MAX(begin, done);
		else
			done = 0;
		for (size_t k = seek(&f->cpu, samples, thread, begin);
		     k < f->cpu.first[thread + 1] && samples[f->cpu.order[k]].time_ns < list[i].end; k++)
			add_ran(f, site, &index, &samples[f->cpu.order[k]]);
		done = MAX(done, list[i].end);
	}
	vec_sort(&site->ran, compare_ran);
	site->ran.n = MIN(site->ran.n, (size_t)SHOWN);
}

/* --- chains --- */

struct group {
	enum cause cause;
	uint32_t ident;
	uint64_t ns;
};

/* Adds the part between begin and end of one sample of a thread's waits. */
static void add_group(struct finder *f, struct group *groups, size_t *n, size_t sample, uint64_t begin,
		      uint64_t end)
{
	const struct profile_sample *s = &f->p->samples.v[sample];
	uint64_t ns = select_value(f->p, sample, ROLE_WAIT, begin, end);
	enum cause cause;
	uint32_t ident;
	size_t i = 0;

	if (!ns)
		return;
	cause = causes_of_sample(f->o->causes, s).cause;
	if (cause == CAUSE_IDLE || cause == CAUSE_UNKNOWN)
		return;
	ident = ownfunction_of_stack(&f->w->idents, s->stack);
	while (i < *n && (groups[i].cause != cause || groups[i].ident != ident))
		i++;
	if (i == SHOWN)
		return;
	if (i == *n)
		groups[(*n)++] = (struct group){ cause, ident, 0 };
	groups[i].ns += ns;
}

/* Finds the main cause of a thread's waits between begin and end. */
static struct group waited_for(struct finder *f, uint32_t thread, uint64_t begin, uint64_t end)
{
	const struct profile_sample *samples = f->p->samples.v;
	struct group groups[SHOWN], most = { .ident = OWNFUNCTION_NONE };
	size_t n = 0, at = seek(&f->waits, samples, thread, begin), looked = 0;

	/* A wait that began before may reach in; sums of short ones can be between them. */
	for (size_t k = at; k > f->waits.first[thread] && at - k < SHOWN; k--)
		add_group(f, groups, &n, f->waits.order[k - 1], begin, end);
	for (; at < f->waits.first[thread + 1] && samples[f->waits.order[at]].time_ns < end &&
	       looked < LOOKED_AT; at++, looked++)
		add_group(f, groups, &n, f->waits.order[at], begin, end);
	for (size_t i = 0; i < n; i++)
		if (groups[i].ns > most.ns)
			most = groups[i];
	return most;
}

/* The wake that ended most of a thread's waits of that group between begin and end, NULL = none. */
static const struct profile_wake *ended_by(struct finder *f, uint32_t thread, const struct group *g,
					   uint64_t begin, uint64_t end)
{
	const struct profile_wake *best = NULL;
	uint64_t most = 0;
	size_t last = f->wakes.first[thread + 1], looked = 0;
	/* A thread's waits do not overlap: those that reach in are neighbours. */
	size_t low = vec_search(i, f->wakes.first[thread], last, end_of(&f->p->wakes.v[f->wakes.order[i]]) <= begin);

	for (; low < last && looked < LOOKED_AT; low++, looked++) {
		const struct profile_wake *w = &f->p->wakes.v[f->wakes.order[low]];
		uint64_t ns = MIN(end_of(w), end) - MIN(MAX(w->time_ns, begin), MIN(end_of(w), end));

		if (w->time_ns >= end)
			break;
		if (ns > most && wait_of(f, w).cause == g->cause &&
		    ownfunction_of_stack(&f->w->idents, w->stack) == g->ident) {
			most = ns;
			best = w;
		}
	}
	return best;
}

static void follow(struct finder *f, const struct profile_wake *wake, struct waits_chain *chain)
{
	uint32_t visited[WAITS_LINKS + 1] = { wake->thread };

	while (wake && chain->link_count < WAITS_LINKS) {
		uint64_t begin = wake->time_ns, end = end_of(wake);
		uint32_t thread = wake->waker;
		struct group g;

		chain->end = facts_of(f, wake->waker_stack)->interrupt;
		if (chain->end || thread >= f->p->threads.n)
			return;
		for (uint32_t i = 0; i <= chain->link_count; i++)
			if (visited[i] == thread)
				return;
		g = waited_for(f, thread, begin, end);
		if (g.ident == OWNFUNCTION_NONE || g.ns * 100 < (end - begin) * LINK_PERCENT)
			return;
		chain->links[chain->link_count] = (struct waits_link){
			.thread = profile_str(f->p, f->p->threads.v[thread].name), .cause = g.cause,
			.function = f->w->idents.list.v[g.ident].name };
		visited[++chain->link_count] = thread;
		wake = ended_by(f, thread, &g, begin, end);
	}
	if (wake && !chain->end)
		chain->end = facts_of(f, wake->waker_stack)->interrupt;
}

static bool same_chain(const struct waits_chain *a, const struct waits_chain *b)
{
	if (a->link_count != b->link_count || a->end != b->end)
		return false;
	for (uint32_t i = 0; i < a->link_count; i++)
		if (a->links[i].cause != b->links[i].cause || a->links[i].function != b->links[i].function ||
		    strcmp(a->links[i].thread, b->links[i].thread))
			return false;
	return true;
}

static int compare_chains(const void *a, const void *b)
{
	const struct waits_chain *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(y->link_count, x->link_count);
}

static void add_chain(struct finder *f, struct waits_site *site, const struct profile_wake *wake)
{
	struct waits_chain chain = { 0 };
	size_t i;

	follow(f, wake, &chain);
	if (!chain.link_count)
		return;
	for (i = 0; i < site->chains.n && !same_chain(&site->chains.v[i], &chain); i++)
		;
	if (i == site->chains.n)
		vec_push(&site->chains, chain);
	site->chains.v[i].ns += wake->blocked_ns;
	site->chains.v[i].count++;
}

static int compare_blocked(const void *a, const void *b)
{
	const struct profile_wake *x = *(const struct profile_wake *const *)a,
				  *y = *(const struct profile_wake *const *)b;

	return ORDER(y->blocked_ns, x->blocked_ns) ?: ORDER(x->time_ns, y->time_ns);
}

/* --- a site at a time --- */

static void find_site(struct finder *f, struct waits_site *site, const struct profile_wake **wakes, size_t n)
{
	_cleanup_(map_done) struct map index = { 0 }, by_stack = { 0 };
	VEC(struct interval) waited = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct profile_wake *w = wakes[i];

		add_waker(f, site, &index, &by_stack, w);
		if (w->waker < f->p->threads.n && !facts_of(f, w->waker_stack)->interrupt)
			vec_push(&waited, (struct interval){ w->waker, w->time_ns, end_of(w) });
	}
	vec_sort(&site->wakers, compare_wakers);
	site->wakers.n = MIN(site->wakers.n, (size_t)SHOWN);
	if (waited.n)
		find_ran(f, site, waited.v, waited.n);
	if (n > 1)
		qsort(wakes, n, sizeof(*wakes), compare_blocked);
	for (size_t i = 0; i < MIN(n, (size_t)CHAINED); i++)
		add_chain(f, site, wakes[i]);
	vec_sort(&site->chains, compare_chains);
	site->chains.n = MIN(site->chains.n, (size_t)SHOWN);
	vec_done(&waited);
}

void wakers_find(struct waits *w, const struct profile *p, const struct select_options *o,
		 const uint8_t *picked, const uint32_t *of_stack, size_t n)
{
	struct finder f = { .w = w, .p = p, .o = o };
	VEC(const struct profile_wake *) *of_site = mem_alloc((n + 1) * sizeof(*of_site));

	f.facts = mem_alloc((p->stacks.n + 1) * sizeof(*f.facts));
	make_wakes(&f.wakes, p);
	make_samples(&f.waits, p, o->causes, ROLE_WAIT);
	make_samples(&f.cpu, p, o->causes, ROLE_CPU);
	for (size_t i = 0; i < p->wakes.n; i++) {
		const struct profile_wake *wake = &p->wakes.v[i];
		struct causes_wait wait = wait_of(&f, wake);
		uint32_t site = of_stack[waits_slot(wake->stack, &wait)];

		if (site < n && picked[wake->thread] && wake->blocked_ns && in_range(&f, wake))
			vec_push(&of_site[site], wake);
	}
	for (size_t i = 0; i < n; i++) {
		find_site(&f, &w->sites.v[i], of_site[i].v, of_site[i].n);
		vec_done(&of_site[i]);
	}
	free(of_site);
	free(f.facts);
	timeline_done(&f.wakes);
	timeline_done(&f.waits);
	timeline_done(&f.cpu);
}
