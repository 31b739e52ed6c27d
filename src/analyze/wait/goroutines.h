/*
 * goroutines.h - where goroutines of a Go program wait, for what, and who ends it (record -e goroutine).
 *
 * Waits are grouped by their reason, as the runtime calls it, and the nearest function of the program's own code. They
 * overlap: a thousand goroutines that wait for a second are a thousand seconds. No thread is blocked meanwhile.
 *
 *	struct goroutines g;
 *	goroutines_make(&g, p, &options);
 *	for (size_t i = 0; i < g.rows.n; i++)
 *		printf("%s\n", g.rows.v[i].function);
 *	goroutines_done(&g);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;
struct select_options;

enum { GOROUTINES_WAKERS = 3 };

/* A function from which goroutines were made ready. */
struct goroutines_waker {
	const char *function;
	uint64_t ns, count; /* of the waits that it ended */
};

struct goroutines_row {
	const char *reason;   /* "chan receive" */
	const char *function;
	const char *module;   /* path, "" = none */
	uint64_t ns, count;
	uint64_t longest_ns;  /* of the waits that were kept one by one */
	uint64_t woken_ns;    /* part of ns whose wakers are known */
	VEC(struct goroutines_waker) wakers; /* those of most time first */
	bool idle;            /* a goroutine of the runtime without work */
	uint32_t ident;       /* private */
};

struct goroutines {
	struct idents idents;  /* owns the names */
	VEC(char *) reasons;   /* the same */
	VEC(struct goroutines_row) rows; /* longest first, idle ones after all others */
	uint64_t ns, count;    /* without idle */
	uint64_t idle_ns;
	uint64_t queue_ns, queue_count; /* ready, but not run yet */
};

/* Were waits of goroutines recorded, whether or not there were any? */
bool goroutines_recorded(const struct profile *p);
/* Of o the threads, processes and the range count. */
void goroutines_make(struct goroutines *g, const struct profile *p, const struct select_options *o);
void goroutines_done(struct goroutines *g);

/* Returns whether the stack is a goroutine's wait: no thread waited there. */
bool goroutines_is_stack(const struct profile *p, uint32_t stack);
/* Returns whether the profile has functions of the Go runtime. */
bool goroutines_is_go(const struct profile *p);
