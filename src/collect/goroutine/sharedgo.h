/*
 * sharedgo.h - what the BPF programs of the goroutine collector and goroutine.c both read.
 */
#pragma once

#include "collect/shared.h"

enum {
	SHARED_GO_PARKED = 1 << 17, /* goroutines that are parked at a time */
	SHARED_GO_SUMS = 1 << 14,   /* stacks and reasons within a second */
	SHARED_GO_DEPTH = 24,       /* callers by which a stack is recognized */
	SHARED_GO_FILES = 64,       /* programs at a time */
};

/* What a probe is at: the low bits of its cookie. The rest is the index of the file. */
enum shared_go_what { GO_PARK, GO_READY, GO_RUN, GO_WHAT = 3, GO_FILE_SHIFT = 2 };

/* A reason is told apart by the file whose table names it: file << GO_REASON_BITS | number. */
enum { GO_REASON_BITS = 8 };

/* A goroutine is known by its process and the address of its runtime.g. */
struct shared_go_key {
	uint64_t g;
	uint32_t pid, pad;
};

struct shared_go_parked {
	uint64_t since_ns, ready_ns; /* ready 0: nobody has made it ready yet */
	uint64_t stack;
	uint64_t waker_stack;        /* 0 = not taken */
	uint32_t reason, waker_tid;
};

enum { RECORD_GO_WAIT = RECORD_OF(COLLECTOR_goroutine, 1) };

/* One long wait. */
struct shared_go_wait {
	uint32_t kind;
	uint32_t pid;
	uint64_t time_ns; /* when it began */
	uint64_t wait_ns, queue_ns;
	uint64_t stack, waker_stack;
	uint32_t reason, waker_tid;
};

/* Waits that are added up. */
struct shared_go_sum_key {
	uint64_t stack;
	uint32_t pid, reason;
};

struct shared_go_sum {
	uint64_t count, wait_ns, queue_ns;
	uint64_t first_ns; /* when the first one began */
};

struct shared_go_counts {
	uint64_t hits;       /* of all probes, of recorded processes */
	uint64_t parks;
	uint64_t unready;    /* waits that ended without ready(): network, GC */
	uint64_t before;     /* goroutines made ready that had been parked before the recording */
	uint64_t walked, remembered;
	uint64_t no_room;    /* parks beyond SHARED_GO_PARKED */
	uint64_t lost;       /* records, sums or stacks that found no room */
};

_Static_assert(sizeof(struct shared_go_key) == 16, "layout");
_Static_assert(sizeof(struct shared_go_parked) == 40, "layout");
_Static_assert(sizeof(struct shared_go_wait) == 56, "layout");
_Static_assert(sizeof(struct shared_go_sum_key) == 16, "layout");
