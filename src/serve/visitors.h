/*
 * visitors.h - the connected clients, and which one is evicted when strangers take all places.
 *
 * Every client is a stranger until one of its requests had the token. A client without the token can open as
 * many connections as it likes and never finish a request on any: so strangers have only some of the places,
 * and the oldest of them is evicted for the next. A client with the token sends its request right after it
 * connected, so it is not the one evicted. Clients that have shown the token are never evicted.
 *
 * No threads, no sockets: the server calls this from its one thread and carries out the result.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct visitor {
	struct visitor *before, *after; /* among the strangers, in the order in which they came */
	int fd;
	bool known, leaving;
};

struct visitors {
	struct visitor *oldest, *newest;
	size_t strangers, limit; /* without those that are being evicted */
};

/* A client connected. Returns the client to disconnect, or NULL; it stays until visitors_leave(). */
struct visitor *visitors_come(struct visitors *all, int fd, struct visitor **ret);
/* The client has shown the token. */
void visitors_know(struct visitors *all, struct visitor *v);
/* Frees v; NULL is fine. */
void visitors_leave(struct visitors *all, struct visitor *v);
