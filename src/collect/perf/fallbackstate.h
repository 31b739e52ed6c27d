/*
 * fallbackstate.h - what fallback.c, which reads the records, and attach.c, which opens the events, both know.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "collect/perf/samples.h"
#include "elf/unwind/unwind.h"
#include "target/host.h"

struct err;
struct ring;
struct session;
struct switches;

enum { WAIT_DUMP_BYTES = 32768 }; /* of SAMPLE_STACK */

/* Each kind of event has a ring of its own on each CPU: a record that is lost is of that kind. */
enum fallback_ring { RING_CLOCK, RING_COPIES, RING_SWITCHES, FALLBACK_RINGS };

struct fallback {
	struct session *session;
	struct host host;
	struct ring *rings; /* by kind, and of a kind by CPU */
	int cpus, epoll;
	bool clock, waits; /* what is recorded; neither: nothing, and no event is opened */
	bool kernel;
	VEC(int) fds;    /* events that write into the rings of others */
	VEC(int) clocks; /* those of SAMPLE_CLOCK, whoever owns them */
	struct map kinds;    /* id of an event to its enum sample_kind */
	struct map attached; /* tids */
	VEC(struct unwind_table) tables; /* by module id; page_count 0 = none */
	uint64_t lost, waits_lost;
	uint64_t period_ns; /* that a sample stands for */
	uint64_t copies_hz; /* of SAMPLE_STACK */
	uint64_t end_ns;    /* records from later on do not count; 0 = none are */
	struct switches *switches;
	uint32_t switch_point; /* the id of the tracepoint sched_switch; 0: it cannot be had */
	uint32_t woken_at;     /* where sched_waking has the tid; 0: nobody listens to it */
};

/* The ring of a kind of event. */
enum fallback_ring fallback_ring_of(enum sample_kind kind);
/* Opens the events of all threads of the targets. */
int attach_targets(struct fallback *f, struct err *err);
/* Asks who wakes threads: of all processes, where tracepoints and those may be seen. */
void attach_wakers(struct fallback *f);
