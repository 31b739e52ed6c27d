#include "analyze/subsystem/opcodes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "profile/profile.h"

/* By label: its time within the spans. Caller frees. */
static uint64_t *times_of(struct classifier *c, struct causes *causes, const struct opcode_span *spans,
			  size_t n)
{
	struct select_options o = { .causes = causes, .event = SELECT_WALL };
	uint64_t *ns = NULL;
	size_t known = 0;

	if (!select_has_waits(c->p) && select_event(c->p, "cpu", &o.event, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		struct selection s = { 0 };

		o.from_ns = spans[i].from_ns;
		o.to_ns = spans[i].to_ns;
		selection_make(c->p, &o, &s, NULL); /* of nothing: it stays empty */
		for (size_t k = 0; k < s.entries.n; k++) {
			const struct select_entry *e = &s.entries.v[k];
			uint16_t label = classifier_of(c, e->stack).label;

			if (known <= label) {
				ns = mem_resize(ns, c->table->labels.n, sizeof(*ns));
				memset(ns + known, 0, (c->table->labels.n - known) * sizeof(*ns));
				known = c->table->labels.n;
			}
			if (e->cause != CAUSE_QUEUE && e->cause != CAUSE_QUOTA)
				ns[label] += e->weight.value;
		}
		selection_done(&s);
	}
	/* Labels that no sample has. */
	ns = mem_resize(ns, c->table->labels.n + 1, sizeof(*ns));
	memset(ns + known, 0, (c->table->labels.n + 1 - known) * sizeof(*ns));
	return ns;
}

static uint16_t find_label(const struct subsystems *t, const char *name, size_t n, enum subsystem_label kind)
{
	for (size_t i = 1; i < t->labels.n; i++)
		if (t->labels.v[i].kind == kind && strlen(t->labels.v[i].name) == n &&
		    !strncmp(t->labels.v[i].name, name, n))
			return i;
	return 0;
}

/* The label whose time has this operation: interpreters have one function for PUSH1 to PUSH32, for all calls,
 * for both creations. 0: none. */
static uint16_t label_of(const struct subsystems *t, const uint64_t *ns, const struct opcode_figure *f)
{
	static const char *const joined[] = { "CALL", "CREATE" };
	uint16_t label = find_label(t, f->name, strlen(f->name), f->kind), other = 0;
	size_t n = strlen(f->name);

	if (f->kind != LABEL_OPCODE || (label && ns[label]))
		return label;
	while (n && isdigit((unsigned char)f->name[n - 1]))
		n--;
	if (n < strlen(f->name))
		other = find_label(t, f->name, n, LABEL_OPCODE);
	for (size_t i = 0; !other && i < ARRAY_LEN(joined); i++)
		if (strstr(f->name, joined[i]) && strncmp(f->name, "CALLDATA", 8) &&
		    strcmp(f->name, "CALLER") && strcmp(f->name, "CALLVALUE"))
			other = find_label(t, joined[i], strlen(joined[i]), LABEL_OPCODE);
	return other && ns[other] ? other : label;
}

static int compare_costs(const void *a, const void *b)
{
	const struct opcode_cost *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->gas != y->gas)
		return x->gas < y->gas ? 1 : -1;
	return strcmp(x->name, y->name);
}

void opcode_costs_make(struct opcode_costs *o, struct classifier *c, struct causes *causes,
		       const struct opcode_figure *figures, size_t n, const struct opcode_span *spans,
		       size_t span_count)
{
	_cleanup_free_ uint64_t *ns = times_of(c, causes, spans, span_count);
	_cleanup_free_ size_t *rows =
		mem_alloc((c->table->labels.n + 1) * sizeof(*rows)); /* by label: 1 + row */

	*o = (struct opcode_costs){ 0 };
	for (size_t i = 0; i < n; i++) {
		const struct opcode_figure *f = &figures[i];
		uint16_t label = label_of(c->table, ns, f);

		if (!label || !rows[label]) {
			vec_push(&o->rows,
				 (struct opcode_cost){ label ? c->table->labels.v[label].name : f->name,
						       f->kind, label ? ns[label] : 0, 0, 0 });
			rows[label] = o->rows.n;
		}
		o->rows.v[rows[label] - 1].count += f->count;
		o->rows.v[rows[label] - 1].gas += f->gas;
	}
	vec_sort(&o->rows, compare_costs);
}

void opcode_costs_done(struct opcode_costs *o)
{
	vec_done(&o->rows);
}
