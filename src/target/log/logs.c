#include "target/log/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"

enum {
	CHUNK = 65536,
	AT_ONCE = 64,   /* chunks read before the caller gets its turn */
	GATHER_NS = 200000, /* how late a line may be seen for the sake of those after it */
	LOOK_MS = 100,  /* how often the name of a file is looked up again */
};

struct logs {
	char *path;
	int fd;         /* -1: not there yet */
	int notify;     /* tells when the file grows; -1: it is a pipe, or that cannot be had */
	int watch;
	bool pipe;
	bool named;     /* a pipe with a name: other writers may come */
	uint64_t offset, looked_ns;
	char line[LOGS_LINE + 1]; /* the beginning of the current line */
	size_t n;
	bool cut;       /* the rest of this line is dropped */
	struct logs_counts counts;
};

const struct logs_counts *logs_counted(const struct logs *l)
{
	return &l->counts;
}

static void watch(struct logs *l)
{
	if (l->notify < 0)
		return;
	if (l->watch >= 0)
		inotify_rm_watch(l->notify, l->watch);
	l->watch = inotify_add_watch(l->notify, l->path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
}

/* Opens the file that the name refers to now. from_end: skips its present content. */
static int open_file(struct logs *l, bool from_end)
{
	int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))) {
		fd_close(&fd);
		return -ENOTSUP;
	}
	fd_close(&l->fd);
	l->fd = fd;
	l->pipe = l->named = !S_ISREG(st.st_mode);
	l->offset = from_end ? st.st_size : 0;
	if (!l->pipe)
		watch(l);
	return 0;
}

int logs_open(const char *path, int fd, struct logs **ret, bool *ret_missing, struct err *err)
{
	struct logs *l = mem_alloc(sizeof(*l));
	int r = 0;

	l->path = mem_strdup(path);
	l->fd = fd;
	l->watch = l->notify = -1;
	if (ret_missing)
		*ret_missing = false;
	if (fd >= 0) {
		l->pipe = true;
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	} else {
		l->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		r = open_file(l, true);
		if (r == -ENOENT && ret_missing) {
			*ret_missing = true;
			r = 0;
		}
	}
	if (r < 0) {
		logs_close(l);
		if (r == -ENOTSUP)
			return err_set(err, EINVAL, "%s is neither a file nor a pipe: name the node's log", path);
		return err_errno(err, -r, "cannot read the log %s", path);
	}
	*ret = l;
	return 0;
}

void logs_close(struct logs *l)
{
	if (!l)
		return;
	fd_close(&l->fd);
	fd_close(&l->notify);
	free(l->path);
	free(l);
}

static void end_line(struct logs *l, uint64_t now, logs_fn *fn, void *context)
{
	if (l->n && l->line[l->n - 1] == '\r')
		l->n--;
	l->line[l->n] = 0;
	l->counts.lines++;
	fn(context, l->line, l->n, now);
	l->n = 0;
	l->cut = false;
}

static void take(struct logs *l, const char *data, size_t n, uint64_t now, logs_fn *fn, void *context)
{
	for (size_t i = 0; i < n; i++) {
		if (data[i] == '\n') {
			end_line(l, now, fn, context);
		} else if (l->n < LOGS_LINE) {
			l->line[l->n++] = data[i] ? data[i] : ' ';
		} else if (!l->cut) {
			l->cut = true;
			l->counts.too_long++;
		}
	}
}

/* Half a line will not be finished: its file was shortened or is gone. */
static void drop_half(struct logs *l)
{
	l->counts.unfinished += l->n > 0;
	l->n = 0;
	l->cut = false;
}

/* 0; 1 at the end of a pipe; -errno. */
static int read_on(struct logs *l, logs_fn *fn, void *context)
{
	char data[CHUNK];

	for (int i = 0; i < AT_ONCE && l->fd >= 0; i++) {
		ssize_t n = l->pipe ? read(l->fd, data, sizeof(data)) :
				      pread(l->fd, data, sizeof(data), (off_t)l->offset);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (!n)
			return l->pipe && !l->named;
		l->offset += n;
		take(l, data, n, clock_mono_ns(), fn, context);
	}
	return 0;
}

/* A file that became shorter is another text from its beginning on. */
static void check_size(struct logs *l)
{
	struct stat st;

	if (l->pipe || l->fd < 0 || fstat(l->fd, &st) || (uint64_t)st.st_size >= l->offset)
		return;
	l->counts.shortened++;
	drop_half(l);
	l->offset = 0;
}

/* Checks whether the name still refers to the open file. */
static int check_name(struct logs *l, logs_fn *fn, void *context)
{
	struct stat now, ours;
	int r;

	if (l->pipe || stat(l->path, &now))
		return 0; /* moved away, and the new one is not there yet: the old one may still grow */
	if (l->fd >= 0 && !fstat(l->fd, &ours) && ours.st_ino == now.st_ino && ours.st_dev == now.st_dev)
		return 0;
	if (l->fd >= 0) {
		r = read_on(l, fn, context);
		if (r < 0)
			return r;
		l->counts.rotated++;
		drop_half(l);
	}
	r = open_file(l, false);
	return r < 0 ? (r == -ENOENT ? 0 : r) : read_on(l, fn, context);
}

void logs_skip(struct logs *l)
{
	char data[CHUNK];
	struct stat st;

	if (l->fd < 0)
		return;
	if (l->pipe)
		while (read(l->fd, data, sizeof(data)) > 0)
			;
	else if (!fstat(l->fd, &st))
		l->offset = st.st_size;
	l->n = 0;
	l->cut = false;
}

int logs_wait(struct logs *l, int timeout_ms, logs_fn *fn, void *context)
{
	struct pollfd p = { .fd = l->pipe ? l->fd : l->notify, .events = POLLIN };
	char events[4096];
	int r;

	poll(&p, 1, l->pipe ? timeout_ms : MIN(timeout_ms, (int)LOOK_MS));
	/* A node that writes a line at a time, thousands a second, shall not wake us for each. */
	if (p.revents && timeout_ms)
		nanosleep(&(struct timespec){ .tv_nsec = GATHER_NS }, NULL);
	if (l->named && p.revents & POLLHUP && !(p.revents & POLLIN))
		poll(NULL, 0, MIN(timeout_ms, (int)LOOK_MS)); /* no writer: poll() returns at once */
	/* The events' content does not matter: the file is checked. */
	while (l->notify >= 0 && read(l->notify, events, sizeof(events)) > 0)
		;
	check_size(l);
	r = read_on(l, fn, context);
	if (r || clock_mono_ns() - l->looked_ns < LOOK_MS * 1000000ULL)
		return r;
	l->looked_ns = clock_mono_ns();
	return check_name(l, fn, context);
}
