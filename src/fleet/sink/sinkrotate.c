#include "fleet/sink/sinkrotate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"

/* A folder of a target's day. */
struct day {
	char *target, *name; /* "2026-11-17" */
	uint64_t bytes;
};

/* A capture of one of the days that are looked at. */
struct file {
	char *name;
	uint64_t bytes;
	size_t day;
};

struct rotation {
	int base;
	VEC(struct day) days;
};

/* --- names --- */

/* "d" of the form is a digit; all else is itself. Returns what follows; NULL: it has another form. */
static const char *has_form(const char *s, const char *form)
{
	for (; *form; s++, form++)
		if (*form == 'd' ? *s < '0' || *s > '9' : *s != *form)
			return NULL;
	return s;
}

static bool is_day(const char *name)
{
	const char *rest = has_form(name, "dddd-dd-dd");

	return rest && !*rest;
}

static bool is_capture(const char *name)
{
	const char *rest = has_form(name, "dddddd-d");

	return rest && !strcmp(rest + strspn(rest, "0123456789"), ".gasflame");
}

static bool is_target(const char *name)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";

	return *name != '.' && !name[strspn(name, bytes)];
}

/* When it was recorded, in seconds since 1970; -1: at no time. */
static int64_t time_of(const char *day, const char *file)
{
	struct tm tm = { 0 };

	if (!strptime(day, "%Y-%m-%d", &tm) || !strptime(file, "%H%M%S", &tm))
		return -1;
	return timegm(&tm);
}

/* --- looking --- */

typedef void found_fn(void *context, int folder, const char *name);

static int list(int at, const char *name, bool (*fits)(const char *), found_fn *found, void *context)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(&fd);
		return -errno;
	}
	for (struct dirent *e; (e = readdir(dir));)
		if (fits(e->d_name))
			found(context, dirfd(dir), e->d_name);
	closedir(dir);
	return 0;
}

static uint64_t size_of(int folder, const char *name)
{
	struct stat st;

	return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) ? st.st_size : 0;
}

static void add_bytes(void *context, int folder, const char *name)
{
	*(uint64_t *)context += size_of(folder, name);
}

struct targeting {
	struct rotation *r;
	const char *target;
};

static void add_day(void *context, int folder, const char *name)
{
	const struct targeting *t = context;
	struct day day = { .target = mem_strdup(t->target), .name = mem_strdup(name) };

	list(folder, name, is_capture, add_bytes, &day.bytes);
	vec_push(&t->r->days, day);
}

static void add_target(void *context, int folder, const char *name)
{
	struct targeting t = { context, name };

	list(folder, name, is_day, add_day, &t);
}

static int by_day(const void *a, const void *b)
{
	const struct day *x = a, *y = b;

	return strcmp(x->name, y->name) ?: strcmp(x->target, y->target);
}

/* --- removing --- */

struct filing {
	VEC(struct file) list;
	size_t day;
};

static void add_file(void *context, int folder, const char *name)
{
	struct filing *f = context;

	vec_push(&f->list, (struct file){ .name = mem_strdup(name), .bytes = size_of(folder, name), .day = f->day });
}

static int by_time(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return strncmp(x->name, y->name, 6) ?: ORDER(x->day, y->day);
}

static int day_open(const struct rotation *r, const struct day *day)
{
	_cleanup_fd_ int target = openat(r->base, day->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return target < 0 ? -1 : openat(target, day->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_file(const struct rotation *r, const struct file *f)
{
	_cleanup_fd_ int folder = day_open(r, &r->days.v[f->day]);

	if (folder >= 0)
		unlinkat(folder, f->name, 0);
}

/* Goes only where it is empty: that is what the kernel checks. */
static void remove_folders(const struct rotation *r, const struct day *day)
{
	_cleanup_fd_ int target = openat(r->base, day->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (target >= 0 && !unlinkat(target, day->name, AT_REMOVEDIR))
		unlinkat(r->base, day->target, AT_REMOVEDIR);
}

/* The days [from, to), which are one: removes files while there is too much, or they are too old. True: there is no more to do. */
static bool thin(const struct rotation *r, size_t from, size_t to, uint64_t most, int64_t oldest, uint64_t *bytes)
{
	struct filing f = { 0 };
	bool enough = false;

	for (f.day = from; f.day < to; f.day++) {
		_cleanup_fd_ int folder = day_open(r, &r->days.v[f.day]);

		if (folder >= 0)
			list(folder, ".", is_capture, add_file, &f);
	}
	vec_sort(&f.list, by_time);
	for (size_t i = 0; i < f.list.n && !enough; i++) {
		const struct file *x = &f.list.v[i];

		enough = *bytes <= most && time_of(r->days.v[x->day].name, x->name) >= oldest;
		if (!enough) {
			remove_file(r, x);
			*bytes -= MIN(*bytes, x->bytes);
		}
	}
	vec_done_each(&f.list, e, free(e->name));
	for (size_t i = from; i < to; i++)
		remove_folders(r, &r->days.v[i]);
	return enough;
}

int sinkrotate(int base, const struct sinkrotate_limits *limits, uint64_t now_wall_ns, struct sinkrotate *state, struct err *err)
{
	struct rotation r = { .base = base };
	uint64_t bytes = 0, most = UINT64_MAX;
	int64_t oldest = limits->keep_ns && now_wall_ns > limits->keep_ns ? (now_wall_ns - limits->keep_ns) / 1000000000 : INT64_MIN;
	int e = list(base, ".", is_target, add_target, &r);
	bool enough = false;

	if (e)
		return err_errno(err, -e, "cannot look through the captures");
	vec_sort(&r.days, by_day);
	for (size_t i = 0; i < r.days.n; i++)
		bytes += r.days.v[i].bytes;
	if (limits->keep_bytes && bytes + limits->room_bytes > limits->keep_bytes)
		most = MIN(limits->keep_bytes - limits->room_bytes, limits->keep_bytes / 20 * 19);
	for (size_t i = 0, next; i < r.days.n && !enough; i = next) {
		for (next = i + 1; next < r.days.n && !strcmp(r.days.v[next].name, r.days.v[i].name);)
			next++;
		enough = thin(&r, i, next, most, oldest, &bytes);
	}
	state->bytes = bytes;
	vec_done_each(&r.days, d, free(d->target); free(d->name));
	return 0;
}
