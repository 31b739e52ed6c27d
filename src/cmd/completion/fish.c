/*
 * fish.c - completion for fish 3: a line for each option, with the command that it belongs to as its condition.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/completion/completion.h"

static void begin(struct buf *b)
{
	buf_puts(b, "# fish completion for gasflame; made by: gasflame help --completion fish\n"
		    "\n"
		    "# The command on the line, with its second word where it has one; nothing before it, or behind --.\n"
		    "function __gasflame_command\n"
		    "\tset -l words (commandline -opc)\n"
		    "\tset -e words[1]\n"
		    "\tcontains -- -- $words; and return\n"
		    "\twhile set -q words[1]; and string match -q -- '-*' $words[1]\n"
		    "\t\tset -e words[1]\n"
		    "\tend\n"
		    "\tset -q words[1]; or return\n"
		    "\tif set -q words[2]; and contains -- \"$words[1] $words[2]\"");
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			for (size_t k = 0; g->commands[i]->parts && g->commands[i]->parts[k]; k++)
				buf_printf(b, " '%s'", g->commands[i]->parts[k]->name);
	buf_puts(b, "\n"
		    "\t\techo \"$words[1] $words[2]\"\n"
		    "\telse\n"
		    "\t\techo $words[1]\n"
		    "\tend\n"
		    "end\n"
		    "\n"
		    "function __gasflame_is\n"
		    "\ttest (__gasflame_command | string collect -a) = \"$argv\"\n"
		    "end\n"
		    "\n"
		    "# fish quotes what it takes from a command.\n"
		    "function __gasflame_targets\n"
		    "\tset -l program (commandline -opc)[1]\n"
		    "\tcommand $program ps --names 2>/dev/null\n"
		    "end\n"
		    "\n"
		    "# What is written already, up to its last comma, with each of the words behind it.\n"
		    "function __gasflame_list\n"
		    "\tset -l before (string match -r '.*,' -- (string replace -r '^--[a-z-]+=|^-[a-z]' '' -- (commandline -ct)))\n"
		    "\tfor word in $argv\n"
		    "\t\tcontains -- $word (string split , -- \"$before\"); or echo \"$before$word\"\n"
		    "\tend\n"
		    "end\n"
		    "\n"
		    "function __gasflame_behind\n"
		    "\tset -l words (commandline -opc)\n"
		    "\tcontains -- -- $words\n"
		    "end\n"
		    "\n"
		    "# What fish knows of the command behind --.\n"
		    "function __gasflame_other\n"
		    "\tset -l words (commandline -opc)\n"
		    "\tset -l at (contains -i -- -- $words); or return\n"
		    "\tset -e words[1..$at]\n"
		    "\tcomplete -C (string join -- ' ' (string escape -- $words) (commandline -ct))\n"
		    "end\n"
		    "\n"
		    "complete -c gasflame -f\n"
		    "complete -c gasflame -n __gasflame_behind -F -a '(__gasflame_other)'\n"
		    "complete -c gasflame -n '__gasflame_is \"\"; and not __gasflame_behind' -s h -l help -d 'what it can do'\n"
		    "complete -c gasflame -n '__gasflame_is \"\"; and not __gasflame_behind' -s V -l version -d 'which one it is'\n");
}

static void put_is(struct buf *b, const struct command *c)
{
	buf_printf(b, "complete -c gasflame -n '__gasflame_is %s'", c->name);
}

static void put_option(struct buf *b, const struct command *c, const struct option_spec *o)
{
	_cleanup_free_ char *line = completion_line(o->help ? o->help : "");
	const char *const *words = completion_words(o);
	unsigned completes = completion_of_option(o);

	put_is(b, c);
	if (o->letter)
		buf_printf(b, " -s %c", o->letter);
	buf_printf(b, " -l %s -d ", o->name);
	completion_quote(b, line, "\\");
	if (completes & COMPLETES_WORDS) {
		buf_puts(b, completes & COMPLETES_LIST ? " -x -a '(__gasflame_list" : " -x -a '");
		for (size_t i = 0; words[i]; i++)
			buf_printf(b, "%s%s", i || completes & COMPLETES_LIST ? " " : "", words[i]);
		buf_puts(b, completes & COMPLETES_LIST ? ")'" : "'");
	} else if (completes & COMPLETES_TARGETS) {
		buf_puts(b, " -x -a '(__gasflame_targets)'");
	} else if (completes & COMPLETES_FILES) {
		buf_puts(b, " -r -F");
	} else if (completes & COMPLETES_FOLDERS) {
		buf_puts(b, " -x -a '(__fish_complete_directories (commandline -ct))'");
	} else if (o->type != OPTION_FLAG) {
		buf_puts(b, " -x");
	}
	buf_putc(b, '\n');
}

static void command(struct buf *b, const struct command *c, const struct option_spec *options)
{
	unsigned operands = completion_of_operands(c);

	if (!strchr(c->name, ' ')) {
		buf_printf(b, "complete -c gasflame -n '__gasflame_is \"\"; and not __gasflame_behind' -a %s -d ", c->name);
		completion_quote(b, c->summary, "\\");
		buf_putc(b, '\n');
	}
	for (size_t i = 0; c->parts && c->parts[i]; i++) {
		put_is(b, c);
		buf_printf(b, " -a %s -d ", strchr(c->parts[i]->name, ' ') + 1);
		completion_quote(b, c->parts[i]->summary, "\\");
		buf_putc(b, '\n');
	}
	for (const struct option_spec *o = completion_next(options, NULL); o; o = completion_next(options, o))
		put_option(b, c, o);
	if (operands & COMPLETES_TARGETS) {
		put_is(b, c);
		buf_puts(b, " -a '(__gasflame_targets)'\n");
	}
	if (operands & (COMPLETES_FILES | COMPLETES_FOLDERS)) {
		put_is(b, c);
		buf_puts(b, " -F\n");
	}
}

static void end(struct buf *b)
{
	buf_puts(b, "complete -c gasflame -n '__gasflame_is \"\"; and not __gasflame_behind' -a help -d 'the options of a command'\n"
		    "complete -c gasflame -n '__gasflame_is help' -a '");
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			buf_printf(b, "%s ", g->commands[i]->name);
	buf_puts(b, "'\n");
}

const struct completion_shell completion_fish = { "fish", begin, command, end };
