#include "test.h"

#include "base/mem.h"
#include "elf/probe/allocator.h"

static void cheap_instructions(void **state)
{
	static const struct {
		uint8_t code[ALLOCATOR_CODE];
		unsigned skip;
		bool cheap;
	} cases[] = {
		{ { 0x41, 0x57 }, 0, true },                         /* push r15 */
		{ { 0x55 }, 0, true },                               /* push rbp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57 }, 4, true }, /* endbr64; push r15 */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89 }, 4, false },
		{ { 0x48, 0x89, 0xf8 }, 0, false },                  /* mov */
		{ { 0x41, 0x89 }, 0, false },
		{ { 0x48, 0x83, 0xec, 0x28 }, 0, false },            /* sub rsp */
		{ { 0x58 }, 0, false },                              /* pop */
		{ { 0x90 }, 0, true },
		{ { 0xe9 }, 0, true },
		{ { 0xe8 }, 0, true },
		{ { 0xc3 }, 0, false },                              /* ret */
		{ { 0xcc }, 0, false },                              /* somebody else's breakpoint */
		{ { 0 }, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct allocator_probe p = { 0 };

		memcpy(p.code, cases[i].code, sizeof(p.code));
		assert_int_equal(allocator_probe_skip(&p), cases[i].skip);
		assert_int_equal(allocator_probe_cheap(&p), cases[i].cheap);
	}
}

static void counts_beyond_their_tables(void **state)
{
	struct allocator_info *info = mem_alloc(sizeof(*info));

	assert_true(allocator_check(info));
	info->probe_count = ALLOCATOR_PROBES;
	info->own_count = ALLOCATOR_OWN;
	assert_true(allocator_check(info));
	info->probe_count++;
	assert_false(allocator_check(info));
	info->probe_count = 0;
	info->own_count++;
	assert_false(allocator_check(info));
	free(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_instructions),
		cmocka_unit_test(counts_beyond_their_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
