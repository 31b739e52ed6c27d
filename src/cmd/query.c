#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/reading.h"
#include "cmd/reading/storeargs.h"
#include "capture/capture.h"

enum form { FORM_TABLE, FORM_TABS, FORM_CSV, FORM_JSON };

/* Columns are measured on this many rows; a table that is longer is printed as it comes after that. */
#define MEASURED_ROWS 1000
/* Wider cells stick out: most of a column should not be blank because of one long name. */
#define WIDEST_CELL 70

struct cell {
	char *text; /* NULL = SQL NULL */
	bool number;
};

struct printer {
	enum form form;
	size_t columns, rows;
	VEC(struct cell) held; /* table: the rows that widths are measured on */
	VEC(int) widths;
	VEC(bool) right; /* numbers, to the right */
	struct buf text; /* JSON that is not written yet */
	struct json json;
};

/* Columns on a terminal: every byte that does not continue a UTF-8 character. */
static int text_width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* A terminal and a line of tabs need one line a row, and no control characters of a target's making. */
static void print_clean(const char *s)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	plain_add(&clean, s);
	fputs(clean.n ? clean.data : "", stdout);
}

static void print_cell(struct printer *p, size_t column, const char *text)
{
	int pad = p->widths.v[column] - text_width(text);
	bool last = column + 1 == p->columns;

	if (column)
		fputs("  ", stdout);
	if (p->right.v[column])
		printf("%*s", MAX(pad, 0), "");
	print_clean(text);
	if (!p->right.v[column] && !last)
		printf("%*s", MAX(pad, 0), "");
	if (last)
		putchar('\n');
}

/* The names are in the first row that is held. */
static void print_held(struct printer *p)
{
	for (size_t i = 0; i < p->held.n; i++) {
		struct cell *c = &p->held.v[i];
		size_t column = i % p->columns;

		p->widths.v[column] = MAX(p->widths.v[column], MIN(text_width(c->text ?: ""), WIDEST_CELL));
		if (i >= p->columns && c->text && !c->number)
			p->right.v[column] = false;
	}
	for (size_t i = 0; i < p->held.n; i++) {
		print_cell(p, i % p->columns, p->held.v[i].text ?: "");
		free(p->held.v[i].text);
	}
	vec_clear(&p->held);
}

/* So that its width is measured as it is printed. */
static char *clean_copy(const char *s)
{
	struct buf clean = { 0 };

	if (!s)
		return NULL;
	plain_add(&clean, s);
	return clean.data ? clean.data : mem_strdup("");
}

static void table_row(struct printer *p, const char *const *values, const bool *numbers)
{
	bool names = !numbers;

	if (p->rows > MEASURED_ROWS) {
		for (size_t i = 0; i < p->columns; i++)
			print_cell(p, i, values[i] ?: "");
		return;
	}
	for (size_t i = 0; i < p->columns; i++) {
		vec_push(&p->held, (struct cell){ .text = clean_copy(values[i]), .number = !names && numbers[i] });
		if (names) {
			vec_push(&p->widths, 0);
			vec_push(&p->right, true);
		}
	}
	if (p->rows == MEASURED_ROWS)
		print_held(p);
}

static void tabs_row(struct printer *p, const char *const *values)
{
	for (size_t i = 0; i < p->columns; i++) {
		if (i)
			putchar('\t');
		print_clean(values[i] ?: "");
	}
	putchar('\n');
}

static void csv_row(struct printer *p, const char *const *values)
{
	_cleanup_(buf_done) struct buf line = { 0 };

	for (size_t i = 0; i < p->columns; i++) {
		const char *s = values[i] ?: "";
		bool quote = s[strcspn(s, "\",\r\n")] != 0;

		if (i)
			buf_putc(&line, ',');
		if (quote)
			buf_putc(&line, '"');
		for (; *s; s++) {
			if (*s == '"')
				buf_putc(&line, '"');
			buf_putc(&line, *s);
		}
		if (quote)
			buf_putc(&line, '"');
	}
	buf_putc(&line, '\n');
	plain_put(line.data, line.n);
}

/* Prints an array of objects, a line each. Infinity is no JSON number, so it is text there. */
static void json_row(struct printer *p, const char *const *names, const char *const *values,
		     const bool *numbers)
{
	json_open_row(&p->json, 0);
	for (size_t i = 0; i < p->columns; i++)
		if (values[i] && numbers[i] && !strpbrk(values[i], "In"))
			json_put_raw(&p->json, names[i], values[i], strlen(values[i]));
		else
			json_put_string(&p->json, names[i], values[i]);
	json_close(&p->json);
	plain_put(p->text.data, p->text.n);
	p->text.n = 0;
}

static int print_row(void *context, int columns, const char *const *names, const char *const *values,
		     const bool *numbers)
{
	struct printer *p = context;

	p->columns = columns;
	if (values)
		p->rows++;
	if (p->form == FORM_JSON && values)
		json_row(p, names, values, numbers);
	else if (p->form == FORM_CSV)
		csv_row(p, values ?: names);
	else if (p->form == FORM_TABS)
		tabs_row(p, values ?: names);
	else if (p->form == FORM_TABLE)
		table_row(p, values ?: names, numbers);
	return ferror(stdout) ? -EPIPE : 0;
}

static void print_end(struct printer *p, bool failed)
{
	if (p->form == FORM_TABLE)
		print_held(p);
	if (p->form == FORM_JSON && !failed) {
		json_break(&p->json, p->rows ? 0 : -1);
		json_end_line(&p->json);
		plain_put(p->text.data, p->text.n);
	}
	buf_done(&p->text);
	vec_done(&p->held);
	vec_done(&p->widths);
	vec_done(&p->right);
}

/* Lists the purpose of each table and view; those of a later gasflame have none. */
static const char list_sql[] =
	"with about(name, about) as (values"
	" ('top_functions', 'self and total of each function, recursion counted once'),"
	" ('threads', 'samples, share and CPU seconds of each thread'),"
	" ('modules', 'self of each program, library and the kernel'),"
	" ('stacks', 'each call stack as text, outermost first: a;b;c'),"
	" ('waits', 'time off the CPU by thread and the function that waited'),"
	" ('wakes', 'long waits one by one: who waited where, and who ended it'),"
	" ('tasks', 'types of async tasks: how many, polls, time polled, queued and awaiting'),"
	" ('task_wakes', 'long awaits of async tasks one by one: who awaited, and who ended it'),"
	" ('marks', 'blocks, runs, phases and the like: when, how long, gas, transactions'),"
	" ('notes', 'what leaves were about, as files: by event and function'),"
	" ('sites', 'the innermost function of user code in each stack'),"
	" ('frames', 'name, module, file and line of each frame and what is inlined in it'),"
	" ('meta', 'target, host, kernel, start, duration, whether it ended normally'),"
	" ('event', 'what was measured, its unit and usual value'),"
	" ('process', 'processes'),"
	" ('owner', 'containers and units that processes belong to'),"
	" ('process_owner', 'which process belongs to which of them'),"
	" ('thread', 'threads; start and end in ns since the start of the recording'),"
	" ('module', 'executable files and their build-ids'),"
	" ('mapping', 'where modules were in memory'),"
	" ('function', 'functions by name'),"
	" ('frame', 'addresses in modules'),"
	" ('frame_line', 'functions of a frame, innermost inlined call first'),"
	" ('stack', 'call stacks as a tree: a frame and its caller'),"
	" ('sample', 'samples; a value that is null is the period of the event, a count that is null 1'),"
	" ('wake', 'long waits and who ended them, by id'),"
	" ('mark', 'blocks and other spans, by id and ns'),"
	" ('series', 'values over time, as memory: name and unit'),"
	" ('point', 'values of a series'),"
	" ('histogram', 'how many fell into each bucket, from low to twice that'),"
	" ('event_sum', 'how many samples of each event there are, and their sum'),"
	" ('counter', 'counted facts about the recording, as samples that were lost'))"
	" select min(s.type) as type, s.name, coalesce(about.about, '') as about from"
	" (select type, name from sqlite_schema union all select type, name from sqlite_temp_schema) as s"
	" left join about on about.name = s.name group by s.name order by type desc, s.name";

static int query(const struct command *c, int argc, char **argv)
{
	_cleanup_(store_choice_done) struct store_choice store = { 0 };
	bool json = false, csv = false;
	const struct option_spec options[] = {
		{ 0, "json", OPTION_FLAG, &json, .help = "an array of objects" },
		{ 0, "csv", OPTION_FLAG, &csv, .help = "comma-separated values, with the names first" },
		STORE_OPTIONS(&store),
		STORE_TIMES(&store),
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;
	struct printer p = { .form = isatty(STDOUT_FILENO) ? FORM_TABLE : FORM_TABS };
	_cleanup_free_ char *capture = NULL;
	struct err err = { 0 };

	if (first < 0)
		return -first - 1;
	if (command_operands.n < 1 || command_operands.n > 2) {
		log_error("%s", command_operands.n < 1 ? "name a capture: gasflame query FILE 'select ...'" :
						   "the SQL must be one argument: put it in quotes");
		return EXIT_USAGE;
	}
	if (json && csv) {
		log_error("--json or --csv, not both");
		return EXIT_USAGE;
	}
	if (json || csv)
		p.form = json ? FORM_JSON : FORM_CSV;
	p.json = json_begin(&p.text);
	json_open_array(&p.json, NULL);
	r = reading_as_capture(command_operands.v[0], &capture, &err);
	if (!r)
		r = capture_query(capture, command_operands.n == 2 ? command_operands.v[1] : list_sql, print_row, &p, &err);
	print_end(&p, r < 0);
	if (fflush(stdout) || ferror(stdout)) {
		log_error("cannot write the answer: %s", strerror(errno));
		return EXIT_ERROR;
	}
	if (r < 0)
		log_error("%s", err.text);
	return r < 0 ? EXIT_ERROR : EXIT_OK;
}

const struct command command_query = {
	.name = "query",
	.summary = "ask a capture in SQL",
	.usage = "[options] FILE ['select ...']",
	.describe = "A capture is an SQLite database. This runs one statement that reads it and prints the "
		    "answer: an aligned table on a terminal, tab-separated lines with the names first "
		    "elsewhere. Without a statement it lists the tables and views. It also reads the "
		    "file of a recorder that died or is still at work, and never writes to it. What other tools wrote (gasflame import --help) "
		    "is made a capture first, in a folder for temporary files, and so is the profile of a --target and a time of a --store.",
	.example = "gasflame query slow.gasflame 'select * from top_functions limit 20'\n"
		   "gasflame query --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from -1h 'select * from threads'",
	.run = query,
};
