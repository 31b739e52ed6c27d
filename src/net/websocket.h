/*
 * websocket.h - the WebSocket protocol (RFC 6455), the client's side: bytes in, messages out, and the other way round.
 *
 * Pure: no sockets, no clock. What comes in is a stranger's: lengths are bounded, and what breaks the rules is an error.
 * No extensions are asked for, and none are taken.
 *
 *	websocket_request(&out, "127.0.0.1:8545", "/", key);
 *	r = websocket_response(data, n, key, &used, &err);	// 0: more is needed
 *	while ((r = websocket_feed(&w, data, n, &used)) >= 0)
 *		switch (r) { case WEBSOCKET_TEXT: … w.message … }
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

enum { WEBSOCKET_KEY = 25, WEBSOCKET_ACCEPT = 29, WEBSOCKET_HEAD = 16384, WEBSOCKET_MESSAGE = 16 << 20 };

/* A key of 16 random bytes, as text. */
void websocket_make_key(const uint8_t random[16], char ret[WEBSOCKET_KEY]);
/* Computes the answer that a server must give to the key. */
void websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT]);
void websocket_request(struct buf *out, const char *host, const char *path, const char *key);
/* 1: it agreed, *ret_used bytes were its head; 0: not all of it is there; -EBADMSG, -EFBIG or -ECONNREFUSED. */
int websocket_response(const char *data, size_t n, const char *key, size_t *ret_used, struct err *err);

enum websocket_event {
	WEBSOCKET_MORE,  /* all bytes are used up */
	WEBSOCKET_TEXT,  /* message is whole, valid until the next call; text or binary */
	WEBSOCKET_PING,  /* control is what must be sent back */
	WEBSOCKET_PONG,
	WEBSOCKET_CLOSE, /* nothing will follow */
};

enum websocket_opcode { WEBSOCKET_OP_MORE = 0, WEBSOCKET_OP_TEXT = 1, WEBSOCKET_OP_BINARY = 2, WEBSOCKET_OP_CLOSE = 8,
			WEBSOCKET_OP_PING = 9, WEBSOCKET_OP_PONG = 10 };

struct websocket {
	struct buf message;
	uint8_t control[125];
	size_t control_n;
	/* Private: the frame at hand. */
	uint8_t head[10];
	size_t head_n;
	uint64_t left;
	uint8_t opcode;
	bool final, inside, began, delivered, closed;
};

/* Consumes some of the bytes; returns the kind of event, or -EBADMSG, -EFBIG: the connection is unusable. */
int websocket_feed(struct websocket *w, const uint8_t *data, size_t n, size_t *ret_used);
/* A whole frame, masked as clients must. */
void websocket_frame(struct buf *out, enum websocket_opcode opcode, const void *data, size_t n, const uint8_t mask[4]);
void websocket_done(struct websocket *w);
