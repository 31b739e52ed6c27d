/*
 * sharedio.h - what the BPF programs of the io collector and io.c both read.
 */
#pragma once

#include "collect/shared.h"

/* The system calls that move or sync data, and io_uring's requests by what they do. */
#define SHARED_IO_OPS(X)                                                                                  \
	X(read) X(write) X(pread64) X(pwrite64) X(readv) X(writev) X(preadv) X(pwritev) X(preadv2)        \
	X(pwritev2) X(sendfile) X(copy_file_range) X(splice) X(tee) X(vmsplice) X(sendto) X(sendmsg)      \
	X(sendmmsg) X(recvfrom) X(recvmsg) X(recvmmsg) X(fsync) X(fdatasync) X(sync_file_range) X(msync)  \
	X(syncfs) X(sync) X(io_uring_read) X(io_uring_write) X(io_uring_send) X(io_uring_recv)            \
	X(io_uring_sync) X(io_uring_enter) X(io_submit)

#define SHARED_IO_ENUM(name) IO_OP_##name,
enum shared_io_op { IO_OP_none, SHARED_IO_OPS(SHARED_IO_ENUM) IO_OPS };
#undef SHARED_IO_ENUM

enum shared_io_way { IO_READ = 1, IO_WRITE = 2, IO_SYNC = 4 };

/* file 0: the call had no descriptor, or one that was not open. */
struct shared_io {
	uint32_t kind;
	uint32_t pid, tid;
	uint16_t op;
	uint8_t way, pad;
	uint32_t count, errors; /* calls, also those that failed; and those */
	uint64_t time_ns;       /* when it ended, or the slot began */
	uint64_t bytes, ns;
	uint64_t stack, file;
};

enum {
	SHARED_IO_PLACES = 32, /* that are remembered for each thread; a power of two */
	SHARED_IO_WALKS = 16,  /* stacks walked for each thread in a slot of time before remembered stacks are taken */
	SHARED_IO_MORE = 256,  /* stacks walked where no stack is remembered for the place and the file */
	SHARED_FILE_PARTS = 40, /* of a path; names beyond are cut */
	SHARED_FILE_BYTES = 4096,
	SHARED_FILE_SEEN = 1 << 14,
	SHARED_DEVICES = 64,
	SHARED_REQUESTS = 16384, /* of block devices, or of io_uring, that are under way */
};

/*
 * A call site of a thread, with the operation and the file, and the calls there in this slot of time. sum.kind is 0
 * where the place is free; its count is 0 where nothing was added since it was sent.
 */
struct shared_io_place {
	uint64_t ip, sp;    /* of the user at the call */
	uint64_t callers;   /* a hash of the words above sp, by which functions that call read() alike are told apart */
	uint64_t walked_ns; /* when the stack was last walked again by chance */
	uint32_t checks;    /* how often the callers were found the same */
	uint32_t passed;    /* calls since the stack was walked */
	uint8_t split;      /* calls with other callers have places of their own */
	uint8_t noise;      /* how often other callers had the same stack: the words tell nothing if it is often */
	uint8_t mixed;      /* more than one stack was found here */
	uint8_t rare;       /* the stack is walked again with a chance of 2^-rare */
	uint32_t pad;
	struct shared_io sum;
};

/* One way of the call at hand, for which a place is looked for. */
struct shared_io_call {
	uint64_t file;    /* its key */
	uint64_t handle;  /* the struct file */
	uint64_t ip, sp;
	uint64_t callers; /* 0: not read yet */
	uint64_t hash;
	uint32_t way;     /* 0: there is none */
	uint32_t near;    /* the place that differs in its callers only; SHARED_IO_PLACES: none */
};

/*
 * A thread as the io collector's programs keep it. What they need for the call at hand is here as well: before 6.13 all
 * functions that call each other have 512 bytes of stack together, and the unwinder takes half of it.
 */
struct shared_io_thread {
	uint32_t pid, tid;
	uint32_t op;       /* of the call at hand, 0 = none */
	uint32_t epoch;    /* in which it began */
	uint64_t since_ns;
	uint64_t argument; /* of the call, where its result does not tell the bytes */
	uint64_t slot_ns;  /* when the slot of the sums began */
	uint32_t walks;    /* of stacks in this slot */
	uint32_t allowed;  /* walks of known places in this slot, beside those by chance: none where calls are many */
	uint32_t calls;    /* in this slot */
	uint8_t from, to;  /* places of the call at hand: read from, written to or synced; SHARED_IO_PLACES: none */
	uint8_t walked;    /* the stack of the call at hand is its own, not what is remembered */
	uint8_t worth;     /* the last stack that was walked is to be remembered */
	uint8_t pad[4];
	uint64_t pointers[3]; /* see file_key_typed() */
	struct shared_io_call ways[2]; /* what is read; what is written or synced */
	struct shared_io one; /* a call that is sent by itself */
	struct shared_io_place places[SHARED_IO_PLACES];
};

/* Exact whatever becomes of the records. */
struct shared_io_stats {
	uint64_t calls, errors, bytes, ns;
	uint64_t latency[64]; /* by power of two; calls that began before the recording are not in it */
};

struct shared_io_counts {
	uint64_t walked;
	uint64_t variance;      /* of the calls of a function, in calls²: see place_again() */
	uint64_t lost_calls, lost_bytes, lost_stacks, lost_files;
	uint64_t threads_full, compat;
	uint64_t requests_full; /* of block devices or io_uring, without room to remember them */
	uint64_t unknown_requests; /* completions of io_uring that belong to no request seen */
};

enum { FILE_DELETED = 1, FILE_CUT = 2, FILE_ROOTLESS = 4 };

/* Names follow, leaf first, each with its NUL: count of them in bytes. */
struct shared_file {
	uint32_t kind;
	uint32_t mode;   /* S_IFMT of it tells sockets and pipes */
	uint64_t key;
	uint64_t inode;
	uint32_t magic;  /* of its file system */
	uint32_t flags;
	uint16_t family, type; /* of a socket; its type with SOCK_ flags */
	uint16_t local_port, peer_port;
	uint16_t count, bytes;
	uint32_t pad;
};

enum shared_request_kind { REQUEST_READ, REQUEST_WRITE, REQUEST_FLUSH, REQUEST_OTHER, REQUEST_KINDS };

struct shared_device {
	char name[32];
	struct {
		uint64_t requests, bytes, ns;
		uint64_t own_requests, own_bytes; /* issued by a thread of the targets */
		uint64_t errors;
		uint64_t latency[64];
	} kinds[REQUEST_KINDS];
};

_Static_assert(sizeof(struct shared_io) == 64, "layout");
_Static_assert(sizeof(struct shared_io_place) == 112, "layout");
_Static_assert(sizeof(struct shared_io_thread) <= 3900, "with the map's own words less than a page");
_Static_assert(sizeof(struct shared_file) == 48, "layout");
