#include "serve/microhttp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/guard.h"
#include "serve/visitors.h"

static struct microhttp lib;
const struct microhttp *const microhttp = &lib;
static const struct library_function functions[] = { MICROHTTP_FUNCTIONS(LIBRARY_FUNCTION) };

int microhttp_load(struct err *err)
{
	return library_load("libmicrohttpd.so.12", functions, ARRAY_LEN(functions), err);
}

int microhttp_listen(const struct sockaddr *address, socklen_t n, int backlog, unsigned *ret_port)
{
	_cleanup_fd_ int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} here;
	socklen_t here_n = sizeof(here);
	int on = 1, r;

	/* Or a port stays taken for a minute after its server ended. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, address, n) < 0 ||
	    listen(fd, backlog) < 0 || getsockname(fd, &here.any, &here_n) < 0)
		return -errno;
	*ret_port = ntohs(address->sa_family == AF_INET6 ? here.six.sin6_port : here.four.sin_port);
	r = fd;
	fd = -1;
	return r;
}

struct host_check {
	unsigned port, good, bad;
	bool six;
};

static enum MHD_Result check_host(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct host_check *check = context;

	if (strcasecmp(name, "Host"))
		return MHD_YES;
	if (guard_host(value, check->port) || (check->six && guard_host_six(value, check->port)))
		check->good++;
	else
		check->bad++;
	return MHD_YES;
}

bool microhttp_names_us(struct MHD_Connection *c, unsigned port, bool six)
{
	struct host_check check = { .port = port, .six = six };

	lib.get_connection_values(c, MHD_HEADER_KIND, check_host, &check);
	return check.good == 1 && !check.bad;
}

/* libmicrohttpd reports the end of a connection that we shut down as of any other. */
void microhttp_connected(struct visitors *all, struct MHD_Connection *c, void **visitor, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = lib.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct visitor *goes, *v;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		visitors_leave(all, *visitor);
		*visitor = NULL;
		return;
	}
	goes = visitors_come(all, info ? info->connect_fd : -1, &v);
	*visitor = v;
	if (goes && goes->fd >= 0)
		shutdown(goes->fd, SHUT_RDWR);
}

void microhttp_log(void *context, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = mem_vprintf(fmt, ap);

	log_debug("%s", text);
}

enum MHD_Result microhttp_reply(struct MHD_Connection *c, const struct microhttp_answer *a)
{
	static const struct {
		const char *name, *value;
	} headers[] = {
		{ "X-Content-Type-Options", "nosniff" },
		{ "Cache-Control", "no-store" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};
	struct MHD_Response *r =
		lib.create_response_from_buffer_with_free_callback_cls(a->n, a->body, a->free, a->context);
	enum MHD_Result result;

	if (!r) {
		a->free(a->context);
		return MHD_NO;
	}
	lib.add_response_header(r, "Content-Type", a->type);
	lib.add_response_header(r, "Content-Security-Policy", a->policy);
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		lib.add_response_header(r, headers[i].name, headers[i].value);
	if (a->name)
		lib.add_response_header(r, a->name, a->value);
	if (a->closes)
		lib.add_response_header(r, "Connection", "close");
	result = lib.queue_response(c, a->status, r);
	lib.destroy_response(r);
	return result;
}
