/*
 * ethtx.h - encodes a transaction of JSON-RPC as the bytes that its sender signed.
 *
 * Pure. The result is verified: its Keccak-256 must be the transaction's hash, so that a field that a client
 * names otherwise, or a future type, is an error and never a wrong payload.
 */
#pragma once

#include <jansson.h>

struct buf;
struct err;

/* Appends the raw transaction. Its own "raw" goes first, where it has one. -ENOTSUP: a type that is not known here;
 * -EBADMSG: it has not the hash that it should have, or fields are missing. */
int ethtx_put(const json_t *transaction, struct buf *out, struct err *err);
