#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void mem_exhausted(void)
{
	fputs("gasflame: out of memory\n", stderr);
	abort();
}

void mem_no_thread(void)
{
	fputs("gasflame: out of threads: the limit of processes is reached (ulimit -u, or pids.max of the cgroup)\n", stderr);
	abort();
}

static void *check(void *p)
{
	if (!p)
		mem_exhausted();
	return p;
}

void *mem_alloc(size_t size)
{
	return check(calloc(1, size ? size : 1));
}

/* Below it, pages of the usual size do; above, sizes are multiples of it. */
static const size_t large_page = 2 << 20;

static size_t whole_pages(size_t size)
{
	return (size + large_page - 1) & ~(large_page - 1);
}

void *mem_alloc_large(size_t size)
{
	char *p, *start;
	size_t before;

	if (size < large_page)
		return mem_alloc(size);
	size = whole_pages(size);
	p = mmap(NULL, size + large_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(p == MAP_FAILED ? NULL : p);
	/* A huge page begins at a multiple of its size: the memory before and after it is unmapped. */
	before = -(uintptr_t)p & (large_page - 1);
	start = p + before;
	if (before)
		munmap(p, before);
	munmap(start + size, large_page - before);
	madvise(start, size, MADV_HUGEPAGE);
	return start;
}

void mem_free_large(void *p, size_t size)
{
	if (size < large_page)
		free(p);
	else if (p)
		munmap(p, whole_pages(size));
}

void *mem_resize(void *p, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		abort();
	return check(realloc(p, bytes ? bytes : 1));
}

char *mem_strdup(const char *s)
{
	return s ? check(strdup(s)) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
	return check(strndup(s, n));
}

char *mem_vprintf(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	return check(s);
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = mem_vprintf(fmt, ap);
	va_end(ap);
	return s;
}

void mem_freep(void *pp)
{
	free(*(void **)pp);
}
