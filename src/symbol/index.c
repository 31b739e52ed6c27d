/*
 * index.c - the files and folders of --symbols, by build-id.
 *
 * A folder may be anybody's, and we may be root. Files are opened as regular files only, without
 * waiting (target/open.h), and read by the child. A link is followed within its folder, as in the
 * root of an image; out of it only where its owner is root or the user, who could name the file as
 * well. Folders that are links are not entered: one that leads to itself would not end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "symbol/find.h"
#include "target/open.h"

enum { MAX_DEPTH = 16, MAX_FILES = 100000 };

static bool is_trusted(uid_t uid)
{
	const char *sudo = getenv("SUDO_UID");
	uint64_t user;

	return !uid || uid == geteuid() || (sudo && !str_parse_uint(sudo, 0, UINT32_MAX - 1, &user) && uid == user);
}

/* Most files of a build's folder are no ELF files: those need not go through the child. */
static int add_file(struct find_index *index, int fd, const char *path, bool named, struct err *err)
{
	struct find_entry e = { .named = named };
	char magic[4];
	int r = 0;

	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) || memcmp(magic, "\177ELF", 4))
		r = err_set(err, ENOEXEC, "not an ELF file");
	if (!r)
		r = worker_identify(index->worker, fd, &e.id, err);
	if (!r) {
		e.path = mem_strdup(path);
		vec_push(&index->files, e);
	}
	return r;
}

static void add_named(struct find_index *index, const char *path)
{
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	int r = target_open_host(path, &fd, &err);

	if (!r)
		r = add_file(index, fd, path, true, &err);
	if (r)
		vec_push(&index->problems, mem_printf("--symbols %s: %s", path, err.text));
}

int find_folder_open(const struct find_folder *folder, const char *path, int *ret_fd)
{
	_cleanup_free_ char *whole = mem_printf("%s/%s", folder->path, path);
	int r = target_open_below(folder->path, path, ret_fd, NULL);

	return r && !folder->strange ? target_open_host(whole, ret_fd, NULL) : r;
}

/* A link of a folder. Its file goes by its own path: the link may count from the folder as its root. */
static void add_link(struct find_index *index, const struct find_folder *folder, const char *path, const struct stat *link)
{
	struct find_folder from = { .path = folder->path, .strange = folder->strange || !is_trusted(link->st_uid) };
	char name[64], target[4096];
	_cleanup_fd_ int fd = -1;
	ssize_t n;

	if (find_folder_open(&from, path, &fd))
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = 0;
	add_file(index, fd, target, false, NULL);
}

/* path is below the folder, "" = the folder itself. */
static void walk(struct find_index *index, const struct find_folder *folder, const char *path, unsigned depth)
{
	_cleanup_free_ char *whole = mem_printf("%s/%s", folder->path, path);
	int fd = open(whole, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | (*path ? O_NOFOLLOW : 0));
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (dir && depth < MAX_DEPTH && index->seen < MAX_FILES && (e = readdir(dir))) {
		_cleanup_free_ char *below = NULL, *file = NULL;
		_cleanup_fd_ int opened = -1;
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		index->seen++;
		below = mem_printf("%s%s%s", path, *path ? "/" : "", e->d_name);
		file = mem_printf("%s/%s", folder->path, below);
		if (S_ISDIR(st.st_mode))
			walk(index, folder, below, depth + 1);
		else if (S_ISREG(st.st_mode) && st.st_size > 64 && !target_open_below(folder->path, below, &opened, NULL))
			add_file(index, opened, file, false, NULL);
		else if (S_ISLNK(st.st_mode))
			add_link(index, folder, below, &st); /* .build-id/xx/yyyy may be one */
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void find_index_walk(struct find_index *index)
{
	for (size_t i = 0; i < index->folders.n; i++) {
		struct find_folder *f = &index->folders.v[i];

		if (f->walked)
			continue;
		f->walked = true;
		walk(index, f, "", 0);
		if (index->seen >= MAX_FILES)
			vec_push(&index->problems, mem_printf("--symbols %s: only the first %d files were looked at; name the "
							      "file itself", f->path, MAX_FILES));
	}
}

void find_index_build(struct find_index *index, struct worker *worker, const char *const *paths)
{
	index->worker = worker;
	for (size_t i = 0; paths && paths[i]; i++) {
		struct stat st;

		if (stat(paths[i], &st))
			vec_push(&index->problems, mem_printf("--symbols %s: %s", paths[i], strerror(errno)));
		else if (S_ISDIR(st.st_mode))
			vec_push(&index->folders, (struct find_folder){ .path = mem_strdup(paths[i]),
									.strange = !is_trusted(st.st_uid) });
		else
			add_named(index, paths[i]);
	}
}

void find_index_done(struct find_index *index)
{
	vec_done_each(&index->files, e, free(e->path); free(e->like); functions_done(&e->functions));
	vec_done_each(&index->folders, e, free(e->path));
	vec_done_each(&index->problems, e, free(*e));
}
