#include "sandbox/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "sandbox/rights.h"

/* As /etc/passwd says; no name service, which could be anything. */
static void look_up(struct owner_choice *o)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	while (f && !o->name && (pw = fgetpwent(f)))
		if (pw->pw_uid == o->uid) {
			o->gid = pw->pw_gid;
			o->name = mem_strdup(pw->pw_name);
			o->home = mem_strdup(pw->pw_dir);
		}
	if (f)
		fclose(f);
	if (!o->name)
		o->name = mem_printf("user %u", (unsigned)o->uid);
}

/* Could they open all of them? Asked of the kernel, for this thread alone. */
static bool can_read(const struct owner_choice *o, char *const *paths, size_t n)
{
	uid_t uid = setfsuid(o->uid);
	gid_t gid = setfsgid(o->gid);
	bool can = true;

	for (size_t i = 0; i < n; i++) {
		struct stat st;
		int fd;

		/* Opening and closing a pipe would send SIGPIPE to its writer. */
		if (!strcmp(paths[i], "-") || (!stat(paths[i], &st) && !S_ISREG(st.st_mode)))
			continue;
		fd = open(paths[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		can &= fd >= 0 || errno == ENOENT;
		fd_close(&fd);
	}
	setfsgid(gid);
	setfsuid(uid);
	return can;
}

void owner_find(struct owner_choice *ret, char *const *paths, size_t n)
{
	bool several = false;

	*ret = (struct owner_choice){ .kind = geteuid() ? OWNER_SELF : OWNER_ROOT };
	for (size_t i = 0; ret->kind != OWNER_SELF && i < n; i++) {
		struct stat st;

		if (!strcmp(paths[i], "-") || stat(paths[i], &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
			continue;
		several |= S_ISDIR(st.st_mode);
		if (!st.st_uid || several)
			continue;
		several |= ret->uid && ret->uid != st.st_uid;
		ret->kind = OWNER_USER;
		ret->uid = st.st_uid;
		ret->gid = st.st_gid;
		ret->file = paths[i];
	}
	if (ret->kind == OWNER_USER)
		look_up(ret);
	if (several || (ret->kind == OWNER_USER && !can_read(ret, paths, n)))
		ret->kind = OWNER_SEVERAL;
}

int owner_find_user(struct owner_choice *ret, uid_t uid)
{
	*ret = (struct owner_choice){ .kind = OWNER_USER, .uid = uid };
	look_up(ret);
	return uid && ret->home ? 0 : -ENOENT;
}

void owner_done(struct owner_choice *o)
{
	free(o->name);
	free(o->home);
}

int owner_become(const struct owner_choice *o, struct err *err)
{
	static const char *const foreign[] = { "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SUDO_UID", "SUDO_GID", "SUDO_HOME", "SUDO_USER" };
	int r = rights_become(o->uid, o->gid, 0);

	/* Root in a container may lack the right to become someone else, or not know them. */
	if (r == -EPERM || r == -EINVAL)
		return 0;
	if (r < 0)
		return err_errno(err, -r, "cannot become %s, who owns %s", o->name, o->file);
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		unsetenv(foreign[i]);
	if (o->home)
		setenv("HOME", o->home, 1);
	else
		unsetenv("HOME");
	return 0;
}
