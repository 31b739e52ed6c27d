/*
 * sinkclickhouse.c - windows into a store (push.h), each exactly once.
 *
 * Windows of one server are collected and sent in one insert a table (pushbatch.h), of all targets together; stacks and frames are sent
 * once a day. A window of an agent is one of the store, however long it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "fleet/clickhouse.h"
#include "fleet/push/push.h"
#include "fleet/push/pushbatch.h"
#include "fleet/sink/sinktypes.h"
#include "fleet/storeurl.h"
#include "fleet/tables.h"
#include "fleet/window.h"

static const uint64_t hour_ns = 3600ULL * 1000000000;

/* By server. */
struct shard {
	struct pushbatch *batch;
	uint64_t retained_mono_ns; /* 0 = never */
};

struct store {
	struct storeurl url;
	struct clickhouse *client;
	struct shard *shards; /* as many as the address has */
};

static void store_close(void *sink)
{
	struct store *s = sink;

	if (!s)
		return;
	for (size_t i = 0; s->shards && i < s->url.shards.n; i++)
		pushbatch_free(s->shards[i].batch);
	free(s->shards);
	clickhouse_close(s->client);
	storeurl_done(&s->url);
	free(s);
}

/* The user of the options is that of all servers which have none in the address. */
static int set_users(struct storeurl *url, const struct sink_options *o, struct err *err)
{
	for (size_t i = 0; i < url->shards.n; i++) {
		struct storeurl_shard *shard = &url->shards.v[i];

		if (o->ca_file && !str_starts(shard->address, "https://"))
			return err_set(err, EINVAL, "its ca file is of no use without TLS: write clickhouses:// in its address");
		if (*shard->user || !(o->user || o->password))
			continue;
		free(shard->user);
		free(shard->password);
		shard->user = mem_strdup(o->user ? o->user : "");
		shard->password = mem_strdup(o->password ? o->password : "");
		for (const char *text = shard->user, *next = shard->password; text; text = next, next = NULL)
			if (text[strcspn(text, "\r\n")])
				return err_set(err, EINVAL, "its user or password has a line break: is there one at the end of a file?");
	}
	return 0;
}

static int store_open(const struct sink_options *o, void **ret, struct err *err)
{
	struct store *s = mem_alloc(sizeof(*s));
	int r = storeurl_parse(o->url, clock_wall_ns(), &s->url, err);

	if (!r && (s->url.target || s->url.from_ns || s->url.to_ns))
		r = err_set(err, EINVAL, "its address has a target or times: those are for reading");
	if (!r)
		r = set_users(&s->url, o, err);
	if (!r) {
		s->url.ca_file = mem_strdup(o->ca_file);
		if (o->timeout_ms)
			s->url.timeout_ms = o->timeout_ms;
		r = clickhouse_open(&s->url, &s->client, err);
	}
	if (r) {
		store_close(s);
		return r;
	}
	s->shards = mem_alloc(s->url.shards.n * sizeof(*s->shards));
	for (size_t i = 0; i < s->url.shards.n; i++)
		s->shards[i].batch = pushbatch_new(s->client, i);
	*ret = s;
	return 0;
}

/* --- windows --- */

/* Tables of a later gasflame are not written to. Days that are too old go, where the server does not do that itself; who pushes may lack
 * the right to: the window counts in any case. */
static int look_at_tables(struct store *s, unsigned shard, struct err *err)
{
	uint64_t now_ns = clock_mono_ns(), *retained = &s->shards[shard].retained_mono_ns;
	struct tables_state state;
	int r;

	if (*retained && now_ns - *retained < hour_ns)
		return 0;
	r = tables_check(s->client, shard, &state, err);
	if (r)
		return r;
	*retained = now_ns ?: 1;
	tables_retain(s->client, shard, clock_wall_ns(), NULL);
	return 0;
}

/* What the header promises, of clickhouse.h's and our own errors. */
static int meaning_of(int r)
{
	switch (r) {
	case -EPROTO:
		return -EREMOTEIO;
	case -EUSERS:
		return -ENXIO;
	case -EINVAL:
	case -ENODATA:
	case -EFBIG:
		return -EBADMSG;
	default:
		return r;
	}
}

static int with_meaning(int r, struct err *err)
{
	r = meaning_of(r);
	if (r && err)
		err->code = -r;
	return r;
}

static int store_add(void *sink, const struct sink_window *w, struct err *err)
{
	const struct push_options o = { .target = w->target, .release = w->release, .labels = w->labels };
	struct store *s = sink;
	struct pushbatch *batch = s->shards[storeurl_shard_of(w->target, clickhouse_shards(s->client))].batch;
	struct windows windows = { 0 };
	int r = push_check(&o, err);

	if (!r) {
		r = windows_make(&windows, w->job, MAX(select_duration_ns(w->job->profile), (uint64_t)1), err);
		if (!r) {
			/* One window, with the number that the agent knows it by. */
			windows.list.v[0].sequence = w->sequence;
			r = pushbatch_add(batch, &o, &windows, &windows.list.v[0], err);
		}
		windows_done(&windows);
	}
	return r ? with_meaning(r, err) : pushbatch_is_full(batch);
}

/* Those of a server that is well are there, even if another one fails: they are found when they come again. */
static int store_flush(void *sink, struct err *err)
{
	struct store *s = sink;
	int failed = 0;

	for (unsigned i = 0; i < clickhouse_shards(s->client); i++) {
		struct pushbatch_result result;
		struct err own = { 0 };
		int r = pushbatch_count(s->shards[i].batch) ? look_at_tables(s, i, &own) : 0;

		if (r)
			pushbatch_clear(s->shards[i].batch);
		else
			r = pushbatch_send(s->shards[i].batch, &result, &own);
		if (r && !failed) {
			failed = r;
			*err = own;
		}
	}
	return with_meaning(failed, err);
}

static int store_send(void *sink, const struct sink_window *w, struct err *err)
{
	int r = store_add(sink, w, err);

	return r < 0 ? r : store_flush(sink, err);
}

const struct sink_type sink_clickhouse = {
	.schemes = { "clickhouse", "clickhouses" },
	.describe = "a store, made by gasflame store init: each window counts once, and every command reads it",
	.open = store_open,
	.send = store_send,
	.add = store_add,
	.flush = store_flush,
	.close = store_close,
	.takes = SINK_USER | SINK_CA,
};
