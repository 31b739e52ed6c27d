/*
 * visitors.h - who is connected, and who has to go when strangers crowd the door.
 *
 * Everybody is a stranger until a request of his had the token. Whoever knows nothing can open as many
 * connections as he likes and never finish a request on any: so strangers have only some of the places,
 * and the one that has stood there the longest makes room for the next. A friend's request comes whole
 * within the moment after he connected, so it is not his that goes. Those with the token are never sent away.
 *
 * No threads, no sockets: the server calls this from its one thread and does what it says.
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
	size_t strangers, limit; /* those that are still to leave do not count */
};

/* Somebody connected. Returns whom to disconnect, or NULL; he stays until visitors_leave(). */
struct visitor *visitors_come(struct visitors *all, int fd, struct visitor **ret);
/* He had the token. */
void visitors_know(struct visitors *all, struct visitor *v);
/* Frees v; NULL is fine. */
void visitors_leave(struct visitors *all, struct visitor *v);
