#include "test.h"

#include <unistd.h>

#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"

const struct command_group command_groups[] = { { 0 } };

static const struct command command = {
	.name = "try", .summary = "try things", .usage = "[options] FILE...",
	.describe = "First paragraph.\n\nSecond.", .example = "gasflame try -F 99 x",
};
static const char *const formats[] = { "folded", "svg", "text", NULL };

struct values {
	bool loud, all;
	const char *out, *format;
	struct option_list symbols;
	uint64_t rate, duration, size;
	double overhead;
	bool sized;
	int first;
	char **argv;
};

static char *caught; /* what the parser said */

/* Runs the parser on a line of words, with what it prints to fd caught in caught. */
static int parse(struct values *v, int fd, const char *line)
{
	static char words[1024];
	static char *argv[64];
	struct option_spec options[] = {
		{ 'l', "loud", OPTION_FLAG, &v->loud, .help = "shout" },
		{ 'a', "all", OPTION_FLAG, &v->all, .help = "everything" },
		{ 'o', "output", OPTION_STRING, &v->out, "FILE", "where to" },
		{ 'F', "rate", OPTION_UINT, &v->rate, "HZ", "samples a second", 1, 20000 },
		{ 'd', "duration", OPTION_DURATION, &v->duration, "TIME", "how long" },
		{ 0, "size", OPTION_SIZE, &v->size, "BYTES", "how large", .given = &v->sized },
		{ 0, "max-overhead", OPTION_PERCENT, &v->overhead, "PERCENT", "own cost" },
		{ 0, "format", OPTION_CHOICE, &v->format, "FORMAT", "of what kind", .choices = formats },
		{ 0, "symbols", OPTION_LIST, &v->symbols, "PATH", "where symbols are" },
		{ 0 },
	};
	FILE *catch = tmpfile();
	int argc = 0, saved = dup(fd);
	long n;

	*v = (struct values){
		.rate = 999, .duration = 60000000000, .overhead = 1, .format = "svg", .argv = argv
	};
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = strcmp(w, "''") ? w : "";
	argv[argc] = NULL;
	fflush(stdout);
	fflush(stderr);
	dup2(fileno(catch), fd);
	v->first = options_parse(&command, options, argc, argv);
	fflush(stdout);
	fflush(stderr);
	dup2(saved, fd);
	close(saved);
	n = lseek(fileno(catch), 0, SEEK_END);
	free(caught);
	caught = calloc(1, n + 1);
	assert_int_equal(pread(fileno(catch), caught, n, 0), n);
	fclose(catch);
	return argc - v->first;
}

static void every_form_of_an_option(void **state)
{
	struct values v;

	assert_int_equal(parse(&v, 2, "try -F 49 -d30s -la -o x --size=8G --max-overhead 0.5% --format text"),
			 0);
	assert_true(v.sized);
	assert_int_equal(v.rate, 49);
	assert_int_equal(v.duration, 30000000000);
	assert_true(v.loud && v.all);
	assert_string_equal(v.out, "x");
	assert_int_equal(v.size, 8ULL << 30);
	assert_true(v.overhead == 0.5);
	assert_string_equal(v.format, "text");
	assert_int_equal(parse(&v, 2, "try --output=a=b --rate=7 -lF8 --symbols one --symbols=two"), 0);
	assert_string_equal(v.out, "a=b");
	assert_int_equal(v.rate, 8);
	assert_int_equal(v.symbols.list.n, 2);
	assert_string_equal(v.symbols.list.v[1], "two");
	assert_null(v.symbols.list.v[2]);
	vec_done(&v.symbols.list);
}

static void defaults_stay(void **state)
{
	struct values v;

	assert_int_equal(parse(&v, 2, "try"), 0);
	assert_int_equal(v.first, 1);
	assert_int_equal(v.rate, 999);
	assert_string_equal(v.format, "svg");
	assert_null(v.out);
	assert_false(v.loud);
}

static void operands_are_moved_behind(void **state)
{
	struct values v;

	assert_int_equal(parse(&v, 2, "try one -F 5 - -l two"), 3);
	assert_string_equal(v.argv[v.first], "one");
	assert_string_equal(v.argv[v.first + 1], "-");
	assert_string_equal(v.argv[v.first + 2], "two");
	assert_null(v.argv[v.first + 3]);
	assert_int_equal(v.rate, 5);
	assert_true(v.loud);
	/* What follows "--" is nobody's option. */
	assert_int_equal(parse(&v, 2, "try -F 5 -- ./node -l --all"), 3);
	assert_string_equal(v.argv[v.first - 1], "--");
	assert_string_equal(v.argv[v.first], "./node");
	assert_string_equal(v.argv[v.first + 2], "--all");
	assert_false(v.loud || v.all);
	assert_int_equal(parse(&v, 2, "try --"), 0);
	assert_int_equal(parse(&v, 2, "try x -o f"), 1);
	assert_string_not_equal(v.argv[v.first - 1], "--");
}

static void expect_error(const char *line, const char *text)
{
	struct values v;

	parse(&v, 2, line);
	assert_int_equal(v.first, -3);
	assert_non_null(strstr(caught, text));
	vec_done(&v.symbols.list);
}

static void errors_say_what_is_wanted(void **state)
{
	expect_error("try -F 0", "-F wants 1..20000, not 0");
	expect_error("try --rate=20001", "--rate wants 1..20000, not 20001");
	expect_error("try -F-1", "not -1");
	expect_error("try -F 99x", "not 99x");
	expect_error("try -F", "-F wants HZ: 1..20000");
	expect_error("try -d soon", "-d wants a time like");
	expect_error("try --size 8Q", "--size wants a size like");
	expect_error("try --max-overhead 101%", "wants a percentage");
	expect_error("try --format xml", "--format wants folded, svg or text, not xml");
	expect_error("try --fromat xml", "unknown option --fromat; did you mean --format?");
	expect_error("try --sym x", "did you mean --symbols?");
	expect_error("try --helpp", "did you mean --help?");
	expect_error("try -z", "unknown option -z");
	expect_error("try -lz", "unknown option -z");
	expect_error("try --loud=yes", "--loud takes no value");
	expect_error("try --help=yes", "--help takes no value");
	expect_error("try -o", "-o wants FILE");
	expect_error("try -o ''", "-o wants FILE, not nothing");
	expect_error("try --=x", "unknown option --");
}

static void help_comes_from_the_table(void **state)
{
	struct values v;

	unsetenv("COLUMNS");
	parse(&v, 1, "try --help");
	assert_int_equal(v.first, -1);
	assert_non_null(strstr(caught, "usage: gasflame try [options] FILE...\n"));
	assert_non_null(
		strstr(caught, "  -F, --rate HZ           samples a second (1..20000, default 999)\n"));
	assert_non_null(strstr(caught, "how long (default 60s)"));
	assert_non_null(strstr(caught, "own cost (default 1%)"));
	assert_non_null(strstr(caught, "of what kind (folded|svg|text, default svg)"));
	assert_non_null(strstr(caught, "      --symbols PATH      where symbols are (may be repeated)"));
	assert_non_null(strstr(caught, "First paragraph.\n\nSecond.\n"));
	assert_non_null(strstr(caught, "Example:\n  gasflame try -F 99 x\n"));
	for (char *line = strtok(caught, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	setenv("COLUMNS", "40", 1);
	parse(&v, 1, "try -h");
	assert_int_equal(v.first, -1);
	assert_non_null(strstr(caught, "samples a\n                          second\n"));
	unsetenv("COLUMNS");
}

static void the_manual_comes_from_the_table(void **state)
{
	struct values v;

	parse(&v, 1, "try --help-man");
	assert_int_equal(v.first, -1);
	assert_non_null(strstr(caught, ".TH GASFLAME-TRY 1 "));
	assert_non_null(strstr(caught, ".B \\-F, \\-\\-rate HZ\nsamples a second (1..20000, default 999)\n"));
	assert_non_null(strstr(caught, "First paragraph.\n.PP\nSecond.\n"));
	assert_null(strstr(caught, "help\\-man"));
}

static void near_words(void **state)
{
	assert_int_equal(str_distance("record", "record"), 0);
	assert_int_equal(str_distance("recrod", "record"), 1);
	assert_int_equal(str_distance("Record", "record"), 0);
	assert_int_equal(str_distance("", "abc"), 3);
	assert_int_equal(str_distance("kitten", "sitting"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_option),
		cmocka_unit_test(defaults_stay),
		cmocka_unit_test(operands_are_moved_behind),
		cmocka_unit_test(errors_say_what_is_wanted),
		cmocka_unit_test(help_comes_from_the_table),
		cmocka_unit_test(the_manual_comes_from_the_table),
		cmocka_unit_test(near_words),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(caught);
	return failed;
}
