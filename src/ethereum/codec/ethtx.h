/*
 * ethtx.h - a transaction as JSON-RPC has it, back to the bytes that its sender signed.
 *
 * Pure. What is made is checked: its Keccak-256 must be the transaction's hash, so that a field that a client
 * names otherwise, or a type of tomorrow, is an error and never a wrong payload.
 */
#pragma once

#include <jansson.h>

struct buf;
struct err;

/* Appends the raw transaction. Its own "raw" goes first, where it has one. -ENOTSUP: a type that is not known here;
 * -EBADMSG: it has not the hash that it should have, or fields are missing. */
int ethtx_put(const json_t *transaction, struct buf *out, struct err *err);
