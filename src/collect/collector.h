/*
 * collector.h - what a collector is, and the session as collectors see it.
 *
 * A collector is NAME.c with one struct collector, its BPF programs beside it in NAME.bpf.c, and a line in collectors.h.
 * The engine, the fallback and the collectors use what is here and nothing of session.h but the options: the
 * session calls them, they do not call the session.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "collect/collectors.h"
#include "collect/session.h"
#include "collect/shared.h"

struct bpfengine;
struct budget;
struct fallback;
struct follow;
struct gasflame_bpf;
struct cgroupwatch;
struct kernelmap;
struct blockmarks;
struct processes;
struct worker;

typedef void collector_record_fn(struct session *s, const void *record, size_t size);

struct session {
	const struct session_options *options;
	struct profile *profile;
	struct processes *processes;
	struct worker *worker;
	bool chosen[COLLECTOR_COUNT];
	bool running[COLLECTOR_COUNT];                /* from the call of start() to the return of stop() */
	collector_record_fn *record[COLLECTOR_COUNT]; /* of those that run; NULL: its records are dropped */
	void *state[COLLECTOR_COUNT];                 /* each collector's own: collector.state_size */
	struct bpfengine *engine;  /* with BPF */
	struct fallback *fallback; /* or without */
	uint64_t start_mono_ns;
	uint64_t hz;               /* now in force */
	uint32_t cpu_event;        /* the profile's event of the samples of a clock */
	struct kernelmap *kernel;  /* makes frames of the kernel */
	bool paused;
	bool quota;                /* a CPU quota binds a target, or may; cgroupwatch.h says so */
	int step_ms;               /* a collector wants to be asked at least so often; 0: none does */
	uint64_t next_second_ns;   /* when to look around again */
	struct budget *budget;          /* what recording costs, and what it may cost */
	struct cgroupwatch *groups;     /* the targets' cgroups */
	struct follow *follow;          /* who joins, NULL = nobody */
	struct blockmarks *mark;        /* blocks; with BPF or without, NULL = nobody asked */
	uint64_t sampled_ns;            /* CPU time that the samples stand for */
	uint64_t reasons[REASON_COUNT]; /* samples by how their stack ended */
};

enum collector_flag {
	COLLECTOR_READS = 1,    /* it reads files of /proc and runs without BPF, too */
	COLLECTOR_CLOCK = 2,    /* its samples stand for the targets' CPU time; without BPF the fallback takes them */
	COLLECTOR_EARLY = 4,    /* starts before the others, which look where threads stand: it stops one for a moment */
	COLLECTOR_PRESSURE = 8, /* it records the pressure on memory */
	COLLECTOR_PERF = 16,    /* without BPF the fallback records the same by perf events */
};

/* The result of offering a word to a collector. */
enum collector_choice { COLLECTOR_NOT_MINE, COLLECTOR_CHOSEN, COLLECTOR_LACKING /* this kernel has nothing of it */ };

struct collector {
	const char *name;
	const char *describe;
	unsigned flags;              /* enum collector_flag */
	size_t state_size;           /* of session.state: zeroed when the session is opened, freed when it is closed */
	const char *const *programs; /* names of its BPF programs, loaded when it is chosen; NULL-terminated; may be NULL */
	const char *const *maps;     /* that only these use and that are large: made when it is chosen; may be NULL */
	int (*start)(struct session *s, struct err *err);
	/* Counters into the profile, then release everything. Called once after start(), also where that failed. */
	void (*stop)(struct session *s);

	/* The rest may be NULL: nothing to be done. All but the first four are called from start() to stop() only. */

	/* A word after -e that names no collector, or this one. where: "" or "FILE, line 3: ". Negative or enum
	 * collector_choice. Without this hook the collector is chosen by its name. */
	int (*choose)(struct session *s, const char *word, const char *where, struct err *err);
	/* Is it recorded beside others though nobody named it? Without BPF it is left out then, unless it only reads. */
	bool (*beside)(const struct session_options *o);
	/* It is left out: says so where the targets have something that it would have recorded. Called in place of start(), in a moment. */
	void (*absent)(struct session *s);
	/* It was chosen; the programs are opened and not loaded yet. */
	void (*prepare)(struct session *s, struct gasflame_bpf *skeleton);
	/* The capture is written: what takes long to let go of. Called for every collector, chosen or not. */
	void (*close)(struct session *s);
	/* A record of its own kinds (RECORD_OF), of at least 4 bytes. */
	collector_record_fn *record;
	/* The budget (budget/budget.h) asks for less, or more again. A clock: so many ticks a second. */
	void (*set_hz)(struct session *s, uint64_t hz);
	/* Others: each step halves what it does beyond its exact figures, the chance that a stack is walked say; 0 is as
	 * designed, thin_steps the last. What is recorded counts for what was not. */
	void (*thin)(struct session *s, unsigned step);
	unsigned thin_steps;
	/* With thin(): the stacks that it has walked so far, or events that it has looked at as closely. */
	uint64_t (*looked_at)(struct session *s);
	/* What it has spent so far beyond its programs and records: in the target, for hooks say, and CPU time of ours; and for how
	 * many events. */
	void (*spent)(const struct session *s, uint64_t *ret_target_ns, uint64_t *ret_own_ns, uint64_t *ret_events);
	/* Events that it recorded so far, where its programs run for those of all processes; NULL: a clock: one for each record; else: all. */
	uint64_t (*recorded)(const struct session *s);
	void (*pause)(struct session *s, bool pause);
	/* Once a second, for what is read rather than received. */
	void (*tick)(struct session *s, uint64_t now_mono_ns);
	/* As often as the session looks for records, after it has (session.step_ms). */
	void (*step)(struct session *s);
	/* The program that is run has been executed (session_options.program). */
	int (*started)(struct session *s, struct err *err);
	/* Processes were found that had been running before. */
	void (*joined)(struct session *s);
	/* Mappings were read after stacks had been cut for want of them. False: ask again soon. */
	bool (*mapped)(struct session *s);
	/* See session_peek(). */
	void (*peek)(struct session *s, uint64_t now_mono_ns);
	/* See session_tally(): adds the counters and histograms that stop() adds to the session's profile, as they are now. */
	void (*tally)(struct session *s, struct profile *to);
};

#define COLLECTOR_DECLARE(name) extern const struct collector collector_##name;
COLLECTORS(COLLECTOR_DECLARE)
#undef COLLECTOR_DECLARE
extern const struct collector *const collector_table[COLLECTOR_COUNT];

/* Was a collector chosen that has this flag? */
bool collector_any(const struct session *s, enum collector_flag flag);
/* The profile's stack for the frames of a record: outermost first, user, then kernel. */
uint32_t collector_stack(struct session *s, const struct shared_record *r, const uint64_t *frames);
void collector_add_cpu_event(struct session *s);
/* The recording begins now: times count from here. */
void collector_begin(struct session *s);
/* Likewise at a moment of CLOCK_MONOTONIC that is near. Called by a collector that needed time first, which waits for it. */
void collector_begin_at(struct session *s, uint64_t mono_ns);
/* A tick of the clock, with BPF or without, as a sample of the profile. */
void collector_cpu_sample(struct session *s, const struct shared_record *r, uint32_t stack);
/* The same for a thread of the profile that is known. */
void collector_cpu_sample_of(struct session *s, const struct shared_record *r, uint32_t stack, uint32_t thread);

/* A time of the profile. What was before the recording is at its beginning. */
static inline uint64_t collector_time_ns(const struct session *s, uint64_t mono_ns)
{
	return mono_ns > s->start_mono_ns ? mono_ns - s->start_mono_ns : 0;
}

/* Names of enum shared_reason, as they appear in stacks and counters. */
extern const char *const shared_reason_names[];
