/*
 * sinkotlp.c - windows as OTLP profiles over HTTP: one ExportProfilesServiceRequest each, in protobuf, packed by gzip.
 *
 * OTLP has no key by which a collector could tell a repetition: a window whose answer was lost counts twice there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec/gzip.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "export/export.h"
#include "fleet/sink/sinkanswer.h"
#include "fleet/sink/sinkhttp.h"
#include "fleet/sink/sinktypes.h"
#include "net/http.h"

static int otlp_open(const struct sink_options *o, void **ret, struct err *err)
{
	return sinkhttp_open(o, "/v1development/profiles", (struct sinkhttp **)ret, err);
}

static void otlp_close(void *sink)
{
	sinkhttp_close(sink);
}

/* The window as the body of a request. -ENODATA: nothing was recorded in it. */
static int make_body(const struct sink_window *w, struct buf *out, struct err *err)
{
	struct export_job job = *w->job;
	_cleanup_(buf_done) struct buf plain = { 0 };
	VEC(char *) list = { 0 };
	int r;

	vec_push(&list, mem_printf("service.name=%s", w->target));
	if (w->release)
		vec_push(&list, mem_printf("service.version=%s", w->release));
	for (size_t i = 0; w->labels && w->labels[i]; i++)
		vec_push(&list, mem_strdup(w->labels[i]));
	vec_push(&list, NULL);
	job.options.every_event = true;
	job.options.resource = (const char *const *)list.v;
	r = otlp_write(&job, &plain, err);
	if (!r)
		gzip_pack(out, plain.data, plain.n);
	vec_done_each(&list, e, free(*e));
	return r;
}

/* A collector that took only some of it says so in an answer that is else a good one. */
static int judge(struct sinkhttp *h, const struct http_reply *reply, struct err *err)
{
	struct sinkanswer_partial p;
	char said[SINKHTTP_SAID];

	if (!sinkhttp_is(reply, "application/x-protobuf") || sinkanswer_partial(reply->text, reply->n, &p))
		return sinkhttp_strange(h, reply, err);
	if (p.rejected)
		return err_set(err, EBADMSG, "it refuses %lld of the window's profiles: %s", (long long)p.rejected,
			       sinkhttp_said(h, p.message, p.message_n, said));
	return 0;
}

static int otlp_send(void *sink, const struct sink_window *w, struct err *err)
{
	static const char *const headers[] = { "Content-Type: application/x-protobuf", "Content-Encoding: gzip", NULL };
	static const struct sinkhttp_form form = { .what = "OTLP", .headers = headers, .make = make_body, .judge = judge };

	return sinkhttp_send_window(sink, &form, w, err);
}

const struct sink_type sink_otlp = {
	.schemes = { "otlp+http", "otlp+https" },
	.describe = "OTLP profiles over HTTP, for an OpenTelemetry collector and what is behind it",
	.open = otlp_open,
	.send = otlp_send,
	.close = otlp_close,
	.takes = SINK_TOKEN | SINK_USER | SINK_TENANT | SINK_CA,
};
