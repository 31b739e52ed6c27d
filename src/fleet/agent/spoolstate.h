/*
 * spoolstate.h - what spool.c and spooltake.c share: spool.c opens, delivers and tells; spooltake.c takes new windows, and keeps the bound.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "fleet/agent/spoollist.h"

struct err;

#define SPOOL_NEW "new"
#define SPOOL_TO "to"
#define SPOOL_REFUSED "refused"

struct spoolqueue {
	char *sink;
	bool wanted;      /* a sink has this name now */
	struct spoollist waiting, kept; /* kept: refused, for a person */
	uint64_t dropped, refused;
};

struct spool {
	char *folder;
	int root, lock;
	uint64_t max_bytes;
	VEC(struct spoolqueue *) queues; /* those of sinks that are no more too */
	VEC(struct spoolqueue *) sinks;  /* as the caller numbers them */
	struct spoollist_total total;
	uint64_t new_bytes, new_windows; /* that the last spool_take() left in new/ */
	bool said_foreign, said_gone;
};

/* A regular file of ours. */
static inline bool spoolstate_is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* Once for each spool. */
void spoolstate_say_foreign(struct spool *s, const char *where, const char *name);
/* Drops windows of the queues until the rest keeps to the bound. */
int spoolstate_keep_bound(struct spool *s, struct err *err);
