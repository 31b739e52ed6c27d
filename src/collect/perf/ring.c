#include "collect/perf/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
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

/* A sample is ip, pid and tid, time, and more; in all other records the time is near the end. */
static uint64_t time_of(const struct ring *r, const struct perf_event_header *h)
{
	uint64_t time_ns;
	size_t behind = sizeof(time_ns) + r->behind_time;
	size_t at = h->type == PERF_RECORD_SAMPLE ? sizeof(*h) + 16 : h->size - behind;

	if (h->size < sizeof(*h) + behind || at + sizeof(time_ns) > h->size)
		return 0;
	memcpy(&time_ns, (const char *)h + at, sizeof(time_ns));
	return time_ns;
}

/* Finds the first record that is left. */
static void look(struct ring *r)
{
	char *data = (char *)r->base + sysconf(_SC_PAGESIZE);
	size_t at = r->tail % r->bytes;
	const struct perf_event_header *h = (void *)(data + at);

	r->next = NULL;
	if (r->tail >= r->head || h->size < sizeof(*h) || h->size > r->head - r->tail)
		return;
	if (at + h->size > r->bytes) {
		size_t first = r->bytes - at;

		memcpy(r->straddle, data + at, first);
		memcpy(r->straddle + first, data, h->size - first);
		h = (void *)r->straddle;
	}
	r->next = h;
	r->next_ns = time_of(r, h);
}

static void take(struct ring *r, ring_record_fn *fn, void *context)
{
	struct perf_event_mmap_page *page = r->base;
	size_t size = r->next->size;

	fn(context, r->next);
	r->tail += size;
	__atomic_store_n(&page->data_tail, r->tail, __ATOMIC_RELEASE);
	look(r);
}

/* The ring with the earliest record, NULL if none has one, and until when it is that. */
static struct ring *earliest(struct ring *rings, size_t count, uint64_t *until_ns)
{
	struct ring *best = NULL;

	for (size_t i = 0; i < count; i++) {
		struct ring *r = &rings[i];

		if (!r->next)
			continue;
		if (best && r->next_ns >= best->next_ns) {
			*until_ns = MIN(*until_ns, r->next_ns);
			continue;
		}
		if (best)
			*until_ns = MIN(*until_ns, best->next_ns);
		best = r;
	}
	return best;
}

size_t ring_drain(struct ring *rings, size_t count, ring_record_fn *fn, void *context)
{
	/* Taken before the first ring is looked at: of all that was written by then each ring has its part, so that no
	 * effect is seen without its cause. */
	uint64_t now = clock_mono_ns(), until;
	struct ring *r;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct perf_event_mmap_page *page = rings[i].base;

		rings[i].next = NULL;
		if (!page)
			continue;
		rings[i].head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		rings[i].tail = page->data_tail;
		look(&rings[i]);
	}
	while ((until = now, r = earliest(rings, count, &until)) && r->next_ns <= now)
		for (; r->next && r->next_ns <= until; n++)
			take(r, fn, context);
	return n;
}
