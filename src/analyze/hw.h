/*
 * hw.h - the samples of the hw collector: each counter by function, by thread and by phase.
 *
 *	struct hw_tables t;
 *	r = hw_build(&t, p, &err);
 *	for (size_t i = 0; i < t.functions.n; i++)
 *		printf("%s %.2f\n", t.functions.v[i].name, hw_ratio(&t.functions.v[i], RATIO_IPC));
 *	hw_done(&t);
 *
 * Reads the events "hw:NAME" and the counters "hw.share.NAME". A counter that was not recorded, or was never
 * scheduled, is unknown in every row.
 */
#pragma once

#include <stdint.h>

#include "analyze/tree/ident.h"
#include "base/counter.h"
#include "base/vec.h"

struct err;
struct profile;

struct hw_row {
	const char *name, *module;     /* live as long as the tables; module "" = none */
	uint32_t process, id;          /* of a thread: pid and tid */
	uint64_t count, time_ns;       /* of a phase: how many marks, and how long they are together */
	struct counter_value values[COUNTERS];
	uint64_t samples[COUNTERS];    /* that say so */
};

struct hw_rows {
	struct hw_row *v;
	size_t n, capacity;
};

struct hw_tables {
	struct hw_row all;
	/* Most cycles first, or most CPU time where there are no cycles. A function has its own work, and
	 * the kernel's work for it: faults, switches, system calls. */
	struct hw_rows functions, threads;
	struct hw_rows phases; /* marks: phases by their names, others by their kind; as they came */
	enum counter order;    /* the counter that they are ordered by */
	uint64_t duration_ns;
	struct idents idents; /* owns names */
};

/* -ENODATA: nothing of it was recorded. */
int hw_build(struct hw_tables *t, const struct profile *p, struct err *err);
void hw_done(struct hw_tables *t);

/* NAN: not known, or of too few samples to be worth a figure. */
double hw_ratio(const struct hw_row *row, enum counter_ratio r);
