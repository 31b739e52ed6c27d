/*
 * blobdraw.h - distances to the next sample, drawn from an exponential distribution in integers, within a target.
 */
#pragma once

#include <stdint.h>

enum { BLOB_LOG_BITS = 28 };

/* The state must not be 0. */
static inline uint64_t blob_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

/* log2 of a number from 2^31 to below 2^32, less 31: its bits, by squaring. */
static inline uint64_t blob_log2_fraction(uint64_t m)
{
	uint64_t bits = 0;

	for (int i = 0; i < BLOB_LOG_BITS; i++) {
		m = m * m >> 31;
		bits <<= 1;
		if (m >> 32) {
			m >>= 1;
			bits |= 1;
		}
	}
	return bits;
}

/* The distance to the next sample: exponential, so that each unit is as likely as any other, whatever came before. */
static inline int64_t blob_draw(uint64_t *state, uint64_t mean)
{
	uint64_t u = blob_random(state) | 1, minus_log2;
	int zeros = __builtin_clzll(u);
	unsigned __int128 distance;

	minus_log2 = ((uint64_t)(zeros + 1) << BLOB_LOG_BITS) - blob_log2_fraction(u << zeros >> 32);
	distance = (unsigned __int128)minus_log2 * mean;
	return (distance * 0xb17217f7 >> (32 + BLOB_LOG_BITS)) + 1; /* times ln 2 */
}
