#include "test.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

static void all_kinds_of_values(void **state)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	struct json j = json_begin(&out);

	json_open_object(&j, NULL);
	json_put_string(&j, "s", "a");
	json_put_string(&j, "none", NULL);
	json_put_uint(&j, "u", UINT64_MAX);
	json_put_int(&j, "i", INT64_MIN);
	json_put_fixed(&j, "f", 2.0 / 3, 3);
	json_put_real(&j, "r", 1e300, 9);
	json_put_fixed(&j, "nan", NAN, 3);
	json_put_real(&j, "inf", -INFINITY, 9);
	json_put_bool(&j, "t", true);
	json_put_raw(&j, "raw", "[1]", 3);
	json_open_array(&j, "a");
	json_put_null(&j, NULL);
	json_put_bool(&j, NULL, false);
	json_open_object(&j, NULL);
	json_close(&j);
	json_open_array(&j, NULL);
	json_close(&j);
	json_close(&j);
	json_put_uint(&j, "after", 0);
	json_end_line(&j);
	assert_string_equal(out.data, "{\"s\":\"a\",\"none\":null,\"u\":18446744073709551615,\"i\":-9223372036854775808,"
				      "\"f\":0.667,\"r\":1e+300,\"nan\":null,\"inf\":null,\"t\":true,\"raw\":[1],"
				      "\"a\":[null,false,{},[]],\"after\":0}\n");
}

static void lines_begin_where_they_are_wanted(void **state)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	struct json j = json_begin(&out);

	json_open_object(&j, NULL);
	json_put_uint(&j, "n", 1);
	json_break(&j, 0);
	json_open_array(&j, "rows");
	for (int i = 0; i < 2; i++) {
		json_open_row(&j, 1);
		json_put_uint(&j, "i", i);
		json_close(&j);
	}
	json_break(&j, 0);
	json_close(&j);
	json_end(&j);
	assert_string_equal(out.data, "{\"n\":1,\n\"rows\":[\n {\"i\":0},\n {\"i\":1}\n]}");
}

/* Whatever bytes a name has, a parser takes them, and gives them back where they were text. */
static void hostile_strings_are_text(void **state)
{
	static const char *const texts[] = { "\"},{\"x\":\"", "\\", "\n\t\001\033[31m\177", "\xc2\x9b", "\xe2\x80\xae", "\xff\xc0\x80", "\xed\xa0\x80",
					     "\xe6\xbc", "\xe6\xbc\xa2", "" };
	_cleanup_(buf_done) struct buf out = { 0 };
	struct json j = json_begin(&out);
	json_t *read;

	json_open_array(&j, NULL);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		json_put_string(&j, NULL, texts[i]);
	json_open_object(&j, NULL);
	json_put_null(&j, texts[0]);
	json_close(&j);
	json_end(&j);
	assert_null(strpbrk(out.data, "\n\t\001\033\177"));
	read = json_loadb(out.data, out.n, 0, NULL);
	assert_int_equal(json_array_size(read), ARRAY_LEN(texts) + 1);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (i < 5 || i > 7)
			assert_string_equal(json_string_value(json_array_get(read, i)), texts[i]);
		else
			assert_non_null(strstr(json_string_value(json_array_get(read, i)), "\xef\xbf\xbd"));
	assert_true(json_is_null(json_object_get(json_array_get(read, ARRAY_LEN(texts)), texts[0])));
	json_decref(read);
}

/* --- what must not be written --- */

static void ends_too_early(struct json *j)
{
	json_open_array(j, NULL);
	json_open_array(j, NULL);
	json_end(j);
}

static void ends_nothing(struct json *j)
{
	json_end(j);
}

static void closes_too_much(struct json *j)
{
	json_open_array(j, NULL);
	json_close(j);
	json_close(j);
}

static void has_no_key(struct json *j)
{
	json_open_object(j, NULL);
	json_put_uint(j, NULL, 1);
}

static void has_a_key(struct json *j)
{
	json_open_array(j, NULL);
	json_put_uint(j, "key", 1);
}

static void is_two_documents(struct json *j)
{
	json_put_null(j, NULL);
	json_put_null(j, NULL);
}

static void is_too_deep(struct json *j)
{
	for (int i = 0; i <= JSON_DEPTH; i++)
		json_open_array(j, NULL);
}

static void is_as_deep_as_allowed(struct json *j)
{
	for (int i = 0; i < JSON_DEPTH; i++)
		json_open_array(j, NULL);
	for (int i = 1; i < JSON_DEPTH; i++)
		json_close(j);
	json_end(j);
}

static int signal_of(void (*write)(struct json *j))
{
	pid_t child = fork();
	int status;

	assert_int_not_equal(child, -1);
	if (!child) {
		struct buf out = { 0 };
		struct json j = json_begin(&out);

		signal(SIGABRT, SIG_DFL);
		(void)!freopen("/dev/null", "w", stderr);
		write(&j);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void unbalanced_output_is_an_assertion(void **state)
{
	assert_int_equal(signal_of(ends_too_early), SIGABRT);
	assert_int_equal(signal_of(ends_nothing), SIGABRT);
	assert_int_equal(signal_of(closes_too_much), SIGABRT);
	assert_int_equal(signal_of(has_no_key), SIGABRT);
	assert_int_equal(signal_of(has_a_key), SIGABRT);
	assert_int_equal(signal_of(is_two_documents), SIGABRT);
	assert_int_equal(signal_of(is_too_deep), SIGABRT);
	assert_int_equal(signal_of(is_as_deep_as_allowed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_of_values),
		cmocka_unit_test(lines_begin_where_they_are_wanted),
		cmocka_unit_test(hostile_strings_are_text),
		cmocka_unit_test(unbalanced_output_is_an_assertion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
