/*
 * replay.c - `replay`: blocks sent to a node over the Engine API, or load for a dev node, measured and recorded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/recording/record.h"
#include "cmd/replay/replay.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"
#include "export/bench/replay.h"
#include "profile/profile.h"

enum { AHEAD_MAX = 1000 };


struct replay {
	struct replay_options engine;
	struct load_options load;
	struct targets node;    /* the TARGET, where one was named */
	char **targets;
	int target_count;
	const char *record, *record_output, *log, *folder, *wait, *api;
	uint64_t from, to;
	bool json, list;
	struct err *err;
};

/* --- what came of it --- */

static int write_file(const char *folder, const char *name, const struct buf *data, struct err *err)
{
	_cleanup_free_ char *path = folder ? mem_printf("%s/%s", folder, name) : NULL;

	return captureio_write(path, data, NULL, 0, err);
}

static int write_replay(const struct replay *r, const struct replay_result *result, struct err *err)
{
	_cleanup_(buf_done) struct buf text = { 0 }, json = { 0 }, latency = { 0 }, gas = { 0 }, built = { 0 };
	int e = 0;

	replaytext_put(result, r->list, &text);
	replayjson_put(result, &json);
	if (r->folder && result->built) {
		replaybuilt_put(result, &built);
		e = write_file(r->folder, "built_latency.csv", &built, err);
	} else if (r->folder) {
		replaylatency_put(result, &latency);
		replaygas_put(result, &gas);
		e = write_file(r->folder, "combined_latency.csv", &latency, err);
		if (!e)
			e = write_file(r->folder, "total_gas.csv", &gas, err);
	}
	if (r->folder && !e)
		e = write_file(r->folder, "replay.json", &json, err);
	if (!e && (r->json || text.n))
		e = write_file(NULL, NULL, r->json ? &json : &text, err);
	return e;
}

static int write_load(const struct replay *r, const struct load_result *result, struct err *err)
{
	_cleanup_(buf_done) struct buf text = { 0 }, json = { 0 };
	int e = 0;

	loadtext_put(result, &text);
	loadjson_put(result, &json);
	if (r->folder)
		e = write_file(r->folder, "load.json", &json, err);
	return e ? e : write_file(NULL, NULL, r->json ? &json : &text, err);
}

/* --- doing it --- */

static int exit_code(const struct err *err, int e)
{
	if (e)
		log_error("%s", err->text);
	return !e ? EXIT_OK : err->code == EINVAL ? EXIT_USAGE : EXIT_ERROR;
}

static int replay_blocks(struct replay *r)
{
	struct replay_result result = { 0 };
	struct err second = { 0 };
	int e = replay_run(&r->engine, &result, r->err), code;

	/* Rows measured before an error are kept. */
	code = exit_code(r->err, e);
	if (stop_wanted)
		log_info("Stopped; what was measured up to here counts.");
	if (result.rows.n || r->json) {
		e = write_replay(r, &result, &second);
		if (e)
			code = exit_code(&second, e);
	}
	vec_done(&result.rows);
	return code;
}

static int put_load(struct replay *r)
{
	struct load_result result = { 0 };
	int e = load_run(&r->load, &result, r->err);

	if (stop_wanted)
		log_info("Stopped; what was measured up to here counts.");
	if (!e)
		e = write_load(r, &result, r->err);
	if (!e && result.stopped && !stop_wanted)
		e = err_set(r->err, EREMOTEIO, "nothing but errors came any more: %s",
			    result.kinds[0].errors ? result.kinds[0].error : result.kinds[result.kind_count - 1].error);
	load_done(&result);
	return exit_code(r->err, e);
}

static int measure(void *context)
{
	struct replay *r = context;

	stop_catch(false, NULL);
	signal(SIGPIPE, SIG_IGN);
	return r->load.kind ? put_load(r) : replay_blocks(r);
}

#ifdef GASFLAME_COLLECTORS
/* Read from its beginning, wherever the other process is with writing. */
static void take_marks(void *context, struct profile *p)
{
	const struct replay *r = context;
	struct replay_mark m;

	for (off_t at = 0; pread(r->engine.marks, &m, sizeof(m), at) == sizeof(m); at += sizeof(m)) {
		struct profile_mark mark = { .thread = PROFILE_NONE,
					     .block = { m.number, m.gas, m.transactions,
							BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS } };
		char name[48];

		if (m.start_ns < p->start_wall_ns)
			continue; /* before the recording began */
		snprintf(name, sizeof(name), "block %" PRIu64, m.number);
		mark.name = profile_string(p, name);
		mark.kind = profile_string(p, "block");
		mark.start_ns = m.start_ns - p->start_wall_ns;
		mark.end_ns = m.end_ns - p->start_wall_ns;
		profile_add_mark(p, &mark);
	}
}

static int record_replay(struct replay *r)
{
	const struct record_call call = {
		.what = r->record,
		.output = r->record_output,
		.context = r,
		.call = measure,
		.finish = r->load.kind ? NULL : take_marks,
		.targets = r->targets,
		.target_count = r->target_count,
		.rpc = r->load.kind ? r->load.url : NULL,
		.log = r->log,
	};
	int code;

	if (!r->load.kind) {
		r->engine.marks = memfd_create("replay", MFD_CLOEXEC);
		if (r->engine.marks < 0)
			return exit_code(r->err, err_errno(r->err, errno, "cannot make a file in memory"));
	}
	code = record_call(&call);
	fd_close(&r->engine.marks);
	return code;
}
#else
static int record_replay(struct replay *r)
{
	return exit_code(r->err, err_set(r->err, ENOSYS,
					 "this build cannot record (meson configure -Dcollectors=enabled)"));
}
#endif

/* --- options --- */

/* In the order of their enums. */
static const char *const waits[] = { "none", "head", "quiet", "persisted", NULL };
static const char *const apis[] = { "auto", "engine", "reth", NULL };

static unsigned find_word(const char *const *list, const char *word)
{
	unsigned i = 0;

	while (list[i] && strcmp(list[i], word))
		i++;
	return i;
}

static int check_engine(struct replay *r, struct err *err)
{
	struct replay_options *o = &r->engine;

	if (!o->source.rpc == !o->source.file)
		return err_set(err, EINVAL,
			       "say where the blocks come from: --from-rpc URL or --blocks FILE (or --load for plain JSON-RPC load)");
	if (!o->secret)
		return err_set(err, EINVAL, "--jwt-secret FILE is missing: the Engine API wants a token made of the node's own secret "
					    "(reth: jwt.hex in its data folder)");
	o->from_given = r->from != 0;
	o->to_given = r->to != 0;
	o->source.from = r->from;
	o->source.to = o->to_given ? r->to : UINT64_MAX;
	if (o->from_given && o->to_given && r->from > r->to)
		return err_set(err, EINVAL, "--from %llu is behind --to %llu", (unsigned long long)r->from, (unsigned long long)r->to);
	o->api = find_word(apis, r->api);
	o->wait_given = r->wait != NULL;
	if (r->wait)
		o->wait = find_word(waits, r->wait);
	if (o->wait == REPLAY_WAIT_QUIET && !r->target_count)
		return err_set(err, EINVAL, "--wait quiet watches what the node writes: name it as the TARGET");
	if (o->news && o->wait != REPLAY_WAIT_PERSISTED)
		return err_set(err, EINVAL, "--ws is for --wait persisted");
	if (o->wait == REPLAY_WAIT_PERSISTED && !o->news && o->api == REPLAY_API_ENGINE)
		return err_set(err, EINVAL, "--wait persisted: name reth's WebSocket (--ws ws://127.0.0.1:8546), or use its own API (--api reth)");
	if (o->build && o->api == REPLAY_API_RETH)
		return err_set(err, EINVAL, "--build needs the Engine API: reth's own does not build");
	if (o->build_ns && !o->build)
		return err_set(err, EINVAL, "--build-time is for --build");
	o->pool = r->load.url;
	return 0;
}

static int check(struct replay *r, struct err *err)
{
	const struct option_list none = { 0 };
	int e = 0;

	if (r->load.kind && (r->engine.source.rpc || r->engine.source.file || r->engine.save || r->engine.build))
		return err_set(err, EINVAL, "--load makes transactions of its own: it takes no blocks");
	if (!r->load.kind)
		e = check_engine(r, err);
	if (e)
		return e;
	if (r->record && !r->target_count)
		return err_set(err, EINVAL, "--record %s of whom? Name the node: gasflame replay ... --record %s reth", r->record,
			       r->record);
	if (r->record_output && !r->record)
		return err_set(err, EINVAL, "--record-output is where --record writes to: say what to record");
	if (r->log && (!r->record || !r->load.kind))
		return err_set(err, EINVAL, "--log gives the blocks of --load --record their spans: those of a replay have them");
	if (r->target_count && !r->record && (r->load.kind || r->engine.wait != REPLAY_WAIT_QUIET))
		return err_set(err, EINVAL, "%s is recorded with --record cpu,wait only", r->targets[0]);
	if (r->target_count)
		e = targets_find(&r->node, &none, r->targets, r->target_count, err);
	r->engine.pids = r->node.pids.list.v;
	r->engine.pid_count = r->node.pids.list.n;
	return e;
}

static int replay_main(const struct command *c, int argc, char **argv)
{
	struct err err = { 0 };
	struct replay r = {
		.engine = { .engine = "http://127.0.0.1:8551", .marks = -1, .lag = 7 },
		.load = { .url = "http://127.0.0.1:8545", .count = 10000, .duration_ns = 30000000000, .connections = 4 },
		.api = "auto", .err = &err,
	};
	uint64_t ahead = 20, retries = 10, timeout_ns = 120000000000;
	const struct option_spec options[] = {
		{ 0, "from-rpc", OPTION_STRING, &r.engine.source.rpc, "URL", "a node that has the blocks" },
		{ 0, "from", OPTION_UINT, &r.from, "N", "the first block; by default the one behind the last of the node", 1,
		  INT64_MAX },
		{ 0, "to", OPTION_UINT, &r.to, "M", "the last block; by default the last that the source has", 1, INT64_MAX },
		{ 0, "blocks", OPTION_STRING, &r.engine.source.file, "FILE",
		  "instead: lines of JSON, on each a block as eth_getBlockByNumber answers it, with full transactions" },
		{ 0, "save", OPTION_STRING, &r.engine.save, "FILE", "keep the blocks that are sent in such a file" },
		{ 0, "engine", OPTION_STRING, &r.engine.engine, "URL", "the Engine API of the node" },
		{ 0, "jwt-secret", OPTION_STRING, &r.engine.secret, "FILE", "its secret: 64 hexadecimal digits" },
		{ 0, "prefetch", OPTION_UINT, &ahead, "N", "blocks that are made ready ahead", 1, AHEAD_MAX },
		{ 0, "retries", OPTION_UINT, &retries, "N", "how often a question is asked again, more and more slowly", 0, 1000 },
		{ 0, "timeout", OPTION_DURATION, &timeout_ns, "TIME", "for one answer of the node" },
		{ 0, "api", OPTION_CHOICE, &r.api, "WHICH",
		  "engine: the Engine API; reth: reth_newPayload and reth_forkchoiceUpdated, with blocks as RLP, which tell the server's "
		  "own time and what it waited for; auto: reth's where the node has it", .choices = apis },
		{ 0, "requests", OPTION_STRING, &r.engine.source.requests, "FILE",
		  "requests to the beacon chain, which JSON-RPC leaves out: lines of JSON with hash and executionRequests" },
		{ 0, "beacon", OPTION_STRING, &r.engine.source.beacon, "URL", "instead: a consensus client that has the blocks" },
		{ 0, "interval", OPTION_DURATION, &r.engine.interval_ns, "TIME", "begin blocks at least so long after each other" },
		{ 0, "wait", OPTION_CHOICE, &r.wait, "WHAT",
		  "when blocks count as kept: head: the node answers with the last one by its number, which its memory does; quiet: and "
		  "TARGET has written nothing to disk for half a second; persisted: reth says that it is on disk (--ws), or waits for "
		  "that itself (--api reth); by default persisted with reth's API, else head; the time is told apart", .choices = waits },
		{ 0, "wait-every", OPTION_UINT, &r.engine.wait_every, "N",
		  "look for that after each N blocks; 0: after the last; where reth itself waits, before each N-th, 0: each", 0, 1000000 },
		{ 0, "ws", OPTION_STRING, &r.engine.news, "URL", "--wait persisted: reth's WebSocket, with its reth namespace" },
		{ 0, "persist-lag", OPTION_UINT, &r.engine.lag, "N",
		  "--wait persisted: blocks that the node keeps in memory (reth: --engine.persistence-threshold)", 0, 1000000 },
		{ 0, "build", OPTION_FLAG, &r.engine.build,
		  .help = "the node builds each block, as a sequencer does: forkchoiceUpdated with attributes, getPayload, newPayload, "
			  "forkchoiceUpdated; other chains than the OP stack's take its transactions from their pool (--rpc)" },
		{ 0, "build-time", OPTION_DURATION, &r.engine.build_ns, "TIME", "--build: how long the node has before getPayload" },
		{ 0, "load", OPTION_CHOICE, &r.load.kind, "WHAT",
		  "no blocks, but transactions for a dev node that signs for us (anvil): transfers, calls of a contract that hashes "
		  "and stores, or both in turn", .choices = load_kinds },
		{ 0, "rpc", OPTION_STRING, &r.load.url, "URL", "--load, --build: the node's JSON-RPC" },
		{ 0, "count", OPTION_UINT, &r.load.count, "N", "--load: how many transactions at most", 1, 10000000 },
		{ 'd', "duration", OPTION_DURATION, &r.load.duration_ns, "TIME", "--load: how long at most" },
		{ 0, "rate", OPTION_NUMBER, &r.load.rate, "N", "--load: how many a second; 0: as fast as they are taken" },
		{ 0, "connections", OPTION_UINT, &r.load.connections, "N", "--load: at once, each with an account of its own", 1, 256 },
		{ 0, "allow-remote", OPTION_FLAG, &r.load.allow_remote,
		  .help = "--load: also to another machine, if it is your own dev node" },
		{ 0, "record", OPTION_STRING, &r.record, "WHAT",
		  "record TARGET meanwhile, cpu,wait for example, with the blocks as marks (gasflame blocks)" },
		{ 0, "record-output", OPTION_STRING, &r.record_output, "FILE", "where that goes" },
		{ 0, "log", OPTION_STRING, &r.log, "FILE",
		  "--load: the node's log; with it the blocks of the recording have spans, and are no moments" },
		{ 0, "list", OPTION_FLAG, &r.list, .help = "a line for each block too" },
		{ 0, "json", OPTION_FLAG, &r.json, .help = "JSON instead of a table" },
		{ 'o', "output", OPTION_STRING, &r.folder, "DIR",
		  "also into files there: combined_latency.csv, total_gas.csv, replay.json; built_latency.csv; load.json" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), e, code;

	if (first < 0)
		return -first - 1;
	r.engine.source.ahead = ahead;
	r.engine.source.retries = retries;
	r.engine.timeout_ms = MIN(timeout_ns / 1000000 + !!(timeout_ns % 1000000), (uint64_t)INT32_MAX);
	r.targets = argv + first;
	r.target_count = argc - first;
	e = check(&r, &err);
	code = e ? exit_code(&err, e) : r.record ? record_replay(&r) : measure(&r);
	targets_done(&r.node);
	return code;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "send a node blocks, or load, and say how fast it is",
	.usage = "[options] [TARGET]",
	.describe = "Drives a node as a consensus client does, over the Engine API: newPayload and forkchoiceUpdated for each "
		    "block, in the version that its fork wants, safe 32 and finalized 64 blocks behind. The node must stand at the "
		    "block before the first. Latencies are as reth-bench had them; Ggas/s by the latency of newPayload, and by the "
		    "wall clock. Ctrl-C ends it early and keeps what was measured.\n\n"
		    "Where a block carries requests to the beacon chain, JSON-RPC gives only their hash: they come from --beacon, "
		    "--requests, or executionRequests in the file of blocks. Without these the hash is sent (reth takes it with "
		    "--engine.accept-execution-requests-hash). reth's own API needs none of them.\n\n"
		    "With --load it sends transactions to a dev node instead, of the accounts that the node itself has; only on "
		    "this machine, unless --allow-remote says otherwise.",
	.example = "gasflame replay --from-rpc http://127.0.0.1:8545 --to 20000500 --jwt-secret jwt.hex -o before\n"
		   "gasflame replay --blocks blocks.jsonl --jwt-secret jwt.hex --record cpu,wait --record-output x.gasflame reth\n"
		   "gasflame replay --build --from-rpc http://127.0.0.1:8545 --to 20000500 --jwt-secret jwt.hex -o built\n"
		   "gasflame compare before/combined_latency.csv after/combined_latency.csv\n"
		   "gasflame replay --load mixed --count 5000 --duration 30s --record cpu,wait anvil",
	.run = replay_main,
	.keeps_rights = true,
};
