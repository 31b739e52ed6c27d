#include "test.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "target/trace/eventspec.h"

/* --- one event --- */

static void a_tracepoint(void **state)
{
	struct eventspec e;

	assert_int_equal(eventspec_parse("sched:sched_switch", &e, NULL), 0);
	assert_int_equal(e.kind, EVENTSPEC_TRACEPOINT);
	assert_string_equal(e.group, "sched");
	assert_string_equal(e.point, "sched_switch");
	assert_string_equal(e.name, "sched:sched_switch");
	assert_null(e.field);
	assert_false(eventspec_is_pattern(&e));
	eventspec_done(&e);
	assert_int_equal(eventspec_parse("block:block_rq_issue/bytes", &e, NULL), 0);
	assert_string_equal(e.name, "block:block_rq_issue");
	assert_string_equal(e.field, "bytes");
	eventspec_done(&e);
	assert_int_equal(eventspec_parse("syscalls:sys_enter_*", &e, NULL), 0);
	assert_true(eventspec_is_pattern(&e));
	eventspec_done(&e);
}

static void an_event_with_a_name(void **state)
{
	struct eventspec e, other;

	assert_int_equal(eventspec_parse("page-faults", &e, NULL), 0);
	assert_int_equal(e.kind, EVENTSPEC_SOFTWARE);
	assert_int_equal(e.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_false(e.sampled);
	eventspec_done(&e);
	assert_int_equal(eventspec_parse("cycles:u", &e, NULL), 0);
	assert_int_equal(e.kind, EVENTSPEC_HARDWARE);
	assert_true(e.user_only && !e.kernel_only && e.sampled);
	assert_string_equal(e.name, "cycles:u");
	eventspec_done(&e);
	assert_int_equal(eventspec_parse("cs", &e, NULL), 0);
	assert_int_equal(eventspec_parse("context-switches", &other, NULL), 0);
	assert_int_equal(e.config, other.config);
	eventspec_done(&e);
	eventspec_done(&other);
}

static void what_is_none(void **state)
{
	static const char *const words[] = { "", ":", "a:", ":b", "a:b/", "a:b/c/d", "cpu", "nonsense",
					     "cycles:x", "cycles:", "../../etc:passwd", "a:../b", "a b:c",
					     "a:b c", "a:b:c", "a:b\n" };
	char longest[1000];

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct eventspec e;
		struct err err = { 0 };

		assert_int_equal(eventspec_parse(words[i], &e, &err), -EINVAL);
		assert_non_null(strstr(err.text, "no event"));
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(eventspec_parse(longest, &(struct eventspec){ 0 }, NULL), -EINVAL);
}

static void every_name_is_an_event(void **state)
{
	enum eventspec_kind kind;
	const char *describe, *name;
	size_t n = 0;

	for (; (name = eventspec_named(n, &kind, &describe)); n++) {
		struct eventspec e;

		assert_int_equal(eventspec_parse(name, &e, NULL), 0);
		assert_int_equal(e.kind, kind);
		eventspec_done(&e);
	}
	assert_true(n > 20);
}

/* --- files of them --- */

static int collect(void *context, const char *word, unsigned line, struct err *err)
{
	buf_printf(context, "%u:%s ", line, word);
	return 0;
}

static int parse(const char *text, struct buf *out, struct err *err)
{
	return eventspec_parse_file(text, strlen(text), collect, out, err);
}

static void check_file(const char *text, const char *words)
{
	struct buf out = { 0 };

	assert_int_equal(parse(text, &out, NULL), 0);
	assert_string_equal(out.n ? out.data : "", words);
	buf_done(&out);
}

static void comments_blanks_and_line_ends(void **state)
{
	check_file("", "");
	check_file("\n\n   \n\t\n", "");
	check_file("# all\n  # of it # comments\n", "");
	check_file("sched:sched_switch", "1:sched:sched_switch ");
	check_file("  a:b  # why\n\n\tc:d#tight\n#e:f\ng:h/i \t\n", "1:a:b 3:c:d 5:g:h/i ");
	check_file("a:b\r\n# x\r\nc:d\r\n", "1:a:b 3:c:d ");
	check_file("\xef\xbb\xbf" "a:b\n", "1:a:b ");
	check_file("# \xc3\xa9t\xc3\xa9 and \x01 may stand in a comment\na:b\n", "2:a:b ");
}

static void garbage_is_told_with_its_line(void **state)
{
	struct buf out = { 0 };
	struct err err = { 0 };

	assert_int_equal(parse("a:b\n\n  c:d e:f  # two\n", &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 3: 'c:d e:f'"));
	assert_int_equal(parse("a:b\n\x7f" "ELF\x02\x01", &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2: byte 0x7f"));
	assert_int_equal(eventspec_parse_file("a:b\n\0c", 6, collect, &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2: byte 0x00"));
	assert_int_equal(parse("a:b,c:d\n", &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 1"));
	buf_done(&out);
}

static void a_line_of_a_megabyte(void **state)
{
	size_t n = 1 << 20;
	char *text = malloc(n + 1);
	struct buf out = { 0 };
	struct err err = { 0 };

	memset(text, 'x', n);
	text[n] = 0;
	assert_int_equal(parse(text, &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 1"));
	assert_true(strlen(err.text) < 200);
	text[0] = '#';
	assert_int_equal(parse(text, &out, &err), 0);
	assert_int_equal(out.n, 0);
	free(text);
}

static int stop(void *context, const char *word, unsigned line, struct err *err)
{
	++*(int *)context;
	return -ECANCELED;
}

static void the_caller_may_stop(void **state)
{
	int calls = 0;

	assert_int_equal(eventspec_parse_file("a:b\nc:d\n", 8, stop, &calls, NULL), -ECANCELED);
	assert_int_equal(calls, 1);
}

static int parses(void *context, const char *word, unsigned line, struct err *err)
{
	struct eventspec e;
	int r = eventspec_parse(word, &e, err);

	eventspec_done(&e);
	++*(size_t *)context;
	return r;
}

static void the_shipped_files(void **state)
{
	static const char *const names[] = { "offcpu-events", "offcpu-events-contextswitches",
					     "offcpu-events-iobandwidth", "offcpu-events-pagefaults" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[512], *text;
		size_t n, events = 0;

		snprintf(path, sizeof(path), CONFIGS_DIR "/%s.conf", names[i]);
		assert_int_equal(fd_read_path(path, 1 << 20, &text, &n), 0);
		assert_int_equal(eventspec_parse_file(text, n, parses, &events, NULL), 0);
		assert_true(events >= 2);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tracepoint),
		cmocka_unit_test(an_event_with_a_name),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(every_name_is_an_event),
		cmocka_unit_test(comments_blanks_and_line_ends),
		cmocka_unit_test(garbage_is_told_with_its_line),
		cmocka_unit_test(a_line_of_a_megabyte),
		cmocka_unit_test(the_caller_may_stop),
		cmocka_unit_test(the_shipped_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
