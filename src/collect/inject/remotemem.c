#include "collect/inject/remotemem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/inject/tracee.h"

enum { LOOKED_AT = 256, TRIES = 3, MOST_SEIZED = 5, END_WAITS = 40000 };

/* Tried again: an error may pass, and a slot that is left stays ours. */
int remotemem_get(const struct remotemem *m, uint64_t address, void *ret, size_t n)
{
	ssize_t done = -1;

	for (int k = 0; k < TRIES && done != (ssize_t)n; k++)
		done = pread(m->file, ret, n, address);
	return done == (ssize_t)n ? 0 : done < 0 ? -errno : -EIO;
}

int remotemem_put(const struct remotemem *m, uint64_t address, const void *data, size_t n)
{
	int fd = m->traced >= 0 ? m->traced : m->file, e;
	ssize_t done = -1;
	char byte;

	for (int k = 0; k < TRIES && done != (ssize_t)n; k++)
		done = pwrite(fd, data, n, address);
	if (done == (ssize_t)n)
		return 0;
	e = done < 0 ? errno : EIO;
	return done < 0 && e == EIO && !remotemem_get(m, address, &byte, 1) ? -EACCES : -e;
}

/* --- as a tracer --- */

/* For one thread of ours. */
struct tracing {
	struct remotemem *m;
	pid_t own;
	uint64_t proof;
	int (*write)(void *context);
	void *context;
	int result;
	struct err err; /* text: no thread could be seized */
};

/*
 * Seizes a thread. Its memory is opened before: on kernels before 5.11 an exec of another thread would hold
 * that up until the seized thread is let go. -1 and errno.
 */
static int seize(pid_t pid, pid_t tid)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task/%d/mem", pid, tid);
	int memory = open(path, O_RDWR | O_CLOEXEC);

	if (memory >= 0 && ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) {
		int e = errno;

		close(memory);
		errno = e;
		return -1;
	}
	return memory;
}

/* The first that can be, which is the main thread as a rule. Returns the file of its memory, or a negative
 * errno. */
static int seize_any(struct tracing *t)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task", t->m->pid);
	DIR *d = opendir(path);
	struct dirent *e;
	int memory = -1, code = ESRCH;
	pid_t last = t->m->pid;

	for (int looked = 0; d && memory < 0 && looked < LOOKED_AT && (e = readdir(d)); looked++) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0)
			continue;
		memory = seize(t->m->pid, tid);
		if (memory < 0 && errno != ESRCH && errno != ENOENT) {
			code = errno;
			last = tid;
		}
	}
	if (d)
		closedir(d);
	return memory < 0 ? tracee_refused(t->m->pid, last, code, &t->err) : memory;
}

/* Is it the memory that we know? The process may have executed another program, which is no concern of ours.
 */
static bool is_same(const struct tracing *t, int memory)
{
	char known[REMOTEMEM_PROOF], there[REMOTEMEM_PROOF];

	return !remotemem_get(t->m, t->proof, known, sizeof(known)) &&
	       pread(memory, there, sizeof(there), t->proof) == sizeof(there) &&
	       !memcmp(known, there, sizeof(known));
}

static void *trace(void *context)
{
	struct tracing *t = context;
	_cleanup_fd_ int memory = -1;

	t->own = syscall(SYS_gettid);
	memory = seize_any(t);
	if (memory < 0) {
		t->result = memory;
	} else if (!is_same(t, memory)) {
		t->result = -ESRCH;
	} else {
		t->m->traced = memory;
		t->result = t->write(t->context);
		t->m->traced = -1;
	}
	return NULL;
}

/* A thread lets go of those that it traces when it ends, which is after pthread_join() has returned. */
static void wait_end(pid_t own)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	for (int k = 0; k < END_WAITS && !syscall(SYS_tgkill, getpid(), own, 0); k++)
		nanosleep(&nap, NULL);
}

/* Signals stay with the threads that are there already. */
static int start(pthread_t *thread, struct tracing *t)
{
	sigset_t every, before;
	int e;

	sigfillset(&every);
	pthread_sigmask(SIG_BLOCK, &every, &before);
	e = pthread_create(thread, NULL, trace, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return e;
}

/* A thread of the process that ends can be written by no more: then another one is seized. Never two at a
 * time: an exec that waits for the first would hold up the second for ever. */
static void write_traced(struct tracing *t)
{
	for (int k = 0; k < MOST_SEIZED; k++) {
		pthread_t thread;
		int e = start(&thread, t);

		if (e) {
			t->result = err_errno(&t->err, e, "no thread can be started for that");
			return;
		}
		pthread_join(thread, NULL);
		wait_end(t->own);
		if (t->result != -EACCES || t->err.text[0])
			return;
	}
}

int remotemem_write(struct remotemem *m, uint64_t proof, int (*write)(void *context), void *context,
		    struct err *err)
{
	struct tracing t = { .m = m, .proof = proof, .write = write, .context = context };

	t.result = m->must_trace && !m->is_tracer ? -EACCES : write(context);
	if (t.result == -EACCES && !m->is_tracer) {
		m->must_trace = true;
		write_traced(&t);
	}
	if (t.result >= 0)
		return t.result;
	if (t.err.text[0])
		return err_set(err, -t.result,
			       "the kernel lets only a tracer write to read-only memory of a process, and %s",
			       t.err.text);
	if (t.result == -EACCES)
		return tracee_readonly(m->pid, err);
	return t.result == -ESRCH
		       ? err_set(err, ESRCH, "process %d has ended, or has executed another program", m->pid)
		       : err_errno(err, -t.result, "cannot write to process %d", m->pid);
}

/* The child of a check has the same at the same address, read-only as here. */
static const char same[REMOTEMEM_PROOF] = "gasflame";

static int write_same(void *context)
{
	return remotemem_put(context, (uintptr_t)same, same, sizeof(same));
}

int remotemem_check(struct err *err)
{
	pid_t child = fork();
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", child);
	struct remotemem m = { .pid = child, .file = -1, .traced = -1 };
	int r;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (child < 0)
		return err_errno(err, errno, "cannot start a child");
	m.file = open(path, O_RDWR | O_CLOEXEC);
	r = m.file < 0 ? err_errno(err, errno, "cannot open the memory of a child")
		       : remotemem_write(&m, (uintptr_t)same, write_same, &m, err);
	fd_close(&m.file);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return r;
}
