#include "capture/capturenew.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "capture/capturefile.h"
#include "capture/capturevfs.h"
#include "capture/columns.h"
#include "capture/schema.h"

enum { LOCK_TRIES = 200, LOCK_PAUSE_US = 10000 };

/* Makes the tables while the file has a temporary name. A process that sees the final name sees the
 * recorder's lock: the connection has it from here on. */
static int make_tables(struct capturenew *n, struct err *err)
{
	_cleanup_free_ char *log = mem_printf("%s-wal", n->file.name), *tables = columns_create(SCHEMA_VERSION);
	char *pragmas = sqlite3_mprintf("pragma journal_mode = off; pragma application_id = %d;"
					"pragma user_version = %d; begin;",
					SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	struct capturevfs_files files = { .main = fcntl(n->file.fd, F_DUPFD_CLOEXEC, 3), .wal = -1,
					  .folder = fcntl(n->file.folder, F_DUPFD_CLOEXEC, 3), .wal_name = log,
					  .write = true };
	int r = 0;

	if (files.main < 0 || files.folder < 0) {
		r = err_errno(err, errno, "cannot make a new capture");
		fd_close(&files.main);
		fd_close(&files.folder);
	} else if (capturevfs_open(&files, &n->db) || sqlite3_exec(n->db, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
		   sqlite3_exec(n->db, tables, NULL, NULL, NULL) != SQLITE_OK ||
		   sqlite3_exec(n->db, schema_views, NULL, NULL, NULL) != SQLITE_OK ||
		   sqlite3_exec(n->db, "commit", NULL, NULL, NULL) != SQLITE_OK) {
		r = capturefile_fail(n->db, err, "cannot make the tables of a new capture");
	}
	sqlite3_free(pragmas);
	return r;
}

/* --- the name --- */

/* An older capture that may go. */
struct older {
	dev_t device;
	ino_t inode; /* 0: there is none */
};

bool capturenew_is_written(int folder, const char *name)
{
	_cleanup_fd_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 && capturevfs_is_locked(fd);
}

static int fail_made(const struct capturenew *n, struct err *err)
{
	return err_set(err, EBUSY, "%s has just been made by another process: name another file with -o", n->file.path);
}

/* An existing file may be replaced if it is a capture, or empty, and no recorder writes to it. */
static int find_older(const struct capturenew *n, struct older *ret, struct err *err)
{
	struct stat st;
	int r;

	*ret = (struct older){ 0 };
	if (fstatat(n->file.folder, n->file.name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	r = capturefile_check(n->file.path, err);
	if (r == -ENOENT)
		return 0;
	if (r == -EBADMSG)
		return err_set(err, EEXIST, "%s exists and is not a gasflame capture: it is left alone, "
					    "name another file with -o", n->file.path);
	if (r < 0 && r != -EPROTO && r != -ENODATA)
		return r;
	if (capturenew_is_written(n->file.folder, n->file.name))
		return err_set(err, EBUSY, "%s is being written by another process: name another file with -o",
			       n->file.path);
	*ret = (struct older){ st.st_dev, st.st_ino };
	return 0;
}

/* Moves the old file to another name, where it can be checked: between the check and now another user may
 * have replaced it by his own. Then it gets its name back. */
static int take_away(const struct capturenew *n, const struct older *o, char *away, size_t size, struct err *err)
{
	int folder = n->file.folder, r;
	struct stat st;
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_errno(err, EIO, "there is no random number");
	snprintf(away, size, ".gasflame-%016llx", (unsigned long long)random);
	r = newfile_rename_once(folder, n->file.name, away);
	if (r == -ENOENT)
		return 0;
	if (r)
		return err_errno(err, -r, "cannot replace %s", n->file.path);
	if (!fstatat(folder, away, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == o->device && st.st_ino == o->inode &&
	    !capturenew_is_written(folder, away))
		return 0;
	newfile_rename_once(folder, away, n->file.name);
	return fail_made(n, err);
}

const char *const capturenew_journals[CAPTURENEW_JOURNALS] = { "-wal", "-shm", "-journal" };

void capturenew_remove_journals(const struct newfile *f)
{
	for (size_t i = 0; i < CAPTURENEW_JOURNALS; i++) {
		_cleanup_free_ char *name = mem_printf("%s%s", f->name, capturenew_journals[i]);

		unlinkat(f->folder, name, 0);
	}
}

/* Locks the folder, so that one recorder at a time checks the name and takes it. Returns a descriptor to
 * close; -1 where folders have no locks, or another process keeps this one: then a race between the two is
 * possible. */
static int lock_folder(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int try = 0; fd >= 0 && try < LOCK_TRIES; try++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		usleep(LOCK_PAUSE_US);
	}
	fd_close(&fd);
	return -1;
}

static int put_name(struct capturenew *n, bool once, struct err *err)
{
	_cleanup_fd_ int lock __attribute__((unused)) = lock_folder(n->file.folder);
	struct older older = { 0 };
	char away[32] = "";
	int r = once ? 0 : find_older(n, &older, err);

	if (!r && older.inode)
		r = take_away(n, &older, away, sizeof(away), err);
	if (r)
		return r;
	n->file.once = true;
	r = newfile_show(&n->file, err);
	if (*away)
		folder_remove(n->file.folder, away, older.device, older.inode);
	if (!r)
		capturenew_remove_journals(&n->file);
	return r == -EEXIST && !once ? fail_made(n, err) : r;
}

int capturenew_open(struct capturenew *n, const char *path, unsigned how, const struct owner *owner, struct err *err)
{
	bool once = how & CAPTURE_ONCE;
	unsigned file = (once ? NEWFILE_ONCE : 0) | (how & CAPTURE_FOLDERS ? NEWFILE_FOLDERS : 0);
	int r;

	*n = (struct capturenew){ 0 };
	/* For its owner alone: command lines and kernel addresses are private. */
	r = newfile_open(&n->file, path, file, 0600, owner, err);
	n->owner = n->file.owner;
	n->file.owner.given = false;
	if (r)
		return r;
	r = make_tables(n, err);
	return r ?: put_name(n, once, err);
}

/* The file stays ours where it cannot be given away. */
static void give(const struct capturenew *n)
{
	if (n->owner.given && n->file.fd >= 0 && !n->file.temporary[0] &&
	    fchown(n->file.fd, n->owner.uid, n->owner.gid))
		return;
}

void capturenew_close(struct capturenew *n)
{
	capturevfs_close(n->db);
	give(n);
	newfile_done(&n->file);
	*n = (struct capturenew){ .file = { .fd = -1, .folder = -1 } };
}
