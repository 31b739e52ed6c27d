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
#include "profile/capturerows.h"
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

struct capture {
	char *path;
	sqlite3 *db;
	struct capturerows rows;
};

static int give_up(struct capture *c, struct err *err)
{
	int r = capturefile_fail(c->db, err, "cannot write %s", c->path);

	capturerows_undo(&c->rows);
	return r;
}

int capture_flush(struct capture *c, struct profile *p, struct err *err)
{
	return capturerows_put(&c->rows, p) ? give_up(c, err) : 0;
}

void capture_drop_samples(struct capture *c, struct profile *p)
{
	capturerows_drop(&c->rows, p);
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

static int start(struct capture *c, bool only_symbols, struct err *err)
{
	_cleanup_free_ char *real = realpath(c->path, NULL);

	if (!real)
		return err_errno(err, errno, "cannot open %s", c->path);
	if (sqlite3_open_v2(real, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_exec(c->db, start_writing, NULL, NULL, NULL) != SQLITE_OK ||
	    capturerows_init(&c->rows, c->db, only_symbols))
		return capturefile_fail(c->db, err, "cannot write %s", c->path);
	return 0;
}

static void capture_free(struct capture *c)
{
	capturerows_done(&c->rows);
	sqlite3_close(c->db);
	free(c->path);
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
	r = start(c, false, err);
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
	capturerows_finalize(&c->rows);
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

int capture_save_symbols(const char *path, const struct profile *p, struct err *err)
{
	struct capture *c;
	int r = capturefile_check(path, err), closed;

	if (r < 0)
		return r;
	c = mem_alloc(sizeof(*c));
	c->path = mem_strdup(path);
	r = start(c, true, err);
	r = r ?: check_same(c, p, err);
	if (!r && capturerows_put_symbols(&c->rows, p))
		r = give_up(c, err);
	closed = capture_close(c, r ? NULL : err);
	return r ?: closed;
}

int capture_save(const char *path, struct profile *p, struct err *err)
{
	struct capture *c = NULL;
	int r = capture_create(path, &c, err);

	if (!r)
		r = capture_flush(c, p, err);
	if (!r)
		return capture_close(c, err);
	capture_close(c, NULL);
	return r;
}
