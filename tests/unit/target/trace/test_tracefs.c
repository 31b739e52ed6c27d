#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "target/trace/tracefs.h"

#define COMMON                                                                            \
	"format:\n"                                                                       \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"             \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"             \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static int parse(const char *text, struct tracefs_format *f, struct err *err)
{
	return tracefs_parse_format(text, strlen(text), f, err);
}

static void fields_of_a_tracepoint(void **state)
{
	struct tracefs_format f;
	const struct tracefs_field *field;

	assert_int_equal(parse("name: block_rq_issue\nID: 2104\n" COMMON
			       "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
			       "\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n"
			       "\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n"
			       "\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n"
			       "\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n"
			       "\tfield:const char * buf;\toffset:64;\tsize:8;\tsigned:0;\n"
			       "\tfield:long ret;\toffset:72;\tsize:8;\tsigned:1;\n"
			       "\nprint fmt: \"field:not one;\"\n", &f, NULL), 0);
	assert_int_equal(f.id, 2104);
	assert_int_equal(f.fields.n, 7);
	field = tracefs_find_field(&f, "bytes");
	assert_non_null(field);
	assert_string_equal(field->type, "unsigned int");
	assert_int_equal(field->offset, 28);
	assert_int_equal(field->size, 4);
	assert_true(field->integer && !field->is_signed);
	assert_true(tracefs_find_field(&f, "ret")->is_signed);
	/* What cannot be summed: strings, arrays, pointers. */
	assert_false(tracefs_find_field(&f, "cmd")->integer);
	assert_string_equal(tracefs_find_field(&f, "cmd")->type, "__data_loc char[]");
	assert_false(tracefs_find_field(&f, "rwbs")->integer);
	assert_string_equal(tracefs_find_field(&f, "rwbs")->type, "char[10]");
	assert_false(tracefs_find_field(&f, "buf")->integer);
	/* Programs see a pointer where these were. */
	assert_null(tracefs_find_field(&f, "common_pid"));
	assert_null(tracefs_find_field(&f, "byte"));
	tracefs_format_done(&f);
}

static void one_byte_and_no_fields(void **state)
{
	struct tracefs_format f;

	assert_int_equal(parse("ID: 7\n" COMMON "\tfield:bool ok;\toffset:8;\tsize:1;\tsigned:0;\n", &f, NULL),
			 0);
	assert_true(tracefs_find_field(&f, "ok")->integer);
	tracefs_format_done(&f);
	assert_int_equal(parse("ID: 7\n" COMMON, &f, NULL), 0);
	assert_int_equal(f.fields.n, 0);
	tracefs_format_done(&f);
}

static void damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"name: x\n",
		"ID: \n",
		"ID: 99999999999999999999\n",
		"ID: 1\nfield:int a;\n",
		"ID: 1\nfield:int a;\toffset:8;\n",
		"ID: 1\nfield:int a;\toffset:8;\tsize:;\n",
		"ID: 1\nfield:int a;\toffset:-8;\tsize:4;\tsigned:0;\n",
		"ID: 1\nfield:int a;\toffset:8191;\tsize:4;\tsigned:0;\n",
		"ID: 1\nfield:int a;\toffset:4294967295;\tsize:4;\tsigned:0;\n",
		"ID: 1\nfield:;\toffset:8;\tsize:4;\tsigned:0;\n",
		"ID: 1\nfield:int;\toffset:8;\tsize:4;\tsigned:0;\n",
		"ID: 1\nfield:int a[;\toffset:8;\tsize:4;\tsigned:7;\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct tracefs_format f;
		struct err err = { 0 };

		assert_int_equal(parse(texts[i], &f, &err), -EINVAL);
		assert_true(*err.text && err.offset <= strlen(texts[i]));
	}
}

static void a_tracepoint_that_is_not_there(void **state)
{
	struct tracefs_format f;
	struct err err = { 0 };
	int r = tracefs_read_format("no_such_group", "no_such_point", &f, &err);

	/* Where tracefs cannot be read, the sentence says what helps. */
	assert_true(r == -ENOENT || r == -EACCES);
	assert_true(strstr(err.text, "no_such_group:no_such_point") || strstr(err.text, "mount -t tracefs") ||
		    strstr(err.text, "sudo"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_a_tracepoint),
		cmocka_unit_test(one_byte_and_no_fields),
		cmocka_unit_test(damaged),
		cmocka_unit_test(a_tracepoint_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
