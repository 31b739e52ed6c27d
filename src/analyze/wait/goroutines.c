#include "analyze/wait/goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "analyze/wait/cause.h"
#include "base/mem.h"
#include "profile/profile.h"

bool goroutines_recorded(const struct profile *p)
{
	return profile_find_event(p, "goroutine", "ns") != PROFILE_NONE;
}

bool goroutines_is_stack(const struct profile *p, uint32_t stack)
{
	const struct profile_node *n = &p->stacks.v[stack];

	return stack && n->parent && p->frames.v[n->frame].kind == FRAME_NOTE;
}

bool goroutines_is_go(const struct profile *p)
{
	/* One of these is on nearly every stack of a Go program. */
	static const char *const names[] = { "runtime.goexit", "runtime.goexit.abi0", "runtime.mstart", "runtime.mstart.abi0",
					     "runtime.mcall", "runtime.schedule", "runtime.gopark" };

	for (size_t i = 0; i < p->functions.n; i++) {
		const char *name = profile_str(p, p->functions.v[i].name);

		for (size_t k = 0; k < ARRAY_LEN(names) && !strncmp(name, "runtime.", 8); k++)
			if (!strcmp(name, names[k]))
				return true;
	}
	return false;
}

/* --- rows --- */

struct making {
	struct goroutines *g;
	const struct profile *p;
	struct map reasons, rows; /* note's frame to reason; reason and function to row */
	uint32_t *of_stack;       /* row, OWNFUNCTION_NONE = not known yet */
};

/* The text of the note "[chan receive]". */
static uint32_t reason_of(struct making *m, uint32_t frame)
{
	uint64_t *id = map_put(&m->reasons, frame, PROFILE_NONE);

	if (*id == PROFILE_NONE) {
		const char *note = cause_frame_name(m->p, frame);
		char *text = mem_strdup(note + (*note == '['));
		size_t n = strlen(text);

		if (n && text[n - 1] == ']')
			text[n - 1] = 0;
		*id = m->g->reasons.n;
		vec_push(&m->g->reasons, text);
	}
	return *id;
}

static uint32_t row_of(struct making *m, uint32_t stack, bool idle)
{
	const struct profile_node *n = &m->p->stacks.v[stack];
	struct goroutines *g = m->g;
	uint32_t ident, reason;
	uint64_t *id;

	if (m->of_stack[stack] != OWNFUNCTION_NONE)
		return m->of_stack[stack];
	reason = reason_of(m, n->frame);
	ident = ownfunction_of_stack(&g->idents, n->parent);
	if (ident == OWNFUNCTION_NONE)
		ident = idents_add(&g->idents, "[no stack]", "", IDENT_TRUNCATED);
	id = map_put(&m->rows, map_pair(reason, ident), OWNFUNCTION_NONE);
	if (*id == OWNFUNCTION_NONE) {
		*id = g->rows.n;
		vec_push(&g->rows, (struct goroutines_row){ .reason = g->reasons.v[reason], .ident = ident, .idle = idle });
	}
	m->of_stack[stack] = *id;
	return *id;
}

static void add_sample(struct making *m, const struct profile_sample *s, uint64_t ns, bool idle)
{
	uint32_t row = row_of(m, s->stack, idle);
	struct goroutines_row *r = &m->g->rows.v[row];
	uint64_t count = s->count ? s->count : 1;

	r->ns += ns;
	r->count += count;
	if (count == 1)
		r->longest_ns = MAX(r->longest_ns, ns);
	if (idle) {
		m->g->idle_ns += ns;
	} else {
		m->g->ns += ns;
		m->g->count += count;
	}
}

/* The part of the runtime from which a goroutine was made ready; NULL: none that has a name here. */
static const char *runtime_part(const struct profile *p, uint32_t stack)
{
	for (; stack; stack = p->stacks.v[stack].parent) {
		const char *name = cause_frame_name(p, p->stacks.v[stack].frame);

		if (!strncmp(name, "runtime.", 8) && strstr(name, "imer"))
			return "[timer]";
		if (!strncmp(name, "runtime.netpoll", 15))
			return "[network]";
	}
	return NULL;
}

static void add_wake(struct making *m, const struct profile_wake *w, struct goroutines_row *r)
{
	uint32_t ident = ownfunction_of_stack(&m->g->idents, w->waker_stack);
	const char *function = ident == OWNFUNCTION_NONE ? "[no stack]" : m->g->idents.list.v[ident].name;
	size_t i = 0;

	if (!strncmp(function, "runtime.", 8))
		function = runtime_part(m->p, w->waker_stack) ?: function;

	while (i < r->wakers.n && strcmp(r->wakers.v[i].function, function))
		i++;
	if (i == r->wakers.n)
		vec_push(&r->wakers, (struct goroutines_waker){ .function = function });
	r->wakers.v[i].ns += w->blocked_ns;
	r->wakers.v[i].count++;
	r->woken_ns += w->blocked_ns;
}

static int compare_wakers(const void *a, const void *b)
{
	const struct goroutines_waker *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: strcmp(x->function, y->function);
}

static int compare_rows(const void *a, const void *b)
{
	const struct goroutines_row *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	return ORDER(y->ns, x->ns) ?: strcmp(x->reason, y->reason) ?: strcmp(x->function, y->function);
}

static void read_samples(struct making *m, const struct select_options *o, const uint8_t *picked)
{
	const struct profile *p = m->p;
	uint32_t wait = profile_find_event(p, "goroutine", "ns"), idle = profile_find_event(p, "goroutine-idle", "ns"),
		 queue = profile_find_event(p, "goroutine-queue", "ns");

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		uint64_t ns;

		if ((s->event != wait && s->event != idle && s->event != queue) || !picked[s->thread] ||
		    !goroutines_is_stack(p, s->stack))
			continue;
		ns = select_value(p, i, ROLE_WAIT, o->from_ns, o->to_ns);
		if (!ns)
			continue;
		if (s->event == queue) {
			m->g->queue_ns += ns;
			m->g->queue_count += s->count ? s->count : 1;
		} else {
			add_sample(m, s, ns, s->event == idle);
		}
	}
}

void goroutines_make(struct goroutines *g, const struct profile *p, const struct select_options *o)
{
	_cleanup_free_ uint32_t *of_stack = mem_alloc((p->stacks.n + 1) * sizeof(*of_stack));
	_cleanup_free_ uint8_t *picked = NULL;
	struct making m = { .g = g, .p = p, .of_stack = of_stack };

	*g = (struct goroutines){ 0 };
	idents_init(&g->idents, p, 0);
	if (!goroutines_recorded(p) || select_threads(p, o, &picked, NULL))
		return;
	memset(of_stack, 0xff, (p->stacks.n + 1) * sizeof(*of_stack));
	read_samples(&m, o, picked);
	for (size_t i = 0; i < p->wakes.n; i++) {
		const struct profile_wake *w = &p->wakes.v[i];

		if (of_stack[w->stack] != OWNFUNCTION_NONE && picked[w->thread] && w->time_ns + w->blocked_ns > o->from_ns &&
		    (!o->to_ns || w->time_ns < o->to_ns))
			add_wake(&m, w, &g->rows.v[of_stack[w->stack]]);
	}
	for (size_t i = 0; i < g->rows.n; i++) {
		struct goroutines_row *r = &g->rows.v[i];

		r->function = g->idents.list.v[r->ident].name;
		r->module = g->idents.list.v[r->ident].module;
		vec_sort(&r->wakers, compare_wakers);
		r->wakers.n = MIN(r->wakers.n, (size_t)GOROUTINES_WAKERS);
	}
	vec_sort(&g->rows, compare_rows);
	map_done(&m.reasons);
	map_done(&m.rows);
}

void goroutines_done(struct goroutines *g)
{
	vec_done_each(&g->rows, e, vec_done(&e->wakers));
	for (size_t i = 0; i < g->reasons.n; i++)
		free(g->reasons.v[i]);
	vec_done(&g->reasons);
	idents_done(&g->idents);
}
