/*
 * fuzz_elf.c - ELF files: sections, decompression, symbol tables, PLT, MiniDebugInfo, what doctor asks, instructions.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/buildfacts.h"
#include "elf/probe/goplaces.h"
#include "elf/demangle.h"
#include "elf/probe/disassemble.h"
#include "elf/file.h"
#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t answered;

static void got(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *name = demangle(calls[i].linkage, index % 2);

		if (strlen(name) > 1 << 20)
			abort();
		free(name);
	}
	answered++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addresses[64];
	struct symbols_files files = { .scratch_fd = -1, .no_dwarf = true };
	struct symbols_info info;
	struct buildfacts facts;
	struct goplaces places;
	struct symbols *symbols;
	struct elf *elf;
	uint8_t id[20];
	size_t n = 0;

	if (elf_open_memory(data, size, &elf, NULL) < 0)
		return 0;
	symbols_inspect(elf, &info);
	buildfacts_find(elf, &facts);
	buildfacts_clean(&facts);
	goplaces_find(elf, &places);
	if (!goplaces_check(&places))
		abort();
	if (strlen(info.debuglink) >= sizeof(info.debuglink) || elf_build_id(elf, id) > sizeof(id))
		abort();
	for (size_t i = 0; i < elf->section_count && i < 64; i++) {
		const uint8_t *bytes;
		size_t count;

		if (!elf_section_bytes(elf, &elf->sections[i], 1 << 20, &bytes, &count, NULL) && count)
			id[0] ^= bytes[0] ^ bytes[count - 1];
		if (elf->sections[i].flags & SHF_EXECINSTR)
			for (int k = 0; k < 8 && n < 64; k++)
				addresses[n++] = elf->sections[i].address + elf->sections[i].size / 8 * k;
	}
	for (size_t i = 0; i < elf->segment_count && !elf->section_count; i++)
		for (int k = 0; k < 8 && n < 64 && elf->segments[i].flags & PF_X; k++)
			addresses[n++] = elf->segments[i].address + 16 * k;
	answered = 0;
	files.main = elf;
	symbols_new(&files, &symbols, NULL);
	symbols_resolve(symbols, addresses, n, got, NULL);
	if (answered != n)
		abort();
	symbols_free(symbols);
	if (disassemble_there() && n) {
		struct buf code = { 0 };

		disassemble_function(&files, addresses[n / 2], &code, NULL);
		buf_done(&code);
	}
	elf_free(elf);
	return 0;
}
