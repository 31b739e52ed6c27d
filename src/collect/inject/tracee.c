#include "collect/inject/tracee.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "target/proc.h"

enum { LOOKED_AT = 256 };

int tracee_read(pid_t pid, pid_t tid, struct tracee *ret)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task/%d/status", pid, tid), *text = NULL;
	const char *state, *seccomp, *ignored;
	size_t n;

	if (fd_read_path(path, 65536, &text, &n) < 0)
		return -ESRCH;
	state = strstr(text, "\nState:\t");
	seccomp = strstr(text, "\nSeccomp:");
	ignored = strstr(text, "\nSigIgn:");
	ret->ended = !state || strchr("ZXx", state[strlen("\nState:\t")]);
	ret->filtered = seccomp && atoi(seccomp + strlen("\nSeccomp:"));
	ret->ignores_trap = ignored && strtoull(ignored + strlen("\nSigIgn:"), NULL, 16) & 1ULL << (SIGTRAP - 1);
	return 0;
}

/* How well a thread suits: 0 best. By what it is blocked in, as /proc says. */
static int suits(pid_t pid, pid_t tid)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task/%d/syscall", pid, tid);
	_cleanup_free_ char *text = NULL;
	size_t n;
	long number;

	if (fd_read_path(path, 4096, &text, &n) < 0)
		return 3;
	if (str_starts(text, "running"))
		return 1;
	number = strtol(text, NULL, 10);
	switch (number) {
	case SYS_futex:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_ppoll:
	case SYS_read:
	case SYS_accept4:
#ifdef SYS_poll
	case SYS_poll:
#endif
		return 0; /* the kernel begins them anew, with the time that was left */
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
#ifdef SYS_pause
	case SYS_epoll_wait:
	case SYS_pause:
#endif
		return 3; /* these return EINTR */
	case SYS_clone:
	case SYS_clone3:
#ifdef SYS_vfork
	case SYS_vfork:
#endif
		return 3; /* does not stop before its child has executed something */
	}
	return 2;
}

pid_t tracee_choose(pid_t pid)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/task", pid);
	DIR *d = opendir(path);
	struct dirent *e;
	pid_t best = 0;
	int rank = INT_MAX, looked = 0;

	while (d && rank && looked < LOOKED_AT && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);
		struct tracee task;
		int is;

		looked++;
		if (tid <= 0 || tracee_read(pid, tid, &task) < 0 || task.ended)
			continue;
		is = suits(pid, tid) + (task.filtered ? 4 : 0);
		if (is < rank) {
			rank = is;
			best = tid;
		}
	}
	if (d)
		closedir(d);
	return best;
}

/* The process that traces it, 0: none. */
static pid_t tracer_of(pid_t pid)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/status", pid), *text = NULL;
	size_t n;
	const char *line = fd_read_path(path, 65536, &text, &n) < 0 ? NULL : strstr(text, "\nTracerPid:");

	return line ? atoi(line + strlen("\nTracerPid:")) : 0;
}

int tracee_refused(pid_t pid, pid_t tid, int code, struct err *err)
{
	pid_t tracer = code == EPERM ? tracer_of(pid) : 0;
	struct proc_stat s;
	struct tracee task;

	if (tracer)
		return err_set(err, EPERM, "process %d is traced by process %d (%s): one debugger at a time; end that, or use "
			       "`gasflame mem %d`, -e cpu or -e alloc, which need none", pid, tracer,
			       proc_stat(tracer, &s) ? "gone meanwhile" : s.name, pid);
	/* The kernel says the same of a thread that is about to end. */
	if (code == ESRCH || (code == EPERM && (tracee_read(pid, tid, &task) < 0 || task.ended)))
		return err_set(err, ESRCH, "process %d has ended, or the thread of it that was to be stopped: try again", pid);
	if (code == EPERM)
		return err_set(err, EPERM, "process %d may not be traced: it takes root (or CAP_SYS_PTRACE), and "
			       "kernel.yama.ptrace_scope below 3", pid);
	return err_errno(err, code, "cannot trace a thread of process %d", pid);
}

int tracee_readonly(pid_t pid, struct err *err)
{
	return err_set(err, EACCES, "the kernel does not let us write to read-only memory of process %d, not even as its tracer: boot it "
		       "with the parameter proc_mem.force_override=ptrace (or always)", pid);
}
