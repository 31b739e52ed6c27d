/*
 * label.h - names for people: made harmless, measured, cut to fit.
 *
 * Names come from files of the target and may hold anything. A clean name is
 * plain text (base/text/plain.h).
 */
#pragma once

#include <stddef.h>

struct buf;
struct json;

/* s with everything else replaced by U+FFFD. */
void label_clean(struct buf *b, const char *s);

/* The same as a string of JSON. */
void label_json(struct json *j, const char *key, const char *s);

/* Columns of a clean name in a monospaced font: wide characters are two. */
size_t label_columns(const char *s);

/*
 * A clean name in at most columns. Arguments go first (`Vec<..>`, `f(..)`), then
 * the left of the path (`..::Tree::state_root`), so that the last segment stays
 * whole if it fits; then its end (`state_r..`). Nothing below 3 columns.
 */
void label_fit(struct buf *b, const char *name, size_t columns);

/* The last column of a row: any name, made clean, and cut to what used columns leave of a terminal's line (columns 0: no
 * terminal, whole). Twenty are always left to it. */
void label_last(struct buf *b, const char *name, unsigned columns, unsigned used);

/* A clean text that is no name: only its end is cut. */
void label_cut(struct buf *b, const char *text, size_t columns);
