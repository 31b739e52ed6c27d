/*
 * exactheap.h - reads the events of one process of which each allocation is seen (blob/exact.h).
 *
 *	struct exactheap *e = exactheap_new(s, pid, implant);
 *	exactheap_record(e, r);                      stacks that the kernel had to walk, as they come
 *	exactheap_drain(e, false, see, context);     often: the process waits when too many are unread
 *	exactheap_drain(e, true, see, context);      at the end, whether the process lives or not
 *	exactheap_free(e);
 *
 * Events come in an order in which no address is in use twice. What is read was written by the target, which may write
 * anything: all of it is checked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct exactheap;
struct implant;
struct session;
struct shared_heap_stack;

struct exactheap_event {
	uint64_t address, size;
	uint64_t time_ns;       /* CLOCK_MONOTONIC, as near as between two looks */
	uint64_t step_ns;       /* to the next event */
	uint32_t thread, stack; /* of an allocation: the profile's */
	bool freed;
	bool at_once;           /* by the thread whose last allocation it was */
	bool freed_next;        /* an allocation: the next event is its free, at once */
};
/* True: it has also dealt with that next event (freed_next), which is left out then. */
typedef bool exactheap_fn(void *context, const struct exactheap_event *event);

struct exactheap *exactheap_new(struct session *s, pid_t pid, struct implant *i);
void exactheap_free(struct exactheap *e); /* NULL is fine */

void exactheap_record(struct exactheap *e, const struct shared_heap_stack *r);
/* all: also what comes after an event that was begun and never written. How many there were. */
uint64_t exactheap_drain(struct exactheap *e, bool all, exactheap_fn *see, void *context);
/* Are there some that are not written yet? */
bool exactheap_pending(const struct exactheap *e);
/* Allocations whose stack was lost, and events that were never written; but for those of a process that died meanwhile:
 * these calls never returned. */
uint64_t exactheap_lost(const struct exactheap *e, bool died);
