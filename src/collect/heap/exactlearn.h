/*
 * exactlearn.h - what the hooks of a process are told, so that they know its stacks without the kernel (blob/exact.h).
 *
 * From each stack that the kernel has walked: the rules of its return addresses, its number (the profile's own), and
 * where the thread's stack is mapped. Only stacks of a thread's own are walked in the process: the main
 * thread's, or one whose mapping also holds what the thread pointer points to, as every C library does it.
 * Others (a handler's, a coroutine's) are left to the kernel, because they may be unmapped any time.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct exactlearn;
struct implant;
struct session;

struct exactlearn *exactlearn_new(struct session *s, pid_t pid, struct implant *i);
void exactlearn_free(struct exactlearn *l); /* NULL is fine */

/* A whole stack of the profile; those that are known cost a look-up. */
void exactlearn_stack(struct exactlearn *l, uint32_t stack);
/* The thread with that index in the shared memory was seen with its stack pointer there. */
void exactlearn_thread(struct exactlearn *l, uint32_t index, pid_t tid, uint64_t sp);
/* After each batch of these: looks up what is mapped, and forgets what was unmapped. */
void exactlearn_step(struct exactlearn *l);
