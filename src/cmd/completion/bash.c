/*
 * bash.c - completion for bash 4.4 and newer, without the package bash-completion.
 *
 * Each command is a branch of two cases: its options and operands, and what the value of an option may be.
 */
#include <string.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/completion/completion.h"

static struct buf values; /* the branches of the second case, until the first one is whole */

static void begin(struct buf *b)
{
	buf_puts(b, "# bash completion for gasflame; made by: gasflame help --completion bash\n"
		    "\n"
		    "# Names are strangers': compared and quoted, never expanded.\n"
		    "_gasflame_targets()\n"
		    "{\n"
		    "\tlocal name\n"
		    "\twhile IFS= read -r name; do\n"
		    "\t\t[[ $name == *:* || $name != \"$cur\"* ]] || COMPREPLY+=(\"$(printf %q \"$name\")\")\n"
		    "\tdone < <(\"${COMP_WORDS[0]}\" ps --names 2>/dev/null)\n"
		    "}\n"
		    "\n"
		    "_gasflame_files()\n"
		    "{\n"
		    "\tlocal name\n"
		    "\tcompopt -o filenames 2>/dev/null\n"
		    "\twhile IFS= read -r name; do COMPREPLY+=(\"$name\"); done < <(compgen \"$1\" -- \"$cur\")\n"
		    "}\n"
		    "\n"
		    "# _gasflame_words WORD...: of the program's own tables.\n"
		    "_gasflame_words()\n"
		    "{\n"
		    "\tlocal word\n"
		    "\tfor word; do [[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$word\"); done\n"
		    "}\n"
		    "\n"
		    "# The same, separated by commas.\n"
		    "_gasflame_list()\n"
		    "{\n"
		    "\tlocal before= word\n"
		    "\t[[ $cur != *,* ]] || before=${cur%,*},\n"
		    "\tcompopt -o nospace 2>/dev/null\n"
		    "\tfor word; do [[ $before$word != \"$cur\"* || ,$before == *,$word,* ]] || COMPREPLY+=(\"$before$word\"); done\n"
		    "}\n"
		    "\n"
		    "_gasflame_operands()\n"
		    "{\n"
		    "\tcase $1 in\n");
	values = (struct buf){ 0 };
}

static void put_actions(struct buf *b, unsigned completes)
{
	if (completes & COMPLETES_TARGETS)
		buf_puts(b, " _gasflame_targets;");
	if (completes & COMPLETES_FILES)
		buf_puts(b, " _gasflame_files -f;");
	else if (completes & COMPLETES_FOLDERS)
		buf_puts(b, " _gasflame_files -d;");
}

static void put_value(const struct option_spec *o)
{
	unsigned completes = completion_of_option(o);
	const char *const *words = completion_words(o);

	buf_puts(&values, "\t\t");
	if (o->letter)
		buf_printf(&values, "-%c | ", o->letter);
	buf_printf(&values, "--%s)", o->name);
	if (completes & COMPLETES_WORDS) {
		buf_puts(&values, completes & COMPLETES_LIST ? " _gasflame_list" : " _gasflame_words");
		for (size_t i = 0; words[i]; i++) {
			buf_putc(&values, ' ');
			completion_quote(&values, words[i], "");
		}
	}
	put_actions(&values, completes);
	buf_puts(&values, " ;;\n");
}

static void command(struct buf *b, const struct command *c, const struct option_spec *options)
{
	unsigned operands = completion_of_operands(c);

	buf_printf(b, "\t'%s')\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_gasflame_words", c->name);
	buf_printf(&values, "\t'%s') case $2 in\n", c->name);
	for (const struct option_spec *o = completion_next(options, NULL); o; o = completion_next(options, o)) {
		buf_printf(b, " --%s", o->name);
		if (o->letter)
			buf_printf(b, " -%c", o->letter);
		if (o->type != OPTION_FLAG)
			put_value(o);
	}
	buf_puts(&values, "\t\t*) return 1 ;;\n\t\tesac ;;\n");
	buf_puts(b, "\n\t\telse\n\t\t\t:;");
	if (c->parts) {
		buf_puts(b, " _gasflame_words");
		for (size_t i = 0; c->parts[i]; i++)
			buf_printf(b, " %s", strchr(c->parts[i]->name, ' ') + 1);
		buf_putc(b, ';');
	}
	put_actions(b, operands);
	buf_puts(b, "\n\t\tfi ;;\n");
}

static void put_names(struct buf *b)
{
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			buf_printf(b, " %s", g->commands[i]->name);
	buf_puts(b, " help");
}

static void put_parts(struct buf *b)
{
	const char *between = "";

	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			for (size_t k = 0; g->commands[i]->parts && g->commands[i]->parts[k]; k++, between = " | ")
				buf_printf(b, "%s'%s'", between, g->commands[i]->parts[k]->name);
}

static void end(struct buf *b)
{
	buf_puts(b, "\thelp) _gasflame_words");
	put_names(b);
	buf_puts(b, " ;;\n\tesac\n}\n\n"
		    "# Fails where $2 is no option of $1 that takes a value.\n"
		    "_gasflame_values()\n{\n\tcase $1 in\n");
	buf_add(b, values.data, values.n);
	buf_puts(b, "\t*) return 1 ;;\n\tesac\n}\n\n"
		    "_gasflame()\n"
		    "{\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
		    "\tCOMPREPLY=()\n"
		    "\t# --option=value comes as three words.\n"
		    "\tif [[ $cur == = ]]; then\n"
		    "\t\tcur=\n"
		    "\telif [[ $prev == = ]] && ((COMP_CWORD > 2)); then\n"
		    "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
		    "\tfi\n"
		    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		    "\t\tif [[ -z $command ]]; then\n"
		    "\t\t\t[[ ${COMP_WORDS[i]} == -* ]] || command=${COMP_WORDS[i]}\n"
		    "\t\telif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
		    "\t\t\t# The command line of another program.\n"
		    "\t\t\tif ((COMP_CWORD == i + 1)); then _gasflame_files -c; else _gasflame_files -f; fi\n"
		    "\t\t\treturn\n"
		    "\t\telse\n"
		    "\t\t\tcase \"$command ${COMP_WORDS[i]}\" in\n\t\t\t");
	put_parts(b);
	buf_puts(b, ") command=\"$command ${COMP_WORDS[i]}\" ;;\n"
		    "\t\t\tesac\n"
		    "\t\tfi\n"
		    "\tdone\n"
		    "\tif [[ -z $command ]]; then\n"
		    "\t\tif [[ $cur == -* ]]; then _gasflame_words --help --version --quiet --verbose; else _gasflame_words");
	put_names(b);
	buf_puts(b, "; fi\n"
		    "\t\treturn\n"
		    "\tfi\n"
		    "\t_gasflame_values \"$command\" \"$prev\" || _gasflame_operands \"$command\"\n"
		    "}\n"
		    "complete -F _gasflame gasflame\n");
	buf_done(&values);
}

const struct completion_shell completion_bash = { "bash", begin, command, end };
