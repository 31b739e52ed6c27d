#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "capture/capturefile.h"
#include "capture/capturetext.h"
#include "capture/capturevfs.h"
#include "capture/columns.h"
#include "capture/scan/coarse.h"
#include "capture/scan/joining.h"
#include "capture/scan/reading.h"
#include "capture/scan/tablescan.h"
#include "capture/schema.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* A row makes a histogram of half a kilobyte, and no recording has nearly so many. */
#define MOST_HISTOGRAMS 10000
#define MOST_OWNERS 1000
/* Samples that become a coarse profile, where there are no sums. */
#define COARSE_MOST 1000000
/* An even part of more rows has so many. */
#define EVEN_ROWS 1000000
/* A row takes at least 4 bytes in its page, and 2 that point to it; no two rows share them. */
#define SMALLEST_ROW 6

/* Reads one row into the profile; false drops it. */
typedef bool row_fn(struct reading *r, sqlite3_stmt *s);

static bool get_int(sqlite3_stmt *s, int column, uint64_t max, uint64_t *ret)
{
	int64_t value = sqlite3_column_int64(s, column);

	if (sqlite3_column_type(s, column) != SQLITE_INTEGER || value < 0 || (uint64_t)value > max)
		return false;
	*ret = value;
	return true;
}

static bool get_ns(sqlite3_stmt *s, int column, uint64_t *ret)
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
		return get_ns(s, column, field);
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
		return get_ns(s, 1, &p->start_wall_ns);
	if (!strcmp(key, "duration_ns"))
		return get_ns(s, 1, &p->duration_ns);
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

static void finish_lines(struct reading *r)
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
		finish_lines(r);
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

	if (!get_ns(s, column, &low) || (low != INT64_MAX && (!low || low & (low - 1))))
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
	    !get_ns(s, 3, &count))
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

static row_fn *const readers[TABLES] = {
	[TABLE_META] = read_meta,         [TABLE_EVENT] = read_event,
	[TABLE_PROCESS] = read_process,   [TABLE_OWNER] = read_owner,
	[TABLE_PROCESS_OWNER] = read_process_owner, [TABLE_THREAD] = read_thread,
	[TABLE_MODULE] = read_module,     [TABLE_MAPPING] = read_mapping,
	[TABLE_FUNCTION_RANGE] = read_function_range,
	[TABLE_FUNCTION] = read_function, [TABLE_FUNCTION_NAMED] = read_function_named,
	[TABLE_FRAME] = read_frame,
	[TABLE_LINE] = read_line,         [TABLE_WAKE] = read_wake,
	[TABLE_MARK] = read_mark,         [TABLE_SERIES] = read_series,
	[TABLE_SUMMED] = read_summed,     [TABLE_HISTOGRAM] = read_histogram,
	[TABLE_COUNTER] = read_counter,
};

static int too_much(const struct reading *r, struct err *err)
{
	return err_set(err, EBADMSG, "cannot read %s: the file is damaged, or made to waste time: it has more %s than its size "
				     "has room for", r->path, r->rows_left ? "text" : "rows");
}

/* --- the tables of numbers, which are the long ones --- */

/* Finds the row that a column refers to. */
static bool to_ref(const struct ids *ids, const struct tablescan_row *row, unsigned column, uint32_t *ret)
{
	return !(row->nulls >> column & 1) && ids_get(ids, row->values[column], ret);
}

static bool to_ns(const struct tablescan_row *row, unsigned column, uint64_t *ret)
{
	*ret = row->values[column];
	return !(row->nulls >> column & 1) && row->values[column] >= 0;
}

/* A parent comes before its children, so it has been read: no cycle is possible. */
static bool add_stack(struct reading *r, const struct tablescan_row *row)
{
	struct profile_node n;

	if (!to_ref(&r->ids[TABLE_STACK], row, 1, &n.parent) || !to_ref(&r->ids[TABLE_FRAME], row, 2, &n.frame))
		return false;
	ids_add(&r->ids[TABLE_STACK], row->rowid, profile_stack(r->p, n.parent, n.frame));
	return true;
}

bool reading_sample(const struct reading *r, const struct tablescan_row *row, struct profile_sample *ret)
{
	if (row->odd || !to_ref(&r->ids[TABLE_EVENT], row, 0, &ret->event) ||
	    !to_ref(&r->ids[TABLE_THREAD], row, 1, &ret->thread) || !to_ns(row, 2, &ret->time_ns) ||
	    !to_ref(&r->ids[TABLE_STACK], row, 3, &ret->stack) || row->values[4] < 0 || row->values[5] < 0 ||
	    row->values[5] > UINT32_MAX)
		return false;
	ret->value = row->nulls >> 4 & 1 ? r->p->events.v[ret->event].period : (uint64_t)row->values[4];
	ret->count = row->values[5];
	return true;
}

/* Scales what stands for many. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t c;

	return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static bool add_sample(struct reading *r, const struct tablescan_row *row)
{
	struct profile_sample x;

	if (!reading_sample(r, row, &x))
		return false;
	if (r->every) {
		x.value = times(x.value, r->every);
		x.count = MIN(times(MAX(x.count, 1u), r->every), UINT32_MAX);
	}
	joining_add(&r->joining, &x);
	return true;
}

/* Adds a sum of the recorder's: event, thread, stack, samples, value. */
static bool add_weight(struct reading *r, const struct tablescan_row *row)
{
	struct profile_sample x = { 0 };

	if (!to_ref(&r->ids[TABLE_EVENT], row, 0, &x.event) || !to_ref(&r->ids[TABLE_THREAD], row, 1, &x.thread) ||
	    !to_ref(&r->ids[TABLE_STACK], row, 2, &x.stack) || row->nulls & 0x18 || row->values[3] < 1 || row->values[4] < 0)
		return false;
	x.count = MIN(row->values[3], (int64_t)UINT32_MAX);
	x.value = row->values[4];
	profile_add_sample(r->p, &x);
	return true;
}

static bool add_point(struct reading *r, const struct tablescan_row *row)
{
	struct profile_point x;

	if (!to_ref(&r->ids[TABLE_SERIES], row, 0, &x.series) || !to_ns(row, 1, &x.time_ns) || row->nulls >> 2 & 1)
		return false;
	profile_add_point(r->p, x.series, x.time_ns, row->values[2]);
	return true;
}

/* Adds one row to the profile; false drops it. */
typedef bool number_fn(struct reading *r, const struct tablescan_row *row);

static number_fn *const adders[TABLES] = {
	[TABLE_STACK] = add_stack,
	[TABLE_SAMPLE] = add_sample,
	[TABLE_POINT] = add_point,
	[TABLE_WEIGHT] = add_weight,
};

/* One such table on its way in, and how things stood before it. */
struct numbers {
	struct reading *r;
	enum capture_table table;
	uint64_t dropped, rows_left;
};

static bool on_row(void *context, const struct tablescan_row *row)
{
	struct numbers *n = context;

	if (!n->r->rows_left)
		return false;
	n->r->rows_left--;
	if (row->odd || !adders[n->table](n->r, row))
		n->r->dropped++;
	return true;
}

/* What the pages gave is dropped. Nodes of the tree may stay: the same rows make the same nodes. */
static void on_restart(void *context)
{
	struct numbers *n = context;
	struct reading *r = n->r;

	r->dropped = n->dropped;
	r->rows_left = n->rows_left;
	if (n->table == TABLE_SAMPLE || n->table == TABLE_WEIGHT)
		vec_clear(&r->p->samples);
	if (n->table == TABLE_SAMPLE)
		joining_restart(&r->joining);
	if (n->table == TABLE_POINT)
		vec_clear(&r->p->points);
	if (n->table == TABLE_STACK) {
		struct ids *ids = &r->ids[TABLE_STACK];

		map_done(&ids->map);
		*ids = (struct ids){ 0 };
		ids_add(ids, 0, 0); /* the empty stack has no row */
	}
}

/* How far from a block samples may matter: the analysis looks around short ones, 64 periods of the clock at most. */
static uint64_t near_blocks(const struct profile *p)
{
	uint64_t period = 1000000;

	for (size_t i = 0; i < p->events.n; i++)
		if (!strcmp(profile_str(p, p->events.v[i].unit), "ns"))
			period = MAX(period, p->events.v[i].period);
	return MIN(period, UINT32_MAX) * 64;
}

/* Tells the joining where the blocks are. Marks are read after the samples: here only their spans. */
static void keep_blocks(struct reading *r)
{
	VEC(struct joining_span) spans = { 0 };
	uint64_t near = near_blocks(r->p);
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(r->db, "select start_ns, end_ns from mark where kind = 'block'", -1, &s, NULL);

	while (result == SQLITE_OK && spans.n < r->rows_left && sqlite3_step(s) == SQLITE_ROW) {
		struct joining_span x;

		if (get_ns(s, 0, &x.start_ns) && get_ns(s, 1, &x.end_ns) && x.start_ns <= x.end_ns)
			vec_push(&spans, (struct joining_span){ x.start_ns - MIN(x.start_ns, near), x.end_ns + near });
	}
	sqlite3_finalize(s);
	joining_keep(&r->joining, spans.v, spans.n);
	vec_done(&spans);
}

static unsigned count_columns(const struct table *t)
{
	unsigned n = 0;

	while (t->columns[n].kind)
		n++;
	return n;
}

static int read_numbers(struct reading *r, enum capture_table table, int version, struct err *err)
{
	const struct table *t = &capture_tables[table];
	struct numbers n = { r, table, r->dropped, r->rows_left };
	unsigned every = table == TABLE_SAMPLE ? r->every : 0;
	_cleanup_free_ char *columns = columns_select(table, version), *sql = mem_printf("select rowid, %s", columns + strlen("select "));
	_cleanup_free_ char *part = mem_printf("select rowid, * from sample where rowid %% %u = 0", every ?: 1);
	struct tablescan scan = { .table = t->name, .columns = count_columns(t), .sql = every ? part : sql, .row = on_row,
				  .restart = on_restart, .every = every };
	int result;

	/* A table of an older file has fewer columns: no table of that name is read by its pages. */
	for (unsigned i = 0; i < scan.columns; i++)
		if (t->columns[i].since > version)
			scan.table = "";
	if (table == TABLE_SAMPLE) {
		joining_init(&r->joining, r->p, r->most);
		if (r->keep_blocks)
			keep_blocks(r);
	}
	result = tablescan_read(r->db, &scan, &n);
	if (table == TABLE_SAMPLE)
		joining_finish(&r->joining);
	if (result != SQLITE_DONE)
		return capturefile_fail(r->db, err, "cannot read %s", r->path);
	return r->rows_left ? 0 : too_much(r, err);
}

static int read_table(struct reading *r, const char *sql, row_fn *read, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(r->db, sql, -1, &s, NULL);

	while ((result == SQLITE_OK || result == SQLITE_ROW) && r->rows_left && r->text_left) {
		result = sqlite3_step(s);
		if (result == SQLITE_ROW && !read(r, s))
			r->dropped++;
		r->rows_left -= result == SQLITE_ROW;
	}
	sqlite3_finalize(s);
	if (result == SQLITE_DONE)
		return 0;
	if (result == SQLITE_ROW)
		return too_much(r, err);
	return capturefile_fail(r->db, err, "cannot read %s", r->path);
}

static bool has_table(struct reading *r, const char *name)
{
	sqlite3_stmt *s = NULL;
	bool there = sqlite3_prepare_v2(r->db, "select 1 from sqlite_master where type = 'table' and name = ?", -1, &s,
					NULL) == SQLITE_OK &&
		     sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;

	sqlite3_finalize(s);
	return there;
}

static int read_version(struct reading *r, int *ret, struct err *err)
{
	sqlite3_stmt *s = NULL;
	bool there = sqlite3_prepare_v2(r->db, "pragma user_version", -1, &s, NULL) == SQLITE_OK &&
		     sqlite3_step(s) == SQLITE_ROW;

	*ret = there ? MAX(sqlite3_column_int(s, 0), 1) : 0;
	sqlite3_finalize(s);
	return there ? 0 : capturefile_fail(r->db, err, "cannot read %s", r->path);
}

/* Indexes frames for profile_named_frame(), so that a merge or an import joins the same names. */
static void index_named_frames(struct profile *p)
{
	for (size_t i = 0; i < p->frames.n; i++) {
		const struct profile_frame *f = &p->frames.v[i];

		if (!f->address && f->line_count == 1)
			map_put(&p->named_index, map_pair(p->lines.v[f->first_line].function, f->kind), i);
	}
}

static bool has_rows(struct reading *r, const char *table)
{
	_cleanup_free_ char *sql = mem_printf("select 1 from %s limit 1", table);
	sqlite3_stmt *s = NULL;
	bool there = sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;

	sqlite3_finalize(s);
	return there;
}

/* Is this table read? With sums, that of the sums is read in place of the samples. */
static bool is_read(struct reading *r, enum capture_table table, int version)
{
	const struct table *t = &capture_tables[table];

	if (table == (r->sums ? TABLE_SAMPLE : TABLE_WEIGHT))
		return false;
	if (r->brief && (table == TABLE_WAKE || table == TABLE_POINT))
		return false;
	return (!t->derived || table == TABLE_WEIGHT) && version >= t->since && (!t->optional || has_table(r, t->name));
}

uint64_t reading_rows(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int64_t rows = 0;

	if (sqlite3_prepare_v2(db, "select max(rowid) from sample", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
		rows = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return MAX(rows, 0);
}

int reading_all(struct reading *r, struct err *err)
{
	int version, result = read_version(r, &version, err);

	if (r->sums && !result && !(has_table(r, "weight") && has_rows(r, "weight"))) {
		uint64_t rows = reading_rows(r->db);

		r->sums = false;
		r->every = rows > 2 * EVEN_ROWS && version == SCHEMA_VERSION ? rows / EVEN_ROWS : 0;
	}
	r->lines_frame = PROFILE_NONE;
	ids_add(&r->ids[TABLE_STACK], 0, 0); /* the empty stack has no row */
	for (int i = 0; i < TABLES && !result; i++) {
		_cleanup_free_ char *sql = NULL;

		if (!is_read(r, i, version))
			continue;
		sql = columns_select(i, version);
		result = adders[i] ? read_numbers(r, i, version, err) : read_table(r, sql, readers[i], err);
		finish_lines(r);
	}
	index_named_frames(r->p);
	if (r->dropped)
		profile_count(r->p, KEY_CAPTURE_DROPPED, r->dropped);
	if (r->joining.joined)
		profile_count(r->p, KEY_CAPTURE_JOINED, r->joining.joined);
	return result;
}

void reading_init(struct reading *r, sqlite3 *db, const char *path)
{
	uint64_t bytes = capturevfs_bytes(db);

	*r = (struct reading){ .path = path, .db = db, .p = profile_new(), .rows_left = bytes / SMALLEST_ROW + 1,
			       .text_left = bytes + 1 };
}

void reading_done(struct reading *r)
{
	for (int i = 0; i < TABLES; i++)
		map_done(&r->ids[i].map);
	vec_done(&r->lines);
	joining_done(&r->joining);
}

static int read_database(sqlite3 *db, const char *path, size_t most, bool keep_blocks, struct profile **ret, struct err *err)
{
	struct reading r;
	int result;

	reading_init(&r, db, path);
	r.most = most;
	r.keep_blocks = keep_blocks;
	result = reading_all(&r, err);
	reading_done(&r);
	if (result < 0) {
		profile_free(r.p);
		return result;
	}
	*ret = r.p;
	return 0;
}

int capture_read(const char *path, struct profile **ret, struct err *err)
{
	return capture_read_most(path, 0, ret, err);
}

static int read_path(const char *path, size_t most, bool keep_blocks, struct profile **ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	int r = capturefile_open(path, &db, err);

	*ret = NULL;
	return r ?: read_database(db, path, most, keep_blocks, ret, err);
}

int capture_read_most(const char *path, size_t most, struct profile **ret, struct err *err)
{
	return read_path(path, most, false, ret, err);
}

int capture_read_blocks(const char *path, size_t most, struct profile **ret, struct err *err)
{
	return read_path(path, most, true, ret, err);
}

int capture_read_coarse(const char *path, size_t nodes, struct profile **ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct reading r;
	int result = capturefile_open(path, &db, err);

	*ret = NULL;
	if (result)
		return result;
	reading_init(&r, db, path);
	r.most = COARSE_MOST;
	r.sums = r.brief = true;
	result = reading_all(&r, err);
	reading_done(&r);
	if (result) {
		profile_free(r.p);
		return result;
	}
	coarse_make(r.p, nodes);
	*ret = r.p;
	return 0;
}

int capture_read_files(int file, int wal, const char *name, struct profile **ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct capturefile f = { .main = file, .wal = wal, .folder = -1 };
	int r = capturefile_measure(&f, name, err);

	*ret = NULL;
	r = r ?: capturefile_open_files(&f, name, &db, err);
	r = r ?: read_database(db, name, 0, false, ret, err);
	capturefile_done(&f);
	return r;
}
