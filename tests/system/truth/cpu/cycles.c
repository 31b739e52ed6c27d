/*
 * cycles [ROUNDS] - a loop of a known number of instructions, and what the processor's counters say of it, read by this program itself:
 *
 *	ready
 *	loop INSTRUCTIONS
 *	cycles N            of the loop, in user mode; "none" where the processor, or this user, has no such counter
 *	instructions N
 *
 * The loop is nearly all that it does, so that who counts the whole program finds about the same (tools/test-kernels).
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"

enum { PER_ROUND = 2 }; /* instructions */

static int open_counter(uint64_t config)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static NOINLINE void known_loop(uint64_t rounds)
{
#ifdef __aarch64__
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
#else
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#endif
}

static void say(const char *name, int fd)
{
	uint64_t n;

	if (fd >= 0 && read(fd, &n, sizeof(n)) == sizeof(n))
		printf("%s %llu\n", name, (unsigned long long)n);
	else
		printf("%s none\n", name);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argument(argc, argv, 1, 300e6);
	int cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES), instructions = open_counter(PERF_COUNT_HW_INSTRUCTIONS);

	say_ready();
	ioctl(cycles, PERF_EVENT_IOC_ENABLE, 0);
	ioctl(instructions, PERF_EVENT_IOC_ENABLE, 0);
	known_loop(rounds);
	ioctl(cycles, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(instructions, PERF_EVENT_IOC_DISABLE, 0);
	printf("loop %llu\n", (unsigned long long)rounds * PER_ROUND);
	say("cycles", cycles);
	say("instructions", instructions);
	return 0;
}
