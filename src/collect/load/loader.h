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
 *	r = bpf_object__load(...);
 *	good = loader_end(l);			// waits; always, also after an error
 *
 * Where it fails, loading once more without it gives the verifier's words. One thread
 * calls it, one at a time. Programs of tracepoints (raw_tp) and perf events only.
 */
#pragma once

#include <stdbool.h>

struct loader;

struct loader *loader_begin(void); /* NULL: there is nothing to gain, as with one CPU, or libbpf does not take it */
/* True: all programs that were put off are loaded, or none were. Frees l; NULL is fine. */
bool loader_end(struct loader *l);
