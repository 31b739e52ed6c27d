/*
 * gofind.c - where a file may have Go's function table.
 *
 * The Go linker gives it a section. The C linker, which makes a PIE with cgo, puts it into .data.rel.ro among
 * others; and a packer removes the section headers. The table is then found by its first 8 bytes: a magic
 * number, two zeros, the size of the smallest instruction and that of a pointer.
 */
#include <elf.h>
#include <string.h>

#include "elf/budget.h"
#include "elf/file.h"
#include "elf/go/gotabint.h"

enum { STEP = 8 }; /* the linker aligns the table to 8 bytes at least */

bool gofind_is_header(const uint8_t *data, size_t size)
{
	uint32_t magic;

	if (size < 16 || data[4] || data[5] || (data[6] != 1 && data[6] != 4) || data[7] != 8)
		return false;
	memcpy(&magic, data, sizeof(magic));
	return magic == 0xfffffffb || magic == 0xfffffffa || magic == 0xfffffff0 || magic == 0xfffffff1;
}

/* Returns whether Go's linker had a hand in this file. Without section headers that cannot be told. */
static bool may_be_go(const struct elf *elf)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const char *name = elf->sections[i].name;

		if (!strncmp(name, ".go.", 4) || !strcmp(name, ".note.go.buildid") || !strcmp(name, ".gosymtab"))
			return true;
	}
	return !elf->section_count;
}

static bool try_sections(const struct elf *elf, gofind_try_fn *try, void *context)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct elf_section *s = elf_section(elf, names[i]);

		if (s && s->data && !(s->flags & SHF_COMPRESSED) && gofind_is_header(s->data, s->file_size) &&
		    try(context, s->data, s->file_size, s->address, true))
			return true;
	}
	return false;
}

bool gofind_each(const struct goimage *image, gofind_try_fn *try, void *context)
{
	const struct elf *elf = image->elf;
	uint64_t left = elf->real_bytes; /* segments may overlap: all are searched for no longer than the file */
	unsigned tables = 0;

	if (try_sections(elf, try, context))
		return true;
	for (size_t i = 0; may_be_go(elf) && i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		const uint8_t *data;
		size_t n;

		if (s->type != PT_LOAD || !goimage_segment(image, s, &data, &n) || n > left)
			continue;
		left -= n;
		for (size_t at = -s->address % STEP; at < n; at += STEP)
			if (data[at] >= 0xf0 && gofind_is_header(data + at, n - at) && tables++ < BUDGET_GO_TABLES &&
			    try(context, data + at, n - at, s->address + at, false))
				return true;
	}
	return false;
}
