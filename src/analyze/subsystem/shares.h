/*
 * shares.h - how much of a selection each subsystem has, on the CPU and waiting, and each opcode and
 * precompile.
 *
 *	struct subsystem_shares s;
 *	if (subsystem_shares_make(&s, &classifier, &select_options))
 *		...
 *	subsystem_shares_done(&s);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/subsystem/classify.h"
#include "analyze/wait/pattern.h"
#include "base/vec.h"

struct select_options;

struct subsystem_share {
	uint8_t subsystem;
	/* In the unit of the selection; by cause where it is time. self: stacks that belong to it, which sum
	 * to the whole; total: with what it calls. */
	uint64_t self, total;
	uint64_t self_by[CAUSE_COUNT], total_by[CAUSE_COUNT];
	const char *file; /* that it, or what it calls, read by most page faults (-e fault); NULL = unknown */
};

struct label_share {
	uint16_t label;
	uint64_t value, samples; /* with what it calls */
};

/* A function that is the innermost unknown one of stacks of "other". */
struct unknown_share {
	const char *name; /* lives as long as the profile; "" = without a name */
	uint64_t value;
};

struct subsystem_shares {
	const char *name, *unit; /* of the selection: "wall", "ns" */
	uint64_t all;
	bool time; /* causes are known */
	bool node; /* subsystems that only nodes have are a part of it that matters, or the user's are */
	VEC(struct subsystem_share) rows;  /* largest self first; those with nothing are left out */
	VEC(struct label_share) labels;    /* largest first */
	VEC(struct unknown_share) unknown; /* the largest few */
};

/* Of what o selects; where that is time on or off the CPU and waits were recorded, of both. False: nothing is
 * selected. */
bool subsystem_shares_make(struct subsystem_shares *s, struct classifier *c, const struct select_options *o);
void subsystem_shares_done(struct subsystem_shares *s);

struct causes;
/* Is it worth while to show subsystems? A program that is no node would only have the runtime's and other's. */
bool subsystem_is_node(struct classifier *c, struct causes *causes);

/* The part of a row on the CPU, or of its waits. */
uint64_t subsystem_cpu(const uint64_t by_cause[CAUSE_COUNT]);
uint64_t subsystem_waits(const uint64_t by_cause[CAUSE_COUNT]);
