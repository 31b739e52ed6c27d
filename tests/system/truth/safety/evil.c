/*
 * evil.c - what an attacker would try who has taken over a process that reads files.
 *
 * A library for LD_PRELOAD. The first time that the program reads from the file EVIL_WHEN, this acts in its place:
 * that is where a stranger's bytes would have led to a stranger's code. Each attempt is a line on the standard error: "EVIL unlink succeeded", "EVIL unlink failed: ...". EVIL_CANARY is a file that must
 * stay as it is, EVIL_VICTIM a process of the same user, EVIL_PORT a port of 127.0.0.1 where somebody listens.
 */
#undef _FILE_OFFSET_BITS /* pread() and pread64() are two functions here */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool done;

static void say(const char *what, bool succeeded)
{
	if (succeeded)
		dprintf(2, "EVIL %s succeeded\n", what);
	else
		dprintf(2, "EVIL %s failed: %s\n", what, strerror(errno));
}

static const char *canary(void)
{
	return getenv("EVIL_CANARY") ?: "/nonexistent";
}

static int opens(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static void attack_files(void)
{
	char other[4096];

	snprintf(other, sizeof(other), "%s.evil", canary());
	say("write", opens(canary(), O_WRONLY) >= 0);
	say("append", opens(canary(), O_RDWR | O_APPEND) >= 0);
	say("truncate", !truncate(canary(), 0));
	say("create", opens(other, O_WRONLY | O_CREAT) >= 0);
	say("link", !link(canary(), other));
	say("symlink", !symlink("/etc/passwd", other));
	say("mkdir", !mkdir(other, 0700));
	say("chmod", !chmod(canary(), 0777));
	say("chown", !chown(canary(), 12345, 12345));
	say("fchmod", !fchmod(opens(canary(), O_RDONLY), 0777));
	say("utimes", !utimes(canary(), NULL));
	say("rename", !rename(canary(), other));
	say("unlink", !unlink(canary()));
	say("etc", opens("/etc/gasflame-evil", O_WRONLY | O_CREAT) >= 0);
	say("tmp", opens("/tmp/gasflame-evil", O_WRONLY | O_CREAT) >= 0);
	say("sysctl", opens("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0);
}

static bool executes(const char *path)
{
	int status;
	pid_t child = fork();

	if (!child) {
		execl(path, path, (char *)NULL);
		_exit(99);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 99;
}

static void attack_network(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(getenv("EVIL_PORT") ?: "9")),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	say("connect", fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	say("raw", socket(AF_PACKET, SOCK_RAW, 0) >= 0);
}

static void attack_processes(void)
{
	pid_t victim = atoi(getenv("EVIL_VICTIM") ?: "0");
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };

	if (victim <= 0)
		return;
	say("ptrace", !ptrace(PTRACE_SEIZE, victim, 0, 0));
	errno = 0;
	say("memory", process_vm_readv(victim, &here, 1, &there, 1, 0) == 1 || errno == EFAULT);
	say("kill", !kill(victim, 0));
}

static void attack_kernel(void)
{
	char attr[128] = { 0 };

	say("execute", executes("/bin/true"));
	say("setuid", getuid() && !setuid(0));
	say("bpf", syscall(SYS_bpf, 0, attr, sizeof(attr)) >= 0 || (errno != EPERM && errno != ENOSYS));
	say("perf", syscall(SYS_perf_event_open, attr, 0, -1, -1, 0) >= 0 || (errno != EPERM && errno != ENOSYS));
	say("mount", !syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL));
	say("keys", syscall(SYS_keyctl, 0, -3, 0, 0, 0) >= 0);
	say("io_uring", syscall(SYS_io_uring_setup, 1, attr) >= 0 || (errno != EPERM && errno != ENOSYS));
	say("namespace", !unshare(CLONE_NEWUSER));
	say("terminal", !ioctl(0, TIOCSTI, "x") || (errno != EPERM && errno != ENOSYS));
}

/* By what it is: programs open files by many names. */
static bool is_it(int fd)
{
	const char *when = getenv("EVIL_WHEN");
	struct stat a, b;

	return when && !fstat(fd, &a) && !stat(when, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void act(int fd)
{
	char status[8192], *caps, *uid;
	int s;

	if (done || !is_it(fd))
		return;
	done = true;
	s = opens("/proc/self/status", O_RDONLY);
	status[s < 0 ? 0 : syscall(SYS_read, s, status, sizeof(status) - 1)] = 0;
	caps = strstr(status, "CapEff:");
	uid = strstr(status, "Uid:");
	dprintf(2, "EVIL is here: uid %d caps %.16s\n", uid ? atoi(uid + 5) : -1, caps ? caps + 8 : "?");
	attack_kernel();
	attack_network();
	attack_processes();
	attack_files();
	dprintf(2, "EVIL is done\n");
}

ssize_t read(int fd, void *data, size_t n)
{
	act(fd);
	return syscall(SYS_read, fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t at)
{
	act(fd);
	return syscall(SYS_pread64, fd, data, n, at);
}

ssize_t pread64(int fd, void *data, size_t n, off_t at)
{
	act(fd);
	return syscall(SYS_pread64, fd, data, n, at);
}
