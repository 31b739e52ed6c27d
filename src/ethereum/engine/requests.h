/*
 * requests.h - the requests of a block to the consensus layer (EIP-7685), of which JSON-RPC gives only the hash: from a
 * file, or from the API of a consensus client.
 *
 * A list of requests is a JSON array of "0x…": a byte of type, and the requests of that type as SSZ has them. It is taken
 * only if its hash is the header's requestsHash: neither the file nor the consensus client is trusted.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct err;
struct requests;

/* Reads the file: lines of JSON, each with the "hash" of a block and its "executionRequests". beacon: an address. Either
 * may be NULL. */
int requests_open(const char *file, const char *beacon, struct requests **ret, struct err *err);
/* Finds those of a block of JSON-RPC: *ret is the caller's, NULL: they are not there. Negative: the consensus client does
 * not answer, or answers something else. */
int requests_find(struct requests *r, const json_t *block, json_t **ret, struct err *err);
void requests_close(struct requests *r); /* NULL is fine */

/* Is this a list of requests with this hash, "0x…"? */
bool requests_match(const json_t *list, const char *hash);
/* Encodes what a consensus client has in its block as execution_requests: a list, or NULL: it is malformed. */
json_t *requests_encode(const json_t *execution_requests);
