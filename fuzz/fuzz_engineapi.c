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
#include "ethereum/engineapi.h"
#include "ethereum/codec/ethtx.h"
#include "ethereum/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

/* What a node has for a hash: sometimes nothing, sometimes something else. */
static int give_raw(void *context, const char *hash, struct buf *ret)
{
	if (hash[2] % 2)
		return -1;
	buf_puts(ret, "0xf86e80");
	return 0;
}

static void check_block(const char *text, size_t size)
{
	struct engine_block b, again;
	struct err err = { 0 };

	if (!engine_block_read(text, size, give_raw, NULL, &b, &err)) {
		json_t *params = json_loadb(b.params.data, b.params.n, 0, NULL);

		expect(b.version >= 1 && b.version <= 4);
		expect(json_array_size(params) == (b.version < 3 ? 1 : b.version));
		expect(json_array_size(json_object_get(json_array_get(params, 0), "transactions")) == b.transactions);
		json_decref(params);
		expect(strlen(b.hash) == 66 && strlen(b.parent) == 66);
		expect(!memchr(b.line.data, '\n', b.line.n));
		expect(!engine_block_read(b.line.data, b.line.n, NULL, NULL, &again, NULL));
		expect(again.params.n == b.params.n && !memcmp(again.params.data, b.params.data, b.params.n));
		engine_block_done(&again);
	} else {
		expect(err.code && *err.text);
	}
	engine_block_done(&b);
}

static void check_answer(const char *text, size_t size)
{
	struct engine_status s;
	char *said = NULL;

	if (!engine_status_read(text, size, &s, NULL))
		expect(engine_word_name(s.word) && strlen(s.error) < sizeof(s.error));
	if (!engine_result_read(text, size, &said, NULL))
		expect(said != NULL);
	free(said);
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
