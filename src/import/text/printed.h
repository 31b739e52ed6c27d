/*
 * printed.h - stacks with counts as bpftrace, DTrace and bcc print them, as a profile.
 *
 * Each of the three has its own way to put stacks into lines; what a frame looks like, what it belongs to, and what a count stands for
 * is here:
 *
 *	do_syscall_64+12			a name with an offset, decimal or not
 *	genunix`kmem_free+0x1c			module and name (DTrace)
 *	7f12 read+12 (/lib/libc.so.6)		perf's way (bpftrace's perf mode, libbpf-tools)
 *	#1  0x00007f12 read+0xc			libbpf-tools
 *	read_[k]				a mark: of the kernel
 *
 * Which frames of a stack without marks are the kernel's is told by the function through which it was entered, do_syscall_64 and
 * such: those from the leaf to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "import/frames.h"

struct err;
struct import_input;
struct profile;

struct printed_event {
	const char *name, *unit, *describe;
	uint64_t factor; /* of the printed number: 1000 where it is microseconds */
	bool samples;    /* the number counts samples, of which each is worth the factor */
};

struct printed {
	struct profile *p;
	uint64_t unknown_lines;
	/* The rest is private. */
	struct frames frames;
	VEC(uint32_t) list; /* frames of the stack that is being read, the leaf first */
	VEC(uint64_t) totals; /* by event */
};

/* A line without its end; n may be 0. An error ends the reading. */
typedef int printed_line_fn(void *context, char *line, size_t n, uint64_t number, struct err *err);
/* Reads all of the input, line by line; s needs no other beginning or end. */
int printed_read(struct printed *s, const struct import_input *in, printed_line_fn *take, void *context, struct profile **ret,
		 struct err *err);

/* A frame further out than those before it. kernel: it is known to be one of the kernel's. */
void printed_frame(struct printed *s, const char *text, size_t n, bool kernel);
/* All frames so far are the kernel's. */
void printed_kernel(struct printed *s);
/* Frames from one on go before those ahead of them: a kernel's stack that came after the program's. */
void printed_swap(struct printed *s, size_t from);
/* Does the stack from a frame on enter the kernel? */
bool printed_enters_kernel(const struct printed *s, size_t from);
/* Does the stack end where a thread leaves its processor? */
bool printed_off_cpu(const struct printed *s);
/* Ends the stack: number is as printed. -ERANGE with a sentence. */
int printed_add(struct printed *s, const struct printed_event *e, uint32_t pid, uint32_t tid, const char *comm, uint64_t number,
		  uint64_t line, struct err *err);

/* A number that fills the text, spaces around it aside. */
bool printed_number(const char *s, size_t n, uint64_t *ret);

bool bpftrace_probe(const char *data, size_t n, bool whole);
int bpftrace_import(const struct import_input *in, struct profile **ret, struct err *err);
bool dtrace_probe(const char *data, size_t n, bool whole);
int dtrace_import(const struct import_input *in, struct profile **ret, struct err *err);
bool bcc_probe(const char *data, size_t n, bool whole);
int bcc_import(const struct import_input *in, struct profile **ret, struct err *err);
