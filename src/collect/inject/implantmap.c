#include "collect/inject/implantmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/inject/blobhead.h"
#include "collect/inject/blobkind.h"
#include "collect/inject/ptracecall.h"
#include "collect/inject/tracee.h"
#include "target/proc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

enum {
	ERRORS = 4096, /* results of system calls from -4095 on */
	/* Nobody can make them smaller, which would kill whoever reads what is gone: us. */
	SHARED_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	IMAGE_SEALS = SHARED_SEALS | F_SEAL_WRITE,
};

/* --- files that may be anything --- */

/* All memfds are of one device, which nothing else is but shared memory. 0: it cannot be found out, errno says why. */
static dev_t memfd_device(void)
{
	static dev_t device;
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (device)
		return device;
	fd = memfd_create("gasflame", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0) /* before 6.3 */
		fd = memfd_create("gasflame", MFD_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st))
		device = st.st_dev;
	return device;
}

/* A memfd as it is made: empty, without a name in any folder, and with no seal that was set later. */
static bool is_new(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);
	struct stat st;

	return seals >= 0 && !(seals & ~F_SEAL_EXEC) && (flags & O_ACCMODE) == O_RDWR && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       !st.st_nlink && !st.st_size && st.st_dev == memfd_device();
}

/* A memfd that we have filled and sealed once. */
static bool is_sealed(int fd, int wanted, int unwanted, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & wanted) == wanted && !(seals & unwanted) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size && st.st_dev == memfd_device();
}

static bool has_our_code(const struct blobkind *k, int fd)
{
	_cleanup_free_ char *now = mem_alloc(k->image_bytes);

	return is_sealed(fd, IMAGE_SEALS, 0, k->image_bytes) &&
	       pread(fd, now, k->image_bytes, 0) == (ssize_t)k->image_bytes && !memcmp(now, k->image, k->image_bytes);
}

static bool is_our_shared(const struct blobkind *k, int fd)
{
	return is_sealed(fd, SHARED_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE, k->shared_bytes);
}

static char *map_files_path(pid_t pid, uint64_t start, uint64_t end)
{
	return mem_printf("/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start, (unsigned long long)end);
}

/* Is it this file that is mapped there? Asks nobody but the kernel: what is mapped may be a file that never answers. */
static bool is_mapped(pid_t pid, uint64_t start, uint64_t end, int fd)
{
	_cleanup_free_ char *path = map_files_path(pid, start, end);
	struct statx there;
	struct stat here;

	return !fstat(fd, &here) && !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &there) &&
	       there.stx_ino == here.st_ino && makedev(there.stx_dev_major, there.stx_dev_minor) == here.st_dev;
}

/* --- the operation --- */

struct operation {
	const struct blobkind *kind;
	struct ptracecall *r;
	int pidfd, memory;
	int own;         /* the memory as the file of the stopped thread, -1: was not needed yet */
	uint64_t base;   /* of all that is mapped */
	int64_t number;  /* of the memfd in the process, and ours of the same file; -1: there is none */
	int file;
};

static bool failed(int64_t result)
{
	return result < 0 && result > -ERRORS;
}

/*
 * Writes to memory that is read-only in the process. -EACCES: the kernel refuses that; -EAGAIN: the process has another memory by
 * now. Some kernels allow it only to the tracer of the thread whose file it is (remotemem.h), and the stopped
 * thread need not be the main one.
 */
static int put(struct operation *o, uint64_t at, const void *data, size_t n)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task/%d/mem", o->r->pid, o->r->tid), *now = mem_alloc(n);

	if (pwrite(o->memory, data, n, at) == (ssize_t)n)
		return 0;
	if (pread(o->memory, now, n, at) != (ssize_t)n)
		return -EAGAIN;
	if (o->own < 0)
		o->own = open(path, O_RDWR | O_CLOEXEC);
	if (o->own < 0)
		return -EAGAIN;
	if (pwrite(o->own, data, n, at) != (ssize_t)n)
		return -EACCES;
	return pread(o->memory, now, n, at) == (ssize_t)n && !memcmp(now, data, n) ? 0 : -EAGAIN;
}

/*
 * The descriptor as it is now, and it may be anything. Where we may not ask for it (filters of containers that do not
 * know that call) it is opened, but only if it is a memfd: opening other files may do something, or never end. -1 and errno.
 */
static int take(const struct operation *o)
{
	_cleanup_free_ char *there = mem_printf("/proc/%d/fd/%lld", o->r->pid, (long long)o->number), *here = NULL;
	_cleanup_fd_ int named = -1;
	int fd = syscall(SYS_pidfd_getfd, o->pidfd, (int)o->number, 0);
	struct stat st;

	if (fd >= 0 || errno == EBADF)
		return fd;
	named = open(there, O_PATH | O_CLOEXEC);
	if (named < 0 || fstat(named, &st) < 0 || st.st_dev != memfd_device() || !S_ISREG(st.st_mode)) {
		errno = named < 0 && errno != ENOENT ? errno : EBADF;
		return -1;
	}
	here = mem_printf("/proc/self/fd/%d", named);
	return open(here, O_RDWR | O_CLOEXEC);
}

/* Other threads may have closed it, or put something of their own in its place: that is not ours to close. */
static void close_there(struct operation *o)
{
	_cleanup_fd_ int now = o->number < 0 ? -1 : take(o);
	struct stat a, b;

	if (now >= 0 && o->file >= 0 && !fstat(now, &a) && !fstat(o->file, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev)
		ptracecall_call(o->r, SYS_close, o->number, 0, 0, 0, 0, 0);
	o->number = -1;
	fd_close(&o->file);
}

static int exchanged(const struct operation *o, struct err *err)
{
	return err_set(err, EAGAIN, "process %d closes or exchanges descriptors that are not its own, also that of the memory "
		       "which it made for us: nothing was written to any other; try again", o->r->pid);
}

/* The process makes a memfd, we take it. Its name is in the fixed part for the moment. */
static int make_memfd(struct operation *o, unsigned wanted, struct err *err)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	uint64_t name = o->base + o->kind->fixed_at;

	o->number = ptracecall_call(o->r, SYS_memfd_create, name, flags | wanted, 0, 0, 0, 0);
	if (o->number == -EINVAL) /* before 6.3 */
		o->number = ptracecall_call(o->r, SYS_memfd_create, name, flags, 0, 0, 0, 0);
	if (failed(o->number))
		return err_errno(err, -o->number, "process %d cannot make a memfd", o->r->pid);
	o->file = take(o);
	if (o->file < 0 && errno != EBADF)
		return err_errno(err, errno, "cannot take the memory that process %d made for us", o->r->pid);
	if (o->file < 0 || !is_new(o->file)) {
		fd_close(&o->file);
		return exchanged(o, err);
	}
	return 0;
}

static int changed(const struct operation *o, struct err *err)
{
	return err_set(err, EAGAIN, "process %d changed our memory while we put it there: try again", o->r->pid);
}

static int map_image(struct operation *o, struct err *err)
{
	const struct blobkind *k = o->kind;
	int64_t at;
	int e = make_memfd(o, MFD_EXEC, err);

	if (e < 0)
		return e;
	/* A part of it would be found out below. */
	if (pwrite(o->file, k->image, k->image_bytes, 0) < 0)
		return err_errno(err, errno, "cannot write our code for process %d", o->r->pid);
	/* From here on nobody can change it; somebody may have done so before. */
	if (fcntl(o->file, F_ADD_SEALS, IMAGE_SEALS) < 0 || !has_our_code(k, o->file))
		return changed(o, err);
	at = ptracecall_call(o->r, SYS_mmap, o->base, k->fixed_at, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			     o->number, 0);
	if (at == -EBADF)
		return exchanged(o, err);
	if (failed(at))
		return err_errno(err, -at, "process %d cannot map our code", o->r->pid);
	if (!is_mapped(o->r->pid, o->base, o->base + k->fixed_at, o->file))
		return changed(o, err);
	close_there(o);
	return 0;
}

static int map_shared(struct operation *o, struct err *err)
{
	const struct blobkind *k = o->kind;
	uint64_t at = o->base + k->shared_at;
	int64_t e = make_memfd(o, MFD_NOEXEC_SEAL, err);

	if (e < 0)
		return e;
	if (ftruncate(o->file, k->shared_bytes) < 0)
		return err_errno(err, errno, "cannot make room for the figures of process %d", o->r->pid);
	if (fcntl(o->file, F_ADD_SEALS, SHARED_SEALS) < 0 || !is_our_shared(k, o->file))
		return changed(o, err);
	e = ptracecall_run(o->r, o->base + k->setup_at, o->number, k->shared_bytes, 0, 0);
	if (e == -EBADF || e == -EACCES)
		return exchanged(o, err);
	if (e == 1 && k->refused)
		return err_set(err, ENOTSUP, "process %d %s", o->r->pid, k->refused);
	if (e)
		return err_errno(err, failed(e) ? -e : EIO, "process %d cannot map our memory", o->r->pid);
	if (!is_mapped(o->r->pid, at, at + k->shared_bytes, o->file))
		return changed(o, err);
	close_there(o);
	return 0;
}

/* The last of it: whoever finds this finds all. */
static int write_head(struct operation *o, struct err *err)
{
	const struct blobkind *k = o->kind;
	const struct blob_head head = { .magic = k->magic, .version = k->version, .size = k->fixed_bytes, .image = o->base };

	return put(o, o->base + k->fixed_at, &head, sizeof(head)) ? changed(o, err) : 0;
}

int implantmap_make_by(const struct blobkind *kind, struct ptracecall *r, int pidfd, int memory, struct err *err)
{
	struct operation o = { .kind = kind, .r = r, .pidfd = pidfd, .memory = memory, .own = -1, .number = -1, .file = -1 };
	const size_t total = kind->shared_at + kind->shared_bytes;
	int64_t at = ptracecall_call(r, SYS_mmap, 0, total, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int e = 0;

	if (failed(at))
		return err_errno(err, -at, "process %d cannot map memory for us", r->pid);
	o.base = at;
	/* Also the proof that the memory is still that of the program which is stopped: an exec may have come between. */
	e = put(&o, o.base + kind->fixed_at, kind->name, strlen(kind->name) + 1);
	if (e == -EACCES)
		tracee_readonly(r->pid, err);
	else if (e < 0)
		e = err_set(err, EAGAIN, "cannot write to the memory of process %d: it has executed another program "
			    "meanwhile, or ends; try again", r->pid);
	e = e ?: map_image(&o, err);
	e = e ?: map_shared(&o, err);
	e = e ?: write_head(&o, err);
	close_there(&o);
	/* Nothing leads there yet. */
	if (e < 0)
		ptracecall_call(r, SYS_munmap, o.base, total, 0, 0, 0, 0);
	fd_close(&o.own);
	return e;
}

struct report {
	int result;
	uint64_t stopped_ns;
	struct err err;
};

/*
 * The part during which the process must not be left alone: a child of its own session does it, so
 * that whatever becomes of gasflame, a thread that was stopped goes on as it was.
 */
static void operate(const struct blobkind *kind, pid_t pid, int pidfd, int memory, int out)
{
	_cleanup_fd_ int adjust = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	struct report s = { 0 };
	struct ptracecall r;

	/* The thread waits for us: nothing is more urgent, and there is nothing to be gained by our end. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	if (adjust >= 0)
		fd_write_all(adjust, "-1000", 5);
	setsid();
	s.result = ptracecall_stop(&r, pid, &s.err);
	if (!s.result) {
		s.result = implantmap_make_by(kind, &r, pidfd, memory, &s.err);
		s.stopped_ns = ptracecall_go(&r);
	}
	fd_write_all(out, &s, sizeof(s));
}

int implantmap_make(const struct blobkind *kind, pid_t pid, int pidfd, int memory, uint64_t *ret_stopped_ns,
		    struct err *err)
{
	struct report s = { 0 };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, errno, "cannot make a pipe");
	child = fork();
	if (!child) {
		operate(kind, pid, pidfd, memory, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	/* It takes its time only as long as it has changed nothing; from then on it must not be disturbed. */
	if (child < 0 || fd_read_all(ends[0], &s, sizeof(s)) != sizeof(s))
		s.result = err_set(&s.err, EIO, "the child that puts our code into process %d failed", pid);
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	*ret_stopped_ns = s.stopped_ns;
	if (s.result < 0 && err)
		*err = s.err;
	return s.result;
}

/* --- finding it --- */

/* Opens what is mapped there if that is a memfd, and the one that the list of mappings says. */
static int open_mapped(pid_t pid, const struct proc_mapping *m, int flags)
{
	_cleanup_free_ char *path = map_files_path(pid, m->start, m->end);
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	if (!memfd_device())
		return -errno;
	if (makedev(m->device_major, m->device_minor) != memfd_device())
		return -ENOENT;
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != m->inode || st.st_dev != memfd_device())
		return -ENOENT;
	r = fd;
	fd = -1;
	return r;
}

/* -ENOENT: nobody finished it. */
static int read_fixed(int memory, const struct proc_maps *maps, struct implantmap *m)
{
	const struct blobkind *k = m->kind;
	struct blob_head *f = m->fixed;
	uint64_t at = m->image + k->fixed_at;
	bool mapped = false;

	for (size_t i = 0; i < maps->list.n && !mapped; i++)
		mapped = at >= maps->list.v[i].start && at < maps->list.v[i].end;
	if (pread(memory, f, k->fixed_bytes, at) != (ssize_t)k->fixed_bytes)
		return mapped ? -EIO : -ENOENT;
	if (f->magic != k->magic)
		return -ENOENT;
	return f->version == k->version && f->size == k->fixed_bytes && f->image == m->image && f->slot_count <= k->slots_max ?
		0 : -EPROTO;
}

/* 0: it is there and ours now, -ENOENT: not there, or not what it was. */
static int take_shared(pid_t pid, const struct proc_maps *maps, struct implantmap *m)
{
	const size_t bytes = m->kind->shared_bytes;
	uint64_t at = m->image + m->kind->shared_at;
	const struct proc_mapping *found = NULL;
	void *shared;
	int r;

	for (size_t k = 0; k < maps->list.n && !found; k++)
		if (maps->list.v[k].start == at && maps->list.v[k].end == at + bytes && maps->list.v[k].writable &&
		    !maps->list.v[k].offset)
			found = &maps->list.v[k];
	r = found ? open_mapped(pid, found, O_RDWR) : -ENOENT;
	if (r < 0)
		return r;
	m->shared_file = r;
	if (!is_our_shared(m->kind, m->shared_file)) {
		fd_close(&m->shared_file);
		return -ENOENT;
	}
	if (flock(m->shared_file, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->shared_file, 0);
	if (shared == MAP_FAILED)
		return -errno;
	m->shared = shared;
	return 0;
}

/*
 * A blob of another version, whose hooks are in no slot: nothing leads there, and it stays only because nobody may unmap it. The
 * fixed part follows the image, and begins with its head, in each version. Whoever lies about it harms himself.
 */
static bool is_unused(const struct blobkind *kind, int memory, const struct proc_mapping *image)
{
	struct blob_head head;

	return pread(memory, &head, sizeof(head), image->end) == sizeof(head) && head.magic == kind->magic &&
	       head.image == image->start && !head.slot_count;
}

/* Checks one candidate. 1: all of it is there; 0: only the part that a child of fork has, and it matters. */
static int look_at(const struct blobkind *kind, pid_t pid, int memory, const struct proc_maps *maps,
		   const struct proc_mapping *image, struct implantmap *ret)
{
	int r, e;

	*ret = (struct implantmap){ .kind = kind, .image = image->start, .shared_file = -1, .fixed = mem_alloc(kind->fixed_bytes) };
	ret->image_file = open_mapped(pid, image, O_RDONLY);
	if (ret->image_file < 0)
		return ret->image_file;
	if (image->end - image->start != kind->fixed_at || !has_our_code(kind, ret->image_file))
		return is_unused(kind, memory, image) ? -ENOENT : -EPROTO;
	/* Once it is locked nobody else changes the rest. */
	r = take_shared(pid, maps, ret);
	if (r < 0 && r != -ENOENT)
		return r;
	e = read_fixed(memory, maps, ret);
	if (e < 0)
		return e == -EIO ? e : -ENOENT;
	if (!r)
		return 1;
	return ret->fixed->slot_count ? 0 : -ENOENT;
}

int implantmap_find(const struct blobkind *kind, pid_t pid, int memory, struct implantmap *ret, struct err *err)
{
	_cleanup_free_ char *named = mem_printf("/memfd:%s", kind->name);
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };
	int result = -ENOENT;
	bool busy = false;

	*ret = (struct implantmap){ .kind = kind, .image_file = -1, .shared_file = -1 };
	if (proc_maps_read(pid, false, &maps) < 0 || !maps.list.n)
		return err_set(err, ESRCH, "process %d has ended, or its main thread has", pid);
	for (size_t k = 0; k < maps.list.n; k++) {
		struct implantmap found;
		bool better;
		int r;

		if (!maps.list.v[k].executable || maps.list.v[k].offset || !str_starts(maps.list.v[k].path, named))
			continue;
		r = look_at(kind, pid, memory, &maps, &maps.list.v[k], &found);
		/* Of several, one whose hooks are in use. */
		better = r >= 0 && (result < 0 || (found.fixed->slot_count && !ret->fixed->slot_count));
		if (better) {
			implantmap_done(ret);
			*ret = found;
			result = 0;
			continue;
		}
		implantmap_done(&found);
		busy |= r == -EBUSY;
		if (r < 0 && r != -ENOENT && result < 0)
			result = r;
	}
	if (busy) {
		implantmap_done(ret);
		return err_set(err, EBUSY, "another gasflame records %s of process %d now", kind->records, pid);
	}
	if (result == -EPROTO)
		return err_set(err, EPROTO, "process %d has the hooks of another version of gasflame, or memory of their name that is "
			       "not ours: detach them with that version, or restart the process", pid);
	if (result < 0 && result != -ENOENT)
		return err_errno(err, -result, "cannot open our memory in process %d", pid);
	return result;
}

void implantmap_done(struct implantmap *m)
{
	if (m->shared)
		munmap(m->shared, m->kind->shared_bytes);
	fd_close(&m->image_file);
	fd_close(&m->shared_file);
	free(m->fixed);
	*m = (struct implantmap){ .image_file = -1, .shared_file = -1 };
}
