#include "fleet/push/pushbatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/push/push.h"
#include "fleet/push/pushrows.h"
#include "fleet/sql.h"
#include "fleet/window.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;
/* Of the stacks and frames that are known to be sent: beyond it all are forgotten, and sent once more. */
enum { MOST_SENT = 300000 };

/* A window of the batch. */
struct item {
	char *target;
	uint64_t id, digest, second, sequence;
	size_t commit_at; /* its row in the commits, which ends where the next one begins */
	bool there;
};

struct pushbatch {
	struct clickhouse *c;
	unsigned shard;
	uint64_t attempts;
	struct pushsent sent;
	struct pushrows rows;
	VEC(struct item) items;
	struct map index; /* ids to 1 + items */
};

struct pushbatch *pushbatch_new(struct clickhouse *c, unsigned shard)
{
	struct pushbatch *b = mem_alloc(sizeof(*b));

	b->c = c;
	b->shard = shard;
	return b;
}

void pushbatch_clear(struct pushbatch *b)
{
	vec_done_each(&b->items, e, free(e->target));
	map_clear(&b->index);
	pushrows_done(&b->rows);
}

void pushbatch_free(struct pushbatch *b)
{
	if (!b)
		return;
	pushbatch_clear(b);
	map_done(&b->index);
	map_done(&b->sent.keys);
	free(b);
}

bool pushbatch_is_full(const struct pushbatch *b)
{
	return b->items.n >= PUSHBATCH_WINDOWS || pushrows_bytes(&b->rows) >= PUSHBATCH_BYTES;
}

size_t pushbatch_count(const struct pushbatch *b)
{
	return b->items.n;
}

static uint64_t new_attempt(struct pushbatch *b)
{
	return map_hash(clock_wall_ns() ^ map_hash(clock_mono_ns() ^ map_hash((uint64_t)getpid() << 32 | ++b->attempts)));
}

static int other_sums(uint64_t sequence, struct err *err)
{
	return err_set(err, EEXIST, "window %llu of this recording is in the store with other sums: the recording went on after it was pushed, or "
		       "another one has its target and time; push it with another --target", (unsigned long long)sequence);
}

int pushbatch_add(struct pushbatch *b, const struct push_options *o, const struct windows *w, const struct window *x, struct err *err)
{
	uint64_t wall = window_wall_ns(w, x), id = window_id(o->target, wall, x->sequence), *at = map_put(&b->index, id, 0);

	/* A window that is in it twice would be committed twice by one attempt. */
	if (*at)
		return b->items.v[*at - 1].digest == x->digest ? 0 : other_sums(x->sequence, err);
	if (!b->items.n) {
		b->rows.attempt = new_attempt(b);
		if (b->sent.keys.n > MOST_SENT)
			map_clear(&b->sent.keys);
	}
	vec_push(&b->items, (struct item){ mem_strdup(o->target), id, x->digest, wall / second_ns, x->sequence, b->rows.commits.n, false });
	*at = b->items.n;
	pushrows_add(&b->rows, &(struct pushrows_from){ o, &b->sent, w, x });
	return 0;
}

/* --- what the store has --- */

/* By target and time first, which is the order of the table. */
static void put_question(const struct pushbatch *b, struct buf *sql)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < b->items.n; i++) {
		first = MIN(first, b->items.v[i].second);
		last = MAX(last, b->items.v[i].second);
	}
	buf_puts(sql, "SELECT window_id, min(digest), max(digest) FROM windows WHERE target IN (");
	for (size_t i = 0; i < b->items.n; i++) {
		if (i && !strcmp(b->items.v[i].target, b->items.v[i - 1].target))
			continue;
		buf_puts(sql, i ? ", " : "");
		sql_literal(sql, b->items.v[i].target);
	}
	buf_printf(sql, ") AND day >= toDate(%llu) AND day <= toDate(%llu) AND start >= toDateTime(%llu) AND start <= toDateTime(%llu) AND window_id IN (",
		   (unsigned long long)(first / day_seconds), (unsigned long long)(last / day_seconds), (unsigned long long)first,
		   (unsigned long long)last);
	for (size_t i = 0; i < b->items.n; i++)
		buf_printf(sql, "%s%llu", i ? ", " : "", (unsigned long long)b->items.v[i].id);
	buf_puts(sql, ") GROUP BY window_id");
}

static int find_there(struct pushbatch *b, uint64_t *ret_there, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	put_question(b, &sql);
	r = clickhouse_select(b->c, b->shard, sql.data, &a, err);
	for (size_t i = 0; !r && i < a.rows; i++) {
		const uint64_t *at = map_get(&b->index, answer_u64(&a, i, 0));
		struct item *item = at && *at ? &b->items.v[*at - 1] : NULL;

		if (!item || item->there)
			continue;
		item->there = true;
		++*ret_there;
		if (answer_u64(&a, i, 1) != item->digest || answer_u64(&a, i, 2) != item->digest)
			r = other_sums(item->sequence, err);
	}
	answer_done(&a);
	return r;
}

/* Rows without a commit never count: it is enough not to send that one. */
static void leave_out_commits(struct pushbatch *b)
{
	struct buf *commits = &b->rows.commits, kept = { 0 };

	for (size_t i = 0; i < b->items.n; i++) {
		size_t from = b->items.v[i].commit_at, to = i + 1 < b->items.n ? b->items.v[i + 1].commit_at : commits->n;

		if (!b->items.v[i].there)
			buf_add(&kept, commits->data + from, to - from);
	}
	buf_done(commits);
	*commits = kept;
}

int pushbatch_send(struct pushbatch *b, struct pushbatch_result *ret, struct err *err)
{
	int r = 0;

	*ret = (struct pushbatch_result){ 0 };
	if (!b->items.n)
		return 0;
	r = find_there(b, &ret->there, err);
	if (!r && ret->there < b->items.n) {
		if (ret->there)
			leave_out_commits(b);
		r = pushrows_send(&b->rows, b->c, b->shard, err);
		if (!r) {
			ret->windows = b->items.n - ret->there;
			ret->rows = b->rows.count;
		}
	}
	pushbatch_clear(b);
	return r;
}
