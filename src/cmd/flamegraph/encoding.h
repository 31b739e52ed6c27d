/*
 * encoding.h - text in other encodings than UTF-8, in and out.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct err;

bool encoding_is_utf8(const char *encoding); /* NULL is UTF-8 */
bool encoding_known(const char *encoding);
/* *fd becomes a descriptor that gives the same text in UTF-8; bytes that are invalid in the encoding
 * become "?". */
int encoding_input(int *fd, const char *encoding, struct err *err);
/* From UTF-8; characters that the encoding lacks become "?". */
int encoding_output(struct buf *b, const char *encoding, struct err *err);
