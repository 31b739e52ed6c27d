#include "base/file/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"

static const uint64_t limit_bytes = 1ULL << 30;
static const uint64_t forgotten_ns = 3600ULL * 1000000000; /* a file still being written is younger */

struct cache {
	int dir;
	uid_t uid; /* whose cache it is */
	gid_t gid;
	uint64_t opened_wall_ns;
	unsigned created;
};

/*
 * Under sudo the folder is the user's, and so must be every file in it; and root
 * must not follow links that only the user could follow. Looking at files as
 * the user (for this thread alone) gives both.
 */
struct as_user {
	uid_t uid;
	gid_t gid;
};

static struct as_user become(const struct cache *c)
{
	struct as_user old;

	old.gid = setfsgid(c->gid);
	old.uid = setfsuid(c->uid);
	return old;
}

static void become_back(struct as_user *old)
{
	setfsuid(old->uid);
	setfsgid(old->gid);
}
#define AS_USER(c) _cleanup_(become_back) struct as_user old_ __attribute__((unused)) = become(c)

/* The home of uid as /etc/passwd says; no name service, so that a static build can do it. */
static char *home_of(uid_t uid, gid_t *ret_gid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;
	char *home = NULL;

	while (f && !home && (pw = fgetpwent(f)))
		if (pw->pw_uid == uid) {
			home = mem_strdup(pw->pw_dir);
			*ret_gid = pw->pw_gid;
		}
	if (f)
		fclose(f);
	return home;
}

/* Returns the path of the cache and sets its owner. NULL if it is unknown. */
static char *folder_of(struct cache *c)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *sudo = getenv("SUDO_UID"), *home = getenv("HOME");
	_cleanup_free_ char *user_home = NULL;
	uint64_t uid;

	c->uid = geteuid();
	c->gid = getegid();
	if (!c->uid && sudo && !str_parse_uint(sudo, 1, UINT32_MAX - 1, &uid)) {
		c->uid = uid;
		user_home = home_of(c->uid, &c->gid);
		home = getenv("SUDO_HOME") ? getenv("SUDO_HOME") : user_home;
	}
	if (xdg && xdg[0] == '/')
		return mem_printf("%s/gasflame", xdg);
	return home && home[0] == '/' ? mem_printf("%s/.cache/gasflame", home) : NULL;
}

struct cache *cache_open(void)
{
	struct cache *c = mem_alloc(sizeof(*c));
	_cleanup_free_ char *path = folder_of(c);
	struct stat st;

	c->dir = -1;
	c->opened_wall_ns = clock_wall_ns();
	if (path) {
		AS_USER(c);

		if (!fd_make_dirs(path, 0700))
			mkdir(path, 0700);
		c->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	/* A folder of another user could hold anything under the right names. */
	if (c->dir < 0 || fstat(c->dir, &st) || st.st_uid != c->uid || st.st_mode & 022) {
		fd_close(&c->dir);
		free(c);
		return NULL;
	}
	return c;
}

int cache_open_folder(void)
{
	_cleanup_free_ struct cache *c = cache_open();

	return c ? c->dir : -1;
}

int cache_open_file(struct cache *c, const char *name)
{
	AS_USER(c);
	int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != c->uid || st.st_mode & 022) {
		close(fd);
		return -EPERM;
	}
	/* The file's time is its last use. */
	utimensat(c->dir, name, (struct timespec[]){ { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } },
		  AT_SYMLINK_NOFOLLOW);
	return fd;
}

int cache_create_file(struct cache *c, struct cache_new *ret)
{
	AS_USER(c);

	snprintf(ret->name, sizeof(ret->name), "tmp-%d-%u", getpid(), c->created++);
	unlinkat(c->dir, ret->name, 0);
	ret->fd = openat(c->dir, ret->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return ret->fd < 0 ? -errno : 0;
}

int cache_keep_file(struct cache *c, struct cache_new *f, const char *name)
{
	AS_USER(c);
	int r = renameat(c->dir, f->name, c->dir, name) ? -errno : 0;

	if (r)
		unlinkat(c->dir, f->name, 0);
	return r;
}

void cache_drop_file(struct cache *c, struct cache_new *f)
{
	cache_remove_file(c, f->name);
}

void cache_remove_file(struct cache *c, const char *name)
{
	AS_USER(c);

	unlinkat(c->dir, name, 0);
}

uint64_t cache_free_bytes(const struct cache *c)
{
	struct statvfs v;

	return fstatvfs(c->dir, &v) ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

/* --- the end: the oldest go --- */

struct aged {
	char *name;
	uint64_t used_ns, bytes;
};

static int compare_age(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	return ORDER(x->used_ns, y->used_ns);
}

static void prune(struct cache *c)
{
	VEC(struct aged) files = { 0 };
	int copy = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	uint64_t total = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct stat st;
		struct aged a;

		if (fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		a.used_ns = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
		a.bytes = st.st_blocks * 512ULL;
		/* Left over by a run that was killed. */
		if (str_starts(e->d_name, "tmp-") && a.used_ns + forgotten_ns < c->opened_wall_ns) {
			unlinkat(c->dir, e->d_name, 0);
			continue;
		}
		a.name = mem_strdup(e->d_name);
		total += a.bytes;
		vec_push(&files, a);
	}
	if (dir)
		closedir(dir);
	vec_sort(&files, compare_age);
	for (size_t i = 0; i < files.n; i++) {
		if (total > limit_bytes && files.v[i].used_ns < c->opened_wall_ns &&
		    !unlinkat(c->dir, files.v[i].name, 0))
			total -= files.v[i].bytes;
		free(files.v[i].name);
	}
	vec_done(&files);
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	/* Others' files are looked at only by a run that has added to them. */
	if (c->created) {
		AS_USER(c);
		prune(c);
	}
	close(c->dir);
	free(c);
}
