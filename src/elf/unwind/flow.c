#include "elf/unwind/flow.h"

#include <stdlib.h>
#include <string.h>

#include "elf/unwind/instruction.h"

enum {
	MOST_BYTES = 64 << 20,  /* of text */
	LARGEST_FRAME = 1 << 24,
	LOOKED_AT = 24,         /* instructions that tell the begin of a function */
	RED_ZONE = 128,         /* below rsp, where a function may write */
	ARGUMENTS = 256,        /* above the return address */
	DEEPEST = 4000,         /* calls in a row of which each is only reached behind the one before */
};

bool flow_init(struct flow *f, uint64_t base, uint32_t limit)
{
	static const struct flow_state first[] = {
		[FLOW_NONE] = { .pad = 1 },
		[FLOW_UNKNOWN] = { .lost = 1 },
		[FLOW_ENTRY] = { .rsp = 8, .knows_rsp = 1 },
		[FLOW_END] = { .end = 1 },
		[FLOW_SIGNAL] = { .signal = 1 },
	};

	*f = (struct flow){ .base = base, .limit = limit };
	if (limit > MOST_BYTES)
		return false;
	/* Only the pages of gaps will be touched. */
	f->cells = calloc(limit, sizeof(*f->cells));
	f->begins = calloc(limit / 8 + 1, 1);
	f->settled = calloc(limit / 8 + 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(first); i++) {
		map_put(&f->index, map_hash_bytes(&first[i], sizeof(first[i])), i);
		vec_push(&f->states, first[i]);
	}
	return f->cells && f->begins && f->settled;
}

void flow_done(struct flow *f)
{
	free(f->cells);
	free(f->begins);
	free(f->settled);
	vec_done(&f->gaps);
	vec_done(&f->states);
	map_done(&f->index);
	vec_done(&f->functions);
	vec_done(&f->pointers);
	vec_done(&f->work);
	vec_done(&f->after_calls);
	vec_done(&f->log);
}

bool flow_in_gap(struct flow *f, uint32_t offset)
{
	const struct flow_gap *g = f->gap < f->gaps.n ? &f->gaps.v[f->gap] : NULL;
	size_t low;

	if (g && offset >= g->start && offset < g->end)
		return true;
	low = vec_search(i, 0, f->gaps.n, f->gaps.v[i].start <= offset);
	if (!low || offset >= f->gaps.v[low - 1].end)
		return false;
	f->gap = low - 1;
	return true;
}

const uint8_t *flow_bytes(struct flow *f, uint32_t offset, size_t *n)
{
	const struct flow_gap *g;

	if (!flow_in_gap(f, offset))
		return NULL;
	g = &f->gaps.v[f->gap];
	*n = g->end - offset;
	return g->code + (offset - g->start);
}

static bool has_bit(const uint8_t *bits, uint32_t offset)
{
	return bits[offset / 8] >> offset % 8 & 1;
}

static void set_bit(uint8_t *bits, uint32_t offset)
{
	bits[offset / 8] |= 1 << offset % 8;
}

static void clear_bit(uint8_t *bits, uint32_t offset)
{
	bits[offset / 8] &= ~(1 << offset % 8);
}

bool flow_is_begin(const struct flow *f, uint32_t offset)
{
	return has_bit(f->begins, offset);
}

void flow_begins(struct flow *f, uint32_t offset)
{
	if (!flow_in_gap(f, offset) || flow_is_begin(f, offset))
		return;
	set_bit(f->begins, offset);
	vec_push(&f->functions, offset);
}

/* rbx, rbp, r12 to r15: a function leaves them as they were. */
#define CALLERS_REGISTERS ((uint16_t)(1 << 3 | 1 << 5 | 0xf000))

bool flow_looks_like_begin(struct flow *f, uint32_t offset, bool sure)
{
	uint16_t callers = CALLERS_REGISTERS;
	bool found = !sure;

	for (int n = 0; n < LOOKED_AT; n++) {
		struct instruction i = { 0 };
		size_t left = 0;
		const uint8_t *code = offset < f->limit ? flow_bytes(f, offset, &left) : NULL;

		if (!code || (n && flow_is_begin(f, offset)))
			break;
		instruction_decode(code, left, f->base + offset, &i);
		if (!i.length)
			return false;
		if (i.op == OP_PUSH && i.reg < REG_NONE) {
			found |= CALLERS_REGISTERS >> i.reg & 1;
			callers &= ~(1 << i.reg);
		} else if (i.op == OP_STORE || (i.op == OP_MOVE && i.reg == REG_RBP)) {
			callers &= ~(1 << REG_RBP);
		} else if (i.op == OP_CLEAR_RBP) {
			return found; /* the first function of a thread */
		}
		found |= (i.op == OP_ADD && i.reg == REG_RSP && i.value < 0) || (left >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4));
		if (i.uses & callers)
			return false;
		if (i.op == OP_CALL || i.op == OP_JUMP || i.op == OP_RETURN || i.op == OP_STOP)
			break;
		offset += i.length;
	}
	return found;
}

/* Returns the number of a state, FLOW_UNKNOWN where there are too many of them. */
static uint16_t number(struct flow *f, const struct flow_state *s)
{
	uint64_t hash = map_hash_bytes(s, sizeof(*s)), *known = map_get(&f->index, hash);

	if (known)
		return memcmp(&f->states.v[*known], s, sizeof(*s)) ? FLOW_UNKNOWN : *known;
	if (f->states.n == FLOW_MAX_STATES)
		return FLOW_UNKNOWN;
	map_put(&f->index, hash, f->states.n);
	vec_push(&f->states, *s);
	return f->states.n - 1;
}

/* What holds on both of two ways. */
static uint16_t meet(struct flow *f, uint16_t a, uint16_t b)
{
	struct flow_state x = f->states.v[a];
	const struct flow_state *y = &f->states.v[b];

	if (x.end != y->end || x.lost != y->lost || x.saved != y->saved)
		return FLOW_UNKNOWN;
	if (!y->knows_rsp || x.rsp != y->rsp)
		x.rsp = x.knows_rsp = 0;
	if (!y->knows_rbp || x.rbp != y->rbp)
		x.rbp = x.knows_rbp = 0;
	if (!y->knows_r11 || x.r11 != y->r11)
		x.r11 = x.knows_r11 = 0;
	x.compared &= y->compared;
	return number(f, &x);
}

static void set(struct flow *f, uint32_t offset, uint16_t state)
{
	vec_push(&f->log, (struct flow_step){ offset, f->cells[offset] });
	f->cells[offset] = state;
	vec_push(&f->work, (struct flow_step){ offset, state });
}

/* A way leads to this instruction. */
static void reach(struct flow *f, uint32_t offset, uint16_t state)
{
	uint16_t there, both;

	if (!flow_in_gap(f, offset))
		return;
	there = f->cells[offset];
	if (there == FLOW_NONE) {
		set(f, offset, state);
	} else if (there == state) {
		f->proofs += has_bit(f->settled, offset);
	} else {
		both = meet(f, there, state);
		if (both == there)
			return;
		/* A guess does not change what is known. */
		if (f->trying)
			f->wrong = true;
		else
			set(f, offset, both);
	}
}

static bool is_entry(const struct flow_state *s)
{
	return s->knows_rsp && s->rsp == 8 && !s->saved && !s->lost && !s->end;
}

/* A jump. To the begin of a function it is a call that does not come back here, and the stack is as at the entry. */
static void jump(struct flow *f, uint64_t target, const struct flow_state *s, uint16_t state)
{
	uint64_t offset = target - f->base;

	if (offset < f->limit && flow_in_gap(f, offset) && !flow_is_begin(f, offset)) {
		reach(f, offset, state);
		return;
	}
	if (is_entry(s))
		f->proofs++;
	else if (s->knows_rsp && s->rsp != 8)
		f->wrong = true;
}

static void push(struct flow_state *s, uint8_t reg)
{
	if (!s->knows_rsp)
		return;
	s->rsp += 8;
	/* The first time is the one that counts; later rbp may hold anything. */
	if (reg == REG_RBP && !s->saved && !s->lost)
		s->saved = s->rsp;
}

/* rbp holds what was saved at this distance from the CFA; known: the distance is. */
static void restore_rbp(struct flow_state *s, bool known, int32_t from)
{
	if (known && s->saved && from == s->saved)
		s->saved = 0;
	else if (!s->saved)
		s->lost = 1;
	s->rbp = s->knows_rbp = 0;
}

static void pop(struct flow_state *s, uint8_t reg)
{
	if (reg == REG_RSP)
		s->rsp = s->knows_rsp = 0;
	if (reg == REG_RBP)
		restore_rbp(s, s->knows_rsp, s->rsp);
	if (reg == REG_R11)
		s->r11 = s->knows_r11 = 0;
	if (s->knows_rsp)
		s->rsp -= 8;
}

/* Gives a register the value that lies value above another one's. */
static void assign(struct flow_state *s, uint8_t to, uint8_t from, int32_t value)
{
	bool known = from == REG_RSP ? s->knows_rsp : from == REG_RBP ? s->knows_rbp : from == REG_R11 && s->knows_r11;
	int32_t at = known ? (from == REG_RSP ? s->rsp : from == REG_RBP ? s->rbp : s->r11) - value : 0;

	if (to == REG_RSP) {
		s->rsp = at;
		s->knows_rsp = known;
	} else if (to == REG_RBP) {
		s->rbp = at;
		s->knows_rbp = known;
		if (!s->saved)
			s->lost = 1;
	} else if (to == REG_R11) {
		s->r11 = at;
		s->knows_r11 = known;
	}
}

static void apply(struct flow_state *s, const struct instruction *i)
{
	bool base_known = i->base == REG_RSP ? s->knows_rsp : s->knows_rbp;
	int32_t base = i->base == REG_RSP ? s->rsp : s->rbp;

	if (i->writes_r11 && i->op != OP_ADD)
		s->r11 = s->knows_r11 = 0;
	s->compared = i->op == OP_COMPARE_R11;
	switch (i->op) {
	case OP_PUSH:
		push(s, i->reg);
		break;
	case OP_POP:
		pop(s, i->reg);
		break;
	case OP_ADD:
		assign(s, i->reg, i->reg, i->value);
		break;
	case OP_LEA:
		assign(s, i->reg, i->base, i->value);
		break;
	case OP_MOVE:
		assign(s, i->reg, i->base, 0);
		break;
	case OP_STORE:
		if (base_known && !s->saved && !s->lost)
			s->saved = base - i->value;
		break;
	case OP_LOAD:
		restore_rbp(s, base_known, base - i->value);
		break;
	case OP_LEAVE:
		assign(s, REG_RSP, REG_RBP, 0);
		pop(s, REG_RBP);
		break;
	case OP_CLEAR_RBP:
		/* A function may not do so with its caller's; the first one of a thread does, to mark the end. */
		if (!s->saved && !s->lost)
			*s = (struct flow_state){ .end = 1 };
		s->rbp = s->knows_rbp = 0;
		break;
	default:
		if (i->writes_rsp)
			s->rsp = s->knows_rsp = 0;
		if (i->writes_rbp)
			restore_rbp(s, false, 0);
	}
	if (s->knows_rsp && (s->rsp < 0 || s->rsp > LARGEST_FRAME))
		s->rsp = s->knows_rsp = 0;
	if (s->knows_rbp && (s->rbp < -LARGEST_FRAME || s->rbp > LARGEST_FRAME))
		s->rbp = s->knows_rbp = 0;
	if (s->end)
		*s = (struct flow_state){ .end = 1 };
}

/* At a return the stack is as at the entry, and rbp is the caller's. */
static void check_return(struct flow *f, const struct flow_state *s)
{
	if (s->end || !s->knows_rsp)
		return;
	if (s->rsp != 8 || s->saved)
		f->wrong = true;
	else
		f->proofs++;
}

/* Does it touch the return address, what lies far above it, or far below rsp? Then the state is not what was guessed. */
static bool is_odd(const struct flow_state *s, const struct instruction *i)
{
	return i->on_stack && s->knows_rsp &&
	       (i->stack < -RED_ZONE || (i->stack >= s->rsp - 8 && i->stack < s->rsp) || i->stack > s->rsp + ARGUMENTS);
}

/* What follows an instruction. before: its state. */
static void go_on(struct flow *f, uint32_t next, const struct instruction *i, uint16_t before)
{
	struct flow_state s = f->states.v[before], after;
	uint16_t state;

	if (i->op == OP_RETURN) {
		check_return(f, &s);
		return;
	}
	if (f->trying && is_odd(&s, i)) {
		f->wrong = true;
		return;
	}
	if (i->op == OP_OTHER && i->target && i->target - f->base < f->limit && !f->cells[i->target - f->base] &&
	    flow_in_gap(f, i->target - f->base))
		vec_push(&f->pointers, i->target - f->base);
	apply(&s, i);
	state = number(f, &s);
	switch (i->op) {
	case OP_STOP:
		return;
	case OP_JUMP:
		if (i->target)
			jump(f, i->target, &s, state);
		else if (!i->uses) /* to another module */
			jump(f, UINT64_MAX, &s, state);
		return;
	case OP_BRANCH:
		jump(f, i->target, &s, state);
		if (f->states.v[before].compared && s.knows_r11) {
			after = s;
			assign(&after, REG_RSP, REG_R11, 0);
			state = number(f, &after);
		}
		break;
	case OP_CALL:
		if (i->target - f->base < f->limit)
			flow_begins(f, i->target - f->base);
		if (i->target != f->base + next) {
			/* Whether it comes back is not known: what other ways say about the next instruction comes first. */
			s.r11 = s.knows_r11 = 0;
			vec_push(&f->after_calls, (struct flow_step){ next, number(f, &s) });
			return;
		}
		push(&s, REG_NONE); /* it only asks where it is */
		state = number(f, &s);
		break;
	}
	if (next < f->limit && !(flow_is_begin(f, next) && state != FLOW_ENTRY))
		reach(f, next, state);
}

/* Follows all ways, but for those behind calls. */
static void follow(struct flow *f)
{
	while (f->work.n && !f->wrong) {
		struct flow_step step = f->work.v[--f->work.n];
		struct instruction i = { 0 };
		const uint8_t *code;
		size_t n = 0;

		if (!f->budget) {
			f->wrong = true;
			break;
		}
		f->budget--;
		/* Meanwhile another way may have said less about it. */
		if (f->cells[step.offset] != step.state || step.state == FLOW_UNKNOWN)
			continue;
		code = flow_bytes(f, step.offset, &n);
		if (code)
			instruction_decode(code, n, f->base + step.offset, &i);
		if (!i.length)
			f->wrong = true;
		else
			go_on(f, step.offset + i.length, &i, step.state);
	}
	vec_clear(&f->work);
}

/* Takes back all since the marks: of the log, of ways behind calls, and of functions. */
static void undo(struct flow *f, size_t log, size_t calls, size_t functions)
{
	while (f->log.n > log) {
		struct flow_step *s = &f->log.v[--f->log.n];

		f->cells[s->offset] = s->state;
	}
	f->after_calls.n = calls;
	for (; f->functions.n > functions; f->functions.n--)
		clear_bit(f->begins, f->functions.v[f->functions.n - 1]);
	f->wrong = false;
}

bool flow_is_prologue(struct flow *f, uint32_t offset)
{
	struct instruction i = { 0 };
	size_t n = 0;
	const uint8_t *code = flow_bytes(f, offset, &n);

	if (code)
		instruction_decode(code, n, f->base + offset, &i);
	return (i.op == OP_PUSH && i.reg < REG_NONE && CALLERS_REGISTERS >> i.reg & 1) ||
	       (n >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4));
}

/* Does another function begin behind a call, after padding or with a register that it saves? Then it does not come back. */
static bool is_end(struct flow *f, uint32_t offset)
{
	bool padded = false;

	for (;; padded = true) {
		struct instruction i = { 0 };
		size_t n = 0;
		const uint8_t *code = offset < f->limit ? flow_bytes(f, offset, &n) : NULL;

		if (!code || flow_is_begin(f, offset))
			return true;
		instruction_decode(code, n, f->base + offset, &i);
		if (!i.padding || f->cells[offset])
			break;
		offset += i.length;
	}
	if (padded && offset % 16 == 0 && f->cells[offset] == FLOW_ENTRY)
		return true;
	if (offset % 16 || f->cells[offset] || !flow_looks_like_begin(f, offset, true))
		return false;
	return padded || flow_is_prologue(f, offset);
}

/*
 * Follows the ways behind the calls from first on, each as a guess: where one leads to nonsense, the call does not come back.
 * A way of which all that can be checked lies behind further calls, and is wrong there, is wrong itself. Returns how many
 * proofs there are, 0 also where nothing speaks for it; *ret_failed: some ways were wrong.
 */
static uint32_t follow_calls(struct flow *f, size_t first, unsigned depth, bool *ret_failed)
{
	uint32_t proofs = f->proofs;

	for (size_t i = first; i < f->after_calls.n; i++) {
		struct flow_step step = f->after_calls.v[i];
		size_t log = f->log.n, calls = f->after_calls.n, functions = f->functions.n;
		bool failed = false;
		uint32_t found;

		if (is_end(f, step.offset))
			continue;
		if (f->cells[step.offset]) {
			proofs += f->cells[step.offset] == step.state && has_bit(f->settled, step.offset);
			continue;
		}
		f->proofs = 0;
		reach(f, step.offset, step.state);
		follow(f);
		if (f->wrong || depth == DEEPEST) {
			undo(f, log, calls, functions);
			*ret_failed = true;
			continue;
		}
		found = follow_calls(f, calls, depth + 1, &failed);
		f->after_calls.n = calls;
		if (failed && !found) {
			undo(f, log, calls, functions);
			*ret_failed = true;
		}
		proofs += found;
	}
	return proofs;
}

/* mov rax or eax, 15; syscall */
static bool is_signal_return(struct flow *f, uint32_t offset)
{
	size_t n = 0;
	const uint8_t *code = flow_bytes(f, offset, &n);
	size_t first = n >= 9 && !memcmp(code, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9) ? 7 :
		       n >= 7 && !memcmp(code, "\xb8\x0f\0\0\0\x0f\x05", 7) ? 5 : 0;

	if (first)
		f->cells[offset] = f->cells[offset + first] = FLOW_SIGNAL;
	return first;
}

/* What was found holds. */
static void settle(struct flow *f)
{
	for (size_t i = 0; i < f->log.n; i++)
		set_bit(f->settled, f->log.v[i].offset);
}

static void start(struct flow *f, uint32_t offset, uint16_t state)
{
	vec_clear(&f->log);
	vec_clear(&f->after_calls);
	f->proofs = 0;
	f->wrong = false;
	reach(f, offset, state);
	follow(f);
}

void flow_function(struct flow *f, uint32_t offset, uint16_t state)
{
	bool failed = false;

	f->trying = false;
	if (!flow_in_gap(f, offset) || f->cells[offset] || is_signal_return(f, offset))
		return;
	start(f, offset, state);
	if (f->wrong) {
		for (size_t i = 0; i < f->log.n; i++)
			f->cells[f->log.v[i].offset] = FLOW_UNKNOWN;
		return;
	}
	f->trying = true;
	follow_calls(f, 0, 0, &failed);
	settle(f);
}

bool flow_try(struct flow *f, uint32_t offset, uint16_t state, bool likely)
{
	size_t functions = f->functions.n;
	bool failed = false;

	f->trying = true;
	if (!flow_in_gap(f, offset) || f->cells[offset])
		return false;
	if (is_signal_return(f, offset))
		return true;
	start(f, offset, state);
	if (!f->wrong && (follow_calls(f, 0, 0, &failed) || (likely && !failed))) {
		settle(f);
		if (state == FLOW_ENTRY)
			set_bit(f->begins, offset);
		return true;
	}
	undo(f, 0, 0, functions);
	return false;
}
