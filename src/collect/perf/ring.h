/*
 * ring.h - ring buffers of perf events: records as the kernel writes them.
 *
 * Each CPU has a ring of its own. Read one after the other they would tell of a thread's name before they tell that it
 * was started, where the two happened on different CPUs; ring_drain() puts them in the order of their times.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ring {
	int fd;
	void *base;
	size_t bytes; /* of data, a power of two */
	char *straddle; /* a record that wraps around is put together here */
	size_t behind_time; /* bytes behind the time in records that are no samples: of PERF_SAMPLE_ID and so on */
	/* While it is drained: where it ends, the first record that is left, NULL if none is, and its time. */
	uint64_t head, tail;
	const struct perf_event_header *next;
	uint64_t next_ns;
};

int ring_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

/* Maps the ring of fd, which it takes over in any case. pages: a power of two. 0 or -errno. */
int ring_init(struct ring *r, int fd, size_t pages);
void ring_done(struct ring *r);
/* Calls for each record of all rings until now, in the order of their times; what is written meanwhile is left for the
 * next call. The record is valid during the call. The clock is CLOCK_MONOTONIC, sample_id_all is set, and of the
 * sample_type nothing is before PERF_SAMPLE_TIME but IP and TID; ring.behind_time says what is behind it in all records.
 * A ring without a base is none. How many records there were. */
typedef void ring_record_fn(void *context, const struct perf_event_header *h);
size_t ring_drain(struct ring *rings, size_t count, ring_record_fn *fn, void *context);
