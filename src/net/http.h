/*
 * http.h - the HTTP client: one document by GET, or questions by POST over one connection that stays open.
 *
 * http and https only. http_get() is for debug files, a node's metrics, a container engine's answers and heap dumps; it
 * follows redirects. A struct http sends JSON-RPC and measures how long an answer took. One thread at a time may use it,
 * but http_stop() may come from any. This file's functions fail with -EOPNOTSUPP in a build without libcurl (nohttp.c).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http;

struct http_limits {
	uint64_t bytes;           /* more is -EFBIG */
	unsigned connect_seconds; /* 0: 5 */
	unsigned total_seconds;   /* 0: 120 */
	unsigned total_ms;        /* other than 0: instead of both */
	const char *socket;       /* AF_UNIX, used for any host in the URL; no redirects */
	unsigned *ret_status;     /* gets the server's answer, 404; 0 = there was none. NULL = not asked for */
};

/* Takes n bytes; other than 0 ends it. */
typedef int http_sink(void *context, const void *data, size_t n);

/* 0, -ENOENT (the server has no such thing, or nothing in it), -EFBIG, -EIO with a sentence. */
int http_get(const char *url, const struct http_limits *limits, http_sink *sink, void *context,
	     struct err *err);
/* The same as a NUL-terminated text. Caller frees. */
int http_get_text(const char *url, const struct http_limits *limits, char **ret, size_t *ret_n,
		  struct err *err);

/* --- a connection that stays open --- */

enum { HTTP_ANSWER_BYTES = 64 << 20 };

struct http_question {
	const char *body;
	size_t n;
	const char *bearer; /* a token, NULL = none */
	unsigned timeout_ms;
	uint64_t limit; /* of the answer, what is longer is -EFBIG; 0 = HTTP_ANSWER_BYTES */
};

struct http_answer {
	const char *text; /* until the next question */
	size_t n;
	uint64_t ns; /* from the first byte sent to the last one that came; of the first question, to connect too */
};

/* option: the option that has the address, for messages: "--engine". */
int http_open(const char *url, const char *option, struct http **ret, struct err *err);
/* 0; -EACCES: the server wants another token (401, 403), or its certificate is not trusted; -EIO and others: it was not reached, or not understood.
 * -ECANCELED: http_stop(). An answer with any other status than 200 that has a JSON object is an answer: some nodes
 * send errors of JSON-RPC that way. The sentence does not name the server: http_url() does. */
int http_ask(struct http *h, const struct http_question *q, struct http_answer *ret, struct err *err);
const char *http_url(const struct http *h);

/* --- any POST or PUT, with the answer as it is: of a struct http that http_ask() is not called for --- */

struct http_request {
	const char *url;            /* on the server of http_open() */
	const char *const *headers; /* lines, NULL-terminated; without CR and LF */
	const void *body;
	size_t n;
	unsigned timeout_ms;
	uint64_t limit; /* of the answer, what is longer is -EFBIG; 0 = HTTP_ANSWER_BYTES */
	bool once;      /* over a connection of its own: where one that was kept breaks, libcurl sends it again by itself */
	bool put;       /* PUT in place of POST */
	const char *ca_file; /* certificates that are trusted in place of the system's; NULL: those */
	const char *user, *password; /* Authorization: Basic; NULL = none */
	const char *sign;    /* in place of that they sign the request, AWS Signature Version 4: "aws:amz:REGION:SERVICE"; NULL = no */
};

struct http_reply {
	unsigned status;     /* any: 200, 404, 500 */
	const char *text;    /* until the next request, as are the headers; never NULL, ends in NUL */
	size_t n;
	const char *headers; /* as they came */
};

/* 0 with any status that a whole answer has. -ETIMEDOUT, -EFBIG, -ECANCELED, -EIO: there is none, or half of one. -EACCES: its
 * certificate is not one that is trusted, or ca_file cannot be read. No redirects are followed. */
int http_send(struct http *h, const struct http_request *q, struct http_reply *ret, struct err *err);
/* The value of a header, cut to size; false: it did not come. */
bool http_header(const struct http_reply *reply, const char *name, char *out, size_t size);
/* Makes the current request, and later ones, fail soon. */
void http_stop(struct http *h);
/* The same as soon as the flag is set, by a signal for example; a request in progress ends within a
 * second. */
void http_stop_on(struct http *h, const volatile sig_atomic_t *flag);
void http_close(struct http *h); /* NULL is fine */

/* Returns whether the URL is on this machine: 127.0.0.0/8, ::1 and localhost. */
bool http_is_local(const char *url);
