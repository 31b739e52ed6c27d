/*
 * events.c - `gasflame events`: what can be recorded by name on this machine.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "collect/session.h"
#include "target/trace/eventspec.h"
#include "target/trace/tracefs.h"

struct listing {
	const char *pattern; /* "" = all */
	bool fields, json;
	struct buf out;
	struct json rows; /* into out */
	size_t count;
};

/* As typed: a pattern of the whole name, or of what follows its group, or a piece of it. */
static bool matches(const struct listing *l, const char *name)
{
	const char *colon = strchr(name, ':');

	if (!strpbrk(l->pattern, "*?["))
		return strstr(name, l->pattern) != NULL;
	return !fnmatch(l->pattern, name, 0) || (colon && !fnmatch(l->pattern, colon + 1, 0));
}

static void add_fields(struct listing *l, const struct tracefs_format *f)
{
	if (l->json)
		json_open_array(&l->rows, "fields");
	for (size_t i = 0; i < f->fields.n; i++) {
		const struct tracefs_field *field = &f->fields.v[i];

		if (l->json) {
			json_open_object(&l->rows, NULL);
			json_put_string(&l->rows, "name", field->name);
			json_put_string(&l->rows, "type", field->type);
			json_put_uint(&l->rows, "bytes", field->size);
			json_put_bool(&l->rows, "signed", field->is_signed);
			json_put_bool(&l->rows, "summable", field->integer);
			json_close(&l->rows);
		} else {
			buf_printf(&l->out, "    %c%-24s %s\n", field->integer ? '/' : ' ', field->name, field->type);
		}
	}
	if (l->json)
		json_close(&l->rows);
}

/* Adds a row; describe may be NULL, format NULL for all but tracepoints with -v. */
static void add_row(struct listing *l, const char *kind, const char *name, const char *describe,
		    bool available, const struct tracefs_format *format)
{
	if (l->json) {
		json_open_row(&l->rows, 1);
		json_put_string(&l->rows, "name", name);
		json_put_string(&l->rows, "kind", kind);
		json_put_bool(&l->rows, "available", available);
		if (describe)
			json_put_string(&l->rows, "describe", describe);
		if (format)
			add_fields(l, format);
		json_close(&l->rows);
	} else {
		buf_printf(&l->out, "%-12s%-*s", kind, describe || !available ? 28 : 0, name);
		if (!available)
			buf_puts(&l->out, "  missing: this machine does not count it");
		else if (describe)
			buf_printf(&l->out, "  %s", describe);
		buf_putc(&l->out, '\n');
		if (format)
			add_fields(l, format);
	}
	l->count++;
}

static void list_collectors(struct listing *l)
{
	const char *describe, *name;

	for (size_t i = 0; (name = session_collector(i, &describe)); i++)
		if (strcmp(name, "event") && matches(l, name))
			add_row(l, "collector", name, describe, true, NULL);
}

static void list_named(struct listing *l)
{
	enum eventspec_kind kind;
	const char *describe, *name;

	for (size_t i = 0; (name = eventspec_named(i, &kind, &describe)); i++) {
		struct eventspec e;
		int r;

		if (!describe || !matches(l, name) || eventspec_parse(name, &e, NULL) < 0)
			continue;
		r = eventspec_probe(&e);
		eventspec_done(&e);
		add_row(l, kind == EVENTSPEC_SOFTWARE ? "software" : "hardware", name, describe,
			r >= 0 || r == -EACCES || r == -EPERM, NULL);
	}
}

static int list_tracepoint(void *context, const char *group, const char *name)
{
	struct listing *l = context;
	_cleanup_free_ char *full = mem_printf("%s:%s", group, name);
	struct tracefs_format format = { 0 };
	bool known;

	if (!matches(l, full))
		return 0;
	known = l->fields && tracefs_read_format(group, name, &format, NULL) >= 0;
	add_row(l, "tracepoint", full, NULL, true, known ? &format : NULL);
	if (known)
		tracefs_format_done(&format);
	return 0;
}

static int events_run(const struct command *c, int argc, char **argv)
{
	struct listing l = { .pattern = "" };
	const struct option_spec options[] = {
		{ 'v', "verbose", OPTION_FLAG, &l.fields,
		  .help = "with the fields of tracepoints; / marks those that can be summed" },
		{ 0, "json", OPTION_FLAG, &l.json, .help = "an array of objects" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;
	struct err err = { 0 };

	if (first < 0)
		return -first - 1;
	if (argc - first > 1) {
		log_error("one pattern at a time: gasflame events 'sched:*'");
		return EXIT_USAGE;
	}
	if (first < argc)
		l.pattern = argv[first];
	l.rows = json_begin(&l.out);
	if (l.json)
		json_open_array(&l.rows, NULL);
	list_collectors(&l);
	list_named(&l);
	r = tracefs_list(list_tracepoint, &l, &err);
	if (l.json) {
		json_break(&l.rows, l.count ? 0 : -1);
		json_end_line(&l.rows);
	}
	if (l.out.n)
		plain_put(l.out.data, l.out.n);
	buf_done(&l.out);
	/* The rest is listed all the same. */
	if (r < 0)
		log_warn("%s", err.text);
	else if (!l.count)
		log_error("nothing matches '%s'", l.pattern);
	return l.count ? EXIT_OK : EXIT_ERROR;
}

const struct command command_events = {
	.name = "events",
	.summary = "list what can be recorded by name",
	.usage = "[options] [PATTERN]",
	.describe = "Lists collectors, software and hardware events and tracepoints of this kernel; PATTERN is a "
		    "piece of a name, or a pattern like 'syscalls:*futex*'. Each can be given to record -e or stand "
		    "in a file for record --events; a tracepoint is summed by a number of its record with "
		    "GROUP:NAME/FIELD.",
	.example = "gasflame events futex\ngasflame events -v block:block_rq_issue",
	.run = events_run,
	.keeps_rights = true,
};
