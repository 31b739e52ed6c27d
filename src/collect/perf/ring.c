#include "collect/perf/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"

int ring_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	long fd;

	attr->size = sizeof(*attr);
	fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags | PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int ring_init(struct ring *r, int fd, size_t pages)
{
	size_t page = sysconf(_SC_PAGESIZE);

	*r = (struct ring){ .fd = fd, .bytes = pages * page };
	r->base = mmap(NULL, r->bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->base == MAP_FAILED) {
		int e = errno;

		r->base = NULL;
		fd_close(&r->fd);
		return -e;
	}
	r->straddle = mem_alloc(UINT16_MAX + 1);
	return 0;
}

void ring_done(struct ring *r)
{
	if (r->base)
		munmap(r->base, r->bytes + sysconf(_SC_PAGESIZE));
	r->base = NULL;
	fd_close(&r->fd);
	free(r->straddle);
	r->straddle = NULL;
}

size_t ring_drain(struct ring *r, ring_record_fn *fn, void *context)
{
	struct perf_event_mmap_page *page = r->base;
	char *data = (char *)r->base + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	size_t n = 0;

	while (tail < head) {
		size_t at = tail % r->bytes;
		const struct perf_event_header *h = (void *)(data + at);
		size_t size = h->size;

		if (size < sizeof(*h) || size > head - tail)
			break;
		if (at + size > r->bytes) {
			size_t first = r->bytes - at;

			memcpy(r->straddle, data + at, first);
			memcpy(r->straddle + first, data, size - first);
			h = (void *)r->straddle;
		}
		fn(context, h);
		tail += size;
		n++;
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return n;
}
