/*
 * fuzz_dwarf.c - debug information: every address of the code is looked up in an ELF file, which is also its
 * own dwz supplement, so that references into that are followed too.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/file.h"
#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESSES = 256 };

static size_t answered, length;

static void got(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		length += strlen(calls[i].linkage) + strlen(calls[i].name) + strlen(calls[i].file);
	answered++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addresses[ADDRESSES];
	struct symbols_files files = { .scratch_fd = -1 };
	struct symbols *symbols;
	struct elf *elf;
	size_t n = 0;

	if (elf_open_memory(data, size, &elf, NULL) < 0)
		return 0;
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->flags & SHF_EXECINSTR)
			for (uint64_t k = 0; k < s->size && n < ADDRESSES; k++)
				addresses[n++] = s->address + k;
	}
	files.main = files.alt = elf;
	answered = 0;
	symbols_new(&files, &symbols, NULL);
	symbols_resolve(symbols, addresses, n, got, NULL);
	if (answered != n)
		abort();
	symbols_free(symbols);
	elf_free(elf);
	return 0;
}
