/*
 * test_websocket.c - the WebSocket protocol as a client speaks it, and the messages of a node in it.
 */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ethereum/rpc.h"
#include "ethereum/rpcblock.h"
#include "net/websocket.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" /* the one of RFC 6455 */
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define HASH "0xf8aa5729ab6fa67dcc375e556b4bc64b48908d35aa46b35124bd1cc46edd7b39"

static void keys_are_proved(void **state)
{
	char accept[WEBSOCKET_ACCEPT], key[WEBSOCKET_KEY];

	websocket_accept(KEY, accept);
	assert_string_equal(accept, ACCEPT);
	websocket_make_key((const uint8_t *)"the sample nonce", key);
	assert_string_equal(key, KEY);
}

static int answer(const char *head, size_t *used, struct err *err)
{
	*err = (struct err){ 0 };
	return websocket_response(head, strlen(head), KEY, used, err);
}

static void hands_are_shaken(void **state)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	static const char good[] = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: Upgrade\r\n"
				   "sec-websocket-accept:  " ACCEPT " \r\n\r\n\x81\x01x";
	char *endless = mem_alloc(WEBSOCKET_HEAD + 3);
	struct err err;
	size_t used;

	websocket_request(&out, "127.0.0.1:8545", "/", KEY);
	assert_non_null(strstr(out.data, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8545\r\n"));
	assert_int_equal(answer(good, &used, &err), 1);
	assert_int_equal(used, strlen(good) - 3);
	for (size_t n = 0; n < used; n++) {
		size_t none;

		assert_int_equal(websocket_response(good, n, KEY, &none, &err), 0);
	}
	assert_int_equal(answer("HTTP/1.1 200 OK\r\n\r\n", &used, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "200"));
	assert_int_equal(answer("SSH-2.0-x\r\n\r\n", &used, &err), -EBADMSG);
	assert_int_equal(answer("\r\n\r\n", &used, &err), -EBADMSG);
	assert_int_equal(answer("HTTP/1.1 101 x\r\n\r\n", &used, &err), -EBADMSG);
	assert_int_equal(answer("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: x" ACCEPT "\r\n\r\n", &used, &err), -EBADMSG);
	assert_int_equal(answer("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Extensions: "
				"permessage-deflate\r\n\r\n", &used, &err), -EBADMSG);
	memset(endless, 'x', WEBSOCKET_HEAD + 2);
	assert_int_equal(answer(endless, &used, &err), -EFBIG);
	free(endless);
}

/* All events of some bytes, fed at most so many at a time, as letters: T(text), P, O, C, or E and it ends. */
static void feed(const void *data, size_t n, size_t step, char *events, struct buf *texts)
{
	struct websocket w = { 0 };
	const uint8_t *at = data, *end = at + n;

	while (at < end) {
		size_t used = 0, some = MIN(step, (size_t)(end - at));
		int r = websocket_feed(&w, at, some, &used);

		assert_true(used <= some);
		at += used;
		if (r)
			*events++ = r < 0 ? 'E' : " TPOC"[r];
		if (r == WEBSOCKET_TEXT && texts)
			buf_printf(texts, "%.*s|", (int)w.message.n, w.message.data);
		if (r < 0)
			break;
	}
	*events = 0;
	websocket_done(&w);
}

static void frames_are_read(void **state)
{
	/* A text; one in three pieces, with a ping between them; an empty one; a pong; a close. */
	static const char bytes[] = "\x81\x02hi" "\x01\x02on" "\x89\x03" "ask" "\x00\x02" "e " "\x80\x03two" "\x81\x00" "\x8a\x00"
				    "\x88\x02\x03\xe8";

	for (size_t step = 1; step < sizeof(bytes); step++) {
		_cleanup_(buf_done) struct buf texts = { 0 };
		char events[32];

		feed(bytes, sizeof(bytes) - 1, step, events, &texts);
		assert_string_equal(events, "TPTTOC");
		assert_string_equal(texts.data, "hi|one two||");
	}
}

static void sizes_are_read(void **state)
{
	static const size_t sizes[] = { 125, 126, 65535, 65536, 200000 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		_cleanup_(buf_done) struct buf out = { 0 }, in = { 0 };
		_cleanup_free_ char *data = mem_alloc(sizes[i] + 1);
		size_t head = sizes[i] < 126 ? 2 : sizes[i] < 65536 ? 4 : 10, used;
		struct websocket w = { 0 };

		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = 'a' + k % 26;
		websocket_frame(&out, WEBSOCKET_OP_TEXT, data, sizes[i], (const uint8_t *)"\x12\x34\x56\x78");
		assert_int_equal(out.n, head + 4 + sizes[i]);
		assert_int_equal((uint8_t)out.data[head + 4], (uint8_t)('a' ^ 0x12));
		/* As a server sends it: without the mask. */
		buf_add(&in, out.data, head);
		in.data[1] &= 0x7f;
		buf_add(&in, data, sizes[i]);
		assert_int_equal(websocket_feed(&w, (const uint8_t *)in.data, in.n, &used), WEBSOCKET_TEXT);
		assert_int_equal(used, in.n);
		assert_int_equal(w.message.n, sizes[i]);
		assert_memory_equal(w.message.data, data, sizes[i]);
		websocket_done(&w);
	}
}

static void bad_frames_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
		{ "\xc1\x01x", 3 },             /* a reserved bit */
		{ "\x81\x81mmmmx", 7 },         /* masked by a server */
		{ "\x83\x01x", 3 },             /* an opcode that there is none of */
		{ "\x8b\x00", 2 },
		{ "\x80\x01x", 3 },             /* goes on, and nothing began */
		{ "\x01\x01x\x81\x01x", 6 },    /* begins, and the last did not end */
		{ "\x09\x00", 2 },              /* a ping in pieces */
		{ "\x89\x7e\x00\x7e", 4 },      /* a long ping */
		{ "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10 },
		{ "\x81\x7f\x00\x00\x00\x00\x01\x00\x00\x01", 10 },
	};
	struct websocket w = { .closed = true };
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= cases[i].n; step++) {
			char events[32];

			feed(cases[i].bytes, cases[i].n, step, events, NULL);
			assert_string_equal(events, "E");
		}
	assert_int_equal(websocket_feed(&w, (const uint8_t *)"\x81\x00", 2, &used), -EBADMSG);
}

static enum rpcblock_message message(const char *text, uint64_t *id, struct rpcblock *b)
{
	return rpcblock_message(text, strlen(text), id, b);
}

static void messages_are_told_apart(void **state)
{
	struct rpcblock b;
	uint64_t id;

	assert_int_equal(message("{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":\"0x1\"}", &id, &b), RPCBLOCK_ANSWER);
	assert_int_equal(id, 12);
	assert_int_equal(message("{\"error\":{\"code\":1},\"id\":null}", &id, &b), RPCBLOCK_ANSWER);
	assert_int_equal(id, 0);
	assert_int_equal(message("{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"0x9\",\"result\":"
				 "{\"number\":\"0x1b\",\"hash\":\"" HASH "\",\"gasUsed\":\"0x0\",\"x\":[1,{\"y\":2}]}}}", &id, &b),
			 RPCBLOCK_HEAD);
	assert_int_equal(b.block.number, 27);
	assert_string_equal(b.hash, HASH);
	assert_int_equal(b.block.transactions, 0);
	/* A block on disk, its number either way; it has no gas. A new block must have it. */
	for (int i = 0; i < 3; i++) {
		_cleanup_free_ char *text = mem_printf(
			"{\"jsonrpc\":\"2.0\",\"method\":\"%s_subscription\",\"params\":{\"subscription\":\"0x9\",\"result\":"
			"{\"number\":%s,\"hash\":\"" HASH "\"}}}", i < 2 ? "reth" : "eth", i ? "\"0x1c\"" : "28");

		assert_int_equal(message(text, &id, &b), i < 2 ? RPCBLOCK_HEAD : RPCBLOCK_ODD);
		if (i < 2)
			assert_int_equal(b.block.number, 28);
	}
	assert_int_equal(message("{\"method\":\"reth_subscription\",\"params\":{\"result\":{\"number\":-1,\"hash\":\"" HASH "\"}}}", &id, &b),
			 RPCBLOCK_ODD);
	/* Without a hash, with a number that is too large, cut, and what is none. */
	assert_int_equal(message("{\"method\":\"x\",\"params\":{\"result\":{\"number\":\"0x1\",\"gasUsed\":\"0x0\"}}}", &id, &b),
			 RPCBLOCK_ODD);
	assert_int_equal(message("{\"method\":\"x\",\"params\":{\"result\":{\"number\":\"0x11111111111111111\",\"hash\":\"" HASH
				 "\",\"gasUsed\":\"0x0\"}}}", &id, &b), RPCBLOCK_ODD);
	assert_int_equal(message("{\"method\":\"x\",\"params\":{\"result\":{\"number\":\"0x1\"", &id, &b), RPCBLOCK_ODD);
	assert_int_equal(message("", &id, &b), RPCBLOCK_ODD);
	assert_int_equal(message("[]", &id, &b), RPCBLOCK_ODD);
	assert_int_equal(message("{\"id\":99999999999999999999999,\"result\":1}", &id, &b), RPCBLOCK_ODD);
}

static void addresses_are_checked(void **state)
{
	static const char *const bad[] = { "ws://", "ws://:1", "ws://host:", "ws://host:12x", "ws://[::1", "ws://a b:1",
					   "ws://u@host:1", "ws://host:1/\r\nx", "wss://host", "ftp://x", "" };
	static const char *const good[] = { "ws://127.0.0.1:8545", "ws://[::1]:8545/path?x=1", "ws://localhost" };
	struct rpc *r;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err = (struct err){ 0 };
		assert_int_equal(rpc_open(bad[i], &r, &err), -EINVAL);
		assert_true(*err.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(rpc_open(good[i], &r, &err), 0);
		assert_true(rpc_tells(r));
		rpc_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_proved),      cmocka_unit_test(hands_are_shaken),
		cmocka_unit_test(frames_are_read),      cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(bad_frames_are_refused), cmocka_unit_test(messages_are_told_apart),
		cmocka_unit_test(addresses_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
