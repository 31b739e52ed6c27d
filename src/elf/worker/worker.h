/*
 * worker.h - the unprivileged child that reads the target's files.
 *
 * gasflame may be root, and the owner of a target chooses what is in its files.
 * So the parent opens them, and this child, which has dropped every privilege
 * (another user, no new privileges, a seccomp filter that allows memory, its
 * socket and the descriptors that it receives, limits on memory and CPU time),
 * parses them. It executes this program again, so it has none of the parent's
 * memory. When it dies or exceeds its budget (budget.h), the call fails with an
 * error, the next call starts a new child, and the caller goes on without that
 * file, which is not tried again.
 *
 * Replies are checked here before they are handed out: counts, offsets, strings.
 * Calls block; one thread at a time, but for worker_cancel().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"
#include "elf/unwind/unwind.h"

struct err;
struct worker;

/* Starts no child yet: the first call starts one and waits for it; worker_start() starts one without
 * waiting. */
struct worker *worker_new(void);
void worker_start(struct worker *w);
void worker_free(struct worker *w);

/* fd is kept by the caller. On success the caller calls unwind_done(ret). */
int worker_unwind(struct worker *w, int fd, struct unwind_table *ret, struct err *err);
int worker_inspect(struct worker *w, int fd, struct symbols_info *ret, struct err *err);

struct worker_files {
	int main, debug, alt; /* descriptors, -1 = none */
	bool keep_hash;       /* see demangle.h */
	bool no_dwarf;        /* symbol tables only */
};
/* Passes names to got as symbols_resolve does, in order; strings are valid only during the call. name is
 * always filled, and demangled in the child, since the demangler too reads hostile bytes. */
int worker_symbolize(struct worker *w, const struct worker_files *files, const uint64_t *addresses,
		     size_t n, symbols_got_fn *got, void *context, struct err *err);
/* Finds the address at which a file offset is mapped, see elf_offset_to_address(); -ENOENT if there is
 * none. */
int worker_offset_to_address(struct worker *w, int fd, uint64_t offset, uint64_t *ret, struct err *err);

/* Data that a search through many files needs; cheaper than worker_inspect. */
struct worker_identity {
	uint8_t build_id[20];
	uint8_t build_id_size;     /* 0 = none */
	uint8_t compressed;        /* has compressed .debug_* sections */
	uint8_t zero[2];
	uint64_t unpacked_bytes;   /* size of the file that worker_plain_copy would write */
};
int worker_identify(struct worker *w, int fd, struct worker_identity *ret, struct err *err);
/* Writes the symbols and debug information of fd to out, an empty file open for writing, with every
 * section uncompressed, so that later reads need not decompress them. */
int worker_plain_copy(struct worker *w, int fd, int out, struct err *err);

/* Passes the instructions of the function around an address to got, in order; text has no control
 * characters and is valid only during the call. -ENOTSUP: this build, or that machine, cannot. debug, for
 * its symbols, may be -1. */
typedef void worker_instruction_fn(void *context, uint64_t address, uint32_t size, const char *text);
int worker_disassemble(struct worker *w, int fd, int debug, uint64_t address, worker_instruction_fn *got,
		       void *context, struct err *err);

struct allocator_info;
/* See allocator.h; only the bounds of the result were checked. */
int worker_allocator(struct worker *w, int fd, struct allocator_info *ret, struct err *err);

struct probesites_info;
/* Finds the functions that match patterns, each with a NUL at its end, n bytes in all: see probesites.h. */
int worker_probesites(struct worker *w, int fd, const char *patterns, size_t n, struct probesites_info *ret,
		      struct err *err);
struct buildfacts;
/* Finds out how a program was built: see buildfacts.h. */
int worker_buildfacts(struct worker *w, int fd, struct buildfacts *ret, struct err *err);
struct functions;
/* Finds where the functions of a file start and end: see functions.h. On success the caller calls functions_done(ret). */
int worker_functions(struct worker *w, int fd, struct functions *ret, struct err *err);
struct goplaces;
/* Finds where a Go program parks and runs goroutines: see goplaces.h. */
int worker_goplaces(struct worker *w, int fd, struct goplaces *ret, struct err *err);
struct tokio_program;
/* Finds the task types of a Rust program with tokio: see elf/tokio/tokio.h for the result and the errors. debug, for its
 * symbols, may be -1. On success the caller calls tokio_done(ret). */
int worker_tokio(struct worker *w, int fd, int debug, struct tokio_program *ret, struct err *err);
struct usdt_info;
/* Finds the USDT probes of a program: see usdt.h. */
int worker_usdt(struct worker *w, int fd, struct usdt_info *ret, struct err *err);

/* The code mappings and the build ID of a file; reads only the headers. */
enum { WORKER_LAYOUT_PARTS = 64 };
struct worker_layout {
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0 = none */
	uint8_t zero[3];
	uint32_t part_count, zero2;
	struct {
		uint64_t offset, size, address; /* executable parts of the file */
	} parts[WORKER_LAYOUT_PARTS];
};
int worker_layout(struct worker *w, int fd, struct worker_layout *ret, struct err *err);
/* Are its counts within bounds? For one that was stored. */
bool worker_layout_valid(const struct worker_layout *l);
/* As worker_offset_to_address(), without asking the child. */
bool worker_layout_address(const struct worker_layout *l, uint64_t offset, uint64_t *ret);
/* Computes the checksum of a whole file for .gnu_debuglink; -EFBIG for files that have far more holes than
 * bytes. */
int worker_crc(struct worker *w, int fd, uint32_t *ret, struct err *err);
/* Names from a perf map or a jitdump (jit.h), as worker_symbolize(); addresses ascend. */
int worker_jit(struct worker *w, int fd, bool dump, const uint64_t *addresses, size_t n, symbols_got_fn *got,
	       void *context, struct err *err);
/* Passes what a jitdump had at addresses over time to got, as jit_history() does; other addresses have no calls. */
int worker_jit_history(struct worker *w, int fd, uint64_t base_ns, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		       void *context, struct err *err);

/* Limits the time of one call where its budget would allow more. */
void worker_set_timeout(struct worker *w, uint64_t timeout_ns);
/* From another thread or a signal handler: the current call and all later ones fail with -ECANCELED at
 * once. */
void worker_cancel(struct worker *w);
bool worker_cancelled(const struct worker *w);
