/*
 * fuzz_engineapi.c - blocks and answers of nodes, as the Engine API's payloads; secrets.
 *
 * A block that is taken has params that are JSON, a line that is read again as the same, and transactions whose hashes are
 * right. Answers are one of the words that there are.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "ethereum/engine/engineapi.h"
#include "ethereum/codec/ethblock.h"
#include "ethereum/codec/ethtx.h"
#include "ethereum/engine/jwt.h"
#include "ethereum/engine/requests.h"
#include "ethereum/rpccall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

/* What a node has of what is missing: sometimes nothing, sometimes something else. */
static int give_extra(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err)
{
	if (json_object_size(of) % 2)
		*ret = what == ENGINE_REQUESTS ? json_pack("[s]", "0x0001") : json_string("0xf86e80");
	return 0;
}

static void check_params(const struct engine_block *b)
{
	json_t *params = json_loadb(b->params.data, b->params.n, 0, NULL);

	expect(b->version >= 1 && b->version <= 5);
	expect(json_array_size(params) == (b->version < 3 ? 1 : b->version < 4 ? 3 : 4));
	expect(json_array_size(json_object_get(json_array_get(params, 0), "transactions")) == b->transactions);
	json_decref(params);
}

/* A block that is taken is the same once it was saved. */
static void check_block(const char *text, size_t size)
{
	struct engine_reading how = { .extra = give_extra, .build = true };
	json_t *block = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL), *saved;
	struct engine_block b, again;
	struct err err = { 0 };

	if (json_is_object(json_object_get(block, "result"))) {
		saved = json_incref(json_object_get(block, "result"));
		json_decref(block);
		block = saved;
	}
	if (!engine_block_read(block, &how, &b, &err)) {
		check_params(&b);
		expect(strlen(b.hash) == 66 && strlen(b.parent) == 66);
		expect(!memchr(b.line.data, '\n', b.line.n));
		saved = json_loadb(b.line.data, b.line.n, 0, NULL);
		how.extra = NULL;
		expect(!engine_block_read(saved, &how, &again, NULL));
		expect(again.params.n == b.params.n && !memcmp(again.params.data, b.params.data, b.params.n));
		json_decref(saved);
		engine_block_done(&again);
	} else {
		expect(err.code && *err.text);
	}
	engine_block_done(&b);
	how = (struct engine_reading){ .reth = true };
	if (!engine_block_read(block, &how, &b, NULL))
		expect(b.reth.n > 2);
	engine_block_done(&b);
	json_decref(block);
}

static void check_result(const json_t *result)
{
	const struct engine_block b = { .version = 4 };
	struct engine_status s;
	struct engine_built built;
	json_t *requests = requests_encode(result), *params;

	if (!engine_status_read(result, &s, NULL))
		expect(engine_word_name(s.word) && strlen(s.error) < sizeof(s.error));
	if (!engine_built_read(result, &b, &built, NULL)) {
		params = json_loadb(built.params.data, built.params.n, 0, NULL);
		expect(json_array_size(params) == 4);
		json_decref(params);
	}
	engine_built_done(&built);
	for (size_t i = 0; i < json_array_size(requests); i++)
		expect(strlen(json_string_value(json_array_get(requests, i))) > 4);
	json_decref(requests);
}

static void check_answer(const char *text, size_t size)
{
	json_t *result = NULL;
	struct err err = { 0 };

	if (!rpccall_parse(text, size, 1, &result, NULL, &err))
		check_result(result);
	else
		expect(err.code && *err.text);
	json_decref(result);
	result = json_loadb(text, size, 0, NULL);
	check_result(result);
	json_decref(result);
	ethblock_has_hash(text, size, "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347");
}

/* A transaction on its own: hashes are seldom right by chance, so without the check of a block around it. */
static void check_transaction(const char *text, size_t size)
{
	json_t *t = json_loadb(text, size, 0, NULL);
	struct buf raw = { 0 };

	if (!ethtx_put(t, &raw, NULL))
		expect(raw.n > 0);
	buf_done(&raw);
	json_decref(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	uint8_t secret[JWT_SECRET_BYTES];

	if (!size)
		return 0;
	jwt_parse_secret(text, size, secret);
	check_block(text, size);
	check_answer(text, size);
	check_transaction(text, size);
	return 0;
}
