#include "ethereum/engine/engineapi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "ethereum/codec/ethblock.h"
#include "ethereum/codec/ethtx.h"
#include "ethereum/codec/hex.h"
#include "ethereum/codec/keccak.h"
#include "ethereum/engine/requests.h"
#include "ethereum/rpccall.h"

/* sha256 of nothing: the block has no requests. */
#define NO_REQUESTS "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { DEPOSIT = 0x7e }; /* the type of the first transaction of each block of the OP stack */

enum shape { QUANTITY, DATA, HASH, ADDRESS, BLOOM };
enum chain { ANY, OP };

struct member {
	const char *to, *from;
	enum shape shape;
	unsigned version; /* the first that has it */
	enum chain chain;
};

/* The fields that a payload takes from a header. */
static const struct member payload_members[] = {
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
	{ "withdrawalsRoot", "withdrawalsRoot", HASH, 4, OP },
	{ "blockAccessList", "blockAccessList", DATA, 5 },
	{ "slotNumber", "slotNumber", QUANTITY, 5 },
};

/* The fields that the attributes of a payload to build take. */
static const struct member attribute_members[] = {
	{ "timestamp", "timestamp", QUANTITY, 1 },
	{ "prevRandao", "mixHash", HASH, 1 },
	{ "suggestedFeeRecipient", "miner", ADDRESS, 1 },
	{ "parentBeaconBlockRoot", "parentBeaconBlockRoot", HASH, 3 },
	{ "slotNumber", "slotNumber", QUANTITY, 5 },
	{ "targetGasLimit", "gasLimit", QUANTITY, 5 },
	{ "gasLimit", "gasLimit", QUANTITY, 1, OP },
};

/* A block that is being read. */
struct reading {
	json_t *block;
	const struct engine_reading *how;
	struct engine_block *ret;
	struct json *out;
	struct buf rlp; /* its transactions, for the block as RLP */
	struct err *err;
};

static bool has_shape(const char *s, enum shape shape)
{
	static const size_t bytes[] = { [HASH] = 32, [ADDRESS] = 20, [BLOOM] = 256 };
	_cleanup_(buf_done) struct buf raw = { 0 };

	/* A fee may have 256 bits. */
	if (shape == QUANTITY || shape == DATA)
		return hex_take(s, shape == QUANTITY, &raw) && (shape == DATA || (strlen(s) > 2 && strlen(s) <= 66));
	return hex_is(s, bytes[shape]);
}

static int bad(struct err *err, const char *name)
{
	return err_set(err, EBADMSG, "the block's %s is missing or malformed", name);
}

static const char *text_of(const json_t *block, const char *name)
{
	return json_string_value(json_object_get(block, name));
}

static bool has(const json_t *block, const char *name)
{
	const json_t *value = json_object_get(block, name);

	return value && !json_is_null(value);
}

static unsigned version_of(const json_t *block)
{
	return has(block, "slotNumber")				    ? 5
	       : has(block, "requestsHash")			    ? 4
	       : has(block, "parentBeaconBlockRoot")		    ? 3
	       : has(block, "withdrawals") || has(block, "withdrawalsRoot") ? 2
								    : 1;
}

static bool is_op(const json_t *block)
{
	uint64_t type;

	return hex_number(text_of(json_array_get(json_object_get(block, "transactions"), 0), "type"), &type) && type == DEPOSIT;
}

/* Finds what the block lacks, and keeps it there. 0 also where it cannot be had. */
static int find_extra(const struct reading *r, enum engine_extra what, json_t *of, const char *name)
{
	json_t *found = NULL;
	int e = 0;

	if (!has(of, name) && r->how->extra)
		e = r->how->extra(r->how->context, what, of, &found, r->err);
	if (found)
		json_object_set_new(of, name, found);
	return e;
}

static int put_members(struct reading *r, const struct member *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = text_of(r->block, list[i].from);

		if (list[i].version > r->ret->version || (list[i].chain == OP && !r->ret->op))
			continue;
		if (!has_shape(value, list[i].shape))
			return bad(r->err, list[i].from);
		json_put_string(r->out, list[i].to, value);
	}
	return 0;
}

/* --- transactions and withdrawals --- */

/* A transaction that its fields do not encode is fetched raw, and the block keeps the raw bytes. */
static int put_transaction(struct reading *r, json_t *transaction, struct json *raw)
{
	const char *hash = text_of(transaction, "hash");
	_cleanup_(buf_done) struct buf bytes = { 0 }, text = { 0 };
	int e = ethtx_put(transaction, &bytes, r->err);

	if (e && json_is_object(transaction) && !has(transaction, "raw") && hex_is(hash, 32) &&
	    !find_extra(r, ENGINE_TRANSACTION, transaction, "raw") && has(transaction, "raw")) {
		bytes.n = 0;
		e = ethtx_put(transaction, &bytes, r->err);
	}
	if (e)
		return err_prefix(r->err, "transaction %.70s", hex_is(hash, 32) ? hash : "without a hash") ?: e;
	hex_put(&text, bytes.data, bytes.n);
	json_put_string(r->out, NULL, text.data);
	if (r->how->build)
		json_put_string(raw, NULL, text.data);
	if (r->how->reth)
		ethblock_put_transaction(&r->rlp, &bytes);
	return 0;
}

static int put_transactions(struct reading *r)
{
	json_t *list = json_object_get(r->block, "transactions");
	struct json raw = json_begin(&r->ret->raw);
	int e = 0;

	if (!json_is_array(list))
		return bad(r->err, "list of transactions");
	r->ret->transactions = json_array_size(list);
	json_open_array(r->out, "transactions");
	json_open_array(&raw, NULL);
	for (size_t i = 0; i < r->ret->transactions && !e; i++)
		e = put_transaction(r, json_array_get(list, i), &raw);
	json_close(r->out);
	json_end(&raw);
	return e;
}

static int put_withdrawals(struct reading *r)
{
	static const struct {
		const char *name;
		enum shape shape;
	} fields[] = { { "index", QUANTITY }, { "validatorIndex", QUANTITY }, { "address", ADDRESS }, { "amount", QUANTITY } };
	const json_t *list = json_object_get(r->block, "withdrawals");

	if (r->ret->version < 2)
		return 0;
	if (!json_is_array(list))
		return bad(r->err, "list of withdrawals");
	json_open_array(r->out, "withdrawals");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_open_object(r->out, NULL);
		for (size_t k = 0; k < ARRAY_LEN(fields); k++) {
			const char *value = text_of(json_array_get(list, i), fields[k].name);

			if (!has_shape(value, fields[k].shape))
				return bad(r->err, "list of withdrawals");
			json_put_string(r->out, fields[k].name, value);
		}
		json_close(r->out);
	}
	json_close(r->out);
	return 0;
}

/* --- what stands beside the payload --- */

/* The hashes of all blobs, in the order of the transactions, and the root of the parent's beacon block. */
static int put_blobs(struct reading *r)
{
	const json_t *list = json_object_get(r->block, "transactions");
	const char *root = text_of(r->block, "parentBeaconBlockRoot");

	if (!hex_is(root, 32))
		return bad(r->err, "parentBeaconBlockRoot");
	json_open_array(r->out, NULL);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *blobs = json_object_get(json_array_get(list, i), "blobVersionedHashes");

		/* ethtx_put() has checked them, unless they are not of the transaction itself. */
		for (size_t k = 0; k < json_array_size(blobs); k++) {
			const char *hash = json_string_value(json_array_get(blobs, k));

			if (!hex_is(hash, 32))
				return bad(r->err, "list of blobs");
			json_put_string(r->out, NULL, hash);
		}
	}
	json_close(r->out);
	json_put_string(r->out, NULL, root);
	memcpy(r->ret->beacon_root, root, ENGINE_HASH);
	return 0;
}

/* JSON-RPC has only the hash of the block's requests. Where that is not the hash of an empty list, and the list is
 * nowhere to be had, the hash takes its place, which reth can be told to accept. */
static int put_requests(struct reading *r)
{
	const char *hash = text_of(r->block, "requestsHash");
	const json_t *list;
	int e = 0;

	if (!hex_is(hash, 32))
		return bad(r->err, "requestsHash");
	if (strcasecmp(hash, NO_REQUESTS))
		e = find_extra(r, ENGINE_REQUESTS, r->block, "executionRequests");
	if (e)
		return e;
	list = json_object_get(r->block, "executionRequests");
	r->ret->requests_by_hash = !list && strcasecmp(hash, NO_REQUESTS);
	if (r->ret->requests_by_hash) {
		json_put_string(r->out, NULL, hash);
		return 0;
	}
	if (list && !requests_match(list, hash))
		return err_set(r->err, EBADMSG, "the block's executionRequests are malformed, or do not have its requestsHash");
	json_open_array(r->out, NULL);
	for (size_t i = 0; i < json_array_size(list); i++)
		json_put_string(r->out, NULL, json_string_value(json_array_get(list, i)));
	json_close(r->out);
	return 0;
}

/* The list is not in a block of JSON-RPC; its hash is in the header. */
static int find_access_list(struct reading *r)
{
	const char *hash = text_of(r->block, "blockAccessListHash");
	_cleanup_(buf_done) struct buf bytes = { 0 }, wanted = { 0 };
	uint8_t sum[KECCAK_BYTES];
	int e;

	if (r->ret->version < 5)
		return 0;
	e = find_extra(r, ENGINE_ACCESS_LIST, r->block, "blockAccessList");
	if (e)
		return e;
	if (!has(r->block, "blockAccessList"))
		return err_set(r->err, ENOTSUP, "it is a block of Amsterdam, and its source has no block access list of it "
			       "(eth_getBlockAccessListRaw, debug_getRawBlockAccessList, or blockAccessList in the file)");
	if (!hash)
		return 0;
	if (!hex_take(text_of(r->block, "blockAccessList"), false, &bytes) || !hex_take(hash, false, &wanted))
		return bad(r->err, "blockAccessList");
	keccak256(bytes.data, bytes.n, sum);
	return wanted.n == sizeof(sum) && !memcmp(wanted.data, sum, sizeof(sum)) ? 0 :
	       err_set(r->err, EBADMSG, "the block's access list does not have its blockAccessListHash");
}

static int put_params(struct reading *r)
{
	struct json out = json_begin(&r->ret->params);
	int e;

	r->out = &out;
	json_open_array(&out, NULL);
	json_open_object(&out, NULL);
	e = put_members(r, payload_members, ARRAY_LEN(payload_members));
	if (!e)
		e = put_transactions(r);
	if (!e)
		e = put_withdrawals(r);
	if (!e)
		json_close(&out);
	if (!e && r->ret->version >= 3)
		e = put_blobs(r);
	if (!e && r->ret->version >= 4)
		e = put_requests(r);
	if (!e)
		json_end(&out);
	return e;
}

/* --- reth's own way: the block as RLP --- */

static int put_reth(struct reading *r)
{
	struct json out = json_begin(&r->ret->reth);
	_cleanup_(buf_done) struct buf rlp = { 0 }, text = { 0 };
	int e = 0;

	/* Bytes that came with the block go first. */
	if (!has(r->block, "rlp"))
		e = ethblock_put(r->block, &r->rlp, &rlp, r->err);
	if (e)
		e = find_extra(r, ENGINE_RLP, r->block, "rlp");
	if (e)
		return e;
	if (has(r->block, "rlp") && !hex_take(text_of(r->block, "rlp"), false, &rlp))
		return bad(r->err, "rlp");
	if (!rlp.n || !ethblock_has_hash(rlp.data, rlp.n, text_of(r->block, "hash")))
		return err_set(r->err, ENOTSUP, "its header has fields that are not known here, and its source does not give it as "
			       "RLP (debug_getRawBlock): --api engine sends it otherwise");
	hex_put(&text, rlp.data, rlp.n);
	if (r->ret->version < 5) {
		json_put_string(&out, NULL, text.data);
		return 0;
	}
	json_open_object(&out, NULL);
	json_put_string(&out, "block", text.data);
	json_put_string(&out, "bal", text_of(r->block, "blockAccessList"));
	json_end(&out);
	return 0;
}

/* --- attributes --- */

/* The fee parameters of the OP stack are in the extra data: of Holocene a zero and 8 bytes, of Jovian a one, these 8
 * bytes, and the least base fee. */
static void put_fee_parameters(struct reading *r)
{
	_cleanup_(buf_done) struct buf extra = { 0 }, text = { 0 };

	if (!hex_take(text_of(r->block, "extraData"), false, &extra) || (extra.n != 9 && extra.n != 17) ||
	    (uint8_t)extra.data[0] != (extra.n == 17))
		return;
	hex_put(&text, extra.data + 1, 8);
	json_put_string(r->out, "eip1559Params", text.data);
	if (extra.n == 17) {
		uint64_t fee = 0;

		for (int i = 9; i < 17; i++)
			fee = fee << 8 | (uint8_t)extra.data[i];
		text.n = 0;
		buf_printf(&text, "0x%llx", (unsigned long long)fee);
		json_put_string(r->out, "minBaseFee", text.data);
	}
}

static int put_attributes(struct reading *r)
{
	struct json out = json_begin(&r->ret->attributes);
	int e;

	r->out = &out;
	json_open_object(&out, NULL);
	e = put_members(r, attribute_members, ARRAY_LEN(attribute_members));
	if (!e)
		e = put_withdrawals(r);
	if (!e && r->ret->op) {
		json_put_bool(&out, "noTxPool", true);
		json_put_raw(&out, "transactions", r->ret->raw.data, r->ret->raw.n);
		put_fee_parameters(r);
	}
	if (!e)
		json_end(&out);
	return e;
}

/* --- the block --- */

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
		if (!hex_number(text_of(block, figures[i].name), figures[i].to) || *figures[i].to > INT64_MAX)
			return bad(err, figures[i].name);
	memcpy(ret->hash, text_of(block, "hash"), ENGINE_HASH);
	memcpy(ret->parent, text_of(block, "parentHash"), ENGINE_HASH);
	return 0;
}

static void put_line(struct buf *out, const json_t *block)
{
	char *line = json_dumps(block, JSON_COMPACT | JSON_PRESERVE_ORDER);

	buf_puts(out, line ? line : "");
	free(line);
}

int engine_block_read(json_t *block, const struct engine_reading *how, struct engine_block *ret, struct err *err)
{
	struct reading r = { .block = block, .how = how, .ret = ret, .err = err };
	int e;

	*ret = (struct engine_block){ 0 };
	if (!json_is_object(block))
		return err_set(err, EPROTO, "its answer is not a block");
	ret->version = version_of(block);
	ret->op = is_op(block);
	e = find_access_list(&r);
	if (!e)
		e = put_params(&r);
	if (!e && how->reth)
		e = put_reth(&r);
	if (!e && how->build)
		e = put_attributes(&r);
	if (!e)
		e = read_figures(block, ret, err);
	if (!e)
		put_line(&ret->line, block);
	buf_done(&r.rlp);
	return e;
}

void engine_block_done(struct engine_block *b)
{
	buf_done(&b->params);
	buf_done(&b->reth);
	buf_done(&b->attributes);
	buf_done(&b->raw);
	buf_done(&b->line);
}
