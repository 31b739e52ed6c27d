/*
 * blockstext.h - blocks as a table for people, as JSON and as CSV.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blockparts;
struct blocks;
struct buf;
struct profile;
struct subsystems;

struct blocks_job {
	const struct profile *profile;
	const struct blocks *blocks;
	const char *capture; /* its path, for the suggested commands */
	size_t limit;        /* rows for people: the slowest; 0 = all */
	bool by_time;        /* rows in their order, not slowest first */
	bool crates;         /* time on the CPU by crate, not by kind of code */
	bool by_subsystem;   /* the wall time by subsystem, not by cause */
	const struct subsystems *subsystems; /* their names, for CSV; NULL = none */
	unsigned columns;    /* of the terminal, for names of functions; 0 = whole */
	const char *page;    /* the absolute path of a page that was written; NULL = none */
	const struct blockparts *parts; /* of the same profile; NULL: without spans */
};

void blockstext_write(const struct blocks_job *job, struct buf *out);
/* Puts a single block in full: row is an index. */
void blockstext_write_one(const struct blocks_job *job, size_t row, struct buf *out);
/* The address of the page, opened on one block; row SIZE_MAX: on all. */
void blockstext_url(const struct blocks_job *job, size_t row, struct buf *out);
/* Puts a share of a block's time in percent, "-" for none, right-aligned in a column of a table. */
void blockstext_share(struct buf *out, uint64_t ns, uint64_t of, int width);
void blocksjson_write(const struct blocks_job *job, struct buf *out);
void blockscsv_write(const struct blocks_job *job, struct buf *out);
