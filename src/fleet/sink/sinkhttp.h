/*
 * sinkhttp.h - what the sinks that speak HTTP share: the address, who we are, and what an answer's status means.
 *
 *	r = sinkhttp_open(o, "/v1development/profiles", &h, &err);
 *	r = sinkhttp_send(h, &(struct sinkhttp_request){ .headers = lines, .body = b, .n = n }, &reply, &err);
 *	sinkhttp_close(h);
 *
 * Certificates are always checked, redirects are never followed, and no sentence has a token or a password, even where the
 * server sends it back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct http_reply;
struct sink_options;
struct sink_window;
struct sinkhttp;

struct sinkhttp_request {
	const char *path;           /* behind that of the address; NULL = none */
	const char *const *headers; /* NULL-terminated, at most 4; beside those of sinkhttp_open() */
	const void *body;
	size_t n;
	const char *sign;           /* http.h; with PUT */
	bool put;
};

/*
 * The address is KIND+http://[USER:PASSWORD@]HOST[:PORT][/PATH], %XX for any byte of user and password; path: where it has none.
 * -EINVAL: it is not, or a secret has a line break. Borrows o.
 */
int sinkhttp_open(const struct sink_options *o, const char *path, struct sinkhttp **ret, struct err *err);
void sinkhttp_close(struct sinkhttp *h); /* NULL is fine */
/* The path of the address, which begins with "/". */
const char *sinkhttp_path(const struct sinkhttp *h);
bool sinkhttp_has_user(const struct sinkhttp *h);

/* 0: the status is 2xx; what is in the answer is the caller's to look at. Else as sink_send() has it. */
int sinkhttp_send(struct sinkhttp *h, const struct sinkhttp_request *q, struct http_reply *ret, struct err *err);
/* A window as the body of one request: make says -ENODATA where nothing was recorded in it, and nothing is sent; any other error of it means that the window does not fit,
 * -EBADMSG. judge looks at an answer with 2xx. Else as sink_send(). */
struct sinkhttp_form {
	const char *what;           /* "OTLP" */
	const char *path;           /* as above, and so are the headers */
	const char *const *headers;
	int (*make)(const struct sink_window *w, struct buf *out, struct err *err);
	int (*judge)(struct sinkhttp *h, const struct http_reply *reply, struct err *err);
};
int sinkhttp_send_window(struct sinkhttp *h, const struct sinkhttp_form *f, const struct sink_window *w, struct err *err);
/* An answer with 2xx that says something else than it should: -EREMOTEIO, with the begin of it. */
int sinkhttp_strange(struct sinkhttp *h, const struct http_reply *reply, struct err *err);
/* Is the answer of this type, or empty? */
bool sinkhttp_is(const struct http_reply *reply, const char *type);
/* For messages of a server: one line of plain text, at most 200 bytes, and nothing at all where it has a secret. Returns out. */
enum { SINKHTTP_SAID = 201 };
char *sinkhttp_said(const struct sinkhttp *h, const char *text, size_t n, char out[SINKHTTP_SAID]);
