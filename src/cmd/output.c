#include "cmd/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/captures.h"

/* The user behind sudo; false when there is none, or we are not root. */
static bool user_behind(uid_t *uid, gid_t *gid)
{
	const char *u = getenv("SUDO_UID"), *g = getenv("SUDO_GID");
	uint64_t user, group;

	if (geteuid() || !u || !g || str_parse_uint(u, 1, UINT32_MAX - 1, &user) ||
	    str_parse_uint(g, 0, UINT32_MAX - 1, &group))
		return false;
	*uid = user;
	*gid = group;
	return true;
}

void output_give(const char *path)
{
	uid_t uid;
	gid_t gid;

	/* lchown: a link that somebody put there in the meantime is not followed. */
	if (user_behind(&uid, &gid) && lchown(path, uid, gid))
		return;
}

int output_make_folders(const char *path, struct err *err)
{
	_cleanup_free_ char *copy = mem_strdup(path);

	for (char *p = copy + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		if (!mkdir(copy, 0777))
			output_give(copy);
		else if (errno != EEXIST)
			return err_errno(err, errno, "cannot make the folder %s (name another place with -o)", copy);
		*p = '/';
	}
	return 0;
}

char *output_default_path(const char *label, const char *what)
{
	time_t now = time(NULL);
	char stamp[32], *path;
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	path = mem_printf(CAPTURES_FOLDER "/%s/%s-%s.gasflame", label, what, stamp);
	for (int i = 2; !access(path, F_OK); i++) {
		free(path);
		path = mem_printf(CAPTURES_FOLDER "/%s/%s-%s-%d.gasflame", label, what, stamp, i);
	}
	for (char *p = path + strlen(CAPTURES_FOLDER) + 1 + strlen(label); *p; p++)
		if (*p == ',')
			*p = '+';
	return path;
}
