/*
 * packedtable.h - an unwind table as one run of bytes.
 *
 * The unprivileged child writes it, the cache keeps it, and both are checked here:
 *
 *	header | pages[page_count] | rows[row_count] | rules[rule_count]
 *
 * Native byte order: it never leaves the machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/unwind/unwind.h"

struct packedtable {
	uint64_t first_page;
	uint32_t page_count, row_count, rule_count, unsupported;
};
_Static_assert(sizeof(struct packedtable) == 24, "no padding");

/* The header of t, and how many bytes it takes with all behind it. */
struct packedtable packedtable_of(const struct unwind_table *t);
uint64_t packedtable_bytes(const struct packedtable *head);
/* Copies a table out of n bytes. False: they are not a table that is safe to load (unwind_valid()). On success the
 * caller calls unwind_done(ret). */
bool packedtable_open(const char *data, size_t n, struct unwind_table *ret);
