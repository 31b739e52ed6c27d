/*
 * leak.h - live memory by owner: the bytes of a heap event by the program's own function nearest to the
 * allocation.
 *
 *	struct leak l;
 *	leak_build(&l, p, "heap");
 *	for (size_t i = 0; i < l.rows.n; i++)
 *		printf("%s %llu\n", l.rows.v[i].name, l.rows.v[i].bytes);
 *	leak_done(&l);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;

struct leak_row {
	const char *name, *module; /* live as long as the table */
	uint64_t bytes, objects;
};

struct leak {
	bool recorded;             /* is there such an event? */
	uint64_t bytes, objects;
	VEC(struct leak_row) rows; /* most bytes first */
	struct idents idents;      /* owns names */
};

void leak_build(struct leak *l, const struct profile *p, const char *event);
void leak_done(struct leak *l);
