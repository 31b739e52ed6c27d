/*
 * events.c - `gasflame events`: what can be recorded by name on this machine.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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
	bool first = true;

	if (l->json)
		buf_puts(&l->out, ",\"fields\":[");
	for (size_t i = 0; i < f->fields.n; i++) {
		const struct tracefs_field *field = &f->fields.v[i];

		if (l->json) {
			buf_printf(&l->out, "%s{\"name\":", first ? "" : ",");
			buf_json(&l->out, field->name);
			buf_puts(&l->out, ",\"type\":");
			buf_json(&l->out, field->type);
			buf_printf(&l->out, ",\"bytes\":%u,\"signed\":%s,\"summable\":%s}", field->size,
				   field->is_signed ? "true" : "false", field->integer ? "true" : "false");
		} else {
			buf_printf(&l->out, "    %c%-24s %s\n", field->integer ? '/' : ' ', field->name, field->type);
		}
		first = false;
	}
	if (l->json)
		buf_puts(&l->out, "]");
}

/* One row; describe may be NULL, format NULL for all but tracepoints with -v. */
static void add_row(struct listing *l, const char *kind, const char *name, const char *describe,
		    bool available, const struct tracefs_format *format)
{
	if (l->json) {
		buf_printf(&l->out, "%s\n {\"name\":", l->count ? "," : "");
		buf_json(&l->out, name);
		buf_printf(&l->out, ",\"kind\":\"%s\",\"available\":%s", kind, available ? "true" : "false");
		if (describe) {
			buf_puts(&l->out, ",\"describe\":");
			buf_json(&l->out, describe);
		}
		if (format)
			add_fields(l, format);
		buf_puts(&l->out, "}");
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
	if (l.json)
		buf_puts(&l.out, "[");
	list_collectors(&l);
	list_named(&l);
	r = tracefs_list(list_tracepoint, &l, &err);
	if (l.json)
		buf_puts(&l.out, l.count ? "\n]\n" : "]\n");
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
