/*
 * store.c - `store`: captures of many machines in a ClickHouse. Its parts are in files of their own.
 */
#include "cmd/store/store.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/reading/input.h"
#include "fleet/clickhouse.h"
#include "fleet/storeurl.h"

int store_open(const char *url, struct clickhouse **ret, struct err *err)
{
	struct storeurl u;
	int r = storeurl_parse(input_address(url), clock_wall_ns(), &u, err);

	if (!r)
		r = clickhouse_open(&u, ret, err);
	storeurl_done(&u);
	return r;
}

static int store(const struct command *c, int argc, char **argv)
{
	const struct option_spec options[] = { { 0 } };
	int first = options_parse(c, options, argc, argv);

	if (first < 0)
		return -first - 1;
	log_error("store wants init, push, ls, map, rollup or drop, and the address of a store (gasflame store --help)");
	return EXIT_USAGE;
}

static const struct command *const store_parts[] = {
	&command_store_init, &command_store_push, &command_store_ls, &command_store_map, &command_store_rollup, &command_store_drop, NULL,
};

const struct command command_store = {
	.name = "store",
	.summary = "keep captures of many machines in a ClickHouse",
	.usage = "init|push|ls|map|rollup|drop [options] URL ...",
	.describe = "A store has the captures of a fleet as windows of 30 s: `store init` makes its tables, `store push` delivers captures, each "
		    "window exactly once, `store ls` lists the targets, `store map` shows a figure of all of them over time, `store rollup` adds up functions by the hour, `store drop` removes old days. Their options: gasflame store push "
		    "--help.\n"
		    "\n"
		    "URL is clickhouse://[USER:PASSWORD@]HOST:8123[,HOST:8123...]/DATABASE, with clickhouses:// for TLS; several servers are "
		    "shards, and a target lives on one of them. \"?timeout=10s\" behind it is the time for one answer.\n"
		    "\n"
		    "Every command that takes a capture also takes a profile in a store, as "
		    "'clickhouse://HOST:8123/DATABASE?target=NAME&from=-1h&to=now', in quotes because of the &. from and to are times as "
		    "2026-11-17 10:00 (local), 2026-11-17T10:00:00Z, seconds since 1970, or -1h before now; without them it is all that there is.",
	.example = "gasflame store init --keep 30d clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store push --target reth-1 --release v2.5.1 clickhouse://127.0.0.1:8123/gasflame slow.gasflame\n"
		   "gasflame report 'clickhouse://127.0.0.1:8123/gasflame?target=reth-1&from=-1h'",
	.run = store,
	.parts = store_parts,
	.connects = true,
};
