#include "test.h"

#include "import/frames.h"
#include "base/mem.h"

static const char *path_of(const struct profile *p, uint32_t module)
{
	return profile_str(p, p->modules.v[module].path);
}

static const char *name_of(const struct profile *p, uint32_t frame, uint32_t nth)
{
	assert_true(nth < p->frames.v[frame].line_count);
	return profile_str(p, p->functions.v[p->lines.v[p->frames.v[frame].first_line + nth].function].name);
}

static void modules(void **state)
{
	struct profile *p = profile_new();
	uint8_t id[24] = { 1, 2, 3 };
	struct frames f;
	uint32_t m;

	frames_init(&f, p);
	assert_int_equal(frames_module(&f, NULL, NULL, 0), PROFILE_NONE);
	assert_int_equal(frames_module(&f, "", id, 20), PROFILE_NONE);
	m = frames_module(&f, "/usr/bin/reth", NULL, 0);
	assert_int_equal(frames_module(&f, "/usr/bin/reth", NULL, 0), m);
	assert_int_equal(p->modules.v[m].kind, MODULE_FILE);
	assert_int_equal(p->modules.v[m].build_id_size, 0);
	/* Two builds at one path are two files, of any length of the id. */
	assert_int_not_equal(frames_module(&f, "/usr/bin/reth", id, 20), m);
	m = frames_module(&f, "/usr/bin/reth", id, 16);
	assert_int_not_equal(frames_module(&f, "/usr/bin/reth", id, 20), m);
	assert_int_equal(frames_module(&f, "/usr/bin/reth", id, 16), m);
	id[15] = 9;
	assert_int_not_equal(frames_module(&f, "/usr/bin/reth", id, 16), m);
	m = frames_module(&f, "/usr/bin/reth", id, sizeof(id)); /* longer than there is room for */
	assert_int_equal(p->modules.v[m].build_id_size, 20);
	assert_int_equal(p->modules.v[frames_module(&f, "[vdso]", NULL, 0)].kind, MODULE_VDSO);
	frames_done(&f);
	profile_free(p);
}

static void kernel(void **state)
{
	static const struct {
		const char *path, *shown; /* shown NULL: it is none of the kernel's */
	} known[] = {
		{ "[kernel.kallsyms]", "[kernel]" },
		{ "[kernel.kallsyms]_text", "[kernel]" },
		{ "[kernel]", "[kernel]" },
		{ "[guest.kernel.kallsyms.123]", "[kernel]" },
		{ "vmlinux", "[kernel]" },
		{ "/usr/lib/debug/boot/vmlinux-6.1.0-13-amd64", "[kernel]" },
		{ "/usr/lib/debug/lib/modules/6.1.0/vmlinux", "[kernel]" },
		{ "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko", "[ext4]" },
		{ "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko.xz", "[xfs]" },
		{ "/lib/modules/6.1.0/kernel/net/nf_tables.ko.zst", "[nf_tables]" },
		{ "/usr/bin/vmlinux-to-elf", NULL },
		{ "/usr/bin/vmlinuxed", NULL },
		{ "/opt/app/lib.korea.so", NULL },
		{ "/usr/bin/kernel", NULL },
	};
	_cleanup_free_ char *longest = mem_printf("/%0200d.ko", 7);
	struct profile *p = profile_new();
	struct frames f;

	frames_init(&f, p);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		uint32_t m = frames_module(&f, known[i].path, NULL, 0);

		assert_int_equal(frames_is_kernel(known[i].path), !!known[i].shown);
		assert_string_equal(path_of(p, m), known[i].shown ? known[i].shown : known[i].path);
		assert_int_equal(p->modules.v[m].kind, known[i].shown ? MODULE_KERNEL : MODULE_FILE);
	}
	assert_int_equal(strlen(path_of(p, frames_module(&f, longest, NULL, 0))), 62);
	frames_done(&f);
	profile_free(p);
}

static void frames_of_calls(void **state)
{
	struct profile *p = profile_new();
	struct frames_call calls[] = { { "inner", "a.rs", 7 }, { "outer", NULL, 0 } }, nameless = { 0 };
	uint32_t m, a, b;
	struct frames f;

	frames_init(&f, p);
	m = frames_module(&f, "/bin/x", NULL, 0);
	a = frames_named(&f, m, FRAME_USER, 0x1000, calls, 2);
	assert_int_equal(frames_named(&f, m, FRAME_USER, 0x1000, calls, 2), a);
	assert_string_equal(name_of(p, a, 0), "inner");
	assert_string_equal(name_of(p, a, 1), "outer");
	assert_true(p->lines.v[p->frames.v[a].first_line].inlined);
	assert_false(p->lines.v[p->frames.v[a].first_line + 1].inlined);
	assert_int_equal(p->lines.v[p->frames.v[a].first_line].line, 7);
	/* Each of these makes another frame. */
	b = p->frames.n;
	frames_named(&f, m, FRAME_USER, 0x1000, calls, 1);
	frames_named(&f, m, FRAME_USER, 0x1000, calls + 1, 1);
	frames_named(&f, m, FRAME_USER, 0x1000ULL << 32, calls, 2);
	frames_named(&f, m, FRAME_KERNEL, 0x1000, calls, 2);
	frames_named(&f, PROFILE_NONE, FRAME_USER, 0x1000, calls, 2);
	calls[0].line = 8;
	frames_named(&f, m, FRAME_USER, 0x1000, calls, 2);
	calls[0].file = "b.rs";
	frames_named(&f, m, FRAME_USER, 0x1000, calls, 2);
	frames_named(&f, m, FRAME_USER, 0x1000, NULL, 0);
	assert_int_equal(p->frames.n, b + 8);
	/* No name: the symbolizer's; a call without one is unknown. */
	assert_int_equal(p->frames.v[frames_named(&f, m, FRAME_USER, 0x1000, NULL, 0)].line_count, 0);
	assert_string_equal(name_of(p, frames_named(&f, m, FRAME_USER, 0x1000, &nameless, 1), 0), "[unknown]");
	frames_done(&f);
	profile_free(p);
}

static void stacks(void **state)
{
	struct profile *p = profile_new();
	uint32_t list[3], back[3], stack;
	struct frames f;

	frames_init(&f, p);
	for (int i = 0; i < 3; i++) {
		char name[2] = { 'a' + i };

		list[i] = back[2 - i] = frames_named(&f, PROFILE_NONE, FRAME_USER, 0, &(struct frames_call){ .name = name }, 1);
	}
	stack = frames_stack_outer(&f, list, 3);
	assert_int_equal(p->stacks.v[stack].frame, list[2]);
	assert_int_equal(frames_stack(&f, back, 3), stack);
	assert_int_equal(frames_stack_outer(&f, list, 3), stack);
	assert_int_equal(frames_stack(&f, list, 0), 0);
	assert_int_equal(frames_stack_outer(&f, list, 0), 0);
	assert_int_equal(p->stacks.v[p->stacks.v[p->stacks.v[stack].parent].parent].parent, 0);
	frames_done(&f);
	profile_free(p);
}

static void threads(void **state)
{
	struct profile *p = profile_new();
	uint32_t a, b;
	struct frames f;

	frames_init(&f, p);
	a = frames_thread(&f, 10, 11, "");
	assert_int_equal(frames_thread(&f, 10, 11, "worker"), a);
	assert_string_equal(profile_str(p, p->threads.v[a].name), "worker");
	assert_int_equal(frames_thread(&f, 10, 11, "other"), a);
	assert_string_equal(profile_str(p, p->threads.v[a].name), "worker");
	b = frames_thread(&f, 10, 10, "main");
	assert_int_equal(p->threads.v[b].process, p->threads.v[a].process);
	assert_string_equal(profile_str(p, p->processes.v[p->threads.v[a].process].name), "main");
	assert_int_not_equal(p->threads.v[frames_thread(&f, 20, 11, "x")].process, p->threads.v[a].process);
	/* Without numbers names tell them apart, and the last one is not the name of all. */
	a = frames_thread(&f, 0, 0, "one");
	b = frames_thread(&f, 0, 0, "two");
	assert_int_not_equal(a, b);
	assert_int_equal(frames_thread(&f, 0, 0, "one"), a);
	assert_int_equal(p->threads.v[a].process, p->threads.v[b].process);
	assert_string_equal(profile_str(p, p->processes.v[p->threads.v[a].process].name), "one");
	frames_done(&f);
	profile_free(p);
}

static void seconds(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
		size_t taken;
	} cases[] = {
		{ "0", 0, 1 },
		{ "1", 1000000000, 1 },
		{ "123.456789: cpu", 123456789000, 10 },
		{ "12345.678901234 x", 12345678901234, 15 },
		{ "1.0000000019", 1000000001, 12 },
		{ "5.", 5000000000, 2 },
		{ ".5", 500000000, 2 },
		{ "1763200931.000000001", 1763200931000000001, 20 },
		{ "9223372029", 9223372029000000000, 10 },
		{ "", 0, 0 },
		{ "x", 0, 0 },
		{ "-1", 0, 0 },
		{ "99999999999", 0, 0 },
		{ "99999999999999999999999999.5", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *end = NULL;

		assert_int_equal(frames_seconds_ns(cases[i].text, &end), cases[i].ns);
		assert_int_equal(end - cases[i].text, cases[i].taken);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules),
		cmocka_unit_test(kernel),
		cmocka_unit_test(frames_of_calls),
		cmocka_unit_test(stacks),
		cmocka_unit_test(threads),
		cmocka_unit_test(seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
