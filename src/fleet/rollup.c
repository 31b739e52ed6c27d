#include "fleet/rollup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/tree/ident.h"
#include "analyze/wait/cause.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/condition.h"
#include "fleet/fetch/fetchsums.h"
#include "fleet/sql.h"
#include "profile/profile.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;
/* Agents deliver every few minutes; what comes later makes the roll-up again. METHOD: of a gasflame that counts otherwise, another one. */
enum { GRACE_SECONDS = 120, METHOD = 1, MOST_LISTED = 100000 };

/* --- which --- */

void rollup_put_hours(struct buf *sql, const char *where)
{
	/* Of a window that two attempts committed, one. The sum wraps around, and does not depend on the order. */
	buf_printf(sql, "SELECT target, hour, count() AS windows, sum(bitXor(window_id, content)) AS digest FROM (SELECT target, window_id, "
		   "argMin(digest, attempt) AS content, toUInt32(intDiv(toUInt32(any(start)), %d) * %d) AS hour FROM windows WHERE %s GROUP BY target, "
		   "window_id) GROUP BY target, hour", ROLLUP_HOUR_SECONDS, ROLLUP_HOUR_SECONDS, where);
}

void rollup_put_covered(struct buf *sql, const char *where, const char *rollups_where)
{
	buf_puts(sql, "SELECT target, hour FROM (");
	rollup_put_hours(sql, where);
	buf_printf(sql, ") WHERE (target, hour, windows, digest) IN (SELECT target, toUInt32(hour), windows, digest FROM rollups WHERE %s AND method = "
		   "%d)", rollups_where, METHOD);
}

void rollup_put_valid(struct buf *sql, const char *where, const char *rollups_where)
{
	buf_printf(sql, "SELECT argMax(rollup, made) FROM rollups WHERE %s AND method = %d AND (target, toUInt32(hour), windows, digest) IN (",
		   rollups_where, METHOD);
	rollup_put_hours(sql, where);
	buf_puts(sql, ") GROUP BY target, hour");
}

/* A target's hour to be made. */
struct hour {
	char *target;
	uint64_t second, windows, digest;
};

struct work {
	struct clickhouse *c;
	unsigned shard;
	struct fetchsums *sums;
	uint64_t rollup;
	VEC(struct hour) list;
	struct buf rows;
	uint64_t row_count;
};

static void put_time(struct buf *b, const struct rollup_options *o, const char *column)
{
	uint64_t now = o->now_ns / second_ns, last = now > GRACE_SECONDS ? (now - GRACE_SECONDS) / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS : 0;
	uint64_t from = (o->from_ns / second_ns + ROLLUP_HOUR_SECONDS - 1) / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS, to = o->to_ns ? o->to_ns / second_ns : last;

	to = MIN((to + ROLLUP_HOUR_SECONDS - 1) / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS, last);
	condition_put_time(b, column, from, to);
	if (o->target) {
		buf_puts(b, " AND target = ");
		sql_literal(b, o->target);
	}
}

static int find_hours(struct work *w, const struct rollup_options *o, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 }, windows = { 0 }, rollups = { 0 };
	struct answer a;
	int r;

	put_time(&windows, o, "start");
	put_time(&rollups, o, "hour");
	buf_puts(&sql, "SELECT target, hour, windows, digest FROM (");
	rollup_put_hours(&sql, windows.data);
	buf_printf(&sql, ") WHERE (target, hour, windows, digest) NOT IN (SELECT target, toUInt32(hour), windows, digest FROM rollups WHERE %s AND "
		   "method = %d) ORDER BY hour, target LIMIT %d", rollups.data, METHOD, MOST_LISTED);
	r = clickhouse_select(w->c, w->shard, sql.data, &a, err);
	for (size_t i = 0; !r && i < a.rows; i++)
		vec_push(&w->list, (struct hour){ mem_strdup(answer_text(&a, i, 0)), answer_u64(&a, i, 1), answer_u64(&a, i, 2), answer_u64(&a, i, 3) });
	answer_done(&a);
	return r;
}

static void put_hour(struct buf *b, const struct hour *h)
{
	unsigned long long from = h->second;

	buf_puts(b, "target = ");
	sql_literal(b, h->target);
	buf_printf(b, " AND day = toDate(%llu) AND start >= toDateTime(%llu) AND start < toDateTime(%llu)", from / day_seconds, from,
		   from + ROLLUP_HOUR_SECONDS);
}

/* Are the windows still those that were listed? Windows are only ever added: if so, what was read between was of those. */
static int is_same(struct work *w, const struct hour *h, bool *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 }, where = { 0 };
	struct answer a;
	int r;

	put_hour(&where, h);
	rollup_put_hours(&sql, where.data);
	r = clickhouse_select(w->c, w->shard, sql.data, &a, err);
	*ret = !r && a.rows == 1 && answer_u64(&a, 0, 2) == h->windows && answer_u64(&a, 0, 3) == h->digest;
	answer_done(&a);
	return r;
}

/* --- sums of functions --- */

struct sum {
	const char *name;
	uint64_t self, total, self_count, total_count;
	size_t last; /* the sample that was counted last, from 1 on: recursion counts once */
};

/* Of one slot and event. */
struct sums {
	struct idents idents;
	struct map index; /* names, which are interned, to the list */
	VEC(struct sum) list;
};

static bool is_function(const struct ident *id)
{
	return id->kind == IDENT_USER || id->kind == IDENT_INLINED || id->kind == IDENT_KERNEL || id->kind == IDENT_UNNAMED;
}

static struct sum *sum_of(struct sums *s, const char *name)
{
	uint64_t *at = map_put(&s->index, (uintptr_t)name, s->list.n);

	if (*at == s->list.n)
		vec_push(&s->list, (struct sum){ .name = name });
	return &s->list.v[*at];
}

/* From the leaf to the root; a note at the leaf is the business of the function above it, as in reports (top.c). */
static void add_sample(struct sums *s, const struct profile *p, const struct profile_sample *sample, size_t number)
{
	enum role role = cause_role(p, sample->event);
	uint32_t stack = role == ROLE_WAIT || role == ROLE_QUEUE ? cause_trim(p, sample->stack) : sample->stack;
	bool leaf = true;

	for (; stack; stack = p->stacks.v[stack].parent) {
		uint32_t n;
		const uint32_t *list = idents_of_frame(&s->idents, p->stacks.v[stack].frame, &n);

		while (n-- > 0) {
			const struct ident *id = &s->idents.list.v[list[n]];
			struct sum *sum = is_function(id) ? sum_of(s, id->name) : NULL;

			if (sum && leaf) {
				sum->self += sample->value;
				sum->self_count += sample->count;
			}
			if (sum && sum->last != number) {
				sum->total += sample->value;
				sum->total_count += sample->count;
				sum->last = number;
			}
			leaf &= id->kind == IDENT_NOTE || id->kind == IDENT_CAUSE;
		}
	}
}

static void put_row(struct work *w, const struct hour *h, uint64_t slot, const char *release, const char *event, const struct sum *s)
{
	uint64_t second = h->second + slot * ROLLUP_SLOT_SECONDS;

	sql_row_u16(&w->rows, h->second / day_seconds);
	sql_row_u32(&w->rows, second);
	sql_row_string(&w->rows, h->target);
	sql_row_string(&w->rows, release);
	sql_row_string(&w->rows, event);
	sql_row_string(&w->rows, s->name);
	sql_row_u64(&w->rows, s->self);
	sql_row_u64(&w->rows, s->total);
	sql_row_u64(&w->rows, s->self_count);
	sql_row_u64(&w->rows, s->total_count);
	sql_row_u64(&w->rows, w->rollup);
	w->row_count++;
}

/* Samples come by slot and event. */
static void put_sums(struct work *w, const struct hour *h, const char *release, const struct profile *p)
{
	struct sums s = { 0 };

	idents_init(&s.idents, p, IDENTS_NAMES_ONLY);
	for (size_t i = 0; i < p->samples.n;) {
		const struct profile_sample *first = &p->samples.v[i];
		const char *event = profile_str(p, p->events.v[first->event].name);
		struct sum all = { .name = "" };

		map_clear(&s.index);
		vec_clear(&s.list);
		for (; i < p->samples.n && p->samples.v[i].time_ns == first->time_ns && p->samples.v[i].event == first->event; i++) {
			add_sample(&s, p, &p->samples.v[i], i + 1);
			all.total += p->samples.v[i].value;
			all.total_count += p->samples.v[i].count;
		}
		put_row(w, h, first->time_ns, release, event, &all);
		for (size_t k = 0; k < s.list.n; k++)
			put_row(w, h, first->time_ns, release, event, &s.list.v[k]);
	}
	vec_done(&s.list);
	map_done(&s.index);
	idents_done(&s.idents);
}

/* A program that was replaced within the hour has two releases there. */
static int read_hour(struct work *w, const struct hour *h, struct err *err)
{
	_cleanup_(buf_done) struct buf where = { 0 };
	_cleanup_free_ char *sql = NULL;
	struct answer a;
	int r;

	put_hour(&where, h);
	sql = mem_printf("SELECT DISTINCT release FROM windows WHERE %s ORDER BY release", where.data);
	r = clickhouse_select(w->c, w->shard, sql, &a, err);
	w->rows.n = w->row_count = 0;
	for (size_t i = 0; !r && i < a.rows; i++) {
		const struct fetchsums_part part = { h->target, answer_text(&a, i, 0), h->second, h->second + ROLLUP_HOUR_SECONDS, ROLLUP_SLOT_SECONDS };
		const struct profile *p;

		r = fetchsums_read(w->sums, &part, &p, err);
		if (!r)
			put_sums(w, h, part.release, p);
		/* Windows of that release that lost to an attempt of another one. */
		if (r == -ENODATA)
			r = 0;
	}
	answer_done(&a);
	return r;
}

/* --- making one --- */

/* The blocks of the hour, by the server. */
static int put_blocks(struct work *w, const struct hour *h, struct buf *row, struct err *err)
{
	_cleanup_(buf_done) struct buf where = { 0 };
	_cleanup_free_ char *sql = NULL;
	struct answer a;
	int r;

	put_hour(&where, h);
	sql = mem_printf("SELECT count(), sum(end_ns - begin_ns), quantileExact(0.5)(end_ns - begin_ns), quantileExact(0.9)(end_ns - begin_ns), "
			 "quantileExact(0.99)(end_ns - begin_ns), max(end_ns - begin_ns), sum(gas), sum(transactions) FROM blocks WHERE %s AND "
			 "kind = 'block' AND end_ns > begin_ns AND (window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows WHERE %s GROUP BY "
			 "window_id)", where.data, where.data);
	r = clickhouse_select(w->c, w->shard, sql, &a, err);
	for (size_t i = 0; !r && i < 8; i++)
		sql_row_u64(row, answer_u64(&a, 0, 0) ? answer_u64(&a, 0, i) : 0);
	answer_done(&a);
	return r;
}

static int make_hour(struct work *w, const struct hour *h, bool *ret_made, struct err *err)
{
	_cleanup_(buf_done) struct buf commit = { 0 };
	int r;

	*ret_made = false;
	w->rollup = map_hash(clock_wall_ns() ^ map_hash(clock_mono_ns() ^ map_hash((uint64_t)getpid() << 32 | h->second / ROLLUP_HOUR_SECONDS)));
	sql_row_u16(&commit, h->second / day_seconds);
	sql_row_u32(&commit, h->second);
	sql_row_string(&commit, h->target);
	sql_row_u64(&commit, w->rollup);
	sql_row_u64(&commit, clock_wall_ns());
	sql_row_u32(&commit, METHOD);
	sql_row_u64(&commit, h->windows);
	sql_row_u64(&commit, h->digest);
	r = read_hour(w, h, err);
	if (!r)
		r = put_blocks(w, h, &commit, err);
	if (!r)
		r = is_same(w, h, ret_made, err);
	if (r || !*ret_made)
		return r;
	r = clickhouse_insert(w->c, w->shard, "functions", "day, start, target, release, event, name, self, total, self_count, total_count, rollup",
			      &w->rows, err);
	return r ? r : clickhouse_insert(w->c, w->shard, "rollups", "day, hour, target, rollup, made, method, windows, digest, blocks, block_ns, "
					 "block_p50, block_p90, block_p99, block_max, gas, transactions", &commit, err);
}

int rollup_hours(struct clickhouse *c, unsigned shard, const struct rollup_options *o, struct rollup_result *ret, struct err *err)
{
	struct work w = { .c = c, .shard = shard, .sums = fetchsums_new(c, shard) };
	size_t most = o->most ? o->most : ROLLUP_MOST, done = 0;
	int r = find_hours(&w, o, err);

	for (; !r && done < w.list.n && done < most; done++) {
		bool made;

		r = make_hour(&w, &w.list.v[done], &made, err);
		if (r)
			break;
		ret->made += made;
		ret->rows += made ? w.row_count : 0;
	}
	ret->left = w.list.n - done;
	vec_done_each(&w.list, e, free(e->target));
	buf_done(&w.rows);
	fetchsums_free(w.sums);
	return r;
}
