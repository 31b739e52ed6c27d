/*
 * sinkprometheus.c - the figures of windows to a Prometheus, or what takes its remote writes (version 1.0): protobuf in Snappy's block format.
 *
 * Samples have the time at which their window ended. A window that comes again has the same series, values and times, which a
 * server takes as what it has; one that is older than what it has, it refuses, and that window is set aside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/protobuf.h"
#include "base/codec/snappy.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/sink/metrics.h"
#include "fleet/sink/sinkhttp.h"
#include "fleet/sink/sinktypes.h"
#include "net/http.h"

struct prometheus {
	struct sinkhttp *http;
	struct metrics *metrics;
	const struct metrics *agent; /* NULL = none */
};

static void prometheus_close(void *sink)
{
	struct prometheus *s = sink;

	if (!s)
		return;
	sinkhttp_close(s->http);
	metrics_free(s->metrics);
	free(s);
}

static int prometheus_open(const struct sink_options *o, void **ret, struct err *err)
{
	struct prometheus *s = mem_alloc(sizeof(*s));
	int r = sinkhttp_open(o, "/api/v1/write", &s->http, err);

	if (r) {
		prometheus_close(s);
		return r;
	}
	s->metrics = metrics_new();
	s->agent = o->metrics;
	*ret = s;
	return 0;
}

/* --- WriteRequest --- */

struct writing {
	struct buf out;
	uint64_t time_ms;
	const char *instance;
};

static void put_label(struct buf *out, const char *name, const char *value)
{
	size_t label = protobuf_open(out, 1);

	protobuf_put_string(out, 1, name);
	protobuf_put_string(out, 2, value);
	protobuf_close(out, label);
}

/* TimeSeries { Label labels = 1; Sample samples = 2 { double value = 1; int64 timestamp = 2 } }: labels are in the order of their
 * names. A scrape would have added job and instance. */
static void put_series(void *context, const char *name, const struct sinklabels *labels, double value)
{
	struct writing *w = context;
	size_t series = protobuf_open(&w->out, 1), sample;
	struct sinklabels all = { 0 };

	sinklabels_add(&all, "__name__", name);
	sinklabels_add(&all, "job", "gasflame");
	sinklabels_add(&all, "instance", w->instance);
	for (size_t i = 0; i < labels->list.n; i++)
		sinklabels_add(&all, labels->list.v[i].name, labels->list.v[i].value);
	sinklabels_sort(&all);
	for (size_t i = 0; i < all.list.n; i++)
		put_label(&w->out, all.list.v[i].name, all.list.v[i].value);
	sinklabels_done(&all);
	sample = protobuf_open(&w->out, 2);
	protobuf_put_double(&w->out, 1, value);
	protobuf_put_uint(&w->out, 2, w->time_ms);
	protobuf_close(&w->out, sample);
	protobuf_close(&w->out, series);
}

static int prometheus_send(void *sink, const struct sink_window *w, struct err *err)
{
	static const char *const headers[] = { "Content-Type: application/x-protobuf", "Content-Encoding: snappy",
					       "X-Prometheus-Remote-Write-Version: 0.1.0", NULL };
	struct prometheus *s = sink;
	struct writing writing = { .time_ms = (w->start_wall_ns + w->duration_ns) / 1000000, .instance = sinkname_host(w) };
	_cleanup_(buf_done) struct buf packed = { 0 };
	struct http_reply reply;
	int r;

	metrics_add_window(s->metrics, w);
	metrics_each(s->metrics, w->target, put_series, &writing);
	if (s->agent) {
		writing.time_ms = clock_wall_ns() / 1000000;
		metrics_each(s->agent, NULL, put_series, &writing);
	}
	snappy_pack(&packed, writing.out.data, writing.out.n);
	buf_done(&writing.out);
	r = sinkhttp_send(s->http, &(struct sinkhttp_request){ .headers = headers, .body = packed.data, .n = packed.n }, &reply, err);
	if (!r && reply.n)
		r = sinkhttp_strange(s->http, &reply, err);
	return r;
}

const struct sink_type sink_prometheus = {
	.schemes = { "prometheus+http", "prometheus+https" },
	.describe = "figures by remote write: time by cause, memory, block times, and the agent's own health",
	.open = prometheus_open,
	.send = prometheus_send,
	.close = prometheus_close,
	.takes = SINK_TOKEN | SINK_USER | SINK_TENANT | SINK_CA,
};
