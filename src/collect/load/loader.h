/*
 * loader.h - has several BPF programs verified at the same time.
 *
 * libbpf loads programs one after the other, and the kernel's verifier takes tens of
 * milliseconds for each large one; it verifies programs of privileged users side by
 * side, if they are asked for side by side. So libbpf is given a program of two
 * instructions in place of each large one, the large ones are loaded by threads, and
 * in the end take over the descriptors of the small ones.
 *
 *	l = loader_begin();			// before the object is opened
 *	targets = loader_targets(object, &n);	// smallbtf_write() finds their numbers
 *	loader_set_targets(l, targets, n);
 *	r = bpf_object__load(...);
 *	...					// what needs the maps only
 *	good = loader_end(l);			// waits; always, also after an error
 *
 * Programs that name what they attach to by a type of the kernel (tp_btf, iter) are
 * all put off. libbpf takes them for programs that need no type: else it reads the
 * whole BTF of the kernel, and goes through it for each of them.
 *
 * Where it fails, the object is closed, loader_off() called, and libbpf loads all by
 * itself, which gives the verifier's words. One thread calls it, one at a time.
 * Programs of tracepoints (raw_tp, tp_btf), of perf events and iterators only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct bpf_object;
struct loader;
struct smallbtf_target;

struct loader *loader_begin(void); /* NULL: libbpf does not take it */
/* What the programs of an object attach to by a type of the kernel. The caller frees it. */
struct smallbtf_target *loader_targets(const struct bpf_object *o, size_t *ret_count);
/* They stay the caller's, and there until loader_end(). l may be NULL. */
void loader_set_targets(struct loader *l, const struct smallbtf_target *targets, size_t count);
/* True: all programs that were put off are loaded, or none were. Frees l; NULL is fine. */
bool loader_end(struct loader *l);
/* From now on libbpf loads by itself. No object may be open. */
void loader_off(void);
