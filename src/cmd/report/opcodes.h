/*
 * opcodes.h - asks a node for the gas of the opcodes in a recording's blocks (--rpc). Only report.c uses it.
 */
#pragma once

struct causes;
struct classifier;
struct err;
struct opcode_costs;
struct opcodegas;

/* Traces the blocks with a number and a duration, for at most half a minute; gas holds the names of ret.
 * -ENODATA: there is none. */
int opcodes_ask(const char *url, struct classifier *c, struct causes *causes, struct opcodegas *gas,
		struct opcode_costs *ret, struct err *err);
