/*
 * stdnames.h - is a function part of its language's standard library? By its name alone: instances of C++ templates and all
 * of Go's packages are in the program's own file.
 */
#pragma once

#include <stdbool.h>

/* A demangled name of C++, with or without the type that it returns: `void std::sort<int*>(int*, int*)`. */
bool stdnames_is_cpp(const char *name);

/* A name as Go's compiler writes it (`crypto/sha256.block`), of a program that is known to be Go. */
bool stdnames_is_go(const char *name);
