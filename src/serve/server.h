/*
 * server.h - a site over HTTP, for one person at this machine.
 *
 * Listens on loopback only. Every path begins with a token that is part of the URL shown to the user; all
 * else is "not found". Reads only (GET, HEAD), at most SERVER_CONNECTIONS at a time, each with little memory,
 * and closed when idle. At most SERVER_STRANGERS of them may be of clients that have not shown the token: the
 * oldest of these is evicted for the next (visitors.h), so that clients without the token cannot lock out
 * clients with it. One thread of its own answers; another makes the data (datamaker.h), while the connections that wait for
 * them are suspended.
 *
 *	server_start(site, 0, &server, &err);
 *	puts(server_url(server));
 *	...
 *	server_stop(server);
 */
#pragma once

#include <stdint.h>

struct err;
struct server;
struct site;

enum { SERVER_CONNECTIONS = 128, SERVER_STRANGERS = 64, SERVER_IDLE_S = 20, SERVER_STRANGER_IDLE_S = 5 };

/* port 0: a free one. The site is borrowed and used from the server's threads until server_stop(). Signals
 * that the caller wants to wait for must be blocked before. */
int server_start(struct site *site, uint16_t port, struct server **ret, struct err *err);
/* "http://127.0.0.1:PORT/TOKEN/" */
const char *server_url(const struct server *s);
/* Ends when the data at hand are made; NULL is fine. */
void server_stop(struct server *s);
