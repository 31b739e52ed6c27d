/*
 * memory.c - work for the memory and the disk: allocations of all sizes, fresh pages,
 * and a file that is written, synced, read and scanned through a mapping.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"

#define BLOCK_BYTES 16384
#define FILE_BLOCKS 256

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

void alloc_unit(struct worker *w)
{
	for (int i = 0; i < 32; i++) {
		uint64_t r = worker_random(w);
		void **block = &w->blocks[r % 64];
		free(*block);
		/* Small ones mostly, now and then one that the allocator maps by itself. */
		size_t bytes = r >> 32 & 255 ? 16 + (r >> 8 & 4095) : 64 * 1024 + (r >> 8 & 0xfffff);
		*block = malloc(bytes);
		if (!*block)
			fail("malloc");
		memset(*block, (int)r, bytes < 4096 ? bytes : 4096);
	}
}

void alloc_done(struct worker *w)
{
	for (int i = 0; i < 64; i++) {
		free(w->blocks[i]);
		w->blocks[i] = NULL;
	}
}

void fault_unit(struct worker *w)
{
	const size_t bytes = 1024 * 1024;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = (char)i;
	w->result += (uint64_t)p[4096 * (worker_random(w) % 256)];
	munmap(p, bytes);
}

static __attribute__((noinline)) void disk_scan(struct worker *w)
{
	const size_t bytes = (size_t)FILE_BLOCKS * BLOCK_BYTES;
	const unsigned char *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, w->fd, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < bytes; i += 512)
		w->result += p[i];
	munmap((void *)p, bytes);
}

void disk_open(struct worker *w)
{
	w->fd = open(w->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (w->fd < 0) { /* a file system without O_TMPFILE */
		char path[512];
		snprintf(path, sizeof(path), "%s/data-%llx", w->folder,
			 (unsigned long long)worker_random(w));
		w->fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		if (w->fd < 0)
			fail(path);
		unlink(path);
	}
	if (ftruncate(w->fd, (off_t)FILE_BLOCKS * BLOCK_BYTES))
		fail("ftruncate");
}

void disk_unit(struct worker *w)
{
	unsigned char block[BLOCK_BYTES];
	if (!w->fd)
		disk_open(w);
	memset(block, (int)w->turn, sizeof(block));
	off_t at = (off_t)(worker_random(w) % FILE_BLOCKS) * BLOCK_BYTES;
	if (pwrite(w->fd, block, sizeof(block), at) != sizeof(block))
		fail("pwrite");
	at = (off_t)(worker_random(w) % FILE_BLOCKS) * BLOCK_BYTES;
	if (pread(w->fd, block, sizeof(block), at) != sizeof(block))
		fail("pread");
	w->result += block[77];
	if (++w->turn % 32 == 0 && fdatasync(w->fd))
		fail("fdatasync");
	if (w->turn % 128 == 0) {
		posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
		disk_scan(w);
	}
}

void disk_done(struct worker *w)
{
	if (w->fd > 0)
		close(w->fd);
	w->fd = 0;
}
