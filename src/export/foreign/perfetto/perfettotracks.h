/*
 * perfettotracks.h - what a Perfetto trace has before its events: clocks, and descriptions of processes, threads, tracks of marks
 * and counters.
 */
#pragma once

#include <stdint.h>

struct buf;
struct perfettomarks;
struct perfettoseq;
struct profile;

/* Numbers of tracks: an index into a table of the profile, or of the tracks of marks. */
uint64_t perfettotrack_process(uint32_t process);
uint64_t perfettotrack_thread(uint32_t thread);
uint64_t perfettotrack_mark(uint32_t track);
uint64_t perfettotrack_series(uint32_t series);

/* As recorded; of imports that have none, numbers that no system gives. */
uint32_t perfettotrack_pid(const struct profile *p, uint32_t process);
uint32_t perfettotrack_tid(const struct profile *p, uint32_t thread);

/* When the recording began, if that is known. */
void perfettotrack_put_clocks(struct perfettoseq *s, const struct profile *p);
/* threads, series: a byte for each, whether it is in the trace. */
void perfettotrack_put_all(struct perfettoseq *s, const struct profile *p, const uint8_t *threads, const uint8_t *series,
			   const struct perfettomarks *marks);
/* In the first packet of a session of samples: what is sampled. one_in: of so many samples one is written. */
void perfettotrack_put_session(struct buf *out, const struct profile *p, uint32_t event, uint64_t one_in);
