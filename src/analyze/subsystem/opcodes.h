/*
 * opcodes.h - the time of opcodes and precompiles beside their gas: nanoseconds a gas.
 *
 * The gas is what a node's tracer counted in some blocks; the time is that of the samples within the spans of
 * the same blocks, on any thread, on the CPU and blocked, without the run queue. A node that executes
 * transactions twice (prewarming) has the time of both. Rare opcodes have no samples: their time is 0.
 */
#pragma once

#include <stdint.h>

#include "analyze/subsystem/classify.h"
#include "base/vec.h"

struct causes;

/* What a tracer counted. */
struct opcode_figure {
	const char *name; /* "PUSH1", "ecrecover" */
	enum subsystem_label kind;
	uint64_t count, gas;
};

struct opcode_span {
	uint64_t from_ns, to_ns;
};

struct opcode_cost {
	const char *name; /* of the interpreter's function, "PUSH" for all of them, where it is known */
	enum subsystem_label kind;
	uint64_t ns, count, gas;
};

struct opcode_costs {
	VEC(struct opcode_cost) rows; /* most time first */
	uint64_t blocks, transactions;
};

/* Names live as long as the figures and the table. */
void opcode_costs_make(struct opcode_costs *o, struct classifier *c, struct causes *causes,
		       const struct opcode_figure *figures, size_t n, const struct opcode_span *spans,
		       size_t span_count);
void opcode_costs_done(struct opcode_costs *o);
