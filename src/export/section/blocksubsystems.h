/*
 * blocksubsystems.h - the subsystems of blocks, for the table, the JSON and the CSV of blockstext.c, which is
 * the only one to use it.
 */
#pragma once

#include <stddef.h>

struct block_row;
struct blocks_job;
struct buf;

/* Columns of the table: the subsystems that have most of all blocks, and what is left. */
void blocksubsystems_heads(const struct blocks_job *job, struct buf *out);
void blocksubsystems_shares(const struct blocks_job *job, const struct block_row *r, struct buf *out);
/* "Along their paths, by subsystem: EVM 40.1 %, ..." */
void blocksubsystems_sum(const struct blocks_job *job, struct buf *out);
/* "state root 38.0 %: 21.0 on the CPU, 17.0 page faults of mdbx.dat": of one block, with what they call. */
void blocksubsystems_list(const struct block_row *r, struct buf *out);
/* CSV: ",subsystem_evm_ns" of each, and its values. */
void blocksubsystems_csv_heads(const struct blocks_job *job, struct buf *out);
void blocksubsystems_csv(const struct blocks_job *job, const struct block_row *r, struct buf *out);
