/*
 * redact.h - leaving out of a profile what says whose it is, for captures and pages that are passed on.
 *
 * Left out: the command lines, the host, what the user named as target, names of
 * threads, containers, units and cgroups, paths and the files that notes are
 * about. Where a report needs something to tell one from the other there is a
 * number instead ("thread 3"), the same for the same name. Kept: base names of
 * programs, libraries and source files, names of functions, build-ids, the
 * kernel's release, times and all figures. docs/capture-format.md has the list.
 *
 * A profile with redacted set is written so by capture.h, from the first flush
 * on; in memory it is whole, as its symbols are yet to be found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"

struct profile;

/* The texts that have numbers. Valid zeroed, after redact_init. */
struct redact {
	struct strtab threads, notes, paths; /* an id is the number */
	struct strtab words;                 /* what was made: lives until redact_done */
};

void redact_init(struct redact *r);
void redact_done(struct redact *r);

/* Returns the text to show in place of name; lives as long as name and r do. A text that was made here
 * stays unchanged. */
typedef const char *redact_fn(struct redact *r, const char *name);
redact_fn redact_thread; /* "thread 3" */
redact_fn redact_note;   /* "file 3"; "[in brackets]" stays */
redact_fn redact_base;   /* the last part of a path */
redact_fn redact_text;   /* up to the first path, then "[path 3]" */
redact_fn redact_none;   /* "" */
redact_fn redact_host;   /* "[redacted]" */
redact_fn redact_target; /* "target" */
/* For the name of a mark of that kind: the kernel's log is left out whole. */
redact_fn *redact_mark(const char *kind);
/* "owner 3", "process 3": by where they are in their table. */
const char *redact_numbered(struct redact *r, const char *what, size_t index);

/* Is it the note of a leaf? For each function of p from frame `first` on; caller frees. */
bool *redact_find_notes(const struct profile *p, size_t first);

/* The same for a profile in memory, of which nothing is written or found any more but reports: sets redacted. */
void redact_profile(struct profile *p);
