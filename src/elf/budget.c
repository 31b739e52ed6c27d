#include "elf/budget.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sanitized.h"

uint64_t budget_real_bytes(int fd, uint64_t size)
{
	uint64_t real = 0;
	off_t at = 0;

	for (int i = 0; i < BUDGET_EXTENTS && (uint64_t)at < size; i++) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0)
			return errno == ENXIO ? real : size; /* a hole is left, or it cannot be told */
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data)
			break;
		real += hole - data;
		at = hole;
	}
	return MIN(real, size);
}

uint64_t budget_cpu_ns(uint64_t file_bytes, uint64_t addresses, uint64_t wasted_ns)
{
	/* A hostile file chooses the sizes: no product may overflow. */
	double ns = BUDGET_CPU_NS + (double)file_bytes / BUDGET_CPU_BYTES_S * 1e9 + (double)addresses * BUDGET_CPU_ADDRESS_NS;

	if (wasted_ns > BUDGET_WASTED_NS)
		ns /= 8;
	if (SANITIZED)
		ns *= 10;
	return MIN(ns, BUDGET_CHILD_CPU_S * 1e9 / 2);
}

uint64_t budget_wall_ns(uint64_t cpu_ns)
{
	return BUDGET_WALL_NS + 4 * cpu_ns;
}
