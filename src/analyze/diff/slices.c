#include "analyze/diff/slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum {
	SLICES = 64,                /* enough for stretches of several, see stats_sum_spread() */
	SHORTEST_NS = 20000000,     /* below that a slice holds too little to be worth its own */
	FEWEST = 8,
};

/* The part of a moment within one slice. */
struct slices_piece {
	uint32_t stack;
	double value;
};

/* --- the table of functions --- */

void slices_table_init(struct slices_table *t)
{
	*t = (struct slices_table){ 0 };
	strtab_init(&t->names);
}

void slices_table_done(struct slices_table *t)
{
	vec_done(&t->rows);
	strtab_done(&t->names);
	map_done(&t->index);
	*t = (struct slices_table){ 0 };
}

static uint32_t row_of(struct slices_table *t, const struct ident *id)
{
	uint32_t name = strtab_add(&t->names, id->name);
	uint32_t module = strtab_add(&t->names, str_base_name(id->module));
	struct slices_row row = { .name = strtab_get(&t->names, name),
				  .module = strtab_get(&t->names, module), .kind = id->kind };

	/* Strings are interned: one pointer is one string. */
	for (uint64_t key = map_hash(map_pair(name, module)) ^ id->kind;; key++) {
		uint64_t *at = map_put(&t->index, key, PROFILE_NONE);

		if (*at == PROFILE_NONE) {
			*at = t->rows.n;
			vec_push(&t->rows, row);
			return *at;
		}
		if (t->rows.v[*at].name == row.name && t->rows.v[*at].module == row.module &&
		    t->rows.v[*at].kind == row.kind)
			return *at;
	}
}

static bool is_function(const struct ident *id)
{
	return id->kind == IDENT_USER || id->kind == IDENT_INLINED || id->kind == IDENT_KERNEL ||
	       id->kind == IDENT_UNNAMED;
}

/* --- which functions a stack is --- */

/* Returns whether the function enters the kernel for a timer, a device, another processor. Faults and
 * system calls are the program's own. */
static bool enters_interrupt(const struct ident *id)
{
	static const char *const names[] = { "asm_common_interrupt", "common_interrupt", "el0_interrupt",
					     "el1_interrupt", "el0t_64_irq_handler", "el1h_64_irq_handler",
					     "do_IRQ", "irq_exit_rcu", "__irq_exit_rcu" };

	if (id->kind != IDENT_KERNEL)
		return false;
	if (str_starts(id->name, "asm_sysvec_") || str_starts(id->name, "sysvec_"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(id->name, names[i]))
			return true;
	return false;
}

/* Returns for each stack whether a selected sample has it, or one that it called. */
static uint8_t *used_stacks(const struct profile *p, const struct selection *s)
{
	uint8_t *used = mem_alloc(p->stacks.n + 1);

	for (size_t i = 0; i < s->entries.n; i++)
		used[s->entries.v[i].stack] = 1;
	/* Parents come before their children. */
	for (size_t i = p->stacks.n; i-- > 1;)
		used[p->stacks.v[i].parent] |= used[i];
	return used;
}

struct links {
	uint32_t *child, *sibling; /* 0 = none: the empty stack has no parent */
};

static struct links link_stacks(const struct profile *p, const uint8_t *used)
{
	struct links l = { mem_alloc((p->stacks.n + 1) * sizeof(*l.child)),
			   mem_alloc((p->stacks.n + 1) * sizeof(*l.sibling)) };

	for (size_t i = p->stacks.n; i-- > 1;)
		if (used[i]) {
			l.sibling[i] = l.child[p->stacks.v[i].parent];
			l.child[p->stacks.v[i].parent] = i;
		}
	return l;
}

/* Rows by identity, as far as identities are known. */
struct row_map {
	struct slices_table *t;
	struct idents *idents;
	VEC(uint32_t) rows;
	VEC(bool) enters;
	uint32_t interrupts; /* row, SLICES_NONE = not needed yet */
};

static void extend_map(struct row_map *m)
{
	while (m->rows.n < m->idents->list.n) {
		const struct ident *id = &m->idents->list.v[m->rows.n];
		bool enters = enters_interrupt(id);

		vec_push(&m->enters, enters);
		if (enters && m->interrupts == SLICES_NONE) {
			m->interrupts = row_of(m->t, &(struct ident){ SLICES_INTERRUPTS, "[kernel]",
								      IDENT_KERNEL });
			m->t->rows.v[m->interrupts].outside = true;
		}
		vec_push(&m->rows, enters ? m->interrupts : is_function(id) ? row_of(m->t, id) : SLICES_NONE);
	}
}

/* The rows of each used stack's own frame, and whose its self time is. */
static void find_rows(struct slices *sl, struct slices_table *t, struct idents *idents, const uint8_t *used)
{
	const struct profile *p = sl->p;
	struct row_map m = { .t = t, .idents = idents, .interrupts = SLICES_NONE };
	bool *inside = sl->inside;

	for (size_t i = 0; i < p->stacks.n; i++) {
		uint32_t n = 0, parent = p->stacks.v[i].parent;
		const uint32_t *list;

		sl->first_at[i] = sl->firsts.n;
		sl->self_row[i] = SLICES_NONE;
		if (!i || !used[i])
			continue;
		inside[i] = inside[parent];
		list = idents_of_frame(idents, p->stacks.v[i].frame, &n);
		extend_map(&m);
		for (uint32_t k = 0; k < n; k++) {
			inside[i] |= m.enters.v[list[k]];
			if (inside[i] || m.rows.v[list[k]] != SLICES_NONE)
				vec_push(&sl->firsts, inside[i] ? m.interrupts : m.rows.v[list[k]]);
		}
		/* A note at the leaf is no function: its cost is that of the function above it. */
		sl->self_row[i] = inside[i] ? m.interrupts :
				  idents->list.v[list[n - 1]].kind == IDENT_NOTE ?
					  sl->self_row[parent] : m.rows.v[list[n - 1]];
	}
	vec_done(&m.rows);
	vec_done(&m.enters);
	sl->first_at[p->stacks.n] = sl->firsts.n;
}

/* Takes out of the lists what callers have already, in one walk that counts which rows are on its path:
 * a row that is taken out becomes SLICES_NONE. */
static void drop_recursion(struct slices *sl, size_t rows, const struct links *l)
{
	_cleanup_free_ uint32_t *on_path = mem_alloc((rows + 1) * sizeof(*on_path));
	uint32_t i = l->child[0];

	while (i) {
		for (uint32_t k = sl->first_at[i]; k < sl->first_at[i + 1]; k++)
			if (on_path[sl->firsts.v[k]]++) {
				on_path[sl->firsts.v[k]]--;
				sl->firsts.v[k] = SLICES_NONE;
			}
		if (l->child[i]) {
			i = l->child[i];
			continue;
		}
		/* Leave it, and those whose last child it was. */
		for (;;) {
			for (uint32_t k = sl->first_at[i]; k < sl->first_at[i + 1]; k++)
				if (sl->firsts.v[k] != SLICES_NONE)
					on_path[sl->firsts.v[k]]--;
			if (l->sibling[i] || !sl->p->stacks.v[i].parent)
				break;
			i = sl->p->stacks.v[i].parent;
		}
		i = l->sibling[i];
	}
}

/* --- when --- */

/* Puts the part of each moment within each slice at its place in at; pieces NULL: only counts. */
static void cut_moments(struct slices *sl, size_t *at, struct slices_piece *pieces)
{
	double from = sl->s->options.from_ns, length = sl->duration_ns / sl->n;

	for (size_t i = 0; i < sl->s->moments.n; i++) {
		const struct select_moment *m = &sl->s->moments.v[i];
		uint32_t stack = sl->s->entries.v[m->entry].stack;
		double begin = (m->begin_ns - from) / length, end = (m->end_ns - from) / length;
		/* Times beyond the end, as a damaged capture may have them, are the last slice's. */
		size_t first = MIN(MAX(begin, 0), sl->n - 1), last = MIN(MAX(end, 0), sl->n - 1);

		if (m->end_ns <= m->begin_ns)
			last = first;
		for (size_t k = first; k <= last; k++) {
			double low = k == first ? begin : k, high = k == last ? end : k + 1;
			double part = first == last ? 1 : (high - low) / (end - begin);

			if (pieces)
				pieces[at[k]] = (struct slices_piece){ stack, m->weight.value * part };
			at[k]++;
		}
	}
}

/* All moments as pieces in the order of their slices. */
static void sort_moments(struct slices *sl)
{
	_cleanup_free_ size_t *at = mem_alloc((sl->n + 1) * sizeof(*at));

	sl->piece_at = mem_alloc((sl->n + 1) * sizeof(*sl->piece_at));
	cut_moments(sl, at, NULL);
	for (size_t k = 0; k < sl->n; k++) {
		sl->piece_at[k + 1] = sl->piece_at[k] + at[k];
		at[k] = sl->piece_at[k];
	}
	sl->pieces = mem_alloc((sl->piece_at[sl->n] + 1) * sizeof(*sl->pieces));
	cut_moments(sl, at, sl->pieces);
	sl->all = mem_alloc(sl->n * sizeof(*sl->all));
	for (size_t k = 0; k < sl->n; k++)
		for (size_t i = sl->piece_at[k]; i < sl->piece_at[k + 1]; i++)
			sl->all[k] += sl->pieces[i].value;
}

static bool is_event(const struct slices *sl, const char *const *names, size_t n)
{
	const struct profile *p = sl->p;
	uint32_t event = sl->s->options.event;

	for (size_t i = 0; event < p->events.n && i < n; i++)
		if (!strcmp(profile_str(p, p->events.v[event].name), names[i]) &&
		    !strcmp(profile_str(p, p->events.v[event].unit), "bytes"))
			return true;
	return false;
}

/* Memory that is there at a moment: that it was allocated during twice the time does not make it half as much. */
static bool is_held(const struct slices *sl)
{
	static const char *const names[] = { "heap", "peak", "growth", "shrunk" };

	return is_event(sl, names, ARRAY_LEN(names));
}

/* Returns whether each record is one sampled object that represents as many as its count. */
static bool is_drawn(const struct slices *sl)
{
	static const char *const names[] = { "heap", "alloc", "freed", "temporary" };

	return profile_counter(sl->p, KEY_HEAP_INTERVAL_BYTES) > 1 && is_event(sl, names, ARRAY_LEN(names));
}

static void choose_slices(struct slices *sl)
{
	uint64_t from = sl->s->options.from_ns, to = select_duration_ns(sl->p);

	if (sl->s->options.to_ns)
		to = MIN(to, sl->s->options.to_ns);
	sl->timeless = !select_duration_ns(sl->p) || is_held(sl);
	sl->duration_ns = sl->timeless ? 1e9 : to > from ? to - from : 1;
	sl->n = MIN(MAX(sl->duration_ns / SHORTEST_NS, FEWEST), SLICES);
}

void slices_init(struct slices *sl, struct slices_table *t, const struct profile *p,
		 const struct selection *s, unsigned flags)
{
	_cleanup_free_ uint8_t *used = used_stacks(p, s);
	struct links l = link_stacks(p, used);
	struct idents idents;

	*sl = (struct slices){ .p = p, .s = s };
	sl->self_row = mem_alloc((p->stacks.n + 1) * sizeof(*sl->self_row));
	sl->first_at = mem_alloc((p->stacks.n + 1) * sizeof(*sl->first_at));
	sl->inside = mem_alloc((p->stacks.n + 1) * sizeof(*sl->inside));
	idents_init(&idents, p, flags);
	find_rows(sl, t, &idents, used);
	idents_done(&idents);
	drop_recursion(sl, t->rows.n, &l);
	free(l.child);
	free(l.sibling);
	choose_slices(sl);
	sort_moments(sl);
}

void slices_done(struct slices *sl)
{
	free(sl->all);
	free(sl->self);
	free(sl->total);
	free(sl->self_row);
	free(sl->first_at);
	free(sl->inside);
	vec_done(&sl->firsts);
	free(sl->pieces);
	free(sl->piece_at);
	free(sl->series);
	*sl = (struct slices){ 0 };
}

/* --- sums --- */

/* Is the time of a stack also that of its caller? Not where an interrupt begins. */
static bool is_callers(const struct slices *sl, size_t stack)
{
	return !sl->inside[stack] || sl->inside[sl->p->stacks.v[stack].parent];
}

static void add_sum(struct slices_sum *to, const struct slices_sum *s)
{
	to->value += s->value;
	to->square += s->square;
	to->samples += s->samples;
}

void slices_sum(struct slices *sl, size_t rows)
{
	const struct profile *p = sl->p;
	struct slices_sum *by_stack = mem_alloc((p->stacks.n + 1) * sizeof(*by_stack));
	bool drawn = is_drawn(sl);

	sl->self = mem_alloc((rows + 1) * sizeof(*sl->self));
	sl->total = mem_alloc((rows + 1) * sizeof(*sl->total));
	for (size_t i = 0; i < sl->s->moments.n; i++) {
		const struct select_moment *m = &sl->s->moments.v[i];
		uint32_t stack = sl->s->entries.v[m->entry].stack;
		double value = m->weight.value;
		struct slices_sum one = { value, value * value / m->weight.samples, m->weight.samples };

		if (drawn)
			one = (struct slices_sum){ value, value * value, 1 };
		/* Stacks that were counted elsewhere. */
		else if (sl->timeless && !strcmp(sl->s->unit, "count"))
			one = (struct slices_sum){ value, value, value };
		add_sum(&sl->everything, &one);
		add_sum(&by_stack[stack], &one);
		if (sl->self_row[stack] != SLICES_NONE)
			add_sum(&sl->self[sl->self_row[stack]], &one);
	}
	for (size_t i = p->stacks.n; i-- > 1;) {
		for (uint32_t k = sl->first_at[i]; k < sl->first_at[i + 1]; k++)
			if (sl->firsts.v[k] != SLICES_NONE)
				add_sum(&sl->total[sl->firsts.v[k]], &by_stack[i]);
		if (is_callers(sl, i))
			add_sum(&by_stack[p->stacks.v[i].parent], &by_stack[i]);
	}
	free(by_stack);
}

/* Adds a slice: by_stack is all 0 before and after. */
static void add_slice(struct slices *sl, size_t slice, const uint32_t *pick, double *by_stack)
{
	const struct profile *p = sl->p;

	for (size_t i = sl->piece_at[slice]; i < sl->piece_at[slice + 1]; i++) {
		const struct slices_piece *piece = &sl->pieces[i];
		uint32_t row = sl->self_row[piece->stack];

		by_stack[piece->stack] += piece->value;
		if (row != SLICES_NONE && pick[row] != SLICES_NONE)
			sl->series[2 * pick[row] * sl->n + slice] += piece->value;
	}
	for (size_t i = p->stacks.n; i-- > 1;) {
		if (by_stack[i] == 0)
			continue;
		for (uint32_t k = sl->first_at[i]; k < sl->first_at[i + 1]; k++) {
			uint32_t row = sl->firsts.v[k];

			if (row != SLICES_NONE && pick[row] != SLICES_NONE)
				sl->series[(2 * pick[row] + 1) * sl->n + slice] += by_stack[i];
		}
		if (is_callers(sl, i))
			by_stack[p->stacks.v[i].parent] += by_stack[i];
		by_stack[i] = 0;
	}
	by_stack[0] = 0;
}

void slices_series(struct slices *sl, const uint32_t *pick, size_t picked)
{
	_cleanup_free_ double *by_stack = mem_alloc((sl->p->stacks.n + 1) * sizeof(*by_stack));

	free(sl->series);
	sl->series = mem_alloc((2 * picked * sl->n + 1) * sizeof(*sl->series));
	for (size_t k = 0; k < sl->n; k++)
		add_slice(sl, k, pick, by_stack);
}
