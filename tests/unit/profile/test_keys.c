#include "test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "golden.h"
#include "profile/keys.h"

static const char *const kinds[] = { [KEY_COUNTER] = "counter", [KEY_SERIES] = "series", [KEY_HISTOGRAM] = "histogram" };
static const char *const merges[] = { [KEY_SUM] = "sum", [KEY_MIN] = "least", [KEY_MAX] = "most", [KEY_ALIKE] = "alike",
				      [KEY_ERROR] = "error", [KEY_JOIN] = "join" };

static void the_document_is_current(void **state)
{
	struct buf b = { 0 };

	buf_puts(&b, "# Keys of a profile\n\n"
		     "Collectors write counters, series and histograms under these names, and analyses read them: tables "
		     "`counter`, `series` and `histogram` of a capture. `*` stands for a path, a system call, a size.\n\n"
		     "When recordings are merged, a counter is their *sum*, the *least* or the *most* of them; *alike*: a "
		     "setting, the larger one, and a flag where they differ; *error*: standard errors, the root of the sum "
		     "of squares. Histograms add up. Series *join*: points of both.\n\n"
		     "Made of `src/profile/keys.def` by `GASFLAME_GOLDEN=refresh build/tests/unit/test_keys`.\n");
#define SECTION(title) buf_printf(&b, "\n## %s\n\n| key | kind | unit | merge | meaning |\n|---|---|---|---|---|\n", title);
#define KEY(kind, constant, name, unit, merge, meaning) \
	buf_printf(&b, "| `%s` | %s | %s | %s | %s |\n", name, kinds[KEY_##kind], unit, merges[KEY_##merge], meaning);
#include "profile/keys.def"
	golden_check("../../docs/keys.md", b.data, b.n);
	buf_done(&b);
}

static void each_name_is_one_key(void **state)
{
	for (size_t i = 0; i < key_table_size; i++) {
		const struct key *k = &key_table[i];
		const char *star = strchr(k->name, '*');
		_cleanup_free_ char *one = key_of(k->name, "x"), *which = key_which(k->name, one);

		assert_ptr_equal(key_find(k->name), k);
		if (star) {
			assert_ptr_equal(key_find(one), k);
			assert_string_equal(which, "x");
			assert_null(strchr(star + 1, '*'));
		}
		assert_true(*k->unit && *k->meaning);
		assert_int_equal(k->kind == KEY_SERIES, k->merge == KEY_JOIN);
		assert_true(k->kind != KEY_HISTOGRAM || k->merge == KEY_SUM);
	}
}

static void a_family_has_names(void **state)
{
	_cleanup_free_ char *name = key_of(KEY_IO_CALLS_OF, "pread64"), *which = key_which(KEY_IO_CALLS_OF, name);

	assert_string_equal(name, "io.pread64.calls");
	assert_string_equal(which, "pread64");
	assert_null(key_which(KEY_IO_CALLS_OF, "io.pread64.bytes"));
	assert_null(key_which(KEY_IO_CALLS_OF, "io..calls"));
	assert_null(key_which(KEY_IO_CALLS_OF, "io.calls"));
	assert_null(key_which(KEY_HEAP_LOST, KEY_HEAP_LOST));
	assert_string_equal(key_rest(KEY_MEM_FILE_OF, "mem.file:/a*b"), "/a*b");
	assert_null(key_rest(KEY_MEM_FILE_OF, "mem.file:"));
	assert_string_equal(key_unit("mem.file:/a"), "bytes");
}

static void a_name_of_its_own_comes_before_a_family(void **state)
{
	assert_string_equal(key_find("io.stacks walked")->name, KEY_IO_STACKS_WALKED);
	assert_string_equal(key_find("block.requests without room")->name, KEY_BLOCK_REQUESTS_WITHOUT_ROOM);
	assert_null(key_find("from another version"));
	assert_string_equal(key_unit("from another version"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_is_current),
		cmocka_unit_test(each_name_is_one_key),
		cmocka_unit_test(a_family_has_names),
		cmocka_unit_test(a_name_of_its_own_comes_before_a_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
