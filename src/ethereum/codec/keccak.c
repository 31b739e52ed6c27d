#include "ethereum/codec/keccak.h"

#include <string.h>

enum { LANES = 25, ROUNDS = 24, RATE = 136 }; /* 1600 bits of state less twice 256 */

static uint64_t rotate(uint64_t x, unsigned by)
{
	return by ? x << by | x >> (64 - by) : x;
}

/*
 * The constants are computed, as the sponge's authors define them, rather than listed: round constants
 * from a shift register of 8 bits, a lane's rotation from the triangular numbers along the path of the
 * lanes.
 */
static uint64_t round_constant(uint8_t *lfsr)
{
	uint64_t c = 0;

	for (unsigned j = 0; j < 7; j++) {
		if (*lfsr & 1)
			c |= 1ULL << ((1U << j) - 1);
		*lfsr = *lfsr << 1 ^ (*lfsr & 0x80 ? 0x71 : 0);
	}
	return c;
}

static void mix_columns(uint64_t a[LANES])
{
	uint64_t c[5], d;

	for (int x = 0; x < 5; x++)
		c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
	for (int x = 0; x < 5; x++) {
		d = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1);
		for (int y = 0; y < LANES; y += 5)
			a[x + y] ^= d;
	}
}

static void move_lanes(uint64_t a[LANES])
{
	uint64_t carried = a[1], kept;
	int x = 1, y = 0, next;

	for (unsigned t = 0; t < 24; t++) {
		next = (2 * x + 3 * y) % 5;
		x = y;
		y = next;
		kept = a[x + 5 * y];
		a[x + 5 * y] = rotate(carried, (t + 1) * (t + 2) / 2 % 64);
		carried = kept;
	}
}

static void permute(uint64_t a[LANES])
{
	uint8_t lfsr = 1;

	for (int round = 0; round < ROUNDS; round++) {
		mix_columns(a);
		move_lanes(a);
		for (int y = 0; y < LANES; y += 5) {
			uint64_t row[5];

			memcpy(row, a + y, sizeof(row));
			for (int x = 0; x < 5; x++)
				a[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
		}
		a[0] ^= round_constant(&lfsr);
	}
}

static void absorb(uint64_t a[LANES], const uint8_t block[RATE])
{
	for (int i = 0; i < RATE; i++)
		a[i / 8] ^= (uint64_t)block[i] << 8 * (i % 8);
	permute(a);
}

void keccak256(const void *data, size_t n, uint8_t ret[KECCAK_BYTES])
{
	uint64_t a[LANES] = { 0 };
	uint8_t last[RATE] = { 0 };
	const uint8_t *p = data;

	for (; n >= RATE; p += RATE, n -= RATE)
		absorb(a, p);
	if (n)
		memcpy(last, p, n);
	last[n] = 1;
	last[RATE - 1] |= 0x80;
	absorb(a, last);
	for (int i = 0; i < KECCAK_BYTES; i++)
		ret[i] = a[i / 8] >> 8 * (i % 8);
}
