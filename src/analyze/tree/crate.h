/*
 * crate.h - the owner of a function: its crate or library, and the kind of that code.
 *
 *	struct crates c;
 *	crates_init(&c, p, NULL);
 *	puts(crate_name(&c, ident));		// "reth_db", "tokio", "libc.so.6", "[kernel]"
 *	crates_done(&c);
 *
 * A crate is the first segment of a Rust path, of the type's path where the function is a method
 * (`<reth_trie::Trie as core::hash::Hash>::hash` is of reth_trie). Where the type is the standard library's
 * or a parameter, the trait's (`<core::fmt::Arguments as tracing_core::field::Value>::record`): only its
 * crate may implement it. Libraries in C and C++ that are linked into nodes are known by their prefixes
 * ("mdbx", "rocksdb", "jemalloc"); other such functions belong to their module's basename.
 *
 * Kinds are guessed from names and modules, and from the name of the target: crates whose names begin with
 * a program's own name, or a part of it ("op-reth": op_reth and reth), are its own, as are crates with a
 * `main`. C functions of the program's file are its own if nothing there is Rust, but for instances of C++'s standard
 * templates and the packages of Go's standard library.
 */
#pragma once

#include <stdbool.h>

#include "analyze/tree/ident.h"

enum code_kind {
	CODE_OWN,        /* the program itself */
	CODE_DEPENDENCY, /* crates and libraries that it uses */
	CODE_STD,        /* std, core, alloc, the C, C++ and Go libraries, the dynamic loader, the vdso */
	CODE_ALLOCATOR,  /* jemalloc, mimalloc, malloc and free wherever they are */
	CODE_KERNEL,
	CODE_OTHER,      /* no code: threads, notes, causes, markers; names that were not found */
	CODE_KINDS,
};

struct crates {
	const struct profile *p;
	/* The rest is private. */
	struct strtab names;
	const char *const *own;
	VEC(char *) programs;
	struct map files; /* paths of modules, by id in names: FILE_ bits */
	bool jemalloc;
};

/* own: globs of crates or modules that are the user's own, NULL-terminated; NULL = guess. Borrowed. */
void crates_init(struct crates *c, const struct profile *p, const char *const *own);
void crates_done(struct crates *c);

/* Lives as long as c. "" if the identity is no code. */
const char *crate_name(struct crates *c, const struct ident *id);
enum code_kind crate_kind(struct crates *c, const struct ident *id);
/* "own", "dependency", "std", "allocator", "kernel", "other" */
const char *code_kind_key(enum code_kind k);
