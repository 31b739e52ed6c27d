/* storepush.c - `store push`: captures as windows of a store, each of them once. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/analyzed.h"
#include "cmd/reading/input.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/push/push.h"
#include "fleet/tables.h"
#include "fleet/storeurl.h"
#include "fleet/window.h"

static int push_one(struct pusher *p, const char *path, struct push_result *result, struct err *err)
{
	const struct analyzed_options o = { 0 };
	struct analyzed *l = NULL;
	struct windows w = { 0 };
	int r;

	if (input_is_store(path))
		return err_set(err, EINVAL, "a capture is pushed from a file: what is in a store already is a sum");
	r = analyzed_load(path, &o, &l, err);
	if (r == -ENOENT && err->code == ENOENT)
		return err_set(err, ENOENT, "there is no file %s: `gasflame ls` lists the captures", path);
	if (!r)
		r = windows_make(&w, &l->job, WINDOW_NS, err);
	if (!r)
		r = pusher_send(p, &w, result, err);
	windows_done(&w);
	analyzed_free(l);
	return r ? err_prefix(err, "%s", path) : 0;
}

/* On servers that do not do it themselves. Who pushes may lack the right to: the rows are there in any case. */
static void retain(struct clickhouse *c, const char *target)
{
	struct err err = { 0 };

	if (tables_retain(c, storeurl_shard_of(target, clickhouse_shards(c)), clock_wall_ns(), &err))
		log_warn("old days were not removed: %s", err.text);
}

static void tell(const struct push_result *result)
{
	char windows[32], there[32], rows[32], bytes[32];

	log_info("pushed %s window%s: %s rows, %s%s%s%s", str_count(windows, result->windows), result->windows == 1 ? "" : "s",
		 str_count(rows, result->rows), str_bytes(bytes, result->bytes), result->there ? "; " : "",
		 result->there ? str_count(there, result->there) : "", result->there ? " were there already" : "");
}

static int push(const struct command *c, int argc, char **argv)
{
	struct option_list labels = { 0 };
	struct push_options o = { 0 };
	uint64_t tries = PUSH_TRIES;
	const struct option_spec options[] = {
		{ 0, "target", OPTION_STRING, &o.target, "NAME", "whose captures they are: the name under which they are found again" },
		{ 0, "release", OPTION_STRING, &o.release, "NAME", "the version of the program that was recorded" },
		{ 0, "label", OPTION_LIST, &labels, "KEY=VALUE", "more about it: region=eu; may be repeated" },
		{ 0, "tries", OPTION_UINT, &tries, "N", "how often a server that is away or busy is tried, with growing pauses", .min = 1, .max = 1000 },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct push_result result = { 0 };
	struct tables_state state;
	struct pusher *pusher = NULL;
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first < 2 || !o.target) {
		log_error("store push wants --target NAME, the address of a store and captures (gasflame store push --help)");
		return EXIT_USAGE;
	}
	o.labels = labels.list.v;
	o.tries = tries;
	r = push_check(&o, &err);
	if (!r)
		r = store_open(argv[first], &client, &err);
	if (!r) {
		pusher = pusher_new(client, &o);
		/* A shard that is away just now is the pusher's business. */
		r = tables_check(client, storeurl_shard_of(o.target, clickhouse_shards(client)), &state, &err);
		if (r == -EIO || r == -ETIMEDOUT || r == -EAGAIN)
			r = 0;
	}
	for (int i = first + 1; !r && i < argc; i++)
		r = push_one(pusher, argv[i], &result, &err);
	if (!r)
		retain(client, o.target);
	if (!r || result.windows)
		tell(&result);
	pusher_free(pusher);
	vec_done(&labels.list);
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_store_push = {
	.name = "store push",
	.summary = "deliver captures to a store, each window once",
	.usage = "[options] --target NAME URL CAPTURE...",
	.describe = "Cuts captures into windows of 30 s, sums what is alike in each, and delivers them to the server of URL on which the target lives. "
		    "What is there already is not sent again: it may be repeated after any failure, and counts once. Of each event, the sums in "
		    "the store are those of the capture. URL: gasflame store --help.",
	.example = "gasflame store push --target reth-1 --release v2.5.1 --label region=eu clickhouse://127.0.0.1:8123/gasflame slow.gasflame",
	.run = push,
	.connects = true,
};
