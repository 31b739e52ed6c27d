/*
 * symbols.h - names, files, lines and inlined calls for addresses of one ELF file.
 *
 * Pure parsing of hostile bytes: this runs in the unprivileged child (worker.h) and
 * in fuzzers. It opens nothing; the caller hands over the file and, if any, the
 * separate debug file (.gnu_debuglink, .build-id) and the dwz supplement
 * (.gnu_debugaltlink).
 *
 *	struct symbols *s;
 *	symbols_new(&(struct symbols_files){ .main = elf, .debug = NULL }, &s, &err);
 *	symbols_resolve(s, addresses, n, got, context);
 *	symbols_free(s);
 *
 * The symbol table (.symtab, else .dynsym and the MiniDebugInfo of .gnu_debugdata)
 * is sorted once; DWARF is read lazily, only for the compile units that the
 * addresses hit. A Go program has the table of its runtime too (go/gotab.h), which
 * answers where DWARF does not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;
struct err;
struct symbols;

struct symbols_files {
	struct elf *main;  /* the mapped file; owned by the caller, must outlive symbols */
	struct elf *debug; /* with .symtab or .debug_*; may be NULL */
	struct elf *alt;   /* dwz supplement; may be NULL */
	/* An empty, unlinked file to unpack large compressed sections to (so that they are page cache, not
	 * anonymous memory), or -1 for memory. */
	int scratch_fd;
	bool no_dwarf; /* symbol tables only: no lines, no inlined calls */
};

struct symbols_call {
	const char *linkage; /* as in the file, mangled; "" if DWARF gave only a plain name */
	const char *name;    /* DWARF's own name where linkage is "" */
	const char *file;    /* source path, "" = unknown */
	uint32_t line;       /* 0 = unknown */
};

/* Receives one address: calls[0] is the innermost inlined call, the last is the function itself. count is
 * 0 when nothing is known. Strings live until symbols_free; the array only during the call. */
typedef void symbols_got_fn(void *context, size_t index, const struct symbols_call *calls, size_t count);

int symbols_new(const struct symbols_files *files, struct symbols **ret, struct err *err);
void symbols_free(struct symbols *s);
/* Calls got once for each address, in any order (index says which). Addresses need not be sorted. */
int symbols_resolve(struct symbols *s, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		    void *context);

/* Summary of a file, for doctor and for the search of debug files. */
struct symbols_info {
	bool symtab, dynsym, debug_line, debug_info, minidebug;
	bool go; /* the table of Go's runtime: names, lines and inlined calls, also of a stripped program */
	bool eh_frame, debug_frame;
	char debuglink[256];      /* file name, "" = none */
	uint32_t debuglink_crc;
	char altlink[512];        /* path, "" = none */
	uint8_t alt_build_id[20];
	uint8_t alt_build_id_size;
	uint8_t build_id[20];
	uint8_t build_id_size;
	uint16_t machine, type;
	uint64_t symbol_count;    /* functions in .symtab, else in Go's table, else in .dynsym */
	uint64_t dynamic_count;   /* functions in .dynsym */
	uint64_t go_count;        /* functions in Go's table */
	char allocator[32];       /* "jemalloc", "jemalloc (_rjem_)", "mimalloc", "tcmalloc", "" */
};
void symbols_inspect(struct elf *elf, struct symbols_info *ret);
