/*
 * rpccall.h - one call of JSON-RPC: a request made with base/json's writer, and its answer, checked and parsed.
 *
 *	_cleanup_(rpccall_done) struct rpccall c = { 0 };
 *	json_t *block;
 *
 *	rpccall_begin(&c, "eth_getBlockByNumber");
 *	json_put_string(&c.params, NULL, "latest");
 *	json_put_bool(&c.params, NULL, false);
 *	e = rpccall_ask(&c, http, &(struct http_question){ .timeout_ms = 1000 }, &block, err);
 *
 * Each call has an id of its own in this process, so that the answer to another call is not taken for this one's. What
 * a node sends is untrusted: jansson limits its depth, the question its size.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct err;
struct http;
struct http_question;

/* Codes of errors, as JSON-RPC and the Engine API define them. */
enum {
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_UNSUPPORTED_FORK = -38005,
};

struct rpccall {
	struct json params; /* put them with a key of NULL */
	struct buf body;
	uint64_t id;
	/* Of the last answer: */
	long long code;     /* of the error; 0: there is none */
	uint64_t ns;        /* from the first byte sent to the last one that came */
};

/* c stays where it is until rpccall_done(). */
void rpccall_begin(struct rpccall *c, const char *method);
/* The same with params that are written already: n bytes, a JSON array. */
void rpccall_begin_raw(struct rpccall *c, const char *method, const char *params, size_t n);
/* Ends the request: c->body is complete. */
void rpccall_end(struct rpccall *c);
/* Ends the request if need be, sends it, and parses the answer; may be repeated. how: token, time and limit. *ret is the
 * result, a reference of the caller's. Errors of http_ask() and rpccall_parse(). */
int rpccall_ask(struct rpccall *c, struct http *h, const struct http_question *how, json_t **ret, struct err *err);
void rpccall_done(struct rpccall *c);

/* Parses an answer to the request of that id. 0; -EREMOTEIO: it is an error (*ret_code, NULL is fine); -EPROTO: it is no
 * such answer. */
int rpccall_parse(const char *text, size_t n, uint64_t id, json_t **ret, long long *ret_code, struct err *err);

/* Copies untrusted text for one line of a terminal; from may be NULL. */
void rpccall_copy_plain(char *to, size_t size, const char *from);

void rpccall_json_freep(json_t **j);
#define _cleanup_json_ _cleanup_(rpccall_json_freep)
