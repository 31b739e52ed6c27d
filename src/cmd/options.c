#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text/str.h"

enum { PARSED_HELP = -1, PARSED_ERROR = -3 };

struct command_operands command_operands;
void (*command_table)(const struct command *c, const struct option_spec *options);
int (*command_begin)(const struct command *c, const struct option_spec *options, struct command_operands *operands);

/* The options that every command takes beside its own. */
enum implied { IMPLIED_NONE, IMPLIED_HELP, IMPLIED_MAN, IMPLIED_TABLE, IMPLIED_QUIET, IMPLIED_VERBOSE };
static const struct {
	char letter;
	const char *name;
	enum implied what;
} implied_options[] = {
	{ 'h', "help", IMPLIED_HELP },
	{ 0, "help-man", IMPLIED_MAN }, /* not shown: the manual's pages are made with it */
	{ 0, "help-table", IMPLIED_TABLE }, /* nor this: help --completion uses it */
	{ 'q', "quiet", IMPLIED_QUIET },
	{ 'v', "verbose", IMPLIED_VERBOSE },
};

static enum implied find_implied(char letter, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(implied_options); i++) {
		const char *candidate = implied_options[i].name;

		if (letter ? implied_options[i].letter == letter
			   : strlen(candidate) == n && !strncmp(candidate, name, n))
			return implied_options[i].what;
	}
	return IMPLIED_NONE;
}

static const struct option_spec *find_name(const struct option_spec *options, const char *name, size_t n)
{
	for (; options->name; options++)
		if (strlen(options->name) == n && !strncmp(options->name, name, n))
			return options;
	return NULL;
}

const struct option_spec *options_find(const struct option_spec *options, const char *name)
{
	return find_name(options, name, strlen(name));
}

static const struct option_spec *find_letter(const struct option_spec *options, char letter)
{
	for (; options->name; options++)
		if (options->letter == letter)
			return options;
	return NULL;
}

/* --- errors --- */

static int complain(const struct command *c, const char *text)
{
	log_error("%s (gasflame %s --help)", text, c->name);
	return PARSED_ERROR;
}

static int unknown_name(const struct command *c, const struct option_spec *options, const char *name,
			size_t n)
{
	_cleanup_free_ char *typed = mem_strndup(name, n), *text = NULL;
	const char *nearest = "help";
	size_t best = str_distance(typed, nearest);

	for (const struct option_spec *o = options; o->name; o++) {
		/* A beginning of the name counts as near: --sym for --symbols. */
		size_t d = n >= 3 && str_starts(o->name, typed) ? 1 : str_distance(typed, o->name);

		if (d < best) {
			best = d;
			nearest = o->name;
		}
	}
	if (best <= n / 3 + 1)
		text = mem_printf("unknown option --%s; did you mean --%s?", typed, nearest);
	else
		text = mem_printf("unknown option --%s", typed);
	return complain(c, text);
}

static char *join_choices(const char *const *choices)
{
	struct buf b = { 0 };

	for (size_t i = 0; choices[i]; i++)
		buf_printf(&b, "%s%s", !i ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
	return b.data;
}

/* "1..20000", or what else is wanted, in words. */
static char *describe_wanted(const struct option_spec *o)
{
	switch (o->type) {
	case OPTION_UINT:
		if (o->max)
			return mem_printf("%llu..%llu", (unsigned long long)o->min,
					  (unsigned long long)o->max);
		return mem_printf("a number from %llu up", (unsigned long long)o->min);
	case OPTION_DURATION:
		return mem_strdup("a time like 0.5, 30s, 2m or 7d");
	case OPTION_SIZE:
		return mem_strdup("a size like 512K or 8G");
	case OPTION_PERCENT:
		return mem_strdup("a percentage like 1% or 0.5");
	case OPTION_NUMBER:
		return mem_strdup("a number like 12 or 0.5");
	case OPTION_CHOICE:
		return join_choices(o->choices);
	case OPTION_MOMENT:
		return mem_strdup("a time");
	default:
		return mem_strdup(o->argument ? o->argument : "a value");
	}
}

/* --- values --- */

static int set_choice(const struct option_spec *o, const char *value)
{
	for (size_t i = 0; o->choices[i]; i++)
		if (!strcmp(o->choices[i], value)) {
			*(const char **)o->value = o->choices[i];
			return 0;
		}
	return -EINVAL;
}

static int set_value(const struct option_spec *o, const char *value)
{
	switch (o->type) {
	case OPTION_FLAG:
		*(bool *)o->value = true;
		return 0;
	case OPTION_STRING:
		*(const char **)o->value = value;
		return *value ? 0 : -EINVAL;
	case OPTION_LIST: {
		struct option_list *l = o->value;

		vec_push(&l->list, value);
		vec_push(&l->list, NULL);
		l->list.n--;
		return *value ? 0 : -EINVAL;
	}
	case OPTION_UINT:
		return str_parse_uint(value, o->min, o->max ? o->max : UINT64_MAX, o->value);
	case OPTION_DURATION:
		return str_parse_duration(value, o->value);
	case OPTION_SIZE:
		return str_parse_size(value, o->value);
	case OPTION_PERCENT:
		return str_parse_percent(value, o->value);
	case OPTION_NUMBER:
		return str_parse_number(value, o->value);
	case OPTION_CHOICE:
		return set_choice(o, value);
	case OPTION_MOMENT: {
		struct option_moment *m = o->value;

		m->text = value;
		if (str_parse_duration(value, &m->ns))
			m->ns = 0;
		return *value ? 0 : -EINVAL;
	}
	}
	return -EINVAL;
}

/* typed is the option as the user wrote it: "-F" or "--rate". */
static int take_value(const struct command *c, const struct option_spec *o, const char *typed,
		      const char *value)
{
	_cleanup_free_ char *wanted = NULL, *text = NULL;

	if (value && !set_value(o, value)) {
		if (o->given)
			*o->given = true;
		return 0;
	}
	wanted = describe_wanted(o);
	if (!value)
		text = mem_printf("%s wants %s%s%s", typed, o->argument ? o->argument : "a value",
				  o->type == OPTION_STRING || o->type == OPTION_LIST ? "" : ": ",
				  o->type == OPTION_STRING || o->type == OPTION_LIST ? "" : wanted);
	else
		text = mem_printf("%s wants %s, not %s", typed, wanted, *value ? value : "nothing");
	return complain(c, text);
}

/* --- the walk over argv --- */

struct parse {
	const struct command *command;
	const struct option_spec *options;
	int argc, at; /* at: the argument in hand */
	char **argv;
};

static int do_implied(const struct parse *p, enum implied what)
{
	switch (what) {
	case IMPLIED_HELP:
		command_help(p->command, p->options);
		return PARSED_HELP;
	case IMPLIED_MAN:
		command_man(p->command, p->options);
		return PARSED_HELP;
	case IMPLIED_TABLE:
		if (command_table)
			command_table(p->command, p->options);
		return PARSED_HELP;
	case IMPLIED_QUIET:
		log_set_level(LOG_QUIET);
		return 0;
	case IMPLIED_VERBOSE:
		log_set_level(LOG_VERBOSE);
		return 0;
	case IMPLIED_NONE:
		break;
	}
	return PARSED_ERROR;
}

/* --name, --name VALUE, --name=VALUE */
static int parse_long(struct parse *p)
{
	const char *name = p->argv[p->at] + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_spec *o = find_name(p->options, name, n);
	_cleanup_free_ char *typed = mem_printf("--%.*s", (int)n, name);
	enum implied what;

	if (o && o->type != OPTION_FLAG) {
		if (!equals && p->at + 1 < p->argc)
			return take_value(p->command, o, typed, p->argv[++p->at]);
		return take_value(p->command, o, typed, equals ? equals + 1 : NULL);
	}
	what = o ? IMPLIED_NONE : find_implied(0, name, n);
	if (!o && what == IMPLIED_NONE)
		return unknown_name(p->command, p->options, name, n);
	if (equals) {
		_cleanup_free_ char *text = mem_printf("%s takes no value", typed);

		return complain(p->command, text);
	}
	return o ? set_value(o, "") : do_implied(p, what);
}

/* -x, -xyz (flags), -xVALUE, -x VALUE */
static int parse_letters(struct parse *p)
{
	for (const char *s = p->argv[p->at] + 1; *s; s++) {
		const struct option_spec *o = find_letter(p->options, *s);
		char typed[] = { '-', *s, 0 };
		enum implied what;
		int r;

		if (o && o->type != OPTION_FLAG) {
			if (!s[1] && p->at + 1 < p->argc)
				return take_value(p->command, o, typed, p->argv[++p->at]);
			return take_value(p->command, o, typed, s[1] ? s + 1 : NULL);
		}
		what = o ? IMPLIED_NONE : find_implied(*s, NULL, 0);
		if (!o && what == IMPLIED_NONE) {
			_cleanup_free_ char *text = mem_printf("unknown option %s", typed);

			return complain(p->command, text);
		}
		r = o ? set_value(o, "") : do_implied(p, what);
		if (r)
			return r;
	}
	return 0;
}

int options_parse(const struct command *c, const struct option_spec *options, int argc, char **argv)
{
	struct parse p = { .command = c, .options = options, .argc = argc, .at = 1, .argv = argv };
	_cleanup_free_ char **operands = mem_resize(NULL, argc + 1, sizeof(char *));
	int count = 0, kept = 1;
	bool ended = false;

	for (; p.at < argc; p.at++) {
		char *arg = argv[p.at];
		int from = p.at, r;

		/* "-" alone is a file: the standard input or output. */
		if (*arg != '-' || !arg[1]) {
			operands[count++] = arg;
			continue;
		}
		if (!strcmp(arg, "--")) {
			ended = true;
			while (++p.at < argc)
				operands[count++] = argv[p.at];
			break;
		}
		r = arg[1] == '-' ? parse_long(&p) : parse_letters(&p);
		if (r)
			return r;
		while (from <= p.at)
			argv[kept++] = argv[from++];
	}
	if (ended)
		argv[kept++] = "--";
	memcpy(argv + kept, operands, count * sizeof(char *));
	command_operands = (struct command_operands){ argv + kept, count };
	if (command_begin) {
		int code = command_begin(c, options, &command_operands);

		if (code)
			return -1 - code;
	}
	return kept;
}
