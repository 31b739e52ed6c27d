/*
 * test_sitesarm64.c - where functions of arm64 are entered and left, on any machine: in code that gcc 12 made (-O2
 * -mbranch-protection=standard), which is written down here.
 */
#include "test.h"

#include <elf.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/probe/allocator.h"
#include "elf/probe/probesites.h"
#include "elf/probe/sitesarm64.h"
#include "elf/probe/usdt.h"

enum { BASE = 0x400000, CODE = 0x1000, SIZE = 0x2000, RET = 0xd65f03c0, JUMP_OVER = 0x14000001 };
static _Alignas(16) uint8_t file[SIZE];

/* Two returns; calls another function in a loop. */
static const uint32_t ways[] = {
	0xd503233f, 0xa9bf7bfd, 0x910003fd, 0xf100041f, 0x54000220, 0xaa0003e4, 0xd2800002, 0xf00000e3, 0xb4000120,
	0xaa0203e0, 0x97fffff1, 0xf947f461, 0x91000442, 0x8b000021, 0xf907f461, 0xeb02009f, 0x54ffff21, 0xa8c17bfd,
	0xd50323bf, 0xf947f460, RET,        0xd2800040, 0x97ffffe5, 0xa8c17bfd, 0xd50323bf, 0x91000400, RET,
};
/* Ends with a jump to another function. */
static const uint32_t tail[] = {
	0xd503233f, 0xa9bf7bfd, 0xaa0003e2, 0x910003fd, 0x97ffffdc, 0xf00000e3, 0xa8c17bfd,
	0xd50323bf, 0xaa0003e4, 0xf947f461, 0xaa0203e0, 0x8b040021, 0xf907f461, 0x17ffffd3,
};
/* Ends with br x16, a while after it has given its frame back. */
static const uint32_t indirect[] = {
	0xd503233f, 0xa9bf7bfd, 0xaa0103e2, 0x910003fd, 0xaa0003e3, 0xf00000e4, 0xaa0103e0, 0x97ffff9d, 0xa8c17bfd,
	0xd50323bf, 0xaa0003e5, 0xf947f481, 0xaa0203e0, 0xaa0303f0, 0x8b050021, 0xf907f481, 0xd61f0200,
};
/* switch (first[300]): ldrb w1, [x0, #300] */
static const uint32_t later[] = {
	0xd503233f, 0xa9bf7bfd, 0x910003fd, 0x3944b001, 0x35000121, 0x52800061, 0x3904b001, 0xd2800020,
	0x97ffffc8, 0x91000400, 0xa8c17bfd, 0xd50323bf, RET,        0x71000c3f, 0x54000121, 0x52800021,
	0x3904b001, 0xd2800040, 0x97ffffbe, 0x91000400, 0xa8c17bfd, 0xd50323bf, RET,        0xd4207d00,
};
/* A frame of 70,016 bytes with x30 at its lower end; second[9000]: add x1, x1, #2, lsl #12; ldrb w0, [x1, #808] */
static const uint32_t large[] = {
	0xd503233f, 0xd10603ff, 0xd14047ff, 0x91400821, 0xaa0003e2, 0xa9007bfd, 0x910003fd, 0x394ca020, 0x34000040, 0x910043e0,
	0xd2800020, 0x97ffffad, 0x39400441, 0xa9407bfd, 0x910603ff, 0x8b000020, 0x914047ff, 0xd50323bf, RET,
};

static struct probesites read_code(const uint32_t *code, size_t bytes, bool may_be_future)
{
	struct probesites d = { .address = BASE + CODE + 0x100, .size = bytes };
	Elf64_Ehdr *e = (void *)file;
	Elf64_Phdr *p = (void *)(file + 0x40);
	struct elf *elf;

	memset(file, 0, sizeof(file));
	*e = (Elf64_Ehdr){ .e_type = ET_EXEC, .e_machine = EM_AARCH64, .e_version = EV_CURRENT, .e_phoff = 0x40,
			   .e_ehsize = sizeof(*e), .e_phentsize = sizeof(*p), .e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr) };
	memcpy(e->e_ident, ELFMAG "\2\1\1", 7);
	*p = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, CODE, BASE + CODE, 0, SIZE - CODE, SIZE - CODE, 0x1000 };
	memcpy(file + CODE + 0x100, code, bytes);
	assert_int_equal(elf_open_memory(file, sizeof(file), &elf, NULL), 0);
	sitesarm64_read(elf, &d, 0, 0, may_be_future);
	elf_free(elf);
	return d;
}
#define READ(code, may_be_future) read_code(code, sizeof(code), may_be_future)

static uint32_t word_at(uint64_t offset)
{
	uint32_t w;

	assert_true(offset <= SIZE - 4);
	memcpy(&w, file + offset, 4);
	return w;
}

static void ends_are_found(void **state)
{
	struct probesites d = READ(ways, true);

	assert_int_equal(d.trouble, PROBESITES_USABLE);
	assert_int_equal(d.in, CODE + 0x100 + 4 * 4); /* b.eq */
	assert_int_equal(d.depth, 16);
	assert_int_equal(d.out_count, 2);
	assert_true(word_at(d.out[0]) == RET && word_at(d.out[1]) == RET);
	assert_int_equal(d.link, 8); /* stp x29, x30, [sp, #-16]! */
	assert_int_equal(d.future, PROBESITES_NO_FUTURE);
	d = READ(tail, false);
	assert_int_equal(d.trouble, PROBESITES_USABLE);
	assert_int_equal(d.out_count, 1);
	assert_int_equal(d.out[0], CODE + 0x100 + 13 * 4);
	d = READ(indirect, false);
	assert_int_equal(d.out_count, 1);
	assert_int_equal(d.out[0], CODE + 0x100 + 16 * 4);
}

static void entries_are_emulated_where_they_can_be(void **state)
{
	static const uint32_t leaf[] = { 0x8b000020, RET };
	/* sub sp, sp, #32; stp d8, d9, [sp, #-32]!; adrp x1; cbz x0, +8; bl; ret */
	static const uint32_t deep[] = { 0xd10083ff, 0x6dbe27e8, 0xb0000001, 0xb4000040, 0x94000100, RET };
	/* sub x0, x0, #1; cbnz x0, -4; ret: the branch runs more than once */
	static const uint32_t loop[] = { 0xd1000400, 0xb5ffffe0, RET };
	/* mov x9, sp; and sp, x9, #-64; adrp x1; ret: by how much it is lower is not known */
	static const uint32_t aligned[] = { 0x910003e9, 0x927ae53f, 0xb0000001, RET };
	/* ldrb w2, [x0, #3]; mov x0, x1; bl; ret: the future is not where it was */
	static const uint32_t moved[] = { 0x39400c02, 0xaa0103e0, 0x94000100, RET };
	/* adrp x2; br x3, a table; ret */
	static const uint32_t table[] = { 0xb0000002, 0xd61f0060, RET };
	struct probesites d = READ(deep, false);

	assert_int_equal(d.in, CODE + 0x100 + 2 * 4);
	assert_int_equal(d.depth, 64);
	assert_int_equal(READ(leaf, false).in, CODE + 0x100);
	assert_int_equal(READ(loop, false).in, CODE + 0x100);
	assert_int_equal(READ(loop, false).depth, 0);
	assert_int_equal(READ(aligned, false).in, CODE + 0x100);
	assert_int_equal(READ(moved, true).in, CODE + 0x100);
	assert_int_equal(READ(moved, true).state, 3);
	assert_int_equal(READ(moved, false).in, CODE + 0x100 + 2 * 4);
	assert_int_equal(READ(table, false).in, CODE + 0x100);
}

static void saved_links_are_found(void **state)
{
	static const uint32_t alone[] = { 0xf81e0ffe, 0x94000100, 0xf84207fe, RET }; /* str x30, [sp, #-32]!; bl; ldr */
	static const uint32_t first[] = { 0xd10083ff, 0xf9000bfe, 0x94000100, RET }; /* sub sp, sp, #32; str x30, [sp, #16]; bl */
	static const uint32_t pair[] = { 0xa9bd4ffe, 0x94000100, RET };              /* stp x30, x19, [sp, #-48]! */
	static const uint32_t leaf[] = { 0x8b000020, RET };

	assert_int_equal(READ(alone, false).link, 32);
	assert_int_equal(READ(first, false).link, 16);
	assert_int_equal(READ(pair, false).link, 48);
	assert_int_equal(READ(large, false).link, 70016 - 8);
	assert_int_equal(READ(leaf, false).link, 0);
}

static void futures_are_told(void **state)
{
	/* mov x19, x0; mov w8, #5000; ldrb w9, [x19, x8] */
	static const uint32_t far[] = { 0xaa0003f3, 0x52827108, 0x38686a69, RET };
	/* ldr x0, [x1]; ldrb w2, [x0, #1]: it is not the argument any more */
	static const uint32_t other[] = { 0xf9400020, 0x39400402, RET };
	/* bl; ldrb w1, [x0, #300]: what was called has left it there */
	static const uint32_t late[] = { 0x94000100, 0x3944b001, RET };
	struct probesites d = READ(later, true);

	assert_int_equal(d.future, PROBESITES_FUTURE_1ST);
	assert_int_equal(d.state, 300);
	assert_int_equal(READ(later, false).future, PROBESITES_NO_FUTURE);
	d = READ(large, true);
	assert_int_equal(d.future, PROBESITES_FUTURE_2ND);
	assert_int_equal(d.state, 9000);
	d = READ(far, true);
	assert_int_equal(d.future, PROBESITES_FUTURE_1ST);
	assert_int_equal(d.state, 5000);
	assert_int_equal(READ(other, true).future, PROBESITES_NO_FUTURE);
	assert_int_equal(READ(late, true).future, PROBESITES_NO_FUTURE);
}

static void troubles_are_told(void **state)
{
	static const uint32_t endless[] = { 0x14000000 };                      /* b to itself */
	static const uint32_t checked[] = { 0xd503233f, 0xd50323bf, 0xd65f0bff }; /* retaa */
	static const uint32_t exclusive[] = { 0xc85f7c01, RET };               /* ldxr x1, [x0] */
	uint32_t many[PROBESITES_OUT + 1];

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = RET;
	assert_int_equal(READ(endless, false).trouble, PROBESITES_NO_OUT);
	assert_int_equal(READ(checked, false).trouble, PROBESITES_REFUSED);
	assert_int_equal(READ(exclusive, false).trouble, PROBESITES_REFUSED);
	assert_int_equal(READ(many, false).trouble, PROBESITES_MANY_OUT);
	assert_int_equal(read_code(ways, 2, false).trouble, PROBESITES_NO_OUT);
}

static void instructions_that_take_a_probe(void **state)
{
	static const struct {
		uint32_t word;
		bool accepted;
	} cases[] = {
		{ 0xd503201f, true },  /* nop */
		{ 0xd503233f, true },  /* paciasp */
		{ 0xd503245f, true },  /* bti c */
		{ 0xd50323bf, false }, /* autiasp */
		{ 0xa9bf7bfd, true },  /* stp */
		{ 0xd10603ff, true },  /* sub sp */
		{ 0x94000001, true },  /* bl */
		{ 0xd61f0200, true },  /* br x16 */
		{ RET, true },
		{ 0xd65f0bff, false }, /* retaa */
		{ 0xd61f081f, false }, /* braaz x0 */
		{ 0xd4000001, false }, /* svc */
		{ 0xd4207d00, false }, /* brk: somebody else's breakpoint */
		{ 0xd51bd040, false }, /* msr tpidr_el0 */
		{ 0xc85f7c01, false }, /* ldxr */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct allocator_probe p = { .arm64 = 1 };

		memcpy(p.code, &cases[i].word, 4);
		assert_int_equal(sitesarm64_accepted(cases[i].word), cases[i].accepted);
		assert_int_equal(allocator_probe_cheap(&p), cases[i].accepted);
		assert_int_equal(allocator_probe_skip(&p), 0);
	}
}

/* A note of gasflame.h, as on arm64: the probe is at the begin of the code. */
static struct usdt_info read_note(const char *arguments, uint32_t code)
{
	struct usdt_info info = { 0 };
	struct {
		uint32_t name_size, size, type;
		char name[8];
		uint64_t address, base, semaphore;
		char text[64];
	} __attribute__((packed)) note = { 8, 24, 3, "stapsdt", BASE + CODE + 0x100, 0, 0, "gasflame\0mark" };
	struct elf *elf;

	strcpy(note.text + 14, arguments);
	note.size += 14 + strlen(arguments) + 1;
	read_code(&code, 4, false);
	assert_int_equal(elf_open_memory(file, sizeof(file), &elf, NULL), 0);
	usdt_read(elf, (void *)&note, sizeof(note), 0, &info);
	elf_free(elf);
	assert_true(usdt_check(&info));
	return info;
}

static void notes_are_read(void **state)
{
	static const char *const odd[] = { "8@x31 8@x0", "8@x 8@x0", "8@w1 8@x0", "8@x190 8@x0", "8@x1", "8@x1 8@x2 8@x3", "8@rbx 8@rax",
					   "8@xa 8@x0", "" };
	struct usdt_info info = read_note("8@x19 -8@x0", JUMP_OVER);

	assert_int_equal(info.count, 1);
	assert_int_equal(info.list[0].offset, CODE + 0x100);
	assert_int_equal(info.list[0].arguments[0], 19);
	assert_int_equal(info.list[0].arguments[1], 0);
	assert_int_equal(read_note("8@x19 8@x0", RET).odd, 1);
	assert_int_equal(read_note("8@x19 8@x0", 0xd503201f).odd, 1); /* a nop, which kernels before 6.13 single-step */
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		info = read_note(odd[i], JUMP_OVER);
		assert_int_equal(info.count, 0);
		assert_int_equal(info.odd, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_found),    cmocka_unit_test(saved_links_are_found), cmocka_unit_test(entries_are_emulated_where_they_can_be),
		cmocka_unit_test(futures_are_told),  cmocka_unit_test(troubles_are_told),
		cmocka_unit_test(notes_are_read),    cmocka_unit_test(instructions_that_take_a_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
