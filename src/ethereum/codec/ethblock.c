#include "ethereum/codec/ethblock.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/codec/keccak.h"
#include "ethereum/codec/rlp.h"

enum { REQUIRED = 15 }; /* of the first fields; a later one is there if its fork is */

/* The header, in the order of its encoding. */
static const struct {
	const char *name;
	bool number;
} fields[] = {
	{ "parentHash", false },	    { "sha3Uncles", false },	 { "miner", false },
	{ "stateRoot", false },		    { "transactionsRoot", false }, { "receiptsRoot", false },
	{ "logsBloom", false },		    { "difficulty", true },	 { "number", true },
	{ "gasLimit", true },		    { "gasUsed", true },	 { "timestamp", true },
	{ "extraData", false },		    { "mixHash", false },	 { "nonce", false },
	{ "baseFeePerGas", true },	    { "withdrawalsRoot", false }, { "blobGasUsed", true },
	{ "excessBlobGas", true },	    { "parentBeaconBlockRoot", false }, { "requestsHash", false },
	{ "blockAccessListHash", false },   { "slotNumber", true },
};

static bool put_field(struct buf *out, const json_t *value, bool number)
{
	_cleanup_(buf_done) struct buf bytes = { 0 };

	if (!hex_take(json_string_value(value), number, &bytes))
		return false;
	if (number)
		rlp_put_number(out, bytes.data, bytes.n);
	else
		rlp_put(out, bytes.data, bytes.n);
	return true;
}

static int put_header(struct buf *out, const json_t *block, struct err *err)
{
	_cleanup_(buf_done) struct buf items = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *value = json_object_get(block, fields[i].name);

		if (i >= REQUIRED && (!value || json_is_null(value)))
			break;
		if (!put_field(&items, value, fields[i].number))
			return err_set(err, EBADMSG, "the block's %s is missing or malformed", fields[i].name);
	}
	rlp_put_list(out, &items);
	return 0;
}

static int put_withdrawals(struct buf *out, const json_t *list, struct err *err)
{
	static const char *const names[] = { "index", "validatorIndex", "address", "amount" };
	_cleanup_(buf_done) struct buf items = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++) {
		_cleanup_(buf_done) struct buf one = { 0 };

		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (!put_field(&one, json_object_get(json_array_get(list, i), names[k]), k != 2))
				return err_set(err, EBADMSG, "the block's list of withdrawals is missing or malformed");
		rlp_put_list(&items, &one);
	}
	rlp_put_list(out, &items);
	return 0;
}

static bool is_keccak(const void *data, size_t n, const char *hash)
{
	_cleanup_(buf_done) struct buf wanted = { 0 };
	uint8_t sum[KECCAK_BYTES];

	if (!hex_take(hash, false, &wanted))
		return false;
	keccak256(data, n, sum);
	return wanted.n == sizeof(sum) && !memcmp(wanted.data, sum, sizeof(sum));
}

void ethblock_put_transaction(struct buf *out, const struct buf *raw)
{
	if (raw->n && (uint8_t)raw->data[0] >= 0xc0)
		buf_add(out, raw->data, raw->n);
	else
		rlp_put(out, raw->data, raw->n);
}

int ethblock_put(const json_t *block, const struct buf *transactions, struct buf *out, struct err *err)
{
	const json_t *withdrawals = json_object_get(block, "withdrawals");
	_cleanup_(buf_done) struct buf items = { 0 }, none = { 0 };
	int e = put_header(&items, block, err);

	if (e)
		return e;
	if (!is_keccak(items.data, items.n, json_string_value(json_object_get(block, "hash"))))
		return err_set(err, EBADMSG, "its hash is not that of its fields");
	rlp_put_list(&items, transactions);
	rlp_put_list(&items, &none);
	if (json_is_array(withdrawals))
		e = put_withdrawals(&items, withdrawals, err);
	if (!e)
		rlp_put_list(out, &items);
	return e;
}

/* The list at the beginning of the bytes: where its items are; false: there is none, or it is cut. */
static bool enter_list(const uint8_t **p, size_t *n)
{
	size_t length, bytes;

	if (!*n || **p < 0xc0)
		return false;
	bytes = **p > 0xf7 ? **p - 0xf7 : 0;
	length = bytes ? 0 : **p - 0xc0;
	if (bytes + 1 > *n || bytes > sizeof(length) - 1)
		return false;
	for (size_t i = 1; i <= bytes; i++)
		length = length << 8 | (*p)[i];
	*p += 1 + bytes;
	*n -= 1 + bytes;
	if (length > *n)
		return false;
	*n = length;
	return true;
}

bool ethblock_has_hash(const void *rlp, size_t n, const char *hash)
{
	const uint8_t *p = rlp, *header;
	size_t left = n;

	if (!enter_list(&p, &left))
		return false;
	header = p;
	return enter_list(&p, &left) && is_keccak(header, p + left - header, hash);
}
