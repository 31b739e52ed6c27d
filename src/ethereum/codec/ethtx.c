#include "ethereum/codec/ethtx.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/codec/keccak.h"
#include "ethereum/codec/rlp.h"

enum { FIELDS_MAX = 15, LEGACY = 0 };

enum kind {
	NUMBER,
	BYTES,
	ADDRESS, /* null where a contract is made */
	FLAG,
	ACCESS_LIST,
	HASHES,
	AUTHORIZATIONS,
};

struct field {
	const char *name, *other; /* other: what some clients call it */
	enum kind kind;
};

#define NONCE { "nonce", NULL, NUMBER }
#define CHAIN { "chainId", NULL, NUMBER }
#define PRICE { "gasPrice", NULL, NUMBER }
#define TIP { "maxPriorityFeePerGas", NULL, NUMBER }
#define FEE { "maxFeePerGas", NULL, NUMBER }
#define GAS { "gas", "gasLimit", NUMBER }
#define TO { "to", NULL, ADDRESS }
#define VALUE { "value", NULL, NUMBER }
#define INPUT { "input", "data", BYTES }
#define ACCESS { "accessList", NULL, ACCESS_LIST }
#define SIGNATURE { "yParity", "v", NUMBER }, { "r", NULL, NUMBER }, { "s", NULL, NUMBER }

static const struct type {
	unsigned number;
	struct field fields[FIELDS_MAX];
} types[] = {
	{ LEGACY, { NONCE, PRICE, GAS, TO, VALUE, INPUT, { "v", NULL, NUMBER }, { "r", NULL, NUMBER }, { "s", NULL, NUMBER } } },
	{ 1, { CHAIN, NONCE, PRICE, GAS, TO, VALUE, INPUT, ACCESS, SIGNATURE } },   /* EIP-2930 */
	{ 2, { CHAIN, NONCE, TIP, FEE, GAS, TO, VALUE, INPUT, ACCESS, SIGNATURE } }, /* EIP-1559 */
	{ 3, { CHAIN, NONCE, TIP, FEE, GAS, TO, VALUE, INPUT, ACCESS, { "maxFeePerBlobGas", NULL, NUMBER },
	       { "blobVersionedHashes", NULL, HASHES }, SIGNATURE } },               /* EIP-4844 */
	{ 4, { CHAIN, NONCE, TIP, FEE, GAS, TO, VALUE, INPUT, ACCESS, { "authorizationList", NULL, AUTHORIZATIONS },
	       SIGNATURE } },                                                        /* EIP-7702 */
	{ 0x7e, { { "sourceHash", NULL, BYTES }, { "from", NULL, ADDRESS }, TO, { "mint", NULL, NUMBER }, VALUE, GAS,
		  { "isSystemTx", NULL, FLAG }, INPUT } },                           /* a deposit of the OP stack */
};

static const struct field authorization[] = {
	CHAIN, { "address", NULL, ADDRESS }, NONCE, SIGNATURE, { 0 },
};

static int missing(struct err *err, const char *name)
{
	return err_set(err, EBADMSG, "its %s is missing or malformed", name);
}

static int put_fields(struct buf *out, const json_t *from, const struct field *fields, struct err *err);

static int put_bytes(struct buf *out, const json_t *value, enum kind kind)
{
	_cleanup_(buf_done) struct buf bytes = { 0 };

	if (!hex_take(json_string_value(value), kind == NUMBER, &bytes))
		return -EBADMSG;
	if (kind == ADDRESS && bytes.n != 20)
		return -EBADMSG;
	if (kind == NUMBER)
		rlp_put_number(out, bytes.data, bytes.n);
	else
		rlp_put(out, bytes.data, bytes.n);
	return 0;
}

static int put_hashes(struct buf *out, const json_t *list)
{
	_cleanup_(buf_done) struct buf items = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++)
		if (!hex_is(json_string_value(json_array_get(list, i)), 32) ||
		    put_bytes(&items, json_array_get(list, i), BYTES))
			return -EBADMSG;
	rlp_put_list(out, &items);
	return 0;
}

static int put_access_list(struct buf *out, const json_t *list)
{
	_cleanup_(buf_done) struct buf items = { 0 };
	int e = 0;

	for (size_t i = 0; i < json_array_size(list) && !e; i++) {
		_cleanup_(buf_done) struct buf item = { 0 };
		const json_t *entry = json_array_get(list, i);

		e = put_bytes(&item, json_object_get(entry, "address"), ADDRESS);
		if (!e)
			e = put_hashes(&item, json_object_get(entry, "storageKeys"));
		if (!e)
			rlp_put_list(&items, &item);
	}
	if (!e)
		rlp_put_list(out, &items);
	return e;
}

static int put_authorizations(struct buf *out, const json_t *list, struct err *err)
{
	_cleanup_(buf_done) struct buf items = { 0 };
	int e = 0;

	for (size_t i = 0; i < json_array_size(list) && !e; i++) {
		_cleanup_(buf_done) struct buf item = { 0 };

		e = put_fields(&item, json_array_get(list, i), authorization, err);
		if (!e)
			rlp_put_list(&items, &item);
	}
	if (!e)
		rlp_put_list(out, &items);
	return e;
}

static int put_field(struct buf *out, const json_t *value, enum kind kind, struct err *err)
{
	bool absent = !value || json_is_null(value);

	switch (kind) {
	case NUMBER:
	case BYTES:
		return put_bytes(out, value, kind);
	case ADDRESS:
		if (!absent)
			return put_bytes(out, value, kind);
		rlp_put(out, NULL, 0);
		return 0;
	case FLAG:
		rlp_put_number(out, "\1", json_is_true(value) ? 1 : 0);
		return 0;
	case ACCESS_LIST:
		return put_access_list(out, value);
	case HASHES:
		return put_hashes(out, value);
	case AUTHORIZATIONS:
		return put_authorizations(out, value, err);
	}
	return -EBADMSG;
}

static int put_fields(struct buf *out, const json_t *from, const struct field *fields, struct err *err)
{
	int e = 0;

	for (const struct field *f = fields; f->name && !e; f++) {
		const json_t *value = json_object_get(from, f->name);

		if (!value && f->other)
			value = json_object_get(from, f->other);
		/* A deposit that mints nothing has no such field, or null. */
		if ((!value || json_is_null(value)) && !strcmp(f->name, "mint"))
			rlp_put(out, NULL, 0);
		else if (put_field(out, value, f->kind, err))
			e = missing(err, f->name);
	}
	return e;
}

static bool has_hash(const json_t *transaction, const struct buf *raw)
{
	_cleanup_(buf_done) struct buf wanted = { 0 };
	uint8_t hash[KECCAK_BYTES];

	if (!hex_take(json_string_value(json_object_get(transaction, "hash")), false, &wanted))
		return false;
	keccak256(raw->data, raw->n, hash);
	return wanted.n == sizeof(hash) && !memcmp(wanted.data, hash, sizeof(hash));
}

static int encode(const json_t *transaction, struct buf *out, struct err *err)
{
	const char *text = json_string_value(json_object_get(transaction, "type"));
	_cleanup_(buf_done) struct buf fields = { 0 };
	uint64_t number = LEGACY;
	int e;

	if (text && !hex_number(text, &number))
		return missing(err, "type");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (types[i].number != number)
			continue;
		e = put_fields(&fields, transaction, types[i].fields, err);
		if (e)
			return e;
		if (number != LEGACY)
			buf_putc(out, number);
		rlp_put_list(out, &fields);
		return 0;
	}
	return err_set(err, ENOTSUP, "its type 0x%llx is not known here", (unsigned long long)number);
}

int ethtx_put(const json_t *transaction, struct buf *out, struct err *err)
{
	const char *raw = json_string_value(json_object_get(transaction, "raw"));
	_cleanup_(buf_done) struct buf made = { 0 };
	int e = 0;

	if (!json_is_object(transaction))
		return err_set(err, EBADMSG, "it is not there in full (ask for blocks with full transactions)");
	if (!raw)
		e = encode(transaction, &made, err);
	else if (!hex_take(raw, false, &made))
		e = missing(err, "raw");
	if (e)
		return e;
	if (!made.n || !has_hash(transaction, &made))
		return err_set(err, EBADMSG, "its hash is not that of its fields");
	buf_add(out, made.data, made.n);
	return 0;
}
