/*
 * eventset.h - the events that were asked for by name, looked up in this kernel.
 *
 * Life: new -> add (each word of -e and of a file) -> read by the event collector ->
 * free. One tracepoint asked for in several ways (counted, summed by a field) is
 * attached to once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "collect/shared.h"

struct err;

/* The source that programs are attached to. */
struct eventset_source {
	char *name;            /* group:point, or the event's own */
	uint32_t type;         /* of the perf event */
	uint64_t config;
	bool sampled, user_only, kernel_only;
	struct shared_event shared; /* for the BPF side */
};

/* An event of the profile. Its index is the event of shared_event_use. */
struct eventset_use {
	char *name, *describe;
	const char *unit;
	uint32_t source;
	uint32_t event; /* of the profile, filled in by the collector */
};

struct eventset {
	VEC(struct eventset_source) sources;
	VEC(struct eventset_use) uses;
};

struct eventset *eventset_new(void);
void eventset_free(struct eventset *set); /* NULL is fine */

/* Does the word mean an event rather than a collector? */
bool eventset_is_event(const char *word);
/* An event that this kernel lacks is reported and skipped. where: "" or "FILE, line 3: ". */
int eventset_add(struct eventset *set, const char *word, const char *where, struct err *err);

/* Returns the name of a note of an event: "FUTEX_WAIT". */
const char *eventset_note(uint32_t note);
