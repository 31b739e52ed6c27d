#include "sandbox/filter.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/sanitized.h"

/* A new namespace of users would give all capabilities within it, and much of the kernel to attack with them. */
#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* --- readers --- */

/* Left out on purpose: calls that change file attributes, which Landlock does not cover (chmod, chown,
 * utimes, also by descriptor), other processes (ptrace, process_vm_*), keys, io_uring, namespaces, BPF,
 * perf events. */
static const int reader_calls[] = {
	/* memory */
	SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
	SCMP_SYS(mlock), SCMP_SYS(munlock), SCMP_SYS(membarrier), SCMP_SYS(memfd_create), SCMP_SYS(msync),
	SCMP_SYS(mincore),
	/* files */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
	SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2),
	SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(fcntl),
	SCMP_SYS(flock), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
	SCMP_SYS(fadvise64), SCMP_SYS(readahead), SCMP_SYS(sendfile), SCMP_SYS(copy_file_range), SCMP_SYS(splice),
	SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs),
	SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
	SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename), SCMP_SYS(renameat),
	SCMP_SYS(renameat2), SCMP_SYS(umask), SCMP_SYS(chdir), SCMP_SYS(fchdir),
	/* waiting and talking; a socket only as a pair, unless there are more below */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_create), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2), SCMP_SYS(eventfd2), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(socketpair),
	SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(shutdown),
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
	/* time */
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(times), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
	SCMP_SYS(setitimer), SCMP_SYS(alarm),
	/* threads, the children that read, and signals */
	SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(set_tid_address),
	SCMP_SYS(rseq), SCMP_SYS(arch_prctl), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(getpriority), SCMP_SYS(setpriority),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigpending),
	SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigsuspend), SCMP_SYS(signalfd4), SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall), SCMP_SYS(pause), SCMP_SYS(kill), SCMP_SYS(tgkill),
	/* asking, and giving up more rights, as the child does */
	SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
	SCMP_SYS(getegid), SCMP_SYS(getresuid), SCMP_SYS(getresgid), SCMP_SYS(getgroups), SCMP_SYS(getpgrp),
	SCMP_SYS(getpgid), SCMP_SYS(getsid), SCMP_SYS(setsid), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getrusage),
	SCMP_SYS(getrlimit), SCMP_SYS(setrlimit), SCMP_SYS(prlimit64), SCMP_SYS(getrandom), SCMP_SYS(getcpu),
	SCMP_SYS(prctl), SCMP_SYS(capget), SCMP_SYS(capset), SCMP_SYS(seccomp), SCMP_SYS(setgroups),
	SCMP_SYS(setresuid), SCMP_SYS(setresgid), SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setfsuid),
	SCMP_SYS(setfsgid), SCMP_SYS(landlock_create_ruleset), SCMP_SYS(landlock_add_rule),
	SCMP_SYS(landlock_restrict_self),
};

static const int execute_calls[] = { SCMP_SYS(execve), SCMP_SYS(execveat) };
static const int listen_calls[] = { SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4) };
static const int connect_calls[] = { SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg) };

/* Not TIOCSTI: it types into the terminal for the next program that reads from it. */
static const unsigned long ioctls[] = { TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIOCLEX };

/* What curses does, and nothing that types. */
static const unsigned long terminal_ioctls[] = { TCSETS, TCSETSW, TCSETSF, TCFLSH };

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

static int allow(scmp_filter_ctx c, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

static int allow_ioctls(scmp_filter_ctx c, const unsigned long *requests, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i]));
	return r;
}

static int allow_sockets(scmp_filter_ctx c, const struct filter_reader *f)
{
	int r = 0;

	for (size_t i = 0; !r && (f->listen || f->connect) && i < ARRAY_LEN(families); i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i]));
	if (!r && f->listen)
		r = allow(c, listen_calls, ARRAY_LEN(listen_calls));
	if (!r && f->connect)
		r = allow(c, connect_calls, ARRAY_LEN(connect_calls));
	return r;
}

int filter_reader(const struct filter_reader *f, struct err *err)
{
	/* ENOSYS: libc then tries the older call of which this is the successor. */
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = c ? allow(c, reader_calls, ARRAY_LEN(reader_calls)) : -ENOMEM;

	if (!r)
		r = allow_ioctls(c, ioctls, ARRAY_LEN(ioctls));
	if (!r && f->terminal)
		r = allow_ioctls(c, terminal_ioctls, ARRAY_LEN(terminal_ioctls));
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0));
	/* A new file may be made private to its owner, or readable, never writable by others or executable. */
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(fchmod), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 07133, 0));
	if (!r && f->execute)
		r = allow(c, execute_calls, ARRAY_LEN(execute_calls));
	if (!r && f->link)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(linkat), 0);
	if (!r)
		r = allow_sockets(c, f);
	/* The leak check at the end lists the threads and stops them. */
	if (!r && SANITIZED)
		r = allow(c, (const int[]){ SCMP_SYS(ptrace), SCMP_SYS(getdents) }, 2);
	if (!r)
		r = seccomp_load(c);
	if (c)
		seccomp_release(c);
	return r < 0 ? err_errno(err, -r, "cannot install the filter of system calls") : 0;
}

/* --- recorders --- */

static const int recorder_denied[] = {
	/* the file system's structure, and files without their names */
	SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(move_mount),
	SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
	SCMP_SYS(mount_setattr), SCMP_SYS(open_by_handle_at), SCMP_SYS(mknod), SCMP_SYS(mknodat), SCMP_SYS(symlink),
	SCMP_SYS(symlinkat), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd),
	SCMP_SYS(acct), SCMP_SYS(fanotify_init),
	/* the machine */
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
	SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex), SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(iopl),
	SCMP_SYS(ioperm), SCMP_SYS(vhangup),
	/* other processes and namespaces; targets are only read */
	SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise), SCMP_SYS(kcmp),
	SCMP_SYS(move_pages), SCMP_SYS(migrate_pages), SCMP_SYS(personality),
	/* much code of the kernel that no recorder calls */
	SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl), SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(lookup_dcookie), SCMP_SYS(uselib),
};

/* The sanitizers' leak check needs the first. */
static const int trace_calls[] = { SCMP_SYS(ptrace), SCMP_SYS(pidfd_getfd) };

static int deny(scmp_filter_ctx c, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
	return r;
}

static int deny_families(scmp_filter_ctx c)
{
	int r = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));

	for (int family = 0; !r && family < AF_NETLINK; family++) {
		bool used = false;

		for (size_t i = 0; i < ARRAY_LEN(families); i++)
			used |= families[i] == family;
		if (!used)
			r = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
					     SCMP_A0(SCMP_CMP_EQ, family));
	}
	return r;
}

/* A filter cannot say "one of these flags": a rule for each. */
static int deny_namespaces(scmp_filter_ctx c)
{
	int r = seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0); /* its flags cannot be seen */

	for (unsigned bit = 0; !r && bit < 32; bit++)
		if ((unsigned)NEW_NAMESPACES >> bit & 1)
			r = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, 1U << bit, 1U << bit));
	return r;
}

int filter_recorder(bool execute, struct err *err)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	int r = c ? deny(c, recorder_denied, ARRAY_LEN(recorder_denied)) : -ENOMEM;

	if (!r && !SANITIZED)
		r = deny(c, trace_calls, ARRAY_LEN(trace_calls));
	if (!r && !execute)
		r = deny(c, execute_calls, ARRAY_LEN(execute_calls));
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI));
	if (!r)
		r = deny_families(c);
	if (!r)
		r = deny_namespaces(c);
	/* Also for threads that run already. */
	if (!r)
		r = seccomp_attr_set(c, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!r)
		r = seccomp_load(c);
	if (c)
		seccomp_release(c);
	return r < 0 ? err_errno(err, -r, "cannot install the filter of system calls") : 0;
}
