#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check(void *p)
{
	if (!p) {
		fputs("gasflame: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *mem_alloc(size_t size)
{
	return check(calloc(1, size ? size : 1));
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
