/* watch.c - `watch`: what changed in a fleet between two releases or times. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "cmd/store/watchtext.h"
#include "fleet/clickhouse.h"
#include "fleet/storeurl.h"
#include "fleet/watch/watch.h"

static const uint64_t second_ns = 1000000000, day_ns = 86400ULL * 1000000000;
enum { RELEASE_DAYS = 30, DEFAULT_LIMIT = 10 };

struct watch_command {
	const char *store, *release, *against, *from, *to, *format;
	uint64_t days, limit;
	bool json, fail_on_change;
	struct watch_options o;
	char names[2][100];
};

/* --- the sides --- */

static void name_time(char out[100], const struct watch_side *s)
{
	time_t from = s->from_ns / second_ns, to = s->to_ns / second_ns;
	struct tm tm;
	size_t n = localtime_r(&from, &tm) ? strftime(out, 40, "%Y-%m-%d %H:%M", &tm) : 0;

	if (n && localtime_r(&to, &tm))
		strftime(out + n, 60, " to %Y-%m-%d %H:%M", &tm);
}

/* Two releases in one time; else a time, and the one before it that is as long. */
static int choose_sides(struct watch_command *c, struct err *err)
{
	uint64_t now = clock_wall_ns(), from = 0, to = now;
	struct watch_side *before = &c->o.side[0], *after = &c->o.side[1];
	int r = c->from ? storeurl_time(c->from, now, &from, err) : 0;

	if (!r && c->to)
		r = storeurl_time(c->to, now, &to, err);
	if (r)
		return r;
	if (!c->from) {
		uint64_t length = (c->release ? RELEASE_DAYS : c->days ? c->days : 1) * day_ns;

		from = to > length ? to - length : 0;
	}
	if (from >= to)
		return err_set(err, EINVAL, "--from is not before --to");
	/* Roll-ups are of whole hours: the hour that is not over yet is left out, and both sides are as long. */
	*after = (struct watch_side){ c->release, from, to };
	*before = c->release ? (struct watch_side){ c->against, from, to } : (struct watch_side){ NULL, from > to - from ? from - (to - from) : 0, from };
	if (!c->release)
		for (int i = 0; i < 2; i++) {
			uint64_t hour = 3600 * second_ns;

			c->o.side[i].from_ns = (c->o.side[i].from_ns + hour - 1) / hour * hour;
			c->o.side[i].to_ns = (c->o.side[i].to_ns + hour - 1) / hour * hour;
		}
	for (int i = 0; i < 2; i++) {
		if (c->release)
			snprintf(c->names[i], sizeof(c->names[i]), "%s", c->o.side[i].release);
		else
			name_time(c->names[i], &c->o.side[i]);
	}
	return 0;
}

/* --- the answer --- */

static void tell(const struct watch *w)
{
	if (w->away)
		log_warn("%u server%s did not answer, whose nodes are missing: %s", w->away, w->away == 1 ? "" : "s", w->away_text);
	if (w->unrolled)
		log_warn("%llu hours of nodes are not rolled up, and their functions not compared: `gasflame store rollup` does it, for hours that are "
			 "over", (unsigned long long)w->unrolled);
	if (!w->tested)
		log_warn("nothing could be compared: each side wants %d measurements of %llu min", CHANGE_UNITS_MIN,
			 (unsigned long long)(w->unit_ns / 60 / second_ns));
}

static int run_watch(struct watch_command *c, const char *url, bool *ret_changed, struct err *err)
{
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	const struct watchtext_names names = { c->names[0], c->names[1], c->limit };
	_cleanup_(buf_done) struct buf out = { 0 };
	struct watch w = { 0 };
	int r = store_open(url, &client, err);

	if (!r)
		r = watch_make(&w, client, &c->o, err);
	if (!r) {
		if (c->json || (c->format && !strcmp(c->format, "json")))
			watchtext_put_json(&w, &c->o, &names, &out);
		else if (c->format && !strcmp(c->format, "markdown"))
			watchtext_put_markdown(&w, &c->o, &names, &out);
		else
			watchtext_put(&w, &c->o, &names, &out);
		plain_put(out.data, out.n);
		tell(&w);
		*ret_changed = w.significant > 0;
	}
	watch_done(&w);
	return r;
}

static int watch(const struct command *command, int argc, char **argv)
{
	static const char *const formats[] = { "text", "json", "markdown", NULL };
	struct watch_command c = { .limit = DEFAULT_LIMIT };
	const struct option_spec options[] = {
		{ 0, "store", OPTION_STRING, &c.store, "URL", "the store: clickhouse://HOST:8123/DATABASE (gasflame store --help); or as the operand" },
		{ 0, "target", OPTION_STRING, &c.o.target, "GLOB", "only these targets: 'reth-*'; by default all" },
		{ 0, "release", OPTION_STRING, &c.release, "NAME", "compare this release, of the last 30 days" },
		{ 0, "against", OPTION_STRING, &c.against, "NAME", "with this one" },
		{ 0, "days", OPTION_UINT, &c.days, "N", "compare the last N days with the N before them; by default 1", .min = 1, .max = 3650 },
		{ 0, "from", OPTION_STRING, &c.from, "TIME", "compare from this time on, -6h or 2026-11-17 10:00, with the time before it that is as long" },
		{ 0, "to", OPTION_STRING, &c.to, "TIME", "until this time; by default now" },
		{ 0, "event", OPTION_STRING, &c.o.event, "EVENT", "of the functions: wait; by default cpu" },
		{ 'n', "limit", OPTION_UINT, &c.limit, "N", "so many findings of each single node, 0 shows all; those of all nodes are shown in any case" },
		{ 0, "format", OPTION_CHOICE, &c.format, "FORMAT", "text, json, or markdown for a channel", .choices = formats },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "the same as --format json" },
		{ 0, "fail-on-change", OPTION_FLAG, &c.fail_on_change, .help = "exit with 5 if something changed beyond noise" },
		{ 0 },
	};
	const char *url;
	bool changed = false;
	struct err err = { 0 };
	int first = options_parse(command, options, argc, argv);

	if (first < 0)
		return -first - 1;
	url = command_operands.n ? command_operands.v[0] : c.store;
	if (!url || command_operands.n > 1 || !c.release != !c.against || (c.release && c.days) || (c.from && c.days)) {
		log_error("watch wants the address of one store, and --release with --against, or --days, or --from (gasflame watch --help)");
		return EXIT_USAGE;
	}
	if (choose_sides(&c, &err)) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	if (run_watch(&c, url, &changed, &err))
		return command_failed(&err);
	return changed && c.fail_on_change ? EXIT_CHANGED : EXIT_OK;
}

const struct command command_watch = {
	.name = "watch",
	.summary = "find what changed in a fleet between two releases or times",
	.usage = "[options] [--store] URL",
	.describe =
		"Compares two releases, or two times, of all targets of a store: the share of each function in the CPU time (its own, without what it "
		"calls), the time that threads wait by cause, CPU time, and the time of blocks; for all nodes together and for each. What it names "
		"changed beyond noise: a node in ten minutes (of long times, in an hour) is a measurement, each node is compared with itself, shares are compared "
		"at equal work as in `gasflame diff`, and among all that is named at most 1 % is expected to be no change. Changes below 5 % "
		"are not named.\n"
		"\n"
		"Functions come from the roll-ups of `gasflame store rollup`, which should run once an hour, or before this. Each side needs four measurements "
		"at least. Hours begin and end on the clock.",
	.example = "gasflame watch --store clickhouse://127.0.0.1:8123/gasflame --release v2.5.1 --against v2.5.0\n"
		   "gasflame watch --store clickhouse://127.0.0.1:8123/gasflame --days 7 --target 'reth-*' --format markdown\n"
		   "gasflame watch --store clickhouse://127.0.0.1:8123/gasflame --from -6h --fail-on-change",
	.run = watch,
	.connects = true,
};
