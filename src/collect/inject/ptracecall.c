#include "collect/inject/ptracecall.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/inject/machine.h"
#include "collect/inject/tracee.h"
#include "target/proc.h"

enum { TRIES = 3, MOST_STOPS = 1000, MOST_CHOSEN = 8 };

#define STOP_WAIT_NS 1000000000ULL /* for a thread to stop */
#define STEP_WAIT_NS 2000000000ULL /* for what it was asked to do */

#define SYSEMU 31 /* PTRACE_SYSEMU, which not each C library knows */
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

/* A syscall instruction that is executable in the target: every vdso has one. */
static int find_syscall(pid_t pid, uint64_t *ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/maps", pid), *mem_path = mem_printf("/proc/%d/mem", pid);
	_cleanup_fd_ int fd = open(mem_path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ uint8_t *code = mem_alloc(16384);
	FILE *f = fopen(path, "re");
	char line[512];
	int r = err_set(err, ENOTSUP, "process %d has no vdso to make a system call from, or its main thread has ended", pid);

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		size_t found;
		ssize_t n;

		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		n = fd < 0 ? -1 : pread(fd, code, MIN(end - start, 16384UL), start);
		found = n < 0 ? 0 : instructions_find_call(machine_instructions, code, n);
		if (n > 0 && found < (size_t)n) {
			*ret = start + found;
			r = 0;
		}
	}
	if (f)
		fclose(f);
	return r;
}

/* Waits for it to stop or to end, and takes neither; options: WNOHANG, and it does not wait. */
static bool has_ended(pid_t pid, int options)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | options) < 0)
		if (errno != EINTR)
			return true;
	return info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
}

/* Waits for the thread to stop, for limit_ns or, if that is 0, for ever. Negative: it is gone, or did not. */
static int wait_stop(struct ptracecall *r, uint64_t limit_ns, int *ret_status)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	uint64_t until = clock_mono_ns() + limit_ns;
	int options = limit_ns ? WNOHANG : 0;
	pid_t got = -1;

	for (;;) {
		if (r->child && has_ended(r->tid, options))
			break;
		got = waitpid(r->tid, ret_status, __WALL | options);
		if (got < 0 && errno == EINTR)
			continue;
		if (got)
			break;
		if (clock_mono_ns() > until)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	if (got == r->tid && WIFSTOPPED(*ret_status))
		return 0;
	r->ended = 1;
	return -ESRCH;
}

/* Waits for the stop that was asked for with PTRACE_INTERRUPT. A signal that comes before it is the thread's own. */
static int wait_interrupted(struct ptracecall *r, uint64_t limit_ns)
{
	int status, e;

	for (;;) {
		e = wait_stop(r, limit_ns, &status);
		if (e < 0 || status >> 16 == PTRACE_EVENT_STOP)
			return e;
		if (ptrace(PTRACE_CONT, r->tid, 0, status >> 16 ? 0 : WSTOPSIG(status)) < 0)
			return -errno;
	}
}

/*
 * Of a thread that is stopped, and as it was: may it be made to do what we want? Seccomp may forbid, or punish,
 * that; while it is traced, filters can be put aside, also those that another thread gives it meanwhile.
 */
static int check_thread(struct ptracecall *r, struct err *err)
{
	struct tracee task;
	int e = tracee_read(r->pid, r->tid, &task);

	if (e < 0)
		return err_set(err, ESRCH, "process %d has ended, or has executed another program: try again", r->pid);
	if (task.ignores_trap)
		return err_set(err, ENOTSUP, "process %d ignores SIGTRAP, and stopping it would change that", r->pid);
	if (ptrace(PTRACE_SETOPTIONS, r->tid, 0, PTRACE_O_SUSPEND_SECCOMP) < 0 && task.filtered)
		return err_set(err, EPERM, "process %d is under a seccomp filter, and the kernel does not let us put it "
			       "aside: run as root, or use `gasflame mem`, -e cpu or -e alloc, which change nothing in it", r->pid);
	return 0;
}

/* Keeps what must be put back, and holds signals off. */
static int take_over(struct ptracecall *r)
{
	/* A signal that the kernel raises while it is blocked or ignored loses its handler for ever. */
	uint64_t all = ~(1ULL << (SIGTRAP - 1) | 1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) |
			 1ULL << (SIGFPE - 1));
	int e = machine_get(r->tid, &r->saved);

	if (e < 0)
		return e;
	if (ptrace(PTRACE_GETSIGMASK, r->tid, (void *)sizeof(r->mask), &r->mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof(all), &all) < 0)
		return -errno;
	return 0;
}

static bool peek(const struct ptracecall *r, uint64_t address, uint64_t *ret)
{
	errno = 0;
	*ret = ptrace(PTRACE_PEEKDATA, r->tid, address, 0);
	return !errno;
}

/*
 * A thread within a restartable sequence (rseq) must begin it anew after an interruption, and the kernel sees to that.
 * But not for us: it finds the thread elsewhere, in what we have it do, and forgets the sequence, whose rest
 * would then run without protection. So the thread goes on where the kernel would have sent it: at its handler.
 */
static void leave_sequence(struct ptracecall *r)
{
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} c = { 0 };
	uint64_t at, words[4], signature;

	/* Kernels before 5.13 do not say; there most threads that are chosen wait for something, outside of any. */
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->tid, (void *)sizeof(c), &c) < 0 || !c.area ||
	    !peek(r, c.area + 8, &at) || !at)
		return;
	/* struct rseq_cs: version and flags, the beginning, its length, the handler. */
	for (int i = 0; i < 4; i++)
		if (!peek(r, at + 8 * i, &words[i]))
			return;
	if (words[0] || machine_pc(&r->saved) - words[1] >= words[2] || !peek(r, words[3] - 4, &signature) ||
	    (uint32_t)signature != c.signature)
		return;
	machine_set_pc(&r->saved, words[3]);
}

/* Stops it, with nothing changed. */
static int seize(struct ptracecall *r, struct err *err)
{
	int e = 0;

	if (ptrace(PTRACE_SEIZE, r->tid, 0, 0) < 0)
		return tracee_refused(r->pid, r->tid, errno, err);
	if (ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0)
		e = -errno;
	e = e ?: wait_interrupted(r, STOP_WAIT_NS);
	return e < 0 ? err_errno(err, -e, "thread %d of process %d did not stop", r->tid, r->pid) : 0;
}

/* Of one that was seized; nothing is to be put back. Not stopped: only our end lets it go. */
static void give_up(struct ptracecall *r)
{
	if (!r->ended)
		ptrace(PTRACE_DETACH, r->tid, 0, 0);
	sigprocmask(SIG_SETMASK, &r->own, NULL);
}

enum meaning { OUR_TRAP, FAULT, SENT, NO_SIGNAL };

/* Classifies a stop: the trap that we have set; our call has failed; a signal that another process sent;
 * none. */
static enum meaning meaning_of(const struct ptracecall *r, int status)
{
	siginfo_t info = { 0 };

	if (status >> 16)
		return NO_SIGNAL;
	if (ptrace(PTRACE_GETSIGINFO, r->tid, 0, &info) < 0)
		return status >> 8 == SIGTRAP ? OUR_TRAP : SENT;
	switch (status >> 8) {
	case SIGTRAP:
		return machine_is_trap(&info) ? OUR_TRAP : SENT;
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
		return info.si_code > 0 ? FAULT : SENT;
	default:
		return SENT;
	}
}

/* Sets the registers and lets it go on until it traps. Its result then, or -errno. */
static int64_t resume(struct ptracecall *r, struct user_regs_struct *regs, int how, uint64_t *ret_pc)
{
	enum meaning meaning;
	bool late = false;
	int status, e;

	if (r->ended)
		return -ESRCH;
	e = machine_set(r->tid, regs);
	if (e < 0)
		return e;
	for (int stops = 0; stops < MOST_STOPS; stops++) {
		if (ptrace(how, r->tid, 0, 0) < 0)
			return -errno;
		e = wait_stop(r, how == PTRACE_CONT ? STEP_WAIT_NS : 0, &status);
		if (e == -ETIMEDOUT) {
			/* Another thread has changed the code: it would go on for ever. */
			late = !ptrace(PTRACE_INTERRUPT, r->tid, 0, 0);
			e = wait_stop(r, 0, &status);
		}
		if (e < 0)
			return e;
		meaning = meaning_of(r, status);
		if (meaning == FAULT)
			return -EFAULT;
		if (meaning == OUR_TRAP) {
			e = machine_get(r->tid, regs);
			if (e < 0)
				return e;
			*ret_pc = machine_pc(regs);
			return machine_result(regs);
		}
		if (late)
			return -ETIMEDOUT;
		/* The stops of a stopped group and the like come in between; a signal is for later. */
		if (meaning == SENT)
			r->signals |= 1ULL << (WSTOPSIG(status) - 1);
	}
	return -EAGAIN;
}

int64_t ptracecall_call(struct ptracecall *r, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f)
{
	const uint64_t arguments[] = { a, b, c, d, e, f };
	struct user_regs_struct regs = r->saved;
	uint64_t pc = 0;
	int64_t result;

	machine_set_call(&regs, r->syscall_at, number, arguments);
	result = resume(r, &regs, PTRACE_SINGLESTEP, &pc);
	return pc && pc != r->syscall_at + machine_instructions->call_bytes ? -EAGAIN : result;
}

/* Has it stopped at the beginning of a system call? */
static bool is_at_call(const struct ptracecall *r, int status)
{
	siginfo_t info = { 0 };

	return status >> 8 == SIGTRAP && ptrace(PTRACE_GETSIGINFO, r->tid, 0, &info) >= 0 && info.si_code == SIGTRAP;
}

/* Lets it go to the beginning of the call that it is about to make, which the kernel leaves out. False: it did not get there. */
static bool go_to_call(struct ptracecall *r)
{
	int status;

	for (int stops = 0; stops < MOST_STOPS; stops++) {
		if (ptrace(SYSEMU, r->tid, 0, 0) < 0)
			return false;
		if (wait_stop(r, STEP_WAIT_NS, &status) == -ETIMEDOUT) {
			if (!ptrace(PTRACE_INTERRUPT, r->tid, 0, 0))
				wait_stop(r, 0, &status);
			return false;
		}
		if (r->ended)
			return false;
		if (is_at_call(r, status))
			return true;
		if (meaning_of(r, status) == SENT)
			r->signals |= 1ULL << (WSTOPSIG(status) - 1);
	}
	return false;
}

/* For a thread whose next step is a call that the kernel begins anew without telling us which (machine.h). */
static void reach_call(struct ptracecall *r)
{
	struct user_regs_struct now;
	uint64_t code;

	if (!peek(r, machine_pc(&r->saved), &code) || !machine_hides_call(&r->saved, code) || !go_to_call(r))
		return;
	if (!machine_get(r->tid, &now))
		machine_take_call(&r->saved, &now);
	/* It stands within a call that is not made, and the first step only leads out of that: to one that changes nothing. */
	ptracecall_call(r, SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static int stop_thread(struct ptracecall *r, pid_t pid, struct err *err)
{
	uint64_t syscall_at, code;
	sigset_t every;
	int e = find_syscall(pid, &syscall_at, err);

	if (e < 0)
		return e;
	*r = (struct ptracecall){ .pid = pid, .syscall_at = syscall_at, .tid = tracee_choose(pid) };
	if (!r->tid)
		return err_set(err, ESRCH, "there is no process %d any more", pid);
	sigfillset(&every);
	sigprocmask(SIG_BLOCK, &every, &r->own);
	r->began_ns = clock_mono_ns();
	e = seize(r, err);
	e = e ?: check_thread(r, err);
	/* From here on no other program can be in its memory. */
	if (!e && (!peek(r, syscall_at, &code) || !instructions_is_call(machine_instructions, code)))
		e = err_set(err, EAGAIN, "process %d has executed another program meanwhile: try again", pid);
	if (!e) {
		e = take_over(r);
		if (e < 0)
			err_errno(err, -e, "cannot read the registers of thread %d of process %d", r->tid, pid);
	}
	if (e < 0) {
		give_up(r);
		return e;
	}
	if (!machine_is_64_bit(&r->saved)) {
		ptracecall_go(r);
		return err_set(err, ENOTSUP, "process %d is a 32-bit program, for which there are no hooks: `gasflame mem %d`, -e cpu and "
			       "-e fault need none", pid, pid);
	}
	e = machine_save(r->tid, &r->vectors);
	if (e < 0) {
		ptracecall_go(r);
		return err_set(err, -e, "thread %d of process %d is in the middle of vector code that a system call would spoil: try again", r->tid, pid);
	}
	reach_call(r);
	leave_sequence(r);
	return 0;
}

/* The thread that was chosen may end meanwhile: then another one is. */
int ptracecall_stop(struct ptracecall *r, pid_t pid, struct err *err)
{
	int e = -ESRCH;

	for (int k = 0; k < MOST_CHOSEN && e == -ESRCH; k++)
		e = stop_thread(r, pid, err);
	return e;
}

int ptracecall_expect(pid_t pid, struct err *err)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) < 0)
		return err_errno(err, errno, "cannot watch the program that we start");
	return 0;
}

/* Where the program begins once the loader is done: AT_ENTRY. */
static int find_entry(pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/auxv", pid), *data = NULL;
	size_t n;
	int r = fd_read_path(path, 65536, &data, &n);

	for (size_t i = 0; r >= 0 && i + 16 <= n; i += 16) {
		uint64_t pair[2];

		memcpy(pair, data + i, sizeof(pair));
		if (pair[0] == 9) { /* AT_ENTRY */
			*ret = pair[1];
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

/* Lets it go on until it stops for the reason that is wanted; signals on the way are its own. */
static int run_to(struct ptracecall *r, int wanted)
{
	int status;

	for (;;) {
		int e = wait_stop(r, 0, &status), signal;

		if (e < 0 || status >> 8 == wanted)
			return e;
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, r->tid, 0, signal) < 0)
			return -errno;
	}
}

/* From where it stands, right after exec, to the program's entry; stopped: SIGSTOP holds it, too. */
static int run_to_entry(struct ptracecall *r, bool stopped)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", r->pid);
	/* Its memory is another one since the exec. */
	_cleanup_fd_ int memory = open(path, O_RDWR | O_CLOEXEC);
	const struct instructions *own = machine_instructions;
	uint8_t old[sizeof(own->trap)];
	uint64_t entry = 0;
	int e = memory < 0 ? -errno : find_entry(r->pid, &entry);

	if (!e && pread(memory, old, own->trap_bytes, entry) != own->trap_bytes)
		e = -errno;
	if (!e && pwrite(memory, own->trap, own->trap_bytes, entry) != own->trap_bytes)
		e = errno == EIO ? -EACCES : -errno;
	if (!e && ((stopped && kill(r->pid, SIGCONT) < 0) || ptrace(PTRACE_CONT, r->pid, 0, 0) < 0))
		e = -errno;
	if (!e)
		e = run_to(r, SIGTRAP);
	r->began_ns = clock_mono_ns();
	if (!e && pwrite(memory, old, own->trap_bytes, entry) != own->trap_bytes)
		e = -errno;
	if (!e)
		e = take_over(r);
	machine_set_pc(&r->saved, entry);
	return e;
}

static int not_held(pid_t pid, int e, struct err *err)
{
	return e == -EACCES ? tracee_readonly(pid, err) : err_errno(err, -e, "cannot hold the program at its beginning");
}

int ptracecall_at_entry(struct ptracecall *r, pid_t pid, struct err *err)
{
	int e;

	*r = (struct ptracecall){ .pid = pid, .tid = pid, .child = true };
	sigprocmask(SIG_BLOCK, NULL, &r->own);
	e = run_to(r, SIGTRAP | PTRACE_EVENT_EXEC << 8);
	if (!e)
		e = run_to_entry(r, false);
	if (e < 0) {
		if (!r->ended)
			ptrace(PTRACE_DETACH, pid, 0, 0);
		return not_held(pid, e, err);
	}
	e = check_thread(r, err);
	e = e ?: find_syscall(pid, &r->syscall_at, err);
	if (e < 0)
		ptracecall_go(r);
	return e;
}

/* The kernel begins a program with all registers empty. */
static bool has_begun(pid_t tid)
{
	struct user_regs_struct g;

	return machine_get(tid, &g) < 0 || !machine_is_empty(&g);
}

int ptracecall_at_entry_stopped(struct ptracecall *r, pid_t pid, struct err *err)
{
	int e;

	*r = (struct ptracecall){ .pid = pid, .tid = pid, .child = true };
	sigprocmask(SIG_BLOCK, NULL, &r->own);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0) {
		e = tracee_refused(pid, pid, errno, err);
		kill(pid, SIGCONT);
		return e;
	}
	e = ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 ? -errno : wait_interrupted(r, 0);
	if (!e && has_begun(pid))
		e = -EAGAIN;
	if (e < 0)
		err_errno(err, -e, "cannot hold the program at its beginning");
	e = e ?: check_thread(r, err);
	if (!e) {
		e = run_to_entry(r, true);
		if (e < 0)
			not_held(pid, e, err);
	}
	if (e < 0) {
		kill(pid, SIGCONT);
		if (!r->ended)
			ptrace(PTRACE_DETACH, pid, 0, 0);
		return e;
	}
	e = find_syscall(pid, &r->syscall_at, err);
	if (e < 0)
		ptracecall_go(r);
	return e;
}

int64_t ptracecall_run(struct ptracecall *r, uint64_t address, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t arguments[] = { a, b, c, d };
	struct user_regs_struct regs = r->saved;
	uint64_t pc;

	machine_set_code(&regs, address, arguments);
	return resume(r, &regs, PTRACE_CONT, &pc);
}

/* Restores state without which the thread dies: an error may pass, as ESRCH does of a thread that is woken
 * for a moment. */
static void insist(enum __ptrace_request what, pid_t tid, size_t size, void *data)
{
	for (int k = 0; k < TRIES; k++)
		if (ptrace(what, tid, (void *)size, data) >= 0)
			break;
}

uint64_t ptracecall_go(struct ptracecall *r)
{
	if (!r->ended) {
		for (int k = 0; k < TRIES && machine_set(r->tid, &r->saved) < 0; k++)
			;
		machine_restore(r->tid, r->vectors);
		insist(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask);
		insist(PTRACE_DETACH, r->tid, 0, 0);
	}
	for (int i = 1; i <= 64 && !r->ended; i++)
		if (r->signals & 1ULL << (i - 1))
			syscall(SYS_tgkill, r->pid, r->tid, i);
	sigprocmask(SIG_SETMASK, &r->own, NULL);
	return clock_mono_ns() - r->began_ns;
}
