/*
 * keccak.h - Keccak-256 as Ethereum uses it: with the padding from before it became SHA-3.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { KECCAK_BYTES = 32 };

void keccak256(const void *data, size_t n, uint8_t ret[KECCAK_BYTES]);
