/* Kernel functions by address: what their names say, and that only code counts. */
#include "test.h"

#include "base/mem.h"
#include "collect/kernel/kernelclass.h"
#include "profile/kernelname.h"
#include "target/kallsyms.h"

static const char kallsyms[] =
	"ffffffff81000000 T _stext\n"
	"ffffffff81000100 t bpf_trace_run4\n"
	"ffffffff81000200 T __traceiter_sched_switch\n"
	"ffffffff81000300 T schedule\n"
	"ffffffff81000400 t __do_softirq\n"
	"ffffffff81000400 T __softirqentry_text_start\n"
	"ffffffff81000500 D bpf_trace_run_data\n" /* data */
	"ffffffff81000600 T blk_done_softirq.isra.0\n"
	"garbage\n"
	"\n"
	"ffffffffc0000100 t nvme_irq\t[nvme]\n"
	"ffffffffc0000000 t tun_get_user\t[tun]\n" /* out of order */
	"ffffffffc0000200 t other\t[nvme]";

static void names_are_found_by_address(void **state)
{
	static const struct {
		uint64_t address;
		uint8_t names;
	} cases[] = {
		{ 0xffffffff80ffffff, 0 },
		{ 0xffffffff81000000, 0 },
		{ 0xffffffff81000100, KERNELNAME_TRACING },
		{ 0xffffffff810002ff, KERNELNAME_TRACING },
		{ 0xffffffff81000300, 0 },
		{ 0xffffffff81000400, KERNELNAME_SOFTIRQ },
		{ 0xffffffff810005ff, KERNELNAME_SOFTIRQ },
		{ 0xffffffff81000600, KERNELNAME_DISK },
		{ 0xffffffffc0000010, KERNELNAME_SENDS | KERNELNAME_NETWORK },
		{ 0xffffffffc0000100, KERNELNAME_DISK },
		{ 0xffffffffc0000200, 0 },
		{ UINT64_MAX, 0 },
	};
	struct kernelclass k = { 0 };

	kernelclass_parse(&k, kallsyms);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (kernelclass_of(&k, cases[i].address) != cases[i].names)
			fail_msg("case %zu: %#x, not %#x", i, kernelclass_of(&k, cases[i].address), cases[i].names);
	kernelclass_done(&k);
}

static void hidden_addresses_say_nothing(void **state)
{
	struct kernelclass k = { 0 };

	kernelclass_parse(&k, "0000000000000000 T bpf_trace_run4\n0000000000000000 T asm_common_interrupt\n");
	assert_int_equal(kernelclass_of(&k, 0), 0);
	assert_int_equal(kernelclass_of(&k, UINT64_MAX), 0);
	kernelclass_done(&k);
	k = (struct kernelclass){ 0 };
	kernelclass_parse(&k, NULL);
	assert_int_equal(kernelclass_of(&k, 0xffffffff81000100), 0);
	kernelclass_done(&k);
}

/* Only root sees the addresses; who sees them finds the functions that every kernel has. */
static void this_kernel_has_them(void **state)
{
	struct kernelclass k = { 0 };
	uint64_t address, before = 0;
	uint8_t all = 0;

	kernelclass_of(&k, 0); /* reads the list */
	if (!k.symbols || kallsyms_hidden(k.symbols)) {
		kernelclass_done(&k);
		skip();
	}
	for (size_t i = 0; i < kallsyms_count(k.symbols); i++) {
		kallsyms_name(k.symbols, i, &address);
		assert_true(address >= before);
		before = address;
		all |= kernelclass_of(&k, address);
	}
	assert_int_equal(all & (KERNELNAME_ENTRY | KERNELNAME_SOFTIRQ | KERNELNAME_THREAD | KERNELNAME_TIMER | KERNELNAME_DISK),
			 KERNELNAME_ENTRY | KERNELNAME_SOFTIRQ | KERNELNAME_THREAD | KERNELNAME_TIMER | KERNELNAME_DISK);
	kernelclass_done(&k);
}

/* Once handed over the list is another's, and names say nothing any more. */
static void the_list_is_handed_over(void **state)
{
	struct kernelclass k = { 0 };
	struct kallsyms *symbols;
	const char *module;

	kernelclass_parse(&k, kallsyms);
	assert_int_equal(kernelclass_of(&k, 0xffffffff81000100), KERNELNAME_TRACING);
	symbols = kernelclass_take(&k);
	assert_non_null(symbols);
	assert_null(kernelclass_take(&k));
	assert_int_equal(kernelclass_of(&k, 0xffffffff81000100), 0);
	kernelclass_done(&k);
	assert_string_equal(kallsyms_find(symbols, 0xffffffffc0000010, &module), "tun_get_user");
	assert_string_equal(module, "[tun]");
	assert_string_equal(kallsyms_find(symbols, 0xffffffffc0000210, &module), "other");
	assert_string_equal(kallsyms_find(symbols, 0xffffffff81000410, &module), "__do_softirq");
	kallsyms_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_by_address),
		cmocka_unit_test(hidden_addresses_say_nothing),
		cmocka_unit_test(this_kernel_has_them),
		cmocka_unit_test(the_list_is_handed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
