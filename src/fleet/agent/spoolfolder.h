/*
 * spoolfolder.h - the folders of a spool and the names in them, for spool.c.
 *
 * A folder is opened by its parent's descriptor, never through a link, and is used only if it is ours and nobody else may write to it. Each
 * call opens it anew: folders that somebody removed come back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* The spool's own folder; makes: it and missing folders above it are made. A descriptor, or a negative errno. */
int spoolfolder_open(const char *folder, bool makes, struct err *err);
/* A folder in it, which is made if it is missing. -ENOTDIR: something else has that name. */
int spoolfolder_open_in(int parent, const char *name, struct err *err);
/* The folder of a sink: of = "to" or "refused". */
int spoolfolder_open_sink(int root, const char *of, const char *sink, struct err *err);
/* Holds the lock as long as the descriptor is open. -EBUSY: another process has it. */
int spoolfolder_lock(int root, struct err *err);

/* A name of spool_name(), and of nothing else: no path can be made of it. *ret_wall_ns: the begin; may be NULL. */
bool spoolfolder_is_window(const char *name, uint64_t *ret_wall_ns);
/* A file that a recorder has not finished. */
bool spoolfolder_is_unfinished(const char *name);
bool spoolfolder_is_sink(const char *name);

/* Calls with each name in a folder but "." and "..". 0, or what stopped it. */
typedef int spoolfolder_fn(void *context, int folder, const char *name);
int spoolfolder_each(int folder, spoolfolder_fn *fn, void *context, struct err *err);
