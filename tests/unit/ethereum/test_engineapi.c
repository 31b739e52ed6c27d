/*
 * test_engineapi.c - Keccak, SHA-256, tokens, RLP, transactions, payloads, and what a node answers.
 *
 * Hashes are those of the standards' own examples. The transactions were signed and serialized by @ethereumjs/tx 10.0.0, one of
 * each type; the blocks are built from them here.
 */
#include <errno.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "ethereum/engine/engineapi.h"
#include "ethereum/codec/ethblock.h"
#include "ethereum/codec/ethtx.h"
#include "ethereum/codec/hex.h"
#include "ethereum/engine/jwt.h"
#include "ethereum/codec/keccak.h"
#include "ethereum/codec/rlp.h"
#include "ethereum/engine/requests.h"
#include "ethereum/rpccall.h"
#include "test.h"

static void assert_hex(const void *data, size_t n, const char *wanted)
{
	struct buf b = { 0 };

	hex_put(&b, data, n);
	assert_string_equal(b.data + 2, wanted);
	buf_done(&b);
}

static void test_hex(void **state)
{
	static const char *const bad[] = { "", "0", "12", "0x1g", "x12", "0X12", "0x12 ", "0x1" };
	struct buf b = { 0 };
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(hex_take(bad[i], false, &b));
	assert_false(hex_take(NULL, true, &b));
	assert_int_equal(b.n, 0);
	assert_true(hex_take("0x123", true, &b));
	assert_true(hex_take("0xaBff", false, &b));
	assert_true(hex_take("0x", false, &b));
	assert_hex(b.data, b.n, "0123abff");
	assert_true(hex_number("0xffffffffffffffff", &n) && n == UINT64_MAX);
	assert_true(hex_number("0x0", &n) && n == 0);
	assert_false(hex_number("0x", &n) || hex_number("0x10000000000000000", &n) || hex_number("17", &n));
	assert_true(hex_is("0xab", 1));
	assert_false(hex_is("0xa", 1) || hex_is("0xabc", 1) || hex_is(NULL, 1));
	buf_done(&b);
}

static void test_hashes(void **state)
{
	static const struct {
		size_t repeat;
		const char *text, *keccak, *sha;
	} list[] = {
		{ 0, "", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ 1, "abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ 1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "45d3b367a6904e6e8d502ee04999a7c27647f91fa845d456525fd352ae3d7371",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ 1000000, "a", "fadae6b49f129bbb812be8407b7b2894f34aecf6dbd1f9b0f0c7e9853098fc96",
		  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct buf b = { 0 };
		uint8_t hash[32];

		for (size_t k = 0; k < list[i].repeat; k++)
			buf_puts(&b, list[i].text);
		keccak256(b.data, b.n, hash);
		assert_hex(hash, sizeof(hash), list[i].keccak);
		sha256(b.data, b.n, hash);
		assert_hex(hash, sizeof(hash), list[i].sha);
		buf_done(&b);
	}
}

static void test_token(void **state)
{
	/* Of RFC 4231: cases 1 and 2. */
	uint8_t key[20], sum[SHA256_BYTES], secret[JWT_SECRET_BYTES];
	struct buf b = { 0 };

	memset(key, 0x0b, sizeof(key));
	hmac_sha256(key, sizeof(key), "Hi There", 8, sum);
	assert_hex(sum, sizeof(sum), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, sum);
	assert_hex(sum, sizeof(sum), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	/* Against Python's hmac and base64. */
	memset(secret, 0x11, sizeof(secret));
	jwt_put(&b, secret, 1700000000);
	assert_string_equal(b.data, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
				    ".eyJpYXQiOjE3MDAwMDAwMDB9"
				    ".Hb09lNHg9IiC1UttHzXRW1voUqjM97m4oEuKWkSux5g");
	buf_done(&b);
}

static void test_secret(void **state)
{
#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
	static const char *const good[] = { DIGITS, ("0x" DIGITS), (DIGITS "\n"), (" \t0x" DIGITS "\r\n") };
	static const char *const bad[] = { "", "\n", "0x", (DIGITS "0"), (DIGITS DIGITS), ("0x" DIGITS " 1"), ("g" DIGITS) };
	uint8_t secret[JWT_SECRET_BYTES];
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		memset(secret, 0, sizeof(secret));
		assert_int_equal(jwt_parse_secret(good[i], strlen(good[i]), secret), 0);
		assert_hex(secret, sizeof(secret), "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(jwt_parse_secret(bad[i], strlen(bad[i]), secret), -EINVAL);
	assert_int_equal(jwt_read_secret("/nonexistent", secret, &err), -ENOENT);
	assert_int_equal(jwt_read_secret("/proc/self/comm", secret, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "64 hexadecimal"));
}

static void test_rlp(void **state)
{
	struct buf out = { 0 }, list = { 0 };
	char text[1024];

	memset(text, 'x', sizeof(text));
	rlp_put(&out, "", 0);
	rlp_put(&out, "\x7f", 1);
	rlp_put(&out, "\x80", 1);
	rlp_put(&out, "dog", 3);
	rlp_put_number(&out, "\0\0\x04\0", 4);
	rlp_put_number(&out, "\0\0", 2);
	rlp_put_list(&out, &list);
	rlp_put(&list, "cat", 3);
	rlp_put(&list, "dog", 3);
	rlp_put_list(&out, &list);
	assert_hex(out.data, out.n, "807f818083646f6782040080c0c88363617483646f67");
	for (size_t n = 55; n <= 56; n++) {
		out.n = 0;
		rlp_put(&out, text, n);
		assert_hex(out.data, 2, n == 55 ? "b778" : "b838");
	}
	out.n = list.n = 0;
	rlp_put(&list, text, sizeof(text));
	rlp_put_list(&out, &list);
	assert_hex(out.data, 7, "f90403b9040078");
	buf_done(&out);
	buf_done(&list);
}

/* --- transactions --- */

static json_t *read_transactions(void)
{
	json_t *list = json_array();
	char *text, *save = NULL;
	size_t n;

	assert_int_equal(fd_read_path(TRANSACTIONS, 1 << 20, &text, &n), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		json_array_append_new(list, json_loads(line, 0, NULL));
	free(text);
	return list;
}

static void test_transactions(void **state)
{
	json_t *list = read_transactions();

	assert_int_equal(json_array_size(list), 6);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *t = json_array_get(list, i);
		char *wanted = mem_strdup(json_string_value(json_object_get(t, "raw")));
		struct buf raw = { 0 };
		struct err err = { 0 };

		/* From the fields, then as it stands. */
		json_object_del(t, "raw");
		if (ethtx_put(t, &raw, &err))
			fail_msg("transaction %zu: %s", i, err.text);
		assert_hex(raw.data, raw.n, wanted + 2);
		json_object_set_new(t, "raw", json_string(wanted));
		raw.n = 0;
		assert_int_equal(ethtx_put(t, &raw, &err), 0);
		assert_hex(raw.data, raw.n, wanted + 2);
		/* A field that was changed is found out. */
		json_object_del(t, "raw");
		json_object_set_new(t, "nonce", json_string("0x1234"));
		assert_int_equal(ethtx_put(t, &raw, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "hash"));
		json_object_del(t, "nonce");
		assert_int_equal(ethtx_put(t, &raw, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "nonce"));
		json_object_set_new(t, "type", json_string("0x55"));
		assert_int_equal(ethtx_put(t, &raw, &err), -ENOTSUP);
		buf_done(&raw);
		free(wanted);
	}
	json_decref(list);
}

/* --- blocks --- */

#define HASH(c) "0x" c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c
#define NO_REQUESTS "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A block of that version, with all transactions of the file. */
static json_t *make_block(unsigned version)
{
	json_t *b = json_object(), *list = read_transactions(), *one;
	char bloom[515] = "0x";

	memset(bloom + 2, '0', 512);
	json_object_set_new(b, "number", json_string("0x10"));
	json_object_set_new(b, "hash", json_string(HASH("aa")));
	json_object_set_new(b, "parentHash", json_string(HASH("bb")));
	json_object_set_new(b, "miner", json_string("0xcccccccccccccccccccccccccccccccccccccccc"));
	json_object_set_new(b, "stateRoot", json_string(HASH("01")));
	json_object_set_new(b, "receiptsRoot", json_string(HASH("02")));
	json_object_set_new(b, "mixHash", json_string(HASH("03")));
	json_object_set_new(b, "logsBloom", json_string(bloom));
	json_object_set_new(b, "gasLimit", json_string("0x1c9c380"));
	json_object_set_new(b, "gasUsed", json_string("0x5208"));
	json_object_set_new(b, "timestamp", json_string("0x65000000"));
	json_object_set_new(b, "extraData", json_string("0x"));
	json_object_set_new(b, "baseFeePerGas", json_string("0x7"));
	json_object_set_new(b, "transactions", list);
	for (size_t i = 0; i < json_array_size(list); i++)
		json_object_del(json_array_get(list, i), "raw");
	if (version >= 2) {
		json_object_set_new(b, "withdrawals", json_array());
		one = json_pack("{ssssssss}", "index", "0x1", "validatorIndex", "0x2", "address",
				"0xdddddddddddddddddddddddddddddddddddddddd", "amount", "0x3");
		json_array_append_new(json_object_get(b, "withdrawals"), one);
	}
	if (version >= 3) {
		json_object_set_new(b, "parentBeaconBlockRoot", json_string(HASH("04")));
		json_object_set_new(b, "blobGasUsed", json_string("0x20000"));
		json_object_set_new(b, "excessBlobGas", json_string("0x0"));
	}
	if (version >= 4)
		json_object_set_new(b, "requestsHash", json_string(NO_REQUESTS));
	if (version >= 5) {
		json_object_set_new(b, "slotNumber", json_string("0x2a"));
		json_object_set_new(b, "blockAccessList", json_string("0xc0"));
		/* keccak256 of the empty list */
		json_object_set_new(b, "blockAccessListHash",
				    json_string("0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"));
	}
	return b;
}

static int read_block(const json_t *block, engine_extra_fn *extra, struct engine_block *ret, struct err *err)
{
	const struct engine_reading how = { .extra = extra };
	json_t *copy = json_deep_copy(block);
	int e = engine_block_read(copy, &how, ret, err);

	json_decref(copy);
	return e;
}

static int read_line(const struct buf *line, struct engine_block *ret, struct err *err)
{
	json_t *block = json_loadb(line->data, line->n, 0, NULL);
	int e = read_block(block, NULL, ret, err);

	json_decref(block);
	return e;
}

static void test_versions(void **state)
{
	for (unsigned version = 1; version <= 5; version++) {
		json_t *block = make_block(version), *params;
		struct engine_block b, again;
		struct err err = { 0 };
		const json_t *payload;

		if (read_block(block, NULL, &b, &err))
			fail_msg("version %u: %s", version, err.text);
		assert_int_equal(b.version, version);
		assert_int_equal(b.number, 16);
		assert_int_equal(b.gas_used, 21000);
		assert_int_equal(b.gas_limit, 30000000);
		assert_int_equal(b.transactions, 6);
		assert_string_equal(b.hash, HASH("aa"));
		assert_string_equal(b.parent, HASH("bb"));
		assert_false(b.requests_by_hash);
		params = json_loads(b.params.data, 0, NULL);
		assert_int_equal(json_array_size(params), version < 3 ? 1 : MIN(version, 4U));
		payload = json_array_get(params, 0);
		assert_int_equal(json_object_size(payload), 14 + (version >= 2) + 2 * (version >= 3) + 2 * (version >= 5));
		if (version == 5) {
			assert_string_equal(json_string_value(json_object_get(payload, "slotNumber")), "0x2a");
			assert_string_equal(json_string_value(json_object_get(payload, "blockAccessList")), "0xc0");
		}
		assert_string_equal(json_string_value(json_object_get(payload, "feeRecipient")),
				    "0xcccccccccccccccccccccccccccccccccccccccc");
		assert_string_equal(json_string_value(json_object_get(payload, "prevRandao")), HASH("03"));
		assert_int_equal(json_array_size(json_object_get(payload, "transactions")), 6);
		if (version >= 3) {
			assert_int_equal(json_array_size(json_array_get(params, 1)), 2); /* blobs */
			assert_string_equal(json_string_value(json_array_get(params, 2)), HASH("04"));
		}
		if (version >= 4)
			assert_int_equal(json_array_size(json_array_get(params, 3)), 0);
		/* What is saved is read again as the same. */
		assert_int_equal(read_line(&b.line, &again, &err), 0);
		assert_string_equal(again.params.data, b.params.data);
		assert_null(strchr(b.line.data, '\n'));
		engine_block_done(&again);
		engine_block_done(&b);
		json_decref(params);
		json_decref(block);
	}
	assert_int_equal(engine_choice_version(1), 1);
	assert_int_equal(engine_choice_version(2), 2);
	assert_int_equal(engine_choice_version(4), 3);
	assert_int_equal(engine_choice_version(5), 4);
}

/* sha256(sha256(0x00 01) sha256(0x01 02)), by Python. */
#define TWO_REQUESTS "0x887c0f6ea1f24b84e4fa92c176cedf0fd97ef78c64bd7f4f2562ebb8b71b3995"

static int give_requests(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err)
{
	if (what == ENGINE_REQUESTS)
		*ret = json_pack("[ss]", "0x0001", "0x0102");
	return 0;
}

static int give_nothing(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err)
{
	return what == ENGINE_REQUESTS ? err_set(err, EIO, "no consensus client") : 0;
}

static void test_requests(void **state)
{
	json_t *block = make_block(4), *params;
	struct engine_block b;
	struct err err = { 0 };

	json_object_set_new(block, "requestsHash", json_string(TWO_REQUESTS));
	assert_int_equal(read_block(block, NULL, &b, NULL), 0);
	assert_true(b.requests_by_hash);
	params = json_loads(b.params.data, 0, NULL);
	assert_string_equal(json_string_value(json_array_get(params, 3)), TWO_REQUESTS);
	json_decref(params);
	engine_block_done(&b);
	/* From elsewhere; then they are in the line that is saved. */
	assert_int_equal(read_block(block, give_requests, &b, NULL), 0);
	assert_false(b.requests_by_hash);
	assert_non_null(strstr(b.line.data, "\"executionRequests\":[\"0x0001\",\"0x0102\"]"));
	params = json_loads(b.params.data, 0, NULL);
	assert_string_equal(json_string_value(json_array_get(json_array_get(params, 3), 1)), "0x0102");
	json_decref(params);
	engine_block_done(&b);
	assert_int_equal(read_block(block, give_nothing, &b, &err), -EIO);
	engine_block_done(&b);
	/* Those of the file are checked, too: another order, another byte, an empty one. */
	for (int i = 0; i < 4; i++) {
		json_object_set_new(block, "executionRequests",
				    i == 0 ? json_pack("[ss]", "0x0001", "0x0102") : i == 1 ? json_pack("[ss]", "0x0102", "0x0001") :
				    i == 2 ? json_pack("[ss]", "0x0001", "0x0103") : json_pack("[sss]", "0x0001", "0x0102", "0x02"));
		assert_int_equal(read_block(block, NULL, &b, NULL), i ? -EBADMSG : 0);
		assert_false(b.requests_by_hash);
		engine_block_done(&b);
	}
	json_decref(block);
}

/* As a consensus client has them; the bytes were put together by hand. */
static void test_beacon_requests(void **state)
{
	json_t *list, *have = json_pack("{s:[],s:[{s:s,s:s,s:s}],s:[]}", "deposits", "withdrawals", "source_address",
					"0x1111111111111111111111111111111111111111", "validator_pubkey",
					"0x" "22222222222222222222222222222222222222222222222222222222222222222222222222222222"
					"2222222222222222", "amount", "513", "consolidations");

	list = requests_encode(have);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(json_array_get(list, 0)),
			    "0x011111111111111111111111111111111111111111"
			    "222222222222222222222222222222222222222222222222222222222222222222222222222222222222222222222222"
			    "0102000000000000");
	json_decref(list);
	json_object_set_new(json_array_get(json_object_get(have, "withdrawals"), 0), "amount", json_string("18446744073709551616"));
	assert_null(requests_encode(have));
	json_object_set_new(json_array_get(json_object_get(have, "withdrawals"), 0), "amount", json_string("-1"));
	assert_null(requests_encode(have));
	json_decref(have);
	list = requests_encode(NULL);
	assert_int_equal(json_array_size(list), 0);
	assert_true(requests_match(list, NO_REQUESTS));
	json_decref(list);
}

/* Hashed by tests/system/blocks/ethspec.py. */
static const char deposit_text[] =
		"{\"type\":\"0x7e\",\"sourceHash\":\"0x06d227dea01cb83881ddec19501e3f4ed4a0f835fa61d8be7d23dbf7a22"
		"12225\",\"from\":\"0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001\",\"to\":\"0x42000000000000000000000"
		"00000000000000015\",\"value\":\"0x0\",\"gas\":\"0xf4240\",\"isSystemTx\":false,\"input\":\"0x782ce8244c5"
		"0389369b48901abf9650f010d70f3c8c8f3217f3aa1b56481ef28782ce8244c50389369b48901abf9650f010d7"
		"0f3c8c8f3217f3aa1b56481ef28782ce8244c50389369b48901abf9650f010d70f3c8c8f3217f3aa1b56481ef2"
		"8\",\"hash\":\"0x96055106ce9b83d15de49e7b6edfaa4cc2adbf6d04d826a2bf7e4ec4bcc1a59d\",\"nonce\":\"0x"
		"1\"}";

/* A block of the OP stack: the payload of Isthmus has the withdrawalsRoot, that of Ecotone has not. */
static void test_op(void **state)
{
	for (unsigned version = 3; version <= 4; version++) {
		json_t *block = make_block(version), *list = json_object_get(block, "transactions"), *params, *attributes;
		const struct engine_reading how = { .build = true };
		struct engine_block b;
		struct err err = { 0 };

		json_array_insert_new(list, 0, json_loads(deposit_text, 0, NULL));
		if (version == 4)
			json_object_set_new(json_array_get(list, 0), "mint", json_null());
		json_object_set_new(block, "withdrawalsRoot", json_string(HASH("0e")));
		json_object_set_new(block, "extraData", json_string(version == 3 ? "0x00000000fa00000006" :
								     "0x01000000fa000000060000000000000064"));
		if (engine_block_read(block, &how, &b, &err))
			fail_msg("%s", err.text);
		assert_true(b.op);
		params = json_loads(b.params.data, 0, NULL);
		if (version == 4)
			assert_string_equal(json_string_value(json_object_get(json_array_get(params, 0), "withdrawalsRoot")), HASH("0e"));
		else
			assert_null(json_object_get(json_array_get(params, 0), "withdrawalsRoot"));
		attributes = json_loads(b.attributes.data, 0, NULL);
		assert_true(json_is_true(json_object_get(attributes, "noTxPool")));
		assert_int_equal(json_array_size(json_object_get(attributes, "transactions")), 7);
		assert_string_equal(json_string_value(json_object_get(attributes, "gasLimit")), "0x1c9c380");
		assert_string_equal(json_string_value(json_object_get(attributes, "eip1559Params")), "0x000000fa00000006");
		assert_string_equal(json_string_value(json_object_get(attributes, "parentBeaconBlockRoot")), HASH("04"));
		if (version == 4)
			assert_string_equal(json_string_value(json_object_get(attributes, "minBaseFee")), "0x64");
		else
			assert_null(json_object_get(attributes, "minBaseFee"));
		json_decref(attributes);
		json_decref(params);
		engine_block_done(&b);
		json_object_del(block, "withdrawalsRoot");
		assert_int_equal(read_block(block, NULL, &b, &err), version == 4 ? -EBADMSG : 0);
		engine_block_done(&b);
		json_decref(block);
	}
}

/* Blocks of a real client are encoded as their hashes say; one whose hash is another is not sent. */
static void test_rlp_block(void **state)
{
	const struct engine_reading how = { .reth = true };
	struct engine_block b;
	struct err err = { 0 };
	json_t *block;
	char *text;
	size_t n;

	assert_int_equal(fd_read_path(BLOCK, 1 << 20, &text, &n), 0);
	block = json_loadb(text, n, 0, NULL);
	if (engine_block_read(block, &how, &b, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strncmp(b.reth.data, "\"0xf9", 5), 0);
	engine_block_done(&b);
	json_object_set_new(block, "difficulty", json_string("0x1"));
	assert_int_equal(engine_block_read(block, &how, &b, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "--api engine"));
	engine_block_done(&b);
	json_decref(block);
	free(text);
	assert_false(ethblock_has_hash("", 0, HASH("00")) || ethblock_has_hash("\xc0", 1, HASH("00")) ||
		     ethblock_has_hash("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, HASH("00")) ||
		     ethblock_has_hash("\xc2\xc5", 2, HASH("00")));
}

static void test_access_list(void **state)
{
	json_t *block = make_block(5);
	struct engine_block b;
	struct err err = { 0 };

	json_object_set_new(block, "blockAccessList", json_string("0xc1c0"));
	assert_int_equal(read_block(block, NULL, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "blockAccessListHash"));
	engine_block_done(&b);
	json_object_del(block, "blockAccessList");
	assert_int_equal(read_block(block, NULL, &b, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "debug_getRawBlockAccessList"));
	engine_block_done(&b);
	json_decref(block);
}

/* Each field that is missing, or of another kind, is named. */
static void test_bad_blocks(void **state)
{
	json_t *whole = make_block(4), *value;
	const char *key;

	json_object_foreach(whole, key, value) {
		static const char *const garbage[] = { NULL, "0x", "0xzz", "17", "0x1111111111111111111111111111111111111111111111111111111111111111111111" };

		for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
			json_t *block = json_deep_copy(whole);
			struct engine_block b;
			struct err err = { 0 };
			int e;

			if (!garbage[i])
				json_object_set_new(block, key, json_integer(17));
			else
				json_object_set_new(block, key, json_string(garbage[i]));
			e = read_block(block, NULL, &b, &err);
			if (!strcmp(key, "extraData") && garbage[i] && i != 2 && i != 3) {
				assert_int_equal(e, 0);
			} else {
				assert_int_equal(e, -EBADMSG);
				assert_true(*err.text);
			}
			engine_block_done(&b);
			json_decref(block);
		}
	}
	json_decref(whole);
}

static int give_raw(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err)
{
	json_t *list = read_transactions();

	for (size_t i = 0; what == ENGINE_TRANSACTION && i < json_array_size(list); i++)
		if (json_equal(json_object_get(of, "hash"), json_object_get(json_array_get(list, i), "hash")))
			*ret = json_incref(json_object_get(json_array_get(list, i), "raw"));
	json_decref(list);
	return 0;
}

/* A transaction of tomorrow is asked for as bytes, and is in the file that is saved. */
static void test_raw(void **state)
{
	json_t *block = make_block(2), *first = json_array_get(json_object_get(block, "transactions"), 0), *saved;
	struct engine_block b, plain;
	struct err err = { 0 };

	assert_int_equal(read_block(block, NULL, &plain, NULL), 0);
	json_object_set_new(first, "type", json_string("0x66"));
	assert_int_equal(read_block(block, NULL, &b, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "0x66"));
	engine_block_done(&b);
	assert_int_equal(read_block(block, give_raw, &b, &err), 0);
	assert_string_equal(b.params.data, plain.params.data);
	saved = json_loads(b.line.data, 0, NULL);
	assert_non_null(json_object_get(json_array_get(json_object_get(saved, "transactions"), 0), "raw"));
	json_decref(saved);
	engine_block_done(&b);
	engine_block_done(&plain);
	json_decref(block);
}

static int read_status(const char *text, struct engine_status *ret, struct err *err)
{
	json_t *result = NULL;
	int e = rpccall_parse(text, strlen(text), 7, &result, NULL, err);

	if (!e)
		e = engine_status_read(result, ret, err);
	json_decref(result);
	return e;
}

static void test_answers(void **state)
{
#define ID "{\"jsonrpc\":\"2.0\",\"id\":7,"
	static const struct {
		const char *text;
		int e;
		enum engine_word word;
		const char *said;
	} list[] = {
		{ ID "\"result\":{\"status\":\"VALID\",\"latestValidHash\":\"" HASH("aa") "\",\"validationError\":null}}", 0, ENGINE_VALID },
		{ ID "\"result\":{\"payloadStatus\":{\"status\":\"SYNCING\",\"latestValidHash\":null},\"payloadId\":null}}", 0, ENGINE_SYNCING },
		{ ID "\"result\":{\"status\":\"ACCEPTED\"}}", 0, ENGINE_ACCEPTED },
		{ ID "\"result\":{\"status\":\"INVALID\",\"validationError\":\"bad \\u001b[31mroot\"}}", 0, ENGINE_INVALID },
		{ ID "\"result\":{\"status\":\"INVALID_BLOCK_HASH\"}}", 0, ENGINE_INVALID_HASH },
		{ ID "\"result\":{\"status\":\"MAYBE\"}}", -EPROTO, 0, "status" },
		{ ID "\"result\":null}", -EPROTO, 0, "status" },
		{ ID "\"result\":[]}", -EPROTO, 0, "status" },
		{ ID "\"x\":1}", -EPROTO, 0, "no result" },
		{ "{\"id\":8,\"result\":{\"status\":\"VALID\"}}", -EPROTO, 0, "another request" },
		{ "{\"id\":\"7\",\"result\":{\"status\":\"VALID\"}}", -EPROTO, 0, "another request" },
		{ "{\"result\":{\"status\":\"VALID\"}}", -EPROTO, 0, "another request" },
		{ "", -EPROTO, 0, "empty" },
		{ " <html>", -EPROTO, 0, "page" },
		{ ID "\"result\":{\"status\":\"VAL", -EPROTO, 0, "ends in the middle" },
		{ "[1]", -EPROTO, 0, "not JSON-RPC" },
		{ "VALID", -EPROTO, 0, "not JSON-RPC" },
		{ ID "\"error\":{\"code\":-38005,\"message\":\"Unsupported fork\"}}", -EREMOTEIO, 0, "Unsupported fork (-38005)" },
		{ "{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}", -EREMOTEIO, 0, "(-32700)" },
		{ ID "\"error\":17}", -EREMOTEIO, 0, "an error" },
	};
	struct engine_status s;
	long long code;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct err err = { 0 };

		assert_int_equal(read_status(list[i].text, &s, &err), list[i].e);
		if (!list[i].e)
			assert_int_equal(s.word, list[i].word);
		else if (!strstr(err.text, list[i].said))
			fail_msg("%s: %s", list[i].text, err.text);
		if (i == 3)
			assert_string_equal(s.error, "bad  [31mroot");
	}
	assert_int_equal(rpccall_parse(list[17].text, strlen(list[17].text), 7, NULL, &code, NULL), -EREMOTEIO);
	assert_int_equal(code, RPC_UNSUPPORTED_FORK);
	/* What reth says more, and an id of a payload. */
	assert_int_equal(read_status(ID "\"result\":{\"status\":\"VALID\",\"latency_us\":4321,\"persistence_wait_us\":0,"
				     "\"sparse_trie_wait_us\":-1}}", &s, NULL), 0);
	assert_int_equal(s.server_us, 4321);
	assert_int_equal(s.persistence_us, 0);
	assert_true(s.cache_us == ENGINE_UNKNOWN && s.trie_us == ENGINE_UNKNOWN);
	assert_int_equal(read_status(ID "\"result\":{\"payloadStatus\":{\"status\":\"VALID\"},\"payloadId\":\"0x0102030405060708\"}}", &s, NULL), 0);
	assert_string_equal(s.payload_id, "0x0102030405060708");
}

/* What was built becomes the parameters of newPayload. */
static void test_built(void **state)
{
	struct engine_block b = { .version = 4, .beacon_root = HASH("04") };
	json_t *result = json_pack("{s:{s:s,s:s,s:s,s:s,s:[s]},s:{s:[s]},s:[s]}", "executionPayload", "blockHash", HASH("aa"),
				   "blockNumber", "0x10", "gasUsed", "0x5208", "gasLimit", "0x1c9c380", "transactions", "0x01",
				   "blobsBundle", "commitments",
				   "0x" "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
				   "0000000000000000", "executionRequests", "0x0001"), *params;
	struct engine_built built;

	assert_int_equal(engine_built_read(result, &b, &built, NULL), 0);
	assert_int_equal(built.number, 16);
	assert_int_equal(built.gas_used, 21000);
	assert_int_equal(built.transactions, 1);
	params = json_loads(built.params.data, 0, NULL);
	assert_int_equal(json_array_size(params), 4);
	assert_true(json_equal(json_array_get(params, 0), json_object_get(result, "executionPayload")));
	/* sha256 of 48 zeros with the version 1 in front, by Python. */
	assert_string_equal(json_string_value(json_array_get(json_array_get(params, 1), 0)), "0x01b0761f87b081d5cf10757ccc89f12be355c70e2e29df288b65b30710dcbcd1");
	assert_string_equal(json_string_value(json_array_get(params, 2)), HASH("04"));
	assert_string_equal(json_string_value(json_array_get(json_array_get(params, 3), 0)), "0x0001");
	json_decref(params);
	engine_built_done(&built);
	json_object_set_new(json_object_get(result, "executionPayload"), "gasUsed", json_null());
	assert_int_equal(engine_built_read(result, &b, &built, NULL), -EPROTO);
	engine_built_done(&built);
	json_decref(result);
}

static void test_state(void **state)
{
	struct buf b = { 0 };
	struct json j = json_begin(&b);

	engine_state_put(&j, HASH("aa"), HASH("bb"), "");
	assert_string_equal(b.data, "{\"headBlockHash\":\"" HASH("aa") "\",\"safeBlockHash\":\"" HASH("bb")
				    "\",\"finalizedBlockHash\":\"" HASH("00") "\"}");
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hex),	     cmocka_unit_test(test_hashes),	cmocka_unit_test(test_token),
		cmocka_unit_test(test_secret),	     cmocka_unit_test(test_rlp),	cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_versions),     cmocka_unit_test(test_requests),	cmocka_unit_test(test_bad_blocks),
		cmocka_unit_test(test_raw),	     cmocka_unit_test(test_answers),	cmocka_unit_test(test_state),
		cmocka_unit_test(test_beacon_requests), cmocka_unit_test(test_op),	cmocka_unit_test(test_rlp_block),
		cmocka_unit_test(test_access_list),  cmocka_unit_test(test_built),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
