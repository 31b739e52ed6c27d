#include "fleet/fetch/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/fetch/fetchnames.h"
#include "fleet/sql.h"
#include "fleet/storeurl.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;
enum { LONGEST_WINDOW_SECONDS = 3600 };

struct fetch {
	struct clickhouse *c;
	const struct storeurl *url;
	unsigned shard;
	bool several;              /* targets */
	struct profile *p;
	struct fetchnames names;
	char *where, *committed;   /* conditions: of the time, and of that and commits */
	uint64_t first_second, last_ns, step_seconds, slot_count;
	struct map threads, blocks; /* by the store's hashes, ids of the profile */
	struct map slots;          /* to what is in made */
	VEC(struct profile_summed) made;
};

typedef void take_fn(struct fetch *f, const struct answer *a, size_t row);

/* Asks, and hands over each row. */
static int each(struct fetch *f, char *sql, take_fn *take, struct err *err)
{
	_cleanup_free_ char *own = sql;
	struct answer a;
	int r = clickhouse_select(f->c, f->shard, own, &a, err);

	for (size_t i = 0; !r && i < a.rows; i++)
		take(f, &a, i);
	answer_done(&a);
	return r;
}

/* --- which windows --- */

/* What only the row of a window says. */
static void put_choice(struct buf *b, const struct storeurl *u)
{
	if (u->release) {
		buf_puts(b, " AND release = ");
		sql_literal(b, u->release);
	}
	for (size_t i = 0; i < u->labels.n; i++) {
		buf_puts(b, " AND has(labels, ");
		sql_literal(b, u->labels.v[i]);
		buf_puts(b, ")");
	}
}

static void make_conditions(struct fetch *f)
{
	const struct storeurl *u = f->url;
	uint64_t from = u->from_ns / second_ns, to = u->to_ns ? (u->to_ns + second_ns - 1) / second_ns : UINT32_MAX;
	_cleanup_(buf_done) struct buf days = { 0 }, chosen = { 0 }, all = { 0 };

	/* The index has starts; a window may begin before the time and reach into it. */
	from = from > LONGEST_WINDOW_SECONDS ? from - LONGEST_WINDOW_SECONDS : 0;
	if (u->target) {
		buf_puts(&days, "target = ");
		sql_literal(&days, u->target);
		buf_puts(&days, " AND ");
	} else if (u->targets) {
		buf_puts(&days, "target LIKE ");
		sql_like(&days, u->targets);
		buf_puts(&days, " AND ");
	}
	buf_printf(&days, "day >= toDate(%llu) AND day <= toDate(%llu) AND start >= toDateTime(%llu) AND start <= toDateTime(%llu)",
		   (unsigned long long)(from / day_seconds), (unsigned long long)(to / day_seconds), (unsigned long long)from,
		   (unsigned long long)to);
	put_choice(&chosen, u);
	buf_printf(&all, "%s AND (window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows WHERE %s%s AND start_ns < %llu AND "
		   "start_ns + duration_ns > %llu GROUP BY window_id)", days.data, days.data, chosen.n ? chosen.data : "",
		   (unsigned long long)(u->to_ns ? u->to_ns : INT64_MAX), (unsigned long long)u->from_ns);
	f->where = mem_printf("day >= toDate(%llu) AND day <= toDate(%llu)", (unsigned long long)(from / day_seconds),
			      (unsigned long long)(to / day_seconds));
	f->committed = mem_strdup(all.data);
}

/* The extent of the windows; *ret_n: how many there are. */
static int find_extent(struct fetch *f, uint64_t *ret_n, uint64_t *ret_first_ns, uint64_t *ret_last_ns, struct err *err)
{
	_cleanup_free_ char *sql = mem_printf("SELECT count(), min(start_ns), max(start_ns + duration_ns), "
					      "if(uniqExact(host) > 1, concat(toString(uniqExact(host)), ' hosts'), any(host)), any(kernel) FROM windows "
					      "WHERE %s", f->committed);
	struct answer a;
	int r = clickhouse_select(f->c, f->shard, sql, &a, err);

	*ret_n = r ? 0 : answer_u64(&a, 0, 0);
	if (*ret_n) {
		*ret_first_ns = answer_u64(&a, 0, 1);
		*ret_last_ns = answer_u64(&a, 0, 2);
		f->p->host = profile_string(f->p, answer_text(&a, 0, 3));
		f->p->kernel = profile_string(f->p, answer_text(&a, 0, 4));
	}
	answer_done(&a);
	return r;
}

static uint64_t since_start(const struct fetch *f, uint64_t wall_ns)
{
	return wall_ns > f->p->start_wall_ns ? wall_ns - f->p->start_wall_ns : 0;
}

/* --- names --- */

static void take_frame(struct fetch *f, const struct answer *a, size_t row)
{
	fetchnames_take_frame(&f->names, a, row);
}

static void take_stack(struct fetch *f, const struct answer *a, size_t row)
{
	fetchnames_take_stack(&f->names, a, row);
}

static int fetch_names(struct fetch *f, struct err *err)
{
	_cleanup_free_ char *stacks = mem_printf("%s AND stack IN (SELECT stack FROM samples WHERE %s)", f->where, f->committed);
	int r = each(f, mem_printf("SELECT " FETCHNAMES_FRAME " FROM frames WHERE %s AND frame IN (SELECT arrayJoin(frames) FROM stacks WHERE %s) "
				   "GROUP BY frame ORDER BY frame", f->where, stacks), take_frame, err);

	return r ? r : each(f, mem_printf("SELECT " FETCHNAMES_STACK " FROM stacks WHERE %s GROUP BY stack ORDER BY stack", stacks), take_stack, err);
}

/* --- who --- */

static uint64_t thread_key(uint64_t pid, uint64_t tid, const char *name)
{
	return map_hash(map_pair(pid, tid) ^ map_hash_bytes(name, strlen(name)));
}

/* Threads are told apart by their names, too: one id comes again. */
static uint32_t thread_of(struct fetch *f, uint32_t pid, uint32_t tid, const char *name)
{
	struct profile *p = f->p;
	uint64_t *known = map_get(&f->threads, thread_key(pid, tid, name));
	uint32_t thread;

	if (known)
		return *known;
	/* Makes the process; a second thread of the same id is one more of it. */
	thread = frames_thread(&f->names.made, pid, tid, name);
	if (strcmp(profile_str(p, p->threads.v[thread].name), name))
		thread = profile_add_thread(p, &(struct profile_thread){ .process = p->threads.v[thread].process, .tid = tid,
									 .name = profile_string(p, name) });
	map_put(&f->threads, thread_key(pid, tid, name), thread);
	return thread;
}

static void take_thread(struct fetch *f, const struct answer *a, size_t row)
{
	struct profile *p = f->p;
	uint32_t thread = thread_of(f, answer_u64(a, row, 0), answer_u64(a, row, 1), answer_text(a, row, 2));
	struct profile_thread *t = &p->threads.v[thread];
	struct profile_process *process = &p->processes.v[t->process];
	uint64_t end = answer_u64(a, row, 6);

	process->name = profile_string(p, answer_text(a, row, 3));
	process->exe = profile_string(p, answer_text(a, row, 4));
	t->start_ns = since_start(f, answer_u64(a, row, 5));
	t->end_ns = end && end < f->last_ns ? since_start(f, end) : 0;
	t->cpu_ns += answer_u64(a, row, 7);
	t->run_ns += answer_u64(a, row, 8);
	t->queue_ns += answer_u64(a, row, 9);
	t->blocked_ns += answer_u64(a, row, 10);
}

/* --- what --- */

static void take_event(struct fetch *f, const struct answer *a, size_t row)
{
	const char *name = answer_text(a, row, 0), *unit = answer_text(a, row, 1);

	if (profile_find_event(f->p, name, unit) == PROFILE_NONE)
		profile_add_event(f->p, name, unit, answer_text(a, row, 2), answer_u64(a, row, 3));
}

static void take_mark(struct fetch *f, const struct answer *a, size_t row)
{
	struct profile *p = f->p;
	struct profile_mark m = { .start_ns = since_start(f, answer_u64(a, row, 3)), .end_ns = since_start(f, answer_u64(a, row, 4)),
				  .kind = profile_string(p, answer_text(a, row, 1)), .name = profile_string(p, answer_text(a, row, 2)),
				  .thread = PROFILE_NONE,
				  .block = { answer_u64(a, row, 5), answer_u64(a, row, 6), answer_u64(a, row, 7), answer_u64(a, row, 8) } };

	map_put(&f->blocks, answer_u64(a, row, 0), m.start_ns);
	profile_add_mark(p, &m);
}

/* The longest time of a slot that no block is in: there is what is in no block. Of blocks that leave none the whole slot. */
static struct profile_summed gap_of(const struct fetch *f, uint64_t from, uint64_t to)
{
	const struct profile *p = f->p;
	struct profile_summed best = { from, from };
	uint64_t free_from = from;

	/* Marks are in the order of their begin. */
	for (size_t i = 0; i < p->marks.n && p->marks.v[i].start_ns < to; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (m->end_ns <= m->start_ns || m->end_ns <= from || strcmp(profile_str(p, m->kind), "block"))
			continue;
		if (m->start_ns > free_from && m->start_ns - free_from > best.end_ns - best.start_ns)
			best = (struct profile_summed){ free_from, m->start_ns };
		free_from = MAX(free_from, m->end_ns);
	}
	if (to > free_from && to - free_from > best.end_ns - best.start_ns)
		best = (struct profile_summed){ free_from, to };
	return best.end_ns > best.start_ns ? best : (struct profile_summed){ from, to };
}

/* The time of the samples of a slot that are in no block. */
static uint64_t slot_time(struct fetch *f, uint64_t slot)
{
	uint64_t *known = map_put(&f->slots, slot, f->made.n), from = slot * f->step_seconds * second_ns;

	if (*known == f->made.n) {
		vec_push(&f->made, gap_of(f, from, MIN(from + f->step_seconds * second_ns, f->p->duration_ns)));
		profile_add_summed(f->p, &f->made.v[*known]);
	}
	return f->made.v[*known].start_ns;
}

static void take_sample(struct fetch *f, const struct answer *a, size_t row)
{
	struct profile *p = f->p;
	uint64_t slot = answer_u64(a, row, 0), block = answer_u64(a, row, 5), stack = answer_u64(a, row, 6), count = answer_u64(a, row, 8);
	const uint64_t *known = stack ? map_get(&f->names.stacks, stack) : NULL, *start = block ? map_get(&f->blocks, block) : NULL;
	uint32_t event = profile_find_event(p, answer_text(a, row, 1), NULL);
	struct profile_sample s = { .value = answer_u64(a, row, 7), .count = MIN(count, (uint64_t)UINT32_MAX), .stack = known ? *known : 0,
				    .thread = thread_of(f, answer_u64(a, row, 2), answer_u64(a, row, 3), answer_text(a, row, 4)),
				    .event = event };

	if (event == PROFILE_NONE || slot >= f->slot_count)
		return;
	s.time_ns = start ? *start : slot_time(f, slot);
	if (stack && !known)
		s.stack = profile_stack(p, 0, profile_truncation_frame(p, "not in the store"));
	profile_add_sample(p, &s);
}

/* As profile_merge() does it; of standard errors the largest, because windows of one recording have the same. */
static void take_counter(struct fetch *f, const struct answer *a, size_t row)
{
	const char *name = answer_text(a, row, 0);
	const struct key *key = key_find(name);
	uint64_t known = profile_counter(f->p, name);

	if (!key || key->merge == KEY_SUM)
		profile_count(f->p, name, answer_u64(a, row, 1));
	else if (key->merge == KEY_MIN)
		profile_count_set(f->p, name, known ? MIN(known, answer_u64(a, row, 2)) : answer_u64(a, row, 2));
	else
		profile_count_set(f->p, name, MAX(known, answer_u64(a, row, 3)));
}

static void take_point(struct fetch *f, const struct answer *a, size_t row)
{
	uint32_t series = PROFILE_NONE;
	struct profile *p = f->p;

	for (uint32_t i = 0; i < p->series.n && series == PROFILE_NONE; i++)
		if (!strcmp(profile_str(p, p->series.v[i].name), answer_text(a, row, 0)))
			series = i;
	if (series == PROFILE_NONE)
		series = profile_add_series(p, answer_text(a, row, 0), answer_text(a, row, 1));
	profile_add_point(p, series, since_start(f, answer_u64(a, row, 2)), answer_i64(a, row, 3));
}

static int by_start(const void *a, const void *b)
{
	const struct profile_mark *x = a, *y = b;

	return ORDER(x->start_ns, y->start_ns) ?: ORDER(x->end_ns, y->end_ns) ?: ORDER(x->name, y->name);
}

static int fetch_shard(struct fetch *f, struct err *err)
{
	const char *with = f->committed, *ids = f->several ? "0, 0" : "pid, tid", *by = f->several ? "" : "pid, tid, ";
	const char *block = f->several ? "0" : "block";
	int r = each(f, mem_printf("SELECT event, any(unit), any(describe), if(min(period) = max(period), min(period), 0), min(position) AS place "
				   "FROM windows ARRAY JOIN events AS event, units AS unit, describes AS describe, periods AS period, "
				   "arrayEnumerate(events) AS position WHERE %s GROUP BY event ORDER BY place, event", with), take_event, err);

	if (!r)
		r = fetch_names(f, err);
	if (!r && !f->several)
		r = each(f, mem_printf("SELECT block, any(kind), any(name), any(begin_ns) AS begun, any(end_ns), any(number), any(gas), "
				       "any(transactions), any(known) FROM blocks WHERE %s GROUP BY block ORDER BY begun, block", with),
			 take_mark, err);
	vec_sort(&f->p->marks, by_start);
	if (!r)
		r = each(f, mem_printf("SELECT %s, thread, any(process), any(exe), min(begin_ns), max(end_ns), sum(cpu_ns), sum(run_ns), "
				       "sum(queue_ns), sum(blocked_ns) FROM threads WHERE %s GROUP BY %sthread ORDER BY %sthread",
				       ids, with, by, by), take_thread, err);
	if (!r)
		r = each(f, mem_printf("SELECT intDiv(toUInt32(start) - %llu, %llu) AS slot, event, %s, thread, %s, stack, sum(value), "
				       "sum(count) FROM samples WHERE %s GROUP BY slot, event, %sthread, %sstack "
				       "ORDER BY slot, event, %sthread, stack%s", (unsigned long long)f->first_second,
				       (unsigned long long)f->step_seconds, ids, block, with, by, f->several ? "" : "block, ", by,
				       f->several ? "" : ", block"), take_sample, err);
	if (!r)
		r = each(f, mem_printf("SELECT name, sum(value), min(value), max(value) FROM counters WHERE %s GROUP BY name ORDER BY name", with), take_counter, err);
	if (!r && !f->several)
		r = each(f, mem_printf("SELECT series, unit, time_ns, value FROM points WHERE %s ORDER BY series, time_ns", with), take_point, err);
	return r;
}

/* --- all of it --- */

static void set_extent(struct fetch *f, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t seconds = (last_ns - first_ns) / second_ns, step = 30;

	f->p->start_wall_ns = first_ns;
	f->p->duration_ns = last_ns - first_ns;
	f->last_ns = last_ns;
	f->first_second = first_ns / second_ns;
	while (seconds / step >= FETCH_SLOTS)
		step *= 2;
	f->step_seconds = step;
	f->slot_count = (f->p->duration_ns - 1) / (step * second_ns) + 1;
}

/* Finds out which shards have something of it, and from when to when. */
static int find_shards(struct fetch *f, bool *has, unsigned *away, struct err *err)
{
	/* Of several targets there is none without which nothing is worth showing. */
	unsigned home = f->several ? UINT32_MAX : storeurl_shard_of(f->url->target, clickhouse_shards(f->c));
	struct err first_error = { 0 };
	uint64_t first_ns = UINT64_MAX, last_ns = 0, all = 0;

	for (unsigned i = 0; i < clickhouse_shards(f->c); i++) {
		uint64_t n, first, last;
		int r;

		f->shard = i;
		r = find_extent(f, &n, &first, &last, err);
		/* Another shard may have what came before one was added. */
		if (r && (i == home || (r != -EIO && r != -ETIMEDOUT && r != -EAGAIN)))
			return r;
		if (r && !*away)
			first_error = *err;
		*away += r != 0;
		/* What no clock says is not believed. */
		has[i] = n && last > first && last <= INT64_MAX;
		if (!has[i])
			continue;
		all += n;
		first_ns = MIN(first_ns, first);
		last_ns = MAX(last_ns, last);
	}
	if (!all && *away == clickhouse_shards(f->c)) {
		*err = first_error;
		return -err->code;
	}
	if (!all)
		return err_set(err, ENODATA, "the store has nothing of '%.80s' in this time: `gasflame store ls` lists what it has",
			       profile_str(f->p, f->p->target));
	set_extent(f, first_ns, last_ns);
	profile_count(f->p, KEY_STORE_WINDOWS, all);
	return 0;
}

/* "reth-* v2.5.1 region=eu". */
static void name_target(struct fetch *f)
{
	const struct storeurl *u = f->url;
	_cleanup_(buf_done) struct buf name = { 0 };

	buf_puts(&name, u->target ? u->target : u->targets ? u->targets : "*");
	if (u->release)
		buf_printf(&name, " %s", u->release);
	for (size_t i = 0; i < u->labels.n; i++)
		buf_printf(&name, " %s", u->labels.v[i]);
	f->p->target = profile_string(f->p, name.data);
}

static void fetch_init(struct fetch *f)
{
	fetchnames_init(&f->names, f->p);
	name_target(f);
}

static void fetch_done(struct fetch *f)
{
	struct map *const maps[] = { &f->threads, &f->blocks, &f->slots };

	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		map_done(maps[i]);
	vec_done(&f->made);
	fetchnames_done(&f->names);
	free(f->where);
	free(f->committed);
}

int fetch_profile(struct clickhouse *c, const struct storeurl *url, unsigned *ret_away, struct profile **ret, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_free_ bool *has = mem_alloc(clickhouse_shards(c) * sizeof(*has));
	struct fetch f = { .c = c, .url = url, .p = p, .several = !url->target };
	unsigned away = 0;
	int r;

	fetch_init(&f);
	make_conditions(&f);
	r = find_shards(&f, has, &away, err);
	for (unsigned i = 0; !r && i < clickhouse_shards(c); i++) {
		f.shard = i;
		if (has[i])
			r = fetch_shard(&f, err);
	}
	p->finished = true;
	fetch_done(&f);
	if (r)
		return r;
	if (ret_away)
		*ret_away = away;
	*ret = p;
	p = NULL;
	return 0;
}

int fetch_url(const char *text, unsigned *ret_away, struct profile **ret, struct err *err)
{
	_cleanup_(clickhouse_closep) struct clickhouse *c = NULL;
	struct storeurl url;
	int r = storeurl_parse(text, clock_wall_ns(), &url, err);

	if (!r && !storeurl_names(&url))
		r = err_set(err, EINVAL, "the store's address names no target: clickhouse://HOST:8123/DATABASE?target=NAME&from=-1h; "
			    "`gasflame store ls` lists them");
	if (!r)
		r = clickhouse_open(&url, &c, err);
	if (!r)
		r = fetch_profile(c, &url, ret_away, ret, err);
	storeurl_done(&url);
	return r;
}
