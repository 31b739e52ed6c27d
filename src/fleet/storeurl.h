/*
 * storeurl.h - the address of a store, and of a profile in it:
 *
 *	clickhouse://USER:PASSWORD@a:8123,b:8123/gasflame?target=reth-1&from=-1h&to=2026-11-17 10:00
 *
 * Several servers are shards of one store, in this order. Each may have its own scheme, user and database before and behind
 * it; what one does not say is as the one before it says, and before the first that says it, as that. clickhouse and http
 * mean the same, and so do clickhouses and https: TLS. %XX stands for any byte of a user, a password, a database and a value.
 *
 * target is a name, whatever is in it; targets is a pattern of names, with * and ?. release and label (key=value, several of them)
 * choose among the windows. Without target it is a profile of several nodes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct buf;
struct err;

struct storeurl_shard {
	char *address;        /* "https://a:8123": without user and database */
	char *user, *password; /* "" = none */
};

struct storeurl {
	VEC(struct storeurl_shard) shards; /* at least one */
	char *database;          /* "gasflame" where it has none */
	char *target;            /* NULL: none */
	char *targets, *release; /* NULL: any */
	VEC(char *) labels;
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME; to 0 = the end */
	unsigned timeout_ms;     /* of one question */
	char *ca_file;           /* certificates that are trusted in place of the system's; not in an address; NULL: those */
};

enum { STOREURL_TIMEOUT_MS = 60000 };

/* Does it say what to read: a target, or which of them? */
bool storeurl_names(const struct storeurl *u);
/* Adds "?key=value", or "&key=value" where there is a "?" already, with %XX for all but letters, digits and "-_.~". */
void storeurl_add(struct buf *url, const char *key, const char *value);
/* Does it begin like the address of a store, and of nothing else? Of commands that take a file: http is not among them. */
bool storeurl_is(const char *text);
/* now_ns: of "-1h". storeurl_done() in any case. */
int storeurl_parse(const char *text, uint64_t now_ns, struct storeurl *ret, struct err *err);
void storeurl_done(struct storeurl *u);
/* n bytes of an address with %XX for any of them; NULL: a sequence is none, or a NUL. Caller frees. */
char *storeurl_decode(const char *s, size_t n);
/* Takes users and passwords out of an address, in place: for messages, reports, and the list of processes. */
void storeurl_hide(char *text);

/* "2026-11-17 10:00", "2026-11-17T10:00:30Z", "2026-11-17T10:00+02:00" (without a zone it is local time), "1794909600" or
 * "@1794909600" (seconds since 1970), "-1h" (before now), "now". 0 or -EINVAL with a sentence. */
int storeurl_time(const char *text, uint64_t now_ns, uint64_t *ret_ns, struct err *err);

/* The shard that a target lives on. When a shard is added at the end, only its own share of the targets moves. */
unsigned storeurl_shard_of(const char *target, unsigned shards);
