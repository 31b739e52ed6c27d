/*
 * namehash.h - a hash of names for readers of text, sixteen bytes at a time. Not kept on disk, not for hostile tables
 * without a comparison of what is found.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t namehash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* n bytes, at most 8. */
static inline uint64_t namehash_load(const char *s, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, s, n);
	return v;
}

static inline uint64_t namehash(const char *s, size_t n)
{
	const uint64_t a = 0x9e3779b97f4a7c15, b = 0xd1b54a32d192ed03;
	uint64_t h = n ^ a;

	for (; n > 16; n -= 16, s += 16)
		h = namehash_mix(namehash_load(s, 8) ^ h, namehash_load(s + 8, 8) ^ b);
	if (n >= 8)
		return namehash_mix(namehash_load(s, 8) ^ h, namehash_load(s + n - 8, 8) ^ b);
	if (n >= 4)
		return namehash_mix(namehash_load(s, 4) << 32 ^ namehash_load(s + n - 4, 4) ^ h, b);
	if (n)
		h ^= (uint64_t)(unsigned char)s[0] << 16 | (uint64_t)(unsigned char)s[n / 2] << 8 | (unsigned char)s[n - 1];
	return namehash_mix(h, b);
}
