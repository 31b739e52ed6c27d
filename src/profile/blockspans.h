/*
 * blockspans.h - spans that are a block's, by the names that nodes give them.
 *
 * Nodes mark their own work: tracing spans in samply's marker files and in Chrome traces. The names are those of the
 * nodes' sources.
 */
#pragma once

/* The insertion of a block that was built here takes microseconds, and is not its time: what built it goes before. */
enum { BLOCKSPANS_INSERTS = 1, BLOCKSPANS_BUILDS = 2 };

/* 0: no such span. */
int blockspans_rank(const char *name);
