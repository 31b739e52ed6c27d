/*
 * index.c - the files and folders of --symbols, by build-id.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "symbol/find.h"
#include "target/open.h"

enum { MAX_DEPTH = 16, MAX_FILES = 100000 };

struct walk {
	struct find_index *index;
	struct worker *worker;
	size_t seen;
};

static int add_file(struct walk *w, const char *path, bool named)
{
	struct find_entry e = { .named = named };
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	char magic[4];
	int r = target_open_host(path, &fd, &err);

	/* Most files of a build's folder are no ELF files: those need not go through the child. */
	if (!r && (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) || memcmp(magic, "\177ELF", 4)))
		r = err_set(&err, ENOEXEC, "not an ELF file");
	if (!r)
		r = worker_identify(w->worker, fd, &e.id, &err);
	if (!r) {
		e.path = mem_strdup(path);
		vec_push(&w->index->files, e);
	} else if (named) {
		vec_push(&w->index->problems, mem_printf("--symbols %s: %s", path, err.text));
	}
	return r;
}

/* Links are not followed: a folder's link to itself would not end. */
static void add_folder(struct walk *w, const char *path, unsigned depth)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && depth < MAX_DEPTH && w->seen < MAX_FILES && (e = readdir(dir))) {
		_cleanup_free_ char *below = NULL;
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		w->seen++;
		below = mem_printf("%s/%s", path, e->d_name);
		if (lstat(below, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			add_folder(w, below, depth + 1);
		else if (S_ISREG(st.st_mode) && st.st_size > 64)
			add_file(w, below, false);
		else if (S_ISLNK(st.st_mode) && !stat(below, &st) && S_ISREG(st.st_mode))
			add_file(w, below, false); /* .build-id/xx/yyyy may be one */
	}
	if (dir)
		closedir(dir);
}

void find_index_build(struct find_index *index, struct worker *worker, const char *const *paths)
{
	struct walk w = { index, worker, 0 };

	for (size_t i = 0; paths && paths[i]; i++) {
		struct stat st;

		if (stat(paths[i], &st))
			vec_push(&index->problems, mem_printf("--symbols %s: %s", paths[i], strerror(errno)));
		else if (S_ISDIR(st.st_mode))
			add_folder(&w, paths[i], 0);
		else
			add_file(&w, paths[i], true);
	}
}

void find_index_done(struct find_index *index)
{
	for (size_t i = 0; i < index->files.n; i++)
		free(index->files.v[i].path);
	for (size_t i = 0; i < index->problems.n; i++)
		free(index->problems.v[i]);
	vec_done(&index->files);
	vec_done(&index->problems);
}
