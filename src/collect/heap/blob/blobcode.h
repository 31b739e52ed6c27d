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

/* Tells hooks.S how to treat an allocation: 0 nothing, 1 a sample to be seen, with its interval in seq; else the address of
 * its event, which is to be seen first and then gets seq. In rax and rdx. */
struct blob_said {
	uint64_t event, seq;
};

/* sp: where the return address of the hook stands; bp: the register, which is its caller's. */
struct blob_said blob_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp) HIDDEN;
uint32_t blob_free(uint64_t address) HIDDEN;

struct blob_said exact_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp) HIDDEN;
void exact_free(uint64_t address) HIDDEN;

static inline uint64_t blob_thread_pointer(void)
{
	uint64_t r;

	__asm__("movq %%fs:0, %0" : "=r"(r));
	return r;
}
