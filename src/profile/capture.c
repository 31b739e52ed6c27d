#include "profile/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "profile/capturefile.h"
#include "profile/capturetext.h"
#include "profile/profile.h"
#include "profile/schema.h"

/*
 * Write-ahead log, synchronous=normal, one connection that keeps its lock:
 * - A commit is a write to the end of the log, so a recorder that is killed
 *   leaves either all of a flush or nothing of it.
 * - "normal" calls fsync only when the log is moved into the file. "off" would
 *   survive a SIGKILL just as well, but after a power cut the file could hold
 *   half of a move; "full" would wait for the node's busy disk at every flush.
 * - With an exclusive lock there is no -shm file, and so no shared memory that
 *   a network or container file system may lack.
 * The log is moved when it has 2,000 pages: about once in a minute of recording.
 */
static const char start_writing[] = "pragma locking_mode = exclusive;"
				    "pragma journal_mode = wal;"
				    "pragma synchronous = normal;"
				    "pragma wal_autocheckpoint = 2000;"
				    "pragma temp_store = memory;";

/* SQLite's own lock bytes (its file format, "locking"): someone who writes holds a lock among them. */
#define LOCK_BYTES_START 0x40000000
#define LOCK_BYTES_COUNT 512

enum statement {
	PUT_META,
	PUT_EVENT,
	PUT_PROCESS,
	PUT_THREAD,
	PUT_MODULE,
	PUT_MAPPING,
	PUT_FUNCTION,
	PUT_FRAME,
	CLEAR_LINES,
	PUT_LINE,
	PUT_STACK,
	PUT_SAMPLE,
	PUT_COUNTER,
	COMMIT,
	STATEMENTS,
};

static const char *const statement_sql[STATEMENTS] = {
	[PUT_META] = "insert or replace into meta values (?,?)",
	[PUT_EVENT] = "insert or replace into event values (?,?,?,?,?)",
	[PUT_PROCESS] = "insert or replace into process values (?,?,?,?,?,?,?,?)",
	[PUT_THREAD] = "insert or replace into thread values (?,?,?,?,?,?,?)",
	[PUT_MODULE] = "insert or replace into module values (?,?,?,?,?)",
	[PUT_MAPPING] = "insert into mapping values (?,?,?,?,?,?)",
	[PUT_FUNCTION] = "insert or replace into function values (?,?,?,?,?)",
	[PUT_FRAME] = "insert or replace into frame values (?,?,?,?)",
	[CLEAR_LINES] = "delete from frame_line where frame = ?",
	[PUT_LINE] = "insert or replace into frame_line values (?,?,?,?,?)",
	[PUT_STACK] = "insert or replace into stack values (?,?,?)",
	[PUT_SAMPLE] = "insert into sample values (?,?,?,?,?)",
	[PUT_COUNTER] = "insert or replace into counter values (?,?)",
	[COMMIT] = "commit",
};

/* How much of each append-only table is in the file. */
struct saved {
	size_t events, mappings, functions, frames, lines, stacks, samples;
};

/* What may change after it was written: a copy of what the file says. */
struct facts {
	uint32_t target, host, kernel;
	uint64_t start_wall_ns, duration_ns;
	bool finished;
};

struct capture {
	char *path;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	bool begun;
	struct saved saved;
	struct facts facts;
	bool facts_saved;
	VEC(uint64_t) periods; /* of the events, as in the file: a sample without a value has this one */
	VEC(struct profile_process) processes;
	VEC(struct profile_thread) threads;
	VEC(struct profile_module) modules;
	VEC(struct profile_counter) counters;
};

static void bind_int(sqlite3_stmt *s, int column, uint64_t value)
{
	sqlite3_bind_int64(s, column, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* All 64 bits: a kernel address reads as a negative number. */
static void bind_address(sqlite3_stmt *s, int column, uint64_t value)
{
	sqlite3_bind_int64(s, column, (int64_t)value);
}

static void bind_id(sqlite3_stmt *s, int column, uint32_t id)
{
	if (id == PROFILE_NONE)
		sqlite3_bind_null(s, column);
	else
		sqlite3_bind_int64(s, column, id);
}

static void bind_string(sqlite3_stmt *s, int column, const struct profile *p, uint32_t id)
{
	if (!id)
		sqlite3_bind_null(s, column);
	else
		sqlite3_bind_text(s, column, profile_str(p, id), -1, SQLITE_STATIC);
}

/* The statement to bind to; a flush that has nothing to write never comes here and so costs nothing. */
static sqlite3_stmt *begin(struct capture *c, enum statement which)
{
	if (!c->begun)
		c->begun = sqlite3_exec(c->db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK;
	return c->statements[which];
}

/* A statement that failed is not reset before give_up(): that would lose the system's errno. */
static int run(struct capture *c, sqlite3_stmt *s)
{
	errno = 0;
	if (!c->begun || sqlite3_step(s) != SQLITE_DONE)
		return -1;
	sqlite3_reset(s);
	return 0;
}

static int give_up(struct capture *c, struct err *err)
{
	int r = capturefile_fail(c->db, err, "cannot write %s", c->path);

	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_reset(c->statements[i]);
	if (!sqlite3_get_autocommit(c->db))
		sqlite3_exec(c->db, "rollback", NULL, NULL, NULL);
	return r;
}

static int put_meta_int(struct capture *c, const char *key, uint64_t value)
{
	sqlite3_stmt *s = begin(c, PUT_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	bind_int(s, 2, value);
	return run(c, s);
}

static int put_meta_text(struct capture *c, const char *key, const char *value)
{
	sqlite3_stmt *s = begin(c, PUT_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, value, -1, SQLITE_STATIC);
	return run(c, s);
}

static int put_facts(struct capture *c, const struct profile *p, const struct facts *now)
{
	const struct facts *old = &c->facts;
	bool all = !c->facts_saved;
	int r = 0;

	if (all)
		r |= put_meta_text(c, "made_by", "gasflame " GASFLAME_VERSION);
	if (all || now->target != old->target)
		r |= put_meta_text(c, "target", profile_str(p, now->target));
	if (all || now->host != old->host)
		r |= put_meta_text(c, "host", profile_str(p, now->host));
	if (all || now->kernel != old->kernel)
		r |= put_meta_text(c, "kernel", profile_str(p, now->kernel));
	if (all || now->start_wall_ns != old->start_wall_ns)
		r |= put_meta_int(c, "start_wall_ns", now->start_wall_ns);
	if (all || now->duration_ns != old->duration_ns)
		r |= put_meta_int(c, "duration_ns", now->duration_ns);
	if (all || now->finished != old->finished)
		r |= put_meta_int(c, "finished", now->finished);
	return r;
}

static int put_events(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = c->saved.events; i < p->events.n && !r; i++) {
		const struct profile_event *e = &p->events.v[i];
		sqlite3_stmt *s = begin(c, PUT_EVENT);

		bind_int(s, 1, i);
		bind_string(s, 2, p, e->name);
		bind_string(s, 3, p, e->unit);
		bind_string(s, 4, p, e->describe);
		bind_int(s, 5, e->period);
		r = run(c, s);
	}
	return r;
}

static int put_processes(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->processes.n && !r; i++) {
		const struct profile_process *x = &p->processes.v[i];
		sqlite3_stmt *s;

		if (i < c->processes.n && !memcmp(x, &c->processes.v[i], sizeof(*x)))
			continue;
		s = begin(c, PUT_PROCESS);
		bind_int(s, 1, i);
		bind_int(s, 2, x->pid);
		bind_int(s, 3, x->parent_pid);
		bind_string(s, 4, p, x->name);
		bind_string(s, 5, p, x->exe);
		bind_string(s, 6, p, x->command);
		bind_int(s, 7, x->start_ns);
		bind_int(s, 8, x->end_ns);
		r = run(c, s);
	}
	return r;
}

static int put_threads(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->threads.n && !r; i++) {
		const struct profile_thread *x = &p->threads.v[i];
		sqlite3_stmt *s;

		if (i < c->threads.n && !memcmp(x, &c->threads.v[i], sizeof(*x)))
			continue;
		s = begin(c, PUT_THREAD);
		bind_int(s, 1, i);
		bind_id(s, 2, x->process);
		bind_int(s, 3, x->tid);
		bind_string(s, 4, p, x->name);
		bind_int(s, 5, x->start_ns);
		bind_int(s, 6, x->end_ns);
		bind_int(s, 7, x->cpu_ns);
		r = run(c, s);
	}
	return r;
}

static void bind_module(sqlite3_stmt *s, const struct profile *p, uint32_t id)
{
	const struct profile_module *m = &p->modules.v[id];
	char hex[2 * sizeof(m->build_id) + 1];

	bind_int(s, 1, id);
	bind_string(s, 2, p, m->path);
	sqlite3_bind_text(s, 3, capturetext_kind(m->kind), -1, SQLITE_STATIC);
	bind_id(s, 4, m->process);
	capturetext_hex(hex, m->build_id, MIN(m->build_id_size, sizeof(m->build_id)));
	if (*hex)
		sqlite3_bind_text(s, 5, hex, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(s, 5);
}

static int put_modules(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->modules.n && !r; i++) {
		const struct profile_module *x = &p->modules.v[i];
		sqlite3_stmt *s;

		if (i < c->modules.n && !memcmp(x, &c->modules.v[i], sizeof(*x)))
			continue;
		s = begin(c, PUT_MODULE);
		bind_module(s, p, i);
		r = run(c, s);
	}
	return r;
}

static int put_mappings(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = c->saved.mappings; i < p->mappings.n && !r; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		sqlite3_stmt *s = begin(c, PUT_MAPPING);

		bind_id(s, 1, m->process);
		bind_id(s, 2, m->module);
		bind_address(s, 3, m->start);
		bind_address(s, 4, m->end);
		bind_address(s, 5, m->bias);
		bind_int(s, 6, m->time_ns);
		r = run(c, s);
	}
	return r;
}

static int put_functions(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = c->saved.functions; i < p->functions.n && !r; i++) {
		const struct profile_function *f = &p->functions.v[i];
		sqlite3_stmt *s = begin(c, PUT_FUNCTION);

		bind_int(s, 1, i);
		bind_string(s, 2, p, f->name);
		bind_string(s, 3, p, f->linkage == f->name ? 0 : f->linkage);
		bind_string(s, 4, p, f->file);
		bind_id(s, 5, f->module);
		r = run(c, s);
	}
	return r;
}

/* Address 0 stands for "only a name" in the model; NULL says so better. */
static int put_frames(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = c->saved.frames; i < p->frames.n && !r; i++) {
		const struct profile_frame *f = &p->frames.v[i];
		sqlite3_stmt *s = begin(c, PUT_FRAME);

		bind_int(s, 1, i);
		bind_id(s, 2, f->module);
		bind_int(s, 3, f->kind);
		if (f->address)
			bind_address(s, 4, f->address);
		else
			sqlite3_bind_null(s, 4);
		r = run(c, s);
	}
	return r;
}

static int put_frame_lines(struct capture *c, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];
	int r = 0;

	if (frame < c->saved.frames) {
		sqlite3_stmt *s = begin(c, CLEAR_LINES);

		bind_int(s, 1, frame);
		r = run(c, s);
	}
	for (uint32_t i = 0; i < f->line_count && !r; i++) {
		const struct profile_line *l = &p->lines.v[f->first_line + i];
		sqlite3_stmt *s = begin(c, PUT_LINE);

		bind_int(s, 1, frame);
		bind_int(s, 2, i);
		bind_id(s, 3, l->function);
		bind_int(s, 4, l->line);
		bind_int(s, 5, l->inlined);
		r = run(c, s);
	}
	return r;
}

/* Lines only ever come at the end of their table: a frame whose lines begin there is new or was named. */
static int put_lines(struct capture *c, const struct profile *p)
{
	int r = 0;

	if (c->saved.lines == p->lines.n)
		return 0;
	for (size_t i = 0; i < p->frames.n && !r; i++)
		if (p->frames.v[i].line_count && p->frames.v[i].first_line >= c->saved.lines)
			r = put_frame_lines(c, p, i);
	return r;
}

/* Node 0, the empty stack, has no row. */
static int put_stacks(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = MAX(c->saved.stacks, (size_t)1); i < p->stacks.n && !r; i++) {
		sqlite3_stmt *s = begin(c, PUT_STACK);

		bind_int(s, 1, i);
		bind_int(s, 2, p->stacks.v[i].parent);
		bind_id(s, 3, p->stacks.v[i].frame);
		r = run(c, s);
	}
	return r;
}

static int put_samples(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = c->saved.samples; i < p->samples.n && !r; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		sqlite3_stmt *s = begin(c, PUT_SAMPLE);
		uint64_t period = x->event < c->periods.n ? c->periods.v[x->event] : 0;

		bind_id(s, 1, x->event);
		bind_id(s, 2, x->thread);
		bind_int(s, 3, x->time_ns);
		bind_int(s, 4, x->stack);
		if (x->value == period)
			sqlite3_bind_null(s, 5);
		else
			bind_int(s, 5, x->value);
		r = run(c, s);
	}
	return r;
}

static int put_counters(struct capture *c, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->counters.n && !r; i++) {
		const struct profile_counter *x = &p->counters.v[i];
		sqlite3_stmt *s;

		if (i < c->counters.n && x->value == c->counters.v[i].value)
			continue;
		s = begin(c, PUT_COUNTER);
		sqlite3_bind_text(s, 1, profile_str(p, x->name), -1, SQLITE_STATIC);
		bind_int(s, 2, x->value);
		r = run(c, s);
	}
	return r;
}

#define COPY_TABLE(to, from)                                                                            \
	do {                                                                                            \
		(to)->n = 0;                                                                            \
		vec_reserve(to, (from)->n);                                                             \
		if ((from)->n)                                                                          \
			memcpy((to)->v, (from)->v, (from)->n * sizeof(*(to)->v));                       \
		(to)->n = (from)->n;                                                                    \
	} while (0)

/* Only after the commit: a flush that failed is tried again from where the file stands. */
static void remember(struct capture *c, const struct profile *p, const struct facts *facts)
{
	c->saved = (struct saved){ .events = p->events.n, .mappings = p->mappings.n,
				   .functions = p->functions.n, .frames = p->frames.n, .lines = p->lines.n,
				   .stacks = p->stacks.n, .samples = p->samples.n };
	c->facts = *facts;
	c->facts_saved = true;
	COPY_TABLE(&c->processes, &p->processes);
	COPY_TABLE(&c->threads, &p->threads);
	COPY_TABLE(&c->modules, &p->modules);
	COPY_TABLE(&c->counters, &p->counters);
}

int capture_flush(struct capture *c, struct profile *p, struct err *err)
{
	struct facts facts = { .target = p->target, .host = p->host, .kernel = p->kernel,
			       .start_wall_ns = p->start_wall_ns, .duration_ns = p->duration_ns,
			       .finished = p->finished };
	int r = 0;

	c->begun = false;
	for (size_t i = c->periods.n; i < p->events.n; i++)
		vec_push(&c->periods, p->events.v[i].period);
	r = r ?: put_facts(c, p, &facts);
	r = r ?: put_events(c, p);
	r = r ?: put_processes(c, p);
	r = r ?: put_threads(c, p);
	r = r ?: put_modules(c, p);
	r = r ?: put_mappings(c, p);
	r = r ?: put_functions(c, p);
	r = r ?: put_frames(c, p);
	r = r ?: put_lines(c, p);
	r = r ?: put_stacks(c, p);
	r = r ?: put_samples(c, p);
	r = r ?: put_counters(c, p);
	if (!r && c->begun)
		r = run(c, c->statements[COMMIT]);
	if (r) {
		c->periods.n = c->saved.events;
		return give_up(c, err);
	}
	remember(c, p, &facts);
	return 0;
}

void capture_drop_samples(struct capture *c, struct profile *p)
{
	size_t n = MIN(c->saved.samples, p->samples.n);

	if (!n)
		return;
	memmove(p->samples.v, p->samples.v + n, (p->samples.n - n) * sizeof(*p->samples.v));
	p->samples.n -= n;
	c->saved.samples = 0;
}

/* --- making and closing the file --- */

/* What is there may go if it is a capture, or empty, and nobody is writing to it. */
static int check_replaceable(const char *path, struct err *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTES_START,
			      .l_len = LOCK_BYTES_COUNT };
	int r = capturefile_check(path, err);
	_cleanup_fd_ int fd = -1;

	if (r == -ENOENT || r == -ENODATA)
		return 0;
	if (r == -EBADMSG)
		return err_set(err, EEXIST, "%s exists and is not a gasflame capture: it is left alone, "
					    "name another file with -o", path);
	if (r < 0 && r != -EPROTO)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK)
		return err_set(err, EBUSY, "%s is being written by process %d: name another file with -o", path,
			       (int)lock.l_pid);
	return 0;
}

/* The tables, in a file that has another name until it is whole. */
static int make_tables(const char *path, struct err *err)
{
	char *pragmas = sqlite3_mprintf("pragma journal_mode = off; pragma application_id = %d;"
					"pragma user_version = %d; begin;",
					SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	sqlite3 *db = NULL;
	int r = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, schema_tables, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, schema_views, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, "commit", NULL, NULL, NULL) != SQLITE_OK)
		r = capturefile_fail(db, err, "cannot make the tables of a new capture");
	sqlite3_free(pragmas);
	sqlite3_close(db);
	return r;
}

/* The journal of an old capture must not be taken for the new one's. */
static void remove_journals(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-journal", "-shm" };

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		_cleanup_free_ char *name = mem_printf("%s%s", path, suffixes[i]);

		unlink(name);
	}
}

static int make_file(const char *path, struct err *err)
{
	_cleanup_free_ char *name = mem_printf("%s.XXXXXX", path), *real = NULL;
	_cleanup_fd_ int fd = mkostemp(name, O_CLOEXEC);
	mode_t mask = umask(0);
	int r = 0;

	umask(mask);
	if (fd < 0)
		return err_errno(err, errno, "cannot make %s", path);
	real = realpath(name, NULL); /* so that SQLite takes no name for an URI or for memory */
	if (!real || fchmod(fd, 0644 & ~mask) < 0)
		r = err_errno(err, errno, "cannot make %s", path);
	fd_close(&fd);
	r = r ?: make_tables(real, err);
	if (!r) {
		remove_journals(path);
		if (rename(name, path) < 0)
			r = err_errno(err, errno, "cannot make %s", path);
	}
	if (r)
		unlink(name);
	return r;
}

static int start(struct capture *c, struct err *err)
{
	_cleanup_free_ char *real = realpath(c->path, NULL);

	if (!real)
		return err_errno(err, errno, "cannot open %s", c->path);
	if (sqlite3_open_v2(real, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_exec(c->db, start_writing, NULL, NULL, NULL) != SQLITE_OK)
		return capturefile_fail(c->db, err, "cannot write %s", c->path);
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(c->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &c->statements[i], NULL) != SQLITE_OK)
			return capturefile_fail(c->db, err, "cannot write %s", c->path);
	return 0;
}

static void capture_free(struct capture *c)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(c->statements[i]);
	sqlite3_close(c->db);
	free(c->path);
	vec_done(&c->periods);
	vec_done(&c->processes);
	vec_done(&c->threads);
	vec_done(&c->modules);
	vec_done(&c->counters);
	free(c);
}

int capture_create(const char *path, struct capture **ret, struct err *err)
{
	struct capture *c;
	int r = check_replaceable(path, err);

	*ret = NULL;
	r = r ?: make_file(path, err);
	if (r < 0)
		return r;
	c = mem_alloc(sizeof(*c));
	c->path = mem_strdup(path);
	r = start(c, err);
	if (r < 0) {
		capture_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int capture_close(struct capture *c, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int r = 0;

	if (!c)
		return 0;
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(c->statements[i]);
		c->statements[i] = NULL;
	}
	/* Moves the log into the file and removes it; after that any tool can open the file anywhere. */
	if (c->db && (sqlite3_prepare_v2(c->db, "pragma journal_mode = delete", -1, &s, NULL) != SQLITE_OK ||
		      sqlite3_step(s) != SQLITE_ROW ||
		      strcmp((const char *)sqlite3_column_text(s, 0), "delete")))
		r = capturefile_fail(c->db, err, "cannot finish %s (keep %s-wal beside it, nothing is lost)",
				     c->path, c->path);
	sqlite3_finalize(s);
	capture_free(c);
	return r;
}

/* --- symbols that were found later --- */

static bool same_frame(sqlite3_stmt *s, const struct profile *p, size_t id)
{
	return id < p->frames.n && sqlite3_column_int64(s, 0) == (int64_t)id &&
	       sqlite3_column_int64(s, 1) == (int64_t)p->frames.v[id].kind &&
	       (uint64_t)sqlite3_column_int64(s, 2) == p->frames.v[id].address;
}

/* The ids must mean the same in both: a profile that was read from this file, and only named since. */
static int check_same(struct capture *c, const struct profile *p, struct err *err)
{
	sqlite3_stmt *s = NULL;
	bool same = true;
	size_t n = 0;
	int result = sqlite3_prepare_v2(c->db, "select id, kind, address from frame order by id", -1, &s, NULL);

	if (result == SQLITE_OK)
		while (same && (result = sqlite3_step(s)) == SQLITE_ROW)
			same = same_frame(s, p, n++);
	sqlite3_finalize(s);
	if (same && result != SQLITE_DONE)
		return capturefile_fail(c->db, err, "cannot read %s", c->path);
	if (!same || n != p->frames.n)
		return err_set(err, EINVAL, "%s holds another recording than the one that has names now", c->path);
	return 0;
}

static int replace_symbols(struct capture *c, const struct profile *p, struct err *err)
{
	int r = 0;

	if (sqlite3_exec(c->db, "begin immediate; delete from frame_line; delete from function", NULL, NULL,
			 NULL) != SQLITE_OK)
		return capturefile_fail(c->db, err, "cannot write %s", c->path);
	c->begun = true;
	r = r ?: put_modules(c, p);
	r = r ?: put_functions(c, p);
	r = r ?: put_lines(c, p);
	r = r ?: run(c, c->statements[COMMIT]);
	return r ? give_up(c, err) : 0;
}

int capture_save_symbols(const char *path, const struct profile *p, struct err *err)
{
	struct capture *c;
	int r = capturefile_check(path, err), closed;

	if (r < 0)
		return r;
	c = mem_alloc(sizeof(*c));
	c->path = mem_strdup(path);
	r = start(c, err);
	r = r ?: check_same(c, p, err);
	r = r ?: replace_symbols(c, p, err);
	closed = capture_close(c, r ? NULL : err);
	return r ?: closed;
}
