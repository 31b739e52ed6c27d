#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/capturecopy.h"
#include "capture/capturefile.h"
#include "capture/capturenew.h"
#include "capture/capturerows.h"
#include "capture/capturevfs.h"
#include "profile/profile.h"

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
				    "pragma journal_mode = memory;" /* so that no file is made for the change to: */
				    "pragma journal_mode = wal;"
				    "pragma synchronous = normal;"
				    "pragma wal_autocheckpoint = 2000;"
				    "pragma temp_store = memory;"
				    "select 1 from sqlite_schema limit 1"; /* makes the log now, when one may still fail */

struct capture {
	char *path;
	struct capturenew file; /* of a capture that we made */
	sqlite3 *db;            /* its connection, too */
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

static int start(struct capture *c, bool only_symbols, struct err *err)
{
	if (sqlite3_exec(c->db, start_writing, NULL, NULL, NULL) == SQLITE_OK &&
	    !capturerows_init(&c->rows, c->db, only_symbols))
		return 0;
	if (sqlite3_system_errno(c->db) == EEXIST)
		return err_set(err, EEXIST, "another user makes files called %s-wal: record into a folder of your own",
			       c->path);
	return capturefile_fail(c->db, err, "cannot write %s", c->path);
}

static void capture_free(struct capture *c)
{
	capturerows_done(&c->rows);
	if (c->db != c->file.db)
		capturevfs_close(c->db);
	capturenew_close(&c->file);
	free(c->path);
	free(c);
}

int capture_create_with(const char *path, unsigned how, const struct owner *owner, struct capture **ret,
			struct err *err)
{
	struct capture *c = mem_alloc(sizeof(*c));
	int r = capturenew_open(&c->file, path, how, owner, err);

	*ret = NULL;
	c->path = mem_strdup(path);
	c->db = c->file.db;
	r = r ?: start(c, false, err);
	if (r < 0) {
		capture_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int capture_create(const char *path, struct capture **ret, struct err *err)
{
	return capture_create_with(path, 0, NULL, ret, err);
}

int capture_close(struct capture *c, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int r = 0;

	if (!c)
		return 0;
	capturerows_finalize(&c->rows);
	/* Moves the log into the file and removes it; after that any tool can open the file anywhere. In
	 * this mode the last page is written without a journal beside the file: we never make one. */
	if (c->db && (sqlite3_prepare_v2(c->db, "pragma journal_mode = memory", -1, &s, NULL) != SQLITE_OK ||
		      sqlite3_step(s) != SQLITE_ROW ||
		      strcmp((const char *)sqlite3_column_text(s, 0), "memory")))
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
		return err_set(err, EINVAL, "%s holds another recording than the symbolized one", c->path);
	return 0;
}

/* Reads the rows to be replaced once, within the budget: clearing an endless table would not end either. */
static int check_size(struct capture *c, struct err *err)
{
	if (sqlite3_exec(c->db, "select total(depth) from frame_line; select total(module) from function", NULL, NULL, NULL) !=
	    SQLITE_OK)
		return capturefile_fail(c->db, err, "cannot read %s", c->path);
	capturevfs_set_budget(c->db, 0);
	return 0;
}

/* Writes to the files of f, and takes them over. */
static int open_files(struct capture *c, struct capturefile *f, struct err *err)
{
	struct capturevfs_files files = { .main = f->main, .wal = f->wal, .folder = f->folder, .wal_name = f->wal_name,
					  .write = true, .bytes = f->bytes };
	int r;

	f->main = f->wal = f->folder = -1;
	r = capturevfs_open(&files, &c->db);
	if (r == -EBUSY)
		return err_set(err, EBUSY, "cannot write %s: another program is writing to it", c->path);
	if (r)
		return capturefile_fail(c->db, err, "cannot write %s", c->path);
	return capturefile_guard(c->db, c->path, err);
}

int capture_save_symbols(const char *path, const struct profile *p, struct err *err)
{
	struct capturefile f;
	struct capture *c;
	int r = capturefile_find(path, O_RDWR, &f, err), closed;

	if (r < 0)
		return r;
	c = mem_alloc(sizeof(*c));
	c->file.file.fd = c->file.file.folder = -1;
	c->path = mem_strdup(path);
	r = capturecopy_measure(&f, path, err);
	r = r ?: open_files(c, &f, err);
	capturefile_done(&f);
	r = r ?: start(c, true, err);
	r = r ?: check_same(c, p, err);
	r = r ?: check_size(c, err);
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
