/* storedrop.c - `store drop`: removes old days from a store. */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/tables.h"

static const uint64_t day_ns = 86400ULL * 1000000000;

static int drop(const struct command *c, int argc, char **argv)
{
	uint64_t older_ns = 0, today = clock_wall_ns() / day_ns;
	bool given = false;
	const struct option_spec options[] = {
		{ 0, "older-than", OPTION_DURATION, &older_ns, "TIME", "remove days that ended so long ago: 30d", .given = &given },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1 || !given || older_ns < day_ns || older_ns / day_ns > today) {
		log_error("store drop wants --older-than, a day at least, and the address of one store (gasflame store drop --help)");
		return EXIT_USAGE;
	}
	r = store_open(argv[first], &client, &err);
	for (unsigned i = 0; !r && i < clickhouse_shards(client); i++) {
		struct tables_state s;
		uint64_t days = 0;

		r = tables_check(client, i, &s, &err);
		if (!r)
			r = tables_drop_before(client, i, today - older_ns / day_ns, &days, &err);
		if (!r)
			log_info("%s: removed %llu day%s", clickhouse_address(client, i), (unsigned long long)days, days == 1 ? "" : "s");
	}
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_store_drop = {
	.name = "store drop",
	.summary = "remove old days from a store",
	.usage = "--older-than TIME URL",
	.describe = "Removes whole days (UTC) of all targets, from each server of URL. What is removed does not come back. URL: gasflame store "
		    "--help.",
	.example = "gasflame store drop --older-than 30d clickhouse://127.0.0.1:8123/gasflame",
	.run = drop,
	.connects = true,
};
