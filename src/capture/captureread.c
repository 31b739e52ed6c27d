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
#include "profile/keys.h"
#include "profile/profile.h"

/*
 * Maps ids of the file to ids of the profile. A sound file numbers its rows 0,
 * 1, 2... and needs no map; after a gap, a dropped row or one that was interned
 * into another, the map takes over.
 */
struct ids {
	uint32_t dense; /* ids below this are the same in both */
	bool sparse;
	struct map map;
};

/* A row makes a histogram of half a kilobyte, and no recording has nearly so many. */
#define MOST_HISTOGRAMS 10000
#define MOST_OWNERS 1000
/* A row takes at least 4 bytes in its page, and 2 that point to it; no two rows share them. */
#define SMALLEST_ROW 6

struct reading {
	struct profile *p;
	sqlite3 *db;
	const char *path;
	struct ids events, owners, processes, threads, modules, functions, frames, stacks, series;
	uint64_t dropped; /* rows that made no sense */
	/* The most that a sound file of this size can hold. A file whose pages or texts are shared has
	 * more. */
	uint64_t rows_left, text_left;

	/* The lines of the frame that is being read. */
	VEC(struct profile_line) lines;
	uint32_t lines_frame;
};

/* Reads one row into the profile; false drops it. */
typedef bool row_fn(struct reading *r, sqlite3_stmt *s);

static void ids_add(struct ids *ids, int64_t id, uint32_t index)
{
	if (!ids->sparse && id == index && id == ids->dense) {
		ids->dense++;
		return;
	}
	ids->sparse = true;
	*map_put(&ids->map, id, index) = index;
}

static bool ids_get(const struct ids *ids, int64_t id, uint32_t *ret)
{
	uint64_t *index;

	if (id >= 0 && id < ids->dense) {
		*ret = id;
		return true;
	}
	index = ids->sparse ? map_get(&ids->map, id) : NULL;
	if (index)
		*ret = *index;
	return index;
}

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

	if (!get_string(r, s, 1, &e.name) || !get_string(r, s, 2, &e.unit) ||
	    !get_string(r, s, 3, &e.describe) || !get_ns(s, 4, &e.period))
		return false;
	ids_add(&r->events, sqlite3_column_int64(s, 0), r->p->events.n);
	vec_push(&r->p->events, e);
	return true;
}

static bool read_process(struct reading *r, sqlite3_stmt *s)
{
	struct profile_process x = { 0 };

	if (!get_u32(s, 1, &x.pid) || !get_u32(s, 2, &x.parent_pid) || !get_string(r, s, 3, &x.name) ||
	    !get_string(r, s, 4, &x.exe) || !get_string(r, s, 5, &x.command) ||
	    !get_ns(s, 6, &x.start_ns) || !get_ns(s, 7, &x.end_ns))
		return false;
	ids_add(&r->processes, sqlite3_column_int64(s, 0), profile_add_process(r->p, &x));
	return true;
}

static bool read_owner(struct reading *r, sqlite3_stmt *s)
{
	struct profile_owner o = { 0 };

	if (r->p->owners.n >= MOST_OWNERS)
		return false;
	if (!get_string(r, s, 1, &o.kind) || !get_string(r, s, 2, &o.name) || !get_string(r, s, 3, &o.container) ||
	    !get_string(r, s, 4, &o.engine) || !get_string(r, s, 5, &o.image) || !get_string(r, s, 6, &o.pod) ||
	    !get_string(r, s, 7, &o.cgroup))
		return false;
	ids_add(&r->owners, sqlite3_column_int64(s, 0), profile_owner(r->p, &o));
	return true;
}

static bool read_process_owner(struct reading *r, sqlite3_stmt *s)
{
	uint32_t process, owner, pid = 0;

	if (!get_ref(s, 0, &r->processes, &process) || !get_optional_ref(s, 1, &r->owners, &owner) ||
	    (sqlite3_column_type(s, 2) != SQLITE_NULL && !get_u32(s, 2, &pid)))
		return false;
	r->p->processes.v[process].owner = owner == PROFILE_NONE ? 0 : owner;
	r->p->processes.v[process].inner_pid = pid;
	return true;
}

static bool read_thread(struct reading *r, sqlite3_stmt *s)
{
	struct profile_thread x = { 0 };

	if (!get_ref(s, 1, &r->processes, &x.process) || !get_u32(s, 2, &x.tid) ||
	    !get_string(r, s, 3, &x.name) || !get_ns(s, 4, &x.start_ns) || !get_ns(s, 5, &x.end_ns) ||
	    !get_ns(s, 6, &x.cpu_ns) || !get_ns(s, 7, &x.run_ns) || !get_ns(s, 8, &x.queue_ns) ||
	    !get_ns(s, 9, &x.blocked_ns))
		return false;
	ids_add(&r->threads, sqlite3_column_int64(s, 0), profile_add_thread(r->p, &x));
	return true;
}

static bool read_module(struct reading *r, sqlite3_stmt *s)
{
	const char *kind = get_word(r, s, 2);
	const char *build_id = get_word(r, s, 4);
	struct profile_module m = { 0 };

	if (!get_string(r, s, 1, &m.path) || !kind || !capturetext_parse_kind(kind, &m.kind) ||
	    !get_optional_ref(s, 3, &r->processes, &m.process) ||
	    (build_id && !capturetext_parse_hex(build_id, m.build_id, sizeof(m.build_id), &m.build_id_size)))
		return false;
	ids_add(&r->modules, sqlite3_column_int64(s, 0), profile_add_module(r->p, &m));
	return true;
}

static bool read_mapping(struct reading *r, sqlite3_stmt *s)
{
	struct profile_mapping m = { 0 };

	if (!get_ref(s, 0, &r->processes, &m.process) || !get_ref(s, 1, &r->modules, &m.module) ||
	    !get_address(s, 2, &m.start) || !get_address(s, 3, &m.end) || !get_address(s, 4, &m.bias) ||
	    !get_ns(s, 5, &m.time_ns) || m.end < m.start)
		return false;
	profile_add_mapping(r->p, &m);
	return true;
}

static bool read_function(struct reading *r, sqlite3_stmt *s)
{
	struct profile_function f = { 0 };

	if (!get_string(r, s, 1, &f.name) || !get_string(r, s, 2, &f.linkage) ||
	    !get_string(r, s, 3, &f.file) || !get_optional_ref(s, 4, &r->modules, &f.module))
		return false;
	ids_add(&r->functions, sqlite3_column_int64(s, 0), profile_function(r->p, &f));
	return true;
}

static bool read_frame(struct reading *r, sqlite3_stmt *s)
{
	uint32_t module, id;
	uint64_t kind, address;

	if (!get_optional_ref(s, 1, &r->modules, &module) || !get_int(s, 2, FRAME_NOTE, &kind) ||
	    !get_address(s, 3, &address))
		return false;
	/* Frames that are only a name differ in their lines, which come later. */
	if (address) {
		id = profile_frame(r->p, module, kind, address);
	} else {
		id = r->p->frames.n;
		vec_push(&r->p->frames, (struct profile_frame){ .module = module, .kind = kind });
	}
	ids_add(&r->frames, sqlite3_column_int64(s, 0), id);
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

	if (!get_ref(s, 0, &r->frames, &frame) || !get_ref(s, 1, &r->functions, &l.function) ||
	    !get_u32(s, 2, &l.line) || !get_int(s, 3, 1, &inlined))
		return false;
	if (frame != r->lines_frame)
		finish_lines(r);
	r->lines_frame = frame;
	l.inlined = inlined;
	vec_push(&r->lines, l);
	return true;
}

/* A parent comes before its children, so it has been read: no cycle is possible. */
static bool read_stack(struct reading *r, sqlite3_stmt *s)
{
	uint32_t parent, frame;

	if (!get_ref(s, 1, &r->stacks, &parent) || !get_ref(s, 2, &r->frames, &frame))
		return false;
	ids_add(&r->stacks, sqlite3_column_int64(s, 0), profile_stack(r->p, parent, frame));
	return true;
}

static bool read_sample(struct reading *r, sqlite3_stmt *s)
{
	struct profile_sample x = { 0 };

	if (!get_ref(s, 0, &r->events, &x.event) || !get_ref(s, 1, &r->threads, &x.thread) ||
	    !get_ns(s, 2, &x.time_ns) || !get_ref(s, 3, &r->stacks, &x.stack))
		return false;
	if (sqlite3_column_type(s, 4) == SQLITE_NULL)
		x.value = r->p->events.v[x.event].period;
	else if (!get_ns(s, 4, &x.value))
		return false;
	if (sqlite3_column_type(s, 5) != SQLITE_NULL && !get_u32(s, 5, &x.count))
		return false;
	profile_add_sample(r->p, &x);
	return true;
}

static bool read_wake(struct reading *r, sqlite3_stmt *s)
{
	struct profile_wake x = { 0 };

	if (!get_ref(s, 0, &r->threads, &x.thread) || !get_ns(s, 1, &x.time_ns) ||
	    !get_ref(s, 2, &r->stacks, &x.stack) || !get_ns(s, 3, &x.blocked_ns) ||
	    !get_ns(s, 4, &x.queue_ns) || !get_optional_ref(s, 5, &r->threads, &x.waker) ||
	    !get_string(r, s, 6, &x.waker_name) || !get_ref(s, 7, &r->stacks, &x.waker_stack))
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

	if (!get_ns(s, 0, &x.start_ns) || !get_ns(s, 1, &x.end_ns) || x.end_ns < x.start_ns ||
	    !get_string(r, s, 2, &x.name) || !get_string(r, s, 3, &x.kind) ||
	    !get_optional_ref(s, 4, &r->threads, &x.thread) ||
	    !get_known(s, 5, MARK_NUMBER, &x.known, &x.number) ||
	    !get_known(s, 6, MARK_GAS, &x.known, &x.gas) ||
	    !get_known(s, 7, MARK_TRANSACTIONS, &x.known, &x.transactions))
		return false;
	profile_add_mark(r->p, &x);
	return true;
}

static bool read_series(struct reading *r, sqlite3_stmt *s)
{
	struct profile_series x = { 0 };

	if (!get_string(r, s, 1, &x.name) || !get_string(r, s, 2, &x.unit))
		return false;
	ids_add(&r->series, sqlite3_column_int64(s, 0), r->p->series.n);
	vec_push(&r->p->series, x);
	return true;
}

static bool read_point(struct reading *r, sqlite3_stmt *s)
{
	uint32_t series;
	uint64_t time_ns;

	if (!get_ref(s, 0, &r->series, &series) || !get_ns(s, 1, &time_ns) ||
	    sqlite3_column_type(s, 2) != SQLITE_INTEGER)
		return false;
	profile_add_point(r->p, series, time_ns, sqlite3_column_int64(s, 2));
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

	if (!get_string(r, s, 0, &new.name) || !get_string(r, s, 1, &new.unit) || !get_bucket(s, 2, &i) ||
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
	uint64_t value;
	uint32_t name;

	if (!get_string(r, s, 0, &name) || !get_ns(s, 1, &value))
		return false;
	profile_count_set(r->p, profile_str(r->p, name), value);
	return true;
}

/* In the order that ids need. What an older schema lacks is read as empty. */
static const struct {
	int first, last; /* versions of the schema, last 0 = to this day */
	const char *sql;
	row_fn *read;
	const char *optional; /* a table that came without a new version: files of that version may lack it */
} tables[] = {
	{ 1, 0, "select key, value from meta", read_meta },
	{ 1, 0, "select id, name, unit, description, period from event order by id", read_event },
	{ 1, 0, "select id, pid, parent_pid, name, exe, command, start_ns, end_ns from process order by id",
	  read_process },
	{ 4, 0, "select id, kind, name, container, engine, image, pod, cgroup from owner order by id", read_owner, "owner" },
	{ 4, 0, "select process, owner, inner_pid from process_owner order by process", read_process_owner,
	  "process_owner" },
	{ 1, 1, "select id, process, tid, name, start_ns, end_ns, cpu_ns, 0, 0, 0 from thread order by id",
	  read_thread },
	{ 2, 0, "select id, process, tid, name, start_ns, end_ns, cpu_ns, run_ns, queue_ns, blocked_ns "
		"from thread order by id", read_thread },
	{ 1, 0, "select id, path, kind, process, build_id from module order by id", read_module },
	{ 1, 0, "select process, module, start, \"end\", bias, time_ns from mapping order by rowid",
	  read_mapping },
	{ 1, 0, "select id, name, linkage, file, module from function order by id", read_function },
	{ 1, 0, "select id, module, kind, address from frame order by id", read_frame },
	{ 1, 0, "select frame, function, line, inlined from frame_line order by frame, depth", read_line },
	{ 1, 0, "select id, parent, frame from stack order by id", read_stack },
	{ 1, 1, "select event, thread, time_ns, stack, value, null from sample order by rowid", read_sample },
	{ 2, 0, "select event, thread, time_ns, stack, value, count from sample order by rowid",
	  read_sample },
	{ 2, 0, "select thread, time_ns, stack, blocked_ns, queue_ns, waker, waker_name, waker_stack "
		"from wake order by rowid", read_wake },
	{ 3, 3, "select start_ns, end_ns, name, kind, thread, null, null, null from mark order by rowid",
	  read_mark },
	{ 4, 0, "select start_ns, end_ns, name, kind, thread, number, gas, transactions from mark order by rowid",
	  read_mark },
	{ 2, 0, "select id, name, unit from series order by id", read_series },
	{ 2, 0, "select series, time_ns, value from point order by rowid", read_point },
	{ 2, 0, "select name, unit, low, count from histogram order by name, low", read_histogram },
	{ 1, 0, "select name, value from counter", read_counter },
};

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
		return err_set(err, EBADMSG, "cannot read %s: the file is damaged, or made to waste time: it has more %s than "
					     "its size has room for", r->path, r->rows_left ? "text" : "rows");
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

static int read_all(struct reading *r, struct err *err)
{
	int version, result = read_version(r, &version, err);

	r->lines_frame = PROFILE_NONE;
	ids_add(&r->stacks, 0, 0); /* the empty stack has no row */
	for (size_t i = 0; i < ARRAY_LEN(tables) && !result; i++) {
		if (version < tables[i].first || (tables[i].last && version > tables[i].last))
			continue;
		if (tables[i].optional && !has_table(r, tables[i].optional))
			continue;
		result = read_table(r, tables[i].sql, tables[i].read, err);
		finish_lines(r);
	}
	index_named_frames(r->p);
	if (r->dropped)
		profile_count(r->p, KEY_CAPTURE_DROPPED, r->dropped);
	return result;
}

static int read_database(sqlite3 *db, const char *path, struct profile **ret, struct err *err)
{
	uint64_t bytes = capturevfs_bytes(db);
	struct reading r = { .path = path, .db = db, .p = profile_new(), .rows_left = bytes / SMALLEST_ROW + 1,
			     .text_left = bytes + 1 };
	int result = read_all(&r, err);

	map_done(&r.events.map);
	map_done(&r.owners.map);
	map_done(&r.processes.map);
	map_done(&r.threads.map);
	map_done(&r.modules.map);
	map_done(&r.functions.map);
	map_done(&r.frames.map);
	map_done(&r.stacks.map);
	map_done(&r.series.map);
	vec_done(&r.lines);
	if (result < 0) {
		profile_free(r.p);
		return result;
	}
	*ret = r.p;
	return 0;
}

int capture_read(const char *path, struct profile **ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	int r = capturefile_open(path, &db, err);

	*ret = NULL;
	return r ?: read_database(db, path, ret, err);
}

int capture_read_files(int file, int wal, const char *name, struct profile **ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct capturefile f = { .main = file, .wal = wal, .folder = -1 };
	int r = capturefile_measure(&f, name, err);

	*ret = NULL;
	r = r ?: capturefile_open_files(&f, name, &db, err);
	r = r ?: read_database(db, name, ret, err);
	capturefile_done(&f);
	return r;
}
