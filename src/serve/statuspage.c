#include "serve/statuspage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "serve/microhttp.h"
#include "serve/visitors.h"

/* Twice as many places as clients that stay: each one that comes above that sends the oldest away. */
enum { CONNECTIONS = 32, CLIENTS = 16, IDLE_S = 5, CONNECTION_BYTES = 8 << 10, PATH_CHARS = 256 };

struct statuspage {
	struct MHD_Daemon *daemon;
	struct visitors visitors; /* of the page's thread alone */
	statuspage_fn *answer;
	void *context;
	unsigned port;
	bool six;
};

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type, struct buf *body)
{
	static char nothing[1];
	const struct microhttp_answer a = {
		.status = status, .body = body->data ? body->data : nothing, .n = body->n, .free = free, .context = body->data, .type = type,
		.policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		/* A client that asks every few seconds needs no place in between. */
		.closes = true,
		.name = status == MHD_HTTP_METHOD_NOT_ALLOWED ? "Allow" : NULL,
		.value = "GET, HEAD",
	};

	return microhttp_reply(c, &a);
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *sentence)
{
	struct buf body = { 0 };

	buf_printf(&body, "%s\n", sentence);
	return reply(c, status, "text/plain; charset=utf-8", &body);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *path, const char *method, const char *http,
			      const char *upload, size_t *upload_bytes, void **state)
{
	struct statuspage *s = context;
	const char *type = "text/plain; charset=utf-8";
	struct buf body = { 0 };
	unsigned status;

	if (!microhttp_names_us(c, s->port, s->six))
		return refuse(c, MHD_HTTP_FORBIDDEN, "this page is for this machine: ask for 127.0.0.1 or localhost, and its port");
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "this page is for reading only");
	if (strlen(path) > PATH_CHARS)
		return refuse(c, MHD_HTTP_URI_TOO_LONG, "no path here is that long");
	status = s->answer(s->context, path, &body, &type);
	if (status != MHD_HTTP_OK && !body.n)
		buf_puts(&body, "there is nothing here\n");
	return reply(c, status, type, &body);
}

static void connected(void *context, struct MHD_Connection *c, void **visitor, enum MHD_ConnectionNotificationCode what)
{
	struct statuspage *s = context;

	microhttp_connected(&s->visitors, c, visitor, what);
}

static int listen_at(struct statuspage *s, const char *address, struct err *err)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const char *colon = strrchr(address, ':');
	size_t n = colon ? colon - address : 0;
	uint64_t port;
	int fd;

	s->six = n == 5 && !strncmp(address, "[::1]", n);
	if (!(s->six || (n == 9 && (!strncmp(address, "127.0.0.1", n) || !strncmp(address, "localhost", n)))) ||
	    str_parse_uint(colon + 1, 0, UINT16_MAX, &port))
		return err_set(err, EINVAL, "a status page is at 127.0.0.1:PORT, [::1]:PORT or localhost:PORT, not at %s", address);
	four.sin_port = six.sin6_port = htons(port);
	fd = s->six ? microhttp_listen((struct sockaddr *)&six, sizeof(six), CONNECTIONS, &s->port) :
		      microhttp_listen((struct sockaddr *)&four, sizeof(four), CONNECTIONS, &s->port);
	return fd < 0 ? err_errno(err, -fd, "cannot listen at %s: name another port", address) : fd;
}

int statuspage_start(const char *address, statuspage_fn *answer, void *context, struct statuspage **ret, struct err *err)
{
	_cleanup_free_ struct statuspage *s = mem_alloc(sizeof(*s));
	int fd, r;

	s->visitors.limit = CLIENTS;
	s->answer = answer;
	s->context = context;
	r = microhttp_load(err);
	if (r)
		return r;
	fd = listen_at(s, address, err);
	if (fd < 0)
		return fd;
	s->daemon = microhttp->start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, s, MHD_OPTION_EXTERNAL_LOGGER,
		microhttp_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, connected, s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!s->daemon) {
		fd_close(&fd);
		return err_set(err, EIO, "the status page does not start; -v may say why");
	}
	*ret = s;
	s = NULL;
	return 0;
}

uint16_t statuspage_port(const struct statuspage *s)
{
	return s->port;
}

void statuspage_stop(struct statuspage *s)
{
	if (!s)
		return;
	/* It closes the socket too. */
	microhttp->stop_daemon(s->daemon);
	free(s);
}
