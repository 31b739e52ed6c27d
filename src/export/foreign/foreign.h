/*
 * foreign.h - words that several of the formats of this folder write.
 */
#pragma once

#include <stdint.h>

#include "analyze/wait/cause.h"

struct buf;
struct profile;
struct stackcall;

/* "kernel", "inlined", "note", "truncated", "address" (no symbol is known); "" = a function of a program. */
const char *foreign_kind(const struct stackcall *c);
/* "[lock]": a frame below the leaf of a wait. Static. */
const char *foreign_cause(enum cause cause);
/* The process of a thread; 0 = it has none. */
uint32_t foreign_pid(const struct profile *p, uint32_t thread);
/* "worker 1 101": the name and its number, where it has one. Appended. */
void foreign_thread_name(const struct profile *p, uint32_t thread, struct buf *out);
