/*
 * guard.h - which requests are allowed: the rules of the server as functions of strings.
 *
 * A path is /TOKEN/ (the list), /TOKEN/N/ (the page of capture N) or /TOKEN/M-N/ (N compared with M, which was before it),
 * and below a page data, first and progress; or /TOKEN/diff, the form of the list; or /TOKEN/fleet/, the nodes of a store, and below it
 * map, nodes, choices and open. A client without the token learns nothing,
 * not even that this is gasflame.
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
/* The same for a server that listens on ::1: "[::1]:PORT". */
bool guard_host_six(const char *host, unsigned port);

enum guard_kind {
	GUARD_NOTHING,
	GUARD_LIST,
	GUARD_PAGE,
	GUARD_DATA,
	GUARD_FIRST,    /* the data of a first picture */
	GUARD_PROGRESS, /* how far the data are */
	GUARD_DIFF,     /* the form: leads to a page of two */
	GUARD_FLEET,    /* the page of a store's nodes */
	GUARD_ASK,      /* a question to the store: which one is in guard_route.question */
	GUARD_OPEN,     /* leads to the page of a node and a time */
	GUARD_SLASH, /* a page without its last slash: it would look for its data in the wrong place */
};

#define GUARD_NONE SIZE_MAX

enum guard_question { GUARD_MAP, GUARD_NODES, GUARD_CHOICES };

struct guard_route {
	enum guard_kind kind;
	enum guard_question question;
	size_t capture, before; /* before: GUARD_NONE unless it is a page of two */
};

struct guard_route guard_path(const char *token, const char *path);
/* The number of a capture, as in a path. */
bool guard_number(const char *text, size_t *ret);
/* Exactly 16 hex digits, as the version of a capture is written. */
bool guard_version(const char *text, uint64_t *ret);
