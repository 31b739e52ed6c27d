/*
 * plt.c - names for the stubs of the procedure linkage table (x86-64, arm64).
 *
 * A stub jumps through a slot of the GOT; the relocation of that slot names the
 * symbol. So the stubs are decoded, whatever their layout (.plt, .plt.sec,
 * .plt.got, with or without endbr64), rather than counted. Without a section
 * table all code is searched for them (dynamic.h).
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "elf/dynamic/dynamic.h"
#include "elf/file.h"
#include "elf/symtab.h"

enum { NAME_MAX_BYTES = 4096, STUB_BYTES = 16 };

struct slot {
	uint64_t got;
	const char *name;
};

struct plt {
	VEC(struct slot) slots;
	VEC(struct plt_stub) stubs;
	const struct elf *elf;
	const struct elf_section *relocations; /* .rela.plt, NULL if there is none */
	struct arena *arena;
	plt_name_fn *name_of;
	void *context;
	uint64_t name_bytes; /* copied so far; limited to what an honest file could need */
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return ORDER(x->got, y->got);
}

static int compare_stubs(const void *a, const void *b)
{
	const struct plt_stub *x = a, *y = b;

	return ORDER(x->address, y->address);
}

const char *plt_symbol_name(const struct elf *elf, const struct elf_section *s, uint64_t index)
{
	const struct elf_section *symbols, *strings;
	Elf64_Sym sym;

	if (s->link >= elf->section_count)
		return NULL;
	symbols = &elf->sections[s->link];
	if (!symbols->data || index >= symbols->file_size / sizeof(sym) ||
	    symbols->link >= elf->section_count)
		return NULL;
	memcpy(&sym, symbols->data + index * sizeof(sym), sizeof(sym));
	strings = &elf->sections[symbols->link];
	if (!strings->data || sym.st_name >= strings->file_size ||
	    !memchr(strings->data + sym.st_name, 0, MIN(strings->file_size - sym.st_name, NAME_MAX_BYTES)))
		return NULL;
	return (const char *)strings->data + sym.st_name;
}

static void read_slots(struct plt *p, const char *section)
{
	const struct elf_section *s = elf_section(p->elf, section);
	Elf64_Rela rela;

	if (!s || !s->data || s->type != SHT_RELA || s->flags & SHF_COMPRESSED)
		return;
	for (size_t i = 0; i < s->file_size / sizeof(rela); i++) {
		const char *name = NULL;
		uint64_t type;

		memcpy(&rela, s->data + i * sizeof(rela), sizeof(rela));
		type = ELF64_R_TYPE(rela.r_info);
		if (p->elf->machine == EM_AARCH64 ? type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT :
						    type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
			name = plt_symbol_name(p->elf, s, ELF64_R_SYM(rela.r_info));
		else if (type == (p->elf->machine == EM_AARCH64 ? R_AARCH64_IRELATIVE : R_X86_64_IRELATIVE))
			name = p->name_of(p->context, rela.r_addend);
		if (name && *name)
			vec_push(&p->slots, (struct slot){ rela.r_offset, name });
	}
}

static const char *find_slot(const struct plt *p, uint64_t got)
{
	struct slot key = { .got = got };
	struct slot *s = NULL;

	if (p->slots.n)
		s = bsearch(&key, p->slots.v, p->slots.n, sizeof(key), compare_slots);
	return s ? s->name : NULL;
}

/* Returns the symbol of relocation i of .rela.plt: lazy stubs in .plt push i when .plt.sec has the jumps. */
static const char *pushed(const struct plt *p, uint32_t i)
{
	const struct elf_section *s = p->relocations;
	Elf64_Rela rela;

	if (!s || !s->data || i >= s->file_size / sizeof(rela))
		return NULL;
	memcpy(&rela, s->data + i * sizeof(rela), sizeof(rela));
	return find_slot(p, rela.r_offset);
}

/* arm64: adrp x16, the slot's page; ldr x17, [x16, #in it]. Returns the slot's address, 0: the code is something else. */
static uint64_t slot_of_arm64(const uint8_t *code, size_t n, uint64_t address)
{
	for (size_t i = 0; i + 8 <= n; i += 4) {
		uint32_t adrp, ldr;
		int64_t pages;

		memcpy(&adrp, code + i, 4);
		memcpy(&ldr, code + i + 4, 4);
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		pages = (int64_t)((uint64_t)(adrp >> 5 & 0x7ffff) << 45) >> 43 | (adrp >> 29 & 3);
		return ((address + i) & ~0xfffULL) + (uint64_t)pages * 4096 + (ldr >> 10 & 0xfff) * 8;
	}
	return 0;
}

/* Returns the name of the symbol that a stub of n bytes at address jumps to. */
static const char *decode(const struct plt *p, const uint8_t *code, size_t n, uint64_t address)
{
	int32_t value;

	if (p->elf->machine == EM_AARCH64)
		return find_slot(p, slot_of_arm64(code, n, address));
	for (size_t i = 0; i + 6 <= n; i++)
		if (code[i] == 0xff && code[i + 1] == 0x25) {
			memcpy(&value, code + i + 2, 4);
			return find_slot(p, address + i + 6 + (int64_t)value);
		}
	for (size_t i = 0; i + 5 <= n && i <= 4; i += 4)
		if (code[i] == 0x68) {
			memcpy(&value, code + i + 1, 4);
			return pushed(p, value);
		}
	return NULL;
}

/* Does code begin like a stub: endbr64 or not, bnd or not, and the jump? */
static bool is_stub(const uint8_t *code, size_t n)
{
	size_t at = n >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;

	at += at < n && code[at] == 0xf2;
	return at + 6 <= n && code[at] == 0xff && code[at + 1] == 0x25;
}

/* anywhere: it is not known to be a PLT, and most of it is none. */
static void read_stubs(struct plt *p, const struct elf_section *s, bool anywhere)
{
	size_t step;

	if (!s || !s->data || s->type != SHT_PROGBITS || s->flags & SHF_COMPRESSED)
		return;
	step = s->entry_size == 8 ? 8 : STUB_BYTES;
	for (uint64_t at = 0; at < s->file_size && p->name_bytes <= p->elf->size; at += step) {
		size_t n = MIN(step, s->file_size - at);
		const char *name = anywhere && p->elf->machine == EM_X86_64 && !is_stub(s->data + at, n) ? NULL :
									     decode(p, s->data + at, n, s->address + at);
		size_t length;
		char *copy;

		if (!name)
			continue;
		/* The version does not belong before @plt. */
		length = strcspn(name, "@");
		copy = arena_alloc(p->arena, length + sizeof("@plt"));
		memcpy(copy, name, length);
		memcpy(copy + length, "@plt", sizeof("@plt"));
		p->name_bytes += length;
		vec_push(&p->stubs, (struct plt_stub){ s->address + at, s->address + at + n, copy });
	}
}

size_t plt_read(struct elf *elf, struct arena *arena, plt_name_fn *name_of, void *context,
		struct plt_stub **ret)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	struct plt p = { .elf = elf, .arena = arena, .name_of = name_of, .context = context };

	*ret = NULL;
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return 0;
	p.relocations = elf_section(elf, ".rela.plt");
	read_slots(&p, ".rela.plt");
	read_slots(&p, ".rela.dyn");
	vec_sort(&p.slots, compare_slots);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		read_stubs(&p, elf_section(elf, sections[i]), false);
	for (size_t i = 0; i < elf->section_count; i++)
		if (!strcmp(elf->sections[i].name, DYNAMIC_CODE))
			read_stubs(&p, &elf->sections[i], true);
	vec_sort(&p.stubs, compare_stubs);
	vec_done(&p.slots);
	*ret = p.stubs.v;
	return p.stubs.n;
}
