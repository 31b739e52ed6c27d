/* test_goplaces.c - the places of a Go runtime in a file that is made here: code as Go's compiler writes it, and odd code. */
#include "test.h"

#include <elf.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/probe/goplaces.h"

/* A file with three functions of 32 bytes, a table of reasons and symbols. Address = 0x400000 + offset. */
enum { BASE = 0x400000, CODE = 0x1000, DATA = 0x2000, STRINGS = 0x2800, SYMBOLS = 0x3000, SIZE = 0x4000 };
static _Alignas(16) uint8_t file[SIZE];

static const char *const names[] = { "runtime.gopark", "runtime.ready", "runtime.execute" };
static const char *const reasons[] = { "", "GC assist marking", "IO wait", "chan receive", "sleep" };

static void add_section(unsigned i, const char *name, uint32_t type, uint64_t offset, uint64_t size, uint32_t link)
{
	Elf64_Shdr *s = (void *)(file + 0x200);
	char *strings = (char *)file + 0x600;
	static size_t used;

	if (i == 1)
		used = 1;
	s[i] = (Elf64_Shdr){ .sh_name = used, .sh_type = type, .sh_offset = offset, .sh_size = size, .sh_link = link,
			     .sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0 };
	strcpy(strings + used, name);
	used += strlen(name) + 1;
}

static void make(const char *go_section, const char *code, size_t code_size)
{
	Elf64_Ehdr *e = (void *)file;
	Elf64_Phdr *p = (void *)(file + 0x40);
	Elf64_Sym *symbols = (void *)(file + SYMBOLS);
	uint64_t *table = (void *)(file + DATA + 0x18);
	char *text = (char *)file + STRINGS, *names_at = (char *)file + SYMBOLS + 0x200;
	size_t at = 0, name_at = 1;

	memset(file, 0, sizeof(file));
	*e = (Elf64_Ehdr){ .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = 0x40, .e_shoff = 0x200,
			   .e_ehsize = sizeof(*e), .e_phentsize = sizeof(*p), .e_phnum = 2, .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 5, .e_shstrndx = 4 };
	memcpy(e->e_ident, ELFMAG "\2\1\1", 7);
	p[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, CODE, BASE + CODE, 0, 0x1000, 0x1000, 0x1000 };
	p[1] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_W, DATA, BASE + DATA, 0, 0x1000, 0x1000, 0x1000 };
	add_section(1, go_section, SHT_PROGBITS, DATA, 16, 0);
	add_section(2, ".symtab", SHT_SYMTAB, SYMBOLS, 4 * sizeof(*symbols), 3);
	add_section(3, ".strtab", SHT_STRTAB, SYMBOLS + 0x200, 0x200, 0);
	add_section(4, ".shstrtab", SHT_STRTAB, 0x600, 0x100, 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		symbols[i + 1] = (Elf64_Sym){ .st_name = name_at, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_shndx = 1,
					      .st_value = BASE + CODE + i * 32, .st_size = 32 };
		strcpy(names_at + name_at, names[i]);
		name_at += strlen(names[i]) + 1;
		memcpy(file + CODE + i * 32, code, code_size);
	}
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		table[2 * i] = *reasons[i] ? BASE + STRINGS + at : 0;
		table[2 * i + 1] = strlen(reasons[i]);
		memcpy(text + at, reasons[i], strlen(reasons[i]));
		at += strlen(reasons[i]);
	}
	table[2 * ARRAY_LEN(reasons)] = BASE + STRINGS;
	table[2 * ARRAY_LEN(reasons) + 1] = 1 << 30;
}

static struct goplaces find(void)
{
	struct goplaces g;
	struct elf *elf;

	assert_int_equal(elf_open_memory(file, sizeof(file), &elf, NULL), 0);
	goplaces_find(elf, &g);
	assert_true(goplaces_check(&g));
	elf_free(elf);
	return g;
}

#define SMALL "\x49\x3b\x66\x10\x76\x12\x55"                                     /* cmp; jbe short; push */
#define FAR   "\x49\x3b\x66\x10\x0f\x86\x12\x00\x00\x00\x55"                     /* cmp; jbe */
#define LARGE "\x4c\x8d\x64\x24\xe8\x4d\x3b\x66\x10\x0f\x86\x12\x00\x00\x00\x55" /* lea r12; cmp; jbe */
#define HUGE  "\x4c\x8d\xa4\x24\x00\xff\xff\xff\x4d\x3b\x66\x10\x76\x12\x55"
#define OLD   "\x64\x48\x8b\x0c\x25\xf8\xff\xff\xff\x48\x3b\x61\x10\x76\x12"     /* mov rcx, fs:-8; cmp; jbe */
#define OTHER "\x55\x48\x89\xe5"

static void jumps_are_found(void **state)
{
	static const struct {
		const char *code;
		size_t size;
		uint64_t jump;
		uint32_t trouble;
	} cases[] = {
		{ SMALL, sizeof(SMALL), 4, GOPLACES_USABLE },
		{ FAR, sizeof(FAR), 4, GOPLACES_USABLE },
		{ LARGE, sizeof(LARGE), 9, GOPLACES_USABLE },
		{ HUGE, sizeof(HUGE), 12, GOPLACES_USABLE },
		{ OLD, sizeof(OLD), 0, GOPLACES_OLD },
		{ OTHER, sizeof(OTHER), 0, GOPLACES_OTHER },
		{ "\x49\x3b\x66\x10\x77", 5, 0, GOPLACES_OTHER }, /* another jump */
		{ "\xcc", 1, 0, GOPLACES_OTHER },                 /* somebody else's breakpoint */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct goplaces g;

		make(".go.buildinfo", cases[i].code, cases[i].size);
		g = find();
		assert_int_equal(g.trouble, cases[i].trouble);
		for (int k = 0; k < GOPLACES_COUNT && !g.trouble; k++)
			assert_int_equal(g.offset[k], CODE + k * 32 + cases[i].jump);
		assert_true(!g.trouble == !*goplaces_trouble_text(g.trouble));
	}
}

/* The same of arm64, by words: as Go 1.19 writes gopark, and newstack, whose frame is large. */
static void jumps_of_arm64_are_found(void **state)
{
	static const struct {
		uint32_t code[4];
		uint64_t jump;
		uint32_t trouble;
	} cases[] = {
		{ { 0xf9400b90, 0xeb3063ff, 0x540007e9, 0xf81e0ffe }, 8, GOPLACES_USABLE },
		{ { 0xf9400b90, 0xd104c3f1, 0xeb10023f, 0x54004969 }, 12, GOPLACES_USABLE },
		{ { 0xf9400b81, 0x910003e2, 0xeb01005f, 0x540007e9 }, 0, GOPLACES_OLD },   /* ldr x1, [x28, #16] */
		{ { 0xf9400b90, 0xeb3063ff, 0x540007e8, 0xf81e0ffe }, 0, GOPLACES_OTHER }, /* another condition */
		{ { 0xf9400b90, 0xd104c3f1, 0xeb3063ff, 0x540007e9 }, 0, GOPLACES_OTHER },
		{ { 0xd4200000, 0xeb3063ff, 0x540007e9, 0xf81e0ffe }, 0, GOPLACES_OTHER }, /* somebody else's breakpoint */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct goplaces g;

		make(".go.buildinfo", (const char *)cases[i].code, sizeof(cases[i].code));
		((Elf64_Ehdr *)file)->e_machine = EM_AARCH64;
		g = find();
		assert_int_equal(g.trouble, cases[i].trouble);
		for (int k = 0; k < GOPLACES_COUNT && !g.trouble; k++)
			assert_int_equal(g.offset[k], CODE + k * 32 + cases[i].jump);
	}
}

static void reasons_are_the_files_own(void **state)
{
	struct goplaces g;
	uint64_t *table = (void *)(file + DATA + 0x18);

	make(".gopclntab", FAR, sizeof(FAR));
	g = find();
	/* The string that is longer than the file ends the table. */
	assert_int_equal(g.reason_count, ARRAY_LEN(reasons));
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		assert_string_equal(g.reasons[i], reasons[i]);
	/* A string beyond the file, and no table at all: the places are usable all the same. */
	table[6] = UINT64_MAX - 4;
	g = find();
	assert_int_equal(g.reason_count, 3);
	table[4] = 0;
	g = find();
	assert_int_equal(g.reason_count, 0);
	assert_int_equal(g.trouble, GOPLACES_USABLE);
}

static void other_programs_are_refused(void **state)
{
	Elf64_Sym *symbols = (void *)(file + SYMBOLS);

	make(".text", FAR, sizeof(FAR));
	assert_int_equal(find().trouble, GOPLACES_NO_GO);
	make(".gopclntab", FAR, sizeof(FAR));
	symbols[2].st_name = 0;
	assert_int_equal(find().trouble, GOPLACES_NO_NAMES);
	make(".gopclntab", FAR, sizeof(FAR));
	symbols[3].st_value = BASE + CODE + 0xffe; /* its code ends with the segment */
	assert_int_equal(find().trouble, GOPLACES_OTHER);
}

static void answers_are_checked(void **state)
{
	struct goplaces g = { .reason_count = GOPLACES_REASONS };

	memset(g.reasons, '\n', sizeof(g.reasons));
	assert_true(goplaces_check(&g));
	assert_int_equal(strlen(g.reasons[0]), GOPLACES_REASON - 1);
	assert_null(strchr(g.reasons[0], '\n'));
	g.reason_count++;
	assert_false(goplaces_check(&g));
	g.reason_count = 0;
	g.trouble = GOPLACES_TROUBLES;
	assert_false(goplaces_check(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jumps_are_found),
		cmocka_unit_test(jumps_of_arm64_are_found),
		cmocka_unit_test(reasons_are_the_files_own),
		cmocka_unit_test(other_programs_are_refused),
		cmocka_unit_test(answers_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
