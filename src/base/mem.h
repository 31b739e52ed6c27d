/*
 * mem.h - allocation that cannot fail.
 *
 * Small allocations abort when memory is out: no caller could do better. Sizes
 * that come from a file, the kernel or the network must be checked against what
 * that source can really hold before they get here.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

void *mem_alloc(size_t size);                            /* zeroed */
void *mem_resize(void *p, size_t count, size_t size);    /* not zeroed; overflow aborts */
/* Zeroed, for tables of megabytes that are read at random: in large pages where the system has them. Freed
 * with mem_free_large() only. */
void *mem_alloc_large(size_t size);
void mem_free_large(void *p, size_t size);
char *mem_strdup(const char *s);                         /* NULL gives NULL */
char *mem_strndup(const char *s, size_t n);
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For libraries that report it by a value: says "out of memory" and aborts, as the above do. */
void mem_exhausted(void) __attribute__((noreturn));
/* The same for a thread that is required. */
void mem_no_thread(void) __attribute__((noreturn));

void mem_freep(void *pp); /* for _cleanup_: frees *pp */

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(mem_freep)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
/* Their arguments are evaluated twice: no call with an effect in them. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* For comparators, smallest first (largest first: ORDER(b, a)); several keys: ORDER(...) ?: ORDER(...). */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))
