/*
 * fuzz_options.c - a command line, a word a line, through the table of options of a command that has one of each type.
 *
 * Whatever is typed: options and operands are all there afterwards, numbers are within their bounds, choices are
 * among those offered.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"

enum { WORDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct command_group command_groups[] = { { 0 } };
static const struct command command = { .name = "try", .summary = "options", .usage = "[options] FILE...", .describe = "Tries.",
					.example = "gasflame try" };

static void expect(bool good)
{
	if (!good)
		abort();
}

static void swallow(void *context, const char *text)
{
}

/* What --help prints is not looked at. */
static void be_quiet(void)
{
	static bool quiet;

	if (!quiet && !freopen("/dev/null", "w", stdout))
		abort();
	quiet = true;
	log_set_sink(swallow, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const choices[] = { "html", "text", "", NULL };
	_cleanup_free_ char *text = mem_strndup((const char *)data, size);
	char *argv[WORDS + 2] = { "try" }, *next = text;
	const char *string = NULL, *choice = NULL;
	uint64_t number = 5, free_number = 7, duration = 1, bytes = 1;
	double percent = 50, any = 1;
	bool flag = false, found = false;
	struct option_list list = { 0 };
	const struct option_spec options[] = {
		{ 'f', "flag", OPTION_FLAG, &flag, .help = "a flag" },
		{ 's', "string", OPTION_STRING, &string, "TEXT", "a text" },
		{ 'l', "list", OPTION_LIST, &list, "TEXT", "texts" },
		{ 'n', "number", OPTION_UINT, &number, "N", "a number", 2, 9 },
		{ 0, "free", OPTION_UINT, &free_number, "N", "any number" },
		{ 'd', "duration", OPTION_DURATION, &duration, "TIME", "a time" },
		{ 'b', "bytes", OPTION_SIZE, &bytes, "SIZE", "a size" },
		{ 'p', "percent", OPTION_PERCENT, &percent, "PERCENT", "a share" },
		{ 0, "any", OPTION_NUMBER, &any, "NUMBER", "a number from 0 up" },
		{ 'c', "choice", OPTION_CHOICE, &choice, "CHOICE", "one of", .choices = choices },
		{ 0 },
	};
	int argc = 1, first;
	size_t given = 0, kept = 0;

	be_quiet();
	while (next && argc <= WORDS) {
		argv[argc] = next;
		next = strchr(next, '\n');
		if (next)
			*next++ = 0;
		given += strlen(argv[argc++]);
	}
	first = options_parse(&command, options, argc, argv);
	expect(first == -1 || first == -3 || (first >= 1 && first <= argc));
	for (int i = 1; first > 0 && i < argc; i++)
		kept += strlen(argv[i]);
	expect(first < 0 || kept == given);
	expect(number >= 2 && number <= 9 && any >= 0 && isfinite(any) && isfinite(percent));
	for (size_t i = 0; choice && choices[i]; i++)
		found |= choice == choices[i];
	expect(!choice || found);
	expect(!list.list.n || !list.list.v[list.list.n]);
	vec_done(&list.list);
	log_set_level(LOG_NORMAL);
	return 0;
}
