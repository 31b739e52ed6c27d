#include "fleet/push/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/clickhouse.h"
#include "fleet/push/pushbatch.h"
#include "fleet/storeurl.h"
#include "fleet/window.h"

enum { FIRST_PAUSE_MS = 200, LONGEST_PAUSE_MS = 5000, MOST_NAME_BYTES = 200, MOST_LABELS = 64 };

struct pusher {
	struct clickhouse *c;
	struct push_options o;
	struct pushbatch *batch;
};

/* A window of one of several captures. */
struct item {
	const struct windows *w;
	const struct window *x;
};

/* --- names --- */

static int check_name(const char *what, const char *name, struct err *err)
{
	if (!*name)
		return err_set(err, EINVAL, "%s has no name", what);
	if (strlen(name) > MOST_NAME_BYTES)
		return err_set(err, EINVAL, "%s is longer than %d bytes", what, MOST_NAME_BYTES);
	return 0;
}

int push_check(const struct push_options *o, struct err *err)
{
	int r = check_name("the target", o->target, err);
	size_t n = 0;

	if (!r && o->release)
		r = check_name("the release", o->release, err);
	for (const char *const *label = o->labels; !r && label && *label; label++) {
		r = check_name("a label", *label, err);
		if (!r && (!strchr(*label, '=') || **label == '='))
			r = err_set(err, EINVAL, "a label is KEY=VALUE");
		if (!r && ++n > MOST_LABELS)
			r = err_set(err, EINVAL, "there are more than %d labels", MOST_LABELS);
	}
	return r;
}

/* --- tries --- */

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* Doubled each time, and of a fleet whose store was away not all at once. */
static void pause_before(const struct pusher *p, unsigned tries)
{
	unsigned ms = MIN((unsigned)FIRST_PAUSE_MS << MIN(tries, 10u), (unsigned)LONGEST_PAUSE_MS);

	ms = ms / 2 + map_hash(clock_mono_ns() ^ (uint64_t)getpid()) % (ms / 2 + 1);
	(p->o.pause ? p->o.pause : sleep_ms)(ms);
}

static bool may_pass(int r)
{
	return r == -EIO || r == -ETIMEDOUT || r == -EAGAIN;
}

/* What is found after a try of ours is of that try, whose answer was lost; what was found at first was there. */
static int deliver(struct pusher *p, const struct item *items, size_t n, struct push_result *ret, struct err *err)
{
	uint64_t first_there = 0;

	for (unsigned tries = 0;; tries++) {
		struct pushbatch_result result = { 0 };
		size_t twice = 0;
		int r = 0;

		for (size_t i = 0; !r && i < n; i++)
			r = pushbatch_add(p->batch, &p->o, items[i].w, items[i].x, err);
		twice = n - pushbatch_count(p->batch);
		if (!r)
			r = pushbatch_send(p->batch, &result, err);
		if (!tries)
			first_there = result.there;
		if (!r) {
			ret->there += first_there + twice;
			ret->windows += result.windows + result.there - MIN(result.there, first_there);
			ret->rows += result.rows;
			return 0;
		}
		if (!may_pass(r) || tries + 1 >= (p->o.tries ? p->o.tries : PUSH_TRIES))
			return r;
		pause_before(p, tries);
	}
}

struct pusher *pusher_new(struct clickhouse *c, const struct push_options *o)
{
	struct pusher *p = mem_alloc(sizeof(*p));

	p->c = c;
	p->o = *o;
	p->batch = pushbatch_new(c, storeurl_shard_of(o->target, clickhouse_shards(c)));
	return p;
}

void pusher_free(struct pusher *p)
{
	if (!p)
		return;
	pushbatch_free(p->batch);
	free(p);
}

int pusher_send_many(struct pusher *p, const struct windows *const *captures, size_t n, struct push_result *ret, struct err *err)
{
	VEC(struct item) list = { 0 };
	uint64_t before = clickhouse_sent_bytes(p->c);
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		for (size_t k = 0; !r && k < captures[i]->list.n; k++) {
			vec_push(&list, (struct item){ captures[i], &captures[i]->list.v[k] });
			if (list.n == PUSHBATCH_WINDOWS) {
				r = deliver(p, list.v, list.n, ret, err);
				vec_clear(&list);
			}
		}
	if (!r && list.n)
		r = deliver(p, list.v, list.n, ret, err);
	ret->bytes += clickhouse_sent_bytes(p->c) - before;
	vec_done(&list);
	return r;
}

int pusher_send(struct pusher *p, const struct windows *w, struct push_result *ret, struct err *err)
{
	return pusher_send_many(p, &w, 1, ret, err);
}
