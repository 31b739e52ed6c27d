/*
 * bcc.c - stacks as bcc's profile, offcputime, offwaketime and stackcount print them, and libbpf-tools' ones. (With -f they print folded
 * stacks.)
 *
 *	Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.
 *
 *	    finish_task_switch
 *	    schedule
 *	    --				(with -d: the kernel's end here)
 *	    read
 *	    -                bash (1234)
 *	        99
 *
 * The first line says what the numbers are: samples of so many a second are "cpu", microseconds off the CPU "wait". libbpf-tools print
 * no such line: where the first stack ends in the scheduler the numbers are microseconds off the CPU, too; else "samples".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/text/printed.h"

struct bcc {
	struct printed text;
	struct printed_event event;
	char *comm;
	uint32_t pid;
	bool known; /* what the numbers are */
};

/* "-                name (12)", and of stackcount "name [12]". */
static bool take_thread(const char *line, size_t n, const char **ret_name, size_t *ret_n, uint32_t *ret_pid)
{
	const char *end = line + n, *open;
	uint64_t pid;
	char close;

	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	if (end - line < 5)
		return false;
	close = end[-1];
	if (close == ')') {
		if (line[0] != '-' || line[1] != ' ')
			return false;
		line++;
	} else if (close != ']') {
		return false;
	}
	open = memrchr(line, close == ')' ? '(' : '[', end - line);
	if (!open || open == line || open[-1] != ' ' || !printed_number(open + 1, end - open - 2, &pid) || pid > INT32_MAX)
		return false;
	while (line < open && *line == ' ')
		line++;
	for (end = open; end > line && end[-1] == ' ';)
		end--;
	*ret_name = line;
	*ret_n = end - line;
	*ret_pid = pid;
	return true;
}

static const struct printed_event waits = { "wait", "ns", "time off the CPU, by bcc", 1000, false };

static bool take_head(const char *line, struct printed_event *e)
{
	static const char at[] = "Sampling at ";
	uint64_t hz;

	if (str_starts(line, at) && strstr(line, " Hertz")) {
		const char *number = line + strlen(at);

		*e = (struct printed_event){ "cpu", "ns", "CPU time, sampled by bcc's profile", 1, true };
		if (printed_number(number, strcspn(number, " "), &hz) && hz && hz <= 1000000000)
			e->factor = 1000000000 / hz;
		else
			*e = (struct printed_event){ "samples", "count", "", 1, true };
		return true;
	}
	if (!str_starts(line, "Tracing ") && !str_starts(line, "Sampling "))
		return false;
	if (strstr(line, "time (us)"))
		*e = waits;
	return true;
}

static int take_number(struct bcc *b, uint64_t number, uint64_t line, struct err *err)
{
	int r;

	if (!b->known && printed_off_cpu(&b->text))
		b->event = waits;
	b->known |= b->text.list.n > 0;
	r = printed_add(&b->text, &b->event, b->pid, b->pid, b->comm ? b->comm : "", number, line, err);

	free(b->comm);
	b->comm = NULL;
	b->pid = 0;
	return r;
}

static bool is_delimiter(const char *line)
{
	line += strspn(line, " \t");
	return !strcmp(line, "--") || !strcmp(line, "-");
}

static int take_line(void *context, char *line, size_t n, uint64_t at, struct err *err)
{
	struct bcc *b = context;
	uint64_t number;
	const char *name;
	size_t name_n;

	if (!n || line[strspn(line, " \t")] == 0 || !strcmp(line, "^C"))
		return 0;
	if (*line == '^' && n > 2)
		line += 2, n -= 2; /* "^C" before the first line */
	if (*line != ' ' && *line != '\t') {
		bool head = take_head(line, &b->event);

		b->known |= head;
		b->text.unknown_lines += !head && !str_starts(line, "WARNING") && !str_starts(line, "Detaching");
		return 0;
	}
	if (printed_number(line, n, &number))
		return take_number(b, number, at, err);
	if (is_delimiter(line)) {
		printed_kernel(&b->text);
	} else if (take_thread(line, n, &name, &name_n, &b->pid)) {
		free(b->comm);
		if (name_n > 3 && !memcmp(name, "b'", 2))
			b->comm = mem_strndup(name + 2, name_n - 3);
		else
			b->comm = mem_strndup(name, name_n);
	} else {
		printed_frame(&b->text, line, n, false);
	}
	return 0;
}

int bcc_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct bcc b = { .event = { "samples", "count", "", 1, true } };
	int r = printed_read(&b.text, in, take_line, &b, ret, err);

	free(b.comm);
	return r;
}

/* A line of a thread, and a number alone in the next one. */
bool bcc_probe(const char *data, size_t n, bool whole)
{
	const char *end = data + n, *name;
	bool thread = false;
	uint64_t number;
	uint32_t pid;
	size_t name_n;

	(void)whole;
	for (const char *s = data, *newline; s < end; s = newline + 1) {
		newline = memchr(s, '\n', end - s);
		if (!newline)
			newline = end;
		if (thread && printed_number(s, newline - s, &number))
			return *s == ' ' || *s == '\t';
		thread = newline > s && (*s == ' ' || *s == '\t') && take_thread(s, newline - s, &name, &name_n, &pid);
		if (newline == end)
			break;
	}
	return false;
}
