/*
 * runlog.h - times and gas from the output of a run, by patterns.
 *
 * A phase is a name and regular expressions (extended). The first group that matched a number is the value,
 * and the text after it is its unit: ns, µs, us, ms, s ("33.1ms", "60 ms", "1m2.3s"). Gas has the unit K,
 * M, G, T or none. Colours are removed from a line before it is matched, and a line is cut at RUNLOG_LINE
 * bytes. A phase that is printed several times in a run (a line a block) adds up; of a program that says that it
 * repeated its work (ethrex-replay --repeat 10) times and gas are means of its repetitions.
 *
 *	runlog_add_phase(&l, "exec=TIME SPENT: ([0-9.]+) ms", &err);
 *	runlog_feed(&l, text, n); runlog_end(&l);
 *	x = runlog_seconds(&l, 0);
 *	runlog_reset(&l);
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct err;

enum { RUNLOG_LINE = 4096 };
/* Instead of a phase: the pattern is of gas, or of how often the program did its work. */
#define RUNLOG_GAS SIZE_MAX
#define RUNLOG_REPEATS (SIZE_MAX - 1)

struct runlog_pattern {
	regex_t regex;
	size_t phase; /* or one of the above */
	double scale; /* of numbers without a unit; 0: there must be one */
	bool product; /* gas: the first two numbers, multiplied, and scaled */
};

struct runlog_phase {
	char *name;
	bool inner; /* its time is printed with that of the whole, after it: when it was is not known, and it has no spans */
	size_t instead; /* the phase that stands for this one where it was not printed; 0 = none */
	double seconds;
	uint64_t matches;
};

/* When it was printed, less how long it took: a phase on the clock. */
struct runlog_span {
	size_t phase;
	uint64_t start_ns, end_ns;
};

struct runlog {
	VEC(struct runlog_phase) phases;
	VEC(struct runlog_pattern) patterns;
	double gas;
	uint64_t gas_matches;
	uint64_t repeats; /* the program did its work so often, as it says itself; 0: it says nothing */
	uint64_t unclear; /* matches without a number or a unit, since the start */
	struct buf line;  /* that has no end yet */
	bool gas_given;   /* a pattern of gas is there */
	uint64_t now_ns;  /* set by the caller before it feeds; 0: no spans are kept */
	VEC(struct runlog_span) spans; /* of this run */
};

/* "NAME=REGEX"; a name that is there gets one more regex. */
int runlog_add_phase(struct runlog *l, const char *spec, struct err *err);
int runlog_add_gas(struct runlog *l, const char *regex, struct err *err);
/* ethrex, reth or geth, by the lines that they print. */
int runlog_add_preset(struct runlog *l, const char *name, struct err *err);
extern const char *const runlog_presets[]; /* NULL-terminated */

void runlog_feed(struct runlog *l, const char *text, size_t n);
void runlog_end(struct runlog *l); /* the last line needs no end */
double runlog_seconds(const struct runlog *l, size_t phase); /* NAN: it was not printed */
double runlog_total(const struct runlog *l, size_t phase);   /* the same, of all repetitions */
double runlog_gas(const struct runlog *l);                   /* NAN: neither */
void runlog_reset(struct runlog *l);                         /* the next run */
void runlog_done(struct runlog *l);

/* "37.5M" to 37500000; 0 or -EINVAL. */
int runlog_parse_gas(const char *s, double *ret);
