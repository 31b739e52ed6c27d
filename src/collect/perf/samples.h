/*
 * samples.h - samples of the fallback's perf events: what is asked for, and what a record says.
 *
 * All of them are ip, pid and tid, time, id; then what SAMPLE_KINDS says. The id tells the kind, since events of several kinds
 * share a ring.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/shared.h"
#include "elf/unwind/unwind.h"

struct perf_event_attr;
struct perf_event_header;

enum sample_kind {
	SAMPLE_CLOCK,  /* the CPU clock: kernel frames, registers, a copy of the stack */
	SAMPLE_SWITCH, /* a thread leaves its CPU: kernel frames and registers; beside it the records of all switches */
	SAMPLE_STACK,  /* the same, now and then, with a copy of the stack */
	SAMPLE_WAKING, /* a thread wakes another one: kernel frames, and the fields of the tracepoint */
	SAMPLE_KINDS
};

enum {
	SAMPLE_BEHIND_TIME = 8, /* ring.behind_time */
	/* A record is 65,535 bytes at most. The kernel cuts a dump to fit, but rounds it up afterwards, and a
	 * size of 65,536 is 0 in its 16 bits: leave room for all the rest of a record. */
	SAMPLE_DUMP_BYTES = 64000,
};

struct sample {
	pid_t pid, tid;
	uint64_t time_ns;
	uint64_t kernel[SHARED_MAX_KERNEL_FRAMES]; /* leaf first */
	uint16_t kernel_count;
	bool has_regs;
	struct unwind_regs regs;
	struct unwind_dump dump; /* within the record */
	const uint8_t *raw;      /* likewise */
	uint32_t raw_bytes;
};

/* Fills in sample_type and what belongs to it. kernel: may kernel frames be seen? */
void sample_ask(enum sample_kind kind, bool kernel, uint32_t dump_bytes, struct perf_event_attr *attr);
/* The id of a record of type PERF_RECORD_SAMPLE; 0: it has none. */
uint64_t sample_id(const struct perf_event_header *h);
/* False: the record is not as it should be. */
bool sample_read(enum sample_kind kind, const struct perf_event_header *h, struct sample *ret);

/* The end of a record of another type. */
struct sample_end {
	uint32_t pid, tid;
	uint64_t time_ns, id;
};
struct sample_end sample_end(const struct perf_event_header *h);
