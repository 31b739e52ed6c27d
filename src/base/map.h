/*
 * map.h - a hash map from a 64-bit key to a 64-bit value, and a string interner.
 *
 * Open addressing, power-of-two size, at most half full. Any key is allowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct map_slot {
	uint64_t key, value;
	bool used;
};

struct map {
	struct map_slot *slots;
	size_t n, capacity;
};

void map_done(struct map *m);
void map_clear(struct map *m);
/* The value of key, or NULL. The pointer lives until the next map_put. */
uint64_t *map_get(const struct map *m, uint64_t key);
/* The slot of key, made with value fallback if there is none. */
uint64_t *map_put(struct map *m, uint64_t key, uint64_t fallback);
void map_remove(struct map *m, uint64_t key);

uint64_t map_hash(uint64_t x);
uint64_t map_hash_bytes(const void *data, size_t n);
static inline uint64_t map_pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* Strings to dense ids from 0; id 0 is always "". Strings live until strtab_done. */
struct strtab {
	struct arena arena;
	const char **strings;
	size_t n, capacity;
	uint32_t *slots; /* id + 1, 0 = free */
	size_t slot_count;
};

void strtab_init(struct strtab *t);
void strtab_done(struct strtab *t);
uint32_t strtab_add(struct strtab *t, const char *s);
uint32_t strtab_add_n(struct strtab *t, const char *s, size_t n); /* ends at a NUL if one comes first */
const char *strtab_get(const struct strtab *t, uint32_t id);
