/*
 * arena.h - many small things that are freed together.
 */
#pragma once

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *blocks;
};

void *arena_alloc(struct arena *a, size_t size); /* zeroed, 8-byte aligned */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_done(struct arena *a);
