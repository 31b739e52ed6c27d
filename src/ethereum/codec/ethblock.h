/*
 * ethblock.h - encodes a block of JSON-RPC as RLP: header, transactions, no ommers, withdrawals.
 *
 * Pure. The header is verified: its Keccak-256 must be the block's hash, so that a field of a future fork, or of a chain
 * that has more, is an error and never another block.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct buf;
struct err;

/* Appends the block. transactions: the RLP of each, one after the other, as ethblock_put_transaction() makes it. -EBADMSG:
 * a field is missing, or the hash is another. */
int ethblock_put(const json_t *block, const struct buf *transactions, struct buf *out, struct err *err);
/* Appends a raw transaction as a block has it: a typed one is a byte string, a legacy one a list. */
void ethblock_put_transaction(struct buf *out, const struct buf *raw);
/* Is this the RLP of a block whose header has the hash "0x…"? */
bool ethblock_has_hash(const void *rlp, size_t n, const char *hash);
