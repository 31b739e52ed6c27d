/*
 * hex.h - bytes as Ethereum's JSON has them: "0x" and two digits a byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Appends "0x…". */
void hex_put(struct buf *out, const void *data, size_t n);
/* Appends the bytes of "0x…"; false, and nothing is appended, where s is not that. An odd number of digits is
 * fine where odd is true: quantities have no leading zero. */
bool hex_take(const char *s, bool odd, struct buf *out);
/* A quantity of at most 64 bits. */
bool hex_number(const char *s, uint64_t *ret);
/* "0x" and so many bytes? */
bool hex_is(const char *s, size_t bytes);
