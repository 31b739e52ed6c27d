/*
 * wrap.h - lines that are longer than a terminal is wide, broken between words.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Breaks what stands in b from byte `from` on into lines of at most so many columns, where words leave a choice. The rest of
 * a line is indented two columns deeper than its beginning. Escape sequences of colours take no room. columns 0: nothing is
 * changed. */
void wrap_lines(struct buf *b, size_t from, size_t columns);
