/*
 * look.h - the data of `top`: a running program or a recording, and queries on it.
 *
 * A source is the caller's (src/cmd): it records, or has read a file. A look queries it once a refresh and
 * keeps the analyses of the result.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/wait/pattern.h"
#include "base/buf.h"
#include "tui/model.h"
#include "tui/page.h"

struct code_text;
struct err;
struct profile;
struct tree;

enum source_change {
	SOURCE_NAMES = 1,   /* frames have got names */
	SOURCE_PROFILE = 2, /* it is another profile: nothing of the old one is left */
};

struct look_file {
	const char *extension;
	struct buf data;
};

struct source {
	void *context;
	bool live;
	const char *title; /* who */
	/* Records for at most so long. 0, or 1 when the target has ended. NULL: not live. */
	int (*step)(void *context, int timeout_ms);
	/*
	 * Returns the profile of the last nanoseconds (0: since the start), valid until the next call; hold:
	 * returns the last profile again, while recording goes on. *ret_changes is a set of source_change.
	 */
	const struct profile *(*refresh)(void *context, uint64_t last_ns, bool hold, unsigned *ret_changes);
	/* Reads the memory of the processes; NULL: not available. */
	void (*memory)(void *context, struct model *m);
	/* A few words on the state of things, "" = nothing. */
	void (*state)(void *context, struct buf *b);
	/* The instructions of the function around an address; why in ret when there are none. */
	void (*code)(void *context, const struct profile *p, uint32_t module, uint64_t address,
		     struct code_text *ret);
	/* Writes the files of a picture where such things go, all with one name but for their endings; the caller
	 * frees *ret_stem, that name. */
	int (*write)(void *context, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		     struct err *err);
};

struct look {
	const struct source *source;
	struct scope scope;
	struct model model;
	struct patterns patterns;
	struct causes causes;
	const struct profile *p;
	uint64_t window_ns;
	bool since_start, paused;
	char *asked;      /* the event that was to be weighed at first */
	unsigned changes; /* of the source, not handled yet */
};

/* Takes the strings of scope over. */
void look_init(struct look *l, const struct source *source, const struct scope *scope, uint64_t window_ns);
void look_done(struct look *l);
/* Asks the source for the first time; fails when the scope asks for what cannot be. */
int look_begin(struct look *l, struct err *err);
/* Asks the source. */
void look_refresh(struct look *l);
/* The scope has changed: the same again. Falls back to the usual event where there is no such. */
void look_again(struct look *l);
/* Writes the flame graph of the current view in each available format; *ret_paths is a list for people. */
int look_picture(struct look *l, char **ret_paths, struct err *err);
/* Fills the table of a page; tree is for PAGE_TREE. */
void look_fill(struct look *l, struct table *t, enum page page, unsigned variant, struct tree *tree);
