#include "elf/unwind/coderows.h"

#include <elf.h>
#include <string.h>

#include "base/vec.h"
#include "elf/file.h"
#include "elf/symtab.h"
#include "elf/unwind/flow.h"
#include "elf/unwind/instruction.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/rule.h"

enum {
	STEPS_A_BYTE = 4, /* instructions looked at for each byte of code: 1/4 where each is looked at once */
	STEPS_AT_LEAST = 1 << 16,
	MOST_GAPS = 1 << 16,
	CHUNK = 16 << 10,
	ALIGNED = 16,     /* most compilers let functions begin at such addresses */
};

/* --- where functions begin --- */

static bool see_function(void *context, const char *name, uint64_t address, uint64_t size)
{
	struct flow *f = context;

	/* The cold part of a function has a name, but is jumped to from within the function. */
	if (address >= f->base && address - f->base < f->limit && !strstr(name, ".cold"))
		flow_begins(f, address - f->base);
	return true;
}

/* What is called, and then what the code takes the address of. */
static void follow_known(struct flow *f)
{
	do {
		for (; f->next < f->functions.n; f->next++)
			flow_function(f, f->functions.v[f->next], FLOW_ENTRY);
		if (f->pointers.n) {
			uint32_t at = f->pointers.v[--f->pointers.n];

			if (f->budget && flow_looks_like_begin(f, at, false))
				flow_try(f, at, FLOW_ENTRY, at % ALIGNED == 0);
		}
	} while (f->next < f->functions.n || f->pointers.n);
}

/* --- code that nothing leads to --- */

/* A sweep over a gap, from its beginning to its end. */
struct sweep {
	struct flow *f;
	uint32_t at, end;
	uint16_t switched; /* the state at the last indirect jump of this function: the cases of a switch have it */
	bool fresh;        /* what stands here follows an instruction that does not go on, or padding */
	bool aligned;      /* only what is aligned may be a function */
};

/* Steps over an instruction that was reached. */
static void sweep_known(struct sweep *s, const struct instruction *i)
{
	uint16_t state = s->f->cells[s->at];

	if (flow_is_begin(s->f, s->at))
		s->switched = FLOW_NONE;
	/* A jump through memory that no register names is a call of another module; one with the stack as at the entry may be. */
	if (i->op == OP_JUMP && !i->target && i->uses && state != FLOW_UNKNOWN && (state != FLOW_ENTRY || !s->switched))
		s->switched = state;
	s->fresh = i->op == OP_JUMP || i->op == OP_RETURN || i->op == OP_STOP || i->op == OP_CALL;
}

/* Looks at code that was not reached. Whoever is called only through pointers begins there, or a case of a switch. */
static bool sweep_try(struct sweep *s)
{
	bool is_aligned = s->at % ALIGNED == 0, may_begin = s->fresh && (!s->aligned || is_aligned);

	if (s->fresh && s->switched && (s->switched != FLOW_ENTRY || flow_looks_like_begin(s->f, s->at, false)) && flow_try(s->f, s->at, s->switched, false))
		return true;
	if (!may_begin || !flow_looks_like_begin(s->f, s->at, !is_aligned) || !flow_try(s->f, s->at, FLOW_ENTRY, is_aligned && flow_is_prologue(s->f, s->at)))
		return false;
	s->switched = FLOW_NONE;
	return true;
}

static void sweep_gap(struct sweep *s)
{
	while (s->at < s->end && s->f->budget) {
		struct instruction i = { 0 };
		size_t n = 0;
		const uint8_t *code = flow_bytes(s->f, s->at, &n);

		if (!code)
			return;
		if (!*code && !s->f->cells[s->at]) { /* between sections there are zeros */
			s->at++;
			continue;
		}
		instruction_decode(code, n, s->f->base + s->at, &i);
		s->f->budget--;
		if (s->f->cells[s->at] && i.length) {
			sweep_known(s, &i);
			s->at += i.length;
		} else if (i.length && i.padding) {
			s->at += i.length;
			s->fresh |= s->at % ALIGNED == 0 && s->at < s->end && flow_looks_like_begin(s->f, s->at, true);
		} else if (i.length && sweep_try(s)) {
			follow_known(s->f);
		} else if (i.length) {
			s->fresh = i.op == OP_JUMP || i.op == OP_RETURN || i.op == OP_STOP;
			s->at += i.length;
		} else {
			/* Data: on to the next instruction that was reached, or to what is aligned. */
			do
				s->at++;
			while (s->at < s->end && !s->f->cells[s->at] && s->at % ALIGNED);
			s->fresh = s->at % ALIGNED == 0;
		}
	}
}

/* From the end to the beginning: linkers put cold parts first, and what jumps to them is to be known before. */
static void sweep_all(struct flow *f, bool aligned)
{
	for (size_t i = f->gaps.n; i-- > 0;) {
		const struct flow_gap *g = &f->gaps.v[i];

		for (uint32_t end = g->end; end > g->start;) {
			uint32_t from = end - g->start > CHUNK ? (end - CHUNK) & ~(uint32_t)(ALIGNED - 1) : g->start;
			struct sweep s = { .f = f, .at = from, .end = end, .fresh = true, .aligned = aligned };

			sweep_gap(&s);
			end = from;
		}
	}
}

void coderows_follow(struct elf *elf, struct flow *f, bool symbols)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->gaps.n; i++)
		bytes += f->gaps.v[i].end - f->gaps.v[i].start;
	f->budget = bytes * STEPS_A_BYTE + STEPS_AT_LEAST;
	if (elf->entry >= f->base && elf->entry - f->base < f->limit)
		flow_function(f, elf->entry - f->base, FLOW_END);
	if (symbols) {
		symtab_each_function(elf, ".symtab", see_function, f);
		symtab_each_function(elf, ".dynsym", see_function, f);
	}
	follow_known(f);
	/* Cold parts, which are jumped to from elsewhere, are not aligned: what jumps there is looked at first. */
	sweep_all(f, true);
	sweep_all(f, false);
}

/* --- rows --- */

static uint64_t rule_of(const struct flow_state *s)
{
	enum rule_rbp how = s->lost || s->saved > INT16_MAX || s->saved < INT16_MIN + 1 ? RULE_RBP_LOST :
			    s->saved ? RULE_RBP_CFA : RULE_RBP_SAME;

	if (s->end)
		return RULE_END | RULE_DERIVED;
	if (s->signal)
		return RULE_SIGNAL | RULE_DERIVED;
	if (!s->knows_rsp && !s->knows_rbp)
		return RULE_NONE;
	return rule_make(s->knows_rsp ? RULE_CFA_RSP : RULE_CFA_RBP, 0, s->knows_rsp ? s->rsp : s->rbp, how,
			 how == RULE_RBP_CFA ? -s->saved : 0) | RULE_DERIVED;
}

static void add_rows(struct flow *f, const struct flow_gap *g, struct rows_rules *rules, struct rows *rows)
{
	for (uint32_t at = g->start; at < g->end;) {
		struct instruction i = { 0 };
		size_t n = 0;
		const uint8_t *code = f->cells[at] ? flow_bytes(f, at, &n) : NULL;

		if (!code) {
			rows_add(rows, at, ROWS_NONE);
			while (at < g->end && !f->cells[at])
				at++;
			continue;
		}
		/* The kernel's return address is its first byte, and the row of the byte before is looked up. */
		if (f->cells[at] == FLOW_SIGNAL && at > g->start)
			rows_add(rows, at - 1, rows_rule(rules, rule_of(&f->states.v[FLOW_SIGNAL])));
		rows_add(rows, at, rows_rule(rules, rule_of(&f->states.v[f->cells[at]])));
		instruction_decode(code, n, f->base + at, &i);
		at += i.length ? i.length : 1;
	}
	rows_add(rows, g->end, ROWS_NONE);
}

/* The parts of executable segments that rows leave out. */
static void find_gaps(const struct elf *elf, struct flow *f, const struct rows *rows)
{
	uint32_t at = 0;

	for (size_t i = 0; i <= rows->n; i++) {
		uint32_t until = i < rows->n ? rows->v[i].offset : f->limit;
		bool covered = i && rows->v[i - 1].rule != ROWS_NONE;

		for (; !covered && at < until;) {
			uint64_t n = until - at;
			const uint8_t *code = elf_code_at(elf, f->base + at, &n);

			if (f->gaps.n == MOST_GAPS)
				return;
			if (code && n) {
				vec_push(&f->gaps, (struct flow_gap){ at, at + n, code });
				at += n;
			} else {
				at = (at | 4095) + 1; /* between segments */
			}
		}
		at = until;
	}
}

void coderows_fill(struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows)
{
	struct rows own = { 0 };
	struct flow f;

	if (flow_init(&f, base, limit) && elf->data) {
		find_gaps(elf, &f, rows);
		coderows_follow(elf, &f, true);
		for (size_t i = 0; i < f.gaps.n; i++)
			add_rows(&f, &f.gaps.v[i], rules, &own);
		rows_fill(rows, &own);
	}
	rows_done(&own);
	flow_done(&f);
}
