#include "capture/sum/summing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/sum/sumrows.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum {
	PIECE_NS = 1000000000,
	STEPS = 2,            /* in a call: one keeps up with new rows, the other one catches up */
	JOINED = 4,           /* pieces that become one */
	MOST_JOINED = 200000, /* rows: more would take too long at once */
	MOST_LEVELS = 10,
	LEAST_FULL = 2,       /* pieces that are never summed */
	WAKES = 100,          /* that stay of a piece */
	MOST_SPANS = 1000,
	ROW_BYTES = 28,       /* about, in the file */
};

static const char *const sql[SUMMING_STATEMENTS] = {
	[SUMMING_PAGES] = "pragma page_count",
	[SUMMING_FREE_PAGES] = "pragma freelist_count",
	[SUMMING_BEGIN] = "begin immediate",
	[SUMMING_COMMIT] = "commit",
	[SUMMING_ROWS] = "select event, thread, time_ns, stack, value, count from sample where rowid between ? and ? order by rowid",
	[SUMMING_DELETE] = "delete from sample where rowid between ? and ?",
	[SUMMING_INSERT] = "insert into sample (event, thread, time_ns, stack, value, count, rowid) values (?, ?, ?, ?, ?, ?, ?)",
	[SUMMING_CLEAR_SLOTS] = "delete from summed where start_ns >= ? and start_ns < ?",
	[SUMMING_SLOT] = "insert into summed values (?, ?)",
	[SUMMING_WAKES] = "select rowid, time_ns, blocked_ns from wake where rowid between ? and ?",
	[SUMMING_DELETE_WAKE] = "delete from wake where rowid = ?",
	[SUMMING_TASK_WAKES] = "select rowid, time_ns, await_ns from task_wake where rowid between ? and ?",
	[SUMMING_DELETE_TASK_WAKE] = "delete from task_wake where rowid = ?",
};

/* A piece of work. */
struct work {
	struct summing *s;
	struct profile *p;
	size_t first, last;     /* pieces */
	int64_t from_row, to_row; /* rowids, both included */
	uint64_t from_ns, to_ns;
	unsigned level;
	struct sumslots slots;  /* as they will be */
	struct sumrows sums;
	uint64_t wakes_left_out[SUMMING_WAKE_TABLES];
};

static int run(struct summing *s, enum summing_statement which)
{
	if (sqlite3_step(s->statements[which]) != SQLITE_DONE)
		return -1;
	sqlite3_reset(s->statements[which]);
	return 0;
}

static sqlite3_stmt *bind_two(struct summing *s, enum summing_statement which, int64_t a, int64_t b)
{
	sqlite3_bind_int64(s->statements[which], 1, a);
	sqlite3_bind_int64(s->statements[which], 2, b);
	return s->statements[which];
}

static int64_t rows_end(const struct summing *s, size_t piece)
{
	return piece + 1 < s->pieces.n ? s->pieces.v[piece + 1].first_row : s->next_row;
}

static int64_t wakes_end(const struct summing *s, size_t piece, enum summing_wakes of)
{
	return piece + 1 < s->pieces.n ? s->pieces.v[piece + 1].first_wake[of] : s->next_wake[of];
}

static uint64_t start_ns(const struct summing *s, size_t piece)
{
	return piece ? s->pieces.v[piece - 1].end_ns : 0;
}

/* --- one piece of work --- */

static uint64_t period_of(const struct profile *p, uint32_t event)
{
	return event < p->events.n ? p->events.v[event].period : 0;
}

static int read_rows(struct work *w, const bool *lasts)
{
	VEC(struct profile_sample) in = { 0 };
	sqlite3_stmt *q = bind_two(w->s, SUMMING_ROWS, w->from_row, w->to_row);
	int step;

	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		struct profile_sample x = { .event = sqlite3_column_int64(q, 0), .thread = sqlite3_column_int64(q, 1),
					    .time_ns = sqlite3_column_int64(q, 2), .stack = sqlite3_column_int64(q, 3),
					    .count = sqlite3_column_int64(q, 5) };

		x.value = sqlite3_column_type(q, 4) == SQLITE_NULL ? period_of(w->p, x.event) : (uint64_t)sqlite3_column_int64(q, 4);
		vec_push(&in, x);
	}
	if (step == SQLITE_DONE) {
		sqlite3_reset(q);
		sumrows_make(&w->sums, in.v, in.n, &w->slots, lasts);
	}
	vec_done(&in);
	return step == SQLITE_DONE ? 0 : -1;
}

static int put_row(struct work *w, const struct profile_sample *x, int64_t row)
{
	sqlite3_stmt *q = w->s->statements[SUMMING_INSERT];

	sqlite3_bind_int64(q, 1, x->event);
	sqlite3_bind_int64(q, 2, x->thread);
	sqlite3_bind_int64(q, 3, x->time_ns);
	sqlite3_bind_int64(q, 4, x->stack);
	if (x->value == period_of(w->p, x->event))
		sqlite3_bind_null(q, 5);
	else
		sqlite3_bind_int64(q, 5, x->value);
	if (x->count > 1)
		sqlite3_bind_int64(q, 6, x->count);
	else
		sqlite3_bind_null(q, 6);
	sqlite3_bind_int64(q, 7, row);
	return run(w->s, SUMMING_INSERT);
}

static int replace_rows(struct work *w)
{
	int r;

	bind_two(w->s, SUMMING_DELETE, w->from_row, w->to_row);
	r = run(w->s, SUMMING_DELETE);
	for (size_t i = 0; i < w->sums.rows.n && !r; i++)
		r = put_row(w, &w->sums.rows.v[i].s, w->from_row + i);
	return r;
}

static int replace_slots(struct work *w)
{
	int r;

	bind_two(w->s, SUMMING_CLEAR_SLOTS, w->from_ns, w->to_ns);
	r = run(w->s, SUMMING_CLEAR_SLOTS);
	for (size_t i = vec_search(k, 0, w->slots.n, w->slots.v[k].start_ns < w->from_ns);
	     i < w->slots.n && w->slots.v[i].start_ns < w->to_ns && !r; i++)
		if (!w->slots.v[i].full) {
			bind_two(w->s, SUMMING_SLOT, w->slots.v[i].start_ns, w->slots.v[i].end_ns);
			r = run(w->s, SUMMING_SLOT);
		}
	return r;
}

struct old_wake {
	int64_t row;
	uint64_t blocked_ns;
};

static int compare_wakes(const void *a, const void *b)
{
	const struct old_wake *x = a, *y = b;

	return ORDER(y->blocked_ns, x->blocked_ns) ?: ORDER(x->row, y->row);
}

/* Of the wakes the longest stay, and those of marks that stay. */
static int thin_wakes(struct work *w, enum summing_wakes of)
{
	enum summing_statement delete = of == SUMMING_OF_TASKS ? SUMMING_DELETE_TASK_WAKE : SUMMING_DELETE_WAKE;
	int64_t first = w->s->pieces.v[w->first].first_wake[of], end = wakes_end(w->s, w->last, of);
	sqlite3_stmt *q = bind_two(w->s, of == SUMMING_OF_TASKS ? SUMMING_TASK_WAKES : SUMMING_WAKES, first, end - 1);
	VEC(struct old_wake) wakes = { 0 };
	int step = SQLITE_DONE, r = 0;

	while (end - first > WAKES && (step = sqlite3_step(q)) == SQLITE_ROW) {
		const struct sumslot *slot = sumslots_at(&w->slots, sqlite3_column_int64(q, 1));

		if (slot && !slot->full)
			vec_push(&wakes, (struct old_wake){ sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 2) });
	}
	r = step == SQLITE_DONE ? 0 : -1;
	if (!r)
		sqlite3_reset(q);
	vec_sort(&wakes, compare_wakes);
	for (size_t i = WAKES; i < wakes.n && !r; i++, w->wakes_left_out[of]++) {
		sqlite3_bind_int64(w->s->statements[delete], 1, wakes.v[i].row);
		r = run(w->s, delete);
	}
	vec_done(&wakes);
	return r;
}

/* Durations are what is measured in ns and has no usual value; of CPU samples it is the period. */
static bool *find_lasting(const struct profile *p)
{
	bool *lasts = mem_alloc(p->events.n + 1);

	for (size_t i = 0; i < p->events.n; i++)
		lasts[i] = !p->events.v[i].period && !strcmp(profile_str(p, p->events.v[i].unit), "ns");
	return lasts;
}

/* Only after the commit. */
static void take_over(struct work *w)
{
	struct summing *s = w->s;
	struct summing_piece *piece = &s->pieces.v[w->first];
	size_t gone = w->last - w->first;

	vec_done(&s->slots);
	s->slots = w->slots;
	w->slots = (struct sumslots){ 0 };
	piece->end_ns = w->to_ns;
	piece->rows = w->sums.rows.n;
	piece->full = w->sums.full;
	piece->level = w->level;
	piece->again = false;
	memmove(piece + 1, piece + 1 + gone, (s->pieces.n - w->last - 1) * sizeof(*piece));
	s->pieces.n -= gone;
	profile_count(w->p, KEY_WAKES_LEFT_OUT, w->wakes_left_out[SUMMING_OF_THREADS]);
	if (w->wakes_left_out[SUMMING_OF_TASKS])
		profile_count(w->p, KEY_TASK_WAKES_LEFT_OUT, w->wakes_left_out[SUMMING_OF_TASKS]);
}

static int sum_pieces(struct summing *s, struct profile *p, size_t first, size_t last, unsigned level)
{
	struct work w = { .s = s, .p = p, .first = first, .last = last, .from_row = s->pieces.v[first].first_row,
			  .to_row = rows_end(s, last) - 1, .from_ns = start_ns(s, first), .to_ns = s->pieces.v[last].end_ns,
			  .level = level };
	_cleanup_free_ bool *lasts = find_lasting(p);
	int r;

	vec_reserve(&w.slots, s->slots.n + 1);
	if (s->slots.n)
		memcpy(w.slots.v, s->slots.v, s->slots.n * sizeof(*s->slots.v));
	w.slots.n = s->slots.n;
	sumslots_cut(&w.slots, p, &s->full, w.from_ns, w.to_ns);
	r = run(s, SUMMING_BEGIN);
	r = r ?: read_rows(&w, lasts);
	r = r ?: replace_rows(&w);
	r = r ?: replace_slots(&w);
	for (int of = 0; of < SUMMING_WAKE_TABLES; of++)
		r = r ?: thin_wakes(&w, of);
	r = r ?: run(s, SUMMING_COMMIT);
	if (!r)
		take_over(&w);
	sumrows_done(&w.sums);
	vec_done(&w.slots);
	return r;
}

/* --- what is due --- */

static int get_number(struct summing *s, enum summing_statement which, uint64_t *ret)
{
	sqlite3_stmt *q = s->statements[which];

	if (sqlite3_step(q) != SQLITE_ROW)
		return -1;
	*ret = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

/* Without pages that are free, which new rows use again. */
static int used_bytes(struct summing *s, uint64_t *ret)
{
	uint64_t pages, unused;

	if (get_number(s, SUMMING_PAGES, &pages) || get_number(s, SUMMING_FREE_PAGES, &unused))
		return -1;
	*ret = (pages - unused) * s->page_bytes;
	return 0;
}

static size_t first_as_recorded(const struct summing *s)
{
	return vec_search(i, 0, s->pieces.n, s->pieces.v[i].level > 0);
}

/* Slow marks that stay must leave room for the rest: the shortest of them need not stay. */
static void limit_full(struct summing *s)
{
	uint64_t rows = 0;
	struct sumspan span;

	for (size_t i = 0; i < s->pieces.n; i++)
		rows += s->pieces.v[i].again ? 0 : s->pieces.v[i].full;
	if ((rows <= s->limit_bytes / 8 / ROW_BYTES && s->full.n <= MOST_SPANS) || !sumspans_drop_shortest(&s->full, &span))
		return;
	for (size_t i = 0; i < s->pieces.n && s->pieces.v[i].level; i++)
		if (start_ns(s, i) < span.end_ns && s->pieces.v[i].end_ns > span.start_ns)
			s->pieces.v[i].again = true;
}

static int sum_oldest(struct summing *s, struct profile *p, size_t piece)
{
	size_t before = s->full.n;
	int r;

	sumspans_add_slow(&s->full, p, start_ns(s, piece), s->pieces.v[piece].end_ns);
	r = sum_pieces(s, p, piece, piece, 1);
	if (r)
		s->full.n = before; /* they are found again at the next try */
	return r;
}

/* The oldest pieces of one level, the lowest that has enough of them and leaves as many behind. SIZE_MAX: there are none. */
static size_t find_joined(const struct summing *s, size_t leave)
{
	size_t end = first_as_recorded(s);

	while (end) {
		unsigned level = s->pieces.v[end - 1].level;
		size_t first = vec_search(i, 0, end, s->pieces.v[i].level > level);
		uint64_t rows = 0;

		for (size_t i = first; i < end && i < first + JOINED; i++)
			rows += s->pieces.v[i].rows;
		if (end - first >= JOINED + leave && rows <= MOST_JOINED && level < MOST_LEVELS)
			return first;
		end = first;
	}
	return SIZE_MAX;
}

static int join(struct summing *s, struct profile *p)
{
	size_t first = find_joined(s, JOINED);

	if (first == SIZE_MAX)
		first = find_joined(s, 0);
	if (first == SIZE_MAX)
		return 0;
	return sum_pieces(s, p, first, first + JOINED - 1, s->pieces.v[first].level + 1) ?: 1;
}

/* 1: something was done. */
static int one_step(struct summing *s, struct profile *p)
{
	size_t piece = first_as_recorded(s);
	bool any = piece + LEAST_FULL < s->pieces.n;
	uint64_t used, now_ns = s->pieces.n ? s->pieces.v[s->pieces.n - 1].end_ns : 0;
	int r = used_bytes(s, &used);

	if (r || used <= s->limit_bytes / 4)
		return r;
	if (any && s->pieces.v[piece].end_ns + s->full_ns <= now_ns)
		return sum_oldest(s, p, piece) ?: 1;
	limit_full(s);
	for (size_t i = 0; i < piece; i++)
		if (s->pieces.v[i].again)
			return sum_pieces(s, p, i, i, s->pieces.v[i].level) ?: 1;
	if (used > s->limit_bytes / 4 * 3)
		r = join(s, p);
	if (!r && any && used > s->limit_bytes / 8 * 7)
		r = sum_oldest(s, p, piece) ?: 1;
	return r;
}

int summing_step(struct summing *s, struct profile *p)
{
	int r = s->limit_bytes ? 1 : 0;

	for (int i = 0; i < STEPS && r > 0; i++)
		r = one_step(s, p);
	return MIN(r, 0);
}

void summing_note(struct summing *s, const struct profile *p, size_t samples, size_t wakes, size_t taskwakes)
{
	struct summing_piece *last = s->pieces.n ? &s->pieces.v[s->pieces.n - 1] : NULL;

	if (!s->limit_bytes)
		return;
	if (!last || last->level || last->end_ns >= start_ns(s, s->pieces.n - 1) + PIECE_NS) {
		struct summing_piece next = { .first_row = s->next_row, .end_ns = last ? last->end_ns : 0 };

		memcpy(next.first_wake, s->next_wake, sizeof(next.first_wake));
		vec_push(&s->pieces, next); /* moves what last points to */
		last = &s->pieces.v[s->pieces.n - 1];
	}
	for (size_t i = samples; i < p->samples.n; i++)
		last->end_ns = MAX(last->end_ns, p->samples.v[i].time_ns + 1);
	last->rows += p->samples.n - samples;
	s->next_row += p->samples.n - samples;
	s->next_wake[SUMMING_OF_THREADS] += p->wakes.n - wakes;
	s->next_wake[SUMMING_OF_TASKS] += p->taskwakes.n - taskwakes;
}

int summing_init(struct summing *s, sqlite3 *db, uint64_t limit_bytes, uint64_t full_ns)
{
	sqlite3_stmt *q = NULL;
	int r = 0;

	summing_done(s);
	*s = (struct summing){ .db = db, .limit_bytes = limit_bytes, .full_ns = full_ns, .next_row = 1,
				.next_wake = { 1, 1 } };
	if (sqlite3_prepare_v2(db, "pragma page_size", -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		r = -1;
	else
		s->page_bytes = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	for (int i = 0; i < SUMMING_STATEMENTS && !r && limit_bytes; i++)
		if (sqlite3_prepare_v3(db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL) != SQLITE_OK)
			r = -1;
	return r;
}

void summing_undo(struct summing *s)
{
	for (int i = 0; i < SUMMING_STATEMENTS; i++)
		sqlite3_reset(s->statements[i]);
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "rollback", NULL, NULL, NULL);
}

void summing_finalize(struct summing *s)
{
	for (int i = 0; i < SUMMING_STATEMENTS; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
}

void summing_done(struct summing *s)
{
	summing_finalize(s);
	vec_done(&s->pieces);
	vec_done(&s->slots);
	vec_done(&s->full);
}
