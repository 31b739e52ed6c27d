/*
 * hookset.h - a blob in a process and the slots that lead to its hooks: what all implants share.
 *
 * An implant embeds one:
 *
 *	hookset_init(&h, &kind, pid);
 *	e = hookset_open(&h, &err);                       the process
 *	e = e ?: hookset_find(&h, false, &err);           a blob that is there; -ENOENT: none
 *	if (e == -ENOENT) e = hookset_make(&h, &err);     a new one
 *	...
 *	hookset_done(&h);
 *
 * Slots are changed through /proc/PID/mem, each only if it holds what was expected, and is written down before.
 * What is put back must be code, and only where one of our hooks is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/inject/implantmap.h"
#include "collect/inject/ptracecall.h"
#include "collect/inject/remotemem.h"

struct blob_head;
struct blobkind;
struct err;

struct hookset {
	const struct blobkind *kind;
	pid_t pid;
	int process;              /* a pidfd: whoever has the number later is not meant */
	struct remotemem mem;     /* of the program that it runs now */
	struct implantmap map;
	char path[64];            /* of the image, for uprobes */
	uint64_t stopped_ns;      /* for how long a thread was stopped */
	struct ptracecall remote; /* of a program that stands at its beginning */
	bool held;
};

void hookset_init(struct hookset *h, const struct blobkind *kind, pid_t pid);
void hookset_done(struct hookset *h);
int hookset_open(struct hookset *h, struct err *err);
/*
 * Takes hold of a blob that is there. -ENOENT: none; -EBUSY: another gasflame has it. A child of fork has a part of its
 * parent's, which cannot be used: any: that is good enough, to be unhooked; otherwise its hooks are taken out.
 */
int hookset_find(struct hookset *h, bool any, struct err *err);
/* Has a thread of the process map a new blob: the one that is held, or one that is stopped for it. */
int hookset_make(struct hookset *h, struct err *err);

/* A program that stands before its first instruction, by ptracecall_at_entry() or its like, until it is let go. */
int hookset_hold(struct hookset *h, int (*hold)(struct ptracecall *, pid_t, struct err *), struct err *err);
void hookset_let_go(struct hookset *h);

/* All of the bytes, or an error; of put() -EACCES: it takes hookset_write(). */
int hookset_get(const struct hookset *h, uint64_t address, void *ret, size_t n);
int hookset_put(const struct hookset *h, uint64_t address, const void *data, size_t n);
/* Where a part of our copy of the fixed memory is in the process, and puts it there. */
uint64_t hookset_fixed_at(const struct hookset *h, const void *part);
int hookset_put_fixed(const struct hookset *h, const void *part, size_t n);
/* The first word of the local part: 0, and hooks pass on. */
int hookset_set_active(const struct hookset *h, uint32_t active);
/* The fixed part and most slots are read-only in the process: whoever writes to them does so in a function for this
 * (remotemem_write()). */
int hookset_write(struct hookset *h, int (*write)(void *context), void *context, struct err *err);

/* Within hookset_write(). 0: done, or there is no room or no such memory; 1: the slot does not hold value; else an error. */
int hookset_hook(struct hookset *h, uint64_t address, uint64_t value, uint64_t hook);
/* How many slots hold our hooks now. */
int hookset_hooked(const struct hookset *h);
/* Hooks pass on, and the slots that still hold ours are put back. Returns how many could not be; err says why. */
int hookset_unhook(struct hookset *h, struct err *err);

/* Does nobody run our hooks any more: has the process ended, or executed another program? */
bool hookset_gone(const struct hookset *h);
/* Has the process, which is still there, another memory than the one with our hooks? It executed a program. */
bool hookset_replaced(const struct hookset *h);
