/*
 * reader.h - has the files of targets read on a thread of its own, so that none of them holds up the session.
 *
 * Life: new -> add, take as results come in -> free, which calls off what is under
 * way. The thread owns a worker (elf/worker/worker.h) and does nothing but wait for it.
 * Where code lies in a file is asked for all that are waiting before the first
 * unwind table is made, as no stack can be walked without it. All calls are from
 * one thread, the session's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/unwind/unwind.h"
#include "elf/worker/worker.h"

struct reader;

enum reader_what { READER_LAYOUT, READER_TABLE };
struct reader_result {
	uint32_t id; /* as it was added */
	enum reader_what what;
	int status;  /* 0 or -errno: then there is no second result */
	struct worker_layout layout;
	struct unwind_table table; /* the caller calls unwind_done() */
	char text[256];            /* why, where status is not 0 */
};

/* Starts the thread with the first file. cached: tables that were made before are taken from the cache folder, and new ones
 * kept there (tablecache.h). */
struct reader *reader_new(bool cached);
void reader_free(struct reader *r);
/* Two results come of it, the layout first. The caller keeps fd open until reader_free(). image: it holds the vDSO. */
void reader_add(struct reader *r, uint32_t id, int fd, bool image);
/* The next result; false if there is none yet. */
bool reader_take(struct reader *r, struct reader_result *ret);
/* Calls fn for each table that was read and not taken yet. */
void reader_each_table(struct reader *r, void (*fn)(void *context, const struct unwind_table *table), void *context);
/* Is there a file of which not all results were taken? */
bool reader_busy(const struct reader *r);
/* Readable when there are results; -1 where the system had no descriptor for it: look now and then. */
int reader_event(const struct reader *r);
