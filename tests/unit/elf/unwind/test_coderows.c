/*
 * Rows that are read from code: what single instructions do, small functions whose frames are known, and all code of real
 * files against what their compilers wrote into .eh_frame.
 */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "elf/file.h"
#include "elf/unwind/coderows.h"
#include "elf/unwind/flow.h"
#include "elf/unwind/instruction.h"
#include "elf/unwind/unwind.h"

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

static void instructions_are_told_apart(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t n, length, op, reg, base;
		int32_t value;
	} cases[] = {
		{ "\x55", 1, 1, OP_PUSH, REG_RBP, REG_NONE, 0 },
		{ "\x41\x5f", 2, 2, OP_POP, 15, REG_NONE, 0 },
		{ "\x48\x89\xe5", 3, 3, OP_MOVE, REG_RBP, REG_RSP, 0 },
		{ "\x48\x8b\xec", 3, 3, OP_MOVE, REG_RBP, REG_RSP, 0 },
		{ "\x48\x83\xec\x48", 4, 4, OP_ADD, REG_RSP, REG_NONE, -0x48 },
		{ "\x48\x81\xc4\x00\x10\x00\x00", 7, 7, OP_ADD, REG_RSP, REG_NONE, 0x1000 },
		{ "\x48\x8d\x65\xd8", 4, 4, OP_LEA, REG_RSP, REG_RBP, -0x28 },
		{ "\x4c\x8d\x9c\x24\x00\x00\xff\xff", 8, 8, OP_LEA, REG_R11, REG_RSP, -0x10000 },
		{ "\x48\x89\x6c\x24\x10", 5, 5, OP_STORE, REG_RBP, REG_RSP, 0x10 },
		{ "\x48\x8b\x6c\x24\x10", 5, 5, OP_LOAD, REG_RBP, REG_RSP, 0x10 },
		{ "\x4c\x39\xdc", 3, 3, OP_COMPARE_R11, REG_NONE, REG_NONE, 0 },
		{ "\x31\xed", 2, 2, OP_CLEAR_RBP, REG_NONE, REG_NONE, 0 },
		{ "\xc9", 1, 1, OP_LEAVE, REG_NONE, REG_NONE, 0 },
		{ "\xc3", 1, 1, OP_RETURN, REG_NONE, REG_NONE, 0 },
		{ "\xff\x25\x00\x00\x00\x00", 6, 6, OP_JUMP, REG_NONE, REG_NONE, 0 },
		{ "\xff\x14\xc5\x00\x00\x00\x00", 7, 7, OP_CALL, REG_NONE, REG_NONE, 0 },
		{ "\x0f\x0b", 2, 2, OP_STOP, REG_NONE, REG_NONE, 0 },
		/* Lengths only. */
		{ "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10, 10, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, 10, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\x66\xc7\x45\x00\x01\x02", 6, 6, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\xf6\x45\x08\x01", 4, 4, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\xf7\xd8", 2, 2, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\xc5\xf8\x77", 3, 3, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\xc4\xe3\x7d\x39\xc1\x01", 6, 6, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\x62\xf1\x7c\x48\x10\x44\x24\x01", 8, 8, OP_OTHER, REG_NONE, REG_NONE, 0 },
		/* None, or not all of it. */
		{ "\x06", 1, 0, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\x48\x83\xec", 3, 0, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\xe8\x00\x00", 3, 0, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 16, 0, OP_OTHER, REG_NONE, REG_NONE, 0 },
		{ "", 0, 0, OP_OTHER, REG_NONE, REG_NONE, 0 },
	};
	struct instruction i;

	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		instruction_decode((const uint8_t *)cases[c].bytes, cases[c].n, 0x1000, &i);
		if (i.length != cases[c].length || i.op != cases[c].op || i.reg != cases[c].reg || i.base != cases[c].base ||
		    (i.op != OP_OTHER && i.op != OP_JUMP && i.op != OP_CALL && i.value != cases[c].value))
			fail_msg("case %zu: length %u, op %u, reg %u, base %u, value %d", c, i.length, i.op, i.reg, i.base, i.value);
	}
	instruction_decode(BYTES("\xe8\x10\x00\x00\x00"), 0x1000, &i);
	assert_int_equal(i.target, 0x1015);
	instruction_decode(BYTES("\x75\xfe"), 0x1000, &i);
	assert_int_equal(i.op, OP_BRANCH);
	assert_int_equal(i.target, 0x1000);
	instruction_decode(BYTES("\xbd\x05\x00\x00\x00"), 0x1000, &i); /* mov ebp, 5 */
	assert_true(i.writes_rbp && !i.writes_rsp);
	instruction_decode(BYTES("\x48\x83\xe4\xf0"), 0x1000, &i); /* and rsp, -16 */
	assert_true(i.writes_rsp);
	instruction_decode(BYTES("\xb5\x05"), 0x1000, &i); /* mov ch, 5 */
	assert_false(i.writes_rbp);
}

/* A file that is nothing but code, from 0x1000 on. */
struct image {
	struct elf_segment segment;
	struct elf elf;
	struct unwind_table table;
	uint8_t code[4096];
};

static void build(struct image *im, const char *code, size_t n)
{
	struct err err = { 0 };

	memset(im, 0, sizeof(*im));
	memcpy(im->code, code, n);
	im->segment = (struct elf_segment){ .type = PT_LOAD, .flags = PF_R | PF_X, .address = 0x1000, .file_size = n, .memory_size = n };
	im->elf = (struct elf){ .data = im->code, .size = n, .real_bytes = n, .machine = EM_X86_64, .segments = &im->segment,
				.segment_count = 1, .entry = 0x1000 };
	assert_int_equal(unwind_build(&im->elf, &im->table, &err), 0);
	assert_true(unwind_valid(&im->table));
}

static uint64_t at(const struct image *im, uint64_t offset)
{
	return unwind_find(&im->table, 0x1000 + offset);
}

static uint64_t rsp(int offset, int rbp)
{
	return rule_make(RULE_CFA_RSP, 0, offset, rbp ? RULE_RBP_CFA : RULE_RBP_SAME, rbp) | RULE_DERIVED;
}

/* The entry point clears rbp and calls f, which saves rbp, uses it, and calls what never returns on one of its ways. */
#define ENTRY "\x31\xed\xe8\x19\x00\x00\x00\xf4" "\x0f\x1f\x84\x00\x00\x00\x00\x00" "\x0f\x1f\x84\x00\x00\x00\x00\x00" "\x0f\x1f\x84\x00\x00\x00\x00\x00"

static void functions_become_rows(void **state)
{
	struct image im;

	/* 20: push rbp; push rbx; sub rsp, 24; xor ebp, ebp; test edi, edi; je 2f; add rsp, 24; pop rbx; pop rbp; ret; 32: ud2 */
	build(&im, ENTRY "\x55\x53\x48\x83\xec\x18\x31\xed\x85\xff\x74\x07\x48\x83\xc4\x18\x5b\x5d\xc3\x0f\x0b", 32 + 21);
	assert_int_equal(at(&im, 2), RULE_END | RULE_DERIVED);
	assert_int_equal(at(&im, 7), RULE_END | RULE_DERIVED);
	assert_int_equal(at(&im, 10), RULE_NONE); /* padding */
	assert_int_equal(at(&im, 0x20), rsp(8, 0));
	assert_int_equal(at(&im, 0x21), rsp(16, -16));
	assert_int_equal(at(&im, 0x22), rsp(24, -16));
	assert_int_equal(at(&im, 0x26), rsp(48, -16));
	assert_int_equal(at(&im, 0x30), rsp(24, -16));
	assert_int_equal(at(&im, 0x31), rsp(16, -16));
	assert_int_equal(at(&im, 0x32), rsp(8, 0));
	assert_int_equal(at(&im, 0x33), rsp(48, -16)); /* the other way */
	unwind_done(&im.table);

	/* 20: push rbp; mov rbp, rsp; sub rsp, rdi; call 20; leave; ret */
	build(&im, ENTRY "\x55\x48\x89\xe5\x48\x29\xfc\xe8\xf4\xff\xff\xff\xc9\xc3", 32 + 14);
	assert_int_equal(at(&im, 0x24), rsp(16, -16));
	assert_int_equal(at(&im, 0x27), rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16) | RULE_DERIVED);
	assert_int_equal(at(&im, 0x2d), rsp(8, 0));
	unwind_done(&im.table);
}

static void what_contradicts_itself_is_given_up(void **state)
{
	struct image im;

	/* 20: push rbx; ret: it would return to rbx */
	build(&im, ENTRY "\x53\xc3", 34);
	assert_int_equal(at(&im, 0x20), RULE_NONE);
	assert_int_equal(at(&im, 0x21), RULE_NONE);
	unwind_done(&im.table);
	/* 20: push rax; dec edi; jne 20; ret: how much was pushed is not known */
	build(&im, ENTRY "\x50\xff\xcf\x75\xfb\xc3", 38);
	assert_int_equal(at(&im, 0x21), RULE_NONE);
	assert_int_equal(at(&im, 0x25), RULE_NONE);
	unwind_done(&im.table);
	/* Bytes that are no instructions, and a jump out of the file. */
	build(&im, ENTRY "\x06\x06\x06", 35);
	assert_int_equal(at(&im, 0x20), RULE_NONE);
	unwind_done(&im.table);
	build(&im, ENTRY "\xe9\xff\xff\xff\x7f", 37);
	assert_int_equal(at(&im, 0x20), rsp(8, 0));
	unwind_done(&im.table);
}

/* A switch: its cases are only reached through a table. And what a signal handler returns to. */
static void code_that_nothing_leads_to_is_found(void **state)
{
	struct image im;

	/* 20: push rbx; jmp *rax; 23: inc ebx; pop rbx; ret; 27: dec ebx; pop rbx; ret */
	build(&im, ENTRY "\x53\xff\xe0\xff\xc3\x5b\xc3\xff\xcb\x5b\xc3\x90\x90\x90\x90\x90\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 32 + 25);
	assert_int_equal(at(&im, 0x23), rsp(16, 0));
	assert_int_equal(at(&im, 0x29), rsp(16, 0));
	assert_int_equal(at(&im, 0x2a), rsp(8, 0));
	assert_int_equal(at(&im, 0x2f), RULE_SIGNAL | RULE_DERIVED); /* the byte before */
	assert_int_equal(at(&im, 0x37), RULE_SIGNAL | RULE_DERIVED);
	unwind_done(&im.table);
}

/* --- real files --- */

struct agreement {
	uint64_t same, differ, unknown;
};

static void compare(struct agreement *a, const struct flow_state *s, uint64_t rule)
{
	int32_t offset = RULE_CFA_OFFSET(rule);

	if (RULE_CFA(rule) == RULE_CFA_RSP && s->knows_rsp)
		*(s->rsp == offset ? &a->same : &a->differ) += 1;
	else if (RULE_CFA(rule) == RULE_CFA_RBP && s->knows_rbp)
		*(s->rbp == offset ? &a->same : &a->differ) += 1;
	else
		a->unknown++;
}

/* Follows all code of a file as if it had no tables and no symbols, and compares instruction by instruction. */
static bool agree(const char *path, struct agreement *ret)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_freep) struct elf *elf = NULL;
	struct unwind_table t = { 0 };
	struct err err = { 0 };
	struct flow f;
	uint64_t base, limit;

	*ret = (struct agreement){ 0 };
	if (fd < 0 || elf_open(fd, &elf, &err) < 0 || unwind_build(elf, &t, &err) < 0 || !t.page_count)
		return false;
	base = t.first_page << UNWIND_PAGE_SHIFT;
	limit = (uint64_t)t.page_count << UNWIND_PAGE_SHIFT;
	assert_true(flow_init(&f, base, limit));
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t n = s->file_size;
		const uint8_t *code = s->type == PT_LOAD && s->flags & PF_X && s->address >= base ? elf_code_at(elf, s->address, &n) : NULL;

		if (code && s->address - base < limit)
			vec_push(&f.gaps, (struct flow_gap){ s->address - base, MIN(s->address - base + n, limit), code });
	}
	coderows_follow(elf, &f, false);
	for (uint64_t i = 0; i < limit; i++) {
		uint64_t rule = unwind_find(&t, base + i);

		if (f.cells[i] && RULE_CFA(rule) && !(rule & RULE_DERIVED))
			compare(ret, &f.states.v[f.cells[i]], rule);
	}
	flow_done(&f);
	unwind_done(&t);
	return true;
}

/* The bars are lower than what is found (99.7 to 100 %), as compilers differ. */
static void real_code_agrees_with_its_tables(void **state)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/bin/bash", "/usr/bin/python3",
					     "/lib/x86_64-linux-gnu/libcrypto.so.3" };
	/* The shares are proven without sanitizers, which look for bad accesses: the C library is enough code for that. */
	size_t files = 0, most = SANITIZED ? 1 : ARRAY_LEN(paths);

	for (size_t i = 0; i < ARRAY_LEN(paths) && files < most; i++) {
		struct agreement a;
		uint64_t all;

		if (!agree(paths[i], &a))
			continue;
		all = a.same + a.differ + a.unknown;
		print_message("%s: %.3f %% of %lu instructions agree, %.2f %% are not known\n", paths[i],
			      100.0 * a.same / (a.same + a.differ), all, 100.0 * a.unknown / all);
		if (a.same * 100 < (a.same + a.differ) * 99)
			fail_msg("%s: %lu agree, %lu do not", paths[i], a.same, a.differ);
		assert_true(all > 1000 && a.unknown * 5 < all);
		files++;
	}
	if (!files)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_are_told_apart),
		cmocka_unit_test(functions_become_rows),
		cmocka_unit_test(what_contradicts_itself_is_given_up),
		cmocka_unit_test(code_that_nothing_leads_to_is_found),
		cmocka_unit_test(real_code_agrees_with_its_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
