/*
 * pprofwire.h - messages of a file in memory, and sentences that say where one of them is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct protobuf_field;

struct pprofwire {
	const uint8_t *data;
	size_t n;
	struct err *err;
};

/* "byte 123: ..."; at is in the data. Returns -EINVAL. */
int pprofwire_bad(const struct pprofwire *w, const void *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int pprofwire_damaged(const struct pprofwire *w, const struct protobuf_field *f);

/* Calls fn for each message in a field of the message f; NULL: of the file itself. */
typedef int pprofwire_fn(void *context, const struct protobuf_field *f);
int pprofwire_each(const struct pprofwire *w, const struct protobuf_field *f, uint32_t number, pprofwire_fn *fn, void *context);
/* Numbers of a message, by field: to has n of them; of other kinds 0. */
int pprofwire_numbers(const struct pprofwire *w, const struct protobuf_field *f, uint64_t *to, size_t n);
