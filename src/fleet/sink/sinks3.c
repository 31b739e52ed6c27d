/*
 * sinks3.c - windows as objects of an S3: PUT BUCKET/PREFIX/TARGET/2026-11-17/020500-42.gasflame, the capture as it is.
 *
 * Requests are signed by libcurl (Signature Version 4, with a hash of the body). A window that comes again replaces its own object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/sink/sinkhttp.h"
#include "fleet/sink/sinktypes.h"
#include "net/http.h"

/* A window is some MB; it is in memory as a whole. */
static const uint64_t most_bytes = 1ULL << 30;
static const char type[] = "Content-Type: application/vnd.sqlite3";
static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~";

struct s3 {
	struct sinkhttp *http;
	char *sign;
};

static void s3_close(void *sink)
{
	struct s3 *s = sink;

	if (!s)
		return;
	sinkhttp_close(s->http);
	free(s->sign);
	free(s);
}

/* "/bucket/prefix": what needs no escaping, as S3 signs another form of it than it reads, and no ".." either. */
static int check_path(const char *path, struct err *err)
{
	const char *bucket = path + 1;

	if (strcspn(bucket, "/") < 3)
		return err_set(err, EINVAL, "its address names no bucket: s3+https://HOST/BUCKET/PREFIX");
	for (const char *part = bucket; *part; part += strcspn(part, "/"), part += *part == '/') {
		size_t n = strcspn(part, "/");

		if (!n || strspn(part, unreserved) < n || (n <= 2 && *part == '.'))
			return err_set(err, EINVAL, "bucket and prefix have letters, digits, \"-\", \"_\", \".\" and \"~\" only");
	}
	return 0;
}

static int s3_open(const struct sink_options *o, void **ret, struct err *err)
{
	struct s3 *s = mem_alloc(sizeof(*s));
	int r = sinkhttp_open(o, "/", &s->http, err);

	if (!r)
		r = check_path(sinkhttp_path(s->http), err);
	if (!r && !sinkhttp_has_user(s->http))
		r = err_set(err, EINVAL, "it has no access key: set user and password");
	if (!r && o->region && (!*o->region || strspn(o->region, unreserved) < strlen(o->region)))
		r = err_set(err, EINVAL, "its region is none: eu-central-1");
	if (r) {
		s3_close(s);
		return r;
	}
	s->sign = mem_printf("aws:amz:%s:s3", o->region ? o->region : "us-east-1");
	*ret = s;
	return 0;
}

static int read_file(const struct sink_window *w, char **ret, struct err *err)
{
	char *data;
	uint64_t at = 0;

	if (w->bytes > most_bytes)
		return err_set(err, EBADMSG, "the window is too large for an object: more than 1 GiB");
	data = mem_alloc(w->bytes + 1);
	while (at < w->bytes) {
		ssize_t n = pread(w->fd, data + at, w->bytes - at, at);

		if (n <= 0) {
			free(data);
			return err_set(err, EIO, "the window's file ends before its end");
		}
		at += n;
	}
	*ret = data;
	return 0;
}

/* S3 demands it, and libcurl signs it along; only later ones than Debian's 7.88 make it themselves. */
static char *hash_header(const void *data, size_t n)
{
	_cleanup_(buf_done) struct buf line = { 0 };
	uint8_t sum[SHA256_BYTES];

	sha256(data, n, sum);
	buf_puts(&line, "x-amz-content-sha256: ");
	for (size_t i = 0; i < sizeof(sum); i++)
		buf_printf(&line, "%02x", sum[i]);
	return mem_strdup(line.data);
}

static int s3_send(void *sink, const struct sink_window *w, struct err *err)
{
	struct s3 *s = sink;
	_cleanup_free_ char *hash = NULL;
	_cleanup_(buf_done) struct buf path = { 0 };
	_cleanup_free_ char *body = NULL;
	struct http_reply reply;
	char etag[128];
	int r = read_file(w, &body, err);

	if (r)
		return r;
	hash = hash_header(body, w->bytes);
	buf_puts(&path, str_ends(sinkhttp_path(s->http), "/") ? "" : "/");
	sinkname_put_path(&path, w);
	r = sinkhttp_send(s->http, &(struct sinkhttp_request){ .path = path.data, .headers = (const char *const[]){ type, hash, NULL }, .body = body, .n = w->bytes, .put = true,
							       .sign = s->sign }, &reply, err);
	/* What S3 keeps has a tag; it may send an error after a status that was too early. */
	if (!r && (reply.n || !http_header(&reply, "ETag", etag, sizeof(etag))))
		r = sinkhttp_strange(s->http, &reply, err);
	return r;
}

const struct sink_type sink_s3 = {
	.schemes = { "s3+http", "s3+https" },
	.describe = "captures as objects of an S3 or of what speaks like it, by target and time",
	.open = s3_open,
	.send = s3_send,
	.close = s3_close,
	.takes = SINK_USER | SINK_CA | SINK_REGION,
};
