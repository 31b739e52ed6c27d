/*
 * answer.h - the rows of a store's answer to a question, in the format JSONCompact: it ends in the number of its rows, so that half
 * of an answer is not taken for a whole one. Strings that are not UTF-8 come with U+FFFD in place of what is not.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

struct answer {
	size_t rows;
	/* The rest is private. */
	void *root, *data;
};

/* -EPROTO: it is none, or not whole; the sentence does not name the server. answer_done() in any case. */
int answer_parse(struct answer *a, const char *text, size_t n, struct err *err);
void answer_done(struct answer *a);

/* Fields by row and column from 0. What is not there, or of another type, is 0 or "". Strings live as long as the answer. */
uint64_t answer_u64(const struct answer *a, size_t row, size_t column);
int64_t answer_i64(const struct answer *a, size_t row, size_t column);
const char *answer_text(const struct answer *a, size_t row, size_t column);
/* Fields that are arrays. */
size_t answer_count(const struct answer *a, size_t row, size_t column);
uint64_t answer_item_u64(const struct answer *a, size_t row, size_t column, size_t i);
const char *answer_item_text(const struct answer *a, size_t row, size_t column, size_t i);
