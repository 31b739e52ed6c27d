/*
 * heaptarget.h - one process whose heap is recorded: its hooks, and the uprobes on them.
 *
 * The caller that opens or begins an implant (implant.h) puts it in here and enters; an entered target is
 * left, at the latest at the end. A process that executes another program is left and entered again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct err;
struct exactheap;
struct implant;
struct session;

struct heaptarget {
	pid_t pid;
	struct implant *implant;  /* NULL: it has none, or none any more */
	struct bpf_link *links[4];
	uint64_t mappings;        /* a sum of those that its slots were looked for in last */
	uint64_t look_ns;         /* not before */
	bool warned;              /* that slots which were found later cannot be changed */
	struct exactheap *events; /* where each allocation is seen */
};

/* Hooks its allocators and switches them on. Of t the pid and the implant are there; on failure it is left. */
int heaptarget_enter(struct session *s, struct heaptarget *t, struct err *err);
/* Libraries that were loaded since have slots, too. Often; takes below a twentieth of the time. */
void heaptarget_look(struct session *s, struct heaptarget *t);
/* Leaves the process as it was, but for memory that nothing refers to any more. */
void heaptarget_leave(struct heaptarget *t);
