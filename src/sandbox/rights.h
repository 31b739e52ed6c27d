/*
 * rights.h - the capabilities of this thread, and giving them up for good.
 *
 * Sets are bits by CAP_* number. Threads and processes that are started later have what this thread has left;
 * threads that run already keep theirs, so rights are given up before the first thread starts.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

#define RIGHTS_BIT(capability) (1ULL << (capability))

/* Returns the effective capabilities of this thread. */
uint64_t rights_effective(void);

/* Keeps at most the named capabilities, effective and permitted; none is inheritable, ambient or, as far as
 * this thread may say so, in the bounding set. No program that is executed later gains a right: no_new_privs.
 * 0, or a negative errno with a sentence. */
int rights_keep(uint64_t capabilities, struct err *err);

/* Becomes another user for good (all threads, as glibc does it), without supplementary groups; the named
 * capabilities stay permitted and effective. -EPERM or -EINVAL where a container does not allow or know it. */
int rights_become(uid_t uid, gid_t gid, uint64_t capabilities);

/* "CAP_BPF CAP_PERFMON", or "none", appended. */
void rights_put_names(uint64_t capabilities, struct buf *b);
