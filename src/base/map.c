#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The finalizer of splitmix64: every input bit reaches every output bit. */
uint64_t map_hash(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

uint64_t map_hash_bytes(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = n, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = map_hash(h ^ word);
	}
	word = 0;
	memcpy(&word, p, n);
	return map_hash(h ^ word ^ (uint64_t)n << 56);
}

static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t mask = m->capacity - 1, i = map_hash(key) & mask;

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & mask;
	return &m->slots[i];
}

uint64_t *map_get(const struct map *m, uint64_t key)
{
	struct map_slot *s;

	if (!m->n)
		return NULL;
	s = find(m, key);
	return s->used ? &s->value : NULL;
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->capacity = old.capacity ? old.capacity * 2 : 64;
	m->slots = mem_alloc(m->capacity * sizeof(*m->slots));
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slots[i].used)
			*find(m, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

uint64_t *map_put(struct map *m, uint64_t key, uint64_t fallback)
{
	struct map_slot *s;

	if (m->n * 2 >= m->capacity)
		grow(m);
	s = find(m, key);
	if (!s->used) {
		*s = (struct map_slot){ .key = key, .value = fallback, .used = true };
		m->n++;
	}
	return &s->value;
}

/* Removes by moving later slots of the same run back, so that no tombstones are needed. */
void map_remove(struct map *m, uint64_t key)
{
	size_t mask, hole;

	if (!m->n)
		return;
	mask = m->capacity - 1;
	hole = find(m, key) - m->slots;
	if (!m->slots[hole].used)
		return;
	for (size_t i = (hole + 1) & mask; m->slots[i].used; i = (i + 1) & mask) {
		size_t home = map_hash(m->slots[i].key) & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].used = false;
	m->n--;
}

void map_clear(struct map *m)
{
	if (m->slots)
		memset(m->slots, 0, m->capacity * sizeof(*m->slots));
	m->n = 0;
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}

void strtab_init(struct strtab *t)
{
	*t = (struct strtab){ 0 };
	strtab_add_n(t, "", 0);
}

void strtab_done(struct strtab *t)
{
	arena_done(&t->arena);
	free(t->strings);
	free(t->slots);
	*t = (struct strtab){ 0 };
}

static uint32_t *strtab_slot(struct strtab *t, const char *s, size_t n)
{
	size_t mask = t->slot_count - 1, i = map_hash_bytes(s, n) & mask;

	while (t->slots[i]) {
		const char *have = t->strings[t->slots[i] - 1];

		if (!strncmp(have, s, n) && !have[n])
			break;
		i = (i + 1) & mask;
	}
	return &t->slots[i];
}

uint32_t strtab_add_n(struct strtab *t, const char *s, size_t n)
{
	uint32_t *slot;

	n = strnlen(s, n);
	if (t->n * 2 >= t->slot_count) {
		t->slot_count = t->slot_count ? t->slot_count * 2 : 64;
		free(t->slots);
		t->slots = mem_alloc(t->slot_count * sizeof(*t->slots));
		for (size_t i = 0; i < t->n; i++)
			*strtab_slot(t, t->strings[i], strlen(t->strings[i])) = i + 1;
	}
	slot = strtab_slot(t, s, n);
	if (!*slot) {
		if (t->n == t->capacity) {
			t->capacity = t->capacity ? t->capacity * 2 : 64;
			t->strings = mem_resize(t->strings, t->capacity, sizeof(*t->strings));
		}
		t->strings[t->n++] = arena_strndup(&t->arena, s, n);
		*slot = t->n;
	}
	return *slot - 1;
}

uint32_t strtab_add(struct strtab *t, const char *s)
{
	return s ? strtab_add_n(t, s, strlen(s)) : 0;
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->n ? t->strings[id] : "";
}
