/* storerollup.c - `store rollup`: the costs of functions by ten minutes, for maps and `watch`. */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/rollup.h"
#include "fleet/storeurl.h"
#include "fleet/tables.h"

/* A store that is busy is not asked for ever. */
static const uint64_t longest_ns = 30ULL * 60 * 1000000000;

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

static int rollup(const struct command *c, int argc, char **argv)
{
	const char *target = NULL, *from = NULL, *to = NULL;
	struct rollup_options o = { .now_ns = clock_wall_ns() };
	const struct option_spec options[] = {
		{ 0, "target", OPTION_STRING, &target, "NAME", "of this target only; by default of all" },
		{ 0, "from", OPTION_STRING, &from, "TIME", "hours that begin then or later, 2026-11-17 10:00 or -2d; by default all" },
		{ 0, "to", OPTION_STRING, &to, "TIME", "hours that begin before that" },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct rollup_result all = { 0 };
	struct err err = { 0 };
	uint64_t end_ns = clock_mono_ns() + longest_ns;
	char made[32], rows[32], left[32];
	int first = options_parse(c, options, argc, argv), r = 0;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1) {
		log_error("store rollup wants the address of one store (gasflame store rollup --help)");
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
	for (unsigned i = 0; !r && i < clickhouse_shards(client); i++)
		r = roll_shard(client, i, &o, end_ns, &all, &err);
	if (r)
		return command_failed(&err);
	log_info("rolled up %s hour%s: %s rows%s%s%s", str_count(made, all.made), all.made == 1 ? "" : "s", str_count(rows, all.rows),
		 all.left ? "; " : "", all.left ? str_count(left, all.left) : "", all.left ? " are left: run it again" : "");
	return EXIT_OK;
}

const struct command command_store_rollup = {
	.name = "store rollup",
	.summary = "add up the functions of each hour, for maps and watch",
	.usage = "[options] URL",
	.describe = "For each target and hour that is over, adds up what each function cost, itself and with what it calls, by ten minutes. Maps of "
		    "a function over a fleet, `watch` and dashboards read these instead of all samples. An hour that is there already is not "
		    "made again, unless windows of it came later. Any machine may run it, also two at the same time: an hour counts once. URL: gasflame "
		    "store --help.",
	.example = "gasflame store rollup clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store rollup --target reth-1 --from -1d clickhouse://127.0.0.1:8123/gasflame",
	.run = rollup,
	.connects = true,
};
