#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "capture/capturefile.h"
#include "capture/capturevfs.h"
#include "capture/columns.h"
#include "capture/scan/coarse.h"
#include "capture/scan/joining.h"
#include "capture/scan/reading.h"
#include "capture/scan/rowreaders.h"
#include "capture/scan/tablescan.h"
#include "capture/schema.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Samples that become a coarse profile, where there are no sums. */
#define COARSE_MOST 1000000
/* An even part of more rows has so many. */
#define EVEN_ROWS 1000000
/* A row takes at least 4 bytes in its page, and 2 that point to it; no two rows share them. */
#define SMALLEST_ROW 6

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

		if (rowreaders_get_ns(s, 0, &x.start_ns) && rowreaders_get_ns(s, 1, &x.end_ns) && x.start_ns <= x.end_ns)
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
		else if (r->keep_span)
			joining_keep(&r->joining, &(struct joining_span){ r->keep_span->start_ns, r->keep_span->end_ns }, 1);
	}
	result = tablescan_read(r->db, &scan, &n);
	if (table == TABLE_SAMPLE)
		joining_finish(&r->joining);
	if (result != SQLITE_DONE)
		return capturefile_fail(r->db, err, "cannot read %s", r->path);
	return r->rows_left ? 0 : too_much(r, err);
}

static int read_table(struct reading *r, const char *sql, rowreaders_fn *read, struct err *err)
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
	if (r->brief && (table == TABLE_WAKE || table == TABLE_TASK_WAKE || table == TABLE_POINT))
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
		result = adders[i] ? read_numbers(r, i, version, err) : read_table(r, sql, rowreaders[i], err);
		rowreaders_finish(r);
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

static int read_database(sqlite3 *db, const char *path, size_t most, bool keep_blocks, const struct capture_span *keep_span,
			 struct profile **ret, struct err *err)
{
	struct reading r;
	int result;

	reading_init(&r, db, path);
	r.most = most;
	r.keep_blocks = keep_blocks;
	r.keep_span = keep_span;
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

static int read_path(const char *path, size_t most, bool keep_blocks, const struct capture_span *keep_span, struct profile **ret,
		     struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	int r = capturefile_open(path, &db, err);

	*ret = NULL;
	return r ?: read_database(db, path, most, keep_blocks, keep_span, ret, err);
}

int capture_read_most(const char *path, size_t most, struct profile **ret, struct err *err)
{
	return read_path(path, most, false, NULL, ret, err);
}

int capture_read_blocks(const char *path, size_t most, struct profile **ret, struct err *err)
{
	return read_path(path, most, true, NULL, ret, err);
}

int capture_read_span(const char *path, size_t most, const struct capture_span *span, struct profile **ret, struct err *err)
{
	return read_path(path, most, false, span, ret, err);
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
	r = r ?: read_database(db, name, 0, false, NULL, ret, err);
	capturefile_done(&f);
	return r;
}
