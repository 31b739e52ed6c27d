/* storels.c - `store ls`: the targets of a store. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/listing.h"

static void format_time(char out[64], uint64_t ns, const char *format)
{
	time_t t = ns / 1000000000;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, 64, format, &tm))
		snprintf(out, 64, "?");
}

static void put_texts(struct json *j, const char *key, const struct listing_texts *t)
{
	json_put_strings(j, key, (const char *const *)t->list.v, t->list.n);
}

static void print_json(const struct listing *l)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);
	char when[64];

	json_open_array(&j, NULL);
	for (size_t i = 0; i < l->list.n; i++) {
		const struct listing_target *t = &l->list.v[i];

		json_open_row(&j, 1);
		json_put_string(&j, "target", t->name);
		json_put_uints(&j, { "windows", t->windows }, { "duration_ns", t->duration_ns }, { "first_wall_ns", t->first_ns },
			       { "last_wall_ns", t->last_ns });
		format_time(when, t->first_ns, "%Y-%m-%dT%H:%M:%S%z");
		json_put_string(&j, "first", when);
		format_time(when, t->last_ns, "%Y-%m-%dT%H:%M:%S%z");
		json_put_string(&j, "last", when);
		put_texts(&j, "hosts", &t->hosts);
		put_texts(&j, "releases", &t->releases);
		put_texts(&j, "labels", &t->labels);
		json_close_line(&j, 0);
	}
	json_end_line(&j);
	plain_put(b.data, b.n);
}

static void put_joined(struct buf *b, const struct listing_texts *t)
{
	for (size_t i = 0; i < t->list.n; i++) {
		buf_puts(b, i ? ", " : "");
		plain_add(b, t->list.v[i]);
	}
	if (!t->list.n)
		buf_putc(b, '-');
}

static void print_table(const struct listing *l)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int widest = strlen("TARGET");

	for (size_t i = 0; i < l->list.n; i++)
		widest = MAX(widest, MIN((int)strlen(l->list.v[i].name), 40));
	buf_printf(&b, "%-*s  %10s  %10s  %-16s  %-16s  %s\n", widest, "TARGET", "WINDOWS", "RECORDED", "FIRST", "LAST", "RELEASES");
	for (size_t i = 0; i < l->list.n; i++) {
		const struct listing_target *t = &l->list.v[i];
		char first[64], last[64], count[32], duration[32], right[32];
		size_t at = b.n;

		format_time(first, t->first_ns, "%Y-%m-%d %H:%M");
		format_time(last, t->last_ns, "%Y-%m-%d %H:%M");
		plain_add(&b, t->name);
		buf_printf(&b, "%*s  %10s  %s  %-16s  %-16s  ", MAX(widest - (int)(b.n - at), 0), "", str_count(count, t->windows),
			   str_right(right, str_duration(duration, t->duration_ns), 10), first, last);
		put_joined(&b, &t->releases);
		buf_putc(&b, '\n');
	}
	plain_put(b.data, b.n);
}

static int ls(const struct command *c, int argc, char **argv)
{
	bool json = false;
	const struct option_spec options[] = {
		{ 0, "json", OPTION_FLAG, &json, .help = "an array of objects, with hosts and labels" },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct listing l = { 0 };
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1) {
		log_error("store ls wants the address of one store (gasflame store ls --help)");
		return EXIT_USAGE;
	}
	r = store_open(argv[first], &client, &err);
	if (!r)
		r = listing_make(&l, client, &err);
	if (!r && json)
		print_json(&l);
	else if (!r && l.list.n)
		print_table(&l);
	else if (!r)
		log_info("the store is empty: `gasflame store push` fills it");
	listing_done(&l);
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_store_ls = {
	.name = "store ls",
	.summary = "list the targets of a store",
	.usage = "[--json] URL",
	.describe = "Lists the targets of all servers of URL: how many windows there are of each, the time that they cover, when the first began and "
		    "the last ended, and the releases. URL: gasflame store --help.",
	.example = "gasflame store ls clickhouse://127.0.0.1:8123/gasflame",
	.run = ls,
	.connects = true,
};
