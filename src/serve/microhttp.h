/*
 * microhttp.h - what all servers over libmicrohttpd share: the library itself, a socket on loopback, the check of the Host header, the
 * clients that make room for others, and answers with headers that let a page load nothing.
 *
 * The library is loaded when the first server starts (base/file/library.h). Each server has one thread of the library's.
 */
#pragma once

#include <microhttpd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/file/library.h"

struct err;
struct visitors;

#define MICROHTTP_FUNCTIONS(f) \
	f(MHD, add_response_header) f(MHD, create_response_from_buffer_with_free_callback_cls) f(MHD, destroy_response) \
	f(MHD, get_connection_info) f(MHD, get_connection_values) f(MHD, lookup_connection_value) f(MHD, quiesce_daemon) \
	f(MHD, queue_response) f(MHD, resume_connection) f(MHD, set_connection_option) f(MHD, start_daemon) \
	f(MHD, stop_daemon) f(MHD, suspend_connection)

struct microhttp {
	MICROHTTP_FUNCTIONS(LIBRARY_POINTER)
};

/* Its functions, once microhttp_load() returned 0. */
extern const struct microhttp *const microhttp;
int microhttp_load(struct err *err);

/* A socket of our own tells the port before the first request can come. ret_port: in the machine's order.
 * A descriptor, or a negative errno without a sentence. */
int microhttp_listen(const struct sockaddr *address, socklen_t n, int backlog, unsigned *ret_port);

/* Exactly one Host header, which names us (guard_host()); six: "[::1]:PORT" does too. */
bool microhttp_names_us(struct MHD_Connection *c, unsigned port, bool six);

/* For MHD_OPTION_NOTIFY_CONNECTION: a client came or left; *visitor is its struct visitor. One that has to make room is disconnected. */
void microhttp_connected(struct visitors *all, struct MHD_Connection *c, void **visitor, enum MHD_ConnectionNotificationCode what);
/* For MHD_OPTION_EXTERNAL_LOGGER: with -v. */
void microhttp_log(void *context, const char *fmt, va_list ap);

struct microhttp_answer {
	unsigned status;
	void *body;
	size_t n;
	void (*free)(void *context); /* of the body, in any case */
	void *context;
	const char *type, *policy;  /* Content-Type, Content-Security-Policy */
	const char *name, *value;   /* one header more; NULL: none */
	bool closes;                /* the connection, after it */
};

enum MHD_Result microhttp_reply(struct MHD_Connection *c, const struct microhttp_answer *a);
