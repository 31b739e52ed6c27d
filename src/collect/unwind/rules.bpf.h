/*
 * rules.bpf.h - from an address of a module to the rule of its row. A part of unwind.bpf.c.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHARED_MAX_MODULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct shared_module);
} modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHARED_MAX_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, uint64_t);
} rules SEC(".maps");

struct chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, SHARED_CHUNK_WORDS * 4);
};

/* Rows and page indexes of all modules; chunks are added while programs run. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SHARED_MAX_CHUNKS);
	__uint(key_size, 4);
	__array(values, struct chunk);
} chunks SEC(".maps");

/*
 * Rules by module and line of 64 bytes of code. A row holds for a range of addresses, so that an entry answers for all
 * addresses of that line within the range, not only for the one that was looked up. Module ids are never used again: an
 * entry can grow stale only by being replaced.
 *
 * check is module:16 | line:26 | first:6 | last:6, the range within the line, mixed with the rule. CPUs write entries at the
 * same time: halves of two do not match.
 */
CACHE_OF_PARTS(rule_part, SHARED_RULE_PART, sizeof(struct shared_cached_rule)) rule_cache SEC(".maps");

enum { LINE_BITS = 6, LINE = 1 << LINE_BITS };
enum { RULE_BUILDING = 15 }; /* no rule has this kind */
#define RULE_MIX 0x9e3779b97f4a7c15ULL

static __always_inline uint32_t *chunk_of(uint64_t word)
{
	uint32_t which = word / SHARED_CHUNK_WORDS, zero = 0;
	void *chunk = bpf_map_lookup_elem(&chunks, &which);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

enum { WORD_MASK = SHARED_CHUNK_WORDS - 1 };

/* What find_row() finds: the number of the rule, and from where to where in its page it holds. */
struct row {
	uint64_t first, last;
	uint32_t rule;
};

/* The row of an address of a module with a table; rule 0 (RULE_NONE) where it has none. */
static __always_inline void find_row(const struct shared_module *m, uint64_t address, struct row *ret)
{
	uint64_t page = (address >> 12) - m->first_page;
	uint64_t word, first, count, at = 0, offset = address & 0xfff;
	uint32_t *chunk;

	ret->first = 0;
	ret->last = 0xfff;
	ret->rule = 0;
	if (page >= m->page_count)
		return;
	word = m->index + 2 * page;
	chunk = chunk_of(word);
	if (!chunk)
		return;
	first = chunk[word & (WORD_MASK - 1)];
	count = chunk[(word & (WORD_MASK - 1)) + 1];
	chunk = chunk_of(first);
	if (!chunk || !count)
		return;
#define KEY(i) (chunk[masked(first + (i), WORD_MASK)] & 0xffff)
	SEARCH_4096(at, count, KEY, offset);
	ret->first = KEY(at);
	if (at + 1 < count)
		ret->last = KEY(at + 1) - 1;
#undef KEY
	ret->rule = chunk[masked(first + at, WORD_MASK)] >> 16;
}

/* Notes that a rule holds for the part of a row that lies in the line of an address. */
static __always_inline void cache_rule(struct shared_cached_rule *c, uint64_t line, uint64_t address, const struct row *row,
				       uint64_t rule)
{
	uint64_t begin = address & 0xfff & ~(uint64_t)(LINE - 1), first = 0, last = LINE - 1;

	if (row->first > begin)
		first = row->first - begin;
	if (row->last < begin + last)
		last = row->last - begin;
	*(volatile uint64_t *)&c->rule = rule;
	*(volatile uint64_t *)&c->check = (line << 2 * LINE_BITS | (first & (LINE - 1)) << LINE_BITS | (last & (LINE - 1))) ^
					  rule * RULE_MIX;
}

/* The rule for an address, through the cache. */
static __always_inline uint64_t rule_of(uint32_t module, uint64_t address)
{
	uint64_t line = (uint64_t)module << (32 - LINE_BITS) | address >> LINE_BITS, offset = address & (LINE - 1), *rule;
	struct shared_cached_rule *cached = NULL;
	struct shared_module *m;
	struct row row;

	if (!(address >> 32))
		cached = cache_entry(&rule_cache, SHARED_RULE_PART, line * RULE_MIX);
	if (cached) {
		uint64_t r = *(volatile uint64_t *)&cached->rule;
		uint64_t c = *(volatile uint64_t *)&cached->check ^ r * RULE_MIX;

		if (c >> 2 * LINE_BITS == line && offset >= (c >> LINE_BITS & (LINE - 1)) && offset <= (c & (LINE - 1)))
			return r;
	}
	m = bpf_map_lookup_elem(&modules, &module);
	if (!m || m->state == MODULE_NO_TABLE)
		return RULE_FRAME_POINTER;
	if (m->state == MODULE_BUILDING)
		return RULE_BUILDING;
	find_row(m, address, &row);
	rule = bpf_map_lookup_elem(&rules, &row.rule);
	if (!rule)
		return RULE_NONE;
	if (cached)
		cache_rule(cached, line, address, &row, *rule);
	return *rule;
}
