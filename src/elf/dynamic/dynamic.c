#include "elf/dynamic/dynamic.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "elf/file.h"

enum {
	SYMBOLS, STRINGS, PLT_RELOCATIONS, RELOCATIONS, FIXED_SECTIONS, /* of the view, in this order */
	MAX_CODE = 16,         /* executable segments; a linker makes one or two */
	MAX_ENTRIES = 4096,    /* of PT_DYNAMIC; a linker makes dozens */
};

/* Values of PT_DYNAMIC by their tag, 0 = not there. */
struct facts {
	uint64_t symbols, strings, string_bytes, plt, plt_bytes, relocations, relocation_bytes, hash, gnu_hash;
};

/* The bytes of the file that are loaded at an address, up to the end of their segment; NULL: none are. */
static const uint8_t *loaded_at(const struct elf *elf, uint64_t address, uint64_t *ret_n)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t at = address - s->address;

		if (s->type != PT_LOAD || address < s->address || at >= s->file_size || s->offset > elf->size ||
		    at >= elf->size - s->offset || !elf_plausible(elf, s->file_size))
			continue;
		*ret_n = MIN(s->file_size - at, elf->size - s->offset - at);
		return elf->data + s->offset + at;
	}
	return NULL;
}

static bool read_facts(const struct elf *elf, struct facts *f)
{
	const struct { int64_t tag; uint64_t *value; } wanted[] = {
		{ DT_SYMTAB, &f->symbols }, { DT_STRTAB, &f->strings }, { DT_STRSZ, &f->string_bytes },
		{ DT_JMPREL, &f->plt }, { DT_PLTRELSZ, &f->plt_bytes }, { DT_RELA, &f->relocations },
		{ DT_RELASZ, &f->relocation_bytes }, { DT_HASH, &f->hash }, { DT_GNU_HASH, &f->gnu_hash },
	};

	*f = (struct facts){ 0 };
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		Elf64_Dyn d;

		if (s->type != PT_DYNAMIC || s->offset > elf->size || s->file_size > elf->size - s->offset)
			continue;
		for (size_t k = 0; k < MIN(s->file_size / sizeof(d), (uint64_t)MAX_ENTRIES); k++) {
			memcpy(&d, elf->data + s->offset + k * sizeof(d), sizeof(d));
			if (d.d_tag == DT_NULL)
				break;
			for (size_t w = 0; w < ARRAY_LEN(wanted); w++)
				if (d.d_tag == wanted[w].tag)
					*wanted[w].value = d.d_un.d_val;
		}
		return f->symbols && f->strings;
	}
	return false;
}

static uint32_t word_at(const uint8_t *table, uint64_t n, uint64_t index)
{
	uint32_t v = 0;

	if (index < n / sizeof(v))
		memcpy(&v, table + index * sizeof(v), sizeof(v));
	return v;
}

/* The last symbol of the longest chain ends the table: chains are in the order of the symbols. */
static uint64_t count_by_gnu_hash(const uint8_t *table, uint64_t n)
{
	uint64_t buckets = word_at(table, n, 0), first = word_at(table, n, 1), bloom = word_at(table, n, 2);
	uint64_t bucket_at = 4 + bloom * 2, chain_at = bucket_at + buckets, last = 0, words = n / 4;

	if (chain_at > words)
		return 0;
	for (uint64_t i = 0; i < buckets; i++)
		last = MAX(last, (uint64_t)word_at(table, n, bucket_at + i));
	if (last < first)
		return first;
	while (chain_at + (last - first) < words && !(word_at(table, n, chain_at + (last - first)) & 1))
		last++;
	return last + 1;
}

/* How many symbols there are: only the hash tables say it. */
static uint64_t count_symbols(const struct elf *elf, const struct facts *f)
{
	uint64_t n = 0;
	const uint8_t *table = f->gnu_hash ? loaded_at(elf, f->gnu_hash, &n) : NULL;

	if (table)
		return count_by_gnu_hash(table, n);
	table = f->hash ? loaded_at(elf, f->hash, &n) : NULL;
	return table ? word_at(table, n, 1) : 0;
}

static struct elf_section make(const struct elf *elf, const char *name, uint32_t type, uint64_t address, uint64_t bytes)
{
	struct elf_section s = { .name = name, .type = type, .flags = SHF_ALLOC, .address = address };
	uint64_t n = 0;

	s.data = bytes ? loaded_at(elf, address, &n) : NULL;
	s.size = s.file_size = s.data ? MIN(bytes, n) : 0;
	return s;
}

bool dynamic_view(const struct elf *elf, struct elf *ret)
{
	struct elf_section *sections;
	size_t count = FIXED_SECTIONS;
	struct facts f;

	if (elf->section_count || !read_facts(elf, &f))
		return false;
	sections = mem_alloc((FIXED_SECTIONS + MAX_CODE) * sizeof(*sections));
	sections[SYMBOLS] = make(elf, ".dynsym", SHT_DYNSYM, f.symbols,
				 MIN(count_symbols(elf, &f), elf->size) * sizeof(Elf64_Sym));
	sections[SYMBOLS].link = STRINGS;
	sections[STRINGS] = make(elf, ".dynstr", SHT_STRTAB, f.strings, f.string_bytes);
	sections[PLT_RELOCATIONS] = make(elf, ".rela.plt", SHT_RELA, f.plt, f.plt_bytes);
	sections[RELOCATIONS] = make(elf, ".rela.dyn", SHT_RELA, f.relocations, f.relocation_bytes);
	sections[PLT_RELOCATIONS].link = sections[RELOCATIONS].link = SYMBOLS;
	for (size_t i = 0; i < elf->segment_count && count < FIXED_SECTIONS + MAX_CODE; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X))
			continue;
		sections[count] = make(elf, DYNAMIC_CODE, SHT_PROGBITS, s->address, s->file_size);
		sections[count++].flags |= SHF_EXECINSTR;
	}
	*ret = *elf;
	ret->sections = sections;
	ret->section_count = count;
	return true;
}

void dynamic_done(struct elf *view)
{
	free(view->sections);
	view->sections = NULL;
	view->section_count = 0;
}
