/*
 * sharedspan.h - what span.bpf.c and user space both read.
 */
#pragma once

#include "collect/shared.h"

enum {
	SHARED_SPAN_PROBES = 2048,
	SHARED_SPAN_OPEN = 4096,   /* calls under way at a time */
	SHARED_SPAN_NAME = 48,
	SHARED_SPAN_VALUES = 3,
	SHARED_SPAN_NONE = 31,     /* no word of struct pt_regs */
};

enum shared_span_what { SPAN_ENTER = 1, SPAN_LEAVE, SPAN_BEGIN, SPAN_END, SPAN_MARK, SPAN_BLOCK_END };

/* A place with a probe; its cookie is the index. */
struct shared_span_probe {
	uint32_t what;
	uint32_t function;
	uint32_t depth;        /* ENTER: bytes pushed since the function began */
	uint32_t state;        /* where in a future its state is */
	uint32_t link;         /* ENTER: so far below the stack pointer of its begin it keeps where it returns to */
	uint32_t pad;
	uint32_t words[4];     /* of struct pt_regs: the arguments; ENTER: the future, or NONE */
	uint64_t hits;         /* about; threads race for it */
};

/* A call under way: the outermost one of a function in a thread. */
struct shared_span_key {
	uint32_t tid, function;
};

struct shared_span_call {
	uint64_t sp;      /* at the first instruction */
	uint64_t back;    /* where it returns to */
	uint64_t start_ns;
	uint64_t future;  /* 0 = none */
	uint64_t state;   /* before */
};

/* LEAVE: a call from start to end; values: the future, its state before and after. The others: a moment, end; values:
 * number, gas, transactions. */
struct shared_span {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t what;
	uint32_t function, pad;
	uint64_t start_ns, end_ns;
	uint64_t values[SHARED_SPAN_VALUES];
	char name[SHARED_SPAN_NAME];
};

struct shared_span_counts {
	uint64_t hits;
	uint64_t nested;    /* calls within one of the same function: a part of that */
	uint64_t abandoned; /* calls that never returned: a panic went through them */
	uint64_t beyond;    /* more than may be in a second */
	uint64_t lost;      /* the ring was full, or the table of calls */
};

_Static_assert(sizeof(struct shared_span_probe) == 48, "layout");
_Static_assert(sizeof(struct shared_span) == 112, "layout");
