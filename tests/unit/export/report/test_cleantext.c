#include "test.h"

#include "base/buf.h"
#include "export/report/cleantext.h"
#include "export/report/shortname.h"

static void fits(const char *name, size_t columns, const char *expected)
{
	struct buf b = { 0 };

	cleantext_fit(&b, name, columns);
	if (strcmp(b.data ? b.data : "", expected))
		fail_msg("%s in %zu columns: '%s', not '%s'", name, columns, b.data, expected);
	assert_true(cleantext_columns(expected) <= columns);
	buf_done(&b);
}

static void the_last_segment_stays(void **state)
{
	const char *name = "reth_trie::state::StateRoot<T, H>::calculate";

	fits(name, 44, name);
	fits(name, 43, "..::state::StateRoot<T, H>::calculate");
	fits(name, 32, "..::StateRoot<T, H>::calculate");
	fits(name, 29, "..::StateRoot<..>::calculate");
	fits(name, 20, "..::calculate");
	fits(name, 13, "..::calculate");
	fits(name, 12, "calculate");
	fits(name, 9, "calculate");
	fits(name, 8, "calcul..");
	fits(name, 3, "c..");
	fits(name, 2, "");
	fits(name, 0, "");
}

static void arguments_go_when_they_must(void **state)
{
	fits("<alloc::boxed::Box<F,A> as core::ops::FnOnce<Args>>::call_once", 20, "Box<F,A>::call_once");
	fits("<alloc::boxed::Box<F,A> as core::ops::FnOnce<Args>>::call_once", 18, "Box<..>::call_once");
	fits("std::vector<int, std::allocator<int> >::push_back(int const&)", 50,
	     "std::vector<int, allocator<int> >::push_back(..)");
	fits("std::vector<int, std::allocator<int> >::push_back(int const&)", 40,
	     "std::vector<..>::push_back(..)");
	fits("core::ops::call<fn(u8) -> alloc::vec::Vec<u8>>", 36, "core::ops::call<fn(u8) -> Vec<u8>>");
	fits("core::ops::call<fn(u8) -> alloc::vec::Vec<u8>>", 20, "core::ops::call<..>");
	fits("wide::Vec<u8>::push_it_to_the_end", 30, "..::push_it_to_the_end");
	fits("ns::operator<<(std::ostream&, ns::Type const&)", 20, "ns::operator<<(..)");
	fits("ns::Type::operator()(std::string const&)", 30, "ns::Type::operator()(..)");
	fits("unbalanced<aaaaaaaaaaaaaaaaaaaaa", 12, "unbalanced..");
	fits("a::b::worker::run::{{closure}}", 24, "..::run::{{closure}}");
	fits("a::b::worker::run::{{closure}}", 16, "run::{{closure}}");
}

/* The same cases as those of the page: tests/browser/test_names.py. */
static void names_are_as_on_the_page(void **state)
{
	FILE *cases = fopen(GOLDEN_DIR "/shortnames.tsv", "re");
	char line[512];
	int n = 0;

	assert_non_null(cases);
	for (; fgets(line, sizeof(line), cases); n++) {
		char *columns = strchr(line, '\t'), *text = strchr(columns + 1, '\t');
		struct buf b = { 0 };

		*columns = *text = 0;
		text[strcspn(text + 1, "\n") + 1] = 0;
		shortname_put(&b, line, strtoul(columns + 1, NULL, 10), "\xe2\x80\xa6");
		if (strcmp(b.data ? b.data : "", text + 1))
			fail_msg("%s in %s columns: '%s', not '%s'", line, columns + 1, b.data, text + 1);
		buf_done(&b);
	}
	fclose(cases);
	assert_true(n > 20);
}

static void given(struct cleantext_set *set, const char *name, size_t columns, const char *expected)
{
	struct buf b = { 0 };

	cleantext_function(set, &b, name, columns);
	assert_string_equal(b.data ? b.data : "", expected);
	buf_done(&b);
}

static void functions_of_a_table_keep_different_texts(void **state)
{
	struct cleantext_set set = { 0 };

	given(&set, "a::Vec<alloc::string::String>::push", 20, "a::Vec<String>::push");
	given(&set, "a::Vec<alloc::string::String>::push", 20, "a::Vec<String>::push");
	given(&set, "a::Vec<alloc::vec::Vec<u8>>::push", 40, "a::Vec<alloc::vec::Vec<u8>>::push");
	given(&set, "a::Vec<alloc::string::String>::push", 16, "a::Vec<..>::push");
	given(&set, "a::Vec<alloc::boxed::Box<T>>::push", 16, "..::push~2");
	given(&set, "a::Vec<alloc::boxed::Box<U>>::push", 16, "..::push~3");
	given(&set, "a::Vec<alloc::boxed::Box<T>>::push", 16, "..::push~2");
	given(&set, "main", 2, "");
	cleantext_set_done(&set);
}

static void columns_are_counted_and_not_bytes(void **state)
{
	const char *wide = "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97"; /* four, of two columns */

	assert_int_equal(cleantext_columns("abc"), 3);
	assert_int_equal(cleantext_columns("\xc3\xa9t\xc3\xa9"), 3);
	assert_int_equal(cleantext_columns(wide), 8);
	fits(wide, 8, wide);
	fits(wide, 7, "\xe6\xbc\xa2\xe5\xad\x97..");
}

static void clean(const char *name, const char *expected)
{
	struct buf b = { 0 };

	cleantext_put(&b, name);
	assert_string_equal(b.data, expected);
	buf_done(&b);
}

#define R "\xef\xbf\xbd"

static void harmful_characters_are_replaced(void **state)
{
	clean("plain <T> \xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x94\xa5",
	      "plain <T> \xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x94\xa5");
	clean("a\nb\t\033[1m\x7f", "a" R "b" R R "[1m" R);
	clean("\xff|\xc0\x80|\xe2\x82|\xc3", R "|" R R "|" R R "|" R);
	clean("\xed\xa0\x80", R R R);             /* a surrogate */
	clean("\xf4\x90\x80\x80", R R R R);       /* past the last */
	clean("\xef\xbf\xbe \xef\xbf\xbf", R " " R); /* XML has no such characters */
	clean("\xe2\x80\xae" "x" "\xe2\x81\xa6", R "x" R); /* right to left */
	clean("\xc2\x9b", R);                     /* a terminal's CSI */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_segment_stays),
		cmocka_unit_test(arguments_go_when_they_must),
		cmocka_unit_test(names_are_as_on_the_page),
		cmocka_unit_test(functions_of_a_table_keep_different_texts),
		cmocka_unit_test(columns_are_counted_and_not_bytes),
		cmocka_unit_test(harmful_characters_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
