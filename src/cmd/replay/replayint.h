/*
 * replayint.h - a replay in progress, for the files that drive a node: replayrun.c (all blocks), replaynode.c (calls),
 * replaybuild.c (blocks that the node builds) and replaywait.c (until they are kept).
 */
#pragma once

#include <stdio.h>

#include "base/buf.h"
#include "cmd/replay/replay.h"
#include "ethereum/engine/jwt.h"
#include "ethereum/rpccall.h"
#include "export/bench/replay.h"

struct rpc;
struct rpcblock;

struct run {
	const struct replay_options *o;
	struct replay_result *result;
	struct blocksource *source;
	struct http *http;
	struct http *pool;    /* where transactions go before a block is built; NULL = nowhere yet */
	struct rpc *news;     /* of blocks on disk; NULL = not asked for */
	FILE *save;
	uint8_t secret[JWT_SECRET_BYTES];
	struct buf token;
	uint64_t token_seconds;
	uint64_t start_ns, last_begin_ns;
	uint64_t from;        /* the first block */
	uint64_t looked_on_ns;
	uint64_t total;       /* blocks to come, 0 = not known */
	uint64_t on_disk;     /* the last block that the node said it has there */
	enum replay_wait wait;
	bool reth;            /* reth_newPayload and reth_forkchoiceUpdated */
	bool told_requests;
	bool old_choice;      /* the node does not know forkchoiceUpdatedV4 */
	bool osaka;           /* getPayload of version 5, not 4 */
	char head[ENGINE_HASH];   /* the last block that was built, "" = none */
	struct engine_block last; /* that was sent; its buffers are gone */
	struct err *err;
};

/* --- replaynode.c: calls of the node --- */

int replaynode_open(struct run *r);
void replaynode_close(struct run *r);
/* *ret is the caller's. */
int replaynode_ask(struct run *r, struct rpccall *c, json_t **ret);
/* The same for a status, again and again while it may pass: SYNCING, or a connection that breaks. name: for messages. */
int replaynode_ask_status(struct run *r, const char *name, struct rpccall *c, struct engine_status *status);
/* Asks for a block by its number, "0x…", or "latest". */
int replaynode_block(struct run *r, const char *by, struct rpcblock *ret);
/* Decides which of the APIs is used. */
int replaynode_choose_api(struct run *r);
/* 0 if the block counts as taken. */
int replaynode_judge(struct run *r, const char *what, const struct engine_block *b, const struct engine_status *s);
/* Makes the block with that hash the head; attributes: NULL, or of the block to build on it. */
int replaynode_choose(struct run *r, const struct engine_block *b, const char *head, const struct blocksource_block *near,
		      const struct buf *attributes, struct engine_status *status, uint64_t *ret_ns);
/* Sleeps; false: the user wants to stop. */
bool replaynode_nap(uint64_t ms);

/* --- the others --- */

/* Has the node build the block, imports it, and makes it the head. *ret_span_ns: from the first step to the last. */
int replaybuild_block(struct run *r, const struct blocksource_block *x, struct replay_row *row, uint64_t *ret_span_ns);

int replaywait_open(struct run *r);
/* Waits until the node keeps the block, in the way that was asked for. */
int replaywait_block(struct run *r, const struct engine_block *b);
const char *replaywait_words(const struct run *r);
