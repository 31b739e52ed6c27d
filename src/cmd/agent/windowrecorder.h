/*
 * windowrecorder.h - records a target on and on, and puts each window of its time into the spool: the process of an agent that has
 * the rights to record, one for each target.
 *
 * It is a flight recorder (cmd/flight) whose window begins where the last one ended: waits that reach over the border are in both, each with its
 * part. Frames are named as they come, once. A window that cannot be written (the disk is full) stays in memory and is tried again; three may wait.
 */
#pragma once

#include <stdint.h>

struct board_target;
struct kallsyms;

struct windowrecorder_options { /* all is borrowed */
	const char *target;  /* as `record` takes it */
	const char *name, *release; /* release NULL: the tag of the container's image, where there is one */
	const char *const *labels;  /* "key=value", NULL-terminated */
	const char *what;
	uint64_t hz, window_ns;
	uint64_t memory_bytes;  /* of rows and tables */
	double budget_percent;  /* of one CPU */
	const char *log, *client, *rpc; /* of blocks; NULL = none */
	const char *spool;
	struct kallsyms *kernel; /* NULL: it is read when it is needed */
	struct board_target *row;
};

/* How it ended; exit codes of the process. */
enum windowrecorder_end {
	WINDOWRECORDER_STOPPED = 10, /* by SIGTERM, or the agent is gone */
	WINDOWRECORDER_GONE,         /* the target ended */
	WINDOWRECORDER_AGAIN,        /* it is to be started anew: by SIGUSR2, or its tables are full */
	WINDOWRECORDER_FAILED,       /* the row's note says why */
};

/* Returns the exit code. The last window is written in any case. */
int windowrecorder_run(const struct windowrecorder_options *o);
