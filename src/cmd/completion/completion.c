#include "cmd/completion/completion.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#ifdef GASFLAME_COLLECTORS
#include "collect/collectors.h"
#endif

extern const struct completion_shell completion_bash, completion_fish, completion_zsh;
static const struct completion_shell *const shells[] = { &completion_bash, &completion_fish, &completion_zsh };

/* In the text of --help; an argument may name several: FILE|PID. */
static const struct {
	const char *word;
	unsigned completes;
} meanings[] = {
	{ "TARGET", COMPLETES_TARGETS }, { "PID", COMPLETES_TARGETS },     { "FILE", COMPLETES_FILES },
	{ "PATH", COMPLETES_FILES },     { "CONFIGURATION", COMPLETES_FILES }, { "CAPTURE", COMPLETES_FILES },   { "BEFORE", COMPLETES_FILES },
	{ "A B", COMPLETES_FILES },      { "FOLDER", COMPLETES_FOLDERS },  { "DIR", COMPLETES_FOLDERS },
	{ "-- COMMAND", COMPLETES_COMMAND },
};

static unsigned meaning_of(const char *s)
{
	unsigned found = 0;

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (strstr(s, meanings[i].word))
			found |= meanings[i].completes;
	return found;
}

unsigned completion_of_operands(const struct command *c)
{
	return meaning_of(c->usage);
}

unsigned completion_of_option(const struct option_spec *o)
{
	const char *const *words = completion_words(o);

	if (words)
		return COMPLETES_WORDS | (o->type == OPTION_CHOICE ? 0 : COMPLETES_LIST);
	if (o->type != OPTION_STRING && o->type != OPTION_LIST)
		return 0;
	return meaning_of(o->argument ? o->argument : "");
}

#ifdef GASFLAME_COLLECTORS
/* Those that nobody names: they record what other options ask for. */
static bool is_silent(const char *collector)
{
	return !strcmp(collector, "event") || !strcmp(collector, "marker") || !strcmp(collector, "span");
}
#endif

const char *const *completion_words(const struct option_spec *o)
{
#ifdef GASFLAME_COLLECTORS
#define COLLECTOR_NAME(name) #name,
	static const char *const all[] = { COLLECTORS(COLLECTOR_NAME) };
#undef COLLECTOR_NAME
	static const char *collectors[ARRAY_LEN(all) + 1];
	size_t n = 0;

	if (o->type == OPTION_STRING && !strcmp(o->name, "event")) {
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			if (!is_silent(all[i]))
				collectors[n++] = all[i];
		return collectors;
	}
#endif
	return o->type == OPTION_CHOICE ? o->choices : NULL;
}

const struct option_spec *completion_next(const struct option_spec *options, const struct option_spec *o)
{
	bool common = false;

	for (const struct option_spec *k = options_common; k->name; k++)
		common = common || k == o;
	o = o ? o + 1 : options;
	if (!common && !o->name) {
		o = options_common;
		common = true;
	}
	while (common && o->name && options_replace(options, o))
		o++;
	return o->name ? o : NULL;
}

char *completion_line(const char *help)
{
	enum { LONG = 72 };
	size_t n = strcspn(help, ";\n"), word;

	if (n <= LONG)
		return mem_strndup(help, n);
	for (word = LONG - 3; word && help[word] != ' ';)
		word--;
	while (word && strchr(" ,:(", help[word - 1]))
		word--;
	return mem_printf("%.*s...", (int)word, help);
}

void completion_quote(struct buf *b, const char *s, const char *extra)
{
	buf_putc(b, '\'');
	for (; *s; s++) {
		if (*s == '\'') {
			buf_puts(b, "'\\''");
			continue;
		}
		if (strchr(extra, *s))
			buf_putc(b, '\\');
		buf_putc(b, *s);
	}
	buf_putc(b, '\'');
}

void completion_identifier(struct buf *b, const char *name)
{
	for (; *name; name++)
		buf_putc(b, *name == ' ' || *name == '-' ? '_' : *name);
}

/* Between completion_print() and command_table: the tables of options are known only while their command runs. */
static const struct completion_shell *shell;
static struct buf script;

static void take_table(const struct command *c, const struct option_spec *options)
{
	shell->command(&script, c, options);
}

static void run(const struct command *c)
{
	char *argv[] = { (char *)c->name, "--help-table", NULL };

	c->run(c, 2, argv);
}

bool completion_print(const char *name)
{
	shell = NULL;
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(shells[i]->name, name))
			shell = shells[i];
	if (!shell)
		return false;
	command_table = take_table;
	shell->begin(&script);
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++) {
			run(g->commands[i]);
			for (size_t k = 0; g->commands[i]->parts && g->commands[i]->parts[k]; k++)
				run(g->commands[i]->parts[k]);
		}
	shell->end(&script);
	fwrite(script.data, 1, script.n, stdout);
	buf_done(&script);
	return true;
}
