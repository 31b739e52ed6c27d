/*
 * gofile.h - small Go programs as ELF images, in each layout of .gopclntab.
 *
 *	0x1000  code: main.alpha to 0x1100, main.beta to 0x1180, main.gamma to 0x1200
 *	0x2000  the table; then the module's record, the inline tree and, in a PIE, the relocations
 *
 * main.inner is inlined into main.alpha from 0x1040 to 0x1080, and main.innermost into main.inner from 0x1050
 * to 0x1060.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum { GOFILE_TEXT = 0x1000, GOFILE_TEXT_END = 0x1200, GOFILE_TABLE = 0x2000 };

struct gofile {
	/* choices */
	int version;        /* 112, 113, 116, 118, 120, 126, 127: the Go version whose layout is taken */
	bool pie;           /* pointers are zero in the file, and in its relocations */
	bool no_sections;
	const char *section; /* ".gopclntab" unless set */

	/* the image */
	struct buf image;
	uint64_t inline_tree, module;
	size_t relocation_count;
	Elf64_Rela relocations[64];
};

static inline void gofile_put(struct gofile *g, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_putc(&g->image, value >> (8 * i));
}

static inline void gofile_patch(struct gofile *g, uint64_t at, uint64_t value, unsigned bytes)
{
	memcpy(g->image.data + at, &value, bytes);
}

static inline void gofile_fill(struct gofile *g, uint64_t to)
{
	while (g->image.n < to)
		buf_putc(&g->image, 0);
}

static inline void gofile_align(struct gofile *g, unsigned bytes)
{
	gofile_fill(g, (g->image.n + bytes - 1) / bytes * bytes);
}

/* A pointer at the end of the image. */
static inline void gofile_pointer(struct gofile *g, uint64_t value)
{
	if (g->pie)
		g->relocations[g->relocation_count++] = (Elf64_Rela){
			.r_offset = g->image.n, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = value };
	gofile_put(g, g->pie ? 0 : value, 8);
}

/* Appends a string and returns its offset from base. */
static inline uint32_t gofile_string(struct gofile *g, uint64_t base, const char *s)
{
	uint32_t at = g->image.n - base;

	buf_add(&g->image, s, strlen(s) + 1);
	return at;
}

/* Appends a table of values by address: {value, bytes} up to a size of 0. */
struct gofile_value {
	int32_t value;
	uint32_t bytes;
};
static inline uint32_t gofile_values(struct gofile *g, uint64_t base, const struct gofile_value *v)
{
	uint32_t at = g->image.n - base;
	int32_t before = -1;

	for (; v->bytes; v++) {
		uint32_t change = (uint32_t)(v->value - before) << 1 ^ (uint32_t)((v->value - before) >> 31), n = v->bytes;

		for (; change >= 0x80; change >>= 7)
			buf_putc(&g->image, change | 0x80);
		buf_putc(&g->image, change);
		for (; n >= 0x80; n >>= 7)
			buf_putc(&g->image, n | 0x80);
		buf_putc(&g->image, n);
		before = v->value;
	}
	buf_putc(&g->image, 0);
	return at;
}

struct gofile_parts {
	uint32_t names[5], files[2];             /* alpha, beta, gamma, inner, innermost; a.go, b.go */
	uint32_t frame, file, line, tree;        /* tables of values of alpha, all but tree of the others too */
	uint64_t funcs, names_at, units_at, files_at, values_at; /* addresses */
	uint64_t file_table; /* up to Go 1.15 */
};

static inline void gofile_strings(struct gofile *g, struct gofile_parts *p, uint64_t base)
{
	static const char *const names[] = { "main.alpha", "main.beta", "main.(*T).gamma", "main.inner", "main.innermost" };

	p->names_at = g->image.n;
	for (int i = 0; i < 5; i++)
		p->names[i] = gofile_string(g, base ? base : p->names_at, names[i]);
	gofile_align(g, 8);
	p->units_at = g->image.n;
	if (g->version >= 116) {
		uint32_t second = strlen("/src/a.go") + 1;

		gofile_put(g, 0, 4);
		gofile_put(g, second, 4);
		gofile_put(g, UINT32_MAX, 4); /* a file that was dropped */
		gofile_align(g, 8);
	}
	p->files_at = g->image.n;
	p->files[0] = gofile_string(g, base ? base : p->files_at, "/src/a.go");
	p->files[1] = gofile_string(g, base ? base : p->files_at, "/src/b.go");
	gofile_align(g, 8);
	p->values_at = g->image.n;
	buf_putc(&g->image, 0); /* offset 0 says that there is no table */
	if (!base)
		base = p->values_at;
	/* Up to Go 1.15 the number of files comes first: file 1 is the first one. */
	int32_t one = g->version < 116;

	p->frame = gofile_values(g, base, (struct gofile_value[]){ { 0, 4 }, { 24, 0xf0 }, { 0, 8 }, { 0 } });
	p->file = gofile_values(g, base, (struct gofile_value[]){ { one, 0x40 }, { one + 1, 0x40 }, { one, 0x7c }, { 0 } });
	p->line = gofile_values(g, base, (struct gofile_value[]){ { 10, 0x10 }, { 12, 0x30 }, { 100, 0x10 },
								  { 200, 0x10 }, { 101, 0x20 }, { 13, 0x7c }, { 0 } });
	p->tree = gofile_values(g, base, (struct gofile_value[]){ { -1, 0x40 }, { 0, 0x10 }, { 1, 0x10 }, { 0, 0x20 },
								  { -1, 0x7c }, { 0 } });
	gofile_align(g, 8);
}

/* The record of a function; the arrays of pcdata and funcdata with the inline tree behind it. */
static inline void gofile_record(struct gofile *g, const struct gofile_parts *p, int i, uint64_t entry)
{
	unsigned tree_pcdata = g->version == 112 ? 1 : 2;
	unsigned tree_funcdata = g->version == 112 ? 2 : g->version < 116 ? 4 : 3;

	if (g->version >= 118)
		gofile_put(g, entry - GOFILE_TEXT, 4);
	else
		gofile_pointer(g, entry);
	gofile_put(g, p->names[i], 4);
	gofile_put(g, 8 * i, 4);  /* bytes of arguments */
	gofile_put(g, 0, 4);      /* deferreturn */
	gofile_put(g, p->frame, 4);
	gofile_put(g, p->file, 4);
	gofile_put(g, p->line, 4);
	gofile_put(g, i ? 0 : tree_pcdata + 1, 4);
	if (g->version >= 116)
		gofile_put(g, 0, 4); /* the files of its unit */
	if (g->version >= 120)
		gofile_put(g, 9, 4); /* the line of func */
	gofile_put(g, i == 2 ? 8 : 0, 1);
	gofile_put(g, g->version >= 118 && i == 2 ? 5 : 0, 1);
	gofile_put(g, 0, 1);
	gofile_put(g, i ? 0 : tree_funcdata + 1, 1);
	for (unsigned k = 0; !i && k <= tree_pcdata; k++)
		gofile_put(g, k == tree_pcdata ? p->tree : 0, 4);
	if (!i && g->version < 118)
		gofile_align(g, 8);
	for (unsigned k = 0; !i && k <= tree_funcdata; k++) {
		if (g->version >= 118)
			gofile_put(g, k == tree_funcdata ? 0 : UINT32_MAX, 4);
		else if (k == tree_funcdata)
			gofile_pointer(g, g->inline_tree);
		else
			gofile_put(g, 0, 8);
	}
	gofile_align(g, 8);
}

static inline void gofile_table(struct gofile *g, struct gofile_parts *p)
{
	static const uint64_t entries[] = { GOFILE_TEXT, 0x1100, 0x1180, GOFILE_TEXT_END };
	uint64_t header = g->image.n, base = g->version < 116 ? header : 0, files = 0;
	unsigned field = g->version >= 118 ? 4 : 8;

	gofile_put(g, g->version >= 120 ? 0xfffffff1 : g->version >= 118 ? 0xfffffff0 : g->version >= 116 ? 0xfffffffa : 0xfffffffb, 4);
	gofile_put(g, 0x08010000, 4);
	gofile_put(g, 3, 8);
	if (g->version >= 116) {
		gofile_put(g, 2, 8);
		if (g->version >= 126)
			gofile_put(g, 0, 8);
		else if (g->version >= 118)
			gofile_pointer(g, GOFILE_TEXT);
		gofile_fill(g, g->image.n + 5 * 8);
		gofile_strings(g, p, 0);
	}
	p->funcs = g->image.n;
	for (int i = 0; i < 4; i++) {
		if (g->version >= 118)
			gofile_put(g, entries[i] - GOFILE_TEXT, 4);
		else
			gofile_pointer(g, entries[i]);
		if (i < 3)
			gofile_put(g, 0, field); /* the record: patched below */
	}
	if (g->version < 116) {
		files = g->image.n;
		gofile_put(g, 0, 8);
		gofile_strings(g, p, base);
		p->file_table = g->image.n;
		gofile_patch(g, files, g->image.n - base, 4);
		gofile_put(g, 3, 4);
		gofile_put(g, p->files[0], 4);
		gofile_put(g, p->files[1], 4);
	} else {
		uint64_t offsets[] = { p->names_at, p->units_at, p->files_at, p->values_at, p->funcs };

		for (int i = 0; i < 5; i++)
			gofile_patch(g, header + 8 * (g->version >= 118 ? 4 + i : 3 + i), offsets[i] - header, 8);
	}
	gofile_align(g, 8);
	for (int i = 0; i < 3; i++) {
		gofile_patch(g, p->funcs + (2 * i + 1) * field, g->image.n - (base ? base : p->funcs), field);
		gofile_record(g, p, i, entries[i]);
	}
}

static inline void gofile_module(struct gofile *g, const struct gofile_parts *p, uint64_t table_end)
{
	uint64_t parts[] = { p->names_at, p->units_at, p->files_at, p->values_at, p->funcs, p->funcs };
	unsigned last = g->version >= 127 ? 44 : g->version >= 120 ? 41 : 38;

	g->module = g->image.n;
	gofile_pointer(g, GOFILE_TABLE);
	if (g->version < 116) {
		uint64_t old[] = { 100, 100, p->funcs, 4, 4, p->file_table, 3, 3 };

		for (int i = 0; i < 8; i++)
			if (i == 2 || i == 5)
				gofile_pointer(g, old[i]);
			else
				gofile_put(g, old[i], 8);
		return;
	}
	for (int i = 0; i < 6; i++) {
		gofile_pointer(g, parts[i]);
		gofile_put(g, i == 5 ? 4 : 100, 8);
		gofile_put(g, 100, 8);
	}
	for (unsigned i = 19; i <= last; i++) {
		if (i == 22)
			gofile_pointer(g, GOFILE_TEXT);
		else if (i == (g->version >= 127 ? 43 : g->version >= 120 ? 40 : 38))
			gofile_pointer(g, g->inline_tree);
		else if (i == 37 || (i == 38 && g->version < 127))
			gofile_pointer(g, GOFILE_TABLE); /* the types */
		else if (i == 44)
			gofile_pointer(g, table_end);
		else
			gofile_put(g, 16, 8);
	}
}

static inline void gofile_tree(struct gofile *g, const struct gofile_parts *p)
{
	static const uint32_t parents[] = { 0x20, 0x44 };

	gofile_fill(g, g->inline_tree);
	for (int i = 0; i < 2; i++) {
		if (g->version >= 120) {
			gofile_put(g, 0, 4);
		} else {
			gofile_put(g, (uint16_t)(i - 1), 2);
			gofile_put(g, 0, 2);
			gofile_put(g, 0, 4);
			gofile_put(g, 12, 4);
		}
		gofile_put(g, p->names[3 + i], 4);
		gofile_put(g, parents[i], 4);
		if (g->version >= 120)
			gofile_put(g, 20, 4);
	}
}

/* Appends a segment of the dynamic linker's; returns its offset. */
static inline uint64_t gofile_dynamic(struct gofile *g)
{
	uint64_t relocations = g->image.n, at;

	buf_add(&g->image, g->relocations, g->relocation_count * sizeof(*g->relocations));
	at = g->image.n;
	gofile_put(g, DT_RELA, 8);
	gofile_put(g, relocations, 8);
	gofile_put(g, DT_RELASZ, 8);
	gofile_put(g, g->relocation_count * sizeof(*g->relocations), 8);
	gofile_put(g, DT_NULL, 8);
	gofile_put(g, 0, 8);
	return at;
}

static inline void gofile_headers(struct gofile *g, uint64_t table_size, uint64_t loaded, uint64_t dynamic)
{
	const char *name = g->section ? g->section : ".gopclntab";
	Elf64_Ehdr eh = { .e_type = g->pie ? ET_DYN : ET_EXEC, .e_machine = EM_X86_64, .e_version = 1,
			  .e_phoff = sizeof(eh), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 + g->pie,
			  .e_ehsize = sizeof(eh), .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = GOFILE_TEXT, .p_vaddr = GOFILE_TEXT,
		  .p_filesz = GOFILE_TEXT_END - GOFILE_TEXT, .p_memsz = GOFILE_TEXT_END - GOFILE_TEXT },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = GOFILE_TABLE, .p_vaddr = GOFILE_TABLE,
		  .p_filesz = loaded - GOFILE_TABLE, .p_memsz = loaded - GOFILE_TABLE },
		{ .p_type = PT_DYNAMIC, .p_flags = PF_R, .p_offset = dynamic, .p_vaddr = dynamic, .p_filesz = 48,
		  .p_memsz = 48 },
	};

	memcpy(eh.e_ident, ELFMAG "\2\1\1", 7);
	if (!g->no_sections) {
		uint64_t names = g->image.n;
		Elf64_Shdr sh[] = {
			{ 0 },
			{ .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 12 + strlen(name) },
			{ .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_offset = GOFILE_TABLE,
			  .sh_addr = GOFILE_TABLE, .sh_size = table_size },
		};

		buf_add(&g->image, "\0.shstrtab", 11);
		buf_add(&g->image, name, strlen(name) + 1);
		gofile_align(g, 8);
		eh.e_shoff = g->image.n;
		eh.e_shnum = 3;
		eh.e_shstrndx = 1;
		buf_add(&g->image, sh, sizeof(sh));
	}
	memcpy(g->image.data, &eh, sizeof(eh));
	memcpy(g->image.data + sizeof(eh), ph, eh.e_phnum * sizeof(*ph));
}

/* Makes the image; buf_done(&g->image) frees it. */
static inline void gofile_build(struct gofile *g)
{
	struct gofile_parts p = { 0 };
	uint64_t table_end, loaded;

	g->inline_tree = 0x2700;
	gofile_fill(g, GOFILE_TABLE);
	memset(g->image.data + GOFILE_TEXT, 0xcc, GOFILE_TEXT_END - GOFILE_TEXT);
	gofile_table(g, &p);
	table_end = g->image.n;
	gofile_tree(g, &p);
	gofile_align(g, 8);
	gofile_module(g, &p, table_end);
	loaded = g->pie ? gofile_dynamic(g) + 48 : g->image.n;
	gofile_headers(g, table_end - GOFILE_TABLE, loaded, loaded - 48);
}
