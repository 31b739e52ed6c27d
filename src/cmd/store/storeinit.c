/* storeinit.c - `store init`: makes the tables of a store, or brings them up to date. */
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/tables.h"

static const uint64_t day_ns = 86400ULL * 1000000000;

static void tell(struct clickhouse *c)
{
	for (unsigned i = 0; i < clickhouse_shards(c); i++) {
		struct tables_state s;
		struct err err = { 0 };

		if (tables_check(c, i, &s, &err))
			continue;
		if (s.keep_days)
			log_info("%s: ClickHouse %s, tables of version %d; a day is kept for %llu days%s", clickhouse_address(c, i), s.server,
				 TABLES_VERSION, (unsigned long long)s.keep_days, s.ttl ? "" : ", and removed by store push (the server has no TTL)");
		else
			log_info("%s: ClickHouse %s, tables of version %d; all days are kept", clickhouse_address(c, i), s.server, TABLES_VERSION);
	}
}

static int init(const struct command *c, int argc, char **argv)
{
	struct tables_options o = { 0 };
	uint64_t keep_ns = 0;
	bool keep = false;
	const struct option_spec options[] = {
		{ 0, "cluster", OPTION_STRING, &o.cluster, "NAME",
		  "make tables over all shards, too, samples_all and the like; NAME is a cluster of the servers' configuration" },
		{ 0, "replicated", OPTION_FLAG, &o.replicated,
		  .help = "make replicated tables: servers whose macro {shard} is the same share their rows, and {replica} tells them apart; they need "
			  "a ZooKeeper or Keeper in their configuration" },
		{ 0, "keep", OPTION_DURATION, &keep_ns, "TIME",
		  "how long a day is kept, 30d: by the server's TTL, and where it has none whenever something is pushed; by default as it is, "
		  "of a new store for ever", .given = &keep },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1 || (o.cluster && !*o.cluster) || (keep && keep_ns < day_ns)) {
		log_error("store init wants the address of one store, and --keep a day at least (gasflame store init --help)");
		return EXIT_USAGE;
	}
	o.keep_days = keep_ns / day_ns;
	r = store_open(argv[first], &client, &err);
	if (!r)
		r = tables_init(client, &o, &err);
	if (r)
		return command_failed(&err);
	tell(client);
	return EXIT_OK;
}

const struct command command_store_init = {
	.name = "store init",
	.summary = "make the tables of a store, or bring them up to date",
	.usage = "[options] URL",
	.describe = "Makes the database and its tables on each server of URL, or adds what a later gasflame needs. Repeating it changes nothing. "
		    "URL: gasflame store --help.",
	.example = "gasflame store init --keep 30d clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store init --cluster fleet --replicated clickhouses://writer:secret@a1:8443,a2:8443,b1:8443,b2:8443/gasflame",
	.run = init,
	.connects = true,
};
