#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/capturefile.h"
#include "capture/capturenew.h"
#include "capture/capturerows.h"
#include "capture/capturevfs.h"
#include "capture/scan/weights.h"
#include "capture/sum/summing.h"
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
	struct capturenew file;
	struct capturerows rows;
	struct summing summing;
};

static int give_up(struct capture *c, struct err *err)
{
	int r = capturefile_fail(c->file.db, err, "cannot write %s", c->path);

	capturerows_undo(&c->rows);
	return r;
}

int capture_flush(struct capture *c, struct profile *p, struct err *err)
{
	size_t samples = c->rows.saved.samples, wakes = c->rows.saved.wakes, taskwakes = c->rows.saved.taskwakes;

	if (capturerows_put(&c->rows, p))
		return give_up(c, err);
	summing_note(&c->summing, p, samples, wakes, taskwakes);
	return 0;
}

int capture_limit(struct capture *c, uint64_t bytes, uint64_t full_ns, struct err *err)
{
	if (summing_init(&c->summing, c->file.db, bytes, full_ns))
		return capturefile_fail(c->file.db, err, "cannot write %s", c->path);
	return 0;
}

int capture_sum(struct capture *c, struct profile *p, struct err *err)
{
	int r = summing_step(&c->summing, p);

	if (!r)
		return 0;
	r = capturefile_fail(c->file.db, err, "cannot sum old rows of %s", c->path);
	summing_undo(&c->summing);
	return r;
}

void capture_note_summed(const struct capture *c, struct profile *p)
{
	for (size_t i = 0; i < c->summing.slots.n; i++) {
		const struct sumslot *slot = &c->summing.slots.v[i];

		if (!slot->full)
			profile_add_summed(p, &(struct profile_summed){ slot->start_ns, slot->end_ns });
	}
}

void capture_drop_samples(struct capture *c, struct profile *p)
{
	capturerows_drop(&c->rows, p);
}

/* --- making and closing the file --- */

static int start(struct capture *c, struct err *err)
{
	if (sqlite3_exec(c->file.db, start_writing, NULL, NULL, NULL) == SQLITE_OK &&
	    !capturerows_init(&c->rows, c->file.db))
		return 0;
	if (sqlite3_system_errno(c->file.db) == EEXIST)
		return err_set(err, EEXIST, "another user makes files called %s-wal: record into a folder of your own",
			       c->path);
	return capturefile_fail(c->file.db, err, "cannot write %s", c->path);
}

static void capture_free(struct capture *c)
{
	capturerows_done(&c->rows);
	summing_done(&c->summing);
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
	r = r ?: start(c, err);
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

/* The views can do without the sums, so a disk that is full is no reason to fail. The log is moved into the file first,
 * where its pages can be scanned. */
static void put_weights(struct capture *c)
{
	if (c->file.db && sqlite3_exec(c->file.db, "pragma wal_checkpoint(truncate)", NULL, NULL, NULL) == SQLITE_OK)
		weights_fill(c->file.db, "main", WEIGHTS_SUMS | WEIGHTS_FUNCTIONS | WEIGHTS_EVENTS, WEIGHTS_WORTH);
}

static int finish(struct capture *c, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int r = 0;

	capturerows_finalize(&c->rows);
	summing_finalize(&c->summing);
	put_weights(c);
	/* Moves the log into the file and removes it; after that any tool can open the file anywhere. In
	 * this mode the last page is written without a journal beside the file: we never make one. */
	if (c->file.db && (sqlite3_prepare_v2(c->file.db, "pragma journal_mode = memory", -1, &s, NULL) != SQLITE_OK ||
		      sqlite3_step(s) != SQLITE_ROW ||
		      strcmp((const char *)sqlite3_column_text(s, 0), "memory")))
		r = capturefile_fail(c->file.db, err, "cannot finish %s (keep %s-wal beside it, nothing is lost)",
				     c->path, c->path);
	sqlite3_finalize(s);
	return r;
}

int capture_close(struct capture *c, struct err *err)
{
	int r = c ? finish(c, err) : 0;

	if (c)
		capture_free(c);
	return r;
}

int capture_close_whole(struct capture *c, struct err *err)
{
	int r = finish(c, err);

	if (r)
		capture_discard(c);
	else
		capture_free(c);
	return r;
}

void capture_identity(const struct capture *c, dev_t *ret_device, ino_t *ret_inode)
{
	*ret_device = c->file.file.device;
	*ret_inode = c->file.file.inode;
}

void capture_discard(struct capture *c)
{
	struct stat st;

	if (!c)
		return;
	capturerows_finalize(&c->rows);
	summing_finalize(&c->summing);
	capturevfs_close(c->file.db);
	c->file.db = NULL;
	folder_remove(c->file.file.folder, c->file.file.name, c->file.file.device, c->file.file.inode);
	/* A file that has the name now is another's, and so are its journals. */
	if (fstatat(c->file.file.folder, c->file.file.name, &st, AT_SYMLINK_NOFOLLOW))
		capturenew_remove_journals(&c->file.file);
	capture_free(c);
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
