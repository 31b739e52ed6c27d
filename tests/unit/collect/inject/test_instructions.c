/* System calls and traps in the code of both processors. */
#include "test.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/inject/machine.h"

static size_t find(const struct instructions *i, const char *code, size_t n)
{
	return instructions_find_call(i, (const uint8_t *)code, n);
}

static void x86(void **state)
{
	static const char code[] = "\x90\x0f\x0f\x05\xc3";

	assert_int_equal(find(&instructions_x86, code, 5), 2);
	assert_int_equal(find(&instructions_x86, code, 4), 2);
	assert_int_equal(find(&instructions_x86, code, 3), 3);
	assert_int_equal(find(&instructions_x86, code, 0), 0);
	assert_true(instructions_is_call(&instructions_x86, 0x1234050f));
	assert_false(instructions_is_call(&instructions_x86, 0x340f05));
	assert_int_equal(instructions_x86.trap[0], 0xcc);
}

/* Instructions are aligned: the bytes of svc #0 across two others are none. */
static void arm64(void **state)
{
	static const char code[] = "\x1f\x20\x01\x00" "\x00\xd4\x1f\x20" "\x01\x00\x00\xd4" "\x01\x00\x00\xd4";
	uint32_t trap;

	assert_int_equal(find(&instructions_arm64, code, 16), 8);
	assert_int_equal(find(&instructions_arm64, code, 12), 8);
	assert_int_equal(find(&instructions_arm64, code, 11), 11);
	assert_true(instructions_is_call(&instructions_arm64, 0xffffffffd4000001));
	assert_false(instructions_is_call(&instructions_arm64, 0xd4000021)); /* svc #1 */
	memcpy(&trap, instructions_arm64.trap, sizeof(trap));
	assert_int_equal(trap, 0xd4200000); /* brk #0 */
}

/* Of the machine at hand: what is set is what comes out, and nothing else changes. */
static void registers(void **state)
{
	const uint64_t arguments[] = { 11, 12, 13, 14, 15, 16 };
	struct user_regs_struct r = { 0 };

	assert_true(machine_is_empty(&r));
	machine_set_pc(&r, 0x1000);
	assert_int_equal(machine_pc(&r), 0x1000);
	assert_true(machine_is_empty(&r));
	machine_set_call(&r, 0x2000, SYS_getpid, arguments);
	assert_int_equal(machine_pc(&r), 0x2000);
	assert_false(machine_is_empty(&r));
#ifdef __x86_64__
	assert_int_equal(r.rax, SYS_getpid);
	assert_int_equal(r.r10, 14);
	assert_int_equal(r.r9, 16);
	assert_true(r.orig_rax == ~0ULL);
#else
	assert_int_equal(r.regs[8], SYS_getpid);
	assert_int_equal(r.regs[0], 11);
	assert_int_equal(r.regs[5], 16);
	/* A branch that was taken wants a landing pad, which a system call is not. */
	r.pstate = 0x60000c00;
	machine_set_code(&r, 0x3000, arguments);
	assert_int_equal(r.pstate, 0x60000000);
	assert_int_equal(r.regs[3], 14);
#endif
	machine_set_code(&r, 0x3000, arguments);
	assert_int_equal(machine_pc(&r), 0x3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(x86), cmocka_unit_test(arm64), cmocka_unit_test(registers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
