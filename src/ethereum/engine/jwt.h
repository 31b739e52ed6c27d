/*
 * jwt.h - the token that the Engine API asks for: HS256 over a secret that both sides read from a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum { JWT_SECRET_BYTES = 32 };

/* The text of such a file: 64 digits, with or without "0x", and blanks around them. */
int jwt_parse_secret(const char *text, size_t n, uint8_t ret[JWT_SECRET_BYTES]);
/* Reads the secret from the file, with a sentence on errors. */
int jwt_read_secret(const char *path, uint8_t ret[JWT_SECRET_BYTES], struct err *err);
/* Appends a token with that time of issue. Nodes accept tokens that are at most a minute old. */
void jwt_put(struct buf *out, const uint8_t secret[JWT_SECRET_BYTES], uint64_t issued_seconds);
