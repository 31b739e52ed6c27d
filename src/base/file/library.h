/*
 * library.h - shared libraries that few commands need, loaded when one does.
 *
 * The dynamic linker takes 6 ms for libcurl, libmicrohttpd and the thirty libraries
 * that they are linked with. Each command would pay that, and each child that reads
 * files once more.
 *
 *	#define FUNCTIONS(f) f(curl, easy_init) f(curl, easy_cleanup)
 *	static struct { FUNCTIONS(LIBRARY_POINTER) } lib;
 *	static const struct library_function functions[] = { FUNCTIONS(LIBRARY_FUNCTION) };
 *	r = library_load("libcurl.so.4", functions, ARRAY_LEN(functions), err);
 *	curl = lib.easy_init();
 *
 * The static program (packaging/static) has them in it, and loads nothing: there library_load() only sets the pointers.
 *
 * The library stays loaded. The caller sees to it that one thread loads it.
 */
#pragma once

#include <stddef.h>

struct err;

struct library_function {
	const char *name;
	void **at; /* a pointer to a function */
	void *linked; /* the function itself, in a program that is linked with all it uses; else NULL */
};

/* A member of lib, and the line of the table that fills it: of the function prefix_name(). */
#define LIBRARY_POINTER(prefix, name) __typeof__(prefix##_##name) *name;
#ifdef GASFLAME_STATIC
#define LIBRARY_FUNCTION(prefix, name) { #prefix "_" #name, (void **)&lib.name, (void *)(prefix##_##name) },
#else
#define LIBRARY_FUNCTION(prefix, name) { #prefix "_" #name, (void **)&lib.name, NULL },
#endif

/* file: as the dynamic linker looks for it. -ELIBACC: it is not installed, or is another than this program was built with. */
int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err);
