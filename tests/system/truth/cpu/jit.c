/*
 * jit.c [seconds=5] - emits a loop with a frame pointer into executable memory, names it in
 * /tmp/perf-PID.map as JIT compilers do, and burns there. x86-64 and arm64.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"

#if defined(__x86_64__)
static const unsigned char code[] = {
	0x55,                               /* push %rbp */
	0x48, 0x89, 0xe5,                   /* mov %rsp,%rbp */
	0x48, 0xff, 0xcf,                   /* dec %rdi */
	0x75, 0xfb,                         /* jne to the dec */
	0x5d,                               /* pop %rbp */
	0xc3,                               /* ret */
};
#elif defined(__aarch64__)
static const uint32_t code[] = {
	0xa9bf7bfd,                         /* stp x29, x30, [sp, #-16]! */
	0x910003fd,                         /* mov x29, sp */
	0xf1000400,                         /* subs x0, x0, #1 */
	0x54ffffe1,                         /* b.ne to the subs */
	0xa8c17bfd,                         /* ldp x29, x30, [sp], #16 */
	0xd65f03c0,                         /* ret */
};
#endif

static NOINLINE void enter_jit(void (*run)(uint64_t))
{
	run(2000000);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	char path[64];
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %zx jit_burn\n", (unsigned long)memory, sizeof(code));
	fclose(map);
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end)
		enter_jit((void (*)(uint64_t))(uintptr_t)memory);
	if (argc <= 2) /* a second argument keeps it for a report that comes later */
		unlink(path);
	return 0;
}
