/*
 * tokiofile.h - a program with tokio's tables of tasks, made here: two types of task, a job of the blocking pool, and the code that
 * spawns them, as compilers of Rust write it.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum tokiofile_layout { TOKIOFILE_RELA, TOKIOFILE_RELR, TOKIOFILE_FIXED };

struct tokiofile_options {
	const char *path;               /* of a source file of tokio's, as panics have it */
	enum tokiofile_layout layout;
	bool no_names;                  /* symbols say where functions are, and nothing more */
	bool no_functions;              /* nor where functions are */
	bool other_scheduler;           /* schedule() does not read the table */
	bool other_abort;               /* drop_abort_handle() drops no reference */
	bool by_slot;                   /* it has a function do it, through a slot of the GOT; TOKIOFILE_RELA only */
	int extra_functions;            /* in each table, before its numbers */
	uint64_t scheduler;             /* its offset; 0 = 0x20 */
};

enum {
	TOKIOFILE_CODE = 0x1000, TOKIOFILE_DATA = 0x3000, TOKIOFILE_TABLES = 0x3000, TOKIOFILE_SLOT = 0x3300, TOKIOFILE_RELOCATIONS = 0x3400,
	TOKIOFILE_DYNAMIC = 0x3c00, TOKIOFILE_TEXT = 0x3d00, TOKIOFILE_SYMBOLS = 0x4000, TOKIOFILE_STRINGS = 0x5000,
	TOKIOFILE_SECTIONS = 0x6000, TOKIOFILE_SIZE = 0x6400, TOKIOFILE_STEP = 64, /* bytes of a function */
	TOKIOFILE_TYPES = 3, TOKIOFILE_SLOTS = 7, TOKIOFILE_STRIDE = 0x80, /* of tables */
};

/* The functions of a type come one after the other; then those that all share. */
enum { F_BODY = 7, F_GLUE, F_SPAWN, F_OF_TYPE };
enum { F_BIND = TOKIOFILE_TYPES * F_OF_TYPE, F_ALL };

static _Alignas(16) uint8_t tokiofile[TOKIOFILE_SIZE];

static inline uint64_t tokiofile_base(const struct tokiofile_options *o)
{
	return o->layout == TOKIOFILE_FIXED ? 0x400000 : 0;
}

static inline uint64_t tokiofile_function(const struct tokiofile_options *o, int i)
{
	return tokiofile_base(o) + TOKIOFILE_CODE + (uint64_t)i * TOKIOFILE_STEP;
}

static inline uint64_t tokiofile_table(const struct tokiofile_options *o, int type)
{
	return tokiofile_base(o) + TOKIOFILE_TABLES + (uint64_t)type * TOKIOFILE_STRIDE;
}

/* Both tasks share the scheduler's function. */
static inline int tokiofile_slot(int type, int slot)
{
	return slot == 1 && type == 1 ? 1 : type * F_OF_TYPE + slot;
}

/* Puts an instruction whose last four bytes are relative to its end. */
static inline uint8_t *tokiofile_relative(uint8_t *p, const char *code, size_t n, uint64_t target)
{
	int32_t distance = (int32_t)((int64_t)target - (p - tokiofile) - (int64_t)n - 4);

	memcpy(p, code, n);
	memcpy(p + n, &distance, 4);
	return p + n + 4;
}

static inline uint8_t *tokiofile_plain(uint8_t *p, const char *code, size_t n)
{
	memcpy(p, code, n);
	return p + n;
}

static inline void tokiofile_code(const struct tokiofile_options *o)
{
	uint64_t base = tokiofile_base(o);

	memset(tokiofile + TOKIOFILE_CODE, 0xc3, TOKIOFILE_STEP * F_ALL); /* ret */
	if (o->by_slot)
		tokiofile_plain(tokiofile + TOKIOFILE_CODE + F_BIND * TOKIOFILE_STEP, "\xf0\x48\x0f\xc1\x07", 5);
	for (int t = 0; t < TOKIOFILE_TYPES; t++) {
		uint8_t *f[F_OF_TYPE], *p;
		uint64_t table = tokiofile_table(o, t);

		for (int i = 0; i < F_OF_TYPE; i++)
			f[i] = tokiofile + TOKIOFILE_CODE + (t * F_OF_TYPE + i) * TOKIOFILE_STEP;
		tokiofile_relative(f[0], "\xe8", 1, tokiofile_function(o, t * F_OF_TYPE + F_BODY) - base);
		if (!o->other_scheduler && t < 2)
			tokiofile_plain(f[1], "\x48\x89\xfe\x48\x8b\x47\x10\x48\x8b\x40\x40\x48\x8b\x3c\x07", 15);
		tokiofile_relative(f[2], "\xe9", 1, tokiofile_function(o, t * F_OF_TYPE + F_GLUE) - base);
		if (o->by_slot)
			tokiofile_relative(f[5], "\xff\x25", 2, TOKIOFILE_SLOT); /* jmp *slot(%rip) */
		else if (!o->other_abort)
			tokiofile_plain(f[5], "\x48\xc7\xc0\xc0\xff\xff\xff\xf0\x48\x0f\xc1\x07", 12);
		p = tokiofile_plain(f[F_SPAWN], "\x53", 1); /* push %rbx */
		if (o->layout == TOKIOFILE_FIXED) {
			uint32_t value = (uint32_t)table;

			p = tokiofile_plain(p, "\x48\xc7\x43\x10", 4); /* movq $table,0x10(%rbx) */
			memcpy(p, &value, 4);
			p += 4;
		} else {
			p = tokiofile_relative(p, "\x48\x8d\x05", 3, table - base); /* lea table(%rip),%rax */
			p = tokiofile_plain(p, "\x48\x89\x43\x10", 4);           /* mov %rax,0x10(%rbx) */
		}
		p = tokiofile_relative(p, "\xe8", 1, tokiofile_function(o, F_BIND) - base);
		tokiofile_plain(p, "\x5b", 1);
	}
}

static inline void tokiofile_tables(const struct tokiofile_options *o)
{
	Elf64_Rela *rela = (void *)(tokiofile + TOKIOFILE_RELOCATIONS);
	uint64_t *relr = (void *)(tokiofile + TOKIOFILE_RELOCATIONS), scheduler = o->scheduler ? o->scheduler : 0x20, n = 0;
	int functions = TOKIOFILE_SLOTS + o->extra_functions;
	Elf64_Dyn *d = (void *)(tokiofile + TOKIOFILE_DYNAMIC);

	for (int t = 0; t < TOKIOFILE_TYPES; t++) {
		uint64_t *table = (void *)(tokiofile + TOKIOFILE_TABLES + t * TOKIOFILE_STRIDE);
		uint64_t address = tokiofile_table(o, t), id = scheduler + (t == 2 ? 0 : 8); /* no scheduler in a job of the pool */

		for (int i = 0; i < functions; i++) {
			uint64_t value = tokiofile_function(o, i < TOKIOFILE_SLOTS ? tokiofile_slot(t, i) : F_BIND);

			if (o->layout == TOKIOFILE_RELA)
				rela[n++] = (Elf64_Rela){ address + 8 * (uint64_t)i, R_X86_64_RELATIVE, (int64_t)value };
			else
				table[i] = value;
		}
		if (o->layout == TOKIOFILE_RELR) {
			relr[n++] = address;
			relr[n++] = ((1ULL << (functions - 1)) - 1) << 1 | 1;
		}
		table[functions] = 0x150 + 0x10 * (uint64_t)t;
		table[functions + 1] = scheduler;
		table[functions + 2] = id;
	}
	if (o->by_slot)
		rela[n++] = (Elf64_Rela){ TOKIOFILE_SLOT, R_X86_64_RELATIVE, (int64_t)tokiofile_function(o, F_BIND) };
	if (o->layout == TOKIOFILE_RELA) {
		d[0] = (Elf64_Dyn){ DT_RELA, { TOKIOFILE_RELOCATIONS } };
		d[1] = (Elf64_Dyn){ DT_RELASZ, { n * sizeof(*rela) } };
	} else if (o->layout == TOKIOFILE_RELR) {
		d[0] = (Elf64_Dyn){ DT_RELR, { TOKIOFILE_RELOCATIONS } };
		d[1] = (Elf64_Dyn){ DT_RELRSZ, { n * 8 } };
	}
}

static inline const char *tokiofile_name(int i, char *room, size_t size)
{
	static const char *const slots[] = { "poll", "schedule", "dealloc", "try_read_output", "drop_join_handle_slow",
					     "drop_abort_handle", "shutdown" };
	static const char *const futures[] = { "a::serve::{{closure}}", "b::Node<c::Net>",
					       "tokio::runtime::blocking::task::BlockingTask<a::digest::{{closure}}>" };
	static const char *const bodies[] = { "a::serve::{{closure}}", "<b::Node<N> as core::future::future::Future>::poll",
					      "a::digest::{{closure}}" };
	int type = i / F_OF_TYPE, f = i % F_OF_TYPE;

	if (i == F_BIND)
		return "tokio::runtime::task::list::OwnedTasks<S>::bind_inner";
	if (f == F_BODY)
		snprintf(room, size, "%s", bodies[type]);
	else if (f == F_GLUE)
		snprintf(room, size, "core::ptr::drop_in_place<tokio::runtime::task::core::Cell<%s,%s>>", futures[type],
			 type < 2 ? "alloc::sync::Arc<tokio::runtime::scheduler::multi_thread::handle::Handle>" :
				    "tokio::runtime::blocking::schedule::BlockingSchedule");
	else if (f == F_SPAWN)
		snprintf(room, size, "a::main_%d", type);
	else
		snprintf(room, size, "tokio::runtime::task::raw::%s", slots[f]);
	return room;
}

static inline void tokiofile_symbols(const struct tokiofile_options *o)
{
	Elf64_Shdr *s = (void *)(tokiofile + TOKIOFILE_SECTIONS);
	Elf64_Sym *symbols = (void *)(tokiofile + TOKIOFILE_SYMBOLS);
	static const char names[] = "\0.symtab\0.strtab\0.shstrtab\0.text";
	char *strings = (char *)tokiofile + TOKIOFILE_STRINGS, room[256];
	size_t at = 1;

	for (int i = 0; i < F_ALL; i++) {
		symbols[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)at, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_shndx = 4,
					      .st_value = tokiofile_function(o, i), .st_size = TOKIOFILE_STEP };
		strcpy(strings + at, o->no_names ? "std::rt::f" : tokiofile_name(i, room, sizeof(room)));
		at += strlen(strings + at) + 1;
	}
	memcpy(tokiofile + TOKIOFILE_SECTIONS + 0x200, names, sizeof(names));
	s[1] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_SYMTAB, .sh_offset = TOKIOFILE_SYMBOLS, .sh_link = 2,
			     .sh_size = o->no_functions ? 0 : (F_ALL + 1) * sizeof(*symbols), .sh_entsize = sizeof(*symbols) };
	s[2] = (Elf64_Shdr){ .sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = TOKIOFILE_STRINGS, .sh_size = at };
	s[3] = (Elf64_Shdr){ .sh_name = 17, .sh_type = SHT_STRTAB, .sh_offset = TOKIOFILE_SECTIONS + 0x200, .sh_size = sizeof(names) };
	s[4] = (Elf64_Shdr){ .sh_name = 27, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_offset = TOKIOFILE_CODE,
			     .sh_addr = tokiofile_base(o) + TOKIOFILE_CODE, .sh_size = TOKIOFILE_STEP * F_ALL };
}

static inline void tokiofile_make(const struct tokiofile_options *o)
{
	Elf64_Ehdr *e = (void *)tokiofile;
	Elf64_Phdr *p = (void *)(tokiofile + 0x40);
	uint64_t base = tokiofile_base(o);

	memset(tokiofile, 0, sizeof(tokiofile));
	*e = (Elf64_Ehdr){ .e_type = o->layout == TOKIOFILE_FIXED ? ET_EXEC : ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			   .e_phoff = 0x40, .e_shoff = TOKIOFILE_SECTIONS, .e_ehsize = sizeof(*e), .e_phentsize = sizeof(*p), .e_phnum = 3,
			   .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5, .e_shstrndx = 3 };
	memcpy(e->e_ident, ELFMAG "\2\1\1", 7);
	p[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, TOKIOFILE_CODE, base + TOKIOFILE_CODE, 0, 0x2000, 0x2000, 0x1000 };
	p[1] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_W, TOKIOFILE_DATA, base + TOKIOFILE_DATA, 0, 0x1000, 0x1000, 0x1000 };
	p[2] = (Elf64_Phdr){ PT_DYNAMIC, PF_R, TOKIOFILE_DYNAMIC, base + TOKIOFILE_DYNAMIC, 0, 0x40, 0x40, 8 };
	snprintf((char *)tokiofile + TOKIOFILE_TEXT, 0x100, "%s", o->path);
	tokiofile_code(o);
	tokiofile_tables(o);
	tokiofile_symbols(o);
}
