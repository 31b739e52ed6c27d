/*
 * jitdump.c FOLDER [seconds=1] - burns so much CPU time in code that it makes, and tells of it in FOLDER/jit-PID.dump, which it
 * maps as JIT compilers do. After a third of the time other code takes the place of the first: jit_early, then
 * jit_late, at the same addresses. The dump is written at the end, as node does it, and removed.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"
#include "jitcode.h"

struct load {
	uint32_t id, size;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index;
	char name[16]; /* and the code */
	unsigned char code[sizeof(code)];
} __attribute__((packed));

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void describe(struct load *l, const char *name, void *memory)
{
	*l = (struct load){ .size = sizeof(*l), .time_ns = now_ns(), .pid = getpid(), .tid = getpid(),
			    .vma = (uintptr_t)memory, .address = (uintptr_t)memory, .code_size = sizeof(code) };
	strcpy(l->name, name);
	memcpy(l->code, code, sizeof(code));
}

static NOINLINE void enter_jit(void (*run)(uint64_t), double until)
{
	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < until)
		run(1000000);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct {
		uint32_t magic, version, size, machine, zero, pid;
		uint64_t time_ns, flags;
	} header = { 0x4a695444, 1, 40, 0, 0, getpid(), now_ns(), 0 };
	double seconds = argument(argc, argv, 2, 1);
	struct load loads[2];
	char path[4096];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", argc > 1 ? argv[1] : ".", (int)getpid());
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (memory == MAP_FAILED || fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		return 1;
	say_ready();
	describe(&loads[0], "jit_early", memory);
	enter_jit((void (*)(uint64_t))(uintptr_t)memory, seconds / 3);
	describe(&loads[1], "jit_late", memory);
	enter_jit((void (*)(uint64_t))(uintptr_t)memory, seconds);
	if (write(fd, loads, sizeof(loads)) != sizeof(loads))
		return 1;
	unlink(path);
	return 0;
}
