/*
 * copies.h - samples of young processes that came with a copy of their stack, kept until it can be unwound.
 *
 * The first samples of a program come before its files are read. Some milliseconds later they are, and the stack is
 * unwound from the copy with the same tables and rules as in the kernel, whether the process is still there or not.
 * What cannot be unwound within some seconds becomes a sample that is cut, as it would have been without a copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct copies;
struct session;

struct copies *copies_new(struct session *s);
void copies_free(struct copies *c); /* what is kept is dropped */
/* Takes a struct shared_copy from the ring, of which nothing is believed. */
void copies_take(struct copies *c, const void *data, size_t size);
/* Unwinds those that can be now; last: all others become samples that are cut. */
void copies_step(struct copies *c, bool last);
