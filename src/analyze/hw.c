#include "analyze/hw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/phases.h"
#include "analyze/select.h"
#include "base/err.h"
#include "base/mem.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Samples of a ratio's denominator: with ten, its error is a third. */
enum { ENOUGH = 10 };

struct building {
	struct hw_tables *t;
	const struct profile *p;
	double share[COUNTERS];
	uint32_t event[COUNTERS]; /* PROFILE_NONE = not known */
	struct map functions, threads, phases; /* to rows */
};

double hw_ratio(const struct hw_row *row, enum counter_ratio r)
{
	if (row->samples[counter_ratio_whole(r)] < ENOUGH)
		return NAN;
	return counter_ratio(row->values, r);
}

/* --- the recorded events --- */

static bool find_events(struct building *b)
{
	bool any = false;

	for (uint32_t c = 0; c < COUNTERS; c++) {
		_cleanup_free_ char *name = mem_printf("hw:%s", counter_names[c]);
		uint64_t millionths = profile_counter_of(b->p, KEY_HW_SHARE_OF, counter_names[c]);

		b->event[c] = profile_find_event(b->p, name, NULL);
		/* A recorder that was killed has not said how it was shared: its samples are scaled all the same. */
		b->share[c] = counter_is_hardware(c) && b->p->finished ? millionths / 1e6 : 1;
		if (b->share[c] <= 0)
			b->event[c] = PROFILE_NONE;
		any |= b->event[c] != PROFILE_NONE;
	}
	return any;
}

/* --- rows --- */

static struct hw_row *find_row(struct building *b, struct hw_rows *rows, struct map *index, uint64_t key)
{
	uint64_t *at = map_put(index, key, rows->n);
	struct hw_row row = { .name = "", .module = "" };

	if (*at < rows->n)
		return &rows->v[*at];
	/* A counter that was recorded but has no samples is 0; one that was not recorded is unknown. */
	for (uint32_t c = 0; c < COUNTERS; c++)
		row.values[c] = (struct counter_value){ .share = b->share[c],
							.known = b->event[c] != PROFILE_NONE };
	vec_push(rows, row);
	return &rows->v[rows->n - 1];
}

static void add(struct hw_row *row, enum counter c, const struct weight *w)
{
	row->values[c].value += w->value;
	row->samples[c] += w->samples;
}

/* Returns the function that a stack is charged to: the innermost function of the program. The kernel's
 * work counts for its caller. */
static uint32_t function_of(struct building *b, uint32_t stack)
{
	const struct profile *p = b->p;
	uint32_t at = stack, n;
	const uint32_t *list;

	while (at && (p->frames.v[p->stacks.v[at].frame].kind == FRAME_NOTE ||
		      p->frames.v[p->stacks.v[at].frame].kind == FRAME_KERNEL))
		at = p->stacks.v[at].parent;
	if (!at)
		at = stack; /* a thread of the kernel */
	if (!at)
		return idents_add(&b->t->idents, "[no stack]", "", IDENT_GROUP);
	list = idents_of_frame(&b->t->idents, p->stacks.v[at].frame, &n);
	return list[n - 1];
}

static void add_entries(struct building *b, enum counter c, const struct selection *s)
{
	const struct profile *p = b->p;

	for (size_t i = 0; i < s->entries.n; i++) {
		const struct select_entry *e = &s->entries.v[i];
		const struct profile_thread *thread = &p->threads.v[e->thread];
		uint32_t function = function_of(b, e->stack);
		struct hw_row *row = find_row(b, &b->t->functions, &b->functions, function);

		row->name = b->t->idents.list.v[function].name;
		row->module = b->t->idents.list.v[function].module;
		add(row, c, &e->weight);
		row = find_row(b, &b->t->threads, &b->threads, e->thread);
		row->name = profile_str(p, thread->name);
		row->process = p->processes.v[thread->process].pid;
		row->id = thread->tid;
		add(row, c, &e->weight);
	}
}

/* Phases have names that mean something; of runs and blocks it is the kind. */
static uint32_t phase_of(const struct profile *p, const struct profile_mark *m)
{
	return strcmp(profile_str(p, m->kind), "phase") ? m->kind : m->name;
}

static void add_phases(struct building *b, enum counter c, const struct selection *s)
{
	struct marks marks;

	if (marks_build(&marks, b->p, s, NULL))
		return;
	for (size_t i = 0; i < marks.rows.n; i++) {
		const struct profile_mark *m = &b->p->marks.v[marks.rows.v[i].mark];
		uint32_t phase = phase_of(b->p, m);
		struct hw_row *row = find_row(b, &b->t->phases, &b->phases, phase);

		row->name = profile_str(b->p, phase);
		add(row, c, &marks.rows.v[i].weight);
		if (c == b->t->order) {
			row->count++;
			row->time_ns += marks.rows.v[i].end_ns - marks.rows.v[i].start_ns;
		}
	}
	marks_done(&marks);
}

/* --- the whole --- */

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct hw_row *x = a, *y = b;
	enum counter c = *(const enum counter *)context;

	return ORDER(y->values[c].value, x->values[c].value) ?: strcmp(x->name, y->name) ?: ORDER(x->id, y->id);
}

static void sort_rows(struct hw_rows *rows, enum counter by)
{
	if (rows->n > 1)
		qsort_r(rows->v, rows->n, sizeof(*rows->v), compare_rows, &by);
}

static void add_counter(struct building *b, enum counter c)
{
	const struct select_options o = { .event = b->event[c] };
	struct selection s;

	if (b->event[c] == PROFILE_NONE)
		return;
	b->t->all.values[c] = (struct counter_value){ .known = true, .share = b->share[c] };
	if (selection_make(b->p, &o, &s, NULL))
		return; /* it was counted, and never happened */
	b->t->all.values[c].value = s.all.value;
	b->t->all.samples[c] = s.all.samples;
	add_entries(b, c, &s);
	add_phases(b, c, &s);
	selection_done(&s);
}

int hw_build(struct hw_tables *t, const struct profile *p, struct err *err)
{
	struct building b = { .t = t, .p = p };

	*t = (struct hw_tables){ .all = { .name = "", .module = "" }, .duration_ns = select_duration_ns(p) };
	if (!find_events(&b))
		return err_set(err, ENODATA, "no counters are in this recording: record with -e hw");
	idents_init(&t->idents, p, 0);
	t->order = b.event[COUNTER_CYCLES] != PROFILE_NONE ? COUNTER_CYCLES : COUNTER_TASK_CLOCK;
	for (uint32_t c = 0; c < COUNTERS; c++)
		add_counter(&b, c);
	sort_rows(&t->functions, t->order);
	sort_rows(&t->threads, t->order);
	map_done(&b.functions);
	map_done(&b.threads);
	map_done(&b.phases);
	return 0;
}

void hw_done(struct hw_tables *t)
{
	vec_done(&t->functions);
	vec_done(&t->threads);
	vec_done(&t->phases);
	idents_done(&t->idents);
	*t = (struct hw_tables){ 0 };
}
