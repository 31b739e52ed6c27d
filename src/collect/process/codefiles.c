#include "collect/process/codefiles.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/map.h"
#include "target/open.h"
#include "target/proc.h"

static const uint64_t patience_ns = 10000000000, hurry_ns = 500000000;

static bool is_new(struct codefiles *c, uint32_t major_number, uint32_t minor_number, uint64_t inode)
{
	struct codefile f = { map_pair(major_number, minor_number), inode };

	for (size_t i = 0; i < c->seen.n; i++)
		if (c->seen.v[i].device == f.device && c->seen.v[i].inode == f.inode)
			return false;
	vec_push(&c->seen, f);
	return true;
}

int codefiles_of_process(struct codefiles *c, pid_t pid, codefiles_fn *fn, void *context, struct err *err)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };
	uint64_t until = clock_mono_ns() + (c->hurry ? hurry_ns : patience_ns);
	int r = proc_maps_read(pid, true, &maps);

	if (r < 0)
		return err_errno(err, -r, "cannot read the mappings of process %d", pid);
	for (size_t i = 0; r >= 0 && i < maps.list.n && clock_mono_ns() < until; i++) {
		const struct proc_mapping *m = &maps.list.v[i];
		_cleanup_fd_ int fd = -1;

		if (m->inode && is_new(c, m->device_major, m->device_minor, m->inode) &&
		    target_open_mapping(pid, m, &fd, NULL) >= 0)
			r = fn(context, fd, m->path, err);
	}
	return r < 0 ? r : 0;
}

int codefiles_of_program(struct codefiles *c, const char *path, codefiles_fn *fn, void *context, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_new(c, major(st.st_dev), minor(st.st_dev), st.st_ino))
		return 0;
	return fn(context, fd, path, err);
}

void codefiles_done(struct codefiles *c)
{
	vec_done(&c->seen);
}
