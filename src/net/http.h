/*
 * http.h - one document from a server: debug files, a node's metrics, a heap dump. Only when the user asks.
 *
 * http and https only, redirects too. In a build without libcurl all of it is -EOPNOTSUPP.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

struct http_limits {
	uint64_t bytes;           /* more is -EFBIG */
	unsigned connect_seconds; /* 0: 5 */
	unsigned total_seconds;   /* 0: 120 */
	unsigned total_ms;        /* other than 0: instead of both */
	const char *socket;       /* of a server on this machine, AF_UNIX: asked whatever host the URL names; no redirects */
};

/* Takes n bytes; other than 0 ends it. */
typedef int http_sink(void *context, const void *data, size_t n);

/* 0, -ENOENT (the server has no such thing, or nothing in it), -EFBIG, -EIO with a sentence. */
int http_get(const char *url, const struct http_limits *limits, http_sink *sink, void *context,
	     struct err *err);
/* The same as a NUL-terminated text. Caller frees. */
int http_get_text(const char *url, const struct http_limits *limits, char **ret, size_t *ret_n,
		  struct err *err);
