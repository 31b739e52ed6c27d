#include "ethereum/engineapi.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/ethtx.h"
#include "ethereum/codec/hex.h"

#define ZERO_HASH "0x0000000000000000000000000000000000000000000000000000000000000000"
/* sha256 of nothing: the block has no requests. */
#define NO_REQUESTS "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void json_freep(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_freep)

/* --- answers --- */

/* Copies untrusted text for one line of a terminal. */
static void copy_plain(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; from && *from && n + 1 < size; from++)
		to[n++] = iscntrl((unsigned char)*from) ? ' ' : *from;
	to[n] = 0;
}

static json_t *parse(const char *text, size_t n, struct err *err)
{
	json_error_t why;
	json_t *j = n ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : NULL;

	if (!json_is_object(j)) {
		json_decref(j);
		err_set(err, EPROTO, "its answer is not JSON-RPC");
		return NULL;
	}
	return j;
}

/* The result of an answer, which is borrowed from it. */
static int result_of(const json_t *answer, const json_t **ret, struct err *err)
{
	const json_t *error = json_object_get(answer, "error"), *code = json_object_get(error, "code");
	char text[256];

	if (error && !json_is_null(error)) {
		const char *said = json_string_value(json_object_get(error, "message"));

		copy_plain(text, sizeof(text), said ? said : "an error");
		return err_set(err, EREMOTEIO, "%s (%lld)", text, (long long)json_integer_value(code));
	}
	*ret = json_object_get(answer, "result");
	return *ret ? 0 : err_set(err, EPROTO, "its answer has no result");
}

int engine_result_read(const char *text, size_t n, char **ret, struct err *err)
{
	_cleanup_json_ json_t *answer = parse(text, n, err);
	const json_t *result = NULL;
	int e = answer ? result_of(answer, &result, err) : -EPROTO;

	if (e)
		return e;
	if (!json_is_string(result))
		return err_set(err, EPROTO, "its answer does not match the request");
	*ret = mem_strdup(json_string_value(result));
	return 0;
}

static const char *const words[] = {
	[ENGINE_VALID] = "VALID",	[ENGINE_INVALID] = "INVALID",	[ENGINE_INVALID_HASH] = "INVALID_BLOCK_HASH",
	[ENGINE_SYNCING] = "SYNCING",	[ENGINE_ACCEPTED] = "ACCEPTED",
};

const char *engine_word_name(enum engine_word w)
{
	return words[w];
}

int engine_status_read(const char *text, size_t n, struct engine_status *ret, struct err *err)
{
	_cleanup_json_ json_t *answer = parse(text, n, err);
	const json_t *result = NULL, *inner;
	const char *word, *hash;
	int e = answer ? result_of(answer, &result, err) : -EPROTO;

	*ret = (struct engine_status){ 0 };
	if (e)
		return e;
	inner = json_object_get(result, "payloadStatus");
	if (inner)
		result = inner;
	word = json_string_value(json_object_get(result, "status"));
	hash = json_string_value(json_object_get(result, "latestValidHash"));
	copy_plain(ret->error, sizeof(ret->error), json_string_value(json_object_get(result, "validationError")));
	if (hex_is(hash, 32))
		memcpy(ret->latest_valid, hash, ENGINE_HASH);
	for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i])) {
			ret->word = i;
			return 0;
		}
	return err_set(err, EPROTO, "its answer has no status of a payload");
}

/* --- payloads --- */

enum shape { QUANTITY, DATA, HASH, ADDRESS, BLOOM };

/* The fields that a payload takes from a header, by the first version that has them. */
static const struct {
	const char *to, *from;
	enum shape shape;
	unsigned version;
} members[] = {
	{ "parentHash", "parentHash", HASH, 1 },
	{ "feeRecipient", "miner", ADDRESS, 1 },
	{ "stateRoot", "stateRoot", HASH, 1 },
	{ "receiptsRoot", "receiptsRoot", HASH, 1 },
	{ "logsBloom", "logsBloom", BLOOM, 1 },
	{ "prevRandao", "mixHash", HASH, 1 },
	{ "blockNumber", "number", QUANTITY, 1 },
	{ "gasLimit", "gasLimit", QUANTITY, 1 },
	{ "gasUsed", "gasUsed", QUANTITY, 1 },
	{ "timestamp", "timestamp", QUANTITY, 1 },
	{ "extraData", "extraData", DATA, 1 },
	{ "baseFeePerGas", "baseFeePerGas", QUANTITY, 1 },
	{ "blockHash", "hash", HASH, 1 },
	{ "blobGasUsed", "blobGasUsed", QUANTITY, 3 },
	{ "excessBlobGas", "excessBlobGas", QUANTITY, 3 },
};

static bool has_shape(const char *s, enum shape shape)
{
	static const size_t bytes[] = { [HASH] = 32, [ADDRESS] = 20, [BLOOM] = 256 };
	_cleanup_(buf_done) struct buf raw = { 0 };

	/* Of a fee there may be 256 bits. */
	if (shape == QUANTITY || shape == DATA)
		return hex_take(s, shape == QUANTITY, &raw) && (shape == DATA || (strlen(s) > 2 && strlen(s) <= 66));
	return hex_is(s, bytes[shape]);
}

static int bad(struct err *err, const char *name)
{
	return err_set(err, EBADMSG, "the block's %s is missing or malformed", name);
}

static bool has(const json_t *block, const char *name)
{
	const json_t *value = json_object_get(block, name);

	return value && !json_is_null(value);
}

static unsigned version_of(const json_t *block)
{
	return has(block, "requestsHash")			    ? 4
	       : has(block, "parentBeaconBlockRoot")		    ? 3
	       : has(block, "withdrawals") || has(block, "withdrawalsRoot") ? 2
								    : 1;
}

static int put_members(struct buf *out, const json_t *block, unsigned version, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const char *value = json_string_value(json_object_get(block, members[i].from));

		if (members[i].version > version)
			continue;
		if (!has_shape(value, members[i].shape))
			return bad(err, members[i].from);
		buf_printf(out, "%s\"%s\":\"%s\"", i ? "," : "", members[i].to, value);
	}
	return 0;
}

/* A transaction that its fields do not encode is fetched raw, and the block keeps the raw bytes. */
static int put_transaction(struct buf *out, json_t *transaction, engine_raw_fn *raw, void *context, struct err *err)
{
	const char *hash = json_string_value(json_object_get(transaction, "hash"));
	_cleanup_(buf_done) struct buf bytes = { 0 }, text = { 0 };
	int e = ethtx_put(transaction, &bytes, err);

	if (e && raw && hex_is(hash, 32) && !raw(context, hash, &text) &&
	    !json_object_set_new(transaction, "raw", json_string(text.data))) {
		bytes.n = 0;
		e = ethtx_put(transaction, &bytes, err);
	}
	if (e)
		return err_prefix(err, "transaction %.70s", hex_is(hash, 32) ? hash : "without a hash") ?: e;
	buf_putc(out, '"');
	hex_put(out, bytes.data, bytes.n);
	buf_putc(out, '"');
	return 0;
}

static int put_transactions(struct buf *out, const json_t *block, engine_raw_fn *raw, void *context,
			    struct engine_block *ret, struct err *err)
{
	json_t *list = json_object_get(block, "transactions");
	int e = 0;

	if (!json_is_array(list))
		return bad(err, "list of transactions");
	ret->transactions = json_array_size(list);
	buf_puts(out, ",\"transactions\":[");
	for (size_t i = 0; i < ret->transactions && !e; i++) {
		buf_puts(out, i ? "," : "");
		e = put_transaction(out, json_array_get(list, i), raw, context, err);
	}
	buf_putc(out, ']');
	return e;
}

static int put_withdrawals(struct buf *out, const json_t *block, struct err *err)
{
	static const struct {
		const char *name;
		enum shape shape;
	} fields[] = { { "index", QUANTITY }, { "validatorIndex", QUANTITY }, { "address", ADDRESS }, { "amount", QUANTITY } };
	const json_t *list = json_object_get(block, "withdrawals");

	if (!json_is_array(list))
		return bad(err, "list of withdrawals");
	buf_puts(out, ",\"withdrawals\":[");
	for (size_t i = 0; i < json_array_size(list); i++) {
		buf_puts(out, i ? ",{" : "{");
		for (size_t k = 0; k < ARRAY_LEN(fields); k++) {
			const char *value = json_string_value(json_object_get(json_array_get(list, i), fields[k].name));

			if (!has_shape(value, fields[k].shape))
				return bad(err, "list of withdrawals");
			buf_printf(out, "%s\"%s\":\"%s\"", k ? "," : "", fields[k].name, value);
		}
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
	return 0;
}

/* The hashes of all blobs, in the order of the transactions, and the root of the parent's beacon block. */
static int put_blobs(struct buf *out, const json_t *block, struct err *err)
{
	const json_t *list = json_object_get(block, "transactions");
	const char *root = json_string_value(json_object_get(block, "parentBeaconBlockRoot")), *comma = "";

	if (!hex_is(root, 32))
		return bad(err, "parentBeaconBlockRoot");
	buf_puts(out, ",[");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *blobs = json_object_get(json_array_get(list, i), "blobVersionedHashes");

		/* ethtx_put() has checked them, unless they are not of the transaction itself. */
		for (size_t k = 0; k < json_array_size(blobs); k++) {
			const char *hash = json_string_value(json_array_get(blobs, k));

			if (!hex_is(hash, 32))
				return bad(err, "list of blobs");
			buf_printf(out, "%s\"%s\"", comma, hash);
			comma = ",";
		}
	}
	buf_printf(out, "],\"%s\"", root);
	return 0;
}

/* JSON-RPC has only the hash of the block's execution requests. Where that is not the hash of an empty
 * list, and the file has no "executionRequests" of its own, the hash takes the place of the list, which
 * reth can be told to accept. */
static int put_requests(struct buf *out, const json_t *block, struct engine_block *ret, struct err *err)
{
	const char *hash = json_string_value(json_object_get(block, "requestsHash"));
	const json_t *list = json_object_get(block, "executionRequests");

	if (!hex_is(hash, 32))
		return bad(err, "requestsHash");
	ret->requests_by_hash = !list && strcasecmp(hash, NO_REQUESTS);
	if (ret->requests_by_hash) {
		buf_printf(out, ",\"%s\"", hash);
		return 0;
	}
	buf_puts(out, ",[");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *request = json_string_value(json_array_get(list, i));

		if (!has_shape(request, DATA))
			return bad(err, "list of requests");
		buf_printf(out, "%s\"%s\"", i ? "," : "", request);
	}
	buf_putc(out, ']');
	return 0;
}

static int put_params(struct buf *out, const json_t *block, engine_raw_fn *raw, void *context,
		      struct engine_block *ret, struct err *err)
{
	unsigned version = ret->version = version_of(block);
	int e;

	buf_puts(out, "[{");
	e = put_members(out, block, version, err);
	if (!e)
		e = put_transactions(out, block, raw, context, ret, err);
	if (!e && version >= 2)
		e = put_withdrawals(out, block, err);
	buf_putc(out, '}');
	if (!e && version >= 3)
		e = put_blobs(out, block, err);
	if (!e && version >= 4)
		e = put_requests(out, block, ret, err);
	buf_putc(out, ']');
	return e;
}

static int read_figures(const json_t *block, struct engine_block *ret, struct err *err)
{
	const struct {
		const char *name;
		uint64_t *to;
	} figures[] = {
		{ "number", &ret->number },
		{ "gasLimit", &ret->gas_limit },
		{ "gasUsed", &ret->gas_used },
		{ "timestamp", &ret->timestamp },
	};

	for (size_t i = 0; i < ARRAY_LEN(figures); i++)
		if (!hex_number(json_string_value(json_object_get(block, figures[i].name)), figures[i].to) ||
		    *figures[i].to > INT64_MAX)
			return bad(err, figures[i].name);
	memcpy(ret->hash, json_string_value(json_object_get(block, "hash")), ENGINE_HASH);
	memcpy(ret->parent, json_string_value(json_object_get(block, "parentHash")), ENGINE_HASH);
	return 0;
}

static void put_line(struct buf *out, const json_t *block)
{
	char *line = json_dumps(block, JSON_COMPACT | JSON_PRESERVE_ORDER);

	buf_puts(out, line ? line : "");
	free(line);
}

int engine_block_read(const char *text, size_t n, engine_raw_fn *raw, void *context, struct engine_block *ret,
		      struct err *err)
{
	_cleanup_json_ json_t *answer = parse(text, n, err);
	const json_t *block = answer;
	int e = 0;

	*ret = (struct engine_block){ 0 };
	if (!answer)
		return -EPROTO;
	if (!json_object_get(answer, "number"))
		e = result_of(answer, &block, err);
	if (!e && json_is_null(block))
		return err_set(err, ENOENT, "it has no such block");
	if (!e)
		e = put_params(&ret->params, block, raw, context, ret, err);
	if (!e)
		e = read_figures(block, ret, err);
	if (!e)
		put_line(&ret->line, block);
	return e;
}

void engine_block_done(struct engine_block *b)
{
	buf_done(&b->params);
	buf_done(&b->line);
}

/* --- the choice of a fork --- */

void engine_choice_put(struct buf *out, const char *head, const char *safe, const char *final)
{
	buf_printf(out, "[{\"headBlockHash\":\"%s\",\"safeBlockHash\":\"%s\",\"finalizedBlockHash\":\"%s\"},null]", head,
		   *safe ? safe : ZERO_HASH, *final ? final : ZERO_HASH);
}

unsigned engine_choice_version(unsigned payload_version)
{
	return MIN(payload_version, 3U);
}
