/*
 * Unwind tables from hostile unwind information. The first byte of the input
 * chooses the section's name and whether there is a section table; the rest is
 * the section. Whatever it holds, the table must be one that we would load, and
 * the functions must be sorted.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/file.h"
#include "elf/unwind/functions.h"
#include "elf/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All code without rows is read: there must not be much of it. */
enum { TEXT = 0x1100, TEXT_SIZE = 0x4000, PLT = 0x3000, FRAME = 0x200000, PLT_BYTES = 128 };

/* A memory in which every word is readable and points near itself. */
static bool read_word(void *context, uint64_t address, uint64_t *ret)
{
	*ret = address + 16;
	return true;
}

static void use(const struct unwind_table *t)
{
	struct unwind_regs regs = { .leaf = true };

	for (uint64_t address = 0; address < TEXT + TEXT_SIZE; address += 0x7f)
		unwind_find(t, address);
	for (uint32_t i = 0; i < t->rule_count; i++) {
		regs.r[UNWIND_RSP] = regs.r[UNWIND_RBP] = 0x7000;
		unwind_step(&regs, t->rules[i], read_word, NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* libFuzzer's first input is empty. */
	uint8_t kind = size ? data[0] : 0;
	const uint8_t *frame = size ? data + 1 : NULL;
	size_t n = size ? size - 1 : 0;
	static uint8_t text[TEXT_SIZE];
	bool headers_only = kind & 2; /* then the section is the whole file, else text comes with it */
	struct elf_section sections[] = {
		{ .name = kind & 1 ? ".debug_frame" : ".eh_frame", .type = SHT_PROGBITS, .flags = SHF_ALLOC,
		  .address = FRAME, .size = n, .data = frame, .file_size = n },
		{ .name = ".plt", .type = SHT_PROGBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .address = PLT,
		  .data = frame, .size = n, .file_size = n < PLT_BYTES ? n : PLT_BYTES },
	};
	struct elf_segment segments[] = {
		{ .type = PT_LOAD, .flags = PF_R | PF_X, .address = TEXT, .file_size = TEXT_SIZE,
		  .memory_size = TEXT_SIZE },
		{ .type = PT_LOAD, .flags = PF_R, .address = FRAME, .file_size = n },
		{ .type = PT_GNU_EH_FRAME, .flags = PF_R, .address = FRAME, .file_size = n },
	};
	struct elf elf = { .data = headers_only ? frame : text,
		           .size = headers_only ? n : TEXT_SIZE,
		           .type = ET_DYN,
		           .machine = EM_X86_64,
		           .entry = TEXT + 0x2000,
		           .sections = sections,
		           .section_count = headers_only ? 0 : 2,
		           .segments = segments,
		           .segment_count = 3 };
	struct functions functions;
	struct unwind_table t;

	/* Code that has no rows is read: the input is that, too. */
	memset(text, 0, sizeof(text));
	if (n)
		memcpy(text, frame, n < sizeof(text) ? n : sizeof(text));
	if (size) {
		functions_read(&elf, &functions);
		if (!functions_valid(&functions))
			abort();
		functions_done(&functions);
	}
	if (!size || unwind_build(&elf, &t, NULL) < 0)
		return 0;
	if (!unwind_valid(&t))
		abort();
	use(&t);
	unwind_done(&t);
	return 0;
}
