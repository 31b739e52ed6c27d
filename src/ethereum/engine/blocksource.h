/*
 * blocksource.h - the blocks of a replay, ready to be sent, prefetched from a node or a file.
 *
 * A thread of its own fetches and prepares them, so that the node under test never waits for them. A request
 * that a source does not answer at once is repeated with growing pauses.
 *
 * Life: open -> start -> next, until 0 -> close. One thread calls these; stop may come from any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ethereum/engine/engineapi.h"

struct blocksource;
struct err;

enum { BLOCKSOURCE_SAFE = 32, BLOCKSOURCE_FINAL = 64 }; /* behind the head, as a consensus client has them */

struct blocksource_options {
	const char *rpc;   /* a node's address, or NULL */
	const char *file;  /* instead: lines of JSON, as engine_block_read() takes them */
	uint64_t from, to; /* numbers, both included; a file may hold others too */
	unsigned ahead;    /* how many are ready at most */
	unsigned retries;
	const char *requests, *beacon; /* a file, an address: as requests_open() takes them; NULL = none */
	bool reth, build;  /* as in struct engine_reading */
};

struct blocksource_block {
	struct engine_block block;
	char safe[ENGINE_HASH], final[ENGINE_HASH]; /* of the blocks so far behind it; "" where they are not known */
};

int blocksource_open(const struct blocksource_options *o, struct blocksource **ret, struct err *err);
/* The number of the last block that the node has; -ENOTSUP of a file. Before start. */
int blocksource_last(struct blocksource *s, uint64_t *ret, struct err *err);
int blocksource_start(struct blocksource *s, const struct blocksource_options *range, struct err *err);
/* 1: *ret is the next, and the caller's: engine_block_done(&ret->block). 0: there are no more. -EAGAIN:
 * none was ready within wait_ms. Any other: the source gave up, or its blocks are no chain. */
int blocksource_next(struct blocksource *s, unsigned wait_ms, struct blocksource_block *ret, struct err *err);
/* How often something was asked again. */
uint64_t blocksource_retried(struct blocksource *s);
void blocksource_close(struct blocksource *s); /* NULL is fine */
