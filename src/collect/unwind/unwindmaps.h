/*
 * unwindmaps.h - unwind tables of all modules, in the BPF maps where the unwinder finds them.
 *
 * The chunks make up one space of 4-byte words that only grows; a module's table
 * is a block of it, published by one store of its state. Tables are added while
 * programs run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct unwindmaps;
struct unwind_table;

/* The maps of the unwinder. The descriptors stay the caller's. */
struct unwindmaps_fds {
	int chunks;               /* ARRAY_OF_MAPS */
	int rules, modules;       /* mmapable ARRAYs */
	int rule_cache, seen;     /* ARRAY_OF_MAPS, whose parts are made here */
};

/* words: room is made for tables that take so many (unwindmaps_words()). Making room takes a grace period of the kernel each
 * time, some 15 ms; here all that is needed passes at once. */
int unwindmaps_new(const struct unwindmaps_fds *fds, uint64_t words, struct unwindmaps **ret, struct err *err);
void unwindmaps_free(struct unwindmaps *t);

/* The words that a table takes, at most. */
uint64_t unwindmaps_words(const struct unwind_table *table);
/* Says that a module's table is being made, so that stacks which meet it are counted as such. */
void unwindmaps_announce(struct unwindmaps *t, uint32_t module);
/* No table: frame pointers are followed. */
void unwindmaps_none(struct unwindmaps *t, uint32_t module);
/* Loads a table that unwind_valid() has passed. -ENOSPC when the space is used up. */
int unwindmaps_load(struct unwindmaps *t, uint32_t module, const struct unwind_table *table, struct err *err);
/* Is its table still being made? */
bool unwindmaps_building(const struct unwindmaps *t, uint32_t module);
/* The rule for an address, as the BPF program finds it. */
uint64_t unwindmaps_rule(const struct unwindmaps *t, uint32_t module, uint64_t address);
