/*
 * perfdatasample.h - the fields of a sample, in the order of the kernel's bits.
 *
 * Pointers lead into the record. Nothing is believed: a count or size that does not fit the record fails.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct perfdataattr;
struct perfdataheader;

struct perfdatasample_group {
	uint64_t count;        /* of values */
	uint32_t stride;       /* words from one value to the next */
	const uint8_t *values; /* the value, then its id */
};

struct perfdatasample {
	uint64_t ip, time, id, period, addr;
	uint32_t pid, tid, cpu;
	uint16_t misc;
	struct perfdatasample_group group; /* values of a group that was read as a whole; count 0 = none */
	uint64_t chain_count;
	const uint8_t *chain;              /* words */
	uint32_t raw_bytes;
	const uint8_t *raw;
	uint64_t branch_count;
	const uint8_t *branches;           /* from, to, flags: 24 bytes each */
	uint64_t regs_abi;                 /* PERF_SAMPLE_REGS_ABI_*; 0 = there are none */
	const uint8_t *regs;               /* words, in the order of the mask's bits */
	uint64_t stack_bytes;              /* that were copied */
	const uint8_t *stack;
};

/* False: the record is not what the event's attr says. */
bool perfdatasample_parse(const struct perfdataattr *a, const struct perfdataheader *h, struct perfdatasample *ret);

static inline uint64_t perfdatasample_word(const uint8_t *words, uint64_t i)
{
	uint64_t word;

	__builtin_memcpy(&word, words + 8 * i, 8);
	return word;
}
