/*
 * zsh.c - completion for zsh: a function for each command, which gives _arguments its table.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/completion/completion.h"

static void begin(struct buf *b)
{
	buf_puts(b, "#compdef gasflame\n"
		    "# zsh completion for gasflame; made by: gasflame help --completion zsh\n"
		    "\n"
		    "# Names are strangers': compadd quotes them, nothing expands them.\n"
		    "_gasflame_targets()\n"
		    "{\n"
		    "\tlocal -a names\n"
		    "\tnames=(${(f)\"$(${(Q)words_gasflame} ps --names 2>/dev/null)\"})\n"
		    "\tcompadd -J targets -X target -a names\n"
		    "}\n"
		    "\n");
}

/* What _arguments does for a value or an operand. */
static void put_action(struct buf *b, unsigned completes, const char *const *words)
{
	if (completes & COMPLETES_WORDS) {
		buf_puts(b, completes & COMPLETES_LIST ? "_values -s , word" : "(");
		for (size_t i = 0; words[i]; i++)
			buf_printf(b, "%s%s", i || completes & COMPLETES_LIST ? " " : "", words[i]);
		buf_puts(b, completes & COMPLETES_LIST ? "" : ")");
	} else if (completes & COMPLETES_TARGETS && completes & (COMPLETES_FILES | COMPLETES_FOLDERS)) {
		buf_puts(b, "_alternative targets\\:target\\:_gasflame_targets files\\:file\\:_files");
	} else if (completes & COMPLETES_TARGETS) {
		buf_puts(b, "_gasflame_targets");
	} else if (completes & COMPLETES_FILES) {
		buf_puts(b, "_files");
	} else if (completes & COMPLETES_FOLDERS) {
		buf_puts(b, "_files -/");
	} else {
		buf_putc(b, ' ');
	}
}

static void put_option(struct buf *b, const struct option_spec *o)
{
	_cleanup_free_ char *line = completion_line(o->help ? o->help : "");
	_cleanup_(buf_done) struct buf action = { 0 };
	bool value = o->type != OPTION_FLAG;

	buf_puts(b, " \\\n\t\t");
	/* A list may be given again; of all else the one excludes the other. */
	if (o->type == OPTION_LIST)
		buf_puts(b, "\\*");
	else if (o->letter)
		buf_printf(b, "'(-%c --%s)'", o->letter, o->name);
	if (o->letter)
		buf_printf(b, "{-%c%s,--%s%s}", o->letter, value ? "+" : "", o->name, value ? "=" : "");
	else
		buf_printf(b, "--%s%s", o->name, value ? "=" : "");
	buf_puts(b, "'[");
	for (const char *p = line; *p; p++) {
		if (strchr("[]:\\", *p))
			buf_putc(b, '\\');
		buf_puts(b, *p == '\'' ? "'\\''" : (char[]){ *p, 0 });
	}
	buf_putc(b, ']');
	if (value) {
		put_action(&action, completion_of_option(o), completion_words(o));
		buf_putc(b, ':');
		for (const char *p = o->argument ? o->argument : "VALUE"; *p; p++) {
			if (*p == ':')
				buf_putc(b, '\\');
			buf_putc(b, *p);
		}
		buf_printf(b, ":%s", action.data);
	}
	buf_putc(b, '\'');
}

static void command(struct buf *b, const struct command *c, const struct option_spec *options)
{
	unsigned operands = completion_of_operands(c);

	buf_puts(b, "_gasflame_");
	completion_identifier(b, c->name);
	buf_puts(b, "()\n{\n");
	if (operands & COMPLETES_COMMAND)
		/* Behind -- it is another program's command line. */
		buf_puts(b, "\tlocal -i dashes=${words[(i)--]}\n"
			    "\tif ((dashes < CURRENT)); then\n"
			    "\t\twords=(\"${(@)words[dashes + 1, -1]}\")\n"
			    "\t\tCURRENT=$((CURRENT - dashes))\n"
			    "\t\t_normal\n"
			    "\t\treturn\n"
			    "\tfi\n");
	for (size_t i = 0; c->parts && c->parts[i]; i++) {
		buf_printf(b, "\tif [[ ${words[2]} == %s ]] && ((CURRENT > 2)); then\n\t\tshift words\n\t\t((CURRENT--))\n\t\t_gasflame_",
			   strchr(c->parts[i]->name, ' ') + 1);
		completion_identifier(b, c->parts[i]->name);
		buf_puts(b, "\n\t\treturn\n\tfi\n");
	}
	buf_puts(b, "\t_arguments -s -S");
	for (const struct option_spec *o = completion_next(options, NULL); o; o = completion_next(options, o))
		put_option(b, o);
	if (c->parts) {
		buf_puts(b, " \\\n\t\t'1:part:_alternative \"parts\\:part\\:(");
		for (size_t i = 0; c->parts[i]; i++)
			buf_printf(b, "%s%s", i ? " " : "", strchr(c->parts[i]->name, ' ') + 1);
		buf_puts(b, ")\"");
		buf_puts(b, operands & COMPLETES_FILES ? " files\\:file\\:_files'" : "'");
	}
	buf_puts(b, " \\\n\t\t'*:operand:");
	put_action(b, operands, NULL);
	buf_puts(b, "'\n}\n\n");
}

static void end(struct buf *b)
{
	buf_puts(b, "_gasflame_commands()\n{\n\tlocal -a commands=(\n");
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++) {
			_cleanup_free_ char *line = mem_printf("%s:%s", g->commands[i]->name, g->commands[i]->summary);

			buf_puts(b, "\t\t");
			completion_quote(b, line, "");
			buf_putc(b, '\n');
		}
	buf_puts(b, "\t\t'help:the options of a command'\n\t)\n\t_describe command commands\n}\n\n"
		    "_gasflame()\n"
		    "{\n"
		    "\tlocal curcontext=$curcontext state words_gasflame=${words[1]}\n"
		    "\t_arguments -C -S '(- *)'{-h,--help}'[what it can do]' '(- *)'{-V,--version}'[which one it is]' \\\n"
		    "\t\t'(-q --quiet)'{-q,--quiet}'[say only what went wrong]' '(-v --verbose)'{-v,--verbose}'[say more]' \\\n"
		    "\t\t'1:command:_gasflame_commands' '*:: :->rest' && return\n"
		    "\t[[ $state == rest ]] || return 1\n"
		    "\tif [[ ${words[1]} == help ]]; then\n"
		    "\t\t_gasflame_commands\n"
		    "\telif ((${+functions[_gasflame_${words[1]//-/_}]})); then\n"
		    "\t\t_gasflame_${words[1]//-/_}\n"
		    "\telse\n"
		    "\t\t_files\n"
		    "\tfi\n"
		    "}\n"
		    "\n"
		    "# Loaded by compinit, or sourced.\n"
		    "if [[ ${funcstack[1]} == _gasflame ]]; then _gasflame \"$@\"; else compdef _gasflame gasflame; fi\n");
}

const struct completion_shell completion_zsh = { "zsh", begin, command, end };
