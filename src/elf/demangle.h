/*
 * demangle.h - turns linkage names into readable ones.
 *
 * Rust legacy and v0, C++ (Itanium). By default the hash of a Rust name
 * (::h0123456789abcdef, [0123456789abcdef]) and suffixes that compilers append
 * (.llvm.123, .cold, .isra.0, .part.1, @@GLIBC_2.2.5) are dropped.
 */
#pragma once

enum demangle_flags { DEMANGLE_KEEP_HASH = 1 };

/* Caller frees. Never NULL: a name that is not mangled is returned unchanged. Names over 64 KiB are cut. */
char *demangle(const char *linkage, enum demangle_flags flags);
