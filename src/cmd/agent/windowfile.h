/*
 * windowfile.h - a window of an agent as a capture file: what a recorder writes, and what is read from it to be delivered.
 *
 * The capture has all that a sink wants to know: the keys agent.* say whose it is.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct err;
struct keep_snap;
struct profile;

struct windowfile {
	struct profile *profile;
	char *name;            /* in the spool */
	uint64_t start_wall_ns, duration_ns;
};

struct windowfile_about {
	const char *target, *release; /* release NULL = not known */
	const char *const *labels;    /* NULL-terminated */
	uint64_t sequence;
};

/* windowfile_done() ends it. */
void windowfile_make(struct windowfile *f, const struct keep_snap *snap, const struct windowfile_about *about);
/* Into the folder new/ of a spool, under its name once it is whole. */
int windowfile_write(struct windowfile *f, const char *spool, struct err *err);
void windowfile_done(struct windowfile *f);

/* Whose a profile is, by its keys. Strings are the profile's, and live as long; _done() frees the list only. */
struct windowfile_whose {
	const char *target, *release;
	VEC(const char *) labels; /* ends in a NULL that is not counted */
	uint64_t sequence;
};
/* -EBADMSG: it says no target, it is no window of an agent. */
int windowfile_whose(const struct profile *p, struct windowfile_whose *ret, struct err *err);
void windowfile_whose_done(struct windowfile_whose *w);
