#include "cmd/captures/captures.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "base/file/fd.h"
#include "base/vec.h"
#include "capture/schema.h"

enum { DEEPEST = 32, HEADER_ID = 68, HEADER_SIZE = 72 };

struct walk {
	captures_fn *fn;
	captures_left_fn *left;
	void *context;
	int deepest; /* level of folders */
	struct err *err;
};

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool is_capture(int folder, const char *name, const struct stat *seen)
{
	static const char magic[16] = "SQLite format 3";
	_cleanup_fd_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	unsigned char header[HEADER_SIZE];
	struct stat st;
	uint32_t id;

	if (fd < 0 || fstat(fd, &st) || st.st_dev != seen->st_dev || st.st_ino != seen->st_ino ||
	    fd_read_all(fd, header, sizeof(header)) != sizeof(header))
		return false;
	memcpy(&id, header + HEADER_ID, sizeof(id));
	return !memcmp(header, magic, sizeof(magic)) && be32toh(id) == SCHEMA_APPLICATION_ID;
}

static int visit_file(struct walk *w, int folder, const char *name, const char *path, const struct stat *st)
{
	struct captures_entry e = { .folder = folder, .name = name, .path = path, .owner = st->st_uid,
				    .device = st->st_dev, .inode = st->st_ino, .bytes = st->st_size,
				    .mtime_ns = mtime_ns(st) };
	_cleanup_free_ char *journal = mem_printf("%s-wal", name);
	struct stat wal;

	if (!fstatat(folder, journal, &wal, AT_SYMLINK_NOFOLLOW) && S_ISREG(wal.st_mode)) {
		e.bytes += wal.st_size;
		e.mtime_ns = MAX(e.mtime_ns, mtime_ns(&wal));
	}
	return w->fn(w->context, &e);
}

/* The names first, then the work: fn may remove files. */
static int read_names(int fd, char ***ret, size_t *ret_n)
{
	VEC(char *) names = { 0 };
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int code;

	if (!dir) {
		code = errno;
		close(fd);
		return -code;
	}
	while ((errno = 0, e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			vec_push(&names, mem_strdup(e->d_name));
	code = errno;
	closedir(dir);
	vec_sort(&names, str_order);
	*ret = names.v;
	*ret_n = names.n;
	return -code;
}

/* Files handed to fn, or a negative number. */
static int walk_folder(struct walk *w, int fd, const char *path, int depth)
{
	int found = 0, copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
	char **names = NULL;
	size_t n = 0;

	r = copy < 0 ? -errno : read_names(copy, &names, &n);
	if (r)
		r = err_errno(w->err, -r, "cannot read the folder %s", path);
	for (size_t i = 0; i < n && r >= 0; i++) {
		_cleanup_free_ char *below = strcmp(path, ".") ? mem_printf("%s/%s", path, names[i])
							       : mem_strdup(names[i]);
		struct stat st;

		r = 0;
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && depth < w->deepest) {
			_cleanup_fd_ int sub =
				openat(fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			/* An unreadable folder is another user's. */
			r = sub < 0 ? 0 : walk_folder(w, sub, below, depth + 1);
			if (r > 0 && w->left)
				w->left(w->context, fd, names[i], below);
			found += r > 0 ? r : 0;
		} else if (S_ISREG(st.st_mode) && st.st_size >= HEADER_SIZE && is_capture(fd, names[i], &st)) {
			r = visit_file(w, fd, names[i], below, &st);
			found++;
		}
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r < 0 ? r : found;
}

int captures_walk(const char *root, unsigned how, captures_fn *fn, captures_left_fn *left, void *context,
		  struct err *err)
{
	struct walk w = { .fn = fn, .left = left, .context = context, .err = err,
			  .deepest = how & CAPTURES_FLAT ? 0 : DEEPEST };
	_cleanup_free_ char *plain = mem_strdup(root);
	_cleanup_fd_ int fd = -1;
	int r;

	/* "profiling/" would follow the link that "profiling" is. */
	for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
		plain[n - 1] = 0;
	fd = open(plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (how & CAPTURES_FOLLOW ? 0 : O_NOFOLLOW));
	if (fd < 0) {
		struct stat st;
		int code = errno;

		if (!(how & CAPTURES_FOLLOW) && !lstat(plain, &st) && S_ISLNK(st.st_mode))
			return err_set(err, ELOOP, "%s is a symbolic link: name the folder that it leads to",
				       plain);
		return err_errno(err, code, "cannot open the folder %s", plain);
	}
	r = walk_folder(&w, fd, plain, 0);
	return r < 0 ? r : 0;
}

void captures_walk_here(captures_fn *fn, void *context)
{
	struct err err = { 0 };

	if (captures_walk(".", CAPTURES_FLAT, fn, NULL, context, &err) < 0)
		log_debug("%s", err.text);
	if (captures_walk(CAPTURES_FOLDER, CAPTURES_FOLLOW, fn, NULL, context, &err) < 0)
		log_debug("%s", err.text);
}

/* SQLite locks a byte of this range for as long as a writer of ours has the file open. */
bool captures_in_use(const struct captures_entry *e)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };
	_cleanup_fd_ int fd = openat(e->folder, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}
