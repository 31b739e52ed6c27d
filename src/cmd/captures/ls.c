#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "cmd/captures/captures.h"
#include "cmd/cmd.h"
#include "capture/capture.h"

struct row {
	char *path, *problem; /* problem: why there is no summary, NULL if there is one */
	struct capture_summary summary;
	uint64_t bytes, when_ns;
	bool in_use;
};

struct rows {
	VEC(struct row) list;
};

static int add_row(void *context, const struct captures_entry *e)
{
	struct row row = { .path = mem_strdup(e->path), .bytes = e->bytes,
			   .when_ns = e->mtime_ns, .in_use = captures_in_use(e) };
	struct rows *rows = context;
	struct err err = { 0 };

	if (capture_summary(e->path, &row.summary, &err))
		row.problem = mem_strdup(err.text);
	else if (row.summary.start_wall_ns)
		row.when_ns = row.summary.start_wall_ns;
	vec_push(&rows->list, row);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return ORDER(y->when_ns, x->when_ns) ?: strcmp(x->path, y->path);
}

static void rows_done(struct rows *rows)
{
	vec_done_each(&rows->list, e, free(e->path); free(e->problem); capture_summary_done(&e->summary));
}

static const char *row_mark(const struct row *r)
{
	return r->problem ? r->problem : r->summary.finished ? "" : r->in_use ? "recording" : "unfinished";
}

static void format_time(char *out, size_t size, uint64_t ns, const char *format)
{
	time_t t = ns / 1000000000;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, size, format, &tm))
		snprintf(out, size, "?");
}

static void put_row(const struct row *r, struct json *j)
{
	char when[64];

	format_time(when, sizeof(when), r->when_ns, "%Y-%m-%dT%H:%M:%S%z");
	json_open_row(j, 1);
	json_put_string(j, "file", r->path);
	json_put_string(j, "target", r->summary.target ? r->summary.target : "");
	json_put_string(j, "what", r->summary.what ? r->summary.what : "");
	json_put_string(j, "when", when);
	json_put_uints(j, { "start_wall_ns", r->when_ns }, { "duration_ns", r->summary.duration_ns },
		       { "rows", r->summary.rows }, { "bytes", r->bytes });
	if (r->summary.counted)
		json_put_uints(j, { "samples", r->summary.samples }, { "waits", r->summary.waits },
			       { "others", r->summary.others });
	json_put_bool(j, "finished", r->summary.finished);
	json_put_bool(j, "recording", r->in_use);
	if (r->problem)
		json_put_string(j, "problem", r->problem);
	json_close_line(j, 0); /* the bracket, if nothing follows */
}

static void print_json(const struct rows *rows)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);

	json_open_array(&j, NULL);
	for (size_t i = 0; i < rows->list.n; i++)
		put_row(&rows->list.v[i], &j);
	json_end_line(&j);
	plain_put(b.data, b.n);
}

enum { COLUMNS = 8 };

static void fill_cells(const struct row *r, char cells[COLUMNS][512])
{
	_cleanup_free_ char *counts = r->problem ? NULL : capture_summary_counts(&r->summary);
	char text[32];

	for (int i = 0; i < COLUMNS; i++)
		cells[i][0] = 0;
	snprintf(cells[0], 512, "%s", r->path);
	plain_in_place(cells[0]);
	format_time(cells[3], 512, r->when_ns, "%Y-%m-%d %H:%M");
	snprintf(cells[6], 512, "%s", str_bytes(text, r->bytes));
	snprintf(cells[7], 512, "%s", row_mark(r));
	if (r->problem)
		return;
	snprintf(cells[1], 512, "%s", r->summary.target);
	snprintf(cells[2], 512, "%s", r->summary.what);
	plain_in_place(cells[1]);
	plain_in_place(cells[2]);
	snprintf(cells[4], 512, "%s",
		 r->summary.duration_ns ? str_duration(text, r->summary.duration_ns) : "-");
	snprintf(cells[5], 512, "%s", counts);
}

static void print_table(const struct rows *rows)
{
	static const char *const titles[COLUMNS] = { "FILE",     "TARGET",  "WHAT", "WHEN",
						     "DURATION", "RECORDED", "SIZE", "" };
	static const bool to_the_right[COLUMNS] = { [4] = true, [6] = true };
	char cells[COLUMNS][512];
	int width[COLUMNS];

	for (int c = 0; c < COLUMNS; c++)
		width[c] = strlen(titles[c]);
	for (size_t i = 0; i < rows->list.n; i++) {
		fill_cells(&rows->list.v[i], cells);
		for (int c = 0; c < COLUMNS; c++)
			width[c] = MAX(width[c], (int)strlen(cells[c]));
	}
	for (size_t i = 0; i <= rows->list.n; i++) {
		if (i)
			fill_cells(&rows->list.v[i - 1], cells);
		/* No blanks at the end of a line: the last cell is often empty. */
		for (int c = 0; c < COLUMNS; c++) {
			const char *s = i ? cells[c] : titles[c];

			if (c == COLUMNS - 1)
				printf("%s%s\n", *s ? "  " : "", s);
			else
				printf("%s%*s", c ? "  " : "", to_the_right[c] ? width[c] : -width[c], s);
		}
	}
}

/* Lists a folder, or a file. */
static int list_path(const char *path, struct rows *rows)
{
	struct err err = { 0 };
	struct stat st;
	int r;

	if (!stat(path, &st) && S_ISREG(st.st_mode)) {
		const struct captures_entry e = { .folder = AT_FDCWD,
						  .name = path,
						  .path = path,
						  .bytes = st.st_size,
						  .mtime_ns = st.st_mtim.tv_sec * 1000000000ULL };

		return add_row(rows, &e);
	}
	r = captures_walk(path, CAPTURES_FOLLOW, add_row, NULL, rows, &err);
	if (r)
		log_error("%s", err.text);
	return r;
}

static int ls_run(const struct command *c, int argc, char **argv)
{
	struct rows rows = { 0 };
	bool json = false;
	const struct option_spec options[] = {
		{ 0, "json", OPTION_FLAG, &json, .help = "an array of objects" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), result = EXIT_OK;
	bool by_default = first == argc;

	if (first < 0)
		return -first - 1;
	if (by_default)
		captures_walk_here(add_row, &rows);
	for (int i = first; i < argc; i++)
		if (list_path(argv[i], &rows))
			result = EXIT_ERROR;
	vec_sort(&rows.list, newest_first);
	if (json)
		print_json(&rows);
	else if (rows.list.n)
		print_table(&rows);
	else if (result == EXIT_OK)
		log_info("no captures in %s", by_default ? "this folder or below " CAPTURES_FOLDER "/" : argv[first]);
	rows_done(&rows);
	return result;
}

const struct command command_ls = {
	.name = "ls",
	.summary = "list captures, the newest first",
	.usage = "[options] [FOLDER|FILE...]",
	.describe = "Lists the captures in this folder and below " CAPTURES_FOLDER
		    "/, of which a command without a file takes the newest, or those below the folders that are named. One whose recorder was killed is marked "
		    "\"unfinished\": report reads it all the same.",
	.example = "gasflame ls\ngasflame ls --json /var/lib/node/profiling",
	.run = ls_run,
	.reads_by_default = (const char *const[]){ ".", CAPTURES_FOLDER, NULL },
};
