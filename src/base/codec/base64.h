/*
 * base64.h - bytes as text (RFC 4648).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* The length of the text of n bytes, with padding. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

/* Writes the text without a NUL and returns its length, which is at most BASE64_SIZE(n). url: the alphabet for URLs, and
 * no padding. */
size_t base64_encode(char *out, const void *data, size_t n, bool url);
void base64_put(struct buf *out, const void *data, size_t n, bool url);
