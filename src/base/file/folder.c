#include "base/file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"

enum { HANDLE = O_PATH | O_CLOEXEC, LINKS_MAX = 40 };

struct walk {
	int at;                    /* where we are */
	char *rest;                /* of the path, which links make longer */
	const struct owner *owner; /* of new folders */
	bool make;
	int links;
	const char *path; /* as it was given, for people */
	struct err *err;
};

/* Follows only root's own links: any other owner would choose where root writes. */
static int check_link(const struct walk *w, const char *part, const struct stat *st)
{
	if (geteuid() || !st->st_uid)
		return 0;
	return err_set(w->err, ELOOP,
		       "%s: %s is a symbolic link of user %u, which is not followed as root: name the folder that it leads to",
		       w->path, part, (unsigned)st->st_uid);
}

/* The links of /proc have no text that leads to where they lead. */
static bool is_magic(int handle)
{
	struct statfs fs;

	return !fstatfs(handle, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int fail(const struct walk *w, int code)
{
	return err_errno(w->err, code, "cannot open the folder of %s", w->path);
}

/* Goes on where the link leads: its text takes its place in the path. */
static int follow(struct walk *w, const char *part, const char *after)
{
	_cleanup_fd_ int link = openat(w->at, part, HANDLE | O_NOFOLLOW);
	char text[PATH_MAX], *rest;
	struct stat st;
	ssize_t n;
	int next;

	if (link < 0 || fstat(link, &st))
		return fail(w, errno);
	if (!S_ISLNK(st.st_mode))
		return fail(w, ENOTDIR);
	if (check_link(w, part, &st))
		return -ELOOP;
	if (++w->links > LINKS_MAX)
		return fail(w, ELOOP);
	if (is_magic(link)) {
		next = openat(w->at, part, HANDLE | O_DIRECTORY);
		if (next < 0)
			return fail(w, errno);
		fd_close(&w->at);
		w->at = next;
		return 0;
	}
	n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n < 0)
		return fail(w, errno);
	text[n] = 0;
	rest = mem_printf("%s/%s", text, after);
	free(w->rest);
	w->rest = rest;
	if (*text != '/')
		return 1;
	fd_close(&w->at);
	w->at = open("/", HANDLE | O_DIRECTORY);
	return w->at < 0 ? fail(w, errno) : 1;
}

static bool is_empty(int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	bool empty = dir != NULL;

	if (!dir) {
		fd_close(&copy);
		return false;
	}
	for (struct dirent *e; empty && (e = readdir(dir));)
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(dir);
	return empty;
}

/* Gives the folder that we just made to owner, unless it was replaced meanwhile. */
static void give(int folder, const struct owner *owner)
{
	struct stat st;

	if (owner && owner->given && !fstat(folder, &st) && st.st_uid == geteuid() && is_empty(folder) &&
	    fchownat(folder, "", owner->uid, owner->gid, AT_EMPTY_PATH))
		return; /* the folder stays ours */
}

/* *ret is -1, with errno, where another process was faster and made something else. */
static int make(struct walk *w, const char *part, int *ret)
{
	bool made = !mkdirat(w->at, part, 0777);

	if (!made && errno != EEXIST)
		return err_errno(w->err, errno, "cannot make the folder %s of %s (name another place with -o)", part,
				 w->path);
	*ret = openat(w->at, part, HANDLE | O_DIRECTORY | O_NOFOLLOW);
	if (*ret >= 0 && made)
		give(*ret, w->owner);
	return 0;
}

/* Walks one part of the path; after is the rest. 1: the path has changed. */
static int step(struct walk *w, const char *part, const char *after)
{
	/* O_DIRECTORY triggers an automount, which O_PATH alone does not. */
	int next = openat(w->at, part, HANDLE | O_DIRECTORY | O_NOFOLLOW), r = 0;

	if (next < 0 && errno == ENOENT && w->make)
		r = make(w, part, &next);
	if (r)
		return r;
	if (next < 0)
		return errno == ENOTDIR || errno == ELOOP ? follow(w, part, after) : fail(w, errno);
	fd_close(&w->at);
	w->at = next;
	return 0;
}

static int walk(struct walk *w)
{
	char *p = w->rest;

	while (*p) {
		size_t n = strcspn(p, "/");
		_cleanup_free_ char *part = mem_strndup(p, n);
		int r;

		p += n + strspn(p + n, "/");
		if (!n || !strcmp(part, "."))
			continue;
		r = step(w, part, p);
		if (r < 0)
			return r;
		if (r)
			p = w->rest;
	}
	return 0;
}

static int open_folder(int at, const char *path, bool makes, const struct owner *owner, const char **ret_name,
		       struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct walk w = { .make = makes, .owner = owner, .path = path, .err = err };
	int r;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		name += strlen(name);
	w.at = *path == '/' ? open("/", HANDLE | O_DIRECTORY) : openat(at, ".", HANDLE | O_DIRECTORY);
	if (w.at < 0)
		return fail(&w, errno);
	w.rest = mem_strndup(path, name - path);
	r = walk(&w);
	free(w.rest);
	if (r < 0) {
		fd_close(&w.at);
		return r;
	}
	*ret_name = name;
	return w.at;
}

int folder_open(const char *path, const char **ret_name, struct err *err)
{
	return open_folder(AT_FDCWD, path, false, NULL, ret_name, err);
}

int folder_open_at(int at, const char *path, const char **ret_name, struct err *err)
{
	return open_folder(at, path, false, NULL, ret_name, err);
}

int folder_make(const char *path, const struct owner *owner, const char **ret_name, struct err *err)
{
	return open_folder(AT_FDCWD, path, true, owner, ret_name, err);
}

void folder_remove(int folder, const char *name, dev_t device, ino_t inode)
{
	struct stat st;

	if (!fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == device && st.st_ino == inode)
		unlinkat(folder, name, 0);
}
