/*
 * blockspans.h - spans that are a block's, by the names that nodes give them.
 *
 * Nodes mark their own work: tracing spans in samply's marker files and in Chrome traces. The names are those of the
 * nodes' sources.
 */
#pragma once

/* 0: no such span. What builds a block has a higher rank than what inserts one: the insertion of a block that was built
 * here takes microseconds, and is not its time. */
int blockspans_rank(const char *name);
