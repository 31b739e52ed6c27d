/*
 * fuzz_gotab.c - Go's function table: header, functions, values by address, lines, inlined calls.
 *
 * The input is the data segment of a program at 0x2000. Its first byte says whether the table has a section, and
 * whether the program is a PIE, whose last 48 bytes are then the dynamic section. Whatever it holds, functions must
 * ascend, ranges lie within their function, and strings end. If bit 3 of the first byte is set, unwind rows are made
 * of it, for code that is the input itself.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symbols.h"
#include "elf/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT = 0x1000, TEXT_SIZE = 0x800, DATA = 0x2000, DYNAMIC_BYTES = 48, DEPTH = 16, FUNCTIONS = 1000 };

static size_t strings;

static void check_values(const struct gotab *t, const struct gotab_function *f, uint32_t table)
{
	struct gotab_values v = gotab_values(t, f, table);
	uint64_t before = f->entry;

	while (gotab_next(&v)) {
		if (v.start != before || v.end <= v.start || v.end > f->end)
			abort();
		before = v.end;
	}
}

static void check_calls(const struct gotab *t, uint64_t address)
{
	struct symbols_call calls[DEPTH];
	size_t n = gotab_calls(t, address, calls, DEPTH);

	if (n > DEPTH)
		abort();
	for (size_t i = 0; i < n; i++)
		strings += strlen(calls[i].name) + strlen(calls[i].file) + strlen(calls[i].linkage);
}

static void check_table(const struct gotab *t)
{
	struct gotab_function f;
	uint64_t before = 0;
	size_t index;

	for (size_t i = 0; i < gotab_count(t) && i < FUNCTIONS; i++) {
		if (!gotab_get(t, i, &f))
			continue;
		if (f.entry < before || f.end < f.entry || f.end > TEXT + TEXT_SIZE)
			abort();
		before = f.end;
		strings += strlen(f.name);
		check_values(t, &f, f.pcsp);
		check_values(t, &f, f.pcfile);
		check_values(t, &f, f.pcln);
		if (f.end > f.entry && (!gotab_find(t, f.entry, &index) || index != i))
			abort();
	}
	for (uint64_t address = TEXT; address < TEXT + TEXT_SIZE; address += 13)
		check_calls(t, address);
}

/* The code is the table itself. */
static void check_rows(struct elf *elf, struct elf_segment *segments)
{
	struct elf_segment text = segments[0];
	struct unwind_table rows;

	segments[0].offset = 0;
	segments[0].file_size = elf->size < TEXT_SIZE ? elf->size : TEXT_SIZE;
	if (unwind_build(elf, &rows, NULL) == 0) {
		if (!unwind_valid(&rows))
			abort();
		unwind_done(&rows);
	}
	segments[0] = text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* libFuzzer's first input is empty. */
	uint8_t kind = size ? data[0] : 0;
	size_t n = size ? size - 1 : 0, dynamic = n < DYNAMIC_BYTES ? 0 : n - DYNAMIC_BYTES;
	struct elf_section sections[] = {
		{ .name = ".gopclntab", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = DATA, .size = n,
		  .data = data + 1, .file_size = n },
	};
	struct elf_segment segments[] = {
		{ .type = PT_LOAD, .flags = PF_R | PF_X, .offset = n + 1, .address = TEXT, .file_size = TEXT_SIZE },
		{ .type = PT_LOAD, .flags = PF_R | PF_W, .address = DATA, .file_size = n },
		{ .type = PT_DYNAMIC, .offset = dynamic, .address = DATA + dynamic, .file_size = n - dynamic },
	};
	struct elf elf = { .data = data + 1,
			   .size = n,
			   .real_bytes = n,
			   .type = kind & 2 ? ET_DYN : ET_EXEC,
			   .machine = kind & 4 ? EM_AARCH64 : EM_X86_64,
			   .sections = sections,
			   .section_count = kind & 1,
			   .segments = segments,
			   .segment_count = 3 };
	struct gotab *t;

	if (!size)
		return 0;
	if (kind & 8)
		check_rows(&elf, segments);
	if (gotab_open(&elf, &t, NULL))
		return 0;
	check_table(t);
	gotab_free(t);
	return 0;
}
