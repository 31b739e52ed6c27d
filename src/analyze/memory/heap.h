/*
 * heap.h - the heap of a recording: allocated, alive, at its peak, freed at once; by the program's own
 * functions.
 *
 * Sampled figures are estimates with a standard error: a sample that represents w bytes and was taken with
 * the probability p adds w² (1 - p) to the variance. About two of three figures lie within one error of the
 * truth, 19 of 20 within two.
 *
 *	struct heap_figures f;
 *	if (heap_measure(&f, p, &selection->options, NULL))
 *		printf("%llu ± %.0f\n", f.live.bytes, heap_error(&f.live));
 *	heap_done(&f);
 *
 * Reads the events "heap", "alloc", "freed", "temporary" and "peak" with the filters of the options, but not
 * their event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/crate.h"
#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;
struct select_options;

struct heap_sum {
	uint64_t bytes, objects;
	uint64_t samples; /* that say so */
	double variance;  /* of bytes */
};

/* The innermost own function of the stacks; where there is none, the most telling one (ownfunction.h). */
struct heap_function {
	const char *name, *module; /* live as long as the figures */
	struct heap_sum allocated, live, temporary, peak;
	uint64_t freed_bytes;
	/* Bytes allocated in the recording that are alive after a third of the time, after two, and at the
	 * end. */
	int64_t thirds[3];
	double age_ns; /* mean age of live objects, by bytes */
	bool grows;    /* in the middle third and the last one, beyond its error */
};

/* Shows the reason of a sentence, and says of which parts it is made: a finding, advice, options of the command line. */
struct heap_link {
	const char *what;     /* event to weigh, NULL = there is nothing to show */
	const char *function; /* to show, NULL = any */
	bool grew;            /* it is about growth since the first third of the time */
	size_t finding;       /* bytes of the finding */
	size_t said;          /* bytes of the finding and the advice; the page does without the rest */
};

/* The guides' symptoms. */
enum heap_symptom { HEAP_LEAK, HEAP_CHURN, HEAP_BLOAT, HEAP_FRAGMENTATION, HEAP_SYMPTOMS };

struct heap_figures {
	bool exact;           /* each allocation was seen */
	bool no_error;        /* merged recordings of different sampling intervals: errors are unknown */
	uint64_t recordings;  /* that were merged; 0: it is one. Peak and live are sums of what each had then */
	bool ended;           /* the program ended: live objects were never freed */
	bool filtered;        /* the selection leaves something out: the counted figures are of all */
	uint64_t interval;    /* bytes between samples */
	uint64_t duration_ns; /* of the selection */
	struct heap_sum allocated, freed, temporary, live, peak;
	uint64_t peak_ns;                    /* when */
	uint64_t counted_bytes, counted;     /* by the hooks, of the whole recording; exact */
	uint64_t lifetime_ns[3];             /* p50, p90, p99 of freed objects; of the whole recording */
	uint64_t lifetimes;                  /* objects */
	uint64_t execs;        /* times that a program began without us */
	uint64_t lost, unseen;               /* samples that found no room; frees that were noticed late */
	VEC(struct heap_function) functions; /* most alive first, then most allocated */
	bool symptoms[HEAP_SYMPTOMS];
	bool rose; /* it grew by much, though no symptom says how */
	VEC(char *) verdict; /* sentences: the findings, and where to look next */
	VEC(struct heap_link) links; /* of each sentence */
	/* The rest is private. */
	struct idents idents;
	struct crates crates;
};

/* False: no heap was recorded, or nothing of it is selected; the figures are empty then. own as for
 * crates_init(). */
bool heap_measure(struct heap_figures *f, const struct profile *p, const struct select_options *o,
		  const char *const *own);
void heap_done(struct heap_figures *f);

/* The standard error in bytes. */
double heap_error(const struct heap_sum *s);
/* Returns the probability that an object of so many bytes was sampled. */
double heap_chance(uint64_t bytes, uint64_t interval);
/* "leak", "churn", "bloat", "fragmentation" */
const char *heap_symptom_name(enum heap_symptom s);

/* For heap_measure(). */
void heap_judge(struct heap_figures *f, const struct profile *p);
