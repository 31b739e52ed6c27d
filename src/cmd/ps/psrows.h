/*
 * psrows.h - what can be profiled, for `ps`: a row for each container, pod's container, unit, and for each process that
 * is in none of these.
 *
 * Life: psrows_read -> psrows_look -> psrows_done. Only reads; kernel threads are left out, and gasflame itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "target/container/container.h"
#include "target/proc.h"

enum ps_kind { PS_CONTAINER, PS_POD, PS_UNIT, PS_PROCESS };

/* How well the names of functions are known. */
enum ps_symbols {
	PS_SYMBOLS_UNKNOWN,  /* not inspected, or not readable */
	PS_SYMBOLS_NONE,
	PS_SYMBOLS_EXPORTED, /* stripped */
	PS_SYMBOLS_ELSEWHERE, /* stripped, and says what its debug file is called */
	PS_SYMBOLS_TABLE,
	PS_SYMBOLS_DEBUG,    /* and lines, inlined calls */
};

struct ps_row {
	enum ps_kind kind;
	char *name;      /* of the container, the unit, the process */
	char *target;    /* what names it and nothing else: "container:reth-a", "pid:4242" */
	struct container container; /* id NULL: none */
	char *unit_path;
	char *command;   /* of the main process */
	struct proc_ids pids;
	pid_t pid, inner_pid; /* main process */
	double cpu_percent;   /* of one CPU */
	uint64_t rss_bytes;
	uint32_t threads;
	/* Of the main process's program. */
	enum ps_symbols symbols;
	bool looked, unwind;
	char allocator[48];   /* "jemalloc, static", "glibc", "" = not known */
	const char *problem;  /* why it could not be inspected, NULL = it was */
};

struct psrows {
	VEC(struct ps_row) list; /* by CPU time, most first */
	struct container_notes notes;
	size_t not_looked; /* for which there was no time */
};

/* CPU time is that of the next interval_ns. all: also each process of containers and units. */
int psrows_read(uint64_t interval_ns, bool all, struct psrows *ret);
/* Drops the rows in which none of the words is, in any case. */
void psrows_filter(struct psrows *rows, char *const *words, size_t n);
/* Looks into the programs of the rows, in their order, until the time is over. */
void psrows_look(struct psrows *rows, uint64_t deadline_ns);
void psrows_done(struct psrows *rows);

const char *ps_kind_name(enum ps_kind kind);
const char *ps_symbols_name(enum ps_symbols symbols);
