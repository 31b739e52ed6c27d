/*
 * ps.c - what can be profiled here, by the names that every command takes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/ps/psrows.h"

static const uint64_t usual_interval_ns = 200000000, usual_look_ns = 400000000;

enum { COLUMNS = 10, CELL = 256 };
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define YELLOW "\033[33m"
#define NORMAL "\033[0m"

/* --- JSON --- */

static void put_text(struct json *j, const char *key, const char *value)
{
	json_put_string(j, key, value ? value : "");
}

static void put_owner(struct json *j, const struct ps_row *r)
{
	if (r->container.id) {
		put_text(j, "container", r->container.id);
		put_text(j, "engine", r->container.engine);
		put_text(j, "image", r->container.image);
	}
	if (r->container.pod) {
		put_text(j, "namespace", r->container.namespace);
		put_text(j, "pod", r->container.pod);
	}
	if (r->unit_path)
		put_text(j, "cgroup", r->unit_path);
}

static void put_row(struct json *j, const struct ps_row *r)
{
	json_open_row(j, 1);
	put_text(j, "kind", ps_kind_name(r->kind));
	put_text(j, "name", r->name);
	put_text(j, "target", r->target);
	put_owner(j, r);
	json_put_int(j, "pid", r->pid);
	json_put_int(j, "inner_pid", r->inner_pid);
	json_open_array(j, "pids");
	for (size_t i = 0; i < r->pids.list.n; i++)
		json_put_int(j, NULL, r->pids.list.v[i]);
	json_close(j);
	json_put_fixed(j, "cpu_percent", r->cpu_percent, 2);
	json_put_uints(j, { "rss_bytes", r->rss_bytes }, { "threads", r->threads });
	put_text(j, "command", r->command);
	if (*r->allocator)
		put_text(j, "allocator", r->allocator);
	if (r->looked && !r->problem) {
		put_text(j, "symbols", ps_symbols_name(r->symbols));
		json_put_bool(j, "unwind_tables", r->unwind);
	}
	if (r->problem)
		put_text(j, "problem", r->problem);
	json_close_line(j, 0); /* the bracket, if nothing follows */
}

static void print_json(const struct psrows *rows)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);

	json_open_array(&j, NULL);
	for (size_t i = 0; i < rows->list.n; i++)
		put_row(&j, &rows->list.v[i]);
	json_end_line(&j);
	plain_put(b.data, b.n);
}

/* --- the table --- */

static void fill_cells(const struct ps_row *r, char cells[COLUMNS][CELL])
{
	char text[32];

	snprintf(cells[0], CELL, "%s", ps_kind_name(r->kind));
	snprintf(cells[1], CELL, "%.60s", r->name);
	snprintf(cells[2], CELL, "%d", (int)r->pid);
	snprintf(cells[3], CELL, "%.1f", r->cpu_percent);
	snprintf(cells[4], CELL, "%s", str_bytes(text, r->rss_bytes));
	snprintf(cells[5], CELL, "%u", r->threads);
	snprintf(cells[6], CELL, "%s", *r->allocator ? r->allocator : "-");
	snprintf(cells[7], CELL, "%s", r->problem ? r->problem : ps_symbols_name(r->symbols));
	snprintf(cells[8], CELL, "%s", r->problem || !r->looked ? "?" : r->unwind ? "yes" : "no");
	if (r->container.id)
		snprintf(cells[9], CELL, "%s%s%s%s%s", r->container.engine, *r->container.engine && *r->container.image ? " " : "",
			 r->container.image, r->pids.list.n > 1 || r->command ? ": " : "", r->command ? r->command : "");
	else
		snprintf(cells[9], CELL, "%s", r->command ? r->command : "");
	for (int i = 0; i < COLUMNS; i++)
		plain_in_place(cells[i]);
}

/* Highlights rows where names or stacks will be missing. */
static const char *colour_of(const struct ps_row *r, int column)
{
	if (!r)
		return BOLD;
	if (column == 7 && (r->problem || (r->looked && r->symbols < PS_SYMBOLS_TABLE)))
		return YELLOW;
	if (column == 8 && r->looked && !r->problem && !r->unwind)
		return YELLOW;
	if (column == 1 && r->kind != PS_PROCESS)
		return BOLD;
	return column == 0 || column == COLUMNS - 1 ? DIM : "";
}

static void print_line(const struct ps_row *r, char cells[COLUMNS][CELL], const int *width, bool colour)
{
	static const bool to_the_right[COLUMNS] = { [2] = true, [3] = true, [4] = true, [5] = true };
	int used = 0, screen = isatty(STDOUT_FILENO) ? command_width() : 0;

	for (int i = 0; i < COLUMNS; i++) {
		const char *paint = colour ? colour_of(r, i) : "";
		int room = screen ? MAX(screen - used - 2, 8) : CELL;

		printf("%s%s", i ? "  " : "", paint);
		if (i < COLUMNS - 1)
			printf("%*s", to_the_right[i] ? width[i] : -width[i], cells[i]);
		else
			printf("%.*s", room, cells[i]);
		printf("%s", *paint ? NORMAL : "");
		used += (i ? 2 : 0) + width[i];
	}
	putchar('\n');
}

static void print_table(const struct psrows *rows)
{
	static const char *const titles[COLUMNS] = { "KIND", "NAME", "PID", "CPU %", "RSS", "THREADS", "ALLOCATOR", "SYMBOLS",
						     "UNWIND", "COMMAND" };
	bool colour = log_colour(STDOUT_FILENO);
	char cells[COLUMNS][CELL];
	int width[COLUMNS];

	for (int i = 0; i < COLUMNS; i++)
		width[i] = strlen(titles[i]);
	for (size_t k = 0; k < rows->list.n; k++) {
		fill_cells(&rows->list.v[k], cells);
		for (int i = 0; i < COLUMNS - 1; i++)
			width[i] = MAX(width[i], (int)strlen(cells[i]));
	}
	for (int i = 0; i < COLUMNS; i++)
		snprintf(cells[i], CELL, "%s", titles[i]);
	print_line(NULL, cells, width, colour);
	for (size_t k = 0; k < rows->list.n; k++) {
		fill_cells(&rows->list.v[k], cells);
		print_line(&rows->list.v[k], cells, width, colour);
	}
}

/* Each once, as a terminal can show it: a name that is not is no use to a shell either. */
static void print_names(const struct psrows *rows)
{
	for (size_t i = 0; i < rows->list.n; i++) {
		const char *name = rows->list.v[i].name;
		_cleanup_(buf_done) struct buf plain = { 0 };
		bool seen;

		plain_add(&plain, name);
		seen = !plain.n || strcmp(name, plain.data);
		for (size_t k = 0; k < i && !seen; k++)
			seen = !strcmp(rows->list.v[k].name, name);
		if (!seen)
			puts(name);
	}
}

static int ps(const struct command *c, int argc, char **argv)
{
	uint64_t interval_ns = usual_interval_ns, look_ns = usual_look_ns;
	bool json = false, all = false, names = false;
	const struct option_spec options[] = {
		{ 'a', "all", OPTION_FLAG, &all, .help = "list each process of containers and units, too" },
		{ 0, "interval", OPTION_DURATION, &interval_ns, "TIME", "how long CPU time is measured" },
		{ 0, "look", OPTION_DURATION, &look_ns, "TIME",
		  "how long programs may be inspected for their allocator, symbols and unwind tables, the busiest first" },
		{ 0, "json", OPTION_FLAG, &json, .help = "an array of objects" },
		{ 0, "names", OPTION_FLAG, &names, .help = "only the names, a line each, without measuring or inspecting anything" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;
	struct psrows rows;

	if (first < 0)
		return -first - 1;
	if (names && json) {
		log_error("--names and --json are two forms of the list; please choose one");
		return EXIT_USAGE;
	}
	r = psrows_read(names ? 0 : interval_ns, all, &rows);
	if (r) {
		log_error("cannot list /proc: %s", strerror(-r));
		psrows_done(&rows);
		return EXIT_ERROR;
	}
	for (size_t i = 0; i < rows.notes.list.n; i++)
		log_warn("%s", rows.notes.list.v[i].text);
	psrows_filter(&rows, argv + first, argc - first);
	if (names) {
		print_names(&rows);
		psrows_done(&rows);
		return EXIT_OK;
	}
	psrows_look(&rows, clock_mono_ns() + look_ns);
	if (json)
		print_json(&rows);
	else if (rows.list.n)
		print_table(&rows);
	else
		log_info("nothing here has %s in its name or command line", argv[first]);
	if (rows.not_looked)
		log_info("%zu programs were not inspected for lack of time (--look 5 gives more)", rows.not_looked);
	psrows_done(&rows);
	return EXIT_OK;
}

const struct command command_ps = {
	.name = "ps",
	.summary = "list what can be profiled: containers, pods, units, processes",
	.usage = "[options] [WORD...]",
	.describe = "One line for each container, for each container of a pod, for each unit of systemd, and for each process that "
		    "is in none of these, the busiest first, with CPU time of one CPU, resident memory, threads, and of the main "
		    "program: its allocator, whether its functions have names (debug: and lines; yes; elsewhere: in a debug file; "
		    "exported: stripped; none), and whether it has unwind tables. With WORDs only what has one of them in its name, "
		    "image or command line. Every NAME is a TARGET of the other commands. Kernel threads are left out.",
	.example = "gasflame ps\ngasflame ps --json reth",
	.run = ps,
	.keeps_rights = true,
};
