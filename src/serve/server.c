#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "serve/guard.h"
#include "serve/microhttp.h"
#include "serve/server.h"
#include "serve/site.h"
#include "serve/visitors.h"
#include "serve/datamaker.h"

enum { CONNECTION_BYTES = 32 << 10 };

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
static const char policy[] =
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

static void drop_body(void *body)
{
	blob_drop(body);
}

static enum MHD_Result reply(struct MHD_Connection *c, struct answer a, const char *name, const char *value)
{
	const struct microhttp_answer answer = { .status = a.status, .body = a.body->data.data, .n = a.body->data.n, .free = drop_body,
						 .context = a.body, .type = a.type, .policy = policy, .name = name, .value = value };

	return microhttp_reply(c, &answer);
}

static void connected(void *context, struct MHD_Connection *c, void **visitor, enum MHD_ConnectionNotificationCode what)
{
	struct server *s = context;

	microhttp_connected(&s->visitors, c, visitor, what);
}

/* From now on this connection is not evicted. */
static void know(struct server *s, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = microhttp->get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (info && info->socket_context)
		visitors_know(&s->visitors, info->socket_context);
	microhttp->set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)SERVER_IDLE_S);
}

/* --- data, which the data maker makes --- */

/* On the data maker's thread: the request goes on, and handle() is called again. */
static void finish_job(struct datamaker_job *job)
{
	microhttp->resume_connection(job->who);
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
	const char *v = microhttp->lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "v");
	const char *under = microhttp->lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "under");
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
	microhttp->suspend_connection(c);
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
	const char *value = microhttp->lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);

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
	microhttp->suspend_connection(c);
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

	if (!guard_number(microhttp->lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "before"), &before) ||
	    !guard_number(microhttp->lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "after"), &after))
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
	char with_slash[128];

	if (*state)
		return answer_job(c, *state);
	if (!microhttp_names_us(c, s->port, false) || route.kind == GUARD_NOTHING)
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

static int listen_here(uint16_t port, unsigned *ret_port, struct err *err)
{
	const struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = microhttp_listen((const struct sockaddr *)&here, sizeof(here), SERVER_CONNECTIONS, ret_port);

	if (fd >= 0)
		return fd;
	return port ? err_errno(err, -fd, "cannot listen on port %u: without --port a free one is taken", port) :
		      err_errno(err, -fd, "cannot listen on 127.0.0.1");
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
	r = microhttp_load(err);
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
	s->daemon = microhttp->start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s,
		MHD_OPTION_EXTERNAL_LOGGER, microhttp_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
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
	fd = microhttp->quiesce_daemon(s->daemon);
	datamaker_stop(s->maker);
	datamaker_stop(s->asker);
	microhttp->stop_daemon(s->daemon);
	datamaker_free(s->maker);
	datamaker_free(s->asker);
	fd_close(&fd);
	free(s);
}
