/*
 * fuzz_probesites.c - functions' ways in and out and the notes of gasflame.h in an ELF file; the notes also alone.
 *
 * What is found passes the parent's checks, and lies within the file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/probe/probesites.h"
#include "elf/file.h"
#include "elf/probe/usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void check_notes(const struct usdt_info *notes, size_t size)
{
	expect(usdt_check(notes));
	for (uint32_t i = 0; i < notes->count; i++)
		expect(notes->list[i].offset < size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char patterns[] = "ma\0closure}}\0_st";
	static struct probesites_info info;
	static struct usdt_info notes;
	struct elf *elf;

	if (!elf_open_memory(data, size, &elf, NULL)) {
		if (!probesites_find(elf, patterns, sizeof(patterns), &info, NULL))
			expect(probesites_check(&info));
		for (uint32_t i = 0; i < info.count; i++)
			for (uint32_t k = 0; k < info.list[i].out_count; k++)
				expect(info.list[i].out[k] < size);
		usdt_find(elf, &notes);
		check_notes(&notes, size);
		elf_free(elf);
	} else {
		/* As the section of a file whose code are the same bytes. */
		struct elf_segment code = { .type = 1, .flags = 1, .file_size = size, .memory_size = size };
		struct elf bare = { .data = data, .size = size, .machine = 62, .segments = &code, .segment_count = 1 };

		notes = (struct usdt_info){ 0 };
		usdt_read(&bare, data, size, 0, &notes);
		check_notes(&notes, size);
	}
	return 0;
}
