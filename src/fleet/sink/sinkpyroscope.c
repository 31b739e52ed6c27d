/*
 * sinkpyroscope.c - windows as pprof to a Pyroscope: push.v1.PusherService/Push, by the Connect protocol in protobuf.
 *
 * Of its two ways in, this is the one that its documents call stable; labels are fields of a message there, and need no escaping. A
 * profile has an id, which is the same each time that its window comes; Pyroscope does not look for one that it has, so a window whose
 * answer was lost may count twice.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/map.h"
#include "export/export.h"
#include "fleet/sink/sinkhttp.h"
#include "fleet/sink/sinktypes.h"
#include "fleet/window.h"
#include "net/http.h"

static int pyroscope_open(const struct sink_options *o, void **ret, struct err *err)
{
	return sinkhttp_open(o, "", (struct sinkhttp **)ret, err);
}

static void pyroscope_close(void *sink)
{
	sinkhttp_close(sink);
}

/* "123e4567-e89b-8def-8123-456789abcdef": version 8, of the window's key. */
static void put_id(struct buf *b, const struct sink_window *w)
{
	uint64_t high = window_id(w->target, w->start_wall_ns, w->sequence), low = map_hash(high ^ w->start_wall_ns);
	char id[40];

	snprintf(id, sizeof(id), "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
		 (unsigned)(0x8000 | (low >> 48 & 0x3fff)), (unsigned long long)(low & 0xffffffffffff));
	protobuf_put_string(b, 2, id);
}

static void put_labels(struct buf *b, const struct sink_window *w)
{
	struct sinklabels labels = { 0 };

	/* The name's first part of a type of profiles; the rest of it is in the profile. */
	sinklabels_add(&labels, "__name__", "process_cpu");
	sinklabels_add_window(&labels, w, "service_name");
	sinklabels_sort(&labels);
	for (size_t i = 0; i < labels.list.n; i++) {
		size_t label = protobuf_open(b, 1);

		protobuf_put_string(b, 1, labels.list.v[i].name);
		protobuf_put_string(b, 2, labels.list.v[i].value);
		protobuf_close(b, label);
	}
	sinklabels_done(&labels);
}

/* PushRequest { RawProfileSeries series = 1 { LabelPair labels = 1; RawSample samples = 2 { bytes raw_profile = 1; string ID = 2 } } } */
static int make_body(const struct sink_window *w, struct buf *out, struct err *err)
{
	_cleanup_(buf_done) struct buf pprof = { 0 };
	struct export_job job = *w->job;
	size_t series, sample;
	int r;

	job.options.every_event = true;
	r = pprof_write(&job, &pprof, err);
	if (r)
		return r;
	series = protobuf_open(out, 1);
	put_labels(out, w);
	sample = protobuf_open(out, 2);
	protobuf_put_bytes(out, 1, pprof.data, pprof.n);
	put_id(out, w);
	protobuf_close(out, sample);
	protobuf_close(out, series);
	return 0;
}

/* PushResponse has no fields, so far: a page of something else is none. */
static int judge(struct sinkhttp *h, const struct http_reply *reply, struct err *err)
{
	return sinkhttp_is(reply, "application/proto") ? 0 : sinkhttp_strange(h, reply, err);
}

static int pyroscope_send(void *sink, const struct sink_window *w, struct err *err)
{
	static const char *const headers[] = { "Content-Type: application/proto", "Connect-Protocol-Version: 1", NULL };
	static const struct sinkhttp_form form = { .what = "a profile of pprof", .path = "/push.v1.PusherService/Push", .headers = headers, .make = make_body,
						   .judge = judge };

	return sinkhttp_send_window(sink, &form, w, err);
}

const struct sink_type sink_pyroscope = {
	.schemes = { "pyroscope+http", "pyroscope+https" },
	.describe = "pprof to a Grafana Pyroscope, or what takes its pushes",
	.open = pyroscope_open,
	.send = pyroscope_send,
	.close = pyroscope_close,
	.takes = SINK_TOKEN | SINK_USER | SINK_TENANT | SINK_CA,
};
