/*
 * flow.h - follows the instructions of code that has no CFI, and knows at each of them where the caller's frame lies.
 *
 * A function begins with the return address on top of the stack; every push, pop and change of rsp is followed along all
 * jumps. What is found so is checked by itself: at a return the stack must be as it was at the entry, and two ways to one
 * instruction must agree. A function that fails is given up; nothing is said about it rather than something wrong.
 *
 * flow_function() is for code that certainly begins there (it is called, or has a symbol). flow_try() is for code that was
 * not reached: what contradicts itself or what is known leaves no trace. The work of both together is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

/* What is known at an instruction. Distances count down from the CFA. */
struct flow_state {
	int32_t rsp, rbp, r11;   /* CFA - register */
	int32_t saved;           /* CFA - place where the caller's rbp is saved; 0 = it is still in rbp */
	uint8_t knows_rsp, knows_rbp, knows_r11;
	uint8_t lost;            /* the caller's rbp is nowhere */
	uint8_t end;             /* the outermost frame: there is no caller */
	uint8_t compared;        /* rsp was compared with r11 just before */
	uint8_t signal;          /* what a signal handler returns to: the kernel's frame lies before it */
	uint8_t pad;
};

enum { FLOW_NONE = 0, FLOW_UNKNOWN = 1, FLOW_ENTRY = 2, FLOW_END = 3, FLOW_SIGNAL = 4, FLOW_MAX_STATES = 65535 };

struct flow_gap {
	uint32_t start, end;
	const uint8_t *code; /* its bytes */
};

struct flow_step {
	uint32_t offset;
	uint16_t state;
};

struct flow {
	uint64_t base;      /* address of offset 0 */
	uint32_t limit;
	VEC(struct flow_gap) gaps;           /* the code without CFI, sorted */
	size_t gap;         /* the one that was looked at last */
	uint16_t *cells;    /* for each offset that begins an instruction which was reached: its state, FLOW_* or more */
	uint8_t *begins;    /* a bit for each offset: a function begins there */
	uint8_t *settled;   /* a bit for each offset: its cell is no guess that is being made */
	VEC(struct flow_state) states;
	struct map index;   /* hash of a state to its number */
	VEC(uint32_t) functions; /* begins, in the order in which they were found; flow_function() is due from next on */
	size_t next;
	VEC(uint32_t) pointers;  /* places of which the code takes the address: functions, mostly */
	VEC(struct flow_step) work, after_calls;
	VEC(struct flow_step) log; /* cells that were changed, with what they were */
	uint64_t budget;    /* instructions that may still be looked at */
	uint32_t proofs;    /* returns, and the like, that were right in this function */
	bool wrong, trying;
};

/* limit: the first offset past the code. False: it is too large. The caller fills gaps. */
bool flow_init(struct flow *f, uint64_t base, uint32_t limit);
void flow_done(struct flow *f);

bool flow_in_gap(struct flow *f, uint32_t offset);
/* The bytes of the code at offset within its gap, NULL = there are none. */
const uint8_t *flow_bytes(struct flow *f, uint32_t offset, size_t *n);
/* Does the code there look like the begin of a function? It says nothing about registers that belong to its caller, unless
 * to save them. sure: it does save one, makes room on the stack or is a landing place of indirect calls. */
bool flow_looks_like_begin(struct flow *f, uint32_t offset, bool sure);
/* Says that a function begins there. */
void flow_begins(struct flow *f, uint32_t offset);
bool flow_is_begin(const struct flow *f, uint32_t offset);
/* Follows a function from its first instruction; of what it calls the beginnings become known. */
void flow_function(struct flow *f, uint32_t offset, uint16_t state);
/* The same for code that may begin here with this state. False: it does not, and all is as before. likely: that nothing speaks
 * against it is enough, as for functions that never return. */
bool flow_try(struct flow *f, uint32_t offset, uint16_t state, bool likely);
/* Is the first instruction a push of a register that is the caller's, or endbr64? */
bool flow_is_prologue(struct flow *f, uint32_t offset);
