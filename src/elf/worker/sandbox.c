/*
 * sandbox.c - how the child drops its privileges. The order matters: a step that needs a privilege
 * comes before the call that drops it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "elf/budget.h"
#include "elf/worker/workerproto.h"

enum { NOBODY = 65534 };

static const int calls_allowed[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(pwrite64), SCMP_SYS(lseek),
	SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(ftruncate),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex),
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(sysinfo), /* qsort of older glibc asks how much memory there is */
};

/* System calls that the sanitizers' run times need in addition, to print a report and to exit. */
static const int calls_sanitizers[] = {
	SCMP_SYS(sigaltstack), SCMP_SYS(sched_yield), SCMP_SYS(rt_sigaction), SCMP_SYS(getrlimit),
	SCMP_SYS(prlimit64), SCMP_SYS(sched_getaffinity), SCMP_SYS(readlink), SCMP_SYS(kill),
};

/* Memory that a compromised child could share or fill without being charged stays forbidden: anonymous
 * mappings must be private, and nothing becomes executable. */
static int allow_memory(scmp_filter_ctx c)
{
	int r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				 SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, 0));

	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				     SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED, 0));
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return r;
}

static int enter_filter(struct err *err)
{
	scmp_filter_ctx c = seccomp_init(SANITIZED ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_KILL_PROCESS);
	int r = c ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_LEN(calls_allowed); i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, calls_allowed[i], 0);
	for (size_t i = 0; SANITIZED && !r && i < ARRAY_LEN(calls_sanitizers); i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, calls_sanitizers[i], 0);
	if (!r)
		r = allow_memory(c);
	/* glibc's fstat(). A filter cannot see that the path is "", so the child can also query the size
	 * and owner of a path; it cannot open one. */
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				     SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
	/* Returns page cache. */
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(fadvise64), 1,
				     SCMP_A3(SCMP_CMP_EQ, POSIX_FADV_DONTNEED));
	/* abort() */
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, getpid()));
	if (!r)
		r = seccomp_load(c);
	if (c)
		seccomp_release(c);
	return r < 0 ? err_errno(err, -r, "cannot install the system call filter") : 0;
}

static void set_limit(int which, rlim_t value)
{
	struct rlimit limit;

	/* A lower limit that is already set stays. */
	if (!getrlimit(which, &limit) && limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value)
		value = limit.rlim_max;
	limit = (struct rlimit){ value, value };
	setrlimit(which, &limit);
}

/* Memory that the parent had in use when it forked counts for the child too. */
static rlim_t data_in_use(void)
{
	_cleanup_free_ char *statm = NULL;
	unsigned long pages = 0;

	if (!fd_read_path("/proc/self/statm", 4096, &statm, NULL))
		sscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages);
	return (rlim_t)pages * sysconf(_SC_PAGESIZE);
}

static void set_limits(void)
{
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_NPROC, 0);
	set_limit(RLIMIT_NOFILE, 16);
	set_limit(RLIMIT_FSIZE, 2 * BUDGET_UNPACKED_BYTES);
	/* The parent kills the child sooner; this limit holds when the parent is stopped. */
	set_limit(RLIMIT_CPU, BUDGET_CHILD_CPU_S);
	if (SANITIZED)
		return; /* sanitizers reserve terabytes */
	/* Mapped files are page cache and count only for RLIMIT_AS, which must leave room for debug files. */
	set_limit(RLIMIT_DATA, data_in_use() + WORKER_MAX_DATA);
	set_limit(RLIMIT_AS, 64ULL << 30);
}

static int drop_rights(struct err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	/* Root in a container may not be allowed to change its user, or have no user nobody; the other
	 * steps apply there too. */
	if (!geteuid() && ((setgroups(0, NULL) && errno != EPERM) ||
			   (setresgid(NOBODY, NOBODY, NOBODY) && errno != EPERM && errno != EINVAL) ||
			   (setresuid(NOBODY, NOBODY, NOBODY) && errno != EPERM && errno != EINVAL)))
		return err_errno(err, errno, "cannot become nobody");
	if (syscall(SYS_capset, &header, none))
		return err_errno(err, errno, "cannot give up the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return err_errno(err, errno, "cannot give up privileges");
	return 0;
}

/* The parent's BPF maps and perf buffers are shared memory, and a fork inherits it. */
static int unmap_shared(struct err *err)
{
	_cleanup_free_ char *maps = NULL;
	int r = fd_read_path("/proc/self/maps", 64 << 20, &maps, NULL);

	if (r < 0)
		return err_errno(err, -r, "cannot read its memory map");
	for (char *line = maps, *next; line && *line; line = next) {
		unsigned long start, end;
		char rights[5];

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && rights[1] == 'w' &&
		    rights[3] == 's')
			munmap((void *)start, end - start);
	}
	return 0;
}

/* keep_fd must be 3 or more. */
static int close_files(int keep_fd, struct err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return err_errno(err, errno, "cannot open /dev/null");
	for (int fd = 0; fd < 3; fd++)
		if (!(SANITIZED && fd == STDERR_FILENO))
			dup2(null, fd);
	if ((keep_fd > 3 && syscall(SYS_close_range, 3, keep_fd - 1, 0)) ||
	    syscall(SYS_close_range, keep_fd + 1, ~0U, 0))
		return err_errno(err, errno, "cannot close the inherited files");
	return 0;
}

static void reset_signals(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE };
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	/* Ctrl-C goes to the whole process group, but the parent still needs symbols for its samples; when
	 * the parent exits, so does this process. */
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int worker_sandbox(int keep_fd, struct err *err)
{
	int r;

	reset_signals();
	/* A second arena would ask the system for the number of CPUs. */
	mallopt(M_ARENA_MAX, 1);
	r = unmap_shared(err);
	if (r < 0)
		return r;
	r = close_files(keep_fd, err);
	if (r < 0)
		return r;
	umask(077);
	/* The recorder may have a higher priority; the reader does not need it. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	set_limits();
	r = drop_rights(err);
	if (r < 0)
		return r;
	return enter_filter(err);
}
