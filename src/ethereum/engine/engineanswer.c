/*
 * engineanswer.c - what a node answers over the Engine API, and the choice of a fork.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/engine/engineapi.h"
#include "ethereum/rpccall.h"

#define ZERO_HASH "0x0000000000000000000000000000000000000000000000000000000000000000"

/* --- statuses --- */

static const char *const words[] = {
	[ENGINE_VALID] = "VALID",	[ENGINE_INVALID] = "INVALID",	[ENGINE_INVALID_HASH] = "INVALID_BLOCK_HASH",
	[ENGINE_SYNCING] = "SYNCING",	[ENGINE_ACCEPTED] = "ACCEPTED",
};

const char *engine_word_name(enum engine_word w)
{
	return words[w];
}

static uint64_t microseconds(const json_t *result, const char *name)
{
	const json_t *x = json_object_get(result, name);
	double value = json_number_value(x);

	return json_is_number(x) && value >= 0 && value < 1e15 ? (uint64_t)value : ENGINE_UNKNOWN;
}

int engine_status_read(const json_t *result, struct engine_status *ret, struct err *err)
{
	const json_t *inner = json_object_get(result, "payloadStatus");
	const char *word, *hash, *id = json_string_value(json_object_get(result, "payloadId"));

	*ret = (struct engine_status){
		.server_us = microseconds(result, "latency_us"),
		.persistence_us = microseconds(result, "persistence_wait_us"),
		.cache_us = microseconds(result, "execution_cache_wait_us"),
		.trie_us = microseconds(result, "sparse_trie_wait_us"),
	};
	if (hex_is(id, 8))
		memcpy(ret->payload_id, id, sizeof(ret->payload_id));
	if (inner)
		result = inner;
	word = json_string_value(json_object_get(result, "status"));
	hash = json_string_value(json_object_get(result, "latestValidHash"));
	rpccall_copy_plain(ret->error, sizeof(ret->error), json_string_value(json_object_get(result, "validationError")));
	if (hex_is(hash, 32))
		memcpy(ret->latest_valid, hash, ENGINE_HASH);
	for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i])) {
			ret->word = i;
			return 0;
		}
	return err_set(err, EPROTO, "its answer has no status of a payload");
}

/* --- a payload that was built --- */

/* Of each commitment to a blob its hash: sha256, with the version in the first byte. */
static int put_blob_hashes(struct json *out, const json_t *commitments, struct err *err)
{
	json_open_array(out, NULL);
	for (size_t i = 0; i < json_array_size(commitments); i++) {
		_cleanup_(buf_done) struct buf bytes = { 0 }, text = { 0 };
		const char *one = json_string_value(json_array_get(commitments, i));
		uint8_t sum[SHA256_BYTES];

		if (!hex_is(one, 48) || !hex_take(one, false, &bytes))
			return err_set(err, EPROTO, "the commitments to its blobs are malformed");
		sha256(bytes.data, bytes.n, sum);
		sum[0] = 1;
		hex_put(&text, sum, sizeof(sum));
		json_put_string(out, NULL, text.data);
	}
	json_close(out);
	return 0;
}

static void put_json(struct json *out, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	json_put_raw(out, NULL, text ? text : "null", text ? strlen(text) : 4);
	free(text);
}

static int put_built_params(const json_t *result, const json_t *payload, const struct engine_block *b, struct buf *to,
			    struct err *err)
{
	const json_t *requests = json_object_get(result, "executionRequests");
	struct json out = json_begin(to);
	int e = 0;

	json_open_array(&out, NULL);
	put_json(&out, payload);
	if (b->version >= 3) {
		e = put_blob_hashes(&out, json_object_get(json_object_get(result, "blobsBundle"), "commitments"), err);
		if (e)
			return e;
		json_put_string(&out, NULL, b->beacon_root);
	}
	/* The OP stack has none, and some of its nodes leave the member out. */
	if (b->version >= 4 && json_is_array(requests))
		put_json(&out, requests);
	else if (b->version >= 4) {
		json_open_array(&out, NULL);
		json_close(&out);
	}
	json_end(&out);
	return 0;
}

int engine_built_read(const json_t *result, const struct engine_block *b, struct engine_built *ret, struct err *err)
{
	const json_t *payload = json_object_get(result, "executionPayload");
	const char *hash;

	*ret = (struct engine_built){ 0 };
	if (!payload)
		payload = result; /* of version 1 */
	hash = json_string_value(json_object_get(payload, "blockHash"));
	if (!hex_is(hash, 32) || !json_is_array(json_object_get(payload, "transactions")) ||
	    !hex_number(json_string_value(json_object_get(payload, "blockNumber")), &ret->number) ||
	    !hex_number(json_string_value(json_object_get(payload, "gasUsed")), &ret->gas_used) ||
	    !hex_number(json_string_value(json_object_get(payload, "gasLimit")), &ret->gas_limit))
		return err_set(err, EPROTO, "its answer is not a payload");
	memcpy(ret->hash, hash, ENGINE_HASH);
	ret->transactions = json_array_size(json_object_get(payload, "transactions"));
	return put_built_params(result, payload, b, &ret->params, err);
}

void engine_built_done(struct engine_built *b)
{
	buf_done(&b->params);
}

/* --- the choice of a fork --- */

void engine_state_put(struct json *j, const char *head, const char *safe, const char *final)
{
	json_open_object(j, NULL);
	json_put_string(j, "headBlockHash", head);
	json_put_string(j, "safeBlockHash", *safe ? safe : ZERO_HASH);
	json_put_string(j, "finalizedBlockHash", *final ? final : ZERO_HASH);
	json_close(j);
}

unsigned engine_choice_version(unsigned payload_version)
{
	return payload_version >= 5 ? 4 : MIN(payload_version, 3U);
}
