/*
 * workerproto.h - the protocol between worker.c (the parent) and workerchild.c (the child).
 *
 * One SOCK_SEQPACKET pair. A request is one struct worker_request with its descriptors; the
 * answer is one struct worker_reply, its bulk written at the start of the reply file, a memfd
 * that the parent made, whose size is sealed. The parent copies the bulk out before it checks
 * it: the child could go on writing to it. Private to these files and their tests.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct err;
struct worker;

enum worker_op {
	WORKER_UNWIND = 1, /* reply: a packed table (packedtable.h) */
	WORKER_INSPECT,    /* reply: struct worker_info */
	WORKER_SYMBOLIZE,  /* addresses in the reply file; reply: packed names (packedsymbols.h) */
	WORKER_OFFSET,     /* reply: uint64_t */
	WORKER_IDENTIFY,   /* reply: struct worker_identity */
	WORKER_ALLOCATOR,  /* reply: struct allocator_info */
	WORKER_PLAIN_COPY, /* writes an ELF file with plain debug sections to the scratch file; no bulk */
	WORKER_DISASSEMBLE, /* offset is an address; reply: see disassemble.h */
	WORKER_PROBESITES, /* count bytes of patterns in the reply file; reply: struct probesites_info */
	WORKER_USDT,       /* reply: struct usdt_info */
	WORKER_LAYOUT,     /* reply: struct worker_layout */
	WORKER_CRC,        /* reply: uint32_t */
	WORKER_JIT,        /* addresses in the reply file; reply: packed names */
	WORKER_BUILDFACTS, /* reply: struct buildfacts */
	WORKER_FUNCTIONS,  /* reply: struct worker_functions, ranges */
	WORKER_GOPLACES,   /* reply: struct goplaces */
	WORKER_TOKIO,      /* reply: a packed program (tokio/tokiopack.h) */
};

/* The descriptors of a request, in this order; bit i of have says that i was sent. */
enum worker_fd {
	WORKER_FD_REPLY,
	WORKER_FD_MAIN,
	WORKER_FD_DEBUG,
	WORKER_FD_ALT,
	WORKER_FD_SCRATCH,
	WORKER_FDS,
};

enum worker_request_flags { WORKER_KEEP_HASH = 1, WORKER_NO_DWARF = 2, WORKER_JIT_DUMP = 4, WORKER_JIT_HISTORY = 8 };

enum {
	WORKER_MAX_REPLY = 512 << 20,
	WORKER_MAX_ADDRESSES = 8 << 20,
	WORKER_MAX_DATA = 1 << 30, /* anonymous memory of the child */
};

struct worker_request {
	uint32_t op, flags, have, zero;
	uint64_t count;  /* WORKER_SYMBOLIZE, WORKER_JIT: how many addresses; WORKER_PROBESITES: bytes */
	uint64_t offset; /* WORKER_OFFSET, WORKER_DISASSEMBLE; WORKER_JIT_HISTORY: base_ns of jit_history() */
};

struct worker_reply {
	int32_t status; /* 0 or -errno */
	uint32_t zero;
	uint64_t size;  /* bytes in the reply file */
	char text[512]; /* for people, when status < 0 */
};

struct worker_functions {
	uint64_t count, text_bytes;
	uint32_t from, overlapping;
};

enum worker_info_flags {
	WORKER_HAS_SYMTAB = 1,
	WORKER_HAS_DYNSYM = 2,
	WORKER_HAS_DEBUG_LINE = 4,
	WORKER_HAS_DEBUG_INFO = 8,
	WORKER_HAS_MINIDEBUG = 16,
	WORKER_HAS_EH_FRAME = 32,
	WORKER_HAS_DEBUG_FRAME = 64,
	WORKER_HAS_GO = 128,
};

/* struct symbols_info with fixed sizes and no bool, which hostile bytes could break. */
struct worker_info {
	uint32_t flags, debuglink_crc;
	uint64_t symbol_count, dynamic_count, go_count;
	uint16_t machine, type;
	uint8_t build_id_size, alt_build_id_size;
	uint8_t build_id[20], alt_build_id[20];
	char debuglink[256], altlink[512], allocator[32];
};

/* The main loop of the child; returns when the parent closes its end. */
void worker_child_run(int sock);
/*
 * Drops every privilege but the use of open descriptors and memory. All descriptors but keep_fd are
 * closed (0, 1 and 2 become /dev/null). From then on open(), socket(), execve() and the like kill the
 * process; in a build with sanitizers, which need more themselves, they fail.
 */
int worker_sandbox(int keep_fd, struct err *err);

/* Returns the pid of the current child, 0 = none: for tests, and to measure its cost. */
pid_t worker_child_pid(const struct worker *w);
