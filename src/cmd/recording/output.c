#include "cmd/recording/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/newfile.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/captures/captures.h"
#include "capture/capture.h"

enum { MOST_IN_A_SECOND = 1000 };

struct owner output_owner(void)
{
	const char *u = getenv("SUDO_UID"), *g = getenv("SUDO_GID");
	uint64_t user, group;

	if (geteuid() || !u || !g || str_parse_uint(u, 1, UINT32_MAX - 1, &user) ||
	    str_parse_uint(g, 0, UINT32_MAX - 1, &group))
		return (struct owner){ 0 };
	return (struct owner){ .given = true, .uid = user, .gid = group };
}

static char *stamp_now(char out[32])
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(out, 32, "%Y%m%d-%H%M%S", &tm);
	return out;
}

/* folder ends in a slash. */
static char *stem_in(const char *folder, const char *what)
{
	char stamp[32], *stem = mem_printf("%s%s-%s", folder, what, stamp_now(stamp));

	for (char *p = stem + strlen(folder); *p; p++)
		if (*p == ',')
			*p = '+';
		else if (*p == '/')
			*p = '_';
	return stem;
}

char *output_stem(const char *label, const char *what)
{
	_cleanup_free_ char *folder = mem_printf(CAPTURES_FOLDER "/%s/", label);

	return stem_in(folder, what);
}

static char *stem_of_one(const char *prefix, const char *label, const char *what)
{
	size_t n = prefix ? strlen(prefix) : 0;
	char stamp[32];

	if (!prefix)
		return output_stem(label, what);
	if (str_ends(prefix, "/"))
		return stem_in(prefix, what);
	if (str_ends(prefix, ".gasflame"))
		n -= strlen(".gasflame");
	return mem_printf("%.*s-%s", (int)n, prefix, stamp_now(stamp));
}

/* -EEXIST where one of the names is taken. */
static int write_all(const char *stem, const struct output_file *files, size_t n, struct err *err)
{
	struct newfile made[OUTPUT_FILES_MAX];
	struct owner owner = output_owner();
	size_t opened = 0, kept = 0;
	int r = n > OUTPUT_FILES_MAX ? -E2BIG : 0;

	while (!r && opened < n) {
		_cleanup_free_ char *path = mem_printf("%s%s", stem, files[opened].extension);
		struct newfile *f = &made[opened];

		r = newfile_open(f, path, NEWFILE_ONCE | NEWFILE_FOLDERS, 0666, &owner, err);
		if (!r && (r = fd_write_all(f->fd, files[opened].data, files[opened].n)))
			err_errno(err, -r, "cannot write %s", path);
		opened++;
	}
	while (!r && kept < n) {
		r = newfile_keep(&made[kept], err);
		kept += !r;
	}
	for (size_t i = 0; r && i < kept; i++)
		folder_remove(made[i].folder, made[i].name, made[i].device, made[i].inode);
	for (size_t i = 0; i < opened; i++)
		newfile_done(&made[i]);
	return r;
}

int output_write_new(const char *label, const char *what, const struct output_file *files, size_t n, char **ret_stem,
		     struct err *err)
{
	_cleanup_free_ char *plain = output_stem(label, what), *stem = NULL;
	int r = -EEXIST;

	for (int i = 1; r == -EEXIST && i <= MOST_IN_A_SECOND; i++) {
		free(stem);
		stem = i == 1 ? mem_strdup(plain) : mem_printf("%s-%d", plain, i);
		r = write_all(stem, files, n, err);
	}
	if (r < 0)
		return r;
	*ret_stem = stem;
	stem = NULL;
	return 0;
}

char *output_next(const char *path)
{
	struct buf b = { 0 };

	if (str_starts(path, CAPTURES_FOLDER "/"))
		return mem_strdup("gasflame report");
	buf_puts(&b, *path == '-' ? "gasflame report -- " : "gasflame report ");
	plain_add_word(&b, path);
	return b.data;
}

/* The first name with that stem that nothing has. */
static int create_unused(const char *stem, char **ret_path, struct capture **ret, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	struct owner owner = output_owner();
	int r = -EEXIST;

	for (int i = 1; r == -EEXIST && i <= MOST_IN_A_SECOND; i++) {
		free(path);
		path = i == 1 ? mem_printf("%s.gasflame", stem) : mem_printf("%s-%d.gasflame", stem, i);
		r = capture_create_with(path, CAPTURE_FOLDERS | CAPTURE_ONCE, &owner, ret, err);
	}
	if (r)
		return r;
	*ret_path = path;
	path = NULL;
	return 0;
}

int output_create(const char *typed, const char *label, const char *what, char **ret_path, struct capture **ret,
		  struct err *err)
{
	struct owner owner = output_owner();
	int r;

	if (!typed)
		return output_create_one(NULL, label, what, ret_path, ret, err);
	r = capture_create_with(typed, CAPTURE_FOLDERS, &owner, ret, err);
	if (!r)
		*ret_path = mem_strdup(typed);
	return r;
}

int output_create_one(const char *prefix, const char *label, const char *what, char **ret_path, struct capture **ret,
		      struct err *err)
{
	_cleanup_free_ char *stem = stem_of_one(prefix, label, what);

	return create_unused(stem, ret_path, ret, err);
}

int output_try_one(const char *prefix, const char *label, const char *what, char **ret_path, struct err *err)
{
	_cleanup_free_ char *stem = stem_of_one(prefix, label, what);
	struct owner owner = output_owner();
	struct newfile f;
	char *path = mem_printf("%s.gasflame", stem);
	int r = newfile_open(&f, path, NEWFILE_ONCE | NEWFILE_FOLDERS, 0600, &owner, err);

	newfile_done(&f);
	if (r && r != -EEXIST) {
		free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}

int output_save(const char *typed, const char *label, const char *what, struct profile *p, char **ret_path,
		struct err *err)
{
	struct capture *c = NULL;
	int r = output_create(typed, label, what, ret_path, &c, err), closed;

	if (r)
		return r;
	r = capture_flush(c, p, err);
	closed = capture_close(c, r ? NULL : err);
	return r ? r : closed;
}
