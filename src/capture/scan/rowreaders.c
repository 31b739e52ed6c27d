/*
 * rowreaders.c - one function for each table. None of them trusts a value in a row.
 */
#include "capture/scan/rowreaders.h"

#include <string.h>

#include "base/vec.h"
#include "capture/capturetext.h"
#include "capture/scan/reading.h"
#include "profile/profile.h"

/* A row makes a histogram of half a kilobyte, and no recording has nearly so many. */
#define MOST_HISTOGRAMS 10000
#define MOST_OWNERS 1000

static bool get_int(sqlite3_stmt *s, int column, uint64_t max, uint64_t *ret)
{
	int64_t value = sqlite3_column_int64(s, column);

	if (sqlite3_column_type(s, column) != SQLITE_INTEGER || value < 0 || (uint64_t)value > max)
		return false;
	*ret = value;
	return true;
}

bool rowreaders_get_ns(sqlite3_stmt *s, int column, uint64_t *ret)
{
	return get_int(s, column, INT64_MAX, ret);
}

static bool get_u32(sqlite3_stmt *s, int column, uint32_t *ret)
{
	uint64_t value;

	if (!get_int(s, column, UINT32_MAX, &value))
		return false;
	*ret = value;
	return true;
}

/* Addresses use all 64 bits, so no number is wrong; NULL is 0. */
static bool get_address(sqlite3_stmt *s, int column, uint64_t *ret)
{
	int type = sqlite3_column_type(s, column);

	*ret = (uint64_t)sqlite3_column_int64(s, column);
	return type == SQLITE_INTEGER || type == SQLITE_NULL;
}

static bool get_ref(sqlite3_stmt *s, int column, const struct ids *ids, uint32_t *ret)
{
	return sqlite3_column_type(s, column) == SQLITE_INTEGER &&
	       ids_get(ids, sqlite3_column_int64(s, column), ret);
}

/* The same, where NULL means none. */
static bool get_optional_ref(sqlite3_stmt *s, int column, const struct ids *ids, uint32_t *ret)
{
	*ret = PROFILE_NONE;
	return sqlite3_column_type(s, column) == SQLITE_NULL || get_ref(s, column, ids, ret);
}

/* A text of which only some words are expected; NULL where there is none. */
static const char *get_word(struct reading *r, sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	uint64_t n = sqlite3_column_bytes(s, column);

	r->text_left = n <= r->text_left ? r->text_left - n : 0;
	return text;
}

/* Bytes as they are, to the first NUL. NULL is "". */
static bool get_string(struct reading *r, sqlite3_stmt *s, int column, uint32_t *ret)
{
	int type = sqlite3_column_type(s, column);
	const char *text;

	if (type != SQLITE_TEXT && type != SQLITE_NULL)
		return false;
	text = get_word(r, s, column);
	*ret = text && r->text_left ? strtab_add_n(&r->p->strings, text, sqlite3_column_bytes(s, column)) : 0;
	return true;
}

static bool get_column(struct reading *r, sqlite3_stmt *s, int column, const struct column *c, void *field)
{
	switch (c->kind) {
	case COLUMN_INT:
		return rowreaders_get_ns(s, column, field);
	case COLUMN_U32:
		return get_u32(s, column, field);
	case COLUMN_ADDRESS:
		return get_address(s, column, field);
	case COLUMN_REF:
		return get_ref(s, column, &r->ids[c->of], field);
	case COLUMN_OPTIONAL:
		return get_optional_ref(s, column, &r->ids[c->of], field);
	case COLUMN_TEXT:
		return get_string(r, s, column, field);
	case COLUMN_ID:
	case COLUMN_OWN:
	case COLUMN_END:
		break;
	}
	return true;
}

/* Reads all columns that the table of columns knows how to read. */
static bool get_row(struct reading *r, sqlite3_stmt *s, enum capture_table table, void *row)
{
	const struct column *columns = capture_tables[table].columns;

	for (int i = 0; columns[i].kind; i++)
		if (!get_column(r, s, i, &columns[i], (char *)row + columns[i].offset))
			return false;
	return true;
}

static void add_id(struct reading *r, sqlite3_stmt *s, enum capture_table table, uint32_t index)
{
	ids_add(&r->ids[table], sqlite3_column_int64(s, 0), index);
}

static bool read_meta(struct reading *r, sqlite3_stmt *s)
{
	const char *key = get_word(r, s, 0);
	struct profile *p = r->p;
	uint64_t yes;

	if (!key)
		return false;
	if (!strcmp(key, "target"))
		return get_string(r, s, 1, &p->target);
	if (!strcmp(key, "host"))
		return get_string(r, s, 1, &p->host);
	if (!strcmp(key, "kernel"))
		return get_string(r, s, 1, &p->kernel);
	if (!strcmp(key, "start_wall_ns"))
		return rowreaders_get_ns(s, 1, &p->start_wall_ns);
	if (!strcmp(key, "duration_ns"))
		return rowreaders_get_ns(s, 1, &p->duration_ns);
	if (!strcmp(key, "finished")) {
		if (!get_int(s, 1, 1, &yes))
			return false;
		p->finished = yes;
	}
	if (!strcmp(key, "redacted")) {
		if (!get_int(s, 1, 1, &yes))
			return false;
		p->redacted = yes;
	}
	return true; /* other keys are for people */
}

static bool read_event(struct reading *r, sqlite3_stmt *s)
{
	struct profile_event e = { 0 };

	if (!get_row(r, s, TABLE_EVENT, &e))
		return false;
	add_id(r, s, TABLE_EVENT, r->p->events.n);
	vec_push(&r->p->events, e);
	return true;
}

static bool read_process(struct reading *r, sqlite3_stmt *s)
{
	struct profile_process x = { 0 };

	if (!get_row(r, s, TABLE_PROCESS, &x))
		return false;
	add_id(r, s, TABLE_PROCESS, profile_add_process(r->p, &x));
	return true;
}

static bool read_owner(struct reading *r, sqlite3_stmt *s)
{
	struct profile_owner o = { 0 };

	if (r->p->owners.n >= MOST_OWNERS || !get_row(r, s, TABLE_OWNER, &o))
		return false;
	add_id(r, s, TABLE_OWNER, profile_owner(r->p, &o));
	return true;
}

static bool read_process_owner(struct reading *r, sqlite3_stmt *s)
{
	uint32_t process, owner, pid = 0;

	if (!get_ref(s, 0, &r->ids[TABLE_PROCESS], &process) || !get_optional_ref(s, 1, &r->ids[TABLE_OWNER], &owner) ||
	    (sqlite3_column_type(s, 2) != SQLITE_NULL && !get_u32(s, 2, &pid)))
		return false;
	r->p->processes.v[process].owner = owner == PROFILE_NONE ? 0 : owner;
	r->p->processes.v[process].inner_pid = pid;
	return true;
}

static bool read_thread(struct reading *r, sqlite3_stmt *s)
{
	struct profile_thread x = { 0 };

	if (!get_row(r, s, TABLE_THREAD, &x))
		return false;
	add_id(r, s, TABLE_THREAD, profile_add_thread(r->p, &x));
	return true;
}

static bool read_module(struct reading *r, sqlite3_stmt *s)
{
	const char *kind = get_word(r, s, 2);
	const char *build_id = get_word(r, s, 4);
	struct profile_module m = { 0 };

	if (!get_row(r, s, TABLE_MODULE, &m) || !kind || !capturetext_parse_kind(kind, &m.kind) ||
	    (build_id && !capturetext_parse_hex(build_id, m.build_id, sizeof(m.build_id), &m.build_id_size)))
		return false;
	add_id(r, s, TABLE_MODULE, profile_add_module(r->p, &m));
	return true;
}

static bool read_mapping(struct reading *r, sqlite3_stmt *s)
{
	struct profile_mapping m = { 0 };

	if (!get_row(r, s, TABLE_MAPPING, &m) || m.end < m.start)
		return false;
	profile_add_mapping(r->p, &m);
	return true;
}

static bool read_function_range(struct reading *r, sqlite3_stmt *s)
{
	struct profile_range x = { 0 };

	if (!get_row(r, s, TABLE_FUNCTION_RANGE, &x) || x.end <= x.start)
		return false;
	profile_add_range(r->p, x.module, x.start, x.end);
	return true;
}

static bool read_function(struct reading *r, sqlite3_stmt *s)
{
	struct profile_function f = { 0 };

	if (!get_row(r, s, TABLE_FUNCTION, &f))
		return false;
	add_id(r, s, TABLE_FUNCTION, profile_function(r->p, &f));
	return true;
}

static bool read_function_named(struct reading *r, sqlite3_stmt *s)
{
	const char *word = get_word(r, s, 1);
	uint32_t function;

	return word && get_ref(s, 0, &r->ids[TABLE_FUNCTION], &function) &&
	       capturetext_parse_named(word, &r->p->functions.v[function].named);
}

static bool read_frame(struct reading *r, sqlite3_stmt *s)
{
	struct profile_frame f = { 0 };
	uint64_t kind;
	uint32_t id;

	if (!get_row(r, s, TABLE_FRAME, &f) || !get_int(s, 2, FRAME_NOTE, &kind))
		return false;
	/* Frames that are only a name differ in their lines, which come later. */
	f.kind = kind;
	if (f.address) {
		size_t known = r->p->frames.n;

		id = profile_frame(r->p, f.module, f.kind, f.address);
		/* Code that took the place of other code. */
		if (id < known && f.module < r->p->modules.n && r->p->modules.v[f.module].kind == MODULE_JIT)
			id = profile_frame_again(r->p, id);
	} else {
		id = r->p->frames.n;
		vec_push(&r->p->frames, f);
	}
	add_id(r, s, TABLE_FRAME, id);
	return true;
}

void rowreaders_finish(struct reading *r)
{
	if (r->lines.n)
		profile_set_lines(r->p, r->lines_frame, r->lines.v, r->lines.n);
	vec_clear(&r->lines);
}

static bool read_line(struct reading *r, sqlite3_stmt *s)
{
	struct profile_line l = { 0 };
	uint64_t inlined;
	uint32_t frame;

	if (!get_ref(s, 0, &r->ids[TABLE_FRAME], &frame) || !get_row(r, s, TABLE_LINE, &l) || !get_int(s, 4, 1, &inlined))
		return false;
	if (frame != r->lines_frame)
		rowreaders_finish(r);
	r->lines_frame = frame;
	l.inlined = inlined;
	vec_push(&r->lines, l);
	return true;
}

static bool read_wake(struct reading *r, sqlite3_stmt *s)
{
	struct profile_wake x = { 0 };

	if (!get_row(r, s, TABLE_WAKE, &x))
		return false;
	if (!x.waker_name && x.waker != PROFILE_NONE)
		x.waker_name = r->p->threads.v[x.waker].name;
	profile_add_wake(r->p, &x);
	return true;
}

static bool read_task_wake(struct reading *r, sqlite3_stmt *s)
{
	struct profile_taskwake x = { 0 };

	if (!get_row(r, s, TABLE_TASK_WAKE, &x))
		return false;
	profile_add_taskwake(r->p, &x);
	return true;
}

/* Reads what a mark knows of its block; NULL is unknown. */
static bool get_known(sqlite3_stmt *s, int column, uint32_t bit, uint32_t *known, uint64_t *ret)
{
	if (sqlite3_column_type(s, column) == SQLITE_NULL)
		return true;
	*known |= bit;
	return get_int(s, column, INT64_MAX, ret);
}

static bool read_mark(struct reading *r, sqlite3_stmt *s)
{
	struct profile_mark x = { 0 };

	if (!get_row(r, s, TABLE_MARK, &x) || x.end_ns < x.start_ns ||
	    !get_known(s, 5, BLOCK_NUMBER, &x.block.known, &x.block.number) ||
	    !get_known(s, 6, BLOCK_GAS, &x.block.known, &x.block.gas) ||
	    !get_known(s, 7, BLOCK_TRANSACTIONS, &x.block.known, &x.block.transactions))
		return false;
	profile_add_mark(r->p, &x);
	return true;
}

static bool read_summed(struct reading *r, sqlite3_stmt *s)
{
	struct profile_summed x = { 0 };

	if (!get_row(r, s, TABLE_SUMMED, &x) || x.end_ns <= x.start_ns)
		return false;
	profile_add_summed(r->p, &x);
	return true;
}

static bool read_series(struct reading *r, sqlite3_stmt *s)
{
	struct profile_series x = { 0 };

	if (!get_row(r, s, TABLE_SERIES, &x))
		return false;
	add_id(r, s, TABLE_SERIES, r->p->series.n);
	vec_push(&r->p->series, x);
	return true;
}

/* Which bucket begins there? The last one's 2^63 is written as 2^63 - 1. */
static bool get_bucket(sqlite3_stmt *s, int column, unsigned *ret)
{
	uint64_t low;

	if (!rowreaders_get_ns(s, column, &low) || (low != INT64_MAX && (!low || low & (low - 1))))
		return false;
	*ret = low == INT64_MAX ? 63 : __builtin_ctzll(low);
	return true;
}

/* Rows are sorted by name: a new name begins another histogram. */
static bool read_histogram(struct reading *r, sqlite3_stmt *s)
{
	struct profile_histogram new = { 0 };
	struct profile *p = r->p;
	uint64_t count;
	unsigned i;

	if (!get_string(r, s, 0, &new.name) || !get_row(r, s, TABLE_HISTOGRAM, &new) || !get_bucket(s, 2, &i) ||
	    !rowreaders_get_ns(s, 3, &count))
		return false;
	if (!p->histograms.n || p->histograms.v[p->histograms.n - 1].name != new.name) {
		if (p->histograms.n == MOST_HISTOGRAMS)
			return false;
		vec_push(&p->histograms, new);
	}
	p->histograms.v[p->histograms.n - 1].counts[i] = count;
	return true;
}

static bool read_counter(struct reading *r, sqlite3_stmt *s)
{
	struct profile_counter x = { 0 };

	if (!get_string(r, s, 0, &x.name) || !get_row(r, s, TABLE_COUNTER, &x))
		return false;
	profile_count_set(r->p, profile_str(r->p, x.name), x.value);
	return true;
}

rowreaders_fn *const rowreaders[TABLES] = {
	[TABLE_META] = read_meta,
	[TABLE_EVENT] = read_event,
	[TABLE_PROCESS] = read_process,
	[TABLE_OWNER] = read_owner,
	[TABLE_PROCESS_OWNER] = read_process_owner,
	[TABLE_THREAD] = read_thread,
	[TABLE_MODULE] = read_module,
	[TABLE_MAPPING] = read_mapping,
	[TABLE_FUNCTION_RANGE] = read_function_range,
	[TABLE_FUNCTION] = read_function,
	[TABLE_FUNCTION_NAMED] = read_function_named,
	[TABLE_FRAME] = read_frame,
	[TABLE_LINE] = read_line,
	[TABLE_WAKE] = read_wake,
	[TABLE_TASK_WAKE] = read_task_wake,
	[TABLE_MARK] = read_mark,
	[TABLE_SERIES] = read_series,
	[TABLE_SUMMED] = read_summed,
	[TABLE_HISTOGRAM] = read_histogram,
	[TABLE_COUNTER] = read_counter,
};
