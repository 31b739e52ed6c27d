/*
 * session.h - one recording: who is recorded, by which collectors, for how long.
 *
 * Life: open (chooses BPF or the fallback, reads the targets' mappings, makes
 * unwind tables, starts nothing) -> start -> loop -> finish -> close. The profile
 * is the caller's; tick() is called about once a second and whenever a module or
 * mapping is new, so that the caller can write the capture.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct blockmarks_options;
struct kallsyms;
struct profile;
struct session;
struct worker;

#define SESSION_MAX_OVERHEAD 5.0 /* percent, where nobody says otherwise */

enum session_backend { SESSION_AUTO, SESSION_BPF, SESSION_PERF };

struct session_options {
	bool what_default;         /* what was not asked for: without BPF less of it will do */
	const char *what;          /* collectors and events, separated by commas */
	const char *events_file;   /* more of them, one a line; may be NULL */
	uint64_t event_rate;       /* events a second that are kept one by one; beyond that they are counted by stack */
	bool full;                 /* set by tick() once the capture is as large as it may be: only count events */
	uint64_t hz;
	uint64_t duration_ns;      /* 0 = until interrupted */
	uint64_t heap_interval;    /* bytes between samples of allocations; 0: each one */
	bool heap_steady;          /* that interval is wanted whatever it costs; it rises only where samples are lost */
	bool heap_ours;            /* memory that we share with the target is not to count for its cgroup */
	bool heap_optional;        /* where a program cannot be hooked, the rest is recorded, and a line says why */
	uint64_t long_poll_ns;     /* a poll of a task from here on has a mark; 0: 1 ms */
	double max_overhead;       /* percent (budget/budget.h); 0 = no limit */
	enum session_backend backend;
	const pid_t *pids;
	size_t pid_count;
	bool follow;               /* when all targets have ended, wait for the names to stand for processes again */
	char *const *names;        /* as the user said them, for that */
	size_t name_count;
	char *const *groups;       /* folders of cgroups: whoever enters them is recorded, too */
	size_t group_count;
	const struct blockmarks_options *marks; /* blocks from a log or a node; NULL = none */
	const char *const *functions; /* parts of names: their calls become marks, those of the first are blocks */
	size_t function_count;
	bool guess_functions;      /* without any: those that are known to make blocks, where they are */
	bool listen;               /* to what the program says of itself (gasflame.h), where that can be had */
	uint64_t pace_ns;          /* how often it looks around; 0: each second. Slower: it also wakes up less for what others do */
	bool windows;              /* spans of its time will be cut out of it: what is known of the whole only is left out */
	bool no_cache;             /* neither use nor keep unwind tables of earlier recordings */
	const char *program;       /* run: the file that the (single) pid is about to execute, may be NULL */
	/* Negative: stop recording (the disk is full, say). */
	int (*tick)(void *context, struct profile *p);
	void *tick_context;
	/* All is open, and no thread has been started: rights that a recorder needs no more can be given up. May be
	 * NULL. */
	void (*ready)(void *context, const struct session *s);
	void *ready_context;
	/* About ten times a second, for what must be looked at more often; the time since the start. May be NULL. */
	void (*look)(void *context, uint64_t time_ns);
	void *look_context;
	/* CPU time of this process so far that is no part of the cost of recording: what other threads do beside it. May be NULL. */
	uint64_t (*aside)(void *context);
	void *aside_context;
	/* About once a second, in place of the line that says for how long it has been recording; how: ", paused" or the like. May be NULL. */
	void (*progress)(void *context, const char *how);
	void *progress_context;
};

enum session_end { SESSION_END_TIME, SESSION_END_INTERRUPT, SESSION_END_GONE, SESSION_END_TICK, SESSION_GOES_ON };

int session_open(const struct session_options *options, struct profile *p, struct worker *w,
		 struct session **ret, struct err *err);
int session_start(struct session *s, struct err *err);
/* With options.program: it was let go and has been executed. */
int session_started(struct session *s, struct err *err);
/* Runs until the time is over, session_interrupt(), all targets are gone, or tick() fails. */
enum session_end session_loop(struct session *s);
/* Runs one round of that, for callers with a loop of their own: waits at most so long for something to do. */
enum session_end session_step(struct session *s, int timeout_ms);
/*
 * For those who look on meanwhile: the profile as if the recording ended now. The threads' times are brought up
 * to date, and samples are appended for what every thread is in the middle of. They come again with the next
 * look, and in the end with what they have grown to: the caller must cut p->samples, p->wakes and p->taskwakes back to what they
 * were before the next step.
 */
void session_peek(struct session *s);
/* Adds to to, which has none, the counters and histograms that session_finish() will add to the profile, as they are now: with those
 * that the profile has by now they are all there is. Those of marks, heap, tasks and goroutines are known at the end only. */
void session_tally(struct session *s, struct profile *to);
/* Copies of the descriptors of all files that were seen so far, by the profile's module; take() owns them. */
void session_files(const struct session *s, void (*take)(void *context, uint32_t module, int fd), void *context);
/* Stops sampling, drains, fills in what is known at the end. Files go to take() (see processes.h). */
void session_finish(struct session *s, void (*take)(void *context, uint32_t module, int fd), void *context);
/* After session_finish(): the kernel's symbols, if they were read for this recording, else NULL. The caller frees them. */
struct kallsyms *session_take_symbols(struct session *s);
void session_close(struct session *s);

bool session_has_bpf(const struct session *s);
uint64_t session_start_ns(const struct session *s); /* when the profile's time 0 was, CLOCK_MONOTONIC */
bool session_records(const struct session *s, const char *name); /* is it one of its collectors? */

/* From signal handlers. */
void session_interrupt(void);
void session_pause(bool pause);
void session_check_soon(void); /* a target may have ended: look now */

/* The collectors that there are, for --help and errors: name and description, NULL beyond the last. */
const char *session_collector(size_t i, const char **ret_describe);
