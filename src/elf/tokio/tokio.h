/*
 * tokio.h - the task types of a Rust program that runs on tokio: their vtables, their names, where they are spawned.
 *
 * tokio has one static table of functions for each type of future that the program spawns and each scheduler that it is
 * spawned on. All tokio versions from 1.23 on have the same table:
 *
 *	poll, schedule, dealloc, try_read_output, drop_join_handle_slow, drop_abort_handle, shutdown: functions
 *	trailer_offset, scheduler_offset, id_offset: where parts of the task are, from its header on
 *
 * Nothing names a table: it is found by this shape, among the words of the file that the loader relocates (or, in a
 * program at fixed addresses, that hold addresses), and by what the functions do. A table that fails one of the checks is
 * left out, since its slots would be written to.
 *
 * Pure parsing of hostile bytes: this runs in the unprivileged child. Callers ask worker_tokio(), which see.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct symbols_files;

enum tokio_kind {
	TOKIO_TASK,     /* of a multi-thread or current-thread runtime */
	TOKIO_BLOCKING, /* spawn_blocking(): polled once, on a thread of its own pool */
	TOKIO_LOCAL,    /* of a LocalSet */
	TOKIO_KINDS,
};

enum {
	TOKIO_VTABLES = 4096, /* in one file; larger programs are cut */
	TOKIO_SPAWNS = 64,    /* places of one vtable, likewise */
	TOKIO_NAME = 512,     /* bytes of a name with its NUL; a longer one ends with "…" */
};

/* A place in the code that is run once for each task of the type that is spawned there. */
struct tokio_spawn {
	uint64_t address; /* in the file's address space: of an instruction, not in the middle of one */
	uint64_t offset;  /* in the file, as a uprobe takes it */
	bool cheap;       /* the kernel emulates it under a uprobe, rather than single-step a copy of it */
};

struct tokio_vtable {
	uint64_t address;                 /* of the table, in the file's address space; so are the functions */
	uint64_t poll, schedule, dealloc; /* slots 0, 1 and 2 */
	char *name;                       /* the future as a person would call it; never NULL, not unique */
	bool named;                       /* false: nothing gave the name, it is "task type at 0x…" */
	enum tokio_kind kind;
	uint32_t id_offset;               /* where a task has its number (tokio::task::Id), from its header on */
	struct tokio_spawn *spawns;
	size_t spawn_count;
};

struct tokio_program {
	char version[32]; /* "1.43.0"; "" = the file does not say it */
	struct tokio_vtable *vtables; /* by address */
	size_t count;
	size_t left_out; /* tables beyond TOKIO_VTABLES, and those that only look alike */
};

/*
 * Finds the vtables of a file. -ENOENT: there is no tokio in it. -ENOTSUP: there is, but not of a shape that is known; err
 * says which and why. On success the caller calls tokio_done(ret). Of files only main and the symbols of debug are read.
 */
int tokio_find(const struct symbols_files *files, struct tokio_program *ret, struct err *err);
void tokio_done(struct tokio_program *p);
/* Returns the version as major * 1,000,000 + minor * 1,000 + patch; 0 = unknown. */
uint64_t tokio_version_number(const char *version);
