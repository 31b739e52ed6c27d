/*
 * sha256.h - SHA-256 (FIPS 180-4), and HMAC by it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(const void *data, size_t n, uint8_t ret[SHA256_BYTES]);
/* Keys of at most 64 bytes. */
void hmac_sha256(const void *key, size_t key_n, const void *data, size_t n, uint8_t ret[SHA256_BYTES]);
