/* Unwind information and steps of arm64, which are made and checked on any machine. */
#include "test.h"

#include <elf.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/unwind/arm64/arm64.h"
#include "elf/unwind/unwind.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x2000, FRAME = 0x8000, PLT = 0x2000 };

static void put(struct buf *b, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_putc(b, value >> (8 * i));
}

#define PROGRAM(s) (s), sizeof(s) - 1

static void add_entry(struct buf *b, size_t start, const char *program, size_t n)
{
	uint32_t length;

	buf_add(b, program, n);
	while (b->n % 8)
		buf_putc(b, 0);
	length = b->n - start - 4;
	memcpy(b->data + start, &length, 4);
}

/* What gcc writes: "zR", code in units of 4, data of -8, the return address in x30; CFA = sp. */
static void add_fde(struct buf *b, uint64_t start, uint32_t size, const char *program, size_t n)
{
	size_t cie = b->n, fde;

	put(b, 0, 8);
	buf_add(b, "\1zR\0\4\x78\x1e\1\x1b", 9);
	add_entry(b, cie, PROGRAM("\x0c\x1f\0"));
	fde = b->n;
	put(b, 0, 4);
	put(b, fde + 4 - cie, 4);
	put(b, start - (FRAME + b->n), 4);
	put(b, size, 4);
	buf_putc(b, 0);
	add_entry(b, fde, program, n);
}

static struct unwind_table table_of(struct buf *frame, uint8_t *text, struct buf *plt)
{
	struct elf_section sections[] = {
		{ .name = ".eh_frame", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = FRAME, .size = frame->n,
		  .data = (uint8_t *)frame->data, .file_size = frame->n },
		{ .name = ".plt", .type = SHT_PROGBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .address = PLT, .size = plt ? plt->n : 0,
		  .data = plt ? (uint8_t *)plt->data : NULL, .file_size = plt ? plt->n : 0 },
	};
	struct elf_segment segment = { .type = PT_LOAD, .flags = PF_R | PF_X, .offset = TEXT, .address = TEXT,
				       .file_size = TEXT_SIZE, .memory_size = TEXT_SIZE };
	struct elf elf = { .data = text, .size = TEXT + TEXT_SIZE, .type = ET_DYN, .machine = EM_AARCH64,
			   .sections = sections, .section_count = plt ? 2 : 1, .segments = &segment, .segment_count = 1 };
	struct unwind_table table = { 0 };
	struct err err = { 0 };

	assert_int_equal(unwind_build(&elf, &table, &err), 0);
	assert_true(unwind_valid(&table));
	return table;
}

static uint64_t link_at_leaf(int64_t cfa)
{
	return rule_make_link(RULE_BASE_SP, cfa, RULE_RBP_SAME, 0, RULE_LINK_REGISTER);
}

/* The rule that a program leaves in an FDE of its own. */
static uint64_t rule_of(const char *program, size_t n)
{
	static uint8_t text[TEXT + TEXT_SIZE];
	struct buf frame = { 0 };
	struct unwind_table t;
	uint64_t rule;

	add_fde(&frame, 0x1100, 16, program, n);
	t = table_of(&frame, text, NULL);
	rule = unwind_find(&t, 0x110f);
	assert_int_equal(unwind_find(&t, 0x1110), RULE_NONE);
	unwind_done(&t);
	buf_done(&frame);
	return rule;
}

static void a_function_becomes_rows(void **state)
{
	static uint8_t text[TEXT + TEXT_SIZE];
	struct buf frame = { 0 };
	struct unwind_table t;
	uint64_t saved = rule_make_link(RULE_BASE_SP, 32, RULE_RBP_CFA, -32, RULE_LINK_BESIDE + 1);

	/* paciasp; stp x29, x30, [sp, #-32]!; ...; ldp; autiasp; ret */
	add_fde(&frame, 0x1200, 0x20, PROGRAM("\x41\x2d\x41\x0e\x20\x9d\4\x9e\3\x44\xde\xdd\x0e\0\x41\x2d"));
	t = table_of(&frame, text, NULL);
	assert_int_equal(unwind_find(&t, 0x1200), link_at_leaf(0));
	assert_int_equal(unwind_find(&t, 0x1204), link_at_leaf(0));
	assert_int_equal(unwind_find(&t, 0x1208), saved);
	assert_int_equal(unwind_find(&t, 0x1217), saved);
	assert_int_equal(unwind_find(&t, 0x1218), link_at_leaf(0));
	assert_int_equal(unwind_find(&t, 0x1220), RULE_NONE);
	unwind_done(&t);
	buf_done(&frame);
}

static void states_become_rules(void **state)
{
	/* CFA by x29 + 16 */
	assert_int_equal(rule_of(PROGRAM("\x0c\x1d\x10\x9d\2\x9e\1")),
			 rule_make_link(RULE_BASE_FP, 16, RULE_RBP_CFA, -16, RULE_LINK_BESIDE + 1));
	/* x30 alone */
	assert_int_equal(rule_of(PROGRAM("\x0e\x10\x9e\2")), rule_make_link(RULE_BASE_SP, 16, RULE_RBP_SAME, -16, RULE_LINK_CFA));
	/* x30 below x29 */
	assert_int_equal(rule_of(PROGRAM("\x0e\x20\x9e\4\x9d\2")),
			 rule_make_link(RULE_BASE_SP, 32, RULE_RBP_CFA, -16, RULE_LINK_BESIDE - 2));
	/* Far from each other: x29 is lost, the return address is not. */
	assert_int_equal(rule_of(PROGRAM("\x0e\x80\2\x9e\x20\x9d\2")), rule_make_link(RULE_BASE_SP, 256, RULE_RBP_LOST, -256, RULE_LINK_CFA));
	/* A frame of 64 KiB, with both at its lower end: counted from the stack pointer. */
	assert_int_equal(rule_of(PROGRAM("\x0e\x80\x80\4\x9d\x80\x40\x9e\xff\x3f")),
			 rule_make_link(RULE_BASE_SP, 65536, RULE_RBP_RBP, 0, RULE_LINK_BESIDE + 1));
	assert_int_equal(rule_of(PROGRAM("\x0e\x80\x80\4\x9e\x80\x40")), rule_make_link(RULE_BASE_SP, 65536, RULE_RBP_SAME, 0, RULE_LINK_BASE));
	/* x30 undefined: the outermost frame */
	assert_int_equal(rule_of(PROGRAM("\7\x1e")), RULE_END);
	/* CFA by x0, by an expression; x30 in x15 */
	assert_int_equal(rule_of(PROGRAM("\x0c\0\0")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of(PROGRAM("\x0f\2\x8f\0")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of(PROGRAM("\x09\x1e\x0f")), RULE_UNSUPPORTED);
	/* Offsets that no frame has. */
	assert_int_equal(rule_of(PROGRAM("\x9e\x80\x80\x80\x80\x10")), RULE_UNSUPPORTED);
	assert_int_equal(rule_of(PROGRAM("\x9d\x80\x80\x80\x80\x10\x9e\1")),
			 rule_make_link(RULE_BASE_SP, 0, RULE_RBP_LOST, -8, RULE_LINK_CFA));
}

static void stubs_and_trampolines_are_made_up(void **state)
{
	static uint8_t text[TEXT + TEXT_SIZE];
	struct buf frame = { 0 }, plt = { 0 };
	struct unwind_table t;
	uint64_t signal = rule_make(RULE_SIGNAL, RULE_SIGNAL_ARM64, 0, RULE_RBP_SAME, 0);

	add_fde(&frame, 0x1100, 16, PROGRAM(""));
	memcpy(text + 0x1804, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 8);
	put(&plt, 0xd503245f, 4); /* bti c */
	put(&plt, 0xa9bf7bf0, 4); /* stp x16, x30, [sp, #-16]! */
	while (plt.n < 48)
		put(&plt, 0xd503201f, 4);
	t = table_of(&frame, text, &plt);
	assert_int_equal(unwind_find(&t, PLT + 4), link_at_leaf(0));
	assert_int_equal(unwind_find(&t, PLT + 8), rule_make_link(RULE_BASE_SP, 16, RULE_RBP_SAME, -8, RULE_LINK_CFA));
	assert_int_equal(unwind_find(&t, PLT + 32), link_at_leaf(0));
	assert_int_equal(unwind_find(&t, PLT + 48), RULE_NONE);
	/* A return address is looked up one byte before, and in the kernel the program counter stands behind the system call. */
	assert_int_equal(unwind_find(&t, 0x1802), RULE_NONE);
	assert_int_equal(unwind_find(&t, 0x1803), signal);
	assert_int_equal(unwind_find(&t, 0x180c), signal);
	assert_int_equal(unwind_find(&t, 0x1810), RULE_NONE);
	unwind_done(&t);
	buf_done(&plt);
	buf_done(&frame);
}

/* --- steps --- */

enum { STACK = 0x7000, WORDS = 128 };

static bool read_stack(void *context, uint64_t address, uint64_t *ret)
{
	const uint64_t *words = context;

	if (address < STACK || address % 8 || (address - STACK) / 8 >= WORDS)
		return false;
	*ret = words[(address - STACK) / 8];
	return true;
}

static struct unwind_regs step(uint64_t *words, struct unwind_regs regs, uint64_t rule, enum unwind_result expected)
{
	assert_int_equal(unwind_step(&regs, rule, read_stack, words), expected);
	return regs;
}

static void assert_regs(struct unwind_regs regs, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(regs.r[UNWIND_RIP], pc);
	assert_int_equal(regs.r[UNWIND_RSP], sp);
	assert_int_equal(regs.r[UNWIND_RBP], fp);
	assert_false(regs.leaf);
	assert_true(regs.link);
}

static void steps_follow_rules(void **state)
{
	const uint64_t signature = 0x005a000000000000;
	uint64_t w[WORDS] = { 0 }, record = rule_make_link(RULE_BASE_SP, 32, RULE_RBP_CFA, -32, RULE_LINK_BESIDE + 1);
	struct unwind_regs leaf = { .leaf = true, .link = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RBP] = STACK + 64,
								       [UNWIND_LR] = signature | 0x1234, [UNWIND_RIP] = 0x1000 } }, caller = leaf;

	caller.leaf = false;
	w[0] = 0xf0;
	w[1] = signature | 0x2222;
	w[8] = 0xf8;
	w[9] = 0x3333;
	/* A leaf without a frame: its stack pointer stays. Only a leaf can be so. */
	assert_regs(step(w, leaf, link_at_leaf(0), UNWIND_MORE), 0x1234, STACK, STACK + 64);
	step(w, caller, link_at_leaf(0), UNWIND_BAD_RULE);
	assert_regs(step(w, leaf, record, UNWIND_MORE), 0x2222, STACK + 32, 0xf0);
	assert_regs(step(w, caller, record, UNWIND_MORE), 0x2222, STACK + 32, 0xf0);
	assert_regs(step(w, caller, rule_make_link(RULE_BASE_SP, 65536, RULE_RBP_RBP, 0, RULE_LINK_BESIDE + 1), UNWIND_MORE), 0x2222,
		    STACK + 65536, 0xf0);
	assert_regs(step(w, caller, rule_make_link(RULE_BASE_FP, 16, RULE_RBP_CFA, -16, RULE_LINK_BESIDE + 1), UNWIND_MORE), 0x3333,
		    STACK + 80, 0xf8);
	assert_regs(step(w, caller, rule_make_link(RULE_BASE_SP, 16, RULE_RBP_SAME, -8, RULE_LINK_CFA), UNWIND_MORE), 0x2222, STACK + 16,
		    STACK + 64);
	assert_regs(step(w, caller, rule_make_link(RULE_BASE_SP, 16, RULE_RBP_LOST, 8, RULE_LINK_BASE), UNWIND_MORE), 0x2222, STACK + 16,
		    RULE_LOST_RBP);
	/* x29 is back already, x30 is not read yet */
	assert_regs(step(w, leaf, rule_make_link(RULE_BASE_SP, 32, RULE_RBP_CFA, -32, RULE_LINK_REGISTER), UNWIND_MORE), 0x1234, STACK + 32,
		    0xf0);
	/* No table at all: the frame record */
	assert_regs(step(w, caller, RULE_FRAME_POINTER, UNWIND_MORE), 0x3333, STACK + 80, 0xf8);
	/* Fewer bits are an address where the kernel says so. */
	caller.pc_mask = 0xfff;
	w[1] = 0x7ff222;
	assert_int_equal(step(w, caller, record, UNWIND_MORE).r[UNWIND_RIP], 0x222);
}

static void steps_stop(void **state)
{
	uint64_t w[WORDS] = { 0 };
	struct unwind_regs regs = { .link = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RBP] = RULE_LOST_RBP, [UNWIND_RIP] = 0x1000 } };

	step(w, regs, rule_make_link(RULE_BASE_SP, 32, RULE_RBP_CFA, -32, RULE_LINK_BESIDE + 1), UNWIND_DONE);
	step(w, regs, rule_make_link(RULE_BASE_FP, 16, RULE_RBP_CFA, -16, RULE_LINK_BESIDE + 1), UNWIND_BAD_RULE);
	step(w, regs, rule_make_link(RULE_BASE_SP, 0, RULE_RBP_SAME, 0, RULE_LINK_CFA), UNWIND_NOT_RISING);
	step(w, regs, rule_make_link(RULE_BASE_SP, -16, RULE_RBP_SAME, 0, RULE_LINK_CFA), UNWIND_NOT_RISING);
	step(w, regs, rule_make_link(RULE_BASE_SP, 16, RULE_RBP_SAME, -32, RULE_LINK_CFA), UNWIND_BAD_MEMORY);
	step(w, regs, rule_make_link(7, 16, RULE_RBP_SAME, -8, RULE_LINK_CFA), UNWIND_BAD_RULE);
	step(w, regs, RULE_END, UNWIND_DONE);
	step(w, regs, RULE_UNSUPPORTED, UNWIND_BAD_RULE);
}

static void signal_frames_restore_what_leads_on(void **state)
{
	uint64_t w[WORDS] = { 0 };
	struct unwind_regs regs = { .link = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RIP] = 0x1804 } };
	uint64_t *saved = w + RULE_ARM64_SIGNAL_REGS / 8;

	saved[29] = 29;
	saved[30] = 0x3000;
	saved[31] = 0x9000;
	saved[32] = 0x4000;
	regs = step(w, regs, rule_make(RULE_SIGNAL, RULE_SIGNAL_ARM64, 0, RULE_RBP_SAME, 0), UNWIND_MORE);
	assert_true(regs.leaf);
	assert_int_equal(regs.r[UNWIND_RBP], 29);
	assert_int_equal(regs.r[UNWIND_LR], 0x3000);
	assert_int_equal(regs.r[UNWIND_RSP], 0x9000);
	assert_int_equal(regs.r[UNWIND_RIP], 0x4000);
}

static bool is_called(void *context, uint64_t address)
{
	return address == *(uint64_t *)context;
}

static void callers_are_guessed(void **state)
{
	uint64_t w[WORDS] = { [4] = STACK + 80, [5] = 0x5000 }, called = 0x900000;
	struct unwind_regs leaf = { .leaf = true, .link = true, .r = { [UNWIND_RSP] = STACK, [UNWIND_RBP] = STACK + 32, [UNWIND_LR] = called,
								       [UNWIND_RIP] = 0x1000 } }, regs = leaf;

	/* Another file's code has called. */
	assert_true(unwind_guess(&regs, read_stack, w, is_called, &called));
	assert_regs(regs, called, STACK, STACK + 32);
	/* The link register is the function's own, from an earlier call: the frame record. */
	regs = leaf;
	regs.r[UNWIND_LR] = 0x1040;
	called = 0x5000;
	assert_true(unwind_guess(&regs, read_stack, w, is_called, &called));
	assert_regs(regs, 0x5000, STACK + 48, STACK + 80);
	called = 0;
	regs = leaf;
	assert_false(unwind_guess(&regs, read_stack, w, is_called, &called));
}

static void calls_are_known_by_their_bytes(void **state)
{
	static const struct { uint32_t word; bool call; } table[] = {
		{ 0x94000010, true },  /* bl */
		{ 0x97fffff0, true },
		{ 0xd63f0100, true },  /* blr x8 */
		{ 0xd63f091f, true },  /* blraaz x8 */
		{ 0xd73f0909, true },  /* blraa x8, x9 */
		{ 0x14000010, false }, /* b */
		{ 0xd61f0100, false }, /* br x8 */
		{ 0xd65f03c0, false }, /* ret */
		{ 0xd503201f, false }, /* nop */
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		uint8_t before[8] = { 0 };

		memcpy(before + 4, &table[i].word, 4);
		assert_int_equal(unwind_ends_with_call(EM_AARCH64, before), table[i].call);
	}
}

static void go_functions_keep_the_link_below(void **state)
{
	assert_int_equal(arm64_go_rule(0, false), link_at_leaf(0));
	assert_int_equal(arm64_go_rule(48, true), rule_make_link(RULE_BASE_SP, 48, RULE_RBP_CFA, -56, RULE_LINK_BESIDE + 1));
	assert_int_equal(arm64_go_rule(48, false), rule_make_link(RULE_BASE_SP, 48, RULE_RBP_SAME, -48, RULE_LINK_CFA));
	assert_int_equal(arm64_go_rule(-8, false), RULE_UNSUPPORTED);
	assert_int_equal(arm64_go_rule(1 << 20, true), rule_make_link(RULE_BASE_SP, 1 << 20, RULE_RBP_RBP, -8, RULE_LINK_BESIDE + 1));
}

static void samples_of_perf(void **state)
{
	assert_int_equal(unwind_perf_register(EM_AARCH64, 29), UNWIND_RBP);
	assert_int_equal(unwind_perf_register(EM_AARCH64, 30), UNWIND_LR);
	assert_int_equal(unwind_perf_register(EM_AARCH64, 31), UNWIND_RSP);
	assert_int_equal(unwind_perf_register(EM_AARCH64, 32), UNWIND_RIP);
	assert_int_equal(unwind_perf_register(EM_AARCH64, 0), -1);
	assert_int_equal(unwind_perf_register(EM_AARCH64, 33), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_becomes_rows),
		cmocka_unit_test(states_become_rules),
		cmocka_unit_test(stubs_and_trampolines_are_made_up),
		cmocka_unit_test(steps_follow_rules),
		cmocka_unit_test(steps_stop),
		cmocka_unit_test(signal_frames_restore_what_leads_on),
		cmocka_unit_test(callers_are_guessed),
		cmocka_unit_test(calls_are_known_by_their_bytes),
		cmocka_unit_test(go_functions_keep_the_link_below),
		cmocka_unit_test(samples_of_perf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
