/*
 * resident.c - which part of a program's objects is in memory: memory_resident() of memory.h.
 *
 * /proc/PID/pagemap has 8 bytes a page; the highest bit says that it is present. A page that was only ever
 * read is the kernel's page of zeros, which is present and in no RSS: such objects count as resident.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "target/memory/memory.h"
#include "target/memory/smaps.h"

enum { CHUNK = 4096 };
#define PRESENT (1ULL << 63)

struct pagemap {
	int fd;
	uint64_t page_bytes;
	uint64_t first, count; /* pages that entries has */
	uint64_t entries[CHUNK];
};

static bool is_present(struct pagemap *p, uint64_t page)
{
	if (page - p->first >= p->count) {
		ssize_t n = pread(p->fd, p->entries, sizeof(p->entries), page * 8);

		p->first = page;
		p->count = n > 0 ? n / 8 : 0;
		if (!p->count)
			return false;
	}
	return p->entries[page - p->first] & PRESENT;
}

/* Bytes of the object on pages that are present. */
static uint64_t resident_bytes(struct pagemap *p, const struct memory_object *o)
{
	uint64_t bytes = 0, end;

	if (__builtin_add_overflow(o->address, o->size, &end))
		return 0;
	for (uint64_t at = o->address; at < end;) {
		uint64_t page = at / p->page_bytes, next = MIN((page + 1) * p->page_bytes, end);

		if (is_present(p, page))
			bytes += next - at;
		at = next;
	}
	return bytes;
}

static int compare_objects(const void *a, const void *b)
{
	const struct memory_object *x = a, *y = b;

	return ORDER(x->address, y->address);
}

/* RSS of the anonymous mappings that hold objects; both are sorted. */
static uint64_t arena_bytes(const struct smaps *s, const struct memory_object *objects, size_t n)
{
	uint64_t bytes = 0;
	size_t k = 0;

	for (size_t i = 0; i < s->list.n; i++) {
		const struct smaps_mapping *m = &s->list.v[i];

		while (k < n && objects[k].address < m->start)
			k++;
		if (k < n && objects[k].address < m->end && (!m->path || m->path[0] == '['))
			bytes += m->rss_bytes;
	}
	return bytes;
}

int memory_resident(pid_t pid, struct memory_object *objects, size_t n, struct memory_resident *ret)
{
	_cleanup_free_ struct pagemap *p = mem_alloc(sizeof(*p));
	_cleanup_fd_ int fd = -1;
	struct smaps maps;
	char path[64];
	double sum = 0;
	int r;

	*ret = (struct memory_resident){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = smaps_read(pid, &maps);
	if (r)
		return r;
	p->fd = fd;
	p->page_bytes = sysconf(_SC_PAGESIZE);
	if (n)
		qsort(objects, n, sizeof(*objects), compare_objects);
	for (size_t i = 0; i < n; i++)
		if (objects[i].size)
			sum += (double)objects[i].weight * resident_bytes(p, &objects[i]) / objects[i].size;
	ret->bytes = sum;
	ret->arena_bytes = arena_bytes(&maps, objects, n);
	smaps_done(&maps);
	return 0;
}
