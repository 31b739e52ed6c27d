/*
 * test_probesites.c - where functions are entered and left, found in this very program; and the notes of gasflame.h in it.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <gasflame.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "elf/probe/disassemble.h"
#include "elf/probe/probesites.h"
#include "elf/file.h"
#include "elf/probe/usdt.h"
#include "elf/worker/worker.h"

#define NOINLINE __attribute__((noinline, used))

static struct worker *worker;
static volatile uint64_t sink;

NOINLINE static uint64_t helper_of_tests(uint64_t n)
{
	__asm__ volatile("" ::: "memory", "rbx", "r12");
	return n + sink;
}

/* Some ways out. */
NOINLINE static uint64_t ways_out_of_tests(uint64_t n)
{
	if (n == 1)
		return helper_of_tests(2) + 1;
	__asm__ volatile("" ::: "memory", "rbx", "r13");
	for (uint64_t i = 0; i < n; i++)
		sink += helper_of_tests(i);
	return sink;
}

/* A poll function by name and by its beginning, in the newer mangling: truth::later::{closure#0}. */
uint64_t later_of_tests(uint8_t *future, void *context) __asm__("_RNCNvCs1234_5truth5later0B3_");

/* Sanitizers would look at other bytes first. */
#ifdef __clang__
#define PLAIN __attribute__((no_sanitize("address", "undefined", "coverage")))
#else
#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("undefined")))
#endif
NOINLINE PLAIN uint64_t later_of_tests(uint8_t *future, void *context)
{
	__asm__ volatile("" ::: "memory", "rbx", "r12");
	switch (future[300]) {
	case 0:
		future[300] = 3;
		return helper_of_tests(1);
	case 3:
		future[300] = 1;
		return helper_of_tests(2);
	default:
		abort();
	}
}

static struct probesites_info *find(const char *pattern)
{
	struct probesites_info *info = mem_alloc(sizeof(*info));
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct err err = { 0 };

	if (worker_probesites(worker, fd, pattern, strlen(pattern) + 1, info, &err))
		fail_msg("%s", err.text);
	return info;
}

/* The code at an offset of the file, as this process has it in memory. */
static uint8_t code_at(const struct probesites *d, uint64_t offset)
{
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t byte = 0;

	assert_int_equal(pread(fd, &byte, 1, offset), 1);
	return byte;
}

static void functions_are_found(void **state)
{
	_cleanup_free_ struct probesites_info *info = NULL;
	const struct probesites *d;
	bool returns = false;

	if (!disassemble_there())
		skip();
	sink += ways_out_of_tests(0);
	info = find("ways_out_of_tests");
	assert_int_equal(info->count, 1);
	assert_int_equal(info->matched[0], 1);
	d = &info->list[0];
	assert_string_equal(d->name, "ways_out_of_tests");
	if (d->trouble == PROBESITES_STEPPED_IN)
		return; /* a build that shrink-wraps */
	assert_int_equal(d->trouble, PROBESITES_USABLE);
	assert_true(d->out_count >= 1);
	assert_true((code_at(d, d->in) & 0xf8) == 0x50 || code_at(d, d->in) == 0x41);
	for (uint32_t i = 0; i < d->out_count; i++)
		returns |= code_at(d, d->out[i]) == 0xc3;
	assert_true(returns);
	assert_int_equal(d->future, PROBESITES_NO_FUTURE);
}

static void futures_are_told(void **state)
{
	_cleanup_free_ struct probesites_info *info = NULL;
	uint8_t future[301] = { 0 };

	if (!disassemble_there())
		skip();
	sink += later_of_tests(future, NULL);
	info = find("truth::later::{{closure}}");
	assert_int_equal(info->count, 1);
	if (info->list[0].trouble)
		return; /* a build that shrink-wraps, or adds code of its own */
#ifdef __OPTIMIZE__
	assert_int_equal(info->list[0].future, PROBESITES_FUTURE_1ST);
	assert_int_equal(info->list[0].state, 300);
#endif
}

static void what_is_not_there_is_not_found(void **state)
{
	_cleanup_free_ struct probesites_info *info = NULL;

	if (!disassemble_there())
		skip();
	/* In two pieces, so that it is not in this file either. */
	info = find("no_such_" "function_anywhere");
	assert_int_equal(info->count, 0);
	assert_true(info->functions > 10);
}

static void names_fit(void **state)
{
	static const struct {
		const char *name, *pattern;
		int fit;
	} cases[] = {
		{ "anvil::Backend<N>::do_mine_block::{{closure}}", "do_mine_block::{{closure}}", 2 },
		{ "anvil::Backend<N>::do_mine_block::{{closure}}::{{closure}}", "do_mine_block::{{closure}}", 1 },
		{ "core::ptr::drop_in_place<anvil::Backend<N>::do_mine_block::{{closure}}>", "do_mine_block", 0 },
		{ "<reth::Tree<P> as Handler>::on_new_payload", "::on_new_payload", 2 },
		{ "a::b<fn() -> c>::d", "::d", 2 },
		{ "a::b", "", 0 },
		{ "a<b>::c", "a<b>", 1 },
		{ "<<<<", "<<", 2 },
		{ "reth::sparse_trie::SparseTrieCacheTask<A,S>::run", "SparseTrieCacheTask*::run", 2 },
		{ "<reth::SparseTrieCacheTask<B, C<D>>>::run", "SparseTrieCacheTask*::run", 2 },
		{ "<reth::SparseTrieCacheTask<B, C>>::run::{{closure}}", "SparseTrieCacheTask*::run", 1 },
		{ "core::ptr::drop_in_place<reth::SparseTrieCacheTask<B>::run>", "SparseTrieCacheTask*::run", 0 },
		{ "reth::PrewarmCacheTask<A,S>::run", "SparseTrieCacheTask*::run", 0 },
		{ "a::b::c", "a*b*c", 2 },
		{ "a::b::c", "c*a", 0 },
		{ "a::b", "a*", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(probesites_fit(cases[i].name, cases[i].pattern), cases[i].fit);
}

static void bad_answers_are_refused(void **state)
{
	struct probesites_info *info = mem_alloc(sizeof(*info));
	struct usdt_info *notes = mem_alloc(sizeof(*notes));

	info->count = 1;
	memset(info->list[0].name, 0x1b, sizeof(info->list[0].name));
	assert_true(probesites_check(info));
	assert_int_equal(strlen(info->list[0].name), PROBESITES_NAME - 1);
	assert_null(strchr(info->list[0].name, 0x1b));
	info->list[0].out_count = PROBESITES_OUT + 1;
	assert_false(probesites_check(info));
	info->list[0].out_count = 0;
	info->count = PROBESITES_FUNCTIONS + 1;
	assert_false(probesites_check(info));
	notes->count = 1;
	assert_false(usdt_check(notes));
	notes->list[0].what = USDT_MARK;
	assert_true(usdt_check(notes));
	notes->list[0].arguments[1] = 32;
	assert_false(usdt_check(notes));
	for (uint32_t i = 0; i <= PROBESITES_TROUBLES; i++)
		assert_int_equal(*probesites_trouble_text(i) != 0, i && i < PROBESITES_TROUBLES);
	free(info);
	free(notes);
}

static void own_notes_are_found(void **state)
{
	_cleanup_free_ struct usdt_info *info = mem_alloc(sizeof(*info));
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned kinds[USDT_BLOCK_END + 1] = { 0 };

	GASFLAME_SPAN_BEGIN("test", sink);
	GASFLAME_SPAN_END("test", sink);
	GASFLAME_MARK("test", 1);
	GASFLAME_MARK("test", 2);
	GASFLAME_BLOCK_END(1, sink, 3);
	assert_int_equal(worker_usdt(worker, fd, info, NULL), 0);
	assert_int_equal(info->count, 5);
	assert_int_equal(info->odd, 0);
	for (uint32_t i = 0; i < info->count; i++) {
		kinds[info->list[i].what]++;
		assert_int_equal(code_at(NULL, info->list[i].offset), 0x90);
		assert_true(info->list[i].arguments[0] < 21 && info->list[i].arguments[1] < 21);
		assert_int_equal(info->list[i].arguments[2] < 21, info->list[i].what == USDT_BLOCK_END);
	}
	assert_true(kinds[USDT_BEGIN] == 1 && kinds[USDT_END] == 1 && kinds[USDT_MARK] == 2 && kinds[USDT_BLOCK_END] == 1);
}

static int set_up(void **state)
{
	worker = worker_new();
	return 0;
}

static int tear_down(void **state)
{
	worker_free(worker);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found),     cmocka_unit_test(futures_are_told), cmocka_unit_test(what_is_not_there_is_not_found),
		cmocka_unit_test(names_fit),               cmocka_unit_test(bad_answers_are_refused),
		cmocka_unit_test(own_notes_are_found),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
