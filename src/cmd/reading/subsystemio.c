#include "cmd/reading/subsystemio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/subsystem/subsystems.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"

enum { MAX_BYTES = 1 << 20 };

static int add_text(struct subsystems *t, const char *path, const char *text, size_t n, struct err *err)
{
	if (strlen(text) < n)
		return err_set(err, EINVAL, "%s is no text: subsystems are lines of key = value", path);
	return subsystems_add(t, path, text, err);
}

/* Is it this user's or root's, and can nobody else change it? */
static bool is_ours(int fd, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && (st.st_uid == geteuid() || !st.st_uid) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder of the user's settings; NULL: it is not known. The caller frees it. */
static char *settings_folder(void)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && *xdg == '/')
		return mem_printf("%s/gasflame", xdg);
	return home && *home == '/' ? mem_printf("%s/.config/gasflame", home) : NULL;
}

/* The user's own table is read without being asked for: only where nobody else could have written it. */
static int add_own(struct subsystems *t, struct err *err)
{
	static const char name[] = "subsystems.conf";
	_cleanup_free_ char *folder = settings_folder(),
			    *path = folder ? mem_printf("%s/%s", folder, name) : NULL, *text = NULL;
	_cleanup_fd_ int dir = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	_cleanup_fd_ int fd =
		dir >= 0 ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	size_t n;
	int r;

	if (fd < 0) {
		if (dir >= 0 && errno != ENOENT)
			log_warn("%s is not read: %s", path, strerror(errno));
		return 0;
	}
	if (!is_ours(dir, S_IFDIR) || !is_ours(fd, S_IFREG)) {
		log_warn("%s is not read: it or its folder is another user's, or others may write it", path);
		return 0;
	}
	r = fd_read_file(fd, MAX_BYTES, &text, &n);
	if (r < 0)
		return err_errno(err, -r, "cannot read %s", path);
	return add_text(t, path, text, n, err);
}

int subsystemio_read(const struct option_list *paths, struct subsystems *t, struct err *err)
{
	int r = 0;

	subsystems_init(t);
	for (size_t i = 0; i < paths->list.n && !r; i++) {
		_cleanup_free_ char *text = NULL;
		size_t n;

		r = fd_read_path(paths->list.v[i], MAX_BYTES, &text, &n);
		r = r < 0 ? err_errno(err, -r, "cannot read the subsystems in %s", paths->list.v[i])
		          : add_text(t, paths->list.v[i], text, n, err);
	}
	if (!r)
		r = add_own(t, err);
	if (!r)
		subsystems_add_builtin(t);
	return r;
}
