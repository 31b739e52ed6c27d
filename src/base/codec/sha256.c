#include "base/codec/sha256.h"

#include <string.h>

#include "base/mem.h"

enum { BLOCK = 64 };

/* Parts of the roots of the first primes, as FIPS 180-4 lists them. */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t start_state[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotate(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

static void fold(uint32_t h[8], const uint8_t block[BLOCK])
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, h, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t a = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice + round_constants[i] + w[i];
		uint32_t b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += a;
		s[0] = a + b;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

/* A message in two parts; the first is whole blocks. */
static void digest(const uint8_t *first, size_t first_n, const uint8_t *p, size_t n, uint8_t ret[SHA256_BYTES])
{
	uint64_t bits = (uint64_t)(first_n + n) * 8;
	uint8_t last[2 * BLOCK] = { 0 };
	size_t end;
	uint32_t h[8];

	memcpy(h, start_state, sizeof(h));
	for (size_t i = 0; i < first_n; i += BLOCK)
		fold(h, first + i);
	for (; n >= BLOCK; p += BLOCK, n -= BLOCK)
		fold(h, p);
	if (n)
		memcpy(last, p, n);
	last[n] = 0x80;
	end = n + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
	for (int i = 0; i < 8; i++)
		last[end - 1 - i] = bits >> 8 * i;
	for (size_t i = 0; i < end; i += BLOCK)
		fold(h, last + i);
	for (int i = 0; i < SHA256_BYTES; i++)
		ret[i] = h[i / 4] >> (24 - 8 * (i % 4));
}

void sha256(const void *data, size_t n, uint8_t ret[SHA256_BYTES])
{
	digest(NULL, 0, data, n, ret);
}

void hmac_sha256(const void *key, size_t key_n, const void *data, size_t n, uint8_t ret[SHA256_BYTES])
{
	uint8_t inner[BLOCK] = { 0 }, outer[BLOCK], sum[SHA256_BYTES];

	memcpy(inner, key, MIN(key_n, (size_t)BLOCK));
	for (int i = 0; i < BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	digest(inner, sizeof(inner), data, n, sum);
	digest(outer, sizeof(outer), sum, sizeof(sum), ret);
}
