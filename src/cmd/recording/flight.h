/*
 * flight.h - `record --keep`: a flight recorder. It records without an end and keeps the last minutes in memory, until an incident: then
 * they are written as a capture, and it goes on.
 *
 * Incidents are SIGUSR1, a rule of --when that has come true, an OOM kill, and the end of the target or of the recording.
 * docs/decisions/0025-flight-recorder.md says why it is so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/flight/rule.h"

struct err;
struct recording;

#define FLIGHT_INIT { .max_bytes = 512 << 20, .captures = 10, .rules.pause_ns = 60000000000 }

struct flight_options {
	uint64_t keep_ns;   /* 0: no flight recorder */
	uint64_t max_bytes; /* of rows and tables in memory */
	uint64_t captures;  /* the newest so many stay; 0 = all */
	bool json;          /* a line on stdout for each */
	struct rules rules;
};

/* Can it be recorded so, with these options? Else says why not. May add collectors that rules need; *ret_what, which the caller frees, is what
 * is recorded then. blocks: there is somebody who tells of blocks. */
int flight_check(const struct flight_options *o, const struct recording *r, bool blocks, char **ret_what, struct err *err);
/* Records, as recording_run(); the exit code. */
int flight_run(struct recording *r, struct flight_options *o, struct err *err);
