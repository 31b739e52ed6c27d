/*
 * blobcode.h - what the parts of the blob's code know of each other (blob.h is what it shares with gasflame).
 */
#pragma once

#include "blob.h"

#ifndef HIDDEN
#define HIDDEN __attribute__((visibility("hidden")))
#endif

extern struct blob_fixed blob_fixed HIDDEN;
extern struct blob_local blob_local HIDDEN;
extern struct blob_shared blob_shared HIDDEN;

/* Tells the hooks how to treat an allocation: 0 nothing, 1 a sample to be seen, with its interval in seq; else the address of
 * its event, which is to be seen first and then gets seq. In two registers. */
struct blob_said {
	uint64_t event, seq;
};

/* sp: the stack pointer once the hook returns, pc: where to; bp: the register of the frame pointer, which is its caller's. */
struct blob_said blob_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp, uint64_t pc) HIDDEN;
uint32_t blob_free(uint64_t address) HIDDEN;

struct blob_said exact_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp, uint64_t pc) HIDDEN;
void exact_free(uint64_t address) HIDDEN;

/* --- what depends on the processor --- */

/* Whether rules are RULE_LINK. Unit tests have them on any machine. */
#ifndef BLOB_LINKS
#ifdef __x86_64__
#define BLOB_LINKS 0
#else
#define BLOB_LINKS 1
#endif
#endif

#ifdef __x86_64__

static inline uint64_t blob_thread_pointer(void)
{
	uint64_t r;

	__asm__("movq %%fs:0, %0" : "=r"(r));
	return r;
}

/* One instruction, so that a signal's handler comes before or after it; other threads must not do the same meanwhile. */
static inline uint64_t blob_add_alone(uint64_t *number)
{
	uint64_t one = 1;

	__asm__ volatile("xaddq %0, %1" : "+r"(one), "+m"(*number) : : "memory", "cc");
	return one;
}

static inline void blob_will_write(const void *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
}

/* The bits of a return address that are not its signature. */
static inline uint64_t blob_address(uint64_t pc)
{
	return pc;
}

#else

static inline uint64_t blob_thread_pointer(void)
{
	uint64_t r;

	__asm__("mrs %0, tpidr_el0" : "=r"(r));
	return r;
}

static inline uint64_t blob_add_alone(uint64_t *number)
{
	return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static inline void blob_will_write(const void *at)
{
	__asm__ volatile("prfm pstl1keep, %0" : : "Q"(*(const char *)at));
}

/* xpaclri: on a processor without signatures it does nothing. */
static inline uint64_t blob_address(uint64_t pc)
{
	register uint64_t lr __asm__("x30") = pc;

	__asm__("hint #7" : "+r"(lr));
	return lr;
}

#endif
