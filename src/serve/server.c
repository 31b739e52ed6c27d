#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "serve/guard.h"
#include "serve/server.h"
#include "serve/site.h"
#include "serve/visitors.h"
#include "serve/datamaker.h"

enum { CONNECTION_BYTES = 32 << 10 };

/* libmicrohttpd, loaded when the first server starts (base/file/library.h). */
#define FUNCTIONS(f) \
	f(MHD, add_response_header) f(MHD, create_response_from_buffer_with_free_callback_cls) f(MHD, destroy_response) \
	f(MHD, get_connection_info) f(MHD, get_connection_values) f(MHD, lookup_connection_value) f(MHD, quiesce_daemon) \
	f(MHD, queue_response) f(MHD, resume_connection) f(MHD, set_connection_option) f(MHD, start_daemon) \
	f(MHD, stop_daemon) f(MHD, suspend_connection)
static struct {
	FUNCTIONS(LIBRARY_POINTER)
} lib;
static const struct library_function functions[] = { FUNCTIONS(LIBRARY_FUNCTION) };

struct server {
	struct MHD_Daemon *daemon;
	struct site *site;
	struct datamaker *maker, *asker; /* of captures, and of what the store is asked: neither waits for the other */
	struct visitors visitors; /* of the server's thread alone */
	unsigned port;
	char token[GUARD_TOKEN_CHARS + 1];
	char url[64 + GUARD_TOKEN_CHARS];
};

/* The page needs its own inline script and style, and requests to us; nothing else may be loaded, nor may
 * the page be framed. The URL holds the token: no referrer is sent. */
static const struct {
	const char *name, *value;
} headers[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
	  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Cache-Control", "no-store" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
};

static void drop_body(void *body)
{
	blob_drop(body);
}

static enum MHD_Result reply(struct MHD_Connection *c, struct answer a, const char *name, const char *value)
{
	struct MHD_Response *r = lib.create_response_from_buffer_with_free_callback_cls(
		a.body->data.n, a.body->data.data, drop_body, a.body);
	enum MHD_Result result;

	if (!r) {
		blob_drop(a.body);
		return MHD_NO;
	}
	lib.add_response_header(r, "Content-Type", a.type);
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		lib.add_response_header(r, headers[i].name, headers[i].value);
	if (name)
		lib.add_response_header(r, name, value);
	result = lib.queue_response(c, a.status, r);
	lib.destroy_response(r);
	return result;
}

struct host_check {
	unsigned port, good, bad;
};

static enum MHD_Result check_host(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct host_check *check = context;

	if (strcasecmp(name, "Host"))
		return MHD_YES;
	if (guard_host(value, check->port))
		check->good++;
	else
		check->bad++;
	return MHD_YES;
}

/* libmicrohttpd reports the end of a connection that we shut down as of any other. */
static void connected(void *context, struct MHD_Connection *c, void **visitor, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = lib.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct server *s = context;
	struct visitor *goes, *v;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		visitors_leave(&s->visitors, *visitor);
		*visitor = NULL;
		return;
	}
	goes = visitors_come(&s->visitors, info ? info->connect_fd : -1, &v);
	*visitor = v;
	if (goes && goes->fd >= 0)
		shutdown(goes->fd, SHUT_RDWR);
}

/* From now on this connection is not evicted. */
static void know(struct server *s, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = lib.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (info && info->socket_context)
		visitors_know(&s->visitors, info->socket_context);
	lib.set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)SERVER_IDLE_S);
}

/* --- data, which the data maker makes --- */

/* On the data maker's thread: the request goes on, and handle() is called again. */
static void finish_job(struct datamaker_job *job)
{
	lib.resume_connection(job->who);
}

/* A request is at its end, in whatever way; a connection that waits for its data is not. */
static void completed(void *context, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct datamaker_job *job = *state;

	*state = NULL;
	if (!job)
		return;
	blob_drop(job->answer.body);
	site_question_free(job->question);
	free(job);
}

/* Returns false where the request makes no sense. */
static bool make_job(struct MHD_Connection *c, const struct guard_route *route, struct datamaker_job *ret)
{
	const char *v = lib.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "v");
	const char *under = lib.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "under");
	uint64_t node = 0;

	*ret = (struct datamaker_job){ .show = { route->capture, route->before }, .first = route->kind == GUARD_FIRST, .who = c };
	if (!guard_version(v, &ret->version) || (under && (ret->first || str_parse_uint(under, 1, UINT32_MAX, &node))))
		return false;
	ret->under = node;
	return true;
}

static enum MHD_Result ask_maker(struct server *s, struct MHD_Connection *c, const struct guard_route *route, void **state)
{
	struct datamaker_job *job, asked;

	if (!make_job(c, route, &asked))
		return reply(c, site_sentence(400, "data wants v=VERSION, as the page has it, and maybe under=NODE"), NULL, NULL);
	*state = job = mem_alloc(sizeof(*job));
	*job = asked;
	lib.suspend_connection(c);
	datamaker_add(s->maker, job);
	return MHD_YES;
}

/* The data maker is done with it. */
static enum MHD_Result answer_job(struct MHD_Connection *c, struct datamaker_job *job)
{
	struct answer a = job->answer;

	job->answer.body = NULL;
	return reply(c, a, NULL, NULL);
}

/* --- the store --- */

/* Text of a question, cut to what makes sense; NULL = not said. Caller frees it. */
static char *argument(struct MHD_Connection *c, const char *name)
{
	const char *value = lib.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);

	return value && *value ? mem_strndup(value, MIN(strlen(value), (size_t)SITE_TEXT_BYTES)) : NULL;
}

static enum MHD_Result ask_store(struct server *s, struct MHD_Connection *c, const struct guard_route *route, void **state)
{
	static const enum site_topic topics[] = { [GUARD_MAP] = SITE_MAP, [GUARD_NODES] = SITE_NODES, [GUARD_CHOICES] = SITE_CHOICES };
	struct site_question *q = mem_alloc(sizeof(*q));
	struct datamaker_job *job = mem_alloc(sizeof(*job));

	*q = (struct site_question){ .topic = topics[route->question], .page = argument(c, "page"), .figure = argument(c, "figure"),
				     .name = argument(c, "name"), .target = argument(c, "target"), .from = argument(c, "from"),
				     .to = argument(c, "to"), .slot = argument(c, "slot") };
	*job = (struct datamaker_job){ .question = q, .who = c };
	*state = job;
	lib.suspend_connection(c);
	datamaker_add(s->asker, job);
	return MHD_YES;
}

/* A place, or two that are compared, become captures; their page is where it leads. */
static enum MHD_Result open_place(struct server *s, struct MHD_Connection *c)
{
	static const char *const names[2][3] = { { "target", "from", "to" }, { "base-target", "base-from", "base-to" } };
	struct err err = { 0 };
	size_t found[2];
	char to[64];
	int r = 0, n;

	if (!site_store(s->site))
		return reply(c, site_nodes(s->site), NULL, NULL);
	for (n = 0; !r && n < 2; n++) {
		_cleanup_free_ char *target = argument(c, names[n][0]), *from = argument(c, names[n][1]), *until = argument(c, names[n][2]);

		if (n && !target)
			break;
		r = site_open(s->site, &(struct site_place){ target, from, until }, &found[n], &err);
	}
	if (r)
		return reply(c, site_sentence(r == -EINVAL ? 400 : 503, err.text), NULL, NULL);
	if (n == 2)
		snprintf(to, sizeof(to), "../%zu-%zu/", found[1], found[0]);
	else
		snprintf(to, sizeof(to), "../%zu/", found[0]);
	return reply(c, site_sentence(302, "its page"), "Location", to);
}

/* --- the others --- */

/* The form of the list leads to a page of two. */
static enum MHD_Result redirect_diff(struct MHD_Connection *c)
{
	size_t before, after;
	char to[32];

	if (!guard_number(lib.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "before"), &before) ||
	    !guard_number(lib.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "after"), &after))
		return reply(c, site_sentence(400, "diff wants before=NUMBER and after=NUMBER, of the list"), NULL, NULL);
	snprintf(to, sizeof(to), "%zu-%zu/", before, after);
	return reply(c, site_sentence(302, "its page"), "Location", to);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *path, const char *method,
			      const char *http, const char *upload, size_t *upload_bytes, void **state)
{
	struct server *s = context;
	struct guard_route route = guard_path(s->token, path);
	struct site_show show = { route.capture, route.before };
	struct host_check host = { .port = s->port };
	char with_slash[128];

	if (*state)
		return answer_job(c, *state);
	lib.get_connection_values(c, MHD_HEADER_KIND, check_host, &host);
	if (host.good != 1 || host.bad || route.kind == GUARD_NOTHING)
		return reply(c, site_sentence(404, "there is nothing here"), NULL, NULL);
	know(s, c);
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return reply(c, site_sentence(405, "this server is for reading only"), "Allow", "GET, HEAD");
	switch (route.kind) {
	case GUARD_LIST:
		if (!site_has_list(s->site))
			return reply(c, site_sentence(302, "its nodes"), "Location", "fleet/");
		return reply(c, site_list(s->site), NULL, NULL);
	case GUARD_FLEET:
		return reply(c, site_nodes(s->site), NULL, NULL);
	case GUARD_ASK:
		return ask_store(s, c, &route, state);
	case GUARD_OPEN:
		return open_place(s, c);
	case GUARD_PAGE:
		return reply(c, site_page(s->site, show), NULL, NULL);
	case GUARD_PROGRESS:
		return reply(c, site_progress(s->site, show), NULL, NULL);
	case GUARD_DATA:
	case GUARD_FIRST:
		return ask_maker(s, c, &route, state);
	case GUARD_DIFF:
		return redirect_diff(c);
	case GUARD_SLASH:
		snprintf(with_slash, sizeof(with_slash), "%s/", path);
		return reply(c, site_sentence(302, "its path ends in a slash"), "Location", with_slash);
	default:
		return MHD_NO;
	}
}

static void log_problem(void *context, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = mem_vprintf(fmt, ap);

	log_debug("%s", text);
}

/* A socket of our own tells the port before the first request can come. */
static int listen_here(uint16_t port, unsigned *ret_port, struct err *err)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t n = sizeof(here);
	int on = 1, r;

	/* Or a port stays taken for a minute after its server ended. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, SERVER_CONNECTIONS) < 0 ||
	    getsockname(fd, (struct sockaddr *)&here, &n) < 0)
		return port ? err_errno(err, errno, "cannot listen on port %u: without --port a free one is "
						    "taken", port) :
			      err_errno(err, errno, "cannot listen on 127.0.0.1");
	*ret_port = ntohs(here.sin_port);
	r = fd;
	fd = -1;
	return r;
}

/* Those of them that were started. */
static void stop_makers(struct server *s)
{
	if (s->maker)
		datamaker_stop(s->maker);
	if (s->asker)
		datamaker_stop(s->asker);
	datamaker_free(s->maker);
	datamaker_free(s->asker);
}

int server_start(struct site *site, uint16_t port, struct server **ret, struct err *err)
{
	_cleanup_free_ struct server *s = mem_alloc(sizeof(*s));
	int fd, r;

	s->site = site;
	s->visitors.limit = SERVER_STRANGERS;
	r = library_load("libmicrohttpd.so.12", functions, ARRAY_LEN(functions), err);
	if (r)
		return r;
	r = guard_token_make(s->token);
	if (r)
		return err_errno(err, -r, "no random numbers for the token");
	fd = listen_here(port, &s->port, err);
	if (fd < 0)
		return fd;
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u/%s/", s->port, s->token);
	r = datamaker_start(site, finish_job, &s->maker, err);
	if (!r)
		r = datamaker_start(site, finish_job, &s->asker, err);
	if (r) {
		stop_makers(s);
		fd_close(&fd);
		return r;
	}
	s->daemon = lib.start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s,
		MHD_OPTION_EXTERNAL_LOGGER, log_problem, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVER_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)SERVER_STRANGER_IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_END);
	if (!s->daemon) {
		stop_makers(s);
		fd_close(&fd);
		return err_set(err, EIO, "the server does not start; -v may say why");
	}
	*ret = s;
	s = NULL;
	return 0;
}

const char *server_url(const struct server *s)
{
	return s->url;
}

void server_stop(struct server *s)
{
	int fd;

	if (!s)
		return;
	/* No connection may be suspended when the daemon ends, nor may a new one ask. */
	fd = lib.quiesce_daemon(s->daemon);
	datamaker_stop(s->maker);
	datamaker_stop(s->asker);
	lib.stop_daemon(s->daemon);
	datamaker_free(s->maker);
	datamaker_free(s->asker);
	fd_close(&fd);
	free(s);
}
