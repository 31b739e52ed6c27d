/*
 * oomtext.h - the way to a limit of memory and the end there, for the terminal and as JSON; nothing without
 * one.
 */
#pragma once

#include <stddef.h>

struct buf;
struct leak;
struct profile;

/* columns: names are cut to that width, 0 = whole. */
void oomtext_put(const struct profile *p, unsigned columns, struct buf *out);
/* Puts a table of the owners of live memory, the first rows of it. */
void leaktext_put(const struct leak *l, size_t rows, unsigned columns, struct buf *out);
