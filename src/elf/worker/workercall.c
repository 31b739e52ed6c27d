/*
 * workercall.c - the child as a process: starts it, sends requests, enforces time
 * limits, ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/vec.h"
#include "elf/budget.h"
#include "elf/worker/worker.h"
#include "elf/worker/inspected.h"
#include "elf/worker/workerint.h"

/* A request about a file that took too long once is not repeated. */
struct given_up {
	dev_t device;
	ino_t inode;
	uint32_t op, flags;
};

/* A file that may have pages in the page cache because the child read it. */
struct left_behind {
	dev_t device;
	ino_t inode;
};

struct worker {
	pid_t pid; /* 0 = no child */
	int sock;
	bool greeted; /* the child has reported that it is in its sandbox */
	int cancel; /* an eventfd that is readable once all calls are cancelled */
	atomic_bool cancelled;
	uint64_t timeout_ns; /* for one call, where it is below the budget */
	uint64_t busy_ns;    /* CPU time of this child */
	uint64_t wasted_ns;  /* on files that were given up */
	VEC(struct given_up) given_up;
	VEC(struct left_behind) left_behind;
	uint64_t left_bytes;
	struct inspected inspected;
};

/* --- the child's side of the start --- */

static const char child_name[] = "gasflame-reader";
enum { CHILD_SOCKET = 3 };

static void __attribute__((noreturn)) be_child(int sock)
{
	struct worker_reply hello = { 0 };
	struct err err = { 0 };

	prctl(PR_SET_NAME, child_name, 0, 0, 0);
	hello.status = worker_sandbox(sock, &err);
	snprintf(hello.text, sizeof(hello.text), "%s", err.text);
	if (!fd_send(sock, &hello, sizeof(hello), NULL, 0) && !hello.status)
		worker_child_run(sock);
	_exit(0);
}

/*
 * The child is this program, executed again under another name, so that it has none of the parent's memory.
 * This runs before main(), so that any program that links it (each unit test does) can be its own child.
 */
static void __attribute__((constructor)) serve_if_child(int argc, char **argv)
{
	int type = 0;
	socklen_t size = sizeof(type);

	if (argc == 1 && argv[0] && !strcmp(argv[0], child_name) &&
	    !getsockopt(CHILD_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
		be_child(CHILD_SOCKET);
}

/* --- the parent's side --- */

struct worker *worker_new(void)
{
	struct worker *w = mem_alloc(sizeof(*w));

	w->sock = -1;
	w->timeout_ns = UINT64_MAX;
	w->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w;
}

/* Ends the child; returns its exit status, or -1 if it is not known. */
static int stop(struct worker *w)
{
	int status = -1;

	fd_close(&w->sock);
	if (w->pid) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	w->pid = 0;
	w->busy_ns = 0;
	return status;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	stop(w);
	fd_close(&w->cancel);
	vec_done(&w->given_up);
	vec_done(&w->left_behind);
	inspected_done(&w->inspected);
	free(w);
}

struct inspected *worker_inspected(struct worker *w)
{
	return &w->inspected;
}

void worker_set_timeout(struct worker *w, uint64_t timeout_ns)
{
	w->timeout_ns = timeout_ns;
}

void worker_cancel(struct worker *w)
{
	uint64_t one = 1;
	int saved = errno;

	atomic_store(&w->cancelled, true);
	if (write(w->cancel, &one, sizeof(one)) < 0)
		errno = saved; /* the counter is full: it is readable already */
}

bool worker_cancelled(const struct worker *w)
{
	return atomic_load(&w->cancelled);
}

pid_t worker_child_pid(const struct worker *w)
{
	return w->pid;
}

/* Returns the CPU time of the child, 0 if it is unknown. */
static uint64_t child_cpu_ns(const struct worker *w)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(w->pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

struct patience {
	uint64_t cpu_ns, wall_ns;
};

/* Waits for one reply. -ECHILD when the child died, -ETIMEDOUT when it is too slow. */
static int wait_reply(struct worker *w, struct patience p, struct worker_reply *ret)
{
	uint64_t start = clock_mono_ns(), cpu_start = child_cpu_ns(w);
	enum { LOOK_NS = 100000000 };

	for (;;) {
		uint64_t gone = clock_mono_ns() - start;
		uint64_t left = gone < p.wall_ns ? MIN(p.wall_ns - gone, (uint64_t)LOOK_NS) : 0;
		struct pollfd fds[] = { { .fd = w->sock, .events = POLLIN }, { .fd = w->cancel, .events = POLLIN } };
		int r = poll(fds, ARRAY_LEN(fds), (left + 999999) / 1000000);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (worker_cancelled(w))
			return -ECANCELED;
		if (r > 0 && fds[0].revents)
			break;
		if (clock_mono_ns() - start >= p.wall_ns || child_cpu_ns(w) - cpu_start >= p.cpu_ns)
			return -ETIMEDOUT;
	}
	w->busy_ns += clock_mono_ns() - start;
	if (fd_recv(w->sock, ret, sizeof(*ret), NULL, NULL) != sizeof(*ret))
		return -ECHILD;
	ret->text[sizeof(ret->text) - 1] = 0;
	return 0;
}

/* Reaps or kills the child and explains why it ended. */
static int explain_end(struct worker *w, int r, struct err *err)
{
	int status;

	/* A child that died has closed its socket and is a zombie: stop() returns its own status, not our
	 * SIGKILL. */
	status = stop(w);
	if (r == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "gave up: reading it took too long");
	if (r == -ECANCELED)
		return err_set(err, ECANCELED, "reading it was cancelled");
	if (status == -1 || !WIFSIGNALED(status))
		return err_set(err, ECHILD, "the process that reads it ended");
	switch (WTERMSIG(status)) {
	case SIGBUS:
		return err_set(err, EIO, "the file shrank while it was read");
	case SIGABRT:
		return err_set(err, ENOMEM, "reading it takes too much memory");
	case SIGSYS:
		return err_set(err, EPERM, "the process that reads it made a forbidden system call");
	case SIGXCPU:
		return err_set(err, ETIMEDOUT, "gave up: reading it took too long");
	}
	return err_set(err, ECHILD, "the process that reads it died of signal %d (%s)", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
}

/* Only the variables that the loader and the sanitizers need; the others may hold secrets. */
static void make_environment(char *out[16])
{
	static const char *const kept[] = { "LD_LIBRARY_PATH=", "LD_PRELOAD=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=",
					    "LSAN_OPTIONS=", "TSAN_OPTIONS=", "LC_ALL=" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		for (char **e = environ; e && *e && n < 15; e++)
			if (!strncmp(*e, kept[i], strlen(kept[i])))
				out[n++] = *e;
	out[n] = NULL;
}

/*
 * spawn() shares the parent's memory until exec, and copies none. /proc/self/exe is this program, also when
 * its file was deleted or replaced meanwhile; without /proc the path of its start is used.
 */
static int spawn_child(int sock, pid_t *ret)
{
	char *argv[] = { (char *)child_name, NULL }, *environment[16];
	const char *path = (const char *)getauxval(AT_EXECFN);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all;
	int r;

	make_environment(environment);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, sock, CHILD_SOCKET);
	posix_spawnattr_init(&attributes);
	/* No signal handler is inherited; signals stay blocked until the child ignores Ctrl-C. */
	sigfillset(&all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &all);
	r = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environment);
	if (r && path && *path == '/')
		r = posix_spawn(ret, path, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int spawn(struct worker *w, struct err *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, errno, "cannot make a socket for the process that reads files");
	r = spawn_child(pair[1], &w->pid);
	close(pair[1]);
	if (r) {
		w->pid = 0;
		close(pair[0]);
		return err_errno(err, r, "cannot start the process that reads files");
	}
	w->sock = pair[0];
	w->greeted = false;
	return 0;
}

void worker_start(struct worker *w)
{
	if (!w->pid && !worker_cancelled(w))
		spawn(w, NULL);
}

static bool has_ended(const struct worker *w)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, w->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* Makes sure that there is a child that takes requests. */
static int start(struct worker *w, struct err *err)
{
	struct worker_reply hello;
	int r = 0;

	if (worker_cancelled(w))
		return err_set(err, ECANCELED, "reading it was cancelled");
	/* The child is replaced before its own limit ends it, and when it died while it was idle. */
	if (w->pid && (w->busy_ns > BUDGET_CHILD_CPU_S * 1000000000ULL / 2 || has_ended(w)))
		stop(w);
	if (!w->pid)
		r = spawn(w, err);
	if (r || w->greeted)
		return r;
	r = wait_reply(w, (struct patience){ UINT64_MAX, 6 * BUDGET_WALL_NS }, &hello);
	if (r < 0)
		return explain_end(w, r, err);
	if (hello.status < 0) {
		stop(w);
		return err_set(err, -hello.status, "cannot start the process that reads files: %s",
			       hello.text);
	}
	w->greeted = true;
	return 0;
}

/* Makes a descriptor for the child, read-only: with a writable one it could write to the target's file. */
static int readable_copy(int fd, int *ret, struct err *err)
{
	char path[64];
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st))
		return err_errno(err, errno, "cannot use the descriptor");
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "not a regular file");
	if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH)) {
		*ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		*ret = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	return *ret < 0 ? err_errno(err, errno, "cannot reopen the file") : 0;
}

int worker_make_reply_file(struct err *err)
{
	int fd = memfd_create("gasflame-reply", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Sparse: only pages that the child writes take memory, and it cannot write past this size. */
	if (fd < 0 || ftruncate(fd, WORKER_MAX_REPLY) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int r = err_errno(err, errno, "cannot make a file for the answer");

		fd_close(&fd);
		return r;
	}
	return fd;
}

/* Copies the bulk out of the shared file before it is checked. */
static int copy_bulk(int fd, uint64_t n, char **ret, struct err *err)
{
	char *data;
	size_t got = 0;

	if (n > WORKER_MAX_REPLY)
		return err_set(err, EBADMSG, "the process that reads it gave a wrong answer");
	data = malloc(n + 1);
	if (!data)
		return err_set(err, ENOMEM, "no memory for the answer");
	while (got < n) {
		ssize_t r = pread(fd, data + got, n - got, got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			free(data);
			return err_errno(err, r ? errno : EIO, "cannot read the answer");
		}
		got += r;
	}
	*ret = data;
	return 0;
}

/* --- budgets --- */

static bool is_file(int i)
{
	return i == WORKER_FD_MAIN || i == WORKER_FD_DEBUG || i == WORKER_FD_ALT;
}

/* Returns the bytes on disk of a file; file systems that count no blocks are trusted. */
static uint64_t bytes_on_disk(const struct stat *st)
{
	return st->st_blocks ? MIN((uint64_t)st->st_size, st->st_blocks * 512ULL) : (uint64_t)st->st_size;
}

/* Computes the time limits of this call from its files. -ETIMEDOUT: one of them took too long before. */
static int measure(const struct worker *w, const struct worker_call *c, struct patience *ret, struct err *err)
{
	uint64_t bytes = 0;

	for (int i = 0; i < WORKER_FDS; i++) {
		struct stat st;

		if (!is_file(i) || c->fds[i] < 0 || fstat(c->fds[i], &st))
			continue;
		bytes += bytes_on_disk(&st);
		for (size_t k = 0; k < w->given_up.n; k++) {
			const struct given_up *g = &w->given_up.v[k];

			if (g->device == st.st_dev && g->inode == st.st_ino && g->op == c->request.op &&
			    g->flags == c->request.flags)
				return err_set(err, ETIMEDOUT, "gave up: reading it took too long");
		}
	}
	ret->cpu_ns = budget_cpu_ns(bytes, c->request.count, w->wasted_ns);
	ret->wall_ns = MIN(budget_wall_ns(ret->cpu_ns), w->timeout_ns);
	return 0;
}

static void note_given_up(struct worker *w, const struct worker_call *c, uint64_t took_ns)
{
	enum { MANY = 4096 };

	w->wasted_ns += took_ns;
	for (int i = 0; i < WORKER_FDS; i++) {
		struct stat st;

		if (is_file(i) && c->fds[i] >= 0 && !fstat(c->fds[i], &st) && w->given_up.n < MANY)
			vec_push(&w->given_up, (struct given_up){ st.st_dev, st.st_ino, c->request.op, c->request.flags });
	}
}

/* Pages that other processes map stay in the cache. */
static void give_back_cache(struct worker *w, const struct worker_call *c, bool all)
{
	for (int i = 0; i < WORKER_FDS; i++) {
		bool known = false;
		struct stat st;

		if (!is_file(i) || c->fds[i] < 0 || fstat(c->fds[i], &st))
			continue;
		for (size_t k = 0; k < w->left_behind.n && !known; k++)
			known = w->left_behind.v[k].device == st.st_dev && w->left_behind.v[k].inode == st.st_ino;
		if (!known && !all && w->left_behind.n < BUDGET_CACHE_FILES &&
		    bytes_on_disk(&st) <= BUDGET_CACHE_BYTES - MIN(w->left_bytes, BUDGET_CACHE_BYTES)) {
			vec_push(&w->left_behind, (struct left_behind){ st.st_dev, st.st_ino });
			w->left_bytes += bytes_on_disk(&st);
			known = true;
		}
		if (!known || all)
			posix_fadvise(c->fds[i], 0, 0, POSIX_FADV_DONTNEED);
	}
}

/* --- one call --- */

struct worker_call worker_call(enum worker_op op, int fd)
{
	return (struct worker_call){ .request.op = op, .fds = { -1, fd, -1, -1, -1 } };
}

void worker_call_done(struct worker_call *c)
{
	free(c->bulk);
}

/* Gathers descriptors for the child; owned gets those that were made for it. */
static int gather(struct worker_call *c, int *sent, size_t *count, int *owned, struct err *err)
{
	int r = 0;

	for (int i = 0; !r && i < WORKER_FDS; i++) {
		if (i == WORKER_FD_REPLY && c->fds[i] < 0) {
			owned[i] = worker_make_reply_file(err);
			r = owned[i] < 0 ? owned[i] : 0;
		} else if (c->fds[i] >= 0 && is_file(i)) {
			r = readable_copy(c->fds[i], &owned[i], err);
		}
		if (owned[i] >= 0 || c->fds[i] >= 0) {
			sent[(*count)++] = owned[i] >= 0 ? owned[i] : c->fds[i];
			c->request.have |= 1U << i;
		}
	}
	return r;
}

static int exchange(struct worker *w, struct worker_call *c, const int *sent, size_t count, struct patience p,
		    struct err *err)
{
	struct worker_reply reply;
	uint64_t start = clock_mono_ns();
	int r = fd_send(w->sock, &c->request, sizeof(c->request), sent, count);

	if (!r)
		r = wait_reply(w, p, &reply);
	if (r < 0) {
		r = explain_end(w, r, err);
		if (r == -ETIMEDOUT)
			note_given_up(w, c, clock_mono_ns() - start);
		return r;
	}
	if (reply.status < 0)
		return err_set(err, -reply.status, "%s", reply.text);
	r = copy_bulk(sent[0], reply.size, &c->bulk, err);
	if (!r)
		c->bulk_size = reply.size;
	return r;
}

int worker_ask(struct worker *w, struct worker_call *c, struct err *err)
{
	int sent[WORKER_FDS], owned[WORKER_FDS] = { -1, -1, -1, -1, -1 }, r;
	struct patience p;
	size_t count = 0;

	_Static_assert(WORKER_FDS == 5, "as many are set to -1");
	r = measure(w, c, &p, err);
	if (!r)
		r = start(w, err);
	if (!r)
		r = gather(c, sent, &count, owned, err);
	if (!r) {
		r = exchange(w, c, sent, count, p, err);
		give_back_cache(w, c, r == -ETIMEDOUT || r == -ENOMEM);
	}
	for (int i = 0; i < WORKER_FDS; i++)
		fd_close(&owned[i]);
	return r;
}

int worker_bad_answer(struct worker *w, struct err *err)
{
	stop(w);
	return err_set(err, EBADMSG, "the process that reads it gave a wrong answer");
}
