/*
 * opcodegas.h - asks a node that traces how often each opcode and precompile ran in a block, and for how much gas.
 *
 * The node runs a small program in JavaScript for each transaction (debug_traceTransaction; geth, reth and anvil can,
 * ethrex cannot), so that an answer is a few hundred bytes. Gas is what is left before an operation less what is left
 * before the next one of the same call, without what calls within it used: opcodes of a transaction sum to its gas, less
 * the intrinsic gas. A call of a precompile is the precompile's.
 *
 *	struct opcodegas g = { 0 };
 *	r = opcodegas_ask(url, numbers, n, 30000, &g, &err);
 *	opcodegas_done(&g);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;

enum { OPCODEGAS_NAME = 24, OPCODEGAS_ROWS = 512 };

struct opcodegas_row {
	char name[OPCODEGAS_NAME]; /* "SLOAD", or the precompile's: "ecrecover" */
	bool precompile;
	uint64_t count, gas;
};

struct opcodegas {
	VEC(struct opcodegas_row) rows;
	VEC(uint64_t) blocks; /* numbers of those that were traced whole */
	uint64_t transactions;
};

/* Traces the blocks in their order, whole ones, until limit_ms have passed. 0, if it was one at least.
 * -EREMOTEIO: the node does not trace; -EIO and others: it was not reached, or not understood. */
int opcodegas_ask(const char *url, const uint64_t *numbers, size_t n, uint64_t limit_ms,
		  struct opcodegas *ret, struct err *err);
void opcodegas_done(struct opcodegas *g);

/* For tests: the figures of one transaction, added to ret, which stays as it was if they are bad (-EPROTO). */
int opcodegas_parse(const char *text, size_t n, struct opcodegas *ret, struct err *err);
