/*
 * help.c - the tables of commands and options as text for a terminal and as pages of the manual.
 *
 * Both come from the same tables that the parser reads, so they cannot be out of date.
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "base/version.h"

static const struct {
	const char *command, *line, *remark;
} quick_start[] = {
	{ "record", "gasflame record -d 10 NAME", "10 s of a process, by name, pattern or pid: CPU and waits" },
	{ "report", "gasflame report", "where its time went, by the newest capture in this folder" },
	{ "doctor", "gasflame doctor NAME", "what this machine and that process allow" },
};

/* A build may lack some commands. */
static bool has_command(const char *name)
{
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++)
			if (!strcmp(g->commands[i]->name, name))
				return true;
	return false;
}

static const char *const exit_codes[][2] = {
	{ "0", "it was done" },
	{ "1", "an error; the message says why" },
	{ "2", "the command line is wrong" },
	{ "3", "the recording is there, but not fit to read; its quality line says why" },
	{ "4", "done, but the target ended before the time was over" },
	{ "5", "diff, watch --fail-on-change: something changed beyond noise" },
	{ "6", "run -e heap --fail-on-leak: so much was alive at the end" },
	{ "7", "compare --fail-on-slower: the second side is worse beyond noise" },
};

/* --- text --- */

int command_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		n = size.ws_col;
	else if (!columns || str_parse_uint(columns, 1, 10000, &n))
		n = 80;
	return n < 40 ? 40 : n > 110 ? 110 : (int)n;
}

void command_wrap(const char *s, int at, int indent, int width)
{
	bool first = true;

	while (*s) {
		size_t n;

		if (s[0] == '\n' && (s[1] == '\n' || s[1] == ' ')) {
			n = strcspn(s + 1, "\n");
			if (s[1] == '\n')
				printf("\n\n%*s", indent, "");
			else
				printf("\n%*s%.*s", indent, "", (int)n, s + 1);
			s += 1 + (s[1] == '\n' ? 1 : n);
			at = s[-1] == '\n' ? indent : width;
			first = s[-1] == '\n';
			continue;
		}
		if (isspace((unsigned char)*s)) {
			s++;
			continue;
		}
		n = strcspn(s, " \n");
		if (!first && at + 1 + (int)n > width) {
			printf("\n%*s", indent, "");
			at = indent;
			first = true;
		}
		printf("%s%.*s", first ? "" : " ", (int)n, s);
		at += (int)n + !first;
		first = false;
		s += n;
	}
	putchar('\n');
}

int command_failed(const struct err *err)
{
	log_error("%s", err->text);
	return err->code == EINVAL ? EXIT_USAGE : EXIT_ERROR;
}

static void print_heading(const char *s)
{
	bool bold = log_colour(STDOUT_FILENO);

	printf("\n%s%s%s\n", bold ? "\033[1m" : "", s, bold ? "\033[0m" : "");
}

/* Each line of s, indented. */
static void print_lines(const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "\n");

		printf("  %.*s\n", (int)n, s);
		s += n + (s[n] == '\n');
	}
}

/* --- facts about an option beside its help --- */

/* A duration as one would type it. */
static void add_duration(struct buf *b, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = { { 86400000000000, "d" }, { 3600000000000, "h" }, { 60000000000, "m" },
		      { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } };

	/* Two minutes and less are better in seconds. */
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (ns % units[i].ns == 0 && (ns / units[i].ns > 1 || units[i].ns <= 1000000000)) {
			buf_printf(b, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].unit);
			return;
		}
}

static void add_size(struct buf *b, uint64_t bytes)
{
	static const char units[] = "TGMK";

	for (int i = 0; units[i]; i++) {
		int shift = 40 - 10 * i;

		if (bytes >> shift && !(bytes & ((1ULL << shift) - 1))) {
			buf_printf(b, "%llu%c", (unsigned long long)(bytes >> shift), units[i]);
			return;
		}
	}
	buf_printf(b, "%llu", (unsigned long long)bytes);
}

static void add_default(struct buf *b, const struct option_spec *o)
{
	switch (o->type) {
	case OPTION_UINT:
		if (*(uint64_t *)o->value)
			buf_printf(b, "%llu", (unsigned long long)*(uint64_t *)o->value);
		break;
	case OPTION_DURATION:
		if (*(uint64_t *)o->value)
			add_duration(b, *(uint64_t *)o->value);
		break;
	case OPTION_SIZE:
		if (*(uint64_t *)o->value)
			add_size(b, *(uint64_t *)o->value);
		break;
	case OPTION_PERCENT:
		if (*(double *)o->value > 0)
			buf_printf(b, "%g%%", *(double *)o->value);
		break;
	case OPTION_NUMBER:
		if (*(double *)o->value > 0)
			buf_printf(b, "%g", *(double *)o->value);
		break;
	case OPTION_STRING:
	case OPTION_CHOICE:
		if (*(const char **)o->value)
			buf_puts(b, *(const char **)o->value);
		break;
	case OPTION_FLAG:
	case OPTION_LIST:
	case OPTION_MOMENT:
		break;
	}
}

/* "rate of samples (1..20000, default 999)" */
static char *describe_option(const struct option_spec *o)
{
	enum { MANY_CHOICES = 8 }; /* more than that want to be broken into lines */
	struct buf b = { 0 }, known = { 0 };
	bool many = false;

	buf_puts(&b, o->help ? o->help : "");
	buf_puts(&known, "");
	for (size_t i = 0; o->type == OPTION_CHOICE && o->choices[i]; i++)
		many = i >= MANY_CHOICES;
	if (o->type == OPTION_CHOICE)
		for (size_t i = 0; o->choices[i]; i++)
			buf_printf(&known, "%s%s", !i ? "" : many ? ", " : "|", o->choices[i]);
	if (o->type == OPTION_UINT && o->max)
		buf_printf(&known, "%llu..%llu", (unsigned long long)o->min, (unsigned long long)o->max);
	if (o->type == OPTION_LIST)
		buf_puts(&known, "may be repeated");
	if (o->type != OPTION_FLAG && o->type != OPTION_LIST) {
		struct buf value = { 0 };

		add_default(&value, o);
		if (value.n)
			buf_printf(&known, "%sdefault %s", !known.n ? "" : many ? "; " : ", ", value.data);
		buf_done(&value);
	}
	if (known.n)
		buf_printf(&b, " (%s)", known.data);
	buf_done(&known);
	return b.data;
}

static void add_flags(struct buf *b, const struct option_spec *o, const char *before, const char *after)
{
	if (o->letter)
		buf_printf(b, "%s-%c%s, ", before, o->letter, after);
	buf_printf(b, "%s--%s%s", before, o->name, after);
	if (o->type != OPTION_FLAG)
		buf_printf(b, " %s", o->argument ? o->argument : "VALUE");
}

/* --- --help --- */

const struct option_spec options_common[] = {
	{ 'q', "quiet", OPTION_FLAG, .help = "say only what went wrong" },
	{ 'v', "verbose", OPTION_FLAG, .help = "say more" },
	{ 'h', "help", OPTION_FLAG, .help = "this text" },
	{ 0 },
};

bool options_replace(const struct option_spec *options, const struct option_spec *common)
{
	for (; options && options->name; options++)
		if (options->letter == common->letter || !strcmp(options->name, common->name))
			return true;
	return false;
}

static void print_option(const struct option_spec *o, int width)
{
	enum { COLUMN = 26 };
	_cleanup_free_ char *text = describe_option(o);
	_cleanup_(buf_done) struct buf b = { 0 };

	buf_puts(&b, o->letter ? "  " : "      ");
	add_flags(&b, o, "", "");
	if (b.n + 2 > COLUMN)
		printf("%s\n%*s", b.data, COLUMN, "");
	else
		printf("%-*s", COLUMN, b.data);
	command_wrap(text, COLUMN, COLUMN, width);
}

void command_help(const struct command *c, const struct option_spec *options)
{
	int width = command_width();

	printf("usage: gasflame %s %s\n\n", c->name, c->usage);
	command_wrap(c->summary, 0, 0, width);
	if (c->describe) {
		putchar('\n');
		command_wrap(c->describe, 0, 0, width);
	}
	print_heading("Options:");
	for (const struct option_spec *o = options; o && o->name; o++)
		print_option(o, width);
	for (const struct option_spec *o = options_common; o->name; o++)
		if (!options_replace(options, o))
			print_option(o, width);
	if (c->example) {
		print_heading("Example:");
		print_lines(c->example);
	}
}

void program_help(void)
{
	int width = command_width();

	puts("usage: gasflame [-q | -v] COMMAND ...\n\nWhere a running program's time goes: no rebuild, no "
	     "restart.");
	for (const struct command_group *g = command_groups; g->title; g++) {
		print_heading(g->title);
		for (size_t i = 0; g->commands[i]; i++) {
			printf("  %-11s ", g->commands[i]->name);
			command_wrap(g->commands[i]->summary, 14, 14, width);
		}
	}
	print_heading("Quick start:");
	for (size_t i = 0; i < ARRAY_LEN(quick_start); i++)
		if (has_command(quick_start[i].command))
			printf("  %-28s # %s\n", quick_start[i].line, quick_start[i].remark);
	puts("\ngasflame help COMMAND, or gasflame COMMAND --help, tells more; gasflame --version, which "
	     "one it is.\nFor the Tab key: gasflame help --completion bash|zsh|fish prints a script of that shell.");
}

/* --- the manual --- */

/* Text for roff: no byte of it may be taken for a request. */
static void roff(struct buf *b, const char *s)
{
	for (bool start = true; *s; s++) {
		if (start && (*s == '.' || *s == '\''))
			buf_puts(b, "\\&");
		start = *s == '\n';
		if (*s == '\\')
			buf_puts(b, "\\e");
		else if (*s == '-')
			buf_puts(b, "\\-");
		else
			buf_putc(b, *s);
	}
}

/* Paragraphs as command_wrap takes them. */
static void roff_paragraphs(struct buf *b, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "\n");
		_cleanup_free_ char *line = mem_strndup(s, n);

		if (!n) {
			buf_puts(b, ".PP\n");
		} else if (*line == ' ') {
			buf_puts(b, ".br\n\\&");
			roff(b, line);
			buf_putc(b, '\n');
		} else {
			roff(b, line);
			buf_putc(b, '\n');
		}
		s += n + (s[n] == '\n');
	}
}

static void roff_example(struct buf *b, const char *s)
{
	buf_puts(b, ".nf\n.RS 4\n");
	while (*s) {
		size_t n = strcspn(s, "\n");
		_cleanup_free_ char *line = mem_strndup(s, n);

		roff(b, line);
		buf_putc(b, '\n');
		s += n + (s[n] == '\n');
	}
	buf_puts(b, ".RE\n.fi\n");
}

static void roff_option(struct buf *b, const struct option_spec *o)
{
	_cleanup_free_ char *text = describe_option(o);
	_cleanup_(buf_done) struct buf flags = { 0 };

	add_flags(&flags, o, "", "");
	buf_puts(b, ".TP\n.B ");
	roff(b, flags.data);
	buf_putc(b, '\n');
	roff(b, text);
	buf_putc(b, '\n');
}

static void roff_exit_codes(struct buf *b)
{
	buf_puts(b, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < ARRAY_LEN(exit_codes); i++) {
		buf_printf(b, ".TP\n.B %s\n", exit_codes[i][0]);
		roff(b, exit_codes[i][1]);
		buf_putc(b, '\n');
	}
}

static void roff_title(struct buf *b, const char *name, const char *summary)
{
	_cleanup_(buf_done) struct buf upper = { 0 };

	for (const char *p = name; *p; p++)
		buf_putc(&upper, toupper((unsigned char)*p));
	buf_printf(b, ".TH %s 1 \"\" \"gasflame %s\" \"gasflame\"\n.SH NAME\n", upper.data,
		   gasflame_version);
	roff(b, name);
	buf_puts(b, " \\- ");
	roff(b, summary);
	buf_puts(b, "\n.SH SYNOPSIS\n.B ");
}

/* "gasflame-heap-dump" for "heap dump". */
static char *page_name(const struct command *c)
{
	char *name = mem_printf("gasflame-%s", c->name);

	for (char *p = name; *p; p++)
		*p = *p == ' ' ? '-' : *p;
	return name;
}

void command_man(const struct command *c, const struct option_spec *options)
{
	_cleanup_free_ char *name = page_name(c);
	_cleanup_(buf_done) struct buf b = { 0 };

	roff_title(&b, name, c->summary);
	buf_puts(&b, "gasflame ");
	roff(&b, c->name);
	buf_puts(&b, "\n");
	roff(&b, c->usage);
	buf_putc(&b, '\n');
	if (c->describe) {
		buf_puts(&b, ".SH DESCRIPTION\n");
		roff_paragraphs(&b, c->describe);
	}
	buf_puts(&b, ".SH OPTIONS\n");
	for (const struct option_spec *o = options; o && o->name; o++)
		roff_option(&b, o);
	for (const struct option_spec *o = options_common; o->name; o++)
		if (!options_replace(options, o))
			roff_option(&b, o);
	if (c->example) {
		buf_puts(&b, ".SH EXAMPLE\n");
		roff_example(&b, c->example);
	}
	roff_exit_codes(&b);
	buf_puts(&b, ".SH SEE ALSO\n.BR gasflame (1)\n");
	fwrite(b.data, 1, b.n, stdout);
}

/* A line of the list in gasflame(1). */
static void roff_command(struct buf *b, const struct command *c)
{
	_cleanup_free_ char *name = page_name(c);

	buf_puts(b, ".TP\n.BR ");
	roff(b, name);
	buf_puts(b, " (1)\n");
	roff(b, c->summary);
	buf_putc(b, '\n');
}

void program_man(void)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	roff_title(&b, "gasflame", "where a running program's time goes");
	buf_puts(&b, "gasflame\n[\\-q | \\-v] COMMAND ...\n.SH COMMANDS\n");
	for (const struct command_group *g = command_groups; g->title; g++)
		for (size_t i = 0; g->commands[i]; i++) {
			roff_command(&b, g->commands[i]);
			for (size_t k = 0; g->commands[i]->parts && g->commands[i]->parts[k]; k++)
				roff_command(&b, g->commands[i]->parts[k]);
		}
	buf_puts(&b, ".SH EXAMPLE\n.nf\n.RS 4\n");
	for (size_t i = 0; i < ARRAY_LEN(quick_start); i++) {
		if (!has_command(quick_start[i].command))
			continue;
		roff(&b, quick_start[i].line);
		buf_putc(&b, '\n');
	}
	buf_puts(&b, ".RE\n.fi\n");
	roff_exit_codes(&b);
	fwrite(b.data, 1, b.n, stdout);
}
