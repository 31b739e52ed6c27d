#include "capture/capturevfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"

/* SQLite's steps between two checks of the budget. */
#define BUDGET_STEP 1000
/* Limit on reads of a file that has a budget: pages that do not fit the cache are read again. */
enum { LEAST_READS = 64 << 20, READS_PER_BYTE = 8 };

struct store {
	sqlite3_vfs vfs;
	char name[40];
	int main, wal, folder;
	char *wal_name;
	bool write, wal_made; /* wal_made: its name must be on disk before its content counts */
	uint64_t bytes;
	int64_t steps_left, reads_left; /* reads: bytes */
	bool limited;
	int last_errno;
};

struct file {
	sqlite3_file base;
	struct store *store;
	bool wal;
};

static int fd_of(const struct file *f)
{
	return f->wal ? f->store->wal : f->store->main;
}

static int failed(struct file *f, int result)
{
	f->store->last_errno = errno;
	return result;
}

/* --- a file --- */

/* The descriptors stay: SQLite removes a log after it has closed it, and we must know which one it was. */
static int file_close(sqlite3_file *file)
{
	return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *data, int n, sqlite3_int64 at)
{
	struct file *f = (struct file *)file;
	char *to = data;
	ssize_t got = 0;

	/* A chain of pages that many rows share is walked for each of them, within one step. */
	f->store->reads_left -= n;
	if (f->store->limited && f->store->reads_left < 0)
		return SQLITE_INTERRUPT;
	while (n > 0 && fd_of(f) >= 0) {
		got = pread(fd_of(f), to, n, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		to += got;
		at += got;
		n -= got;
	}
	if (got < 0)
		return failed(f, SQLITE_IOERR_READ);
	if (n <= 0)
		return SQLITE_OK;
	memset(to, 0, n);
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
	struct file *f = (struct file *)file;
	const char *from = data;

	if (!f->store->write)
		return SQLITE_READONLY;
	while (n > 0) {
		ssize_t put = pwrite(fd_of(f), from, n, at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return failed(f, errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL : SQLITE_IOERR_WRITE);
		from += put;
		at += put;
		n -= put;
	}
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct file *f = (struct file *)file;

	if (!f->store->write)
		return SQLITE_READONLY;
	return ftruncate(fd_of(f), size) < 0 ? failed(f, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags)
{
	struct file *f = (struct file *)file;

	if (!f->store->write)
		return SQLITE_OK;
	if (fdatasync(fd_of(f)) < 0)
		return failed(f, SQLITE_IOERR_FSYNC);
	/* Not every file system can sync a folder, and the log is none the worse for it. */
	if (f->wal && f->store->wal_made) {
		_cleanup_fd_ int folder = openat(f->store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (folder >= 0)
			fsync(folder);
		f->store->wal_made = false;
	}
	return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	struct file *f = (struct file *)file;
	struct stat st = { 0 };

	if (fd_of(f) >= 0 && fstat(fd_of(f), &st) < 0)
		return failed(f, SQLITE_IOERR_FSTAT);
	*ret = st.st_size;
	return SQLITE_OK;
}

/* A writer has its lock from capturevfs_open() to the end; a reader has the file to itself, or a copy. */
static int file_lock(sqlite3_file *file, int level)
{
	return SQLITE_OK;
}

static int file_check_lock(sqlite3_file *file, int *ret)
{
	*ret = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int which, void *argument)
{
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
	return 4096;
}

/* As SQLite has it for Linux: a write that is cut short harms nothing beside it. */
static int file_traits(sqlite3_file *file)
{
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* Version 1 has no shared memory: the index of a log is in ours, as the only connection has the file
 * locked. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

/* --- the file system --- */

static bool is_wal(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n > 4 && !strcmp(name + n - 4, "-wal");
}

/* Made by us alone: an existing file of that name is another user's. */
static int make_wal(struct store *s)
{
	struct stat st;

	if (!s->wal_name || fstat(s->main, &st) < 0)
		return SQLITE_CANTOPEN;
	s->wal = openat(s->folder, s->wal_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0666);
	if (s->wal < 0) {
		s->last_errno = errno;
		return SQLITE_CANTOPEN;
	}
	s->wal_made = true;
	return SQLITE_OK;
}

static int store_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct store *s = vfs->pAppData;
	struct file *f = (struct file *)file;
	int result = SQLITE_OK;

	file->pMethods = NULL;
	if (flags & SQLITE_OPEN_WAL) {
		if (s->wal < 0 && s->write)
			result = make_wal(s);
	} else if (!(flags & SQLITE_OPEN_MAIN_DB)) {
		return SQLITE_CANTOPEN; /* journals, temporary files: there are none */
	}
	if (result != SQLITE_OK)
		return result;
	f->base.pMethods = &methods;
	f->store = s;
	f->wal = flags & SQLITE_OPEN_WAL;
	if (ret_flags)
		*ret_flags = s->write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	return SQLITE_OK;
}

/* Only the log that we have open, and only where its name still means it. */
static int store_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	struct store *s = vfs->pAppData;
	struct stat ours, there;

	if (!s->write || !s->wal_name || !is_wal(name) || s->wal < 0)
		return SQLITE_OK;
	if (!fstat(s->wal, &ours) && !fstatat(s->folder, s->wal_name, &there, AT_SYMLINK_NOFOLLOW) &&
	    ours.st_dev == there.st_dev && ours.st_ino == there.st_ino && unlinkat(s->folder, s->wal_name, 0) < 0) {
		s->last_errno = errno;
		return SQLITE_IOERR_DELETE;
	}
	fd_close(&s->wal);
	return SQLITE_OK;
}

static int store_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	struct store *s = vfs->pAppData;

	*ret = flags == SQLITE_ACCESS_EXISTS && is_wal(name) && s->wal >= 0;
	return SQLITE_OK;
}

static int store_full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	return snprintf(ret, size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static void *store_dl_open(sqlite3_vfs *vfs, const char *name)
{
	return NULL;
}

static void store_dl_error(sqlite3_vfs *vfs, int size, char *ret)
{
	snprintf(ret, size, "there are no extensions here");
}

static void (*store_dl_sym(sqlite3_vfs *vfs, void *handle, const char *name))(void)
{
	return NULL;
}

static void store_dl_close(sqlite3_vfs *vfs, void *handle)
{
}

static int store_randomness(sqlite3_vfs *vfs, int size, char *ret)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	return usual->xRandomness(usual, size, ret);
}

static int store_sleep(sqlite3_vfs *vfs, int us)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	return usual->xSleep(usual, us);
}

static int store_time(sqlite3_vfs *vfs, double *ret)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	return usual->xCurrentTime(usual, ret);
}

static int store_last_error(sqlite3_vfs *vfs, int size, char *ret)
{
	return ((struct store *)vfs->pAppData)->last_errno;
}

/* --- one database --- */

static void store_free(struct store *s)
{
	fd_close(&s->main);
	fd_close(&s->wal);
	fd_close(&s->folder);
	free(s->wal_name);
	free(s);
}

static struct store *store_new(const struct capturevfs_files *files)
{
	static atomic_uint count;
	struct store *s = mem_alloc(sizeof(*s));

	s->main = files->main;
	s->wal = files->wal;
	s->folder = files->folder;
	s->wal_name = files->wal_name ? mem_strdup(files->wal_name) : NULL;
	s->write = files->write;
	s->bytes = files->bytes;
	snprintf(s->name, sizeof(s->name), "gasflame-capture-%u", atomic_fetch_add(&count, 1));
	s->vfs = (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct file),
		.mxPathname = 64,
		.zName = s->name,
		.pAppData = s,
		.xOpen = store_open,
		.xDelete = store_delete,
		.xAccess = store_access,
		.xFullPathname = store_full_name,
		.xDlOpen = store_dl_open,
		.xDlError = store_dl_error,
		.xDlSym = store_dl_sym,
		.xDlClose = store_dl_close,
		.xRandomness = store_randomness,
		.xSleep = store_sleep,
		.xCurrentTime = store_time,
		.xGetLastError = store_last_error,
	};
	return s;
}

/* SQLite's own lock bytes (its file format, "locking"): a writer holds a lock on them. */
static const struct flock write_lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };

/* A lock of the open file, not of the process: closing another descriptor of the same file does not lose it. */
static bool lock_to_write(int fd)
{
	struct flock lock = write_lock;

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

bool capturevfs_is_locked(int fd)
{
	struct flock lock = write_lock;

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

int capturevfs_open(const struct capturevfs_files *files, sqlite3 **ret)
{
	struct store *s = store_new(files);
	int result;

	*ret = NULL;
	if (s->write && !lock_to_write(s->main)) {
		store_free(s);
		return -EBUSY;
	}
	result = sqlite3_initialize();
	if (result == SQLITE_OK)
		result = sqlite3_vfs_register(&s->vfs, 0);
	if (result == SQLITE_OK) {
		result = sqlite3_open_v2("/capture", ret, SQLITE_OPEN_NOMUTEX |
					 (s->write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY), s->name);
		sqlite3_vfs_unregister(&s->vfs); /* the connection keeps it, and nothing else needs it */
	}
	if (*ret)
		return result == SQLITE_OK ? 0 : -EIO;
	store_free(s);
	return -ENOMEM;
}

static struct store *store_of(sqlite3 *db)
{
	sqlite3_vfs *vfs = NULL;

	return sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) == SQLITE_OK && vfs ? vfs->pAppData : NULL;
}

void capturevfs_close(sqlite3 *db)
{
	struct store *s = db ? store_of(db) : NULL;

	/* A statement that was not finalized would keep the connection, and it the store: better to leak
	 * both. */
	if (sqlite3_close(db) == SQLITE_OK && s)
		store_free(s);
}

uint64_t capturevfs_bytes(sqlite3 *db)
{
	struct store *s = store_of(db);

	return s ? s->bytes : 0;
}

int capturevfs_plain_file(sqlite3 *db)
{
	struct store *s = store_of(db);
	struct stat st;

	if (!s || (s->wal >= 0 && (fstat(s->wal, &st) < 0 || st.st_size)))
		return -1;
	return s->main;
}

static int on_progress(void *context)
{
	struct store *s = context;

	s->steps_left -= BUDGET_STEP;
	return s->steps_left < 0;
}

void capturevfs_set_budget(sqlite3 *db, int64_t steps)
{
	struct store *s = store_of(db);

	if (s) {
		s->steps_left = steps;
		s->reads_left = LEAST_READS + (int64_t)MIN(s->bytes, UINT64_C(1) << 50) * READS_PER_BYTE;
		s->limited = steps;
	}
	sqlite3_progress_handler(db, BUDGET_STEP, steps && s ? on_progress : NULL, s);
}
