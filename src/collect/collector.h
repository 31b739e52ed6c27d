/*
 * collector.h - what a collector is, and the session as collectors see it.
 *
 * A collector is one file with one struct collector and one line in the table
 * of session.c; its BPF programs stand beside it in NAME.bpf.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "collect/session.h"
#include "collect/shared.h"

struct alloc;
struct engine;
struct event;
struct eventset;
struct fallback;
struct hw;
struct follow;
struct groupwatch;
struct memwatch;
struct mark;
struct processes;
struct spans;
struct worker;

struct session {
	const struct session_options *options;
	struct profile *profile;
	struct processes *processes;
	struct worker *worker;
	const struct collector *collectors[16]; /* those chosen; NULL-terminated */
	size_t stopped;            /* the first so many of them have, and hear no more */
	struct engine *engine;     /* with BPF */
	struct fallback *fallback; /* or without */
	uint64_t start_mono_ns;
	uint64_t hz;               /* now in force */
	uint32_t cpu_event;        /* the profile's event of the cpu collector */
	struct kernelmap *kernel;  /* makes frames of the kernel */
	bool paused;
	bool quota;                /* a CPU quota binds a target, or may; groupwatch.h says so */
	int step_ms;               /* a collector wants to be asked at least so often; 0: none does */
	uint64_t next_second_ns;   /* when to look around again */
	struct session_governor { /* the last second, for --max-overhead */
		uint64_t cost_ns, target_ns, time_ns;
	} governor;
	struct groupwatch *groups;      /* the targets' cgroups */
	struct follow *follow;          /* who joins, NULL = nobody */
	struct wait *wait;              /* the wait collector's own */
	struct io *io;                  /* the io collector's own */
	struct fault *fault;            /* the fault collector's own */
	struct heap *heap;              /* the heap collector's own */
	struct memwatch *mem;           /* the mem collector's own */
	struct alloc *alloc;            /* the alloc collector's own */
	struct hw *hw;                  /* the hw collector's own */
	struct spans *spans;            /* the span collector's own */
	struct event *event;            /* the event collector's own */
	struct eventset *events;        /* and what it was asked for, NULL = nothing */
	struct mark *mark;              /* blocks; with BPF or without, NULL = nobody asked */
	uint64_t sampled_ns;            /* CPU time that the samples stand for */
	uint64_t reasons[REASON_COUNT]; /* samples by how their stack ended */
	int *clocks;                    /* the cpu collector's: one perf event for each CPU */
	int clock_count;
};

struct collector {
	const char *name;
	const char *describe;
	bool only_reads;             /* it reads files of /proc and needs no BPF */
	const char *const *programs; /* names of its BPF programs, loaded when it is chosen; NULL-terminated */
	const char *const *maps;     /* that only these use and that are large: made when it is chosen; may be NULL */
	bool early; /* starts before the others, which look where threads stand: it stops one for a moment */
	int (*start)(struct session *s, struct err *err);
	/* A record from the ring of at least 4 bytes, its kind. */
	void (*record)(struct session *s, const void *record, size_t size);
	void (*set_hz)(struct session *s, uint64_t hz);
	void (*pause)(struct session *s, bool pause);
	/* Once a second, for what is read rather than received; may be NULL. */
	void (*tick)(struct session *s, uint64_t now_mono_ns);
	/* As often as the session looks for records, after it has (session.step_ms); may be NULL. */
	void (*step)(struct session *s);
	/* The program that is run has been executed (session_options.program); may be NULL. */
	int (*started)(struct session *s, struct err *err);
	/* Processes were found that had been running before; may be NULL. */
	void (*joined)(struct session *s);
	/* Mappings were read after stacks had been cut for want of them; may be NULL. False: ask again soon. */
	bool (*mapped)(struct session *s);
	/* See session_peek(); may be NULL. */
	void (*peek)(struct session *s, uint64_t now_mono_ns);
	/* Counters into the profile, then release everything. */
	void (*stop)(struct session *s);
};

extern const struct collector *const session_collectors[]; /* all of them; NULL-terminated */
extern const struct collector collector_io, collector_alloc, collector_hw, collector_span;
extern const struct collector collector_cpu, collector_wait, collector_event, collector_fault, collector_heap,
	collector_mem;

/* The profile's stack for the frames of a record: outermost first, user, then kernel. */
uint32_t session_intern_stack(struct session *s, const struct shared_record *r, const uint64_t *frames);
void session_add_cpu_event(struct session *s);
/* The recording begins now: times count from here. Called once more by a collector that needed time first. */
void session_begin(struct session *s);
/* A tick of the clock, with BPF or without, as a sample of the profile. */
void session_cpu_sample(struct session *s, const struct shared_record *r, uint32_t stack);

/* Names of enum shared_reason, as they appear in stacks and counters. */
extern const char *const shared_reason_names[];
