/*
 * site.h - the content of the server: the captures, their pages and their data, made on request.
 *
 * The page itself comes at once, and asks for its data. Of a long capture there is a first picture, from the sums that the
 * recorder wrote, while the capture is being read; the page then opens itself again. A capture is cached once it was read, as
 * are the last captures and answers within a bound; the oldest go first. A page shows the file as it was on disk when it was
 * opened, and its requests carry that version: they are answered from it while it is in memory, and refused when the file was
 * replaced in the meantime and only the new one could be read. Opening the page again shows the new one.
 *
 * Where there is a store, there is a page of its nodes, too; a node and a time that was chosen on it is one more capture.
 *
 * Two threads: site_list(), site_page() and site_progress() take no time, and may be called while another thread is in
 * site_first() or site_data(), which read captures. Of these there is one at a time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "export/export.h"

struct diff;
struct err;

/* A capture in memory, as the command reads it. */
struct site_capture {
	struct export_job job;
	void (*release)(struct site_capture *c);
};
/* Two of them, compared. */
struct site_diff {
	const struct diff *diff;
	void (*release)(struct site_diff *d);
};

struct site_reader {
	int (*read)(void *context, const char *path, struct site_capture **ret, struct err *err);
	/* The same, with its heaviest stacks only and without times, which is faster; NULL: there is no such way. */
	int (*first)(void *context, const char *path, struct site_capture **ret, struct err *err);
	int (*compare)(void *context, const struct site_capture *before, const struct site_capture *after,
		       struct site_diff **ret, struct err *err);
	/* Returns whether the file can be read, and its kind; *ret_kind NULL: a capture. NULL: all are captures. */
	int (*check)(const char *path, const char **ret_kind, struct err *err);
	void *context;
};
/* What check() says of a path that is no file: nothing of it is on disk. */
#define SITE_STORE "store"

/* What the page of nodes asks the store. Texts are as they came; NULL: not said. */
enum site_topic { SITE_MAP, SITE_NODES, SITE_CHOICES };
struct site_question {
	enum site_topic topic;
	char *page; /* a number of the page's choice: its questions replace each other, topic by topic */
	char *figure, *name, *target, *from, *to, *slot;
};
/* A target and a time, as a page of nodes names them. */
struct site_place {
	const char *target, *from, *to;
};

/* The store of the page of nodes. ask() and place() are called by one thread each. */
struct site_fleet {
	/* The answer as JSON. -ECANCELED after cancel(), which may come from any thread. -EINVAL: the question makes no sense. */
	int (*ask)(void *context, const struct site_question *q, struct buf *ret, struct err *err);
	void (*cancel)(void *context);
	/* A path for read(); the site frees it. Asks nobody. -EINVAL: it is none. */
	int (*place)(void *context, const struct site_place *place, char **ret, struct err *err);
	void *context;
};

enum { SITE_PLACES = 10000 /* opened from a page of nodes */, SITE_TEXT_BYTES = 1024 /* of each text of a question */ };

struct site_options {
	const struct site_fleet *fleet; /* NULL = there is no store; lives longer than the site */
	const char *const *paths; /* lives longer than the site */
	size_t n;
	struct site_reader reader;
	uint64_t max_bytes;       /* limit of the data sent at once, as page_options */
};

/* What a page shows: a capture, or the difference between two. */
struct site_show {
	size_t capture;
	size_t before; /* SITE_NONE: nothing is compared */
};
#define SITE_NONE SIZE_MAX

/* Bytes that several answers may share. */
struct blob {
	atomic_uint users;
	struct buf data;
};
void blob_drop(struct blob *b); /* frees it after its last user; NULL is fine */

struct answer {
	unsigned status;  /* of HTTP */
	const char *type; /* Content-Type */
	struct blob *body; /* the caller drops it */
};

struct site;

struct site *site_new(const struct site_options *o);
void site_free(struct site *s);
/* The list of captures. */
struct answer site_list(struct site *s);
/* A page, which gets its data from "data?v=VERSION" beside it, and maybe a first picture from "first?v=VERSION". */
struct answer site_page(struct site *s, struct site_show show);
/* A sentence about how far the data of this page are. */
struct answer site_progress(struct site *s, struct site_show show);
/* The data of a first picture. */
struct answer site_first(struct site *s, struct site_show show, uint64_t version);
/* The data; under as in page_options, 0 = all of it. */
struct answer site_data(struct site *s, struct site_show show, uint64_t version, uint32_t under);
/* The page of a store's nodes, and the answers to its questions. Of site_ask() there is one at a time, beside all others. */
struct answer site_nodes(struct site *s);
struct answer site_ask(struct site *s, const struct site_question *q);
void site_cancel(struct site *s); /* the question that is being asked */
/* Of the same page, about the same: nobody waits for the old one. */
bool site_question_replaces(const struct site_question *q, const struct site_question *old);
void site_question_free(struct site_question *q); /* NULL is fine */
/* A place becomes a capture of the site, and stays one; the same place is the same one. 0, or -errno with a sentence. */
int site_open(struct site *s, const struct site_place *place, size_t *ret, struct err *err);
/* Are there captures for a list? */
bool site_has_list(const struct site *s);
/* Returns a sentence as plain text. */
struct answer site_sentence(unsigned status, const char *sentence);

/* For fleet.c. data is taken over. */
const struct site_fleet *site_store(const struct site *s);
struct answer site_bytes(unsigned status, const char *type, struct buf *data);
/* For list.c: the rows of the list. */
void list_put(const struct site_options *o, struct buf *b);
