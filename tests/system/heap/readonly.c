/*
 * readonly.c - preloaded into gasflame and implants.c by heaptracer.sh: the rule that kernels with
 * proc_mem.force_override=ptrace have for writes to read-only memory through /proc/PID/mem, on kernels that
 * allow them to everybody.
 *
 * As in proc_mem_foll_force() of the kernel's fs/proc/base.c: a page's protection is passed only by the
 * tracer (the thread, not its process) of the task whose file it is. Others get EIO. READONLY=never in the
 * environment: nobody passes it.
 */
#undef _FILE_OFFSET_BITS /* it would make one name of the two below */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The task whose memory the file is: of /proc/TASK/mem or /proc/PID/task/TASK/mem. 0: it is another file. */
static int task_of(int fd)
{
	char link[64], path[64] = "";
	int pid = 0, task = 0, end = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		return 0;
	if (sscanf(path, "/proc/%d/task/%d/mem%n", &pid, &task, &end) == 2 && end && !path[end])
		return task;
	end = 0;
	return sscanf(path, "/proc/%d/mem%n", &pid, &end) == 1 && end && !path[end] ? pid : 0;
}

static bool is_tracer(int task)
{
	char path[64], line[256];
	const char *rule = getenv("READONLY");
	int tracer = 0;
	FILE *f;

	if (rule && !strcmp(rule, "never"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", task);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "TracerPid: %d", &tracer) != 1)
		;
	if (f)
		fclose(f);
	return tracer == syscall(SYS_gettid);
}

static bool is_protected(int task, uint64_t address)
{
	char path[64], line[4096], rights[8];
	unsigned long start, end;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", task);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && address >= start &&
		        address < end && rights[1] != 'w';
	if (f)
		fclose(f);
	return found;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	/* The sandbox of the worker, which writes to files only, forbids to ask more. */
	int task = (uint64_t)at >> 32 ? task_of(fd) : 0;

	if (task && is_protected(task, at) && !is_tracer(task)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t at)
{
	return pwrite(fd, data, n, at);
}
