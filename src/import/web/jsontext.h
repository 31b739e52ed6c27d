/*
 * jsontext.h - walks over JSON text in place: no tree is made of it, so that memory is that of the text and no more.
 *
 * A cursor stands before a value. Whoever wants it reads it, all others skip it; a value is read again by a cursor that
 * was copied before it. Once something is wrong, the cursor has failed: lists have no more members, values are empty, and
 * jsontext_error() says what was wrong and at which byte. Nothing here calls itself: text that is nested deeply costs no stack.
 *
 *	struct jsontext c = jsontext_of(data, n);
 *
 *	jsontext_object(&c);
 *	while (jsontext_member(&c))
 *		if (jsontext_is(&c, "line"))
 *			line = jsontext_uint(&c);
 *		else
 *			jsontext_skip(&c);
 *	r = jsontext_error(&c, err);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

struct jsontext {
	const char *data;
	size_t at, end;
	bool fresh;         /* after an opening bracket: no comma comes before the next member */
	const char *key;    /* of the last member, as it is written; not terminated */
	size_t key_n;
	const char *failed; /* what was wrong, NULL = nothing */
	size_t failed_at;
};

struct jsontext jsontext_of(const char *data, size_t n);
/* A failure of our own, at the place of the cursor: "a stack is its own caller". text is a literal. The first one stays. */
void jsontext_fail(struct jsontext *c, const char *text);
/* 0, or -EINVAL with a sentence: "byte 123: ...". */
int jsontext_error(const struct jsontext *c, struct err *err);

/* What the next value is: '{', '[', '"', '0' (a number), 't', 'f' or 'n'; 0 where the text ends. */
char jsontext_kind(struct jsontext *c);
/* These go into an object or a list, and fail if there is none. */
void jsontext_object(struct jsontext *c);
void jsontext_list(struct jsontext *c);
/* Is there one more? False: the cursor is behind the closing bracket. Of an object the key is read, too. */
bool jsontext_member(struct jsontext *c);
bool jsontext_item(struct jsontext *c);
bool jsontext_is(const struct jsontext *c, const char *key);

/* Goes over the next value, whatever it is. */
void jsontext_skip(struct jsontext *c);
/* Goes over the next value, too, and keeps its place: it is read later, by the cursor in it. */
struct jsontext_place {
	struct jsontext at;
	bool there;
};
struct jsontext_place jsontext_keep(struct jsontext *c);
/* One more item of a list that is read beside another one; false, and no failure, where there is no such list. */
bool jsontext_beside(struct jsontext_place *list);

/* A number, times ten to the power of decimals and rounded: 1.5 with 3 decimals is 1500. */
struct jsontext_number {
	bool there;    /* else it is null, or no number */
	bool negative; /* value is its absolute value */
	bool huge;     /* more than fits into 64 bits: value is UINT64_MAX */
	uint64_t value;
};
struct jsontext_number jsontext_number(struct jsontext *c, unsigned decimals);
/* An index: below limit, or -1 for null, -1 and no number at all; all others fail, and give -1. limit: INT32_MAX at most. */
int32_t jsontext_index(struct jsontext *c, size_t limit);
/* The same without a limit of its own, for tables that are read later: a number that is no index is -1. */
int32_t jsontext_int(struct jsontext *c);
/* A line, a process: what cannot be one is 0. */
uint32_t jsontext_uint(struct jsontext *c);
/* A string, unescaped, replaces what is in out; a number as it is written; "" for all others. out->data is never NULL. A NUL
 * becomes U+FFFD. */
void jsontext_string(struct jsontext *c, struct buf *out);
