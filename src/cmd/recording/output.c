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
	for (char *p = stem + strlen(CAPTURES_FOLDER) + 1 + strlen(label); *p; p++)
		if (*p == ',')
			*p = '+';
	return stem;
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
