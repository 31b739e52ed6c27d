/*
 * stepped SECONDS - a program with a probe on an instruction that the kernel runs a copy of: a store, in stepped_touch(), to a page that is not
 * there, a thousand times a second or so. Nearly all of its faults are of that copy. It puts the probe (a uprobe) there itself; exit status 77: this kernel, or
 * its rights, do not let it.
 */
#include <link.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"

enum { SKIP = 77 };

extern const char stepped_instruction[];

NOINLINE static void stepped_touch(char *p)
{
	__asm__ volatile(".globl stepped_instruction\nstepped_instruction: movb $1, (%0)" : : "D"(p) : "memory");
}

/* Where in the file an address of this program is. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t *at = context, address = *at;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || address - info->dlpi_addr - h->p_vaddr >= h->p_filesz)
			continue;
		*at = address - info->dlpi_addr - h->p_vaddr + h->p_offset;
		return 1;
	}
	return 0;
}

static int put_probe(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .sample_period = 1 };
	uint64_t offset = (uintptr_t)stepped_instruction;
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = -1;

	if (f) {
		if (fscanf(f, "%d", &type) != 1)
			type = -1;
		fclose(f);
	}
	if (type < 0 || !dl_iterate_phdr(find_offset, &offset))
		return -1;
	attr.type = type;
	attr.config1 = (uintptr_t) "/proc/self/exe";
	attr.config2 = offset;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

int main(int argc, char **argv)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	double until = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 10);
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int probe = put_probe();

	if (probe < 0 || page == MAP_FAILED) {
		perror("the probe");
		return SKIP;
	}
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < until) {
		stepped_touch(page);
		madvise(page, 4096, MADV_DONTNEED);
		nanosleep(&nap, NULL);
	}
	close(probe);
	return 0;
}
