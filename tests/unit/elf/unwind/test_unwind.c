#include "test.h"

#include <elf.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/unwind/functions.h"
#include "elf/unwind/unwind.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x4000, FRAME = 0x8000, PLT = 0x4000 };

/* --- a file made of nothing but unwind information --- */

struct image {
	struct buf frame;
	struct buf plt;
	const char *frame_name; /* .eh_frame unless set */
	uint64_t entry;
	bool no_sections;
	struct unwind_table table;
	struct functions functions;
};

static void put(struct buf *b, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_putc(b, value >> (8 * i));
}

/* Programs are strings; their length is what the compiler says. */
#define PROGRAM(s) (s), sizeof(s) - 1

/* Returns the entry's offset. Length and padding are filled in by end_entry(). */
static size_t start_entry(struct image *im, uint32_t id)
{
	size_t at = im->frame.n;

	put(&im->frame, 0, 4);
	put(&im->frame, id, 4);
	return at;
}

static void end_entry(struct image *im, size_t at, const char *program, size_t n)
{
	uint32_t length;

	buf_add(&im->frame, program, n);
	while (im->frame.n % 8)
		buf_putc(&im->frame, 0);
	length = im->frame.n - at - 4;
	memcpy(im->frame.data + at, &length, 4);
}

/* What gcc writes: version 1, "zR" or more, pcrel sdata4; CFA = rsp + 8, return address at CFA - 8. */
static size_t add_cie_as(struct image *im, const char *letters, uint8_t encoding)
{
	size_t at = start_entry(im, 0);

	buf_add(&im->frame, "\1", 1);
	buf_add(&im->frame, letters, strlen(letters) + 1);
	buf_add(&im->frame, "\1\x78\x10\1", 4);
	buf_putc(&im->frame, encoding);
	end_entry(im, at, PROGRAM("\x0c\7\10\x90\1"));
	return at;
}

static size_t add_cie(struct image *im)
{
	return add_cie_as(im, "zR", 0x1b);
}

static void add_fde(struct image *im, size_t cie, uint64_t start, uint32_t size, const char *program,
                    size_t n)
{
	size_t at = start_entry(im, im->frame.n + 4 - cie);

	put(&im->frame, start - (FRAME + im->frame.n), 4);
	put(&im->frame, size, 4);
	buf_putc(&im->frame, 0);
	end_entry(im, at, program, n);
}

static int build(struct image *im)
{
	static const uint8_t text[TEXT + TEXT_SIZE]; /* is searched for Go's table where there are no sections */
	struct elf_section sections[] = {
		{ .name = im->frame_name ? im->frame_name : ".eh_frame",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC,
		  .address = FRAME,
		  .size = im->frame.n,
		  .data = (uint8_t *)im->frame.data,
		  .file_size = im->frame.n },
		{ .name = ".plt",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .address = PLT,
		  .size = im->plt.n,
		  .data = (uint8_t *)im->plt.data,
		  .file_size = im->plt.n },
	};
	struct elf_segment segments[] = { { .type = PT_LOAD,
		                            .flags = PF_R | PF_X,
		                            .offset = TEXT,
		                            .address = TEXT,
		                            .file_size = TEXT_SIZE,
		                            .memory_size = TEXT_SIZE } };
	struct elf elf = { .data = im->no_sections ? text : NULL,
		           .size = TEXT + TEXT_SIZE,
		           .type = ET_DYN,
		           .machine = EM_X86_64,
		           .entry = im->entry,
		           .sections = sections,
		           .section_count = im->no_sections ? 0 : 2,
		           .segments = segments,
		           .segment_count = 1 };
	struct err err = { 0 };
	int r;

	unwind_done(&im->table);
	r = unwind_build(&elf, &im->table, &err);
	if (r == 0)
		assert_true(unwind_valid(&im->table));
	functions_done(&im->functions);
	functions_read(&elf, &im->functions);
	assert_true(functions_valid(&im->functions));
	return r;
}

static void image_done(struct image *im)
{
	buf_done(&im->frame);
	buf_done(&im->plt);
	unwind_done(&im->table);
	functions_done(&im->functions);
}

static uint64_t at(struct image *im, uint64_t address)
{
	return unwind_find(&im->table, address);
}

static uint64_t rsp(int64_t offset)
{
	return rule_make(RULE_CFA_RSP, 0, offset, RULE_RBP_SAME, 0);
}

/* The rule that a program leaves in an FDE of its own. */
static uint64_t rule_of(const char *letters, const char *program, size_t n)
{
	struct image im = { 0 };
	uint64_t rule;

	add_fde(&im, add_cie_as(&im, letters, 0x1b), 0x1100, 16, program, n);
	assert_int_equal(build(&im), 0);
	rule = at(&im, 0x110f);
	assert_int_equal(im.table.unsupported, rule == RULE_UNSUPPORTED);
	image_done(&im);
	return rule;
}

/* --- building --- */

static void a_function_becomes_rows(void **state)
{
	struct image im = { 0 };

	/* push rbp; mov rsp, rbp; ...; pop rbp; ret, over two pages */
	add_fde(&im, add_cie(&im), 0x1ff0, 0x30,
	        PROGRAM("\x41\x0e\x10\x86\2\x43\x0d\6\x02\x2b\x0c\7\10\xc6"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(im.table.first_page, 1);
	assert_int_equal(im.table.page_count, 2);
	assert_int_equal(at(&im, 0x1fef), RULE_NONE);
	assert_int_equal(at(&im, 0x1ff0), rsp(8));
	assert_int_equal(at(&im, 0x1ff1), rule_make(RULE_CFA_RSP, 0, 16, RULE_RBP_CFA, -16));
	assert_int_equal(at(&im, 0x1ff4), rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16));
	assert_int_equal(at(&im, 0x2000), rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16));
	assert_int_equal(at(&im, 0x201e), rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16));
	assert_int_equal(at(&im, 0x201f), rsp(8));
	assert_int_equal(at(&im, 0x2020), RULE_NONE);
	assert_int_equal(at(&im, 0), RULE_NONE);
	assert_int_equal(at(&im, ~0ULL), RULE_NONE);
	image_done(&im);
}

static void states_are_remembered(void **state)
{
	struct image im = { 0 };

	add_fde(&im, add_cie(&im), 0x1100, 0x40, PROGRAM("\x41\x0e\x10\x0a\x48\x0e\x20\x0a\x48\x0e\x30\x0b"
							 "\x48\x0e\x28\x0b\x48"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x1101), rsp(16));
	assert_int_equal(at(&im, 0x1109), rsp(32));
	assert_int_equal(at(&im, 0x1111), rsp(32)); /* set to 48 and restored at one address */
	assert_int_equal(at(&im, 0x1119), rsp(16));
	image_done(&im);
}

static void rules_are_told_apart(void **state)
{
	/* def_cfa rax+16; r11; rbp at CFA-4096*8 does not fit */
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\0\x10")),
	                 rule_make(RULE_CFA_REG, 0, 16, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x0d\x0b")),
	                 rule_make(RULE_CFA_REG, 11, 8, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x86\x81\x20")),
	                 rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP_LOST, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x07\6")), rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP_LOST, 0));
	/* frames of 655,888 bytes exist */
	assert_int_equal(rule_of("zR", PROGRAM("\x0e\x90\x84\x28")), rsp(655888));
	/* [rsp+24]+8 of OpenSSL; [rbp-40] with rbp at [rbp+0], of gcc */
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\5\x77\x18\6\x23\10")),
			 rule_make(RULE_CFA_DEREF_RSP, 1, 24, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\3\x76\x58\6\x10\6\2\x76\0")),
			 rule_make(RULE_CFA_DEREF_RBP, 0, -40, RULE_RBP_RBP, 0));
	/* rbp saved at [rsp-8] while the CFA is rsp+8 */
	assert_int_equal(rule_of("zR", PROGRAM("\x10\6\2\x77\x78")),
	                 rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP_CFA, -16));
	/* rsp kept in r11 while the CFA is said to be based on rsp */
	assert_int_equal(rule_of("zR", PROGRAM("\x09\7\x0b")),
	                 rule_make(RULE_CFA_REG, 11, 8, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x09\7\x0b\x08\7")), rsp(8));
	/* vfork: the return address is in rdi, and rsp is the caller's */
	assert_int_equal(rule_of("zR", PROGRAM("\x0e\0\x09\x10\5")), rule_make(RULE_RA_REG, 5, 0, RULE_RBP_SAME, 0));
	/* the outermost frame; GNU_args_size and window_save mean nothing here */
	assert_int_equal(rule_of("zR", PROGRAM("\x07\x10")), RULE_END);
	assert_int_equal(rule_of("zR", PROGRAM("\x2e\x20\x2d")), rsp(8));
	/* the signal frame of the C library; 'S' alone does not make one */
	assert_int_equal(rule_of("zRS", PROGRAM("\x0f\4\x77\xa0\1\6")), RULE_SIGNAL);
	assert_int_equal(rule_of("zRS", PROGRAM("\x0e\x10")), rsp(16));
	/* GNU ld's PLT */
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\x0b\x77\10\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22")),
			 rule_make(RULE_CFA_PLT, 0, 0, RULE_RBP_SAME, 0));
}

static uint64_t rbx_at(unsigned words)
{
	return (uint64_t)words << 12;
}

/* Where a function's CFA is based on rbx, rules say where the caller's rbx is; elsewhere they do not. */
static void rbx_is_kept_where_it_is_needed(void **state)
{
	/* DW_CFA_offset rbx at CFA-56; at CFA-8, where the return address is; at CFA-128; undefined; in rdx */
	assert_int_equal(rule_of("zR", PROGRAM("\x83\7")), rsp(8));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38\x83\7")),
			 rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0) | rbx_at(7));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38")), rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0) | rbx_at(1));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38\x83\1")), rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38\x83\x10")), rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38\x07\3")), rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0));
	assert_int_equal(rule_of("zR", PROGRAM("\x0c\3\x38\x09\3\1")), rule_make(RULE_CFA_REG, 3, 56, RULE_RBP_SAME, 0));
}

static void what_cannot_be_said_is_unsupported(void **state)
{
	/* the return address at CFA-16, or in rdx where rbp is saved; an unknown expression; an unknown opcode; restore_state
	 * without a state; an operand that is cut off; an offset that does not fit; [rbx+0] */
	assert_int_equal(rule_of("zR", PROGRAM("\x90\2")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x09\x10\1\x86\2")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x09\x10\x20")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\2\x77\10\x22")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x3f")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x0b")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\x7f\x77")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x0e\x80\x80\x80\x80\x10")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of("zR", PROGRAM("\x0f\3\x73\0\6")), RULE_UNSUPPORTED);
	/* rsp by an expression */
	assert_int_equal(rule_of("zR", PROGRAM("\x10\7\2\x77\x10")), RULE_UNSUPPORTED);
}

static void functions_overlap(void **state)
{
	struct image im = { 0 };
	size_t cie = add_cie(&im);

	add_fde(&im, cie, 0x1300, 0x10, PROGRAM("\x0e\x28"));
	add_fde(&im, cie, 0x1100, 0x100, PROGRAM("\x0e\x10\x02\x80\x0e\x18"));
	add_fde(&im, cie, 0x1140, 0x60, PROGRAM("\x0e\x20")); /* inside the one before */
	add_fde(&im, cie, 0x1150, 0, PROGRAM("\x0e\x30"));    /* empty */
	add_fde(&im, cie, 0x3ff0, 0x1100, PROGRAM("\x0e\x38")); /* past the end of the text */
	add_fde(&im, cie, 0x7000, 0x100, PROGRAM("\x0e\x40")); /* outside of it */
	add_fde(&im, cie, 0x1300, 0x10, PROGRAM("\x0e\x48"));  /* again: the first in the file counts */
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x113f), rsp(16));
	assert_int_equal(at(&im, 0x1140), rsp(32));
	assert_int_equal(at(&im, 0x119f), rsp(32));
	assert_int_equal(at(&im, 0x11a0), rsp(24)); /* the outer one goes on, and has moved on */
	assert_int_equal(at(&im, 0x11ff), rsp(24));
	assert_int_equal(at(&im, 0x1200), RULE_NONE);
	assert_int_equal(at(&im, 0x1300), rsp(40));
	assert_int_equal(at(&im, 0x1310), RULE_NONE);
	assert_int_equal(at(&im, 0x3ff0), rsp(56));
	assert_int_equal(at(&im, 0x4fff), rsp(56));
	assert_int_equal(at(&im, 0x5000), RULE_NONE);
	assert_int_equal(at(&im, 0x7000), RULE_NONE);
	image_done(&im);
}

/* The same FDEs, as functions. */
static void functions_start_at_their_fde(void **state)
{
	struct functions_range one = { 0x1300, 0x1310 };
	struct functions other = { .v = &one, .n = 1, .from = FUNCTIONS_FDES };
	const struct functions *f;
	struct image im = { 0 };
	size_t cie = add_cie(&im);

	add_fde(&im, cie, 0x1300, 0x10, PROGRAM("\x0e\x28"));
	add_fde(&im, cie, 0x1100, 0x100, PROGRAM("\x0e\x10"));
	add_fde(&im, cie, 0x1140, 0x60, PROGRAM("\x0e\x20")); /* inside the one before */
	add_fde(&im, cie, 0x7000, 0x100, PROGRAM("\x0e\x40")); /* outside of the text */
	add_fde(&im, cie, 0x1300, 8, PROGRAM("\x0e\x48"));     /* again, and shorter */
	assert_int_equal(build(&im), 0);
	f = &im.functions;
	assert_int_equal(f->from, FUNCTIONS_FDES);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->overlapping, 1);
	assert_int_equal(functions_find(f, 0x113f)->start, 0x1100);
	assert_int_equal(functions_find(f, 0x1140)->start, 0x1140);
	assert_int_equal(functions_find(f, 0x119f)->end, 0x11a0);
	assert_null(functions_find(f, 0x11a0)); /* whose it is cannot be told */
	assert_null(functions_find(f, 0x10ff));
	assert_int_equal(functions_find(f, 0x130f)->end, 0x1310);
	assert_null(functions_find(f, 0x1310));
	assert_null(functions_find(f, 0x7000));
	assert_int_equal(functions_bytes(f), 0x40 + 0x60 + 0x10);
	assert_int_equal(functions_agree(f, &other), 1);
	assert_true(functions_same_at(f, &other, 0x1305));
	one.end++; /* another size is another function */
	assert_int_equal(functions_agree(f, &other), 0);
	assert_false(functions_same_at(f, &other, 0x1305));
	one.end = one.start;
	assert_false(functions_valid(&other));
	image_done(&im);
}

static void other_encodings_are_read(void **state)
{
	struct image im = { .frame_name = ".debug_frame" };
	size_t entry;

	/* .debug_frame, version 4, 64-bit lengths, plain addresses */
	put(&im.frame, 0xffffffff, 4);
	put(&im.frame, 8 + 10 + 6, 8);
	put(&im.frame, ~0ULL, 8);
	buf_add(&im.frame, "\4\0\10\0\1\x78\x10\x0c\7\10\x90\1\0\0\0\0", 16);
	put(&im.frame, 0xffffffff, 4);
	put(&im.frame, 8 + 16 + 8, 8);
	put(&im.frame, 0, 8);
	put(&im.frame, 0x1234, 8);
	put(&im.frame, 0x10, 8);
	buf_add(&im.frame, "\x0e\x30\0\0\0\0\0\0", 8);
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x1233), RULE_NONE);
	assert_int_equal(at(&im, 0x1234), rsp(48));
	assert_int_equal(at(&im, 0x1244), RULE_NONE);
	image_done(&im);

	/* .eh_frame with absolute 8-byte addresses; a personality and an LSDA that are skipped */
	im = (struct image){ 0 };
	entry = start_entry(&im, 0);
	buf_add(&im.frame, "\1zPLRS\0\1\x78\x10\7\x9b\1\2\3\4\x1b\0", 18);
	end_entry(&im, entry, PROGRAM("\x0c\7\10\x90\1"));
	entry = start_entry(&im, im.frame.n + 4);
	put(&im.frame, 0x1300, 8);
	put(&im.frame, 0x20, 8);
	buf_add(&im.frame, "\4abcd", 5);
	end_entry(&im, entry, PROGRAM("\x0e\x18"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x131f), rsp(24));
	image_done(&im);

	/* an indirect pointer cannot be followed */
	im = (struct image){ 0 };
	add_fde(&im, add_cie_as(&im, "zR", 0x9b), 0x1300, 0x20, PROGRAM("\x0e\x18"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(im.table.page_count, 0);
	image_done(&im);
}

static void plt_and_entry_point_are_made_up(void **state)
{
	static const char plt0[] = "\xff\x35GOT.\xff\x25GOT.\x0f\x1f\x40\0",
			  lazy[] = "\xff\x25GOT.\x68NNNN\xe9PLT0",
			  ibt[] = "\xf3\x0f\x1e\xfa\x68NNNN\xf2\xe9PLT0\x90";
	struct image im = { .entry = 0x1200 };

	buf_add(&im.plt, plt0, 16);
	buf_add(&im.plt, lazy, 16);
	buf_add(&im.plt, ibt, 16);
	buf_add(&im.plt, "what is this???", 16);
	add_fde(&im, add_cie(&im), 0x1220, 0x10, PROGRAM("\x0e\x18"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, PLT - 1), RULE_NONE);
	assert_int_equal(at(&im, PLT), rsp(16));
	assert_int_equal(at(&im, PLT + 6), rsp(24));
	assert_int_equal(at(&im, PLT + 16), rule_make(RULE_CFA_PLT, 0, 0, RULE_RBP_SAME, 0));
	assert_int_equal(at(&im, PLT + 32), rsp(8));
	assert_int_equal(at(&im, PLT + 41), rsp(16));
	assert_int_equal(at(&im, PLT + 48), RULE_NONE);
	assert_int_equal(at(&im, 0x11ff), RULE_NONE);
	assert_int_equal(at(&im, 0x1200), RULE_END);
	assert_int_equal(at(&im, 0x1220), rsp(24));
	assert_int_equal(at(&im, 0x1230),
	                 RULE_NONE); /* the entry point ended where the next function began */
	image_done(&im);

	/* Neither where .eh_frame knows better. Its PLT pushes at byte 9: spelled out. */
	im = (struct image){ .entry = 0x1208 };
	buf_add(&im.plt, lazy, 16);
	add_fde(&im, add_cie(&im), 0x1200, 0x10, PROGRAM("\x0e\x18"));
	add_fde(&im, 0, PLT, 0x20, PROGRAM("\x0f\x0b\x77\10\x80\0\x3f\x1a\x39\x2a\x33\x24\x22"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x1208), rsp(24));
	assert_int_equal(at(&im, 0x1210), RULE_NONE);
	assert_int_equal(at(&im, PLT + 8), rsp(8));
	assert_int_equal(at(&im, PLT + 9), rsp(16));
	assert_int_equal(at(&im, PLT + 16), rsp(8));
	assert_int_equal(at(&im, PLT + 31), rsp(16));
	assert_int_equal(at(&im, PLT + 32), RULE_NONE);
	image_done(&im);
}

static void bad_files_give_little(void **state)
{
	struct image im = { .no_sections = true };

	assert_int_equal(build(&im), 0);
	assert_int_equal(im.table.page_count, 0);
	assert_int_equal(at(&im, 0x1000), RULE_NONE);

	/* A length that does not fit: what was read before it counts. */
	im.no_sections = false;
	add_fde(&im, add_cie(&im), 0x1100, 0x10, PROGRAM("\x0e\x18"));
	put(&im.frame, 0, 4); /* a terminator in the middle does not end it */
	add_fde(&im, 0, 0x1200, 0x10, PROGRAM("\x0e\x18"));
	put(&im.frame, 0x7fffffff, 4);
	add_fde(&im, 0, 0x1300, 0x10, PROGRAM("\x0e\x18"));
	assert_int_equal(build(&im), 0);
	assert_int_equal(at(&im, 0x1100), rsp(24));
	assert_int_equal(at(&im, 0x1200), rsp(24));
	assert_int_equal(at(&im, 0x1300), RULE_NONE);
	image_done(&im);
}

static void more_rules_than_fit_are_unsupported(void **state)
{
	struct image im = { 0 };
	struct buf program = { 0 };
	size_t cie = add_cie(&im);

	/* 0x3800 rows in each of 5 FDEs that lie over each other, each row another rule */
	for (unsigned i = 0; i < 5; i++) {
		program.n = 0;
		for (unsigned j = 0; j < 0x3800; j++) {
			uint32_t offset = (i * 0x3800 + j) * 8 + 8;

			buf_putc(&program, 0x0e);
			buf_putc(&program, (offset & 0x7f) | 0x80);
			buf_putc(&program, (offset >> 7 & 0x7f) | 0x80);
			buf_putc(&program, offset >> 14);
			buf_putc(&program, 0x41);
		}
		add_fde(&im, cie, 0x1000 + i, 0x3800, program.data, program.n);
	}
	assert_int_equal(build(&im), 0);
	assert_int_equal(im.table.rule_count, UNWIND_MAX_RULES);
	assert_int_equal(at(&im, 0x1004), rsp(4 * 0x3800 * 8 + 8));
	assert_int_equal(at(&im, 0x1004 + 0x37ff), RULE_UNSUPPORTED);
	assert_true(im.table.unsupported >= 1);
	buf_done(&program);
	image_done(&im);
}

/* --- tables from the child --- */

static void broken_tables_are_refused(void **state)
{
	struct unwind_page pages[] = { { 0, 2 }, { 2, 1 } };
	uint32_t rows[] = { 0, 0x10 | 1 << 16, 1 << 16 };
	uint64_t rules[] = { RULE_NONE, 0 };
	struct unwind_table good = { .first_page = 1, .page_count = 2, .row_count = 3, .rule_count = 2,
				     .pages = pages, .rows = rows, .rules = rules };
	struct unwind_table t = good;

	rules[1] = rsp(8);
	assert_true(unwind_valid(&good));
#define REFUSED(place, value)                              \
	do {                                               \
		__typeof__(place) saved_ = (place);        \
		(place) = (value);                         \
		assert_false(unwind_valid(&t));            \
		(place) = saved_;                          \
		assert_true(unwind_valid(&t));             \
	} while (0)
	REFUSED(rows[0], 1);               /* a page that no row opens */
	REFUSED(rows[2], 1 | 1 << 16);
	REFUSED(rows[1], 0 | 1 << 16);     /* not rising */
	REFUSED(rows[1], 0x1010 | 1 << 16); /* past the page */
	REFUSED(rows[1], 0x10 | 2 << 16);  /* no such rule */
	REFUSED(rules[0], rsp(8));
	REFUSED(rules[1], RULE_CFA_MAX + 1);
	REFUSED(rules[1], (uint64_t)(RULE_RBP_MAX + 1) << 8 | RULE_CFA_RSP);
	REFUSED(pages[0].count, 0);
	REFUSED(pages[1].count, 2);
	REFUSED(pages[1].first, 1);
	REFUSED(pages[1].first, 0xffffffff);
	REFUSED(t.first_page, 1ULL << 35);
	REFUSED(t.first_page, UINT64_MAX);
	REFUSED(t.row_count, 2);
	REFUSED(t.row_count, 4);
	REFUSED(t.page_count, 1);
	REFUSED(t.page_count, 4);
	REFUSED(t.rule_count, 1);
	REFUSED(t.rule_count, UNWIND_MAX_RULES + 1);
	REFUSED(t.row_count, UNWIND_MAX_ROWS + 1);
	t = (struct unwind_table){ 0 };
	assert_true(unwind_valid(&t));
	assert_int_equal(unwind_find(&t, 0x1000), RULE_NONE);
}

/* --- steps --- */

enum { STACK = 0x7000, WORDS = 32 };

static bool read_stack(void *context, uint64_t address, uint64_t *ret)
{
	const uint64_t *words = context;

	if (address < STACK || address % 8 || (address - STACK) / 8 >= WORDS)
		return false;
	*ret = words[(address - STACK) / 8];
	return true;
}

static struct unwind_regs step(uint64_t *words, struct unwind_regs regs, uint64_t rule,
                               enum unwind_result expected)
{
	assert_int_equal(unwind_step(&regs, rule, read_stack, words), expected);
	return regs;
}

static void assert_regs(struct unwind_regs regs, uint64_t rip, uint64_t sp, uint64_t bp)
{
	assert_int_equal(regs.r[UNWIND_RIP], rip);
	assert_int_equal(regs.r[UNWIND_RSP], sp);
	assert_int_equal(regs.r[UNWIND_RBP], bp);
	assert_false(regs.leaf);
}

static void steps_follow_rules(void **state)
{
	uint64_t w[WORDS];
	struct unwind_regs regs = { .leaf = true, .r = { [UNWIND_RSP] = STACK + 16, [UNWIND_RBP] = STACK + 64,
							 [UNWIND_RIP] = 0x100b, [11] = STACK + 32 } };

	for (unsigned i = 0; i < WORDS; i++)
		w[i] = 0x100 + i;
	w[20] = STACK + 80;
	assert_regs(step(w, regs, rsp(16), UNWIND_MORE), 0x103, STACK + 32, STACK + 64);
	assert_regs(step(w, regs, rule_make(RULE_CFA_RSP, 0, 32, RULE_RBP_CFA, -16), UNWIND_MORE), 0x104 + 1,
		    STACK + 48, 0x104);
	assert_regs(step(w, regs, rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_RBP, 0), UNWIND_MORE), 0x109,
	            STACK + 80, 0x108);
	assert_regs(step(w, regs, rule_make(RULE_CFA_REG, 11, 8, RULE_RBP_SAME, 0), UNWIND_MORE), 0x104,
	            STACK + 40, STACK + 64);
	assert_regs(step(w, regs, rule_make(RULE_CFA_DEREF_RSP, 1, 144, RULE_RBP_LOST, 0), UNWIND_MORE),
	            0x10a, STACK + 88, RULE_LOST_RBP);
	assert_regs(step(w, regs, rule_make(RULE_CFA_DEREF_RBP, 0, 96, RULE_RBP_SAME, 0), UNWIND_MORE), 0x109,
		    STACK + 80, STACK + 64);
	assert_regs(step(w, regs, rule_make(RULE_RA_REG, 11, 0, RULE_RBP_SAME, 0), UNWIND_MORE), STACK + 32, STACK + 16,
		    STACK + 64);
	/* a PLT entry before and after its push */
	assert_regs(step(w, regs, RULE_CFA_PLT, UNWIND_MORE), 0x103, STACK + 32, STACK + 64);
	regs.r[UNWIND_RIP] = 0x100a;
	assert_regs(step(w, regs, RULE_CFA_PLT, UNWIND_MORE), 0x102, STACK + 24, STACK + 64);
	assert_regs(step(w, regs, RULE_FRAME_POINTER, UNWIND_MORE), 0x109, STACK + 80, 0x108);
}

/* A function that realigns its stack by rbx calls one that saves rbx, and that one another. */
static void steps_carry_rbx(void **state)
{
	uint64_t w[WORDS] = { 0 };
	uint64_t realigned = rule_make(RULE_CFA_REG, 3, 16, RULE_RBP_SAME, 0);
	struct unwind_regs regs = { .leaf = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RBX] = 0x5555, [UNWIND_RIP] = 0x1000 } };

	w[0] = 0x2000;           /* into the one that saves rbx */
	w[1] = STACK + 128;      /* which it has pushed */
	w[2] = 0x3000;           /* into the one that realigned */
	w[17] = 0x4000;          /* its return address: rbx + 16 - 8 */
	regs = step(w, regs, rsp(8) | rbx_at(RULE_RBX_SAME), UNWIND_MORE);
	assert_int_equal(regs.r[UNWIND_RBX], 0x5555);
	regs = step(w, regs, rsp(16) | rbx_at(2), UNWIND_MORE);
	assert_regs(regs, 0x3000, STACK + 24, 0);
	assert_int_equal(regs.r[UNWIND_RBX], STACK + 128);
	assert_regs(step(w, regs, realigned, UNWIND_MORE), 0x4000, STACK + 144, 0);
	/* behind a frame that does not say where it is, or says a place that cannot be read, it is lost */
	regs.r[UNWIND_RBX] = RULE_LOST_RBX;
	step(w, regs, realigned, UNWIND_BAD_RULE);
	regs = (struct unwind_regs){ .leaf = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RBX] = STACK + 128 } };
	assert_int_equal(step(w, regs, rsp(8), UNWIND_MORE).r[UNWIND_RBX], RULE_LOST_RBX);
	assert_int_equal(step(w, regs, rsp(8) | rbx_at(15), UNWIND_MORE).r[UNWIND_RBX], RULE_LOST_RBX);
}

static void steps_stop(void **state)
{
	uint64_t w[WORDS] = { 0 };
	struct unwind_regs regs = { .r = { [UNWIND_RSP] = STACK + 16, [UNWIND_RBP] = STACK + 64 } };

	w[9] = 0x1234;
	step(w, regs, rsp(8), UNWIND_DONE); /* a return address of 0 */
	step(w, regs, RULE_END, UNWIND_DONE);
	step(w, regs, RULE_NONE, UNWIND_NO_RULE);
	step(w, regs, RULE_UNSUPPORTED, UNWIND_BAD_RULE);
	step(w, regs, 15, UNWIND_BAD_RULE);
	step(w, regs, rule_make(RULE_CFA_REG, 11, 8, RULE_RBP_SAME, 0), UNWIND_BAD_RULE); /* not the leaf */
	step(w, regs, rule_make(RULE_RA_REG, 5, 0, RULE_RBP_SAME, 0), UNWIND_BAD_RULE);
	step(w, regs, rsp(0), UNWIND_NOT_RISING);
	step(w, regs, rsp(-8), UNWIND_NOT_RISING);
	step(w, regs, rsp(0x1000), UNWIND_BAD_MEMORY);
	step(w, regs, rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, 0x1000), UNWIND_BAD_MEMORY);
	regs.r[UNWIND_RSP] = STACK + 72; /* another stack is no loop, but for frame pointers */
	step(w, regs, rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_SAME, 0), UNWIND_MORE);
	step(w, regs, RULE_FRAME_POINTER, UNWIND_NOT_RISING);
	regs.r[UNWIND_RBP] = STACK + 76;
	step(w, regs, RULE_FRAME_POINTER, UNWIND_BAD_MEMORY);
	regs.r[UNWIND_RBP] = 0;
	step(w, regs, RULE_FRAME_POINTER, UNWIND_DONE);
	regs.r[UNWIND_RBP] = RULE_LOST_RBP;
	step(w, regs, RULE_FRAME_POINTER, UNWIND_BAD_RULE);
	step(w, regs, rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_SAME, 0), UNWIND_BAD_RULE);
	regs.r[UNWIND_RSP] = STACK;
	step(w, regs, RULE_SIGNAL, UNWIND_MORE);
	regs.r[UNWIND_RSP] = STACK + 96;
	step(w, regs, RULE_SIGNAL, UNWIND_BAD_MEMORY);
}

static void signal_frames_restore_everything(void **state)
{
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 };
	uint64_t w[WORDS];
	struct unwind_regs regs = { .r = { [UNWIND_RSP] = STACK } };

	for (unsigned i = 0; i < WORDS; i++)
		w[i] = i;
	regs = step(w, regs, RULE_SIGNAL, UNWIND_MORE);
	assert_true(regs.leaf);
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		assert_int_equal(regs.r[order[i]], 5 + i);
}

/* --- without rules, and samples of perf --- */

static bool returns(void *context, uint64_t address)
{
	return address == *(uint64_t *)context;
}

static void callers_are_guessed(void **state)
{
	uint64_t w[WORDS] = { [2] = 0x400, [8] = STACK + 128, 0x500 }, called = 0x400;
	const struct unwind_regs leaf = { .leaf = true, .fs_base = 7, .r = { [UNWIND_RSP] = STACK + 16, [UNWIND_RBP] = STACK + 64, [11] = 3 } };
	struct unwind_regs regs = leaf;

	assert_true(unwind_guess(&regs, read_stack, w, returns, &called));
	assert_regs(regs, 0x400, STACK + 24, STACK + 64);
	assert_int_equal(regs.fs_base, 7);
	assert_int_equal(regs.r[UNWIND_RBX], RULE_LOST_RBX);
	/* Only a leaf has its return address on top. */
	regs = leaf;
	regs.leaf = false;
	assert_false(unwind_guess(&regs, read_stack, w, returns, &called));
	assert_int_equal(regs.r[11], 3);
	called = 0x500;
	assert_true(unwind_guess(&regs, read_stack, w, returns, &called));
	assert_regs(regs, 0x500, STACK + 80, STACK + 128);
	/* No frame pointer. */
	for (int i = 0; i < 2; i++) {
		regs = leaf;
		regs.r[UNWIND_RBP] = i ? STACK + 8 : STACK + 63;
		assert_false(unwind_guess(&regs, read_stack, w, returns, &called));
	}
}

static void calls_are_known_by_their_bytes(void **state)
{
	static const struct {
		uint8_t bytes[8];
		bool call;
	} table[] = {
		{ { 0, 0, 0, 0xe8, 1, 2, 3, 4 }, true },  { { 0, 0, 0, 0, 0xe8, 2, 3, 4 }, false },
		{ { 0, 0, 0, 0, 0, 0, 0xff, 0xd0 }, true }, { { 0, 0, 0, 0, 0, 0, 0xff, 0xe0 }, false },
		{ { 0, 0xff, 0x14, 0, 0, 0, 0, 0 }, true }, { { 0xff, 0x14, 0, 0, 0, 0, 0, 0 }, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(unwind_ends_with_call(EM_X86_64, table[i].bytes), table[i].call);
}

static void samples_of_perf(void **state)
{
	const uint64_t words[] = { 1, 2 };
	struct unwind_dump d = { .sp = STACK, .size = sizeof(words), .bytes = (const uint8_t *)words };
	uint64_t value;
	unsigned seen = 0;

	assert_true(unwind_read_dump(&d, STACK + 8, &value));
	assert_int_equal(value, 2);
	assert_false(unwind_read_dump(&d, STACK - 8, &value));
	assert_false(d.beyond);
	assert_false(unwind_read_dump(&d, STACK + 9, &value));
	assert_true(d.beyond);
	d.size = 7;
	assert_false(unwind_read_dump(&d, STACK, &value));
	/* Each register once. */
	for (unsigned bit = 0; bit < 64; bit++)
		if (unwind_perf_register(EM_X86_64, bit) >= 0)
			seen += 1U << unwind_perf_register(EM_X86_64, bit);
	assert_int_equal(seen, (1 << UNWIND_REGS) - 1);
	assert_int_equal(unwind_perf_register(EM_X86_64, 7), UNWIND_RSP);
	assert_int_equal(unwind_perf_register(EM_X86_64, 16), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_becomes_rows),
		cmocka_unit_test(states_are_remembered),
		cmocka_unit_test(rules_are_told_apart),
		cmocka_unit_test(rbx_is_kept_where_it_is_needed),
		cmocka_unit_test(what_cannot_be_said_is_unsupported),
		cmocka_unit_test(functions_overlap),
		cmocka_unit_test(functions_start_at_their_fde),
		cmocka_unit_test(other_encodings_are_read),
		cmocka_unit_test(plt_and_entry_point_are_made_up),
		cmocka_unit_test(bad_files_give_little),
		cmocka_unit_test(more_rules_than_fit_are_unsupported),
		cmocka_unit_test(broken_tables_are_refused),
		cmocka_unit_test(steps_follow_rules),
		cmocka_unit_test(steps_carry_rbx),
		cmocka_unit_test(steps_stop),
		cmocka_unit_test(signal_frames_restore_everything),
		cmocka_unit_test(callers_are_guessed),
		cmocka_unit_test(calls_are_known_by_their_bytes),
		cmocka_unit_test(samples_of_perf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
