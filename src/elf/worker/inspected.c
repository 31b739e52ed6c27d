#include "elf/worker/inspected.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "elf/symbols.h"

enum { MANY = 128 };

struct inspected_file {
	struct stat st;
	struct symbols_info info;
};

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && same_time(&a->st_mtim, &b->st_mtim) &&
	       same_time(&a->st_ctim, &b->st_ctim);
}

bool inspected_find(const struct inspected *in, int fd, struct stat *ret_now, struct symbols_info *ret)
{
	if (fstat(fd, ret_now))
		*ret_now = (struct stat){ 0 };
	for (size_t i = 0; i < in->files.n; i++)
		if (same_file(&in->files.v[i]->st, ret_now)) {
			*ret = in->files.v[i]->info;
			return true;
		}
	return false;
}

void inspected_put(struct inspected *in, const struct stat *st, const struct symbols_info *info)
{
	struct inspected_file *f;

	if (!S_ISREG(st->st_mode))
		return;
	if (in->files.n >= MANY)
		inspected_done(in);
	f = mem_alloc(sizeof(*f));
	*f = (struct inspected_file){ *st, *info };
	vec_push(&in->files, f);
}

void inspected_done(struct inspected *in)
{
	vec_done_each(&in->files, f, free(*f));
}
