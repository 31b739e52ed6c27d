/*
 * storerollup.c - `store rollup`: the costs of functions by ten minutes, for maps and `watch`; once, or as a service that a fleet has one of.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/rollup.h"
#include "fleet/storeurl.h"
#include "fleet/tables.h"

static const uint64_t minute_ns = 60ULL * 1000000000, hour_ns = 3600ULL * 1000000000, day_ns = 86400ULL * 1000000000;
/* A store that is busy is not asked for ever. */
static const uint64_t longest_ns = 30ULL * 60 * 1000000000;
/* What a service looks at each time; at what is older once a day, as an agent may have been cut off for a week. */
static const uint64_t recent_ns = 2 * 86400ULL * 1000000000;

static volatile sig_atomic_t stop;

static void on_stop(int signal)
{
	stop = 1;
}

static int roll_shard(struct clickhouse *c, unsigned shard, const struct rollup_options *o, uint64_t end_ns, struct rollup_result *all, struct err *err)
{
	struct rollup_result own;
	struct tables_state s;
	int r = tables_check(c, shard, &s, err);

	if (!r && s.version < 2)
		r = err_set(err, ENXIO, "%s: its tables are of version %llu: `gasflame store init` adds those for roll-ups", clickhouse_address(c, shard),
			    (unsigned long long)s.version);
	for (own = (struct rollup_result){ 0 }; !r;) {
		uint64_t before = own.made;

		r = rollup_hours(c, shard, o, &own, err);
		/* None made: windows of those hours come in just now. */
		if (r || !own.left || own.made == before || clock_mono_ns() > end_ns)
			break;
	}
	all->made += own.made;
	all->rows += own.rows;
	all->left += own.left;
	return r;
}

static void tell(const struct rollup_result *all)
{
	char made[32], rows[32], left[32];

	log_info("rolled up %s hour%s: %s rows%s%s%s", str_count(made, all->made), all->made == 1 ? "" : "s", str_count(rows, all->rows),
		 all->left ? "; " : "", all->left ? str_count(left, all->left) : "", all->left ? " are left: run it again" : "");
}

static int roll_once(struct clickhouse *client, const struct rollup_options *o, struct err *err)
{
	struct rollup_result all = { 0 };
	uint64_t end_ns = clock_mono_ns() + longest_ns;
	int r = 0;

	for (unsigned i = 0; !r && i < clickhouse_shards(client); i++)
		r = roll_shard(client, i, o, end_ns, &all, err);
	if (!r)
		tell(&all);
	return r;
}

/* --- as a service --- */

struct server {
	char *note;            /* the last failure that was logged; NULL = all is well */
	uint64_t all_mono_ns;  /* when all days were looked at; 0 = never */
	uint64_t kept_mono_ns; /* when days that are too old were removed */
};

/* One server, in one round. Its failure is said once, and is no reason not to go on with the others. */
static void serve_shard(struct clickhouse *client, unsigned shard, struct server *s, const struct rollup_options *given, struct rollup_result *all)
{
	uint64_t now = clock_mono_ns();
	bool whole = !s->all_mono_ns || now - s->all_mono_ns >= day_ns;
	struct rollup_options o = *given;
	struct err err = { 0 };
	int r;

	o.now_ns = clock_wall_ns();
	if (!whole && o.now_ns > recent_ns)
		o.from_ns = MAX(o.from_ns, o.now_ns - recent_ns);
	r = roll_shard(client, shard, &o, now + longest_ns, all, &err);
	if (!r && whole)
		s->all_mono_ns = now ?: 1;
	if (!r && (!s->kept_mono_ns || now - s->kept_mono_ns >= hour_ns)) {
		r = tables_retain(client, shard, o.now_ns, &err);
		s->kept_mono_ns = now ?: 1;
	}
	if (r == -ECANCELED)
		return;
	if (r && (!s->note || strcmp(s->note, err.text))) {
		log_warn("%s", err.text);
		free(s->note);
		s->note = mem_strdup(err.text);
	} else if (!r && s->note) {
		log_info("%s answers again", clickhouse_address(client, shard));
		free(s->note);
		s->note = NULL;
	}
}

static void serve(struct clickhouse *client, const struct rollup_options *o, uint64_t every_ns)
{
	unsigned n = clickhouse_shards(client);
	struct server *servers = mem_alloc(n * sizeof(*servers));

	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_stop }, NULL);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = on_stop }, NULL);
	clickhouse_stop_on(client, &stop);
	while (!stop) {
		uint64_t next = clock_mono_ns() + every_ns;
		struct rollup_result all = { 0 };

		for (unsigned i = 0; !stop && i < n; i++)
			serve_shard(client, i, &servers[i], o, &all);
		if (all.made)
			tell(&all);
		for (uint64_t now = clock_mono_ns(); !stop && now < next; now = clock_mono_ns())
			poll(NULL, 0, MIN((next - now) / 1000000 + 1, (uint64_t)1000));
	}
	for (unsigned i = 0; i < n; i++)
		free(servers[i].note);
	free(servers);
}

static int rollup(const struct command *c, int argc, char **argv)
{
	const char *target = NULL, *from = NULL, *to = NULL;
	struct rollup_options o = { .now_ns = clock_wall_ns() };
	uint64_t every_ns = UINT64_MAX; /* once */
	const struct option_spec options[] = {
		{ 0, "target", OPTION_STRING, &target, "NAME", "of this target only; by default of all" },
		{ 0, "from", OPTION_STRING, &from, "TIME", "hours that begin then or later, 2026-11-17 10:00 or -2d; by default all" },
		{ 0, "to", OPTION_STRING, &to, "TIME", "hours that begin before that" },
		{ 0, "every", OPTION_DURATION, &every_ns, "TIME", "again and again, 5m, until it is ended; also removes days that are too old" },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r = 0;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1 || (every_ns != UINT64_MAX && (every_ns < minute_ns || to))) {
		log_error("store rollup wants the address of one store, and --every a minute at least and no --to (gasflame store rollup --help)");
		return EXIT_USAGE;
	}
	o.target = target;
	if (from)
		r = storeurl_time(from, o.now_ns, &o.from_ns, &err);
	if (!r && to)
		r = storeurl_time(to, o.now_ns, &o.to_ns, &err);
	if (r) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	r = store_open(argv[first], &client, &err);
	if (!r && every_ns != UINT64_MAX)
		serve(client, &o, every_ns);
	else if (!r)
		r = roll_once(client, &o, &err);
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_store_rollup = {
	.name = "store rollup",
	.summary = "add up the functions of each hour, for maps and watch",
	.usage = "[options] URL",
	.describe = "For each target and hour that is over, adds up what each function cost, itself and with what it calls, by ten minutes. Maps of "
		    "a function over a fleet, `watch` and dashboards read these instead of all samples. An hour that is there already is not "
		    "made again, unless windows of it came later. Any machine may run it, also two at the same time: an hour counts once. URL: gasflame "
		    "store --help.\n"
		    "\n"
		    "A fleet has it run by itself with --every, on one machine: a server that is away is said once and tried again, hours of the last two days "
		    "are made as they end, what comes later than that within a day, and days that are older than --keep of `store init` are removed where the server does not do that itself.",
	.example = "gasflame store rollup clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store rollup --every 5m clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store rollup --target reth-1 --from -1d clickhouse://127.0.0.1:8123/gasflame",
	.run = rollup,
	.connects = true,
};
