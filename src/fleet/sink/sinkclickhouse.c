/*
 * sinkclickhouse.c - windows into a store (push.h), each exactly once.
 *
 * A pusher for each target is kept, as stacks and frames are sent once a day in its life; it goes when its target was not seen for
 * an hour. A window of an agent is one of the store, however long it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "export/export.h"
#include "fleet/clickhouse.h"
#include "fleet/push.h"
#include "fleet/sink/sinktypes.h"
#include "fleet/storeurl.h"
#include "fleet/tables.h"
#include "fleet/window.h"

static const uint64_t hour_ns = 3600ULL * 1000000000;

struct target {
	struct pusher *pusher;
	char *name, *release; /* release NULL = not known */
	VEC(char *) labels;   /* with a NULL at the end */
	uint64_t used_mono_ns;
};

struct store {
	struct storeurl url;
	struct clickhouse *client;
	VEC(struct target *) targets;
	uint64_t *retained_mono_ns; /* by shard; 0 = never */
};

static void target_free(struct target *t)
{
	pusher_free(t->pusher);
	free(t->name);
	free(t->release);
	vec_done_each(&t->labels, e, free(*e));
	free(t);
}

static void store_close(void *sink)
{
	struct store *s = sink;

	if (!s)
		return;
	vec_done_each(&s->targets, e, target_free(*e));
	clickhouse_close(s->client);
	storeurl_done(&s->url);
	free(s->retained_mono_ns);
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
	s->retained_mono_ns = mem_alloc(s->url.shards.n * sizeof(*s->retained_mono_ns));
	*ret = s;
	return 0;
}

/* --- the pusher of a target --- */

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_of(const struct target *t, const struct sink_window *w)
{
	size_t n = 0;

	if (!is_same(t->release, w->release))
		return false;
	while (w->labels && w->labels[n]) {
		if (n >= t->labels.n || !is_same(t->labels.v[n], w->labels[n]))
			return false;
		n++;
	}
	return n + 1 == t->labels.n;
}

static void forget(struct store *s, size_t i)
{
	target_free(s->targets.v[i]);
	s->targets.v[i] = s->targets.v[--s->targets.n];
}

static int target_new(struct store *s, const struct sink_window *w, struct target **ret, struct err *err)
{
	struct target *t = mem_alloc(sizeof(*t));
	struct push_options o = { .tries = 1 };
	int r;

	o.target = t->name = mem_strdup(w->target);
	o.release = t->release = mem_strdup(w->release);
	for (size_t i = 0; w->labels && w->labels[i]; i++)
		vec_push(&t->labels, mem_strdup(w->labels[i]));
	vec_push(&t->labels, NULL);
	o.labels = (const char *const *)t->labels.v;
	r = push_check(&o, err);
	if (r) {
		target_free(t);
		return r;
	}
	t->pusher = pusher_new(s->client, &o);
	vec_push(&s->targets, t);
	*ret = t;
	return 0;
}

/* One whose release or labels are others is made anew. */
static int find_target(struct store *s, const struct sink_window *w, uint64_t now_ns, struct target **ret, struct err *err)
{
	struct target *found = NULL;
	int r = 0;

	for (size_t i = s->targets.n; i--;) {
		struct target *t = s->targets.v[i];

		if (now_ns - t->used_mono_ns > hour_ns || (!strcmp(t->name, w->target) && !is_of(t, w)))
			forget(s, i);
		else if (!strcmp(t->name, w->target))
			found = t;
	}
	if (!found)
		r = target_new(s, w, &found, err);
	if (!r)
		found->used_mono_ns = now_ns;
	*ret = found;
	return r;
}

/* --- a window --- */

/* Tables of a later gasflame are not written to. Days that are too old go, where the server does not do that itself; who pushes may lack
 * the right to: the window counts in any case. */
static int look_at_tables(struct store *s, unsigned shard, uint64_t now_ns, struct err *err)
{
	struct tables_state state;
	int r;

	if (s->retained_mono_ns[shard] && now_ns - s->retained_mono_ns[shard] < hour_ns)
		return 0;
	r = tables_check(s->client, shard, &state, err);
	if (r)
		return r;
	s->retained_mono_ns[shard] = now_ns ?: 1;
	tables_retain(s->client, shard, clock_wall_ns(), NULL);
	return 0;
}

static int push(struct target *t, const struct sink_window *w, struct err *err)
{
	struct push_result result = { 0 };
	struct windows windows;
	int r = windows_make(&windows, w->job, MAX(select_duration_ns(w->job->profile), (uint64_t)1), err);

	if (!r) {
		/* One window, with the number that the agent knows it by. */
		windows.list.v[0].sequence = w->sequence;
		r = pusher_send(t->pusher, &windows, &result, err);
	}
	windows_done(&windows);
	return r;
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

static int store_send(void *sink, const struct sink_window *w, struct err *err)
{
	struct store *s = sink;
	uint64_t now_ns = clock_mono_ns();
	struct target *t = NULL;
	int r = find_target(s, w, now_ns, &t, err);

	if (!r)
		r = look_at_tables(s, storeurl_shard_of(w->target, clickhouse_shards(s->client)), now_ns, err);
	if (!r)
		r = push(t, w, err);
	r = meaning_of(r);
	if (r && err)
		err->code = -r;
	return r;
}

const struct sink_type sink_clickhouse = {
	.schemes = { "clickhouse", "clickhouses" },
	.describe = "a store, made by gasflame store init: each window counts once, and every command reads it",
	.open = store_open,
	.send = store_send,
	.close = store_close,
	.takes = SINK_USER | SINK_CA,
};
