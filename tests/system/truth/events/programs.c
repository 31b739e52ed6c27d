/*
 * programs NAME... - what BPF programs cost, by the kernel's statistics (whoever records switches them on), beside a system call.
 *
 * Waits for programs of these names to be loaded and holds on to them. Meanwhile it calls getppid() now and then, so that both are of the same moments of
 * a machine that may be busy. When it is ended (SIGTERM), it prints a line for each program that ran, and one for getppid: its name, how often it ran, and the
 * nanoseconds of all runs. As root.
 */
#include <linux/bpf.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"

enum { FOUND_MAX = 64, CALLS = 1000 };

static volatile sig_atomic_t over;

static void end(int signal)
{
	over = 1;
}

static int call_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int read_info(int fd, struct bpf_prog_info *ret)
{
	union bpf_attr attr;

	memset(ret, 0, sizeof(*ret));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = fd;
	attr.info.info = (uintptr_t)ret;
	attr.info.info_len = sizeof(*ret);
	return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static struct found {
	int fd;
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
} found[FOUND_MAX];
static int found_count;

static bool is_wanted(const char *name, char **names, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Holds on to those among the programs from this id on. Returns the last id that there is. */
static uint32_t look(uint32_t id, char **names, int count)
{
	struct bpf_prog_info info;
	union bpf_attr attr;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (call_bpf(BPF_PROG_GET_NEXT_ID, &attr))
			return id;
		id = attr.next_id;
		memset(&attr, 0, sizeof(attr));
		attr.prog_id = id;
		int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attr);

		if (fd < 0)
			continue;
		if (found_count == FOUND_MAX || read_info(fd, &info) || !is_wanted(info.name, names, count)) {
			close(fd);
			continue;
		}
		found[found_count] = (struct found){ .fd = fd, .id = id };
		memcpy(found[found_count++].name, info.name, sizeof(info.name));
	}
}

/* A recorder loads some programs more than once, to try what the kernel takes: the one that ran most is it. */
static void print(const char *name)
{
	struct bpf_prog_info info, best = { 0 };

	for (int i = 0; i < found_count; i++)
		if (!strcmp(found[i].name, name) && !read_info(found[i].fd, &info) && info.run_cnt > best.run_cnt)
			best = info;
	if (best.run_cnt)
		printf("%s %llu %llu\n", name, (unsigned long long)best.run_cnt, (unsigned long long)best.run_time_ns);
}

static double call_seconds;
static uint64_t calls;

/* By the CPU time of this thread: whoever else runs here meanwhile does not count. */
static void measure_calls(void)
{
	double from = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	for (int n = 0; n < CALLS; n++)
		syscall(SYS_getppid);
	call_seconds += seconds_of(CLOCK_THREAD_CPUTIME_ID) - from;
	calls += CALLS;
}

int main(int argc, char **argv)
{
	uint32_t last;

	signal(SIGTERM, end);
	for (last = look(0, NULL, 0); !over; usleep(50000)) {
		last = look(last, argv + 1, argc - 1);
		measure_calls();
	}
	for (int i = 1; i < argc; i++)
		print(argv[i]);
	printf("getppid %llu %.0f\n", (unsigned long long)calls, call_seconds * 1e9);
	return 0;
}
