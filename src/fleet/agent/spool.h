/*
 * spool.h - windows on disk until each sink has them: bounded, and whole after a crash of the agent or of the machine.
 *
 *	FOLDER/new/NAME			a window that a recorder finished; files that end in ".part" are not finished
 *	FOLDER/to/SINK/NAME		a link for each sink that does not have it yet
 *	FOLDER/refused/SINK/NAME	a sink refused it for good: kept for a person to look at, within the same bound
 *
 * A recorder renames NAME.part to NAME. spool_take() makes the window durable (fsync), links it into the queue of each sink and removes it from new/ when
 * all queues have it: a crash in between repeats that, before anything of it was delivered. A name sorts by time. The folders are ours alone (0700), the lock is
 * held as long as the spool is open. All calls are from the process that delivers, but for spool_make() and spool_name().
 *
 * A window that was delivered, but not yet forgotten when the process or the machine failed, is delivered again: sinks know it by its name or its key. Files
 * that are no windows (by name, by owner, or with a second name somewhere) are left alone, and said once. While it is open nothing but new/ is listed. The file
 * system needs hard links; a process that confines itself says so (confine.h: .moves).
 *
 * Above the bound, windows go: first those of sinks that are no more, then refused ones, then the oldest of the longest queue, and last those that could not be taken. All
 * are counted, by sink; a file's bytes count once, however many queues have it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct spool;

struct spool_options {
	const char *folder;
	uint64_t max_bytes;       /* 0 = no bound */
	const char *const *sinks; /* names: letters, digits, "-", "_" and ".", not at the start; NULL-terminated */
};

struct spool_queue {
	uint64_t waiting, bytes;
	uint64_t dropped;         /* since it was opened: for want of room */
	uint64_t refused;         /* likewise */
	uint64_t oldest_wall_ns;  /* of those that wait, by name; 0 = none */
};

/* Makes the folders, and checks that nobody else may write to them. Leftovers of recorders (.part, and what newfile.h had not finished) are removed,
 * unless an agent has the spool open: then they may be alive. */
int spool_make(const char *folder, struct err *err);
/* -EBUSY: another agent has it. */
int spool_open(const struct spool_options *o, struct spool **ret, struct err *err);
void spool_close(struct spool *s); /* NULL is fine */
/* After a reload: other sinks, another bound. The queue of a sink whose name stays, stays. */
int spool_change(struct spool *s, const struct spool_options *o, struct err *err);

/* A name for a window: "20261118T040000.123Z-000017-7f3a9c12.gasflame": begin, sequence, and a hash of the target. */
char *spool_name(const char *target, uint64_t start_wall_ns, uint64_t sequence);

/* Moves new windows into the queues, the oldest first and at most some hundreds at a time, and keeps the bound. How many; or -ENOSPC and others: tried again at the next call. */
int spool_take(struct spool *s, struct err *err);
/* The oldest window for a sink, open for reading. *ret_name: the caller frees it. -ENOENT: none waits. */
int spool_first(struct spool *s, size_t sink, char **ret_name, int *ret_fd, struct err *err);
/* The same for the one that so many others are older than. */
int spool_at(struct spool *s, size_t sink, size_t at, char **ret_name, int *ret_fd, struct err *err);
/* It is delivered, or refused for good. One that is not waiting any more, because the bound took it, is passed over. */
void spool_delivered(struct spool *s, size_t sink, const char *name);
void spool_refused(struct spool *s, size_t sink, const char *name);

struct spool_queue spool_state(const struct spool *s, size_t sink);
uint64_t spool_bytes(const struct spool *s);
uint64_t spool_windows(const struct spool *s); /* each once */
uint64_t spool_dropped(const struct spool *s); /* by all sinks, those that are no more too */

/* How long to wait after so many failures in a row: 1 s, 2 s, ... 5 minutes, each times a random part of 0.5 to 1.5 (random: any 64 bits). */
uint64_t spool_pause_ns(unsigned failures, uint64_t random);
