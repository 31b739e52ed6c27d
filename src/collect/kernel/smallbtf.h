/*
 * smallbtf.h - the part of the kernel's BTF that our programs' relocations (CO-RE) need.
 *
 * libbpf goes through all types of the kernel for each type that a program names:
 * 50 ms of CPU time. Here one pass takes out the types with those names and all that
 * they are made of, some hundred of a hundred thousand. Pointers stay, but point to
 * void: relocations ask for the place and the size of fields, and never what is
 * behind a pointer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct btf;
struct buf;
struct err;

/* Appends the part of all (the bytes of a BTF, n of them) that has the types named in local, or in a flavor of it
 * ("task_struct___old"), to ret. -ENOTSUP: all has what this code does not know, and is to be used as it is. Pure. */
int smallbtf_make(const void *all, size_t n, const struct btf *local, struct buf *ret, struct err *err);
/* The number of a struct in all; 0: it has none of that name. Numbers of the small part are others, so a program that names
 * a type of the kernel by its number (bpf_rdonly_cast()) gets it from here. Pure. */
uint32_t smallbtf_number(const void *all, size_t n, const char *name);
/* The same of the running kernel, for several names: ret[i] is the number of names[i]. */
void smallbtf_numbers(const char *const *names, uint32_t *ret, size_t count);
/* A type of the kernel that a program attaches to: "btf_trace_sched_switch", "bpf_iter_task". */
struct smallbtf_target {
	char name[64];
	uint32_t kind;   /* BTF_KIND_*, tells it from others of that name */
	uint32_t number; /* in the kernel's BTF; 0: it is not there */
};

/* Finds the numbers of targets in all; 0 where it has none. Pure. */
void smallbtf_find(const void *all, size_t n, struct smallbtf_target *targets, size_t count);
/* Writes the part of the running kernel's BTF to an empty file, and finds the targets in the whole of it. */
int smallbtf_write(int fd, const struct btf *local, struct smallbtf_target *targets, size_t count, struct err *err);
