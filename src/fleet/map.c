#include "fleet/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/condition.h"
#include "fleet/rollup.h"
#include "fleet/sql.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;
enum { STEP_SECONDS = 30, USUAL_SLOTS = 144, MOST_ROWS = FLEETMAP_NODES * 300 };

static const struct figure {
	const char *word, *unit;
	bool named, largest; /* largest: cells of two shards are not summed, the larger one counts */
} figures[FLEETMAP_FIGURES] = {
	[FLEETMAP_BLOCK_MEAN] = { "block-mean", "ns", false, false }, [FLEETMAP_BLOCK_P95] = { "block-p95", "ns", false, true },
	[FLEETMAP_BLOCK_MAX] = { "block-max", "ns", false, true },    [FLEETMAP_CPU] = { "cpu", "cpus", false, false },
	[FLEETMAP_CAUSE] = { "cause", "share", true, false },         [FLEETMAP_FUNCTION] = { "function", "share", true, false },
	[FLEETMAP_SELF] = { "self", "share", true, false },           [FLEETMAP_RSS] = { "rss", "bytes", false, true },
};

enum fleetmap_figure fleetmap_figure(const char *word)
{
	enum fleetmap_figure f = 0;

	while (f < FLEETMAP_FIGURES && strcmp(figures[f].word, word))
		f++;
	return f;
}

const char *fleetmap_word(enum fleetmap_figure f)
{
	return figures[f].word;
}

const char *fleetmap_unit(enum fleetmap_figure f)
{
	return figures[f].unit;
}

bool fleetmap_wants_name(enum fleetmap_figure f)
{
	return figures[f].named;
}

/* A map on its way: cells are a / b, and what is not summed is a. */
struct work {
	struct fleetmap *m;
	struct clickhouse *c;
	const struct fleetmap_options *o;
	unsigned shard;
	uint64_t from, to, slot;    /* seconds */
	char *time;                 /* condition on day, start and target, of all tables of windows */
	char *windows, *rollups;    /* the same for whole hours, of windows and of roll-ups */
	struct fleetmap_choices *choices;
	struct map index;           /* hash of a target to 1 + its node */
	VEC(double *) whole;        /* b, by node */
};

/* --- the time --- */

static int set_time(struct work *w, struct err *err)
{
	static const uint64_t usual[] = { 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800 };
	const struct fleetmap_options *o = w->o;
	uint64_t to = o->to_ns ? o->to_ns : clock_wall_ns(), from = o->from_ns ? o->from_ns : to > day_seconds * second_ns ? to - day_seconds * second_ns : 0;
	size_t i = 0;

	if (from >= to || to / second_ns >= UINT32_MAX)
		return err_set(err, EINVAL, "the time ends before it begins, or is none: --from and --to");
	if (o->slot_ns % (STEP_SECONDS * second_ns))
		return err_set(err, EINVAL, "a slot of the map is a multiple of %d s", STEP_SECONDS);
	w->slot = o->slot_ns / second_ns;
	w->to = (to + second_ns - 1) / second_ns;
	while (!w->slot) {
		if ((w->to - from / second_ns) / usual[i] <= USUAL_SLOTS || i + 1 == ARRAY_LEN(usual))
			w->slot = usual[i];
		i++;
	}
	w->from = from / second_ns / w->slot * w->slot;
	w->m->slots = (w->to - w->from - 1) / w->slot + 1;
	w->m->from_ns = w->from * second_ns;
	w->m->slot_ns = w->slot * second_ns;
	if (w->m->slots > FLEETMAP_SLOTS)
		return err_set(err, E2BIG, "the map would have %zu slots of time, more than %d: take longer ones", w->m->slots, FLEETMAP_SLOTS);
	return 0;
}

/* --- the cells --- */

static int node_of(struct work *w, const char *target, size_t *ret, struct err *err)
{
	struct fleetmap *m = w->m;
	uint64_t key = map_hash_bytes(target, strlen(target)), *known;

	/* Two names of one hash: the next key. */
	for (;; key++) {
		known = map_put(&w->index, key, 0);
		if (!*known || !strcmp(m->nodes.v[*known - 1].target, target))
			break;
	}
	if (!*known) {
		if (m->nodes.n >= FLEETMAP_NODES)
			return err_set(err, E2BIG, "the store has more than %d targets in this time: choose some of them", FLEETMAP_NODES);
		*known = m->nodes.n + 1;
		vec_push(&m->nodes, (struct fleetmap_node){ mem_strdup(target), mem_alloc(m->slots * sizeof(double)) });
		vec_push(&w->whole, mem_alloc(m->slots * sizeof(double)));
	}
	*ret = *known - 1;
	return 0;
}

/* Rows of target, slot, a and b. */
static int take(struct work *w, char *sql, struct err *err)
{
	_cleanup_free_ char *own = mem_printf("%s LIMIT %d", sql, MOST_ROWS);
	struct answer a;
	int r = clickhouse_select(w->c, w->shard, own, &a, err);

	for (size_t i = 0; !r && i < a.rows; i++) {
		uint64_t slot = answer_u64(&a, i, 1);
		double value = answer_u64(&a, i, 2), whole = answer_u64(&a, i, 3);
		size_t node = 0;

		if (slot >= w->m->slots)
			continue;
		r = node_of(w, answer_text(&a, i, 0), &node, err);
		if (r)
			break;
		if (figures[w->o->figure].largest) {
			w->m->nodes.v[node].values[slot] = fmax(w->m->nodes.v[node].values[slot], value);
			w->whole.v[node][slot] = 1;
		} else {
			w->m->nodes.v[node].values[slot] += value;
			w->whole.v[node][slot] += whole;
		}
	}
	answer_done(&a);
	free(sql);
	return r;
}

static char *slot_column(const struct work *w)
{
	return mem_printf("intDiv(toUInt32(start) - %llu, %llu) AS slot", (unsigned long long)w->from, (unsigned long long)w->slot);
}

static int map_blocks(struct work *w, struct err *err)
{
	static const char *const values[] = { [FLEETMAP_BLOCK_MEAN] = "sum(end_ns - begin_ns)", [FLEETMAP_BLOCK_P95] = "quantileExact(0.95)(end_ns - begin_ns)",
					      [FLEETMAP_BLOCK_MAX] = "max(end_ns - begin_ns)" };
	_cleanup_free_ char *slot = slot_column(w), *committed = condition_committed(w->time, NULL);

	return take(w, mem_printf("SELECT target, %s, %s, count() FROM blocks WHERE kind = 'block' AND end_ns > begin_ns AND %s GROUP BY target, slot", slot,
				  values[w->o->figure], committed), err);
}

static int map_rss(struct work *w, struct err *err)
{
	_cleanup_free_ char *slot = slot_column(w), *committed = condition_committed(w->time, NULL);

	return take(w, mem_printf("SELECT target, %s, max(value), 1 FROM points WHERE series = 'mem.rss' AND value >= 0 AND %s GROUP BY target, slot", slot,
				  committed), err);
}

/* What one event of a window adds up to, by the name of the event. */
#define TOTAL_OF(event) "arraySum(arrayMap((e, t) -> if(e = " event ", t, 0), events, totals))"

static int map_cpu(struct work *w, struct err *err)
{
	_cleanup_free_ char *slot = slot_column(w), *committed = condition_committed(w->time, NULL);

	return take(w, mem_printf("SELECT target, %s, sum(" TOTAL_OF("'cpu'") "), sum(duration_ns) FROM windows WHERE has(events, 'cpu') AND %s GROUP BY "
				  "target, slot", slot, committed), err);
}

/* Time on a CPU is one of the causes; idle time is a share of all, the others are shares of what is not idle. */
static int map_cause(struct work *w, struct err *err)
{
	_cleanup_free_ char *slot = slot_column(w), *committed = condition_committed(w->time, NULL);
	_cleanup_(buf_done) struct buf value = { 0 };
	bool idle = !strcmp(w->o->name, "idle");

	if (!strcmp(w->o->name, "on CPU")) {
		buf_puts(&value, TOTAL_OF("'cpu'"));
	} else {
		buf_puts(&value, "arraySum(arrayMap((c, n) -> if(c = ");
		sql_literal(&value, w->o->name);
		buf_puts(&value, ", n, 0), causes, cause_ns))");
	}
	return take(w, mem_printf("SELECT target, %s, sum(%s), sum(%s + " TOTAL_OF("'cpu'") ") FROM windows WHERE has(events, 'wait') AND %s GROUP BY target, "
				  "slot", slot, value.data, idle ? "arraySum(cause_ns)" :
				  "arraySum(arrayMap((c, n) -> if(c = 'idle', 0, n), causes, cause_ns))", committed), err);
}

/* --- functions --- */

static const char *event_of(const struct fleetmap_options *o)
{
	return o->event ? o->event : "cpu";
}

/* From the roll-ups that are made of the windows that there are. */
static int map_rolled(struct work *w, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	_cleanup_free_ char *slot = slot_column(w);

	buf_printf(&sql, "SELECT target, %s, sumIf(%s, name != ''), sumIf(total, name = '') FROM functions WHERE %s AND event = ", slot,
		   w->o->figure == FLEETMAP_SELF ? "self" : "total", w->time);
	sql_literal(&sql, event_of(w->o));
	buf_puts(&sql, " AND name IN ('', ");
	sql_literal(&sql, w->o->name);
	buf_puts(&sql, ") AND rollup IN (");
	rollup_put_valid(&sql, w->windows, w->rollups);
	buf_puts(&sql, ") GROUP BY target, slot");
	return take(w, mem_strdup(sql.data), err);
}

/* The hours of nodes without such a roll-up: how many, and from when to when. */
struct raw {
	uint64_t hours, rolled, from, to;
	bool tables; /* there are tables of version 2 */
};

static int find_raw(struct work *w, struct raw *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	*ret = (struct raw){ .tables = true };
	buf_puts(&sql, "SELECT rolled, count(), min(hour), max(hour) FROM (SELECT hour, (target, hour) IN (");
	rollup_put_covered(&sql, w->windows, w->rollups);
	buf_puts(&sql, ") AS rolled FROM (");
	rollup_put_hours(&sql, w->windows);
	buf_puts(&sql, ")) GROUP BY rolled");
	r = clickhouse_select(w->c, w->shard, sql.data, &a, err);
	for (size_t i = 0; !r && i < a.rows; i++) {
		if (answer_u64(&a, i, 0)) {
			ret->rolled = answer_u64(&a, i, 1);
			continue;
		}
		ret->hours = answer_u64(&a, i, 1);
		ret->from = answer_u64(&a, i, 2);
		ret->to = answer_u64(&a, i, 3) + ROLLUP_HOUR_SECONDS;
	}
	answer_done(&a);
	if (r != -ENXIO)
		return r;
	*ret = (struct raw){ .hours = 1, .from = w->from, .to = w->to };
	return 0;
}

/* The stacks that have the function, in any inlined call; itself: those that end in it. Names of a frame begin with the innermost. */
static void put_stacks(struct buf *sql, const struct work *w, const char *days)
{
	bool self = w->o->figure == FLEETMAP_SELF;

	buf_printf(sql, "SELECT stack FROM stacks ARRAY JOIN %s AS frame WHERE %s AND frame IN (SELECT frame FROM frames WHERE %s AND ",
		   self ? "arraySlice(frames, 1, 1)" : "frames", days, days);
	if (self) {
		buf_puts(sql, "names[1] = ");
		sql_literal(sql, w->o->name);
	} else {
		buf_puts(sql, "has(names, ");
		sql_literal(sql, w->o->name);
		buf_putc(sql, ')');
	}
	buf_putc(sql, ')');
}

/* From the samples. Those without a stack have no function; what is idle counts neither here nor there. */
static int map_raw(struct work *w, const struct raw *raw, struct err *err)
{
	uint64_t from = MAX(raw->from, w->from), to = MIN(raw->to, w->to);
	_cleanup_free_ char *slot = slot_column(w), *time = condition_time("start", from, to, w->o->target), *committed = condition_committed(time, NULL);
	_cleanup_free_ char *days = mem_printf("day >= toDate(%llu) AND day <= toDate(%llu)", (unsigned long long)(from / day_seconds),
					       (unsigned long long)(to / day_seconds));
	_cleanup_(buf_done) struct buf event = { 0 }, stacks = { 0 }, hours = { 0 };
	const char *name = event_of(w->o);
	int r;

	sql_literal(&event, name);
	put_stacks(&stacks, w, days);
	buf_puts(&hours, "");
	if (raw->tables && raw->rolled && w->slot % ROLLUP_SLOT_SECONDS == 0) {
		buf_printf(&hours, " AND (target, toUInt32(intDiv(toUInt32(start), %d) * %d)) NOT IN (", ROLLUP_HOUR_SECONDS, ROLLUP_HOUR_SECONDS);
		rollup_put_covered(&hours, w->windows, w->rollups);
		buf_putc(&hours, ')');
	}
	r = take(w, mem_printf("SELECT target, %s, sum(value), 0 FROM samples PREWHERE stack IN (%s) WHERE event = %s AND cause != 'idle' AND %s%s GROUP "
			       "BY target, slot", slot, stacks.data, event.data, committed, hours.data ? hours.data : ""), err);
	if (r)
		return r;
	if (!strcmp(name, "wait") || !strcmp(name, "queue"))
		return take(w, mem_printf("SELECT target, %s, 0, sum(value) FROM samples WHERE event = %s AND cause != 'idle' AND %s%s GROUP BY target, slot", slot,
					  event.data, committed, hours.data ? hours.data : ""), err);
	return take(w, mem_printf("SELECT target, %s, 0, sum(arraySum(arrayMap((e, t) -> if(e = %s, t, 0), events, totals))) FROM windows WHERE has(events, %s) "
				  "AND %s%s GROUP BY target, slot", slot, event.data, event.data, committed, hours.data ? hours.data : ""), err);
}

static int map_function(struct work *w, struct err *err)
{
	struct raw raw;
	int r = find_raw(w, &raw, err);

	if (r)
		return r;
	/* Slots that roll-ups do not have. */
	if (w->slot % ROLLUP_SLOT_SECONDS) {
		raw.hours += raw.rolled;
		raw.rolled = 0;
		raw.from = w->from;
		raw.to = w->to;
	}
	w->m->raw_hours += raw.hours;
	w->m->rolled_hours += raw.rolled;
	if (raw.rolled)
		r = map_rolled(w, err);
	return !r && raw.hours ? map_raw(w, &raw, err) : r;
}

/* --- all of it --- */

static int map_shard(struct work *w, struct err *err)
{
	switch (w->o->figure) {
	case FLEETMAP_CPU:
		return map_cpu(w, err);
	case FLEETMAP_CAUSE:
		return map_cause(w, err);
	case FLEETMAP_FUNCTION:
	case FLEETMAP_SELF:
		return map_function(w, err);
	case FLEETMAP_RSS:
		return map_rss(w, err);
	default:
		return map_blocks(w, err);
	}
}

static bool is_away(int r)
{
	return r == -EIO || r == -ETIMEDOUT || r == -EAGAIN;
}

/* fn for each shard; those that are away are counted, and an error if all are. */
static int each_shard(struct work *w, int (*fn)(struct work *, struct err *), unsigned *away, char **away_text, struct err *err)
{
	unsigned n = clickhouse_shards(w->c), missing = 0;

	for (w->shard = 0; w->shard < n; w->shard++) {
		struct err own = { 0 };
		int r = fn(w, &own);

		if (r && (!is_away(r) || ++missing == n)) {
			*err = own;
			return r;
		}
		if (r && away_text && !*away_text)
			*away_text = mem_strdup(own.text);
	}
	if (away)
		*away = missing;
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct fleetmap_node *x = a, *y = b;

	return strcmp(x->target, y->target);
}

static void divide(struct work *w)
{
	struct fleetmap *m = w->m;

	m->least = m->most = NAN;
	for (size_t i = 0; i < m->nodes.n; i++)
		for (size_t k = 0; k < m->slots; k++) {
			double whole = w->whole.v[i][k], *value = &m->nodes.v[i].values[k];

			*value = whole > 0 ? figures[w->o->figure].largest ? *value : *value / whole : NAN;
			if (isnan(*value))
				continue;
			m->least = fmin(m->least, *value);
			m->most = fmax(m->most, *value);
		}
}

static int prepare(struct work *w, struct err *err)
{
	uint64_t first, last;
	int r = set_time(w, err);

	if (!r && figures[w->o->figure].named && (!w->o->name || !*w->o->name))
		r = err_set(err, EINVAL, "a map of %s wants its name", w->o->figure == FLEETMAP_CAUSE ? "a cause" : "a function");
	if (r)
		return r;
	first = w->from / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS;
	last = (w->to + ROLLUP_HOUR_SECONDS - 1) / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS;
	w->time = condition_time("start", w->from, w->to, w->o->target);
	w->windows = condition_time("start", first, last, w->o->target);
	w->rollups = condition_time("hour", first, last, w->o->target);
	return 0;
}

static void work_done(struct work *w)
{
	vec_done_each(&w->whole, e, free(*e));
	map_done(&w->index);
	free(w->time);
	free(w->windows);
	free(w->rollups);
}

int fleetmap_make(struct fleetmap *m, struct clickhouse *c, const struct fleetmap_options *o, struct err *err)
{
	struct work w = { .m = m, .c = c, .o = o };
	int r;

	*m = (struct fleetmap){ .least = NAN, .most = NAN };
	r = prepare(&w, err);
	if (!r)
		r = each_shard(&w, map_shard, &m->away, &m->away_text, err);
	if (!r) {
		divide(&w);
		vec_sort(&m->nodes, by_target);
	}
	work_done(&w);
	return r;
}

void fleetmap_done(struct fleetmap *m)
{
	vec_done_each(&m->nodes, e, free(e->target); free(e->values));
	free(m->away_text);
	*m = (struct fleetmap){ 0 };
}

/* --- what there is to choose from --- */

static void add_choice(struct fleetmap_choices *list, const char *name, double value)
{
	size_t at = 0;

	while (at < list->list.n && strcmp(list->list.v[at].name, name))
		at++;
	if (at == list->list.n)
		vec_push(&list->list, (struct fleetmap_choice){ .name = mem_strdup(name) });
	list->list.v[at].share += value;
}

/* Causes are in the windows. Of functions it is the last hours that have roll-ups: all of a long time would be read for a list. */
static char *choices_sql(const struct work *w)
{
	_cleanup_free_ char *committed = condition_committed(w->time, NULL);
	_cleanup_(buf_done) struct buf sql = { 0 };

	if (w->o->figure == FLEETMAP_CAUSE)
		return mem_printf("SELECT cause, sum(ns) AS value FROM windows ARRAY JOIN arrayConcat(causes, ['on CPU']) AS cause, arrayConcat(cause_ns, ["
				  TOTAL_OF("'cpu'") "]) AS ns WHERE has(events, 'wait') AND %s GROUP BY cause ORDER BY value DESC, cause LIMIT %d", committed,
				  FLEETMAP_CHOICES);
	buf_printf(&sql, "SELECT name, sum(%s) AS value FROM functions WHERE %s AND event = ", w->o->figure == FLEETMAP_SELF ? "self" : "total", w->time);
	sql_literal(&sql, event_of(w->o));
	buf_puts(&sql, " AND rollup IN (");
	rollup_put_valid(&sql, w->windows, w->rollups);
	buf_printf(&sql, ") GROUP BY name ORDER BY value DESC, name LIMIT %d", FLEETMAP_CHOICES + 1);
	return mem_strdup(sql.data);
}

static int choose_shard(struct work *w, struct err *err)
{
	_cleanup_free_ char *sql = choices_sql(w);
	struct answer a;
	int r = clickhouse_select(w->c, w->shard, sql, &a, err);

	for (size_t i = 0; !r && i < a.rows; i++)
		add_choice(w->choices, answer_text(&a, i, 0), answer_u64(&a, i, 1));
	answer_done(&a);
	return r;
}

static int by_share(const void *a, const void *b)
{
	const struct fleetmap_choice *x = a, *y = b;

	return ORDER(y->share, x->share) ?: strcmp(x->name, y->name);
}

/* The sum of the event is the row without a name; of causes, all that is not idle. */
static void make_shares(struct fleetmap_choices *list, bool causes)
{
	double whole = 0;
	size_t kept = 0;

	for (size_t i = 0; i < list->list.n; i++) {
		const struct fleetmap_choice *c = &list->list.v[i];

		if (causes ? strcmp(c->name, "idle") != 0 : !*c->name)
			whole += c->share;
	}
	for (size_t i = 0; i < list->list.n; i++) {
		struct fleetmap_choice *c = &list->list.v[i];

		if (!*c->name || kept == FLEETMAP_CHOICES) {
			free(c->name);
			continue;
		}
		c->share = whole > 0 ? c->share / whole : 0;
		list->list.v[kept++] = *c;
	}
	list->list.n = kept;
}

int fleetmap_choose(struct fleetmap_choices *ret, struct clickhouse *c, const struct fleetmap_options *o, struct err *err)
{
	struct fleetmap m = { 0 };
	struct fleetmap_options own = *o;
	struct work w = { .m = &m, .c = c, .o = &own, .choices = ret };
	int r;

	*ret = (struct fleetmap_choices){ 0 };
	if (!figures[o->figure].named)
		return err_set(err, EINVAL, "this figure has no names to choose from");
	own.name = "-";
	r = prepare(&w, err);
	if (!r)
		r = each_shard(&w, choose_shard, NULL, NULL, err);
	if (r == -ENXIO && o->figure != FLEETMAP_CAUSE)
		r = 0;
	if (!r) {
		vec_sort(&ret->list, by_share);
		make_shares(ret, o->figure == FLEETMAP_CAUSE);
	}
	work_done(&w);
	return r;
}

void fleetmap_choices_done(struct fleetmap_choices *list)
{
	vec_done_each(&list->list, e, free(e->name));
}
