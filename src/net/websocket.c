#include "net/websocket.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/codec/base64.h"
#include "base/err.h"
#include "base/mem.h"

/* --- the proof that it is a WebSocket: SHA-1 of the key and a constant, in base64 --- */

static uint32_t rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void sha1_block(uint32_t h[5], const uint8_t block[64])
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
		uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
		uint32_t next = rotate(a, 5) + f + e + k + w[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

/* Of at most 119 bytes: two blocks. */
static void sha1(const char *text, uint8_t ret[20])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t data[128] = { 0 };
	size_t n = MIN(strlen(text), (size_t)119), size = n < 56 ? 64 : 128;

	memcpy(data, text, n);
	data[n] = 0x80;
	data[size - 2] = n * 8 >> 8;
	data[size - 1] = n * 8;
	for (size_t i = 0; i < size; i += 64)
		sha1_block(h, data + i);
	for (int i = 0; i < 20; i++)
		ret[i] = h[i / 4] >> (24 - i % 4 * 8);
}

void websocket_make_key(const uint8_t random[16], char ret[WEBSOCKET_KEY])
{
	ret[base64_encode(ret, random, 16, false)] = 0;
}

void websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT])
{
	char text[WEBSOCKET_KEY + 37];
	uint8_t hash[20];

	snprintf(text, sizeof(text), "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	sha1(text, hash);
	ret[base64_encode(ret, hash, sizeof(hash), false)] = 0;
}

/* --- how it begins --- */

void websocket_request(struct buf *out, const char *host, const char *path, const char *key)
{
	buf_printf(out, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		   "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", path, host, key);
}

/* The value of a header in a head that ends in an empty line, without spaces around it; NULL if it is not there. */
static const char *header(const char *head, size_t n, const char *name, size_t *ret_n)
{
	const char *end = head + n;

	for (const char *line = head; line < end;) {
		const char *next = memmem(line, end - line, "\r\n", 2), *value = line + strlen(name);

		if (!next)
			return NULL;
		if (value < next && *value == ':' && !strncasecmp(line, name, strlen(name))) {
			for (value++; value < next && *value == ' ';)
				value++;
			while (next > value && next[-1] == ' ')
				next--;
			*ret_n = next - value;
			return value;
		}
		line = next + 2;
	}
	return NULL;
}

int websocket_response(const char *data, size_t n, const char *key, size_t *ret_used, struct err *err)
{
	const char *end = memmem(data, n, "\r\n\r\n", 4), *value;
	char accept[WEBSOCKET_ACCEPT];
	size_t size = 0;

	*ret_used = 0;
	if (!end)
		return n > WEBSOCKET_HEAD ? err_set(err, EFBIG, "its answer has no end") : 0;
	*ret_used = end + 4 - data;
	if (n < 12 || strncmp(data, "HTTP/1.", 7) || !isdigit((unsigned char)data[9]))
		return err_set(err, EBADMSG, "its answer is not HTTP");
	if (strncmp(data + 9, "101", 3))
		return err_set(err, ECONNREFUSED, "there is no WebSocket at this address (HTTP status %.3s)", data + 9);
	websocket_accept(key, accept);
	value = header(data, *ret_used, "Sec-WebSocket-Accept", &size);
	if (!value || size != strlen(accept) || strncmp(value, accept, size))
		return err_set(err, EBADMSG, "its answer is not that of a WebSocket server");
	if (header(data, *ret_used, "Sec-WebSocket-Extensions", &size))
		return err_set(err, EBADMSG, "it uses extensions that were not requested");
	return 1;
}

/* --- frames --- */

void websocket_frame(struct buf *out, enum websocket_opcode opcode, const void *data, size_t n, const uint8_t mask[4])
{
	const uint8_t *bytes = data;

	buf_putc(out, (char)(0x80 | opcode));
	if (n < 126) {
		buf_putc(out, (char)(0x80 | n));
	} else {
		unsigned size = n < 65536 ? 2 : 8;

		buf_putc(out, (char)(0x80 | (size == 2 ? 126 : 127)));
		for (unsigned i = size; i-- > 0;)
			buf_putc(out, (char)((uint64_t)n >> 8 * i));
	}
	buf_add(out, mask, 4);
	for (size_t i = 0; i < n; i++)
		buf_putc(out, (char)(bytes[i] ^ mask[i % 4]));
}

static size_t head_size(const struct websocket *w)
{
	unsigned n = w->head_n < 2 ? 0 : w->head[1] & 0x7f;

	return n == 126 ? 4 : n == 127 ? 10 : 2;
}

/* The head of a frame is whole. */
static int begin_frame(struct websocket *w)
{
	unsigned size = w->head[1] & 0x7f, bytes = head_size(w) - 2;
	bool control = w->head[0] & 8;

	w->final = w->head[0] & 0x80;
	w->opcode = w->head[0] & 0xf;
	w->left = bytes ? 0 : size;
	for (unsigned i = 0; i < bytes; i++)
		w->left = w->left << 8 | w->head[2 + i];
	/* Reserved bits are extensions', a mask is a client's. */
	if (w->head[0] & 0x70 || w->head[1] & 0x80)
		return -EBADMSG;
	if (control) {
		if (w->opcode > WEBSOCKET_OP_PONG || !w->final || bytes)
			return -EBADMSG;
		w->control_n = 0;
	} else {
		if (w->opcode > WEBSOCKET_OP_BINARY || (w->opcode == WEBSOCKET_OP_MORE) != w->began)
			return -EBADMSG;
		if (w->left > WEBSOCKET_MESSAGE || w->message.n > WEBSOCKET_MESSAGE - w->left)
			return -EFBIG;
		w->began = true;
	}
	w->inside = true;
	return 0;
}

static int end_frame(struct websocket *w)
{
	w->inside = false;
	w->head_n = 0;
	switch (w->opcode) {
	case WEBSOCKET_OP_CLOSE:
		w->closed = true;
		return WEBSOCKET_CLOSE;
	case WEBSOCKET_OP_PING:
		return WEBSOCKET_PING;
	case WEBSOCKET_OP_PONG:
		return WEBSOCKET_PONG;
	}
	if (!w->final)
		return WEBSOCKET_MORE;
	w->began = false;
	w->delivered = true;
	buf_add(&w->message, "", 0);
	return WEBSOCKET_TEXT;
}

int websocket_feed(struct websocket *w, const uint8_t *data, size_t n, size_t *ret_used)
{
	size_t at = 0;
	int r = WEBSOCKET_MORE;

	if (w->closed) {
		*ret_used = 0;
		return -EBADMSG;
	}
	if (w->delivered)
		w->message.n = 0;
	w->delivered = false;
	while (r == WEBSOCKET_MORE && (at < n || (w->inside && !w->left))) {
		size_t some;

		if (!w->inside) {
			w->head[w->head_n++] = data[at++];
			if (w->head_n >= 2 && w->head_n == head_size(w))
				r = begin_frame(w);
			continue;
		}
		some = MIN(w->left, n - at);
		if (w->opcode & 8) {
			memcpy(w->control + w->control_n, data + at, some);
			w->control_n += some;
		} else {
			buf_add(&w->message, data + at, some);
		}
		at += some;
		w->left -= some;
		if (!w->left)
			r = end_frame(w);
	}
	*ret_used = at;
	return r;
}

void websocket_done(struct websocket *w)
{
	buf_done(&w->message);
}
