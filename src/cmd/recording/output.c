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

char *output_stem(const char *label, const char *what)
{
	time_t now = time(NULL);
	char stamp[32], *stem;
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	stem = mem_printf(CAPTURES_FOLDER "/%s/%s-%s", label, what, stamp);
	for (char *p = stem + strlen(CAPTURES_FOLDER) + 1 + strlen(label) + 1; *p; p++)
		if (*p == ',')
			*p = '+';
		else if (*p == '/')
			*p = '_';
	return stem;
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

int output_create(const char *typed, const char *label, const char *what, char **ret_path, struct capture **ret,
		  struct err *err)
{
	_cleanup_free_ char *stem = typed ? NULL : output_stem(label, what), *path = NULL;
	struct owner owner = output_owner();
	int r = -EEXIST;

	if (typed) {
		path = mem_strdup(typed);
		r = capture_create_with(path, CAPTURE_FOLDERS, &owner, ret, err);
	}
	for (int i = 1; !typed && r == -EEXIST && i <= MOST_IN_A_SECOND; i++) {
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
