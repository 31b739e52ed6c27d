/*
 * recode.h - text in other encodings than UTF-8, in and out.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct err;

bool recode_is_utf8(const char *encoding); /* NULL is UTF-8 */
bool recode_known(const char *encoding);
/* *fd becomes a descriptor that gives the same text in UTF-8; bytes that are invalid in the encoding
 * become "?". */
int recode_input(int *fd, const char *encoding, struct err *err);
/* From UTF-8; characters that the encoding lacks become "?". */
int recode_output(struct buf *b, const char *encoding, struct err *err);
