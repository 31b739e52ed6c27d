/*
 * recording.h - one recording from the command line to the capture file, for the commands that make one.
 *
 * Life: recording_find or recording_command -> recording_run -> recording_wait -> recording_done.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/recordtrace.h"
#include "cmd/recording/targets.h"
#include "collect/blocks/blockmarks.h"
#include "collect/session.h"
#include "symbol/symbolize.h"

struct capture;
struct profile;
struct worker;

#define RECORDING_INIT \
	{ .limit_bytes = 950 << 20, .full_ns = 300000000000, .launch = { .pid = -1, .gate = -1, .failed = -1, .output = -1, .copier = -1 }, .marks.log_fd = -1 }

struct recording {
	struct session_options session;
	struct symbolize_options symbols;
	struct blockmarks_options marks; /* log and rpc NULL: none */
	struct recordtrace trace;        /* --marks */
	const char *output;
	uint64_t max_bytes;   /* of the capture, 0 = any */
	uint64_t limit_bytes; /* of the capture: old rows are summed to stay below it, 0 = never */
	uint64_t full_ns;     /* rows of the last so long are not, if possible */
	bool say_next;        /* end, on a terminal, with the command that shows it */
	bool redact;          /* leave out what says whose it is */
	uint64_t leak_bytes;  /* alive at the end: from so many on it failed, 0 = do not look */
	struct targets who;
	const char *name;     /* in the file name in place of the events; NULL = the events */
	char *path;
	struct launch launch; /* run */
	bool beside;          /* the launched program is not recorded, but limits the recording */
	struct profile *profile;
	struct capture *capture;
	struct worker *worker;
	struct symbolizer *symbolizer; /* while it records */
	size_t marks_written; /* of the profile, by the last tick */
	struct err tick_err;
	enum session_end end;
	/* For commands that add to the profile: called when all samples are in it, before it is written.
	 * May be NULL. */
	void (*finish)(void *context, struct profile *p);
	void *context;
};

/* Splits argv at the first "--": the command behind it, or NULL. */
char **recording_split(int *argc, char **argv);
/* Processes that run. */
int recording_find(struct recording *r, const struct option_list *pids, char **names, int count,
		   struct err *err);
/* A program that is started, and waits before its exec. */
int recording_command(struct recording *r, char **argv, struct err *err);
/* Records, says how it went; the exit code. */
int recording_run(struct recording *r, struct err *err);
/* What flight.h has in common with it, in this order. The profile, the worker and the session, which starts nothing yet. */
int recording_open(struct recording *r, struct session **ret, struct err *err);
/* From here on signals end the recording; on_user: SIGUSR1 and SIGUSR2, NULL: they pause it. */
int recording_start(struct recording *r, struct session *s, void (*on_user)(int), struct err *err);
/* Signals do what they did before, but for the program, to which they are passed on. */
void recording_ended(struct recording *r);
/* Why it ended, in a line. */
void recording_say_end(const struct recording *r);
/* What is recorded, for a file's name. Caller frees. */
char *recording_what(const struct session_options *o);
/* Waits for the program; its exit code, where that says more than code. */
int recording_wait(struct recording *r, int code);
void recording_done(struct recording *r);
