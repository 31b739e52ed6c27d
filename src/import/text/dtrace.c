/*
 * dtrace.c - stacks that DTrace aggregated: frames, then a number alone in its line.
 *
 *	CPU     ID                    FUNCTION:NAME
 *	  0  64091                        :tick-60s
 *
 *	  bash						(where execname is a key)
 *	              libc.so.1`_write+0xa
 *	              bash`main+0x1c
 *	               12
 *
 * A stack of the kernel and one of the program that follows it are one stack.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/text/printed.h"

static const struct printed_event samples = { "samples", "count", "", 1, true };

struct dtrace {
	struct printed text;
	char *comm;
	uint32_t pid;
};

/* "module`name", or an address alone. */
static bool is_frame(const char *line, size_t n)
{
	size_t at = strspn(line, " \t");

	return at && at < n && (memchr(line, '`', n) || str_starts(line + at, "0x"));
}

/* "  bash", "  1234 bash": what the stacks were aggregated by. Words that are numbers are the pid. */
static void take_key(struct dtrace *d, const char *line)
{
	_cleanup_free_ char *copy = mem_strdup(line);
	char *rest = NULL;

	for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		uint64_t number;

		if (printed_number(word, strlen(word), &number)) {
			d->pid = number <= INT32_MAX ? number : 0;
		} else {
			free(d->comm);
			d->comm = mem_strdup(word);
		}
	}
}

static bool is_head(const char *line)
{
	return str_starts(line, "CPU ") || str_starts(line, "dtrace:") || strchr(line, ':');
}

static int take_line(void *context, char *line, size_t n, uint64_t at, struct err *err)
{
	struct dtrace *d = context;
	uint64_t number;
	int r;

	if (!line[strspn(line, " \t")])
		return 0;
	if (printed_number(line, n, &number)) {
		r = printed_add(&d->text, &samples, d->pid, d->pid, d->comm ? d->comm : "", number, at, err);
		free(d->comm);
		d->comm = NULL;
		d->pid = 0;
		return r;
	}
	if (is_frame(line, n) || (d->text.list.n && *line == ' ')) {
		printed_frame(&d->text, line, n, false);
		return 0;
	}
	if (*line == ' ' && !is_head(line))
		take_key(d, line);
	else
		d->text.unknown_lines += !is_head(line);
	return 0;
}

int dtrace_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct dtrace d = { 0 };
	int r = printed_read(&d.text, in, take_line, &d, ret, err);

	free(d.comm);
	return r;
}

/* Lines with a module and a tick, indented, and after some of them a number alone. */
bool dtrace_probe(const char *data, size_t n, bool whole)
{
	const char *end = data + n;
	bool frames = false;
	uint64_t number;
	int lines = 0; /* other ones before the first stack: the head */

	(void)whole;
	for (const char *s = data, *newline; s < end; s = newline + 1) {
		newline = memchr(s, '\n', end - s);
		if (!newline)
			newline = end;
		if (frames && printed_number(s, newline - s, &number))
			return true;
		if (newline > s && *s == ' ' && memchr(s, '`', newline - s))
			frames = true;
		else if (newline > s && *s != ' ' && (frames || lines++ > 20))
			return false;
		if (newline == end)
			break;
	}
	return false;
}
