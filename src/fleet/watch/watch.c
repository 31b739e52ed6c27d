#include "fleet/watch/watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/condition.h"
#include "fleet/rollup.h"
#include "fleet/sql.h"

static const uint64_t second_ns = 1000000000;
/* A function with less than that share of a side is neither fetched nor tested: below what counts as a change (change.c). */
#define LEAST_SHARE 0.0005
/* NAMES_BYTES: in one statement, a thousand names or so: a server takes 256 KiB, and the answer takes memory. */
enum { LONG_SECONDS = 12 * 3600, MOST_CELLS = 40000000, NAMES_BYTES = 100000 };

/* What is divided by: of functions, of causes, of CPU time, of blocks. */
enum whole { WHOLE_EVENT, WHOLE_WAIT_NS, WHOLE_CPU_NS, WHOLE_BLOCKS, WHOLES };

/* A value that the store said. */
struct cell {
	uint32_t target, slot, row; /* row: a figure, or WHOLES wholes after ROW_WHOLES */
	uint64_t samples;
	double value;
};
#define ROW_WHOLES 0x80000000u

struct figure {
	enum watch_kind kind;
	const char *name;
};

struct side {
	VEC(struct cell) cells;
	uint32_t *unit_target; /* by unit */
	size_t units;
	double *values;        /* by figure and unit, then by whole and unit */
	uint64_t *samples;     /* by figure and target */
};

struct watch_tables {
	struct strtab targets, names;
	struct map index; /* kind and name to figures */
	VEC(struct figure) figures;
	struct side side[2];
};

struct work {
	struct clickhouse *c;
	const struct watch_options *o;
	struct watch *w;
	struct watch_tables *t;
	unsigned shard;
	uint64_t unit;             /* seconds */
	char *time[2], *rollups[2]; /* conditions: on tables of windows, and on rollups */
	char *release[2];          /* "" or AND release = ... */
	double event_whole[2];     /* of this shard */
};

/* --- conditions --- */

/* Whole hours: roll-ups are. */
static char *condition_of(const struct work *w, int side, const char *column)
{
	const struct watch_side *s = &w->o->side[side];
	uint64_t from = s->from_ns / second_ns / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS;
	uint64_t to = (s->to_ns / second_ns + ROLLUP_HOUR_SECONDS - 1) / ROLLUP_HOUR_SECONDS * ROLLUP_HOUR_SECONDS;

	return condition_time(column, from, to, w->o->target);
}

static void make_conditions(struct work *w)
{
	uint64_t longest = 0;

	for (int side = 0; side < 2; side++) {
		const struct watch_side *s = &w->o->side[side];
		_cleanup_(buf_done) struct buf b = { 0 };

		longest = MAX(longest, s->to_ns - s->from_ns);
		w->time[side] = condition_of(w, side, "start");
		w->rollups[side] = condition_of(w, side, "hour");
		if (s->release) {
			buf_puts(&b, " AND release = ");
			sql_literal(&b, s->release);
		}
		w->release[side] = mem_strdup(b.n ? b.data : "");
	}
	w->unit = longest > LONG_SECONDS * second_ns ? ROLLUP_HOUR_SECONDS : ROLLUP_SLOT_SECONDS;
	w->w->unit_ns = w->unit * second_ns;
}

/* The slot of a row, from the first one of 1970 on. */
static char *slot_of(const struct work *w)
{
	return mem_printf("intDiv(toUInt32(start), %llu) AS slot", (unsigned long long)w->unit);
}

/* --- what the store says --- */

static uint32_t figure_of(struct watch_tables *t, enum watch_kind kind, const char *name)
{
	uint32_t id = strtab_add(&t->names, name);
	uint64_t *at = map_put(&t->index, map_pair(kind, id), t->figures.n);

	if (*at == t->figures.n)
		vec_push(&t->figures, (struct figure){ kind, strtab_get(&t->names, id) });
	return *at;
}

static void add_cell(struct work *w, int side, const struct answer *a, size_t i, uint32_t row, size_t column, uint64_t samples)
{
	vec_push(&w->t->side[side].cells,
		 (struct cell){ strtab_add(&w->t->targets, answer_text(a, i, 0)), answer_u64(a, i, 1), row, samples, answer_u64(a, i, column) });
}

static int ask(struct work *w, char *sql, struct answer *a, struct err *err)
{
	int r = clickhouse_select(w->c, w->shard, sql, a, err);

	free(sql);
	return r;
}

static const char *event_of(const struct work *w)
{
	return w->o->event ? w->o->event : "cpu";
}

/* FROM functions WHERE ...: those of a side. */
static void put_functions(struct buf *sql, const struct work *w, int side)
{
	buf_printf(sql, "FROM functions WHERE %s%s AND event = ", w->time[side], w->release[side]);
	sql_literal(sql, event_of(w));
	buf_puts(sql, " AND rollup IN (");
	rollup_put_valid(sql, w->time[side], w->rollups[side]);
	buf_putc(sql, ')');
}

static int ask_event(struct work *w, int side, struct err *err)
{
	_cleanup_free_ char *slot = slot_of(w);
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	buf_printf(&sql, "SELECT target, %s, sum(total), sum(total_count) ", slot);
	put_functions(&sql, w, side);
	buf_puts(&sql, " AND name = '' GROUP BY target, slot");
	r = ask(w, mem_strdup(sql.data), &a, err);
	w->event_whole[side] = 0;
	for (size_t i = 0; !r && i < a.rows; i++) {
		add_cell(w, side, &a, i, ROW_WHOLES | WHOLE_EVENT, 2, 0);
		w->event_whole[side] += answer_u64(&a, i, 2);
	}
	answer_done(&a);
	return r;
}

/* The rows of either side, in one pass: the table is large, and in the order of names. */
static void put_both(struct buf *sql, const struct work *w)
{
	buf_puts(sql, "FROM functions WHERE event = ");
	sql_literal(sql, event_of(w));
	buf_printf(sql, " AND ((%s%s) OR (%s%s)) AND rollup IN (", w->time[0], w->release[0], w->time[1], w->release[1]);
	rollup_put_valid(sql, w->time[0], w->rollups[0]);
	buf_puts(sql, " UNION ALL ");
	rollup_put_valid(sql, w->time[1], w->rollups[1]);
	buf_putc(sql, ')');
}

/* A sum of the rows of one side. */
static void put_sum(struct buf *sql, const struct work *w, int side, const char *column)
{
	buf_printf(sql, "sumIf(%s, %s%s)", column, w->time[side], w->release[side]);
}

/* The functions that count on either side, so that both have the same. */
static int ask_names(struct work *w, struct answer *a, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };

	buf_puts(&sql, "SELECT name ");
	put_both(&sql, w);
	buf_puts(&sql, " AND self > 0 AND name != '' GROUP BY name HAVING ");
	for (int side = 0; side < 2; side++) {
		buf_puts(&sql, side ? " OR " : "");
		put_sum(&sql, w, side, "self");
		buf_printf(&sql, " > %.0f", w->event_whole[side] * LEAST_SHARE);
	}
	buf_puts(&sql, " ORDER BY name");
	return ask(w, mem_strdup(sql.data), a, err);
}

/* "[1,2,3]": the next number, false at the end and where it is none. */
static bool next_number(const char **text, uint64_t *ret)
{
	const char *at = *text + strspn(*text, "[,");
	char *end;

	*ret = strtoull(at, &end, 10);
	*text = end;
	return end != at;
}

/* Slots, values and numbers of samples of one target and function. */
static void take_slots(struct work *w, int side, uint32_t target, uint32_t row, const struct answer *a, size_t i, size_t column)
{
	const char *slots = answer_text(a, i, column), *values = answer_text(a, i, column + 1), *counts = answer_text(a, i, column + 2);
	uint64_t slot, value, count;

	while (next_number(&slots, &slot) && next_number(&values, &value) && next_number(&counts, &count))
		vec_push(&w->t->side[side].cells, (struct cell){ target, slot, row, count, value });
}

/* Rows of ten minutes as they are; of longer measurements the store adds them up first. */
static void put_named(struct buf *sql, const struct work *w, const char *names)
{
	bool hours = w->unit == ROLLUP_HOUR_SECONDS;

	buf_puts(sql, "SELECT target, name");
	for (int side = 0; side < 2; side++) {
		const char *time = hours ? w->rollups[side] : w->time[side], *release = w->release[side];

		buf_printf(sql, ", toString(groupArrayIf(intDiv(toUInt32(%s), %llu), %s%s)), toString(groupArrayIf(%s, %s%s)), toString(groupArrayIf(%s, %s%s))",
			   hours ? "hour" : "start", (unsigned long long)w->unit, time, release, hours ? "s" : "self", time, release,
			   hours ? "n" : "self_count", time, release);
	}
	buf_puts(sql, hours ? " FROM (SELECT day, target, name, release, " : " ");
	if (hours)
		buf_printf(sql, "toDateTime(intDiv(toUInt32(start), %d) * %d) AS hour, sum(self) AS s, sum(self_count) AS n ", ROLLUP_HOUR_SECONDS,
			   ROLLUP_HOUR_SECONDS);
	put_both(sql, w);
	buf_printf(sql, " AND self > 0 AND name IN (%s)%s GROUP BY target, name", names, hours ? " GROUP BY day, target, name, release, hour)" : "");
}

/* names: literals, with commas between them: by these, rows are found by the index. A row of the answer is a target and a function with all of its slots, as text: a
 * million slots as rows of their own were most of the work, in the server and here. */
static int ask_named(struct work *w, const char *names, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	put_named(&sql, w, names);
	r = ask(w, mem_strdup(sql.data), &a, err);
	for (size_t i = 0; !r && i < a.rows; i++) {
		uint32_t target = strtab_add(&w->t->targets, answer_text(&a, i, 0)), row = figure_of(w->t, WATCH_FUNCTION, answer_text(&a, i, 1));

		for (int side = 0; side < 2; side++)
			take_slots(w, side, target, row, &a, i, 2 + 3 * side);
	}
	answer_done(&a);
	return r;
}

static int ask_functions(struct work *w, struct err *err)
{
	_cleanup_(buf_done) struct buf names = { 0 };
	struct answer a;
	int r = ask_names(w, &a, err);

	for (size_t i = 0; !r && i < a.rows; i++) {
		buf_puts(&names, names.n ? ", " : "");
		sql_literal(&names, answer_text(&a, i, 0));
		if (names.n < NAMES_BYTES && i + 1 < a.rows)
			continue;
		r = ask_named(w, names.data, err);
		names.n = 0;
	}
	answer_done(&a);
	return r;
}

static int ask_windows(struct work *w, int side, struct err *err)
{
	_cleanup_free_ char *slot = slot_of(w), *which = condition_committed(w->time[side], w->release[side]);
	struct answer a;
	int r = ask(w, mem_printf("SELECT target, %s, sumIf(duration_ns, has(events, 'wait')), sumIf(duration_ns, has(events, 'cpu')), "
				  "sum(arraySum(arrayMap((e, t) -> if(e = 'cpu', t, 0), events, totals))) FROM windows WHERE %s GROUP BY target, slot", slot,
				  which), &a, err);

	for (size_t i = 0; !r && i < a.rows; i++) {
		add_cell(w, side, &a, i, ROW_WHOLES | WHOLE_WAIT_NS, 2, 0);
		add_cell(w, side, &a, i, ROW_WHOLES | WHOLE_CPU_NS, 3, 0);
		add_cell(w, side, &a, i, figure_of(w->t, WATCH_CPU, ""), 4, 0);
	}
	answer_done(&a);
	if (!r)
		r = ask(w, mem_printf("SELECT target, %s, cause, sum(ns) FROM windows ARRAY JOIN causes AS cause, cause_ns AS ns WHERE cause != 'idle' AND %s GROUP "
				      "BY target, slot, cause", slot, which), &a, err);
	for (size_t i = 0; !r && i < a.rows; i++)
		add_cell(w, side, &a, i, figure_of(w->t, WATCH_CAUSE, answer_text(&a, i, 2)), 3, 0);
	answer_done(&a);
	return r;
}

static int ask_blocks(struct work *w, int side, struct err *err)
{
	_cleanup_free_ char *slot = slot_of(w), *which = condition_committed(w->time[side], w->release[side]);
	struct answer a;
	int r = ask(w, mem_printf("SELECT target, %s, count(), sum(end_ns - begin_ns) FROM blocks WHERE %s AND kind = 'block' AND end_ns > begin_ns AND "
				  "(window_id, attempt) IN (SELECT window_id, attempt FROM windows WHERE %s) GROUP BY target, slot", slot, w->time[side],
				  which), &a, err);

	for (size_t i = 0; !r && i < a.rows; i++) {
		add_cell(w, side, &a, i, ROW_WHOLES | WHOLE_BLOCKS, 2, 0);
		add_cell(w, side, &a, i, figure_of(w->t, WATCH_BLOCK, ""), 3, 0);
	}
	answer_done(&a);
	return r;
}

static int ask_unrolled(struct work *w, int side, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	buf_puts(&sql, "SELECT count() FROM (");
	rollup_put_hours(&sql, w->time[side]);
	buf_puts(&sql, ") WHERE (target, hour) NOT IN (");
	rollup_put_covered(&sql, w->time[side], w->rollups[side]);
	buf_putc(&sql, ')');
	r = ask(w, mem_strdup(sql.data), &a, err);
	w->w->unrolled += r ? 0 : answer_u64(&a, 0, 0);
	answer_done(&a);
	return r;
}

static int ask_shard(struct work *w, struct err *err)
{
	int r = 0;

	for (int side = 0; !r && side < 2; side++)
		r = ask_event(w, side, err);
	if (!r)
		r = ask_functions(w, err);
	for (int side = 0; !r && side < 2; side++) {
		r = ask_windows(w, side, err);
		if (!r)
			r = ask_blocks(w, side, err);
		/* Two releases in one time have the same hours. */
		if (!r && (!side || strcmp(w->time[0], w->time[1])))
			r = ask_unrolled(w, side, err);
	}
	return r;
}

/* --- tables of numbers --- */

static int by_unit(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return ORDER(x->target, y->target) ?: ORDER(x->slot, y->slot);
}

/* Cells become rows of numbers, a column for each unit. A target that is on two shards is one. */
static int fill_side(struct work *w, struct side *s, struct err *err)
{
	size_t rows = w->t->figures.n + WHOLES, targets = w->t->targets.n, unit = 0;

	vec_sort(&s->cells, by_unit);
	for (size_t i = 0; i < s->cells.n; i++)
		s->units += !i || by_unit(&s->cells.v[i - 1], &s->cells.v[i]);
	if (rows * MAX(s->units, (size_t)1) > MOST_CELLS)
		return err_set(err, E2BIG, "%zu figures of %zu measurements are too much for one comparison: choose targets, or a shorter time", rows, s->units);
	s->unit_target = mem_alloc((s->units + 1) * sizeof(*s->unit_target));
	s->values = mem_alloc((rows * s->units + 1) * sizeof(*s->values));
	s->samples = mem_alloc((w->t->figures.n * targets + 1) * sizeof(*s->samples));
	for (size_t i = 0; i < s->cells.n; i++) {
		const struct cell *c = &s->cells.v[i];
		size_t row = c->row & ROW_WHOLES ? w->t->figures.n + (c->row & ~ROW_WHOLES) : c->row;

		unit += i && by_unit(c - 1, c);
		s->unit_target[unit] = c->target;
		s->values[row * s->units + unit] += c->value;
		if (!(c->row & ROW_WHOLES))
			s->samples[c->row * targets + c->target] += c->samples;
	}
	return 0;
}

/* The rows of one target, or of all (UINT32_MAX): a piece of each table, as units are sorted by target. */
static void make_set(const struct work *w, uint32_t target, struct change_set *set)
{
	static const enum whole wholes[] = { [WATCH_FUNCTION] = WHOLE_EVENT, [WATCH_CAUSE] = WHOLE_WAIT_NS, [WATCH_CPU] = WHOLE_CPU_NS,
					     [WATCH_BLOCK] = WHOLE_BLOCKS };
	const struct watch_tables *t = w->t;
	size_t first[2] = { 0 };

	*set = (struct change_set){ 0 };
	for (int i = 0; i < 2; i++) {
		const struct side *s = &t->side[i];
		size_t end = s->units;

		if (target != UINT32_MAX) {
			while (first[i] < s->units && s->unit_target[first[i]] != target)
				first[i]++;
			for (end = first[i]; end < s->units && s->unit_target[end] == target;)
				end++;
		}
		set->side[i] = (struct change_side){ s->unit_target + first[i], end - first[i] };
	}
	for (size_t f = 0; f < t->figures.n; f++) {
		enum watch_kind kind = t->figures.v[f].kind;
		struct change_row row = { .share = kind == WATCH_FUNCTION,
					  .noise = kind == WATCH_FUNCTION && !strcmp(event_of(w), "cpu") ? CHANGE_NOISE_CPU : CHANGE_NOISE_OTHER };

		for (int i = 0; i < 2; i++) {
			const struct side *s = &t->side[i];

			row.value[i] = s->values + f * s->units + first[i];
			row.whole[i] = s->values + (t->figures.n + wholes[kind]) * s->units + first[i];
			for (uint32_t k = 0; k < t->targets.n; k++)
				if (row.share && (target == UINT32_MAX || target == k))
					row.samples[i] += s->samples[f * t->targets.n + k];
		}
		vec_push(&set->rows, row);
	}
	change_compare(set);
}

/* --- findings --- */

static bool known(const struct change_row *r)
{
	return r->a > 0 || r->b > 0;
}

static void add_rows(struct work *w, const struct change_set *set, const char *target)
{
	struct watch *out = w->w;

	for (size_t i = 0; i < set->rows.n; i++) {
		struct watch_row row = { target, w->t->figures.v[i].kind, w->t->figures.v[i].name, set->rows.v[i] };

		memset(row.change.value, 0, sizeof(row.change.value));
		memset(row.change.whole, 0, sizeof(row.change.whole));
		/* Times are of nanoseconds by the block. */
		if (row.kind == WATCH_BLOCK) {
			double *const all[] = { &row.change.a, &row.change.b, &row.change.delta, &row.change.low, &row.change.high };

			for (size_t k = 0; k < ARRAY_LEN(all); k++)
				*all[k] /= second_ns;
		}
		if (!known(&row.change))
			continue;
		vec_push(&out->list, row);
		out->tested += row.change.tested;
		out->significant += row.change.significant;
		out->significant_all += row.change.significant && !target;
	}
}

static double size_of(const struct watch_row *r)
{
	double percent = fabs(change_percent(&r->change, r->change.delta));

	return r->kind == WATCH_FUNCTION ? fabs(r->change.delta) : isfinite(percent) ? percent / 100 : 1;
}

static int by_weight(const void *a, const void *b)
{
	const struct watch_row *x = a, *y = b;

	return y->change.significant - x->change.significant ?: (x->target != NULL) - (y->target != NULL) ?:
	       (x->target ? strcmp(x->target, y->target) : 0) ?: ORDER(x->kind == WATCH_FUNCTION, y->kind == WATCH_FUNCTION) ?:
	       ORDER(size_of(y), size_of(x)) ?: strcmp(x->name, y->name);
}

static void compare(struct work *w)
{
	struct watch_tables *t = w->t;
	struct change_set all, *sets = mem_alloc((t->targets.n + 1) * sizeof(*sets));
	struct change_set **list = mem_alloc((t->targets.n + 1) * sizeof(*list));
	size_t n = 0;

	make_set(w, UINT32_MAX, &all);
	add_rows(w, &all, NULL);
	vec_done(&all.rows);
	for (uint32_t k = 1; k < t->targets.n; k++) {
		make_set(w, k, &sets[k]);
		for (int i = 0; i < 2; i++)
			w->w->nodes[i] += sets[k].side[i].n > 0;
		w->w->common += sets[k].side[0].n && sets[k].side[1].n;
		if (sets[k].side[0].n && sets[k].side[1].n)
			list[n++] = &sets[k];
	}
	/* One node is all of them. */
	if (n > 1 || w->w->nodes[0] > 1 || w->w->nodes[1] > 1) {
		change_adjust(list, n);
		for (size_t i = 0; i < n; i++)
			add_rows(w, list[i], strtab_get(&t->targets, list[i] - sets));
	}
	for (uint32_t k = 1; k < t->targets.n; k++)
		vec_done(&sets[k].rows);
	vec_sort(&w->w->list, by_weight);
	free(sets);
	free(list);
}

/* --- all of it --- */

static int check_sides(struct work *w, struct err *err)
{
	static const char *const words[] = { "before", "after" };

	for (int i = 0; i < 2; i++) {
		const struct watch_side *s = &w->o->side[i];

		w->w->units[i] = w->t->side[i].units;
		if (w->t->side[i].units)
			continue;
		return err_set(err, ENODATA, "the store has nothing of the side %s%s%.80s%s in this time: `gasflame store ls` lists what it has", words[i],
			       s->release ? " (release " : "", s->release ? s->release : "", s->release ? ")" : "");
	}
	return 0;
}

static int ask_shards(struct work *w, struct err *err)
{
	unsigned n = clickhouse_shards(w->c);

	for (w->shard = 0; w->shard < n; w->shard++) {
		size_t before[] = { w->t->side[0].cells.n, w->t->side[1].cells.n };
		struct err own = { 0 };
		int r = ask_shard(w, &own);

		if (!r)
			continue;
		if ((r != -EIO && r != -ETIMEDOUT && r != -EAGAIN) || ++w->w->away == n) {
			*err = own;
			return r;
		}
		/* Half of a shard would be a change. */
		for (int i = 0; i < 2; i++)
			w->t->side[i].cells.n = before[i];
		if (!w->w->away_text)
			w->w->away_text = mem_strdup(own.text);
	}
	return 0;
}

int watch_make(struct watch *w, struct clickhouse *c, const struct watch_options *o, struct err *err)
{
	struct watch_tables *t = mem_alloc(sizeof(*t));
	struct work work = { .c = c, .o = o, .w = w, .t = t };
	int r = 0;

	*w = (struct watch){ .tables = t };
	strtab_init(&t->targets);
	strtab_init(&t->names);
	for (int i = 0; i < 2; i++)
		if (o->side[i].from_ns >= o->side[i].to_ns || o->side[i].to_ns / second_ns >= UINT32_MAX)
			r = err_set(err, EINVAL, "a side of the comparison ends before it begins");
	if (r)
		return r;
	make_conditions(&work);
	r = ask_shards(&work, err);
	for (int i = 0; !r && i < 2; i++)
		r = fill_side(&work, &t->side[i], err);
	if (!r)
		r = check_sides(&work, err);
	if (!r)
		compare(&work);
	for (int i = 0; i < 2; i++) {
		free(work.time[i]);
		free(work.rollups[i]);
		free(work.release[i]);
	}
	return r;
}

void watch_done(struct watch *w)
{
	struct watch_tables *t = w->tables;

	vec_done(&w->list);
	free(w->away_text);
	if (t) {
		for (int i = 0; i < 2; i++) {
			vec_done(&t->side[i].cells);
			free(t->side[i].unit_target);
			free(t->side[i].values);
			free(t->side[i].samples);
		}
		vec_done(&t->figures);
		map_done(&t->index);
		strtab_done(&t->targets);
		strtab_done(&t->names);
		free(t);
	}
	*w = (struct watch){ 0 };
}
