#include "analyze/subsystem/shares.h"

#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ident.h"
#include "base/map.h"
#include "profile/profile.h"

enum { UNKNOWN_SHOWN = 5, NODE_PERCENT = 2 };

struct making {
	struct subsystem_shares *s;
	struct classifier *c;
	struct subsystem_share rows[SUBSYSTEMS_MAX];
	struct label_share *labels;
	size_t label_count;
	struct map unknown; /* function + 1 to value, 0 = without a name */
};

/* The innermost function of a stack of "other" that no pattern knows, + 1; 0: it has no name. */
static uint32_t unknown_of(struct classifier *c, uint32_t stack)
{
	const struct profile *p = c->p;

	for (; stack; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame;
		const struct profile_frame *f = &p->frames.v[frame];

		if (f->kind != FRAME_USER)
			continue;
		if (ident_frame_unnamed(p, frame))
			return 0;
		for (uint32_t k = 0; k < f->line_count; k++) {
			uint32_t function = p->lines.v[f->first_line + k].function;

			if (!classifier_of_function(c, function).subsystem)
				return function + 1;
		}
	}
	return 0;
}

static void add_label(struct making *m, uint16_t label, const struct weight *w)
{
	if (label >= m->label_count) {
		size_t n = MAX((size_t)label + 1, m->c->table->labels.n);

		m->labels = mem_resize(m->labels, n, sizeof(*m->labels));
		for (size_t i = m->label_count; i < n; i++)
			m->labels[i] = (struct label_share){ .label = i };
		m->label_count = n;
	}
	m->labels[label].value += w->value;
	m->labels[label].samples += w->samples;
}

static void add_entry(struct making *m, const struct select_entry *e)
{
	struct classified of = classifier_of(m->c, e->stack);
	uint64_t value = e->weight.value;

	m->rows[of.subsystem].self += value;
	m->rows[of.subsystem].self_by[e->cause] += value;
	for (unsigned i = 0; i < SUBSYSTEMS_MAX; i++)
		if (of.all >> i & 1) {
			m->rows[i].total += value;
			m->rows[i].total_by[e->cause] += value;
		}
	if (of.label)
		add_label(m, of.label, &e->weight);
	if (of.subsystem == SUBSYSTEM_OTHER)
		*map_put(&m->unknown, unknown_of(m->c, e->stack), 0) += value;
}

/* --- files --- */

/* The event that tells which files faults read: times where there are some. */
static uint32_t fault_event(const struct profile *p)
{
	uint32_t event;

	return select_event(p, "fault", &event, NULL) || event >= p->events.n ? PROFILE_NONE : event;
}

/* Finds the file of which each subsystem read most by page faults. */
static void find_files(struct making *m, const struct select_options *o)
{
	const struct profile *p = m->c->p;
	struct select_options faults = *o;
	struct map sums = { 0 };
	uint64_t most[SUBSYSTEMS_MAX] = { 0 };
	struct selection s = { 0 };

	faults.event = fault_event(p);
	faults.causes = NULL;
	if (faults.event == PROFILE_NONE || selection_make(p, &faults, &s, NULL)) {
		selection_done(&s);
		return;
	}
	for (size_t i = 0; i < s.entries.n; i++) {
		uint32_t stack = s.entries.v[i].stack, note = PROFILE_NONE;
		uint64_t all = classifier_of(m->c, stack).all;

		/* The outer note is the file, the inner one may be a range of it. */
		for (; stack && p->frames.v[p->stacks.v[stack].frame].kind == FRAME_NOTE;
		     stack = p->stacks.v[stack].parent)
			note = p->stacks.v[stack].frame;
		for (unsigned k = 0; note != PROFILE_NONE && k < SUBSYSTEMS_MAX; k++) {
			uint64_t *sum = all >> k & 1 ? map_put(&sums, map_pair(note, k), 0) : NULL;

			if (!sum)
				continue;
			*sum += s.entries.v[i].weight.value;
			if (*sum > most[k]) {
				most[k] = *sum;
				m->rows[k].file = cause_frame_name(p, note);
			}
		}
	}
	map_done(&sums);
	selection_done(&s);
}

/* --- the result --- */

static int compare_rows(const void *a, const void *b)
{
	const struct subsystem_share *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->subsystem - y->subsystem;
}

static int compare_labels(const void *a, const void *b)
{
	const struct label_share *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return x->label - y->label;
}

static int compare_unknown(const void *a, const void *b)
{
	const struct unknown_share *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return strcmp(x->name, y->name);
}

static bool is_node(const struct classifier *c, uint64_t node, uint64_t all)
{
	return c->table->extended || node * 100 > all * NODE_PERCENT;
}

static void take(struct making *m)
{
	const struct profile *p = m->c->p;
	uint64_t node = 0;

	for (size_t i = 0; i < m->c->table->list.n; i++) {
		m->rows[i].subsystem = i;
		if (m->rows[i].total)
			vec_push(&m->s->rows, m->rows[i]);
		node += m->c->table->list.v[i].general ? 0 : m->rows[i].self;
	}
	m->s->node = is_node(m->c, node, m->s->all);
	vec_sort(&m->s->rows, compare_rows);
	for (size_t i = 1; i < m->label_count; i++)
		if (m->labels[i].value)
			vec_push(&m->s->labels, m->labels[i]);
	vec_sort(&m->s->labels, compare_labels);
	for (size_t i = 0; i < m->unknown.capacity; i++) {
		const struct map_slot *x = &m->unknown.slots[i];

		if (x->used)
			vec_push(&m->s->unknown,
			         (struct unknown_share){
					 x->key ? profile_str(p, p->functions.v[x->key - 1].name) : "",
					 x->value });
	}
	vec_sort(&m->s->unknown, compare_unknown);
	m->s->unknown.n = MIN(m->s->unknown.n, (size_t)UNKNOWN_SHOWN);
}

bool subsystem_shares_make(struct subsystem_shares *s, struct classifier *c, const struct select_options *o)
{
	struct making m = { .s = s, .c = c };
	struct select_options select = *o;
	struct selection selection = { 0 };

	*s = (struct subsystem_shares){ 0 };
	s->time = select.event == SELECT_WALL || cause_role(c->p, select.event) != ROLE_OTHER;
	if (s->time && select_has_waits(c->p))
		select.event = SELECT_WALL;
	select.moments = false;
	if (!selection_make(c->p, &select, &selection, NULL)) {
		s->name = selection.name;
		s->unit = selection.unit;
		s->all = selection.all.value;
		for (size_t i = 0; i < selection.entries.n; i++)
			add_entry(&m, &selection.entries.v[i]);
		if (s->time)
			find_files(&m, &select);
		take(&m);
	}
	selection_done(&selection);
	free(m.labels);
	map_done(&m.unknown);
	return s->all;
}

void subsystem_shares_done(struct subsystem_shares *s)
{
	vec_done(&s->rows);
	vec_done(&s->labels);
	vec_done(&s->unknown);
}

/* How much of what is selected is of the subsystems of nodes. */
struct judging {
	struct classifier *c;
	uint64_t all, node;
};

static void judge(void *context, const struct select_hit *hit)
{
	struct judging *j = context;

	if (hit->idle)
		return;
	j->all += hit->weight.value;
	if (!j->c->table->list.v[classifier_of(j->c, hit->stack).subsystem].general)
		j->node += hit->weight.value;
}

/* As subsystem_shares_make() judges, without its tables: of a long recording they are large. */
bool subsystem_is_node(struct classifier *c, struct causes *causes)
{
	struct select_options o = { .causes = causes };
	struct judging j = { .c = c };

	if (select_event(c->p, NULL, &o.event, NULL))
		return false;
	if (cause_role(c->p, o.event) != ROLE_OTHER && select_has_waits(c->p))
		o.event = SELECT_WALL;
	return !select_each(c->p, &o, judge, &j, NULL) && j.all && is_node(c, j.node, j.all);
}

uint64_t subsystem_cpu(const uint64_t by_cause[CAUSE_COUNT])
{
	return by_cause[CAUSE_CPU];
}

uint64_t subsystem_waits(const uint64_t by_cause[CAUSE_COUNT])
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += i == CAUSE_CPU ? 0 : by_cause[i];
	return sum;
}
