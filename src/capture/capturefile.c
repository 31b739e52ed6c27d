#include "capture/capturefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "capture/capturecopy.h"
#include "capture/capturevfs.h"
#include "capture/schema.h"

/* Longest text or blob that is read from a capture: no name is nearly so long. */
#define LONGEST_VALUE (16 << 20)
/* SQLite's steps that a file may cost: some, and more for each byte. Reading a row takes up to 20, and has 6 bytes. */
enum { BUDGET_LEAST = 5000000, BUDGET_PER_BYTE = 20 };

/* SQLite does not keep the system's errno when a commit fails; the C library still has it then. */
static int errno_of(sqlite3 *db, int code)
{
	int last = errno, system = sqlite3_system_errno(db) ?: last;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_IOERR:
		return system ? system : EIO;
	case SQLITE_CANTOPEN:
		return system ? system : EACCES;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return EBADMSG;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return EACCES;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_TOOBIG:
		return EFBIG;
	case SQLITE_INTERRUPT:
		return EINTR;
	default:
		return EINVAL;
	}
}

int capturefile_fail(sqlite3 *db, struct err *err, const char *doing, ...)
{
	int code = errno_of(db, sqlite3_extended_errcode(db));
	char text[400];
	va_list ap;

	va_start(ap, doing);
	vsnprintf(text, sizeof(text), doing, ap);
	va_end(ap);
	switch (code) {
	case EBADMSG:
		return err_set(err, code, "%s: the file is damaged (%s)", text, sqlite3_errmsg(db));
	case EINTR: /* the budget */
		return err_set(err, EBADMSG, "%s: the file is damaged, or made to waste time: it has more rows than its size "
					     "has room for", text);
	case EBUSY:
		return err_set(err, code, "%s: another program is writing to it", text);
	case EINVAL:
		return err_set(err, code, "%s: %s", text, sqlite3_errmsg(db));
	default:
		return err_errno(err, code, "%s", text);
	}
}

static uint32_t big_endian(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

/* A descriptor of a regular file, or -errno; opening a FIFO or a device does not hang. */
static int open_regular(int folder, const char *name, int flags)
{
	_cleanup_fd_ int fd = openat(folder, name, O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	struct stat st;
	int keep;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	keep = fd;
	fd = -1;
	return keep;
}

static int cannot_open(int r, const char *path, struct err *err)
{
	if (r == -EINVAL)
		return err_set(err, EBADMSG, "%s is not a regular file, so it cannot be a capture", path);
	return err_errno(err, -r, "cannot open %s", path);
}

/* Checks whether the file begins as a capture. */
static int check_header(int fd, const char *path, struct err *err)
{
	uint8_t header[100];
	ssize_t n = pread(fd, header, sizeof(header), 0);

	if (n < 0)
		return err_errno(err, errno, "cannot read %s", path);
	if (!n)
		return err_set(err, ENODATA, "%s is an empty file: nothing was recorded into it, record again",
			       path);
	if ((size_t)n < sizeof(header) || memcmp(header, "SQLite format 3", 16) ||
	    big_endian(header + 68) != SCHEMA_APPLICATION_ID)
		return err_set(err, EBADMSG, "%s is not a gasflame capture (`gasflame record -o FILE` makes one)",
			       path);
	if (big_endian(header + 60) > SCHEMA_VERSION)
		return err_set(err, EPROTO,
			       "%s was made by a newer gasflame (schema %u, this one knows %u): update gasflame",
			       path, big_endian(header + 60), SCHEMA_VERSION);
	return 0;
}

int capturefile_check(const char *path, struct err *err)
{
	_cleanup_fd_ int fd = open_regular(AT_FDCWD, path, O_RDONLY);

	return fd < 0 ? cannot_open(fd, path, err) : check_header(fd, path, err);
}

/* --- the file and its journals --- */

void capturefile_done(struct capturefile *f)
{
	fd_close(&f->main);
	fd_close(&f->wal);
	fd_close(&f->folder);
	free(f->wal_name);
	f->wal_name = NULL;
}

/* We never make a rollback journal, so it is not ours; and its content could change the capture, and reach
 * other files. */
static int refuse_journal(const struct capturefile *f, const char *path, const char *base, struct err *err)
{
	_cleanup_free_ char *name = mem_printf("%s-journal", base);
	struct stat st;

	if (fstatat(f->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "cannot check %s-journal", path);
	return err_set(err, EPERM,
		       "%s-journal lies beside the capture, and gasflame makes no such file: its owner could "
		       "change what is read; move it away, then try again", path);
}

/* The log of a recorder that died or is at work. Root and we ourselves may have made it, and whose the capture is. */
static int open_wal(struct capturefile *f, const char *path, struct err *err)
{
	struct stat main, wal;
	int fd = open_regular(f->folder, f->wal_name, O_RDONLY | O_NOFOLLOW);

	if (fd == -ENOENT)
		return 0;
	if (fd == -ELOOP || fd == -EINVAL || fd == -EISDIR || fd == -ENXIO)
		return err_set(err, EPERM, "%s-wal beside the capture is not a regular file, so no recorder made it: move it "
					   "away, then try again", path);
	if (fd < 0)
		return err_errno(err, -fd, "cannot open %s-wal", path);
	f->wal = fd;
	if (fstat(f->main, &main) < 0 || fstat(fd, &wal) < 0)
		return err_errno(err, errno, "cannot look at %s", path);
	if (wal.st_uid && wal.st_uid != geteuid() && wal.st_uid != main.st_uid)
		return err_set(err, EPERM, "%s-wal beside the capture belongs to another user (%u) than the capture (%u), who "
					   "could change what is read: move it away, then try again", path,
			       (unsigned)wal.st_uid, (unsigned)main.st_uid);
	if (!wal.st_size)
		fd_close(&f->wal);
	return 0;
}

static bool same_file(const struct capturefile *f, const char *base)
{
	struct stat ours, there;

	return !fstat(f->main, &ours) && !fstatat(f->folder, base, &there, AT_SYMLINK_NOFOLLOW) &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* Opens path and the log beside it, to read. Refuses with -EPERM where there is a file beside it that no recorder of ours
 * made. capturefile_done() closes the descriptors that are still open. */
static int find_files(const char *path, struct capturefile *ret, struct err *err)
{
	/* SQLite keeps the journal beside the real file, not beside a link to it. */
	_cleanup_free_ char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	int r;

	*ret = (struct capturefile){ .main = -1, .wal = -1, .folder = -1 };
	if (!slash)
		return err_errno(err, errno, "cannot open %s", path);
	*slash = 0;
	ret->wal_name = mem_printf("%s-wal", slash + 1);
	ret->folder = open(*real ? real : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret->main = ret->folder < 0 ? -errno : open_regular(ret->folder, slash + 1, O_RDONLY | O_NOFOLLOW);
	r = ret->main < 0 ? cannot_open(ret->main, path, err) : check_header(ret->main, path, err);
	r = r ?: refuse_journal(ret, path, slash + 1, err);
	r = r ?: open_wal(ret, path, err);
	/* A log that was begun after another capture took the name is not this one's. */
	if (!r && ret->wal >= 0 && !same_file(ret, slash + 1))
		r = err_set(err, EAGAIN, "another capture took the place of %s while it was opened: try again", path);
	if (r)
		capturefile_done(ret);
	return r;
}

/* --- the database --- */

/* Guards a connection to an untrusted database: the known text of the schema and nothing that computes, so
 * that SQLite only reads rows; and a budget for that. */
static int guard(sqlite3 *db, const char *path, struct err *err)
{
	uint64_t bytes = MIN(capturevfs_bytes(db), UINT64_C(1) << 50);

	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	capturevfs_set_budget(db, BUDGET_LEAST + bytes * BUDGET_PER_BYTE);
	/* Exclusive, so that the index of a log is in our own memory. SQLite reports errors at its first
	 * read of the file. */
	if (sqlite3_exec(db, "pragma locking_mode = exclusive; pragma temp_store = memory; pragma cell_size_check = on;"
			     "select 1 from sqlite_schema limit 1", NULL, NULL, NULL) != SQLITE_OK)
		return capturefile_fail(db, err, "cannot read %s", path);
	return schema_check(db, path, err);
}

int capturefile_open_files(struct capturefile *f, const char *path, sqlite3 **ret, struct err *err)
{
	struct capturevfs_files files = { .main = f->main, .wal = f->wal, .folder = -1, .bytes = f->bytes };
	int r;

	f->main = f->wal = -1;
	r = capturevfs_open(&files, ret);
	r = r ? capturefile_fail(*ret, err, "cannot open %s", path) : guard(*ret, path, err);
	if (!r && sqlite3_exec(*ret, "pragma query_only = on", NULL, NULL, NULL) != SQLITE_OK)
		r = capturefile_fail(*ret, err, "cannot read %s", path);
	if (r)
		capturefile_closep(ret);
	return r;
}

int capturefile_measure(struct capturefile *f, const char *path, struct err *err)
{
	return check_header(f->main, path, err) ?: capturecopy_measure(f, path, err);
}

int capturefile_open(const char *path, sqlite3 **ret, struct err *err)
{
	struct capturefile f;
	int r = find_files(path, &f, err);

	*ret = NULL;
	if (r)
		return r;
	r = capturecopy_measure(&f, path, err) ?: capturecopy_make(&f, path, err);
	r = r ?: capturefile_open_files(&f, path, ret, err);
	capturefile_done(&f);
	return r;
}

void capturefile_closep(sqlite3 **db)
{
	capturevfs_close(*db);
	*db = NULL;
}
