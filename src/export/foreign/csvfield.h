/*
 * csvfield.h - fields of comma-separated values, as RFC 4180 has them: a field with a comma, a quote or a line break is in quotes,
 * a quote in it is doubled, and a line ends in CR LF.
 *
 * Names come from the target. Bytes that are not UTF-8 and control characters become U+FFFD: a line is one row, whatever reads it.
 *
 *	struct csvline c = csvline_begin(out, true);
 *	csvline_text(&c, name);
 *	csvline_uint(&c, value);
 *	csvline_end(&c);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

struct csvline {
	struct buf *out;
	bool people; /* a spreadsheet may open it: text that begins as a formula (= + - @) has an apostrophe before it */
	bool filled;
};

struct csvline csvline_begin(struct buf *out, bool people);
void csvline_end(struct csvline *c);
/* "" is an empty field: it is not known. */
void csvline_text(struct csvline *c, const char *s);
void csvline_uint(struct csvline *c, uint64_t value);
void csvline_percent(struct csvline *c, double percent); /* two decimals */
void csvline_none(struct csvline *c);
/* The first line: names of columns, separated by commas already. */
void csvline_head(struct buf *out, const char *columns);
