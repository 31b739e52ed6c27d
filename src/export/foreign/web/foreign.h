/*
 * foreign.h - words that several of the formats of this folder write.
 */
#pragma once

#include <stdint.h>

#include "analyze/wait/cause.h"

struct buf;
struct json;
struct profile;
struct stackcall;

/* "kernel", "inlined", "note", "truncated", "address" (no symbol is known); "" = a function of a program. */
const char *foreign_kind(const struct stackcall *c);
/* "[lock]": a frame below the leaf of a wait. Static. */
const char *foreign_cause(enum cause cause);
/* A member, or an item (key NULL), that is value / parts with all of its decimals: nanoseconds as milliseconds, hundredths. parts is
 * a power of ten. */
void foreign_put_decimal(struct json *j, const char *key, uint64_t value, uint64_t parts);
/* The process of a thread; 0 = it has none. */
uint32_t foreign_pid(const struct profile *p, uint32_t thread);
/* "worker 1 101": the name and its number, where it has one. Appended. */
void foreign_thread_name(const struct profile *p, uint32_t thread, struct buf *out);
