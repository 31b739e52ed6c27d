#include "fleet/sink/sinkhttp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "fleet/sink/sink.h"
#include "fleet/storeurl.h"
#include "net/http.h"

enum { TIMEOUT_MS = 30000, ANSWER_BYTES = 1 << 20, HEADERS = 8 };

struct sinkhttp {
	struct http *http;
	char *address, *path;      /* "https://host:4318", "/v1" */
	char *user, *password;     /* NULL = none */
	char *bearer, *tenant;     /* header lines, NULL = none */
	char *basic;               /* user and password as a header has them, NULL = none */
	const struct sink_options *o;
};

/* --- the address --- */

static bool has_controls(const char *s)
{
	for (; s && *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

static int take_user(struct sinkhttp *h, const char *s, size_t n, struct err *err)
{
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;

	h->user = storeurl_decode(s, user);
	h->password = colon ? storeurl_decode(colon + 1, n - user - 1) : mem_strdup("");
	return h->user && h->password ? 0 : err_set(err, EINVAL, "the user and the password of its address have %%XX for what is no letter");
}

static int take_address(struct sinkhttp *h, const char *url, const char *path, struct err *err)
{
	static const char host_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
	/* "&", "?" and "=": some servers want a question in the path. */
	static const char path_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~/%&?=+";
	const char *plus = strchr(url, '+'), *rest = strstr(url, "://") + 3, *end = rest + strcspn(rest, "/"), *at = memrchr(rest, '@', end - rest);
	const char *host = at ? at + 1 : rest;
	int r = at ? take_user(h, rest, at - rest, err) : 0;

	if (r)
		return r;
	if (host == end || strspn(host, host_bytes) < (size_t)(end - host))
		return err_set(err, EINVAL, "its address has no host: %.*s://HOST:PORT", (int)(rest - 3 - url), url);
	if (strspn(end, path_bytes) < strlen(end))
		return err_set(err, EINVAL, "the path of its address has a character that does not belong there: write it as %%XX");
	h->address = mem_printf("%.*s%.*s", (int)(rest - plus - 1), plus + 1, (int)(end - host), host);
	h->path = mem_strdup(*end && strcmp(end, "/") ? end : path);
	return 0;
}

static int check_secrets(const struct sinkhttp *h, struct err *err)
{
	const struct sink_options *o = h->o;

	if (has_controls(o->token) || has_controls(h->user) || has_controls(h->password) || has_controls(o->tenant))
		return err_set(err, EINVAL, "its token, user, password or tenant has a line break or another control character: is there one at the "
			       "end of a file?");
	if (o->token && h->user)
		return err_set(err, EINVAL, "it has a token and a user: a server takes one of them");
	if (h->user && strchr(h->user, ':'))
		return err_set(err, EINVAL, "its user has a colon, which ends the user's name");
	if (o->ca_file && !str_starts(h->address, "https://"))
		return err_set(err, EINVAL, "its ca file is of no use without TLS: write https in its address");
	return 0;
}

static char *make_basic(const struct sinkhttp *h)
{
	_cleanup_free_ char *plain = h->user ? mem_printf("%s:%s", h->user, h->password) : NULL;
	struct buf out = { 0 };

	if (plain)
		base64_put(&out, plain, strlen(plain), false);
	return out.data;
}

int sinkhttp_open(const struct sink_options *o, const char *path, struct sinkhttp **ret, struct err *err)
{
	struct sinkhttp *h = mem_alloc(sizeof(*h));
	int r = take_address(h, o->url, path, err);

	h->o = o;
	if (!r && (o->user || o->password)) {
		free(h->user);
		free(h->password);
		h->user = mem_strdup(o->user ? o->user : "");
		h->password = mem_strdup(o->password ? o->password : "");
	}
	if (!r)
		r = check_secrets(h, err);
	if (!r) {
		h->bearer = o->token ? mem_printf("Authorization: Bearer %s", o->token) : NULL;
		h->basic = make_basic(h);
		h->tenant = o->tenant ? mem_printf("X-Scope-OrgID: %s", o->tenant) : NULL;
		r = http_open(h->address, "a sink", &h->http, err);
	}
	if (r) {
		sinkhttp_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void sinkhttp_close(struct sinkhttp *h)
{
	if (!h)
		return;
	http_close(h->http);
	free(h->address);
	free(h->path);
	free(h->user);
	free(h->password);
	free(h->bearer);
	free(h->basic);
	free(h->tenant);
	free(h);
}

const char *sinkhttp_path(const struct sinkhttp *h)
{
	return h->path;
}

bool sinkhttp_has_user(const struct sinkhttp *h)
{
	return h->user && *h->user;
}

/* --- answers --- */

static bool has_secret(const char *text, const char *secret)
{
	return secret && *secret && strstr(text, secret);
}

char *sinkhttp_said(const struct sinkhttp *h, const char *text, size_t n, char out[SINKHTTP_SAID])
{
	_cleanup_free_ char *copy = mem_strndup(text, MIN(n, (size_t)4096));
	_cleanup_(buf_done) struct buf line = { 0 };
	size_t length = 0, one;

	*out = 0;
	if (has_secret(copy, h->o->token) || has_secret(copy, h->password) || has_secret(copy, h->basic))
		return out;
	copy[strcspn(copy, "\r\n")] = 0;
	plain_add(&line, copy);
	for (; length < line.n; length += one) {
		plain_decode(line.data + length, &one);
		if (length + one >= SINKHTTP_SAID)
			break;
	}
	if (length)
		memcpy(out, line.data, length);
	out[length] = 0;
	return out;
}

bool sinkhttp_is(const struct http_reply *reply, const char *type)
{
	char has[128] = "";

	if (!reply->n)
		return true;
	return http_header(reply, "Content-Type", has, sizeof(has)) && !strncasecmp(has, type, strlen(type)) && !strchr("+-.", has[strlen(type)] ?: ' ');
}

int sinkhttp_strange(struct sinkhttp *h, const struct http_reply *reply, struct err *err)
{
	char said[SINKHTTP_SAID];

	return err_set(err, EREMOTEIO, "%s: it answers with HTTP %u, but not as such a server does: %s", h->address, reply->status,
		       sinkhttp_said(h, reply->text, reply->n, said));
}

static const struct meaning {
	unsigned first, last;
	int code;
	const char *says;
} meanings[] = {
	{ 300, 399, ENXIO, "it sends us elsewhere, where we do not follow: name that address" },
	{ 401, 401, EACCES, "it refuses us: are token, user and password right?" },
	{ 403, 403, EACCES, "it refuses us: are token, user and password right?" },
	{ 407, 407, EACCES, "a proxy refuses us" },
	{ 404, 405, ENXIO, "it has no such place: is the path of the address right?" },
	{ 410, 410, ENXIO, "it has no such place any more" },
	{ 408, 408, EAGAIN, "it did not get the request in time" },
	{ 425, 425, EAGAIN, "it cannot take it now" },
	{ 429, 429, EAGAIN, "it has too much to do" },
	{ 502, 504, EAGAIN, "it cannot answer now" },
	{ 400, 499, EBADMSG, "it refuses this window" },
	{ 500, 599, EREMOTEIO, "it failed" },
	{ 0, UINT32_MAX, EREMOTEIO, "it answers with a status that is none" },
};

static int judge(const struct sinkhttp *h, const struct http_reply *reply, struct err *err)
{
	const struct meaning *m = meanings;
	char said[SINKHTTP_SAID];

	if (reply->status >= 200 && reply->status < 300)
		return 0;
	while (reply->status < m->first || reply->status > m->last)
		m++;
	sinkhttp_said(h, reply->text, reply->n, said);
	return err_set(err, m->code, "%s: %s (HTTP %u%s%s)", h->address, m->says, reply->status, *said ? ": " : "", said);
}

/* No answer, or half of one. */
static int no_answer(const struct sinkhttp *h, int r, struct err *err)
{
	switch (r) {
	case -ETIMEDOUT:
	case -EACCES:
	case -EIO:
		break;
	case -EFBIG:
		r = -EREMOTEIO;
		break;
	default:
		r = -EIO;
	}
	if (err) {
		err->code = -r;
		err_prefix(err, "%s", h->address);
	}
	return r;
}

int sinkhttp_send(struct sinkhttp *h, const struct sinkhttp_request *q, struct http_reply *ret, struct err *err)
{
	_cleanup_free_ char *url = mem_printf("%s%s%s", h->address, h->path, q->path ? q->path : "");
	const char *headers[HEADERS] = { 0 };
	struct http_request request = { .url = url, .headers = headers, .body = q->body, .n = q->n, .limit = ANSWER_BYTES,
					.timeout_ms = h->o->timeout_ms ? h->o->timeout_ms : TIMEOUT_MS, .put = q->put, .sign = q->sign,
					.ca_file = h->o->ca_file, .user = h->user, .password = h->password };
	size_t n = 0;
	int r;

	for (size_t i = 0; q->headers && q->headers[i]; i++)
		headers[n++] = q->headers[i];
	if (h->tenant)
		headers[n++] = h->tenant;
	if (h->bearer)
		headers[n++] = h->bearer;
	r = http_send(h->http, &request, ret, err);
	return r ? no_answer(h, r, err) : judge(h, ret, err);
}

int sinkhttp_send_window(struct sinkhttp *h, const struct sinkhttp_form *f, const struct sink_window *w, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	struct http_reply reply;
	int r = f->make(w, &body, err);

	if (r == -ENODATA)
		return 0;
	if (r)
		return err_set(err, EBADMSG, "the window does not fit into %s", f->what);
	r = sinkhttp_send(h, &(struct sinkhttp_request){ .path = f->path, .headers = f->headers, .body = body.data, .n = body.n }, &reply, err);
	return r ? r : f->judge(h, &reply, err);
}
