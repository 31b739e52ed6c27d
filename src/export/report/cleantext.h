/*
 * cleantext.h - names for people: made harmless, measured, cut to fit.
 *
 * Names come from files of the target and may hold anything. A clean name is
 * plain text (base/text/plain.h).
 */
#pragma once

#include <stddef.h>

#include "base/map.h"

struct buf;
struct json;

/* s with everything else replaced by U+FFFD. */
void cleantext_put(struct buf *b, const char *s);

/* The same as a string of JSON. */
void cleantext_json(struct json *j, const char *key, const char *s);

/* Columns of a clean name in a monospaced font: wide characters are two. */
size_t cleantext_columns(const char *s);

/* The texts that a table has given to functions. Starts as zeros. */
struct cleantext_set {
	struct map given; /* hash of the text to hash of the name */
};
void cleantext_set_done(struct cleantext_set *set);
/* A clean name as shortname.h shortens it; set NULL: it is in no table. Where another function of the table has that text
 * already: with ~2, ~3 at its end. */
void cleantext_function(struct cleantext_set *set, struct buf *b, const char *name, size_t columns);

/* Any clean name as shortname.h shortens it. Nothing below 3 columns. */
void cleantext_fit(struct buf *b, const char *name, size_t columns);

/* The last column of a row: any name, made clean, and cut to what used columns leave of a terminal's line (columns 0: no
 * terminal, whole). Twenty are always left to it. */
void cleantext_last(struct buf *b, const char *name, unsigned columns, unsigned used);

/* The same for a function of a table. */
void cleantext_last_function(struct cleantext_set *set, struct buf *b, const char *name, unsigned columns, unsigned used);

/* A clean text that is no name: only its end is cut. */
void cleantext_cut(struct buf *b, const char *text, size_t columns);
/* The same, with another mark for what is left out. */
void cleantext_cut_at(struct buf *b, const char *text, size_t columns, const char *mark);
