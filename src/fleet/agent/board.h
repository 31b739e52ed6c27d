/*
 * board.h - what the processes of an agent tell each other: figures in memory that all of them share.
 *
 * The agent has a process for each target that records, one that delivers, and one that starts them (cmd/agent). A row belongs to one
 * process at a time, which is the only one to write to it; the others read. Numbers are written one by one, so a reader may
 * see some of them a moment older than others. Nothing in it is a pointer or an index that a reader follows: a process that was taken over by its target
 * can tell lies here, and no more. Texts may lack their end, and hold anything: board_text().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BOARD_TARGETS = 64, BOARD_SINKS = 16, BOARD_NAME = 204, BOARD_NOTE = 256 };

enum board_state {
	BOARD_FREE,      /* nobody has this row */
	BOARD_WAITING,   /* what its name stands for does not run */
	BOARD_STARTING,
	BOARD_RECORDING,
	BOARD_FAILED,    /* it could not be recorded; note says why, and it is tried again */
	BOARD_STATES,
};

/* Written by the process that starts recorders up to its mark, and by the recorder behind it. */
struct board_target {
	uint32_t state;            /* enum board_state */
	uint32_t restarts;         /* of its recorder */
	char name[BOARD_NAME];     /* under which its windows are found */
	char note[BOARD_NOTE];     /* why it waits or failed, or what is left out to keep the budget; "" = nothing */
	uint64_t since_wall_ns;    /* of the state */
	uint32_t level;            /* how much is left out to keep the budget: 0 = nothing */
	uint32_t pid;              /* of the recorder */
	uint64_t past_cpu_ns, past_bpf_ns; /* of earlier recorders of this row */
	/* --- the recorder's --- */
	char what[64];             /* "cpu,wait,mem" */
	uint32_t hz;
	uint32_t processes;        /* of the target, that live */
	uint64_t windows;          /* written to the spool, also by earlier recorders */
	uint64_t lost_windows;     /* that could not be written */
	uint64_t last_window_wall_ns; /* the end of the last one */
	uint64_t samples, lost_samples;
	uint64_t blocks;
	uint64_t cpu_ns;           /* of the recorder and its child, so far */
	uint64_t bpf_ns;           /* of its BPF programs */
	uint64_t anon_bytes;       /* its memory, without what is shared with files */
	uint64_t table_bytes;
	uint32_t bpf;              /* 1: by BPF; 0: from copies of stacks */
};

/* Written by the process that delivers. */
struct board_sink {
	char name[BOARD_NAME];     /* of its section; "" = no such sink */
	char note[BOARD_NOTE];     /* the last failure; "" = none since the last success */
	uint64_t delivered, failures, refused, dropped; /* windows, attempts, windows, windows */
	uint64_t waiting, waiting_bytes;
	uint64_t oldest_wall_ns;   /* of what waits: when it was recorded; 0 = nothing waits */
	uint64_t last_wall_ns;     /* of the last success; 0 = none */
	uint64_t next_mono_ns;     /* when it is tried again, after a failure; 0 = at once */
};

struct board {
	uint64_t started_wall_ns, reloaded_wall_ns;
	uint32_t pid, sender_pid;
	double budget_percent;     /* of one CPU */
	uint64_t budget_bytes;
	uint64_t window_ns;
	uint64_t cpu_ns;           /* of the process that starts recorders */
	uint64_t sender_cpu_ns;
	uint64_t all_cpu_ns;       /* of all processes of the agent, those that have ended too, and BPF; at all_mono_ns */
	uint64_t all_mono_ns, begun_mono_ns;
	double recent_percent;     /* the same in the last minutes, of one CPU */
	uint64_t resident_bytes;   /* of all of them: shared pages once */
	uint64_t spool_bytes, spool_limit_bytes, spool_windows;
	uint64_t lost_windows;     /* dropped from the spool: it was full; by all sinks */
	char config[BOARD_NAME];   /* its path */
	char note[BOARD_NOTE];     /* of the last reload that was refused; "" = none */
	struct board_target targets[BOARD_TARGETS];
	struct board_sink sinks[BOARD_SINKS];
};

/* Shared with children that are forked from now on; never freed but by board_free(). NULL: no memory. */
struct board *board_new(void);
void board_free(struct board *b);
/* A text of the board as a string of one line without control characters: cut to size. */
const char *board_text(const char *field, size_t field_size, char *out, size_t size);
void board_set(char *field, size_t field_size, const char *text);
