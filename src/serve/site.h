/*
 * site.h - the content of the server: the captures, their pages and their data, made on request.
 *
 * A capture is read when its page is opened and cached, as are the last captures and answers within a
 * bound; the oldest go first. A page shows the file as it was on disk when it was opened, and its later
 * requests carry that version: they are answered from it while it is in memory, and refused when the
 * file was replaced in the meantime and only the new one could be read. Opening the page again shows the
 * new one.
 *
 * Not thread-safe: the server calls it from one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "export/export.h"

struct err;

/* A capture in memory, as the command reads it. */
struct site_capture {
	struct export_job job;
	void (*release)(struct site_capture *c);
};
typedef int site_read_fn(void *context, const char *path, struct site_capture **ret, struct err *err);

/* Returns whether the file can be read, and its kind; *ret_kind NULL: a capture. */
typedef int site_check_fn(const char *path, const char **ret_kind, struct err *err);

struct site_options {
	const char *const *paths; /* lives longer than the site */
	size_t n;
	site_read_fn *read;
	site_check_fn *check;     /* NULL: all are captures */
	void *context;
	uint64_t max_bytes;       /* limit of the data sent at once, as page_options */
};

/* Bytes that several answers may share. */
struct blob {
	unsigned users;
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
/* The page of capture i, which gets its data from "data?v=VERSION" beside it. */
struct answer site_page(struct site *s, size_t i);
/* Returns the data of a capture; under as in page_options, 0 = all of it. */
struct answer site_data(struct site *s, size_t i, uint64_t version, uint32_t under);
/* Returns a sentence as plain text. */
struct answer site_sentence(unsigned status, const char *sentence);
