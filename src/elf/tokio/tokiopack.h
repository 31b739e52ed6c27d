/*
 * tokiopack.h - a struct tokio_program as one run of bytes, from the child to the parent:
 *
 *	header | vtables[count] | spawns[spawn_count] | strings
 *
 * Native byte order: it never leaves the machine. The parent does not trust it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct tokio_program;

void tokio_pack(const struct tokio_program *p, struct buf *out);
/* Copies a program out of n bytes, its texts made plain. False: they are none. On success the caller calls tokio_done(ret). */
bool tokio_unpack(const char *data, size_t n, struct tokio_program *ret);
