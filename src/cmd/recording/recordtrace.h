/*
 * recordtrace.h - the Chrome trace of --marks, which the target writes while it is recorded.
 *
 * Life: recordtrace_check (the options) -> recordtrace_begin (watches the file grow) -> recordtrace_finish (reads it).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;
struct tracewatch;

struct recordtrace {
	const char *path;   /* NULL = none */
	const char *offset; /* as the user typed it; NULL = none */
	int64_t offset_ns;
	struct tracewatch *watch;
};

int recordtrace_check(struct recordtrace *t, struct err *err);
int recordtrace_begin(struct recordtrace *t, struct err *err);
/* Adds the spans to the profile; NULL: only ends. Marks before first_mark are on disk already, and stay as they are. What is wrong with the
 * trace is said, and the recording is kept. */
void recordtrace_finish(struct recordtrace *t, struct profile *p, uint64_t start_mono_ns, size_t first_mark);
