/*
 * statuspage.h - a few small documents over HTTP on loopback, for machines and people of this machine: no token, nothing secret.
 *
 * GET and HEAD only; the Host header has to name loopback (guard_host()), so that no page of a stranger can read it. One thread of its own; few
 * connections, each closed when idle. Fails with -EOPNOTSUPP in a build without libmicrohttpd.
 *
 *	statuspage_start("127.0.0.1:9911", answer, context, &page, &err);
 *	...
 *	statuspage_stop(page);
 */
#pragma once

#include <stdint.h>

struct buf;
struct err;
struct statuspage;

/* Of a path, "/metrics": fills the body and its type (a constant), and returns the status, 200 or 404. Called in the page's thread. */
typedef unsigned statuspage_fn(void *context, const char *path, struct buf *body, const char **ret_type);

/* address: "127.0.0.1:9911", "[::1]:9911", "localhost:9911"; port 0: a free one. -EINVAL: it is not of loopback. */
int statuspage_start(const char *address, statuspage_fn *answer, void *context, struct statuspage **ret, struct err *err);
uint16_t statuspage_port(const struct statuspage *s);
void statuspage_stop(struct statuspage *s); /* NULL is fine */
