#include "profile/capturefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "profile/schema.h"

/* Longest text or blob that is read from a capture: no name is nearly so long. */
#define LONGEST_VALUE (16 << 20)
/* A recorder begins its journal anew every few seconds at most: a second try is nearly always enough. */
#define COPY_TRIES 5

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
static int open_regular(const char *path, int flags, off_t *ret_size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	struct stat st;
	int keep;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (ret_size)
		*ret_size = st.st_size;
	keep = fd;
	fd = -1;
	return keep;
}

int capturefile_check(const char *path, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	uint8_t header[100];
	off_t size = 0;
	ssize_t n;

	fd = open_regular(path, 0, &size);
	if (fd == -EINVAL)
		return err_set(err, EBADMSG, "%s is not a regular file, so it cannot be a capture", path);
	if (fd < 0)
		return err_errno(err, -fd, "cannot open %s", path);
	if (!size)
		return err_set(err, ENODATA, "%s is an empty file: nothing was recorded into it, record again",
			       path);
	n = fd_read_all(fd, header, sizeof(header));
	if (n < 0)
		return err_errno(err, -n, "cannot read %s", path);
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

static int copy_bytes(int from, const char *to_path)
{
	_cleanup_fd_ int to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_free_ char *block = mem_alloc(1 << 16);
	off_t at = 0;
	ssize_t n;
	int r;

	if (to < 0)
		return -errno;
	while ((n = pread(from, block, 1 << 16, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = fd_write_all(to, block, n);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* What tells one generation of a journal from the next: SQLite gives each new salts in its header. */
struct generation {
	ino_t inode;
	uint8_t header[32];
	bool there;
};

static int generation_of(int fd, struct generation *ret)
{
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!st.st_size)
		return 0;
	ret->there = true;
	ret->inode = st.st_ino;
	return pread(fd, ret->header, sizeof(ret->header), 0) < 0 ? -errno : 0;
}

/*
 * Copies the file, then its journals. A live recorder may be moving its journal
 * into the file meanwhile: every page that it writes there is in the journal as
 * well, so the two copies agree as long as the journal was not begun anew
 * between the two looks at it. -EAGAIN if it was.
 */
static int copy_once(const char *path, const char *folder, bool *ret_needed)
{
	_cleanup_free_ char *wal_path = mem_printf("%s-wal", path);
	_cleanup_free_ char *journal_path = mem_printf("%s-journal", path);
	_cleanup_free_ char *to = mem_printf("%s/capture", folder);
	_cleanup_free_ char *to_wal = mem_printf("%s/capture-wal", folder);
	_cleanup_free_ char *to_journal = mem_printf("%s/capture-journal", folder);
	_cleanup_fd_ int wal = open_regular(wal_path, O_NOFOLLOW, NULL);
	_cleanup_fd_ int journal = open_regular(journal_path, O_NOFOLLOW, NULL);
	_cleanup_fd_ int file = -1, again = -1;
	struct generation before, after, roll;
	int r;

	if ((r = generation_of(wal, &before)) < 0 || (r = generation_of(journal, &roll)) < 0)
		return r;
	*ret_needed = before.there || roll.there;
	if (!*ret_needed)
		return 0;
	file = open_regular(path, 0, NULL);
	if (file < 0)
		return file;
	if ((r = copy_bytes(file, to)) < 0)
		return r;
	if (before.there && (r = copy_bytes(wal, to_wal)) < 0)
		return r;
	if (roll.there && (r = copy_bytes(journal, to_journal)) < 0)
		return r;
	again = open_regular(wal_path, O_NOFOLLOW, NULL);
	if ((r = generation_of(again, &after)) < 0)
		return r;
	return memcmp(&before, &after, sizeof(before)) ? -EAGAIN : 0;
}

static void remove_copy(const char *folder)
{
	static const char *const names[] = { "capture", "capture-wal", "capture-shm", "capture-journal" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *path = mem_printf("%s/%s", folder, names[i]);

		unlink(path);
	}
	rmdir(folder);
}

/* *ret_folder is NULL when the file can be read as it is. */
static int copy_if_needed(const char *path, char **ret_folder, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *folder = mem_printf("%s/gasflame-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	bool needed = false;
	int r = 0;

	*ret_folder = NULL;
	if (!mkdtemp(folder)) {
		r = -errno;
		free(folder);
		return err_errno(err, -r, "cannot make a private folder in %s (set TMPDIR to another place)",
				 tmp && *tmp ? tmp : "/tmp");
	}
	for (int try = 0; try < COPY_TRIES; try++) {
		r = copy_once(path, folder, &needed);
		if (r != -EAGAIN)
			break;
	}
	if (r < 0 || !needed) {
		remove_copy(folder);
		free(folder);
		return r < 0 ? err_errno(err, -r, "cannot copy %s and its journal to recover them", path) : 0;
	}
	*ret_folder = folder;
	return 0;
}

/* Immutable: no lock, no journal, nothing made beside the file, whoever owns the folder. */
static void add_uri(struct buf *b, const char *path)
{
	buf_puts(b, "file:");
	for (; *path; path++) {
		if (strchr("%?#", *path))
			buf_printf(b, "%%%02x", (unsigned char)*path);
		else
			buf_putc(b, *path);
	}
	buf_puts(b, "?immutable=1");
}

static void guard(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
}

/* SQLite's open, and the first look into the file, which is where its complaints come. */
static int open_database(const char *path, const char *copy, sqlite3 **ret, struct err *err)
{
	struct buf name = { 0 };
	int flags = SQLITE_OPEN_NOMUTEX, r = 0;
	sqlite3 *db = NULL;

	if (copy) {
		buf_printf(&name, "%s/capture", copy);
		flags |= SQLITE_OPEN_READWRITE;
	} else {
		add_uri(&name, path);
		flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
	}
	if (sqlite3_open_v2(name.data, &db, flags, NULL) != SQLITE_OK) {
		r = capturefile_fail(db, err, "cannot open %s", path);
	} else {
		guard(db);
		/* Exclusive, so that no -shm file is needed beside the copy. */
		if (sqlite3_exec(db, "pragma locking_mode = exclusive; pragma cell_size_check = on;"
				     "pragma query_only = on; select count(*) from sqlite_schema", NULL, NULL,
				 NULL) != SQLITE_OK)
			r = capturefile_fail(db, err, "cannot read %s", path);
	}
	buf_done(&name);
	if (r < 0)
		capturefile_closep(&db);
	*ret = db;
	return r;
}

int capturefile_open(const char *path, sqlite3 **ret, struct err *err)
{
	/* SQLite keeps the journal beside the real file, not beside a link to it. */
	_cleanup_free_ char *real = realpath(path, NULL), *copy = NULL;
	int r;

	*ret = NULL;
	if (!real)
		return err_errno(err, errno, "cannot open %s", path);
	r = capturefile_check(real, err);
	if (r < 0)
		return r;
	r = copy_if_needed(real, &copy, err);
	if (r < 0)
		return r;
	r = open_database(real, copy, ret, err);
	/* The open descriptors keep the copy alive; nothing stays behind whatever becomes of us. */
	if (copy)
		remove_copy(copy);
	return r;
}

void capturefile_closep(sqlite3 **db)
{
	sqlite3_close_v2(*db);
	*db = NULL;
}
