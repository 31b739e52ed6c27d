/*
 * usdt.h - USDT probes of a program: the notes that include/gasflame.h leaves (.note.stapsdt).
 *
 * Runs in the unprivileged child: the section is untrusted. A note is the usual
 *
 *	u32 name size, u32 descriptor size, u32 type 3, "stapsdt\0", then: address of a nop, base, semaphore
 *	(8 bytes each), provider, name and arguments, each with a NUL.
 *
 * Only notes whose provider is "gasflame" are taken, and only arguments in registers ("8@%rbx 8@%rax", on arm64
 * "8@x19 8@x0"): the header writes no others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;

enum { USDT_PLACES = 256, USDT_ARGUMENTS = 4 };

enum usdt_what { USDT_BEGIN = 1, USDT_END, USDT_MARK, USDT_BLOCK_END };

struct usdt_place {
	uint64_t offset;  /* of the nop, in the file */
	uint32_t what;
	uint32_t arguments[USDT_ARGUMENTS]; /* words of struct pt_regs, see collect/unwind/unwind.bpf.h; UINT32_MAX = none */
	uint32_t zero;
};

struct usdt_info {
	uint32_t count;
	uint32_t beyond;  /* places beyond the array's size */
	uint32_t odd;     /* notes of this provider, but not as the header writes them */
	uint32_t zero;
	struct usdt_place list[USDT_PLACES];
};

void usdt_find(struct elf *elf, struct usdt_info *ret);
/* Reads the notes of a section; base: where the linker put .stapsdt.base, 0 = nowhere. For usdt_find and
 * tests. */
void usdt_read(const struct elf *elf, const uint8_t *data, size_t n, uint64_t base, struct usdt_info *ret);
/* Returns whether all numbers are within their bounds. */
bool usdt_check(const struct usdt_info *info);
