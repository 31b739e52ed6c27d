#include "capture/scan/weights.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/scan/functions.h"
#include "capture/scan/tablescan.h"

enum {
	SUMS_MAX = 6000000, /* 150 MB */
	THREAD_BITS = WEIGHTS_THREAD_BITS, STACK_BITS = WEIGHTS_STACK_BITS,
	EVENTS_MAX = 1 << (64 - THREAD_BITS - STACK_BITS),
	SLOTS_LEAST = 1 << 12,
};

struct weights {
	sqlite3 *db;
	int64_t periods[EVENTS_MAX];
	bool known[EVENTS_MAX];
	VEC(struct weights_sum) sums;
	uint32_t *slots; /* 1 + index into sums, 0 = free */
	size_t slot_count;
	uint64_t rows;
	bool give_up;
};

static int read_periods(struct weights *w)
{
	sqlite3_stmt *q = NULL;
	int result = sqlite3_prepare_v2(w->db, "select id, period from main.event", -1, &q, NULL);

	while (result == SQLITE_OK || result == SQLITE_ROW) {
		int64_t id;

		result = sqlite3_step(q);
		if (result != SQLITE_ROW)
			break;
		id = sqlite3_column_int64(q, 0);
		if (id < 0 || id >= EVENTS_MAX || sqlite3_column_type(q, 1) != SQLITE_INTEGER)
			continue;
		w->known[id] = true;
		w->periods[id] = sqlite3_column_int64(q, 1);
	}
	sqlite3_finalize(q);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

static void grow(struct weights *w)
{
	w->slot_count = w->slot_count ? w->slot_count * 2 : SLOTS_LEAST;
	free(w->slots);
	w->slots = mem_alloc(w->slot_count * sizeof(*w->slots));
	for (size_t i = 0; i < w->sums.n; i++) {
		size_t at = map_hash(w->sums.v[i].key) & (w->slot_count - 1);

		while (w->slots[at])
			at = (at + 1) & (w->slot_count - 1);
		w->slots[at] = i + 1;
	}
}

static struct weights_sum *sum_of(struct weights *w, uint64_t key)
{
	size_t at;

	if (w->sums.n * 2 >= w->slot_count)
		grow(w);
	at = map_hash(key) & (w->slot_count - 1);
	while (w->slots[at] && w->sums.v[w->slots[at] - 1].key != key)
		at = (at + 1) & (w->slot_count - 1);
	if (!w->slots[at]) {
		vec_push(&w->sums, (struct weights_sum){ .key = key });
		w->slots[at] = w->sums.n;
	}
	return &w->sums.v[w->slots[at] - 1];
}

/* Columns: event, thread, time_ns, stack, value, count. */
static bool on_row(void *context, const struct tablescan_row *row)
{
	struct weights *w = context;
	uint64_t event = row->values[0], thread = row->values[1], stack = row->values[3];
	uint64_t count = row->nulls >> 5 & 1 ? 1 : row->values[5];
	struct weights_sum *s;

	/* What SQL makes of these, only SQL knows. */
	if (row->odd || row->nulls & 0xf || event >= EVENTS_MAX || !w->known[event] || thread >> THREAD_BITS ||
	    stack >> STACK_BITS || row->values[4] < 0 || row->values[5] < 0 || w->sums.n >= SUMS_MAX) {
		w->give_up = true;
		return false;
	}
	s = sum_of(w, event << (THREAD_BITS + STACK_BITS) | thread << STACK_BITS | stack);
	w->rows++;
	s->samples += count;
	s->value += row->nulls >> 4 & 1 ? w->periods[event] : row->values[4];
	if ((s->samples | s->value) >> 62) /* SQL fails where a sum overflows */
		w->give_up = true;
	return !w->give_up;
}

static void on_restart(void *context)
{
	struct weights *w = context;

	vec_clear(&w->sums);
	free(w->slots);
	w->slots = NULL;
	w->slot_count = w->rows = 0;
	w->give_up = false;
}

static int compare_sums(const void *a, const void *b)
{
	const struct weights_sum *x = a, *y = b;

	return ORDER(x->key, y->key);
}

static int put_sums(struct weights *w, sqlite3_stmt *q)
{
	int result = SQLITE_DONE;

	for (size_t i = 0; i < w->sums.n && result == SQLITE_DONE; i++) {
		const struct weights_sum *s = &w->sums.v[i];

		sqlite3_bind_int64(q, 1, weights_event(s));
		sqlite3_bind_int64(q, 2, weights_thread(s));
		sqlite3_bind_int64(q, 3, weights_stack(s));
		sqlite3_bind_int64(q, 4, s->samples);
		sqlite3_bind_int64(q, 5, s->value);
		result = sqlite3_step(q);
		sqlite3_reset(q);
	}
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

/* The sums are ordered by event. */
static int put_events(struct weights *w, sqlite3_stmt *q)
{
	int result = SQLITE_DONE;

	for (size_t i = 0, end; i < w->sums.n && result == SQLITE_DONE; i = end) {
		uint64_t samples = 0, value = 0;

		for (end = i; end < w->sums.n && weights_event(&w->sums.v[end]) == weights_event(&w->sums.v[i]); end++) {
			samples += w->sums.v[end].samples;
			value += w->sums.v[end].value;
			if ((samples | value) >> 62)
				return SQLITE_TOOBIG;
		}
		sqlite3_bind_int64(q, 1, weights_event(&w->sums.v[i]));
		sqlite3_bind_int64(q, 2, samples);
		sqlite3_bind_int64(q, 3, value);
		result = sqlite3_step(q);
		sqlite3_reset(q);
	}
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int write_rows(struct weights *w, const char *schema, const char *into, int (*put)(struct weights *w, sqlite3_stmt *q))
{
	char *sql = sqlite3_mprintf("insert into %s.%s", schema, into);
	sqlite3_stmt *q = NULL;
	int result;

	result = sql ? sqlite3_exec(w->db, "begin", NULL, NULL, NULL) : SQLITE_NOMEM;
	if (result == SQLITE_OK)
		result = sqlite3_prepare_v2(w->db, sql, -1, &q, NULL);
	if (result == SQLITE_OK)
		result = put(w, q);
	sqlite3_finalize(q);
	sqlite3_free(sql);
	if (result == SQLITE_OK)
		result = sqlite3_exec(w->db, "commit", NULL, NULL, NULL);
	if (!sqlite3_get_autocommit(w->db))
		sqlite3_exec(w->db, "rollback", NULL, NULL, NULL);
	return result;
}

static int read_samples(struct weights *w)
{
	const struct tablescan scan = { .table = "sample", .columns = 6, .row = on_row, .restart = on_restart,
					.sql = "select rowid, event, thread, time_ns, stack, value, count from sample" };
	int result = read_periods(w);

	if (result == SQLITE_OK)
		result = tablescan_read(w->db, &scan, w);
	if (w->sums.n)
		qsort(w->sums.v, w->sums.n, sizeof(*w->sums.v), compare_sums);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

int weights_fill(sqlite3 *db, const char *schema, unsigned tables, unsigned worth)
{
	struct weights *w = mem_alloc(sizeof(*w));
	int result;

	w->db = db;
	result = read_samples(w);
	if (!w->give_up && w->sums.n) {
		if (result == SQLITE_OK && tables & WEIGHTS_SUMS && w->rows / w->sums.n >= worth)
			result = write_rows(w, schema, "weight values (?, ?, ?, ?, ?)", put_sums);
		if (result == SQLITE_OK && tables & WEIGHTS_EVENTS)
			result = write_rows(w, schema, "event_sum values (?, ?, ?)", put_events);
		result = result == SQLITE_TOOBIG ? SQLITE_OK : result;
		if (result == SQLITE_OK && tables & WEIGHTS_FUNCTIONS)
			result = functions_fill(db, schema, w->sums.v, w->sums.n, w->rows, worth);
	}
	vec_done(&w->sums);
	free(w->slots);
	free(w);
	return result;
}
