/*
 * library.h - shared libraries that few commands need, loaded when one does.
 *
 * The dynamic linker takes 6 ms for libcurl, libmicrohttpd and the thirty libraries
 * that they are linked with. Each command would pay that, and each child that reads
 * files once more.
 *
 *	static struct { __typeof__(curl_easy_init) *easy_init; } lib;
 *	static const struct library_function functions[] = { { "curl_easy_init", (void **)&lib.easy_init } };
 *	r = library_load("libcurl.so.4", functions, ARRAY_LEN(functions), err);
 *
 * The library stays loaded. The caller sees to it that one thread loads it.
 */
#pragma once

#include <stddef.h>

struct err;

struct library_function {
	const char *name;
	void **at; /* a pointer to a function */
};

/* file: as the dynamic linker looks for it. -ELIBACC: it is not installed, or is another than this program was built with. */
int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err);
