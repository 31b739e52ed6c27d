#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/library.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/conf.h"
#include "base/text/plain.h"
#include "base/text/str.h"

static void map_keeps_what_was_put(void **state)
{
	struct map m = { 0 };

	for (uint64_t i = 0; i < 10000; i++)
		*map_put(&m, i * 4096, 0) = i;
	for (uint64_t i = 0; i < 10000; i += 2)
		map_remove(&m, i * 4096);
	assert_int_equal(m.n, 5000);
	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t *v = map_get(&m, i * 4096);

		if (i % 2) {
			assert_non_null(v);
			assert_int_equal(*v, i);
		} else {
			assert_null(v);
		}
	}
	map_done(&m);
}

static void strings_are_interned(void **state)
{
	struct strtab t;
	char name[16];

	strtab_init(&t);
	assert_int_equal(strtab_add(&t, ""), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		assert_int_equal(strtab_add(&t, name), i + 1);
	}
	assert_int_equal(strtab_add(&t, "s500"), 501);
	assert_int_equal(strtab_add_n(&t, "s5001", 4), 501);
	assert_string_equal(strtab_get(&t, 501), "s500");
	assert_string_equal(strtab_get(&t, 99999), "");
	strtab_done(&t);
}

static void reader_stops_at_the_end(void **state)
{
	const uint8_t data[] = { 0xe5, 0x8e, 0x26, 0x7f, 0x80 };
	struct reader r = reader_of(data, sizeof(data));

	assert_int_equal(reader_uleb(&r), 624485);
	assert_int_equal(reader_sleb(&r), -1);
	reader_uleb(&r);
	assert_true(r.failed);
	assert_int_equal(reader_u64(&r), 0);
	assert_null(reader_bytes(&r, 1));
	assert_string_equal(reader_string(&r), "");
}

static void durations_and_sizes(void **state)
{
	uint64_t v;
	double percent;

	assert_int_equal(str_parse_duration("0.5", &v), 0);
	assert_int_equal(v, 500000000);
	assert_int_equal(str_parse_duration("2m", &v), 0);
	assert_int_equal(v, 120000000000);
	assert_int_equal(str_parse_duration("250ms", &v), 0);
	assert_int_equal(v, 250000000);
	assert_true(str_parse_duration("-1", &v) < 0);
	assert_true(str_parse_duration("1e9", &v) < 0);
	assert_true(str_parse_duration("inf", &v) < 0);
	assert_true(str_parse_duration(".", &v) < 0);
	assert_int_equal(str_parse_size("8G", &v), 0);
	assert_int_equal(v, 8ULL << 30);
	assert_true(str_parse_size("8X", &v) < 0);
	assert_int_equal(str_parse_percent("0.5%", &percent), 0);
	assert_true(percent == 0.5);
	assert_true(str_parse_percent("200%", &percent) < 0);
}

static void numbers_read_well(void **state)
{
	char s[32];

	assert_string_equal(str_count(s, 1234567), "1,234,567");
	assert_string_equal(str_count(s, 999), "999");
	assert_string_equal(str_bytes(s, 512), "512 B");
	assert_string_equal(str_bytes(s, 44330832), "42.3 MB");
	assert_string_equal(str_duration(s, 59750000), "59.8 ms");
	assert_string_equal(str_duration(s, 60000000000), "60.0 s");
	assert_string_equal(str_right(s, str_duration(s, 24500), 9), "  24.5 µs");
	assert_string_equal(str_right(s, "-", 3), "  -");
	assert_string_equal(str_right(s, "wide", 3), "wide");
	assert_int_equal(strlen(str_right(s, "x", 100)), 31);
	assert_string_equal(str_share(s, 12.345), "12.3 %");
	assert_string_equal(str_share(s, 99.97), "100 %");
	assert_string_equal(str_share(s, 0.123), "0.12 %");
	assert_string_equal(str_share(s, 0.001), "<0.01 %");
	assert_string_equal(str_share(s, 0), "0 %");
	assert_string_equal(str_share(s, -50), "-50.0 %");
}

static void text_is_escaped(void **state)
{
	struct buf b = { 0 };

	buf_json(&b, "a\"\\\n\xff\xc3\xa9");
	assert_string_equal(b.data, "\"a\\\"\\\\\\u000a\xef\xbf\xbd\xc3\xa9\"");
	buf_done(&b);
	buf_xml(&b, "<T as \"X\">&'\x01");
	assert_string_equal(b.data, "&lt;T as &quot;X&quot;&gt;&amp;&#39;\xef\xbf\xbd");
	buf_done(&b);
}

#define GONE "\xef\xbf\xbd"

static void heard(void *context, const char *text)
{
	snprintf(context, 200, "%s", text);
}

/* C0, DEL, C1 as a byte and as UTF-8, line breaks, changes of direction: none of it leaves. */
static void text_for_people_is_plain(void **state)
{
	static const char evil[] = "a\x1b[2J\x9b\xc2\x9b\x7f\n\t\xe2\x80\xae\xe2\x81\xa6\xc3\xa9z";
	char field[] = "a\x1b[2J\x9b\xc2\x9b\x7f\n\t\xe2\x80\xae\xe2\x81\xa6\xc3\xa9z", said[200] = "";
	struct buf b = { 0 };

	plain_add(&b, evil);
	assert_string_equal(b.data, "a" GONE "[2J" GONE GONE GONE GONE GONE GONE GONE "\xc3\xa9z");
	assert_string_equal(plain_in_place(field), "a?[2J???????\xc3\xa9z");
	b.n = 0;
	plain_add_lines(&b, "x\ty\n\x1b[31mred\x1b[0m\x1b[8mhidden\x1b[2J\r\xc2\x9b");
	assert_string_equal(b.data, "x\ty\n\x1b[31mred\x1b[0m" GONE "[8mhidden" GONE "[2J" GONE GONE);
	b.n = 0;
	buf_json(&b, "\xc2\x9b\x7f\xe2\x80\xae\xc3\xa9");
	assert_string_equal(b.data, "\"\\u009b\\u007f\\u202e\xc3\xa9\"");
	b.n = 0;
	buf_xml(&b, "\xc2\x9b<\xc3\xa9");
	assert_string_equal(b.data, GONE "&lt;\xc3\xa9");
	log_set_sink(heard, said);
	log_warn("the thread %s", "x\x1b[2J\nwarning: all is well");
	log_set_sink(NULL, NULL);
	assert_string_equal(said, "the thread x" GONE "[2J" GONE "warning: all is well");
	buf_done(&b);
}

static void an_error_is_never_success(void **state)
{
	struct err err = { 0 };

	assert_int_equal(err_errno(&err, 0, "half of it was written"), -EIO);
	assert_int_equal(err.code, EIO);
	assert_int_equal(err_set(NULL, 0, "half of it was written"), -EIO);
}

static void configuration_lines(void **state)
{
	static const struct { const char *line; enum conf_kind kind; const char *key, *value; } cases[] = {
		{ "", CONF_EMPTY, "", NULL },
		{ " \t# a comment = no value", CONF_EMPTY, "", NULL },
		{ " [ state root ] # of a block", CONF_SECTION, "state root", NULL },
		{ "[]", CONF_SECTION, "", NULL },
		{ "[", CONF_OPEN, "[", NULL },
		{ "[half # ]", CONF_OPEN, "[half", NULL },
		{ "a b\t=  c#d = e # f", CONF_KEY, "a b", "c#d = e" },
		{ "=", CONF_KEY, "", "" },
		{ "word", CONF_NEITHER, "word", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char line[64];
		struct conf_line l;

		snprintf(line, sizeof(line), "%s", cases[i].line);
		l = conf_line(line);
		assert_int_equal(l.kind, cases[i].kind);
		assert_string_equal(l.key, cases[i].key);
		assert_true(!l.value == !cases[i].value);
		if (l.value)
			assert_string_equal(l.value, cases[i].value);
	}
}

static void libraries_are_loaded_late(void **state)
{
	double (*root)(double) = NULL;
	const struct library_function known = { "cbrt", (void **)&root }, unknown = { "no_such_function_here", (void **)&root };
	struct err err = { 0 };

	assert_int_equal(library_load("libm.so.6", &known, 1, &err), 0);
	assert_true(root(27) > 2.99 && root(27) < 3.01);
	assert_int_equal(library_load("libm.so.6", &unknown, 1, &err), -ELIBACC);
	assert_non_null(strstr(err.text, "no_such_function_here"));
	assert_int_equal(library_load("libno_such_library_here.so.1", &known, 1, &err), -ELIBACC);
	assert_non_null(strstr(err.text, "libno_such_library_here.so.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_never_success), cmocka_unit_test(map_keeps_what_was_put), cmocka_unit_test(strings_are_interned),
		cmocka_unit_test(reader_stops_at_the_end), cmocka_unit_test(durations_and_sizes),
		cmocka_unit_test(numbers_read_well), cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(text_for_people_is_plain), cmocka_unit_test(configuration_lines),
		cmocka_unit_test(libraries_are_loaded_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
