/*
 * fuzz_websocket.c - what a server of WebSockets sends: its head, its frames, and the messages in them.
 *
 * However the bytes are cut, the same comes out of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ethereum/rpcblock.h"
#include "net/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

/* What comes out, as text. */
static void feed(const uint8_t *data, size_t size, size_t step, struct buf *out)
{
	struct websocket w = { 0 };

	for (size_t at = 0; at < size;) {
		size_t used = 0, some = MIN(step, size - at);
		int r = websocket_feed(&w, data + at, some, &used);

		expect(used <= some && (used || r));
		at += used;
		if (r)
			buf_printf(out, "%d:", r);
		if (r == WEBSOCKET_TEXT) {
			struct rpcblock b;
			uint64_t id;

			expect(w.message.n <= WEBSOCKET_MESSAGE);
			buf_add(out, w.message.data, w.message.n);
			if (rpcblock_message(w.message.data, w.message.n, &id, &b) == RPCBLOCK_HEAD)
				expect(strlen(b.hash) == 66);
		}
		if (r == WEBSOCKET_PING)
			buf_add(out, w.control, w.control_n);
		if (r < 0)
			break;
	}
	websocket_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf whole = { 0 }, cut = { 0 };
	struct rpcblock b;
	uint64_t id;
	size_t used;

	expect(websocket_response((const char *)data, size, "dGhlIHNhbXBsZSBub25jZQ==", &used, NULL) <= 1 && used <= size);
	rpcblock_message((const char *)data, size, &id, &b);
	feed(data, size, size + 1, &whole);
	feed(data, size, 3, &cut);
	expect(whole.n == cut.n && (!whole.n || !memcmp(whole.data, cut.data, whole.n)));
	return 0;
}
