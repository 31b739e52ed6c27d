/*
 * replayrun.c - sends blocks to a node over the Engine API, one after the other, and measures.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/newfile.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/recording/output.h"
#include "cmd/replay/replayint.h"
#include "cmd/stop.h"
#include "ethereum/rpc.h"

enum { SOURCE_MS = 100 }; /* how often to check for Ctrl-C while waiting for the source */

/* --- a block --- */

static int save_block(struct run *r, const struct engine_block *b)
{
	if (r->save && (fwrite(b->line.data, 1, b->line.n, r->save) != b->line.n || putc('\n', r->save) == EOF))
		return err_errno(r->err, errno, "cannot write to %s", r->o->save);
	return 0;
}

/* span_ns: from its first question to its last answer. */
static void note(struct run *r, struct replay_row *row, uint64_t span_ns)
{
	struct replay_mark m = { row->start_wall_ns, row->start_wall_ns + span_ns, row->number, row->gas_used, row->transactions };

	row->end_ns = clock_mono_ns() - r->start_ns - r->looked_on_ns;
	vec_push(&r->result->rows, *row);
	/* A mark that does not fit into memory is not worth the end of a replay. */
	if (r->o->marks >= 0 && fd_write_all(r->o->marks, &m, sizeof(m)))
		log_debug("block %llu is no mark", (unsigned long long)row->number);
}

static uint64_t known_ns(uint64_t us)
{
	return us == ENGINE_UNKNOWN ? REPLAY_UNKNOWN : us * 1000;
}

/* Says what to do about a refusal, where something can be done. */
static int explain(struct run *r, const struct engine_block *b, long long code)
{
	_cleanup_free_ char *text = NULL;
	const char *advice = "";

	if (code == RPC_UNSUPPORTED_FORK)
		advice = ": by its fields the block is of another fork than the node has at its time; its genesis or chain "
			 "configuration is not the source's";
	else if (code == RPC_NO_METHOD)
		advice = ": the node is too old for this block";
	else if (code == RPC_INVALID_PARAMS && b->requests_by_hash)
		advice = ": the block's requests are not known, and their hash is not accepted: --beacon, --requests, or --api reth";
	err_prefix(r->err, "block %llu", (unsigned long long)b->number);
	text = mem_strdup(r->err->text);
	return *advice ? err_set(r->err, r->err->code, "%s%s", text, advice) : -r->err->code;
}

static void begin_payload(const struct run *r, const struct engine_block *b, struct rpccall *c, char method[32])
{
	bool wait = r->wait == REPLAY_WAIT_PERSISTED && !r->news &&
		    (!r->o->wait_every || r->result->rows.n % r->o->wait_every == 0);

	if (!r->reth) {
		snprintf(method, 32, "engine_newPayloadV%u", b->version);
		rpccall_begin_raw(c, method, b->params.data, b->params.n);
		return;
	}
	snprintf(method, 32, "reth_newPayload");
	rpccall_begin(c, method);
	json_put_raw(&c->params, NULL, b->reth.data, b->reth.n);
	json_put_bool(&c->params, NULL, wait);
	json_put_bool(&c->params, NULL, r->wait != REPLAY_WAIT_NONE); /* for its caches */
}

/* newPayload and forkchoiceUpdated, as a consensus client sends them. */
static int import_block(struct run *r, const struct blocksource_block *x, struct replay_row *row, uint64_t *ret_span_ns)
{
	const struct engine_block *b = &x->block;
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	struct engine_status status;
	char method[32];
	uint64_t begin;
	int e;

	if (b->requests_by_hash && !r->reth && !r->told_requests) {
		log_warn("block %llu has requests of which JSON-RPC gives only the hash: it is sent instead, which reth takes with "
			 "--engine.accept-execution-requests-hash (--beacon and --requests get them)", (unsigned long long)b->number);
		r->told_requests = true;
	}
	begin_payload(r, b, &c, method);
	e = replaynode_ask_status(r, method, &c, &status);
	if (e)
		return explain(r, b, c.code);
	begin = clock_mono_ns() - c.ns;
	row->start_wall_ns = clock_wall_ns() - c.ns;
	row->payload_ns = c.ns;
	row->server_ns = known_ns(status.server_us);
	row->persistence_ns = known_ns(status.persistence_us);
	row->cache_ns = known_ns(status.cache_us);
	row->trie_ns = known_ns(status.trie_us);
	e = replaynode_judge(r, "newPayload", b, &status);
	if (!e)
		e = replaynode_choose(r, b, b->hash, x, NULL, &status, &row->choice_ns);
	row->number = b->number;
	row->gas_limit = b->gas_limit;
	row->gas_used = b->gas_used;
	row->transactions = b->transactions;
	row->total_ns = *ret_span_ns = clock_mono_ns() - begin;
	if (r->wait == REPLAY_WAIT_PERSISTED && !r->news && row->persistence_ns != REPLAY_UNKNOWN)
		r->result->persist_ns += row->persistence_ns;
	return e;
}

static int send_block(struct run *r, const struct blocksource_block *x)
{
	struct replay_row row = replay_row_empty;
	uint64_t span = 0;
	int e = r->o->build ? replaybuild_block(r, x, &row, &span) : import_block(r, x, &row, &span);

	if (!e)
		note(r, &row, span);
	return e;
}

/* Blocks begin at least so long after each other. */
static void keep_interval(struct run *r)
{
	uint64_t asked = clock_mono_ns(), now = asked, due = r->last_begin_ns + r->o->interval_ns;

	if (r->last_begin_ns && r->o->interval_ns)
		for (; now < due && !stop_wanted; now = clock_mono_ns())
			replaynode_nap(MIN((due - now) / 1000000 + 1, (uint64_t)SOURCE_MS));
	r->result->interval_ns += now - asked;
	r->last_begin_ns = now;
}

/* --- all of them --- */

static void show(struct run *r, const struct engine_block *b)
{
	const struct replay_row *last = &r->result->rows.v[r->result->rows.n - 1];
	char total[32] = "";

	if (r->total)
		snprintf(total, sizeof(total), " of %llu", (unsigned long long)r->total);
	log_progress("block %llu (%zu%s): %.1f ms, %.3f Ggas/s", (unsigned long long)b->number, r->result->rows.n, total,
		     last->total_ns / 1e6, last->payload_ns ? (double)b->gas_used / last->payload_ns : 0);
}

static int send_all(struct run *r)
{
	struct blocksource_block x;
	bool watched = true;
	int e = 0;

	r->start_ns = clock_mono_ns();
	while (!e && !stop_wanted) {
		uint64_t asked = clock_mono_ns();
		int got = blocksource_next(r->source, SOURCE_MS, &x, r->err);

		r->result->source_ns += clock_mono_ns() - asked;
		if (got == -EAGAIN)
			continue;
		if (got <= 0) {
			e = got;
			break;
		}
		keep_interval(r);
		e = save_block(r, &x.block);
		if (!e)
			e = send_block(r, &x);
		watched = false;
		if (!e) {
			show(r, &x.block);
			if (r->o->build)
				memcpy(x.block.hash, r->head, ENGINE_HASH); /* the node has what it built */
			watched = r->o->wait_every && r->result->rows.n % r->o->wait_every == 0;
			if (watched)
				e = replaywait_block(r, &x.block);
		}
		r->last = x.block;
		engine_block_done(&x.block);
	}
	if (!e && !watched && !stop_wanted)
		e = replaywait_block(r, &r->last);
	if (!e && !r->result->rows.n && !stop_wanted)
		e = err_set(r->err, ENODATA, "there is nothing to replay: the source has no block from %llu on (--from begins elsewhere)",
			    (unsigned long long)r->from);
	r->result->wall_ns = clock_mono_ns() - r->start_ns - r->looked_on_ns;
	log_progress_end();
	return e;
}

/* The default range: from the block after the node's last to the last of the source. */
static int find_range(struct run *r, struct blocksource_options *range)
{
	struct rpcblock head = { 0 };
	int e = replaynode_block(r, "latest", &head);
	bool known = !e;

	/* A node without an answer can still be sent blocks. */
	if (e && (!r->o->from_given || e == -EACCES || e == -EIO || e == -ETIMEDOUT))
		return e;
	e = 0;
	if (!r->o->from_given)
		range->from = head.block.number + 1;
	if (!r->o->to_given && range->rpc)
		e = blocksource_last(r->source, &range->to, r->err);
	if (e)
		return e;
	if (range->from > range->to)
		return err_set(r->err, ENODATA,
			       "there is nothing to replay: the node's last block is %llu, and the source's %llu",
			       (unsigned long long)head.block.number, (unsigned long long)range->to);
	if (known && range->from != head.block.number + 1)
		log_warn("the node's last block is %llu, and the replay begins with %llu", (unsigned long long)head.block.number,
			 (unsigned long long)range->from);
	r->from = range->from;
	r->total = range->rpc ? range->to - range->from + 1 : 0;
	return 0;
}

/* Each block is there as soon as it is sent, so the file has its name from the beginning. */
static int open_save(struct run *r)
{
	struct owner owner = output_owner();
	_cleanup_(newfile_done) struct newfile f;
	int e = newfile_open(&f, r->o->save, NEWFILE_TYPED, 0666, &owner, r->err);

	if (!e)
		e = newfile_show(&f, r->err);
	if (e)
		return e;
	r->save = fdopen(f.fd, "w");
	if (!r->save)
		return err_errno(r->err, errno, "cannot write to %s", r->o->save);
	f.fd = -1;
	setlinebuf(r->save);
	return 0;
}

static int prepare(struct run *r)
{
	struct blocksource_options range = r->o->source;
	int e = replaynode_open(r);

	if (!e)
		e = blocksource_open(&range, &r->source, r->err);
	if (!e)
		e = find_range(r, &range);
	if (!e)
		e = replaynode_choose_api(r);
	if (!e)
		e = replaywait_open(r);
	if (!e && r->o->save)
		e = open_save(r);
	range.reth = r->reth;
	range.build = r->o->build;
	if (!e)
		e = blocksource_start(r->source, &range, r->err);
	return e;
}

int replay_run(const struct replay_options *o, struct replay_result *ret, struct err *err)
{
	struct run r = { .o = o, .result = ret, .err = err };
	int e = prepare(&r);

	ret->engine = o->engine;
	ret->watched = replaywait_words(&r);
	ret->api = r.reth ? "reth" : "engine";
	ret->built = o->build;
	if (!e)
		e = send_all(&r);
	if (stop_wanted && e == -ECANCELED)
		e = 0;
	if (!e && stop_wanted)
		ret->stopped = "stopped";
	else if (e)
		ret->stopped = "ended by an error";
	if (r.source)
		ret->source_retried = blocksource_retried(r.source);
	if (r.save && fclose(r.save) && !e)
		e = err_errno(err, errno, "cannot write to %s", o->save);
	blocksource_close(r.source);
	rpc_close(r.news);
	replaynode_close(&r);
	return e;
}
