/*
 * guard.h - which requests are allowed: the rules of the server as functions of strings.
 *
 * A path is /TOKEN/ (the list), /TOKEN/N/ (the page of capture N) or /TOKEN/N/data. A client without the
 * token learns nothing, not even that this is gasflame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD_TOKEN_CHARS = 32 }; /* 128 bits in hex */

/* From the kernel's random numbers. 0 or -errno. */
int guard_token_make(char out[GUARD_TOKEN_CHARS + 1]);
/* Compares in constant time. */
bool guard_token_is(const char *token, const char *given, size_t n);

/* Returns whether the Host header names us. "127.0.0.1:PORT" and "localhost:PORT" do; a name that an
 * attacker points to this machine, so that his page could read ours (DNS rebinding), does not. host may be
 * NULL. */
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
