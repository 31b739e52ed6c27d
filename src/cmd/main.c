/*
 * main.c - the table of commands, and the choice among them.
 */
#include <nss.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/version.h"
#include "cmd/built.h"
#include "cmd/cmd.h"
#include "cmd/captures/newest.h"
#include "cmd/completion/completion.h"
#include "cmd/opener.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "cmd/reading/reading.h"
#include "cmd/reading/storeargs.h"
#include "cmd/recording/output.h"

extern const struct command command_agent, command_bench, command_blocks, command_clean, command_collapse, command_compare, command_detach, command_diff,
	command_difffolded, command_doctor, command_events, command_flamegraph, command_formats, command_heap, command_import,
	command_limit, command_ls, command_mem, command_ps, command_query, command_record, command_replay, command_report,
	command_run,
	command_serve, command_stat, command_store, command_symbols, command_top, command_watch;

const struct command_group command_groups[] = {
#ifdef GASFLAME_COLLECTORS
	{ "Recording:", { &command_record, &command_run, &command_agent, &command_events, &command_detach } },
#endif
	{ "Reports:", { &command_report, &command_blocks, &command_serve, &command_top, &command_diff,
		       &command_watch, &command_query } },
	{ "Memory:", { &command_heap,
#ifdef GASFLAME_COLLECTORS
		      &command_mem, &command_limit,
#endif
	} },
	{ "Benchmarks:", { &command_bench, &command_compare, &command_replay, &command_stat } },
	{ "Captures:", { &command_ls, &command_clean, &command_import, &command_formats, &command_store } },
	{ "Folded stacks:", { &command_flamegraph, &command_difffolded, &command_collapse } },
	{ "This machine:", { &command_ps, &command_doctor, &command_symbols } },
	{ 0 },
};

/* The command that words name; *ret_used is how many words that takes ("heap dump" is two). NULL: there is none. */
static const struct command *find_command(int n, char **words, int *ret_used)
{
	const struct command *found = NULL;

	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			if (!strcmp(g->commands[i]->name, words[0]))
				found = g->commands[i];
	*ret_used = 1;
	for (size_t i = 0; found && n > 1 && found->parts && found->parts[i]; i++)
		if (!strcmp(strchr(found->parts[i]->name, ' ') + 1, words[1])) {
			*ret_used = 2;
			return found->parts[i];
		}
	return found;
}

static int unknown_command(const char *name)
{
	const char *nearest = "help";
	size_t best = str_distance(name, nearest);

	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++) {
			size_t d = str_distance(name, g->commands[i]->name);

			if (d < best) {
				best = d;
				nearest = g->commands[i]->name;
			}
		}
	if (best <= strlen(name) / 3 + 1)
		log_error("there is no command %s; did you mean %s?", name, nearest);
	else
		log_error("there is no command %s; gasflame help lists them", name);
	return EXIT_USAGE;
}

/* Every command, a line each, for the build, which makes a page of the manual for each. */
static void list_commands(void)
{
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++) {
			puts(g->commands[i]->name);
			for (size_t k = 0; g->commands[i]->parts && g->commands[i]->parts[k]; k++)
				puts(g->commands[i]->parts[k]->name);
		}
}

/* help, help COMMAND. help --completion SHELL. For the build: help --commands, help --man [COMMAND]. */
static int help(int argc, char **argv)
{
	bool man = argc > 1 && !strcmp(argv[1], "--man");
	char **words = argv + 1 + man, *page[] = { NULL, man ? "--help-man" : "--help", NULL };
	int n = argc - 1 - man, used;
	const struct command *c;

	if (n > 0 && !strcmp(words[0], "--commands")) {
		list_commands();
		return EXIT_OK;
	}
	if (n > 0 && !strcmp(words[0], "--completion")) {
		if (n == 2 && completion_print(words[1]))
			return EXIT_OK;
		log_error("--completion wants bash, fish or zsh (gasflame help --completion bash)");
		return EXIT_USAGE;
	}
	if (n <= 0 || !strcmp(words[0], "--help") || !strcmp(words[0], "help")) {
		man ? program_man() : program_help();
		return EXIT_OK;
	}
	c = find_command(n, words, &used);
	if (!c)
		return unknown_command(words[0]);
	page[0] = (char *)c->name;
	return c->run(c, 2, page);
}

/* 0: argv[*at] is the command. Else -1 - exit code, as options_parse() has it. */
static int global_options(int argc, char **argv, int *at)
{
	for (; *at < argc && argv[*at][0] == '-'; ++*at) {
		const char *a = argv[*at];

		if (!strcmp(a, "--help") || !strcmp(a, "-h")) {
			program_help();
			return -1 - EXIT_OK;
		}
		if (!strcmp(a, "--version") || !strcmp(a, "-V")) {
			printf("gasflame %s\n", gasflame_version);
			return -1 - EXIT_OK;
		}
		if (!strcmp(a, "-q") || !strcmp(a, "--quiet")) {
			log_set_level(LOG_QUIET);
		} else if (!strcmp(a, "-v") || !strcmp(a, "--verbose")) {
			log_set_level(LOG_VERBOSE);
		} else {
			log_error("unknown option %s before the command; gasflame --help lists them", a);
			return -1 - EXIT_USAGE;
		}
	}
	return 0;
}

static int dispatch(int argc, char **argv)
{
	const struct command *c;
	int at = 1, used, r;

	r = global_options(argc, argv, &at);
	if (r)
		return -r - 1;
	if (at >= argc) {
		program_help();
		return EXIT_OK;
	}
	if (!strcmp(argv[at], "help"))
		return help(argc - at, argv + at);
	c = find_command(argc - at, argv + at, &used);
	if (!c)
		return unknown_command(argv[at]);
	at += used - 1;
	return c->run(c, argc - at, argv + at);
}

/* With --open; a command that reads names its page on the command line, one that records knows its file later. */
static int start_opener(const struct command *c, const struct option_spec *options,
			const struct command_operands *operands, struct err *err)
{
	const struct option_spec *open = options_find(options, "open"), *output = options_find(options, "output");
	_cleanup_free_ char *page = NULL;

	if (!open || !*(bool *)open->value)
		return 0;
	if (!c->keeps_rights && operands->n)
		page = *(char **)output->value ? mem_strdup(*(char **)output->value)
		                               : captureio_beside(operands->v[0], ".html");
	return opener_start(page, err);
}

/* A command whose table says nothing about rights gets the fewest. */
static int begin(const struct command *c, const struct option_spec *options, struct command_operands *operands)
{
	const struct option_spec *store = options_find(options, "store");
	struct err err = { 0 };

	if (store && *(char **)store->value)
		input_hide(*(char **)store->value);
	if (storeargs_complete(c, options, operands, &err)) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	/* Before another process is started, which would keep them in the list of processes. */
	for (int i = 0; i < operands->n; i++)
		if (input_is_store(operands->v[i]))
			input_hide(operands->v[i]);
	if (newest_complete(c, options, operands, output_owner(), &err)) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	if (start_opener(c, options, operands, &err)) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return c->keeps_rights ? 0 : reading_begin(c, options, operands->v, operands->n);
}

int main(int argc, char **argv)
{
	int r;

	gasflame_version = built_version;
#ifdef GASFLAME_STATIC
	/* Names of hosts and users by what is in this program: glibc would load the machine's modules for the rest, and
	 * those want the machine's own libc. */
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
#endif
	command_begin = begin;
	r = dispatch(argc, argv);

	/* A full disk behind stdout must not look like success. */
	if ((fflush(stdout) || ferror(stdout)) && r == EXIT_OK) {
		log_error("cannot write to the standard output");
		r = EXIT_ERROR;
	}
	return r;
}
