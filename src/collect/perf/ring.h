/*
 * ring.h - the ring buffer of a perf event: records as the kernel writes them.
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
};

int ring_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

/* Maps the ring of fd, which it takes over in any case. pages: a power of two. 0 or -errno. */
int ring_init(struct ring *r, int fd, size_t pages);
void ring_done(struct ring *r);
/* Calls for each record; the record is valid during the call. How many there were. */
typedef void ring_record_fn(void *context, const struct perf_event_header *h);
size_t ring_drain(struct ring *r, ring_record_fn *fn, void *context);
