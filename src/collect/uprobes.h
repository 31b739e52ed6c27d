/*
 * uprobes.h - one BPF program at many places of a file, with a cookie for each.
 *
 * From Linux 6.6 on they are one link: to take away a probe by itself takes the kernel 10 to 100 ms, and all of one link
 * together no longer than that. Before, there is a link for each. The libbpf of older systems does not know the former,
 * so it is made by the system call itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bpf_program;
struct err;
struct uprobes;

/* Before the program is loaded: it must be said then how it will be attached. */
void uprobes_prepare(struct bpf_program *program);
/* fd: of the file, kept by the caller. */
int uprobes_attach(struct bpf_program *program, int fd, const uint64_t *offsets, const uint64_t *cookies, size_t n,
		   struct uprobes **ret, struct err *err);
void uprobes_detach(struct uprobes *u); /* NULL is fine */
