/*
 * jit.c [seconds=5] [keep|late] - emits a loop with a frame pointer into executable memory, names it in
 * /tmp/perf-PID.map as JIT compilers do, and burns there. x86-64 and arm64.
 *
 * keep: the map stays, for a report that comes later. late: the map is written at SIGUSR1; SIGTERM removes it
 * and ends; and the code is in a memfd, as .NET has it.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"
#include "jitcode.h"

static NOINLINE void enter_jit(void (*run)(uint64_t))
{
	run(2000000);
	__asm__ volatile("");
}

static volatile sig_atomic_t write_now, end_now;

static void on_signal(int signal)
{
	if (signal == SIGUSR1)
		write_now = 1;
	else
		end_now = 1;
}

static int write_map(const char *path, const void *memory)
{
	FILE *map = fopen(path, "w");

	if (!map)
		return 1;
	fprintf(map, "%lx %zx jit_burn\n", (unsigned long)memory, sizeof(code));
	return fclose(map);
}

/* Returns executable memory that holds the code, or NULL. */
static void *make_code(bool in_file)
{
	int fd = in_file ? memfd_create("doublemapper", 0) : -1;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, in_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);

	if (memory == MAP_FAILED || (in_file && ftruncate(fd, 4096)))
		return NULL;
	memcpy(memory, code, sizeof(code));
	return mprotect(memory, 4096, PROT_READ | PROT_EXEC) ? NULL : memory;
}

int main(int argc, char **argv)
{
	char path[64];
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	const char *how = argc > 2 ? argv[2] : "";
	void *memory = make_code(!strcmp(how, "late"));

	if (!memory)
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (!strcmp(how, "late")) {
		signal(SIGUSR1, on_signal);
		signal(SIGTERM, on_signal);
	} else if (write_map(path, memory)) {
		return 1;
	}
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end && !end_now) {
		if (write_now && write_map(path, memory))
			return 1;
		write_now = 0;
		enter_jit((void (*)(uint64_t))(uintptr_t)memory);
	}
	if (strcmp(how, "keep"))
		unlink(path);
	return 0;
}
