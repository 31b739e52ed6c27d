/*
 * guard.h - who may ask, and for what: the rules of the server as functions of strings.
 *
 * A path is /TOKEN/ (the list), /TOKEN/N/ (the page of capture N) or /TOKEN/N/data. Whoever does not know
 * the token learns nothing, not even that there is a server of ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD_TOKEN_CHARS = 32 }; /* 128 bits in hex */

/* From the kernel's random numbers. 0 or -errno. */
int guard_token_make(char out[GUARD_TOKEN_CHARS + 1]);
/* Takes as long for one that differs at its beginning as for one that differs at its end. */
bool guard_token_is(const char *token, const char *given, size_t n);

/* Was this meant for us? "127.0.0.1:PORT" and "localhost:PORT" are; a name that somebody let point to this
 * machine, so that his page could read ours, is not. host may be NULL. */
bool guard_host(const char *host, unsigned port);

enum guard_kind {
	GUARD_NOTHING,
	GUARD_LIST,
	GUARD_PAGE,
	GUARD_DATA,
	GUARD_SLASH, /* a page without its last slash: it would look for its data in the wrong place */
};

struct guard_route {
	enum guard_kind kind;
	size_t capture;
};

struct guard_route guard_path(const char *token, const char *path);
/* Exactly 16 hex digits, as the version of a capture is written. */
bool guard_version(const char *text, uint64_t *ret);
