/*
 * The unwind rows of Go programs: how a prologue keeps rbp, and where functions of the runtime switch stacks.
 * test_gosteps.c compares the rows of real programs with what they do.
 */
#include "test.h"

#include "base/mem.h"
#include "elf/file.h"
#include "elf/go/gofile.h"
#include "elf/go/gotab.h"
#include "elf/unwind/goswitch.h"
#include "elf/unwind/unwind.h"

/* --- the rows of a small program: main.alpha has a frame of 24 bytes in [4, 0xf4) --- */

struct program {
	struct gofile file;
	struct elf *elf;
	struct unwind_table table;
};

/* Builds the table of a program whose first function has this name and begins with these instructions; "48 83 c4 18",
 * add $24,%rsp, frees its frame. */
static void build_named(struct program *p, int version, const char *name, const char *code, size_t n)
{
	char *old;

	*p = (struct program){ .file.version = version };
	gofile_build(&p->file);
	memcpy(p->file.image.data + GOFILE_TEXT, code, n);
	memcpy(p->file.image.data + GOFILE_TEXT + 0xf0, "\x48\x83\xc4\x18", 4);
	old = memmem(p->file.image.data, p->file.image.n, "main.alpha\0main.beta", 20);
	assert_non_null(old);
	memcpy(old, name, strlen(name) + 1);
	assert_int_equal(elf_open_memory(p->file.image.data, p->file.image.n, &p->elf, NULL), 0);
	assert_int_equal(unwind_build(p->elf, &p->table, NULL), 0);
	assert_true(unwind_valid(&p->table));
}

static void build(struct program *p, int version, const char *code, size_t n)
{
	build_named(p, version, "main.alpha", code, n);
}

static void done(struct program *p)
{
	unwind_done(&p->table);
	elf_free(p->elf);
	buf_done(&p->file.image);
}

#define CODE(s) (s), sizeof(s) - 1

static uint64_t by_rsp(int64_t offset, bool saved)
{
	return rule_make(RULE_CFA_RSP, 0, offset, saved ? RULE_RBP_CFA : RULE_RBP_SAME, saved ? -16 : 0);
}

static void test_frames(void **state)
{
	static const int versions[] = { 112, 116, 118, 120, 126, 127 };
	struct program p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		/* sub $24,%rsp; mov %rbp,16(%rsp); lea 16(%rsp),%rbp */
		build(&p, versions[i], CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10"));
		assert_int_equal(unwind_find(&p.table, 0x1000), by_rsp(8, false));
		assert_int_equal(unwind_find(&p.table, 0x1004), by_rsp(32, false)); /* not stored yet */
		assert_int_equal(unwind_find(&p.table, 0x1009), by_rsp(32, true));
		assert_int_equal(unwind_find(&p.table, 0x10f3), by_rsp(32, true));
		assert_int_equal(unwind_find(&p.table, 0x10f4), by_rsp(8, false));
		assert_int_equal(unwind_find(&p.table, 0x10ff), by_rsp(8, false)); /* padding */
		assert_int_equal(unwind_find(&p.table, 0x1100), by_rsp(8, false));
		assert_int_equal(unwind_find(&p.table, 0x1200), RULE_NONE);
		done(&p);
	}
}

/* Where the prologue does not store rbp, it is left alone. */
static void test_no_frame_pointer(void **state)
{
	struct program p;

	(void)state;
	build(&p, 120, CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x08")); /* another slot */
	assert_int_equal(unwind_find(&p.table, 0x1020), by_rsp(32, false));
	done(&p);
	build(&p, 120, CODE("\x48\x83\xec\x18\x90\x90"));
	assert_int_equal(unwind_find(&p.table, 0x1020), by_rsp(32, false));
	done(&p);
}

/* A function that leaves its stack for a while, and keeps rbp: rsp counts only until rbp is set, and once it is back. */
static void test_by_rbp(void **state)
{
	uint64_t by_rbp = rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16);
	struct program p;

	(void)state;
	build_named(&p, 118, "runtime.nanotime1", CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10"));
	assert_int_equal(unwind_find(&p.table, 0x1004), by_rsp(32, false));
	assert_int_equal(unwind_find(&p.table, 0x1009), by_rsp(32, true));
	assert_int_equal(unwind_find(&p.table, 0x100e), by_rbp);
	assert_int_equal(unwind_find(&p.table, 0x10ef), by_rbp);
	assert_int_equal(unwind_find(&p.table, 0x10f0), by_rsp(32, true));
	assert_int_equal(unwind_find(&p.table, 0x10f4), by_rsp(8, false));
	done(&p);
	/* Go 1.14: then mov %rsp,%rbp. */
	build_named(&p, 112, "runtime.nanotime1",
		    CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10\x48\x89\xe5"));
	assert_int_equal(unwind_find(&p.table, 0x100e), by_rbp);
	assert_int_equal(unwind_find(&p.table, 0x1011), rule_make(RULE_CFA_RBP, 0, 32, RULE_RBP_CFA, -16));
	assert_int_equal(unwind_find(&p.table, 0x10f0), by_rsp(32, true));
	done(&p);
	/* Go 1.12: without a frame. The caller's rbp is gone. */
	build_named(&p, 112, "runtime.nanotime", CODE("\x48\x89\xe5\x90"));
	assert_int_equal(unwind_find(&p.table, 0x1000), by_rsp(8, false));
	assert_int_equal(unwind_find(&p.table, 0x1003), rule_make(RULE_CFA_RBP, 0, 8, RULE_RBP_LOST, 0));
	done(&p);
}

static void test_roots(void **state)
{
	struct program p;

	(void)state;
	build_named(&p, 120, "runtime.goexit", CODE("\x90"));
	assert_int_equal(unwind_find(&p.table, 0x1000), RULE_END);
	assert_int_equal(unwind_find(&p.table, 0x10ff), RULE_END);
	assert_int_equal(unwind_find(&p.table, 0x1100), by_rsp(8, false));
	done(&p);
	build_named(&p, 120, "runtime.sigreturn", CODE("\x90"));
	assert_int_equal(unwind_find(&p.table, 0x1000), RULE_SIGNAL);
	done(&p);
}

/* --- switches of stacks, in the instructions of real versions --- */

/* runtime.systemstack of Go 1.19: mov 8(%rsp),%rdi; mov %fs:-8,%rax; mov 48(%rax),%rbx; cmp 80(%rbx),%rax; je;
 * mov (%rbx),%rdx; cmp; je; cmp 192(%rbx),%rax; jne; call; ...; mov %rbx,%rsp; mov; mov; call *%rdi; ...;
 * mov 56(%rax),%rsp; movq $0,56(%rax); ret; ... */
static const char systemstack[] =
	"\x48\x8b\x7c\x24\x08\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\x48\x8b\x58\x30\x48\x3b\x43\x50\x74\x5b\x48\x8b\x13"
	"\x48\x39\xd0\x74\x53\x48\x3b\x83\xc0\x00\x00\x00\x75\x52\xe8\xd2\xf1\xff\xff\x64\x48\x89\x14\x25\xf8\xff\xff\xff"
	"\x49\x89\xd6\x48\x8b\x5a\x38\x48\x89\xdc\x48\x89\xfa\x48\x8b\x3f\xff\xd7\x64\x48\x8b\x04\x25\xf8\xff\xff\xff"
	"\x48\x8b\x58\x30\x48\x8b\x83\xc0\x00\x00\x00\x64\x48\x89\x04\x25\xf8\xff\xff\xff\x48\x8b\x60\x38"
	"\x48\xc7\x40\x38\x00\x00\x00\x00\xc3\x48\x89\xfa\x48\x8b\x3f\xff\xe7";

/* The beginning of it in a PIE with cgo: mov $-48,%rcx; mov %fs:(%rcx),%rax; ... */
static const char systemstack_pie[] =
	"\x48\x8b\x7c\x24\x08\x48\xc7\xc1\xd0\xff\xff\xff\x64\x48\x8b\x01\x48\x8b\x58\x30\x48\x3b\x43\x50\x74\x53\x48\x8b\x13"
	"\x48\x39\xd0\x74\x4b\x48\x3b\x83\xc0\x00\x00\x00\x75\x4a";

static size_t parts_of(enum goswitch_kind kind, const struct goswitch_curg *curg, const char *code, size_t n,
		       struct goswitch_part *parts)
{
	return goswitch_parts(kind, curg, (const uint8_t *)code, n, parts);
}

static struct goswitch_curg curg_of(const char *code, size_t n)
{
	struct goswitch_curg curg = { 0 };

	goswitch_find_curg((const uint8_t *)code, n, &curg);
	return curg;
}

static void test_curg(void **state)
{
	struct goswitch_curg curg = curg_of(CODE(systemstack));
	char other[sizeof(systemstack)];

	(void)state;
	assert_true(curg.known);
	assert_int_equal(curg.g, -8);
	assert_int_equal(curg.curg, 192);
	curg = curg_of(CODE(systemstack_pie));
	assert_true(curg.known);
	assert_int_equal(curg.g, -48);
	assert_int_equal(curg.curg, 192);
	/* Cut off anywhere, or with m at another place in g, nothing is known. */
	for (size_t n = 0; n < 38; n++)
		assert_false(curg_of(systemstack, n).known);
	memcpy(other, systemstack, sizeof(other));
	other[17] = 0x38;
	assert_false(curg_of(other, sizeof(other) - 1).known);
}

static void test_systemstack(void **state)
{
	struct goswitch_curg curg = curg_of(CODE(systemstack)), unknown = { 0 };
	struct goswitch_part parts[GOSWITCH_MAX_PARTS];

	(void)state;
	assert_int_equal(parts_of(GOSWITCH_SYSTEMSTACK, &curg, CODE(systemstack), parts), 1);
	assert_int_equal(parts[0].start, 0x41);
	assert_int_equal(parts[0].end, 0x6a);
	assert_int_equal(parts[0].rule, rule_make(RULE_GO_CURG, 1, 192, RULE_RBP_SAME, -8));
	assert_int_equal(parts_of(GOSWITCH_SYSTEMSTACK, &unknown, CODE(systemstack), parts), 1);
	assert_int_equal(parts[0].rule, RULE_UNSUPPORTED);
	/* A wrapper switches nothing. */
	assert_int_equal(parts_of(GOSWITCH_SYSTEMSTACK, &curg, CODE(systemstack_pie), parts), 0);
}

static void test_leaving(void **state)
{
	/* morestack: mov 56(%rbx),%rsp; call; call; ret. mcall: mov 56(%r14),%rsp; push; mov; call *%r12; pop */
	static const char morestack[] = "\x48\x8b\x1b\x48\x8b\x63\x38\xe8\x95\x45\x00\x00\xe8\x10\x1e\x00\x00\xc3";
	static const char mcall[] = "\x49\x89\xf6\x49\x8b\x66\x38\x50\x4c\x8b\x22\x41\xff\xd4\x58";
	struct goswitch_curg curg = { .known = true, .g = -8, .curg = 184 };
	struct goswitch_part parts[GOSWITCH_MAX_PARTS];

	(void)state;
	assert_int_equal(parts_of(GOSWITCH_MORESTACK, &curg, CODE(morestack), parts), 1);
	assert_int_equal(parts[0].start, 7);
	assert_int_equal(parts[0].end, sizeof(morestack) - 1);
	assert_int_equal(parts[0].rule, rule_make(RULE_GO_CURG, 0, 184, RULE_RBP_LOST, -8));
	assert_int_equal(parts_of(GOSWITCH_LEAVE, &curg, CODE(mcall), parts), 1);
	assert_int_equal(parts[0].start, 7);
	assert_int_equal(parts[0].rule, RULE_END);
}

static void test_asmcgocall(void **state)
{
	/* Of Go 1.19, from the first switch on; see goswitch.c. */
	static const char code[] =
		"\x48\x8b\x66\x38\x48\x83\xec\x40\x48\x83\xe4\xf0\x48\x89\x7c\x24\x30\x48\x8b\x7f\x08\x48\x29\xd7"
		"\x48\x89\x7c\x24\x28\x48\x89\xdf\x48\x89\xd9\xff\xd0\x48\x8b\x7c\x24\x30\x48\x8b\x77\x08"
		"\x48\x2b\x74\x24\x28\x64\x48\x89\x3c\x25\xd0\xff\xff\xff\x48\x89\xf4\x89\x44\x24\x18\xc3"
		"\x48\x83\xec\x40\x48\x83\xe4\xf0\x48\xc7\x44\x24\x30\x00\x00\x00\x00\x48\x89\x54\x24\x28\x48\x89\xdf"
		"\x48\x89\xd9\xff\xd0\x48\x8b\x74\x24\x28\x48\x89\xf4\x89\x44\x24\x18\xc3";
	struct goswitch_curg none = { 0 };
	struct goswitch_part parts[GOSWITCH_MAX_PARTS];

	(void)state;
	assert_int_equal(parts_of(GOSWITCH_CGO, &none, CODE(code), parts), 4);
	assert_int_equal(parts[0].start, 4);
	assert_int_equal(parts[0].rule, rule_make(RULE_CFA_REG, 1, 8, RULE_RBP_SAME, 0));
	assert_int_equal(parts[1].start, 0x1d);
	assert_int_equal(parts[1].end, 0x3f);
	assert_int_equal(parts[1].rule, rule_make(RULE_GO_DEPTH, 1, 40, RULE_RBP_SAME, 0));
	assert_int_equal(parts[2].start, 0x48);
	assert_int_equal(parts[3].rule, rule_make(RULE_CFA_DEREF_RSP, 1, 40, RULE_RBP_SAME, 0));
	for (int i = 1; i < 4; i++)
		assert_true(parts[i].start >= parts[i - 1].end);
	/* A version that is not known. */
	assert_int_equal(parts_of(GOSWITCH_CGO, &none, code, 0x48, parts), 1);
	assert_int_equal(parts[0].start, 4);
	assert_int_equal(parts[0].rule, RULE_UNSUPPORTED);
}

/* --- steps from stack to stack --- */

/* The target's memory: pairs of address and word. */
static bool read_pair(void *context, uint64_t address, uint64_t *ret)
{
	for (const uint64_t *pair = context; pair[0]; pair += 2) {
		if (pair[0] != address)
			continue;
		*ret = pair[1];
		return true;
	}
	return false;
}

static void test_steps(void **state)
{
	/* g at FS - 8 = 0x7000, m 0x6000, curg 0x5000 with sp 0x4000 and pc 0x1234, return address 0x1111 at its top */
	uint64_t memory[] = { 0x8ff8, 0x7000, 0x7030, 0x6000, 0x60c0, 0x5000, 0x5038, 0x4000, 0x5040, 0x1234,
			      0x4000, 0x1111, 0x3028, 0x100, 0x3030, 0x5000, 0x5008, 0x4100, 0, 0 };
	struct unwind_regs start = { .r[UNWIND_RSP] = 0x3000, .r[UNWIND_RBP] = 0x77, .r[UNWIND_RIP] = 1,
				     .fs_base = 0x9000 }, regs = start;

	(void)state;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_CURG, 1, 192, RULE_RBP_SAME, -8), read_pair, memory),
			 UNWIND_MORE);
	assert_int_equal(regs.r[UNWIND_RSP], 0x4008);
	assert_int_equal(regs.r[UNWIND_RIP], 0x1111);
	assert_int_equal(regs.r[UNWIND_RBP], 0x77);
	assert_int_equal(regs.fs_base, 0x9000);
	regs = start;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_CURG, 0, 192, RULE_RBP_LOST, -8), read_pair, memory),
			 UNWIND_MORE);
	assert_int_equal(regs.r[UNWIND_RSP], 0x4000);
	assert_int_equal(regs.r[UNWIND_RIP], 0x1234);
	assert_int_equal(regs.r[UNWIND_RBP], RULE_LOST_RBP);
	regs = start;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_DEPTH, 1, 40, RULE_RBP_SAME, 0), read_pair, memory),
			 UNWIND_MORE);
	assert_int_equal(regs.r[UNWIND_RSP], 0x4008);
	assert_int_equal(regs.r[UNWIND_RIP], 0x1111);
	/* A dump of the stack has no FS base; a thread without a goroutine is at its root; memory may be missing. */
	regs = start;
	regs.fs_base = 0;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_CURG, 1, 192, RULE_RBP_SAME, -8), read_pair, memory),
			 UNWIND_BAD_MEMORY);
	regs = start;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_CURG, 1, 200, RULE_RBP_SAME, -8), read_pair, memory),
			 UNWIND_BAD_MEMORY);
	memory[5] = 0;
	assert_int_equal(unwind_step(&regs, rule_make(RULE_GO_CURG, 1, 192, RULE_RBP_SAME, -8), read_pair, memory),
			 UNWIND_DONE);
}

static void test_kinds(void **state)
{
	static const struct { const char *name; uint8_t flag; enum goswitch_kind kind; } expected[] = {
		{ "runtime.systemstack", GOTAB_SP_WRITE, GOSWITCH_SYSTEMSTACK },
		{ "runtime.systemstack_switch", 0, GOSWITCH_NONE },
		{ "runtime.goexit", 0, GOSWITCH_ROOT },
		{ "runtime.goexit0", 0, GOSWITCH_NONE },
		{ "runtime.vgetrandom1", GOTAB_SP_WRITE, GOSWITCH_OTHER },
		{ "runtime.nanotime1", 0, GOSWITCH_OTHER },
		{ "main.runtime.mcall", 0, GOSWITCH_NONE },
		{ "", 0, GOSWITCH_NONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		struct gotab_function f = { .name = expected[i].name, .flag = expected[i].flag };

		assert_int_equal(goswitch_kind(&f), expected[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_no_frame_pointer),
		cmocka_unit_test(test_by_rbp),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_curg),
		cmocka_unit_test(test_systemstack),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_asmcgocall),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
