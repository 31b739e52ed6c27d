#include "fleet/fetch/fetchsums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/fetch/fetchnames.h"
#include "fleet/sql.h"
#include "profile/profile.h"

static const uint64_t day_seconds = 86400;
/* IDS: in one statement, of which a server takes 256 KiB. MOST_STACKS: a machine with little memory may make roll-ups. */
enum { IDS = 8000, MOST_STACKS = 2000000 };

struct fetchsums {
	struct clickhouse *c;
	unsigned shard;
	uint64_t day;
	struct profile *p; /* NULL = none yet */
	struct fetchnames names;
};

/* Hashes that the store is asked for. */
struct ids {
	VEC(uint64_t) list;
	struct map known;
};

struct fetchsums *fetchsums_new(struct clickhouse *c, unsigned shard)
{
	struct fetchsums *s = mem_alloc(sizeof(*s));

	s->c = c;
	s->shard = shard;
	return s;
}

static void forget(struct fetchsums *s)
{
	if (!s->p)
		return;
	fetchnames_done(&s->names);
	profile_free(s->p);
	s->p = NULL;
}

void fetchsums_free(struct fetchsums *s)
{
	if (!s)
		return;
	forget(s);
	free(s);
}

/* --- names --- */

static void add_id(struct ids *ids, const struct map *there, uint64_t id)
{
	uint64_t *known;

	if (!id || map_get(there, id))
		return;
	known = map_put(&ids->known, id, 0);
	if (!*known) {
		*known = 1;
		vec_push(&ids->list, id);
	}
}

static void ids_done(struct ids *ids)
{
	vec_done(&ids->list);
	map_done(&ids->known);
}

/* Some of the ids, from *at on. */
static int ask_ids(struct fetchsums *s, const char *columns, const char *table, const char *key, const struct ids *ids, size_t *at, struct answer *ret,
		   struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	size_t end = MIN(*at + IDS, ids->list.n);

	buf_printf(&sql, "SELECT %s FROM %s WHERE day = toDate(%llu) AND %s IN (", columns, table, (unsigned long long)s->day, key);
	for (size_t i = *at; i < end; i++)
		buf_printf(&sql, "%s%llu", i > *at ? ", " : "", (unsigned long long)ids->list.v[i]);
	buf_printf(&sql, ") GROUP BY %s ORDER BY %s", key, key);
	*at = end;
	return clickhouse_select(s->c, s->shard, sql.data, ret, err);
}

static int take_frames(struct fetchsums *s, const struct ids *ids, struct err *err)
{
	int r = 0;

	for (size_t at = 0; !r && at < ids->list.n;) {
		struct answer a;

		r = ask_ids(s, FETCHNAMES_FRAME, "frames", "frame", ids, &at, &a, err);
		for (size_t i = 0; !r && i < a.rows; i++)
			fetchnames_take_frame(&s->names, &a, i);
		answer_done(&a);
	}
	return r;
}

static int take_stacks(struct fetchsums *s, const struct ids *ids, struct err *err)
{
	int r = 0;

	for (size_t at = 0; !r && at < ids->list.n;) {
		struct ids frames = { 0 };
		struct answer a;

		r = ask_ids(s, FETCHNAMES_STACK, "stacks", "stack", ids, &at, &a, err);
		for (size_t i = 0; !r && i < a.rows; i++)
			for (size_t k = 0; k < answer_count(&a, i, 1); k++)
				add_id(&frames, &s->names.frames, answer_item_u64(&a, i, 1, k));
		if (!r)
			r = take_frames(s, &frames, err);
		for (size_t i = 0; !r && i < a.rows; i++)
			fetchnames_take_stack(&s->names, &a, i);
		answer_done(&a);
		ids_done(&frames);
	}
	return r;
}

/* --- sums --- */

/* "...": which rows count. */
static char *make_condition(const struct fetchsums_part *part)
{
	_cleanup_(buf_done) struct buf time = { 0 }, all = { 0 };
	unsigned long long from = part->from_second, to = part->to_second;

	buf_puts(&time, "target = ");
	sql_literal(&time, part->target);
	buf_printf(&time, " AND day = toDate(%llu) AND start >= toDateTime(%llu) AND start < toDateTime(%llu)", from / day_seconds, from, to);
	buf_printf(&all, "%s AND (window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows WHERE %s AND release = ", time.data, time.data);
	sql_literal(&all, part->release);
	buf_puts(&all, " GROUP BY window_id)");
	return mem_strdup(all.data);
}

static int take_events(struct fetchsums *s, const char *where, struct err *err)
{
	_cleanup_free_ char *sql = mem_printf("SELECT DISTINCT event, unit FROM windows ARRAY JOIN events AS event, units AS unit WHERE %s ORDER BY event", where);
	struct answer a;
	int r = clickhouse_select(s->c, s->shard, sql, &a, err);

	if (!r && !a.rows)
		r = err_set(err, ENODATA, "there are no windows");
	for (size_t i = 0; !r && i < a.rows; i++)
		if (profile_find_event(s->p, answer_text(&a, i, 0), answer_text(&a, i, 1)) == PROFILE_NONE)
			profile_add_event(s->p, answer_text(&a, i, 0), answer_text(&a, i, 1), "", 0);
	answer_done(&a);
	return r;
}

static void take_sum(struct fetchsums *s, const struct answer *a, size_t row, uint64_t slots)
{
	uint64_t slot = answer_u64(a, row, 0), stack = answer_u64(a, row, 2), count = answer_u64(a, row, 4);
	const uint64_t *known = stack ? map_get(&s->names.stacks, stack) : NULL;
	uint32_t event = profile_find_event(s->p, answer_text(a, row, 1), NULL);

	if (event != PROFILE_NONE && slot < slots)
		profile_add_sample(s->p, &(struct profile_sample){ .time_ns = slot, .event = event, .stack = known ? *known : 0,
								   .value = answer_u64(a, row, 3), .count = MIN(count, (uint64_t)UINT32_MAX) });
}

static int take_sums(struct fetchsums *s, const struct fetchsums_part *part, const char *where, struct err *err)
{
	_cleanup_free_ char *sql = mem_printf("SELECT intDiv(toUInt32(start) - %llu, %llu) AS slot, event, stack, sum(value), sum(count) FROM samples WHERE %s "
					      "AND cause != 'idle' GROUP BY slot, event, stack ORDER BY slot, event, stack", (unsigned long long)part->from_second,
					      (unsigned long long)part->slot_seconds, where);
	uint64_t slots = (part->to_second - part->from_second - 1) / part->slot_seconds + 1;
	struct ids stacks = { 0 };
	struct answer a;
	int r = clickhouse_select(s->c, s->shard, sql, &a, err);

	for (size_t i = 0; !r && i < a.rows; i++)
		add_id(&stacks, &s->names.stacks, answer_u64(&a, i, 2));
	if (!r)
		r = take_stacks(s, &stacks, err);
	for (size_t i = 0; !r && i < a.rows; i++)
		take_sum(s, &a, i, slots);
	answer_done(&a);
	ids_done(&stacks);
	return r;
}

int fetchsums_read(struct fetchsums *s, const struct fetchsums_part *part, const struct profile **ret, struct err *err)
{
	_cleanup_free_ char *where = make_condition(part);
	uint64_t day = part->from_second / day_seconds;
	int r;

	if (s->p && (s->day != day || s->p->stacks.n > MOST_STACKS))
		forget(s);
	if (!s->p) {
		s->p = profile_new();
		s->day = day;
		fetchnames_init(&s->names, s->p);
	}
	vec_clear(&s->p->samples);
	r = take_events(s, where, err);
	if (!r)
		r = take_sums(s, part, where, err);
	if (!r)
		*ret = s->p;
	return r;
}
