/*
 * userstack.h - a stack unwound from user space, with the same tables and the same rules as unwind.bpf.c.
 *
 * For samples that carry a copy of the stack (fallback.c), and for threads that sleep
 * already when a recording begins (wait.c). Where rules and memory come from is
 * the caller's business.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/shared.h"
#include "elf/unwind/unwind.h"

struct processes;

struct userstack {
	const struct processes *processes; /* its mappings are those of pid as they are now */
	pid_t pid;                         /* -1: no memory but what read gives */
	const struct shared_mapping *maps; /* instead of those, sorted, where processes is NULL */
	uint32_t map_count;
	uint64_t (*rule)(void *context, uint32_t module, uint64_t address); /* RULE_FRAME_POINTER: it has no table */
	void *rule_context;
	unwind_read_fn *read;
	void *read_context;
	bool guessed; /* out: the caller of a frame was found by the look of the stack alone */
	bool derived; /* out: a row was read from the code */
};

/* Up to SHARED_MAX_USER_FRAMES into frames, leaf first. Why it ended. */
enum shared_reason userstack_walk(struct userstack *how, struct unwind_regs *regs, uint64_t *frames,
				  uint16_t *ret_count);
/* The bits of an address of code, as the kernel has laid processes out: signatures of return addresses (arm64) lie above them. Stacks lie
 * at the upper end, so that our own tells. */
uint64_t userstack_pc_mask(void);
/* An unwind_read_fn for the memory of a process: context points to its pid. */
bool userstack_read_process(void *context, uint64_t address, uint64_t *ret);
