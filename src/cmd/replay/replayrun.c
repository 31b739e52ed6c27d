/*
 * replayrun.c - sends blocks to a node over the Engine API, one after the other, and measures.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/file/newfile.h"
#include "cmd/recording/output.h"
#include "cmd/replay/replay.h"
#include "cmd/stop.h"
#include "export/bench/replay.h"
#include "ethereum/jwt.h"
#include "net/http.h"
#include "ethereum/rpcblock.h"

enum {
	TOKEN_SECONDS = 20,   /* nodes take one for 60 s, and clocks differ */
	SOURCE_MS = 100,      /* how often to check for Ctrl-C while waiting for the source */
	FIRST_PAUSE_MS = 50,
	LONGEST_PAUSE_MS = 5000,
	SMALL_ANSWER = 16 << 20,
	WATCH_MS = 20,
	QUIET_MS = 500,
	WATCH_SECONDS = 120,
};

struct run {
	const struct replay_options *o;
	struct replay_result *result;
	struct blocksource *source;
	struct http *http;
	FILE *save;
	uint8_t secret[JWT_SECRET_BYTES];
	struct buf token, body;
	uint64_t token_seconds;
	uint64_t start_ns;
	uint64_t from;        /* the first block */
	uint64_t looked_on_ns;
	uint64_t total;       /* blocks to come, 0 = not known */
	bool told_requests;
	struct engine_block last; /* that was sent; its buffers are gone */
	struct err *err;
};

/* --- questions --- */

static const char *token(struct run *r)
{
	uint64_t now = clock_wall_ns() / 1000000000;

	if (!r->token.n || now > r->token_seconds + TOKEN_SECONDS || now < r->token_seconds) {
		r->token.n = 0;
		jwt_put(&r->token, r->secret, now);
		r->token_seconds = now;
	}
	return r->token.data;
}

static int ask(struct run *r, const char *method, const char *params, size_t n, struct http_answer *ret)
{
	struct http_question q = { .timeout_ms = r->o->timeout_ms, .limit = SMALL_ANSWER, .bearer = token(r) };
	int e;

	r->body.n = 0;
	buf_printf(&r->body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":", method);
	buf_add(&r->body, params, n);
	buf_putc(&r->body, '}');
	q.body = r->body.data;
	q.n = r->body.n;
	e = http_ask(r->http, &q, ret, r->err);
	if (e == -EACCES)
		err_set(r->err, EACCES,
			"%s does not take our token (401): --jwt-secret must name the secret that the node itself reads (its "
			"--authrpc.jwtsecret, or jwt.hex in its data folder), and both clocks must agree within a minute",
			r->o->engine);
	else if (e)
		err_prefix(r->err, "%s", r->o->engine);
	return e;
}

static bool nap(unsigned ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
	return !stop_wanted;
}

/* SYNCING may pass (the node is still at the block before), and so may a connection that breaks. Neither INVALID nor a
 * refusal does. */
static int ask_status(struct run *r, const char *what, unsigned version, const char *params, size_t n,
		      struct engine_status *status, struct http_answer *a)
{
	char method[48];
	int e;

	snprintf(method, sizeof(method), "engine_%sV%u", what, version);
	for (unsigned attempt = 0;; attempt++) {
		unsigned ms = FIRST_PAUSE_MS << MIN(attempt, 7U);

		*status = (struct engine_status){ 0 };
		e = ask(r, method, params, n, a);
		if (!e) {
			e = engine_status_read(a->text, a->n, status, r->err);
			if (e)
				err_prefix(r->err, "%s", method);
		}
		if (!e && status->word == ENGINE_SYNCING)
			r->result->syncing++;
		if (e == -EREMOTEIO || e == -EACCES || e == -ENOSYS || (!e && status->word != ENGINE_SYNCING))
			break;
		if (attempt >= r->o->source.retries || stop_wanted)
			break;
		log_progress("%s: %s; asking again (%u of %u)", method, e ? r->err->text : "SYNCING", attempt + 1, r->o->source.retries);
		if (!nap(MIN(ms, (unsigned)LONGEST_PAUSE_MS)))
			break;
		r->result->retried++;
	}
	return e;
}

/* --- a node's view of its blocks --- */

static int ask_block(struct run *r, const char *by, struct rpcblock *ret)
{
	struct http_answer a;
	char params[64];
	int e;

	snprintf(params, sizeof(params), "[\"%s\",false]", by);
	e = ask(r, "eth_getBlockByNumber", params, strlen(params), &a);
	if (e)
		return e;
	e = rpcblock_parse(a.text, a.n, ret);
	return e ? err_set(r->err, -e, "%s does not say what its block %s is", r->o->engine, by) : 0;
}

/* Returns the bytes that the node's processes have written to disk. */
static uint64_t written(const struct replay_options *o)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < o->pid_count; i++) {
		_cleanup_free_ char *path = mem_printf("/proc/%d/io", (int)o->pids[i]), *text = NULL;
		const char *line;
		size_t n;

		if (!fd_read_path(path, 4096, &text, &n) && (line = strstr(text, "\nwrite_bytes: ")))
			sum += strtoull(line + strlen("\nwrite_bytes: "), NULL, 10);
	}
	return sum;
}

/* Until nothing was written for a while; when the last was. */
static uint64_t watch_disk(struct run *r, uint64_t deadline)
{
	uint64_t bytes = written(r->o), since = clock_mono_ns();

	while (clock_mono_ns() < deadline && clock_mono_ns() - since < QUIET_MS * 1000000ULL && nap(WATCH_MS)) {
		uint64_t now = written(r->o);

		if (now != bytes)
			since = clock_mono_ns();
		bytes = now;
	}
	return since;
}

/* Waits until the node shows the sent block, rather than for a fixed time. */
static int watch(struct run *r, const struct engine_block *b)
{
	uint64_t start = clock_mono_ns(), deadline = start + WATCH_SECONDS * 1000000000ULL, kept;
	struct rpcblock seen = { 0 };
	char by[32];
	int e = 0;

	if (r->o->wait == REPLAY_WAIT_NONE)
		return 0;
	snprintf(by, sizeof(by), "0x%llx", (unsigned long long)b->number);
	do {
		e = ask_block(r, by, &seen);
	} while ((e || strcasecmp(seen.hash, b->hash)) && e != -EACCES && clock_mono_ns() < deadline && nap(WATCH_MS));
	kept = clock_mono_ns();
	if (r->o->wait == REPLAY_WAIT_QUIET)
		kept = watch_disk(r, deadline);
	r->result->persist_ns += kept - start;
	r->looked_on_ns += clock_mono_ns() - kept; /* that nothing more comes: not the node's time */
	if ((e || strcasecmp(seen.hash, b->hash)) && !stop_wanted)
		return err_set(r->err, ETIMEDOUT,
			       "block %llu was accepted, but the node does not answer with it by its number after %d s (--wait none "
			       "does not look)", (unsigned long long)b->number, WATCH_SECONDS);
	return 0;
}

/* --- a block --- */

static int judge(struct run *r, const char *what, const struct engine_block *b, const struct engine_status *s)
{
	struct rpcblock head;

	switch (s->word) {
	case ENGINE_VALID:
		return 0;
	case ENGINE_ACCEPTED:
		r->result->accepted++;
		return 0;
	case ENGINE_SYNCING:
		if (!ask_block(r, "latest", &head) && b->number != head.block.number + 1)
			return err_set(r->err, ENOTCONN,
				       "block %llu: the node answers SYNCING to %s: its last block is %llu, so the replay must begin with "
				       "%llu (--from), on the same chain", (unsigned long long)b->number, what,
				       (unsigned long long)head.block.number, (unsigned long long)head.block.number + 1);
		return err_set(r->err, ENOTCONN,
			       "block %llu: the node answers SYNCING to %s, and goes on to: it lacks the parent %s; is it the same "
			       "chain?", (unsigned long long)b->number, what, b->parent);
	default:
		return err_set(r->err, EBADE, "block %llu: the node answers %s to %s%s%s%s%s", (unsigned long long)b->number,
			       engine_word_name(s->word), what, *s->error ? ": " : "", s->error,
			       *s->latest_valid ? "; the last valid one is " : "", s->latest_valid);
	}
}

static int save_block(struct run *r, const struct engine_block *b)
{
	if (r->save && (fwrite(b->line.data, 1, b->line.n, r->save) != b->line.n || putc('\n', r->save) == EOF))
		return err_errno(r->err, errno, "cannot write to %s", r->o->save);
	return 0;
}

static void note(struct run *r, const struct engine_block *b, uint64_t begin_ns, uint64_t begin_wall_ns, uint64_t payload_ns,
		 uint64_t choice_ns)
{
	uint64_t end = clock_mono_ns();
	struct replay_mark m = { begin_wall_ns, begin_wall_ns + (end - begin_ns), b->number, b->gas_used, b->transactions };

	vec_push(&r->result->rows, (struct replay_row){
		.number = b->number, .gas_limit = b->gas_limit, .gas_used = b->gas_used, .transactions = b->transactions,
		.payload_ns = payload_ns, .choice_ns = choice_ns, .total_ns = end - begin_ns, .start_wall_ns = begin_wall_ns,
		.end_ns = end - r->start_ns - r->looked_on_ns });
	/* A mark that does not fit into memory is not worth the end of a replay. */
	if (r->o->marks >= 0 && fd_write_all(r->o->marks, &m, sizeof(m)))
		log_debug("block %llu is no mark", (unsigned long long)b->number);
}

static int send_block(struct run *r, const struct blocksource_block *x)
{
	const struct engine_block *b = &x->block;
	_cleanup_(buf_done) struct buf choice = { 0 };
	struct engine_status status;
	struct http_answer payload, chosen;
	uint64_t begin_wall, begin;
	int e;

	if (b->requests_by_hash && !r->told_requests) {
		log_warn("block %llu has requests of which JSON-RPC gives only the hash: it is sent instead, which reth takes with "
			 "--engine.accept-execution-requests-hash", (unsigned long long)b->number);
		r->told_requests = true;
	}
	engine_choice_put(&choice, b->hash, x->safe, x->final);
	e = ask_status(r, "newPayload", b->version, b->params.data, b->params.n, &status, &payload);
	if (e)
		return err_prefix(r->err, "block %llu", (unsigned long long)b->number);
	begin = clock_mono_ns() - payload.ns;
	begin_wall = clock_wall_ns() - payload.ns;
	e = judge(r, "newPayload", b, &status);
	if (e)
		return e;
	e = ask_status(r, "forkchoiceUpdated", engine_choice_version(b->version), choice.data, choice.n, &status, &chosen);
	if (e)
		return err_prefix(r->err, "block %llu", (unsigned long long)b->number);
	e = judge(r, "forkchoiceUpdated", b, &status);
	if (!e)
		note(r, b, begin, begin_wall, payload.ns, chosen.ns);
	return e;
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
		e = save_block(r, &x.block);
		if (!e)
			e = send_block(r, &x);
		watched = false;
		if (!e) {
			show(r, &x.block);
			watched = r->o->wait_every && r->result->rows.n % r->o->wait_every == 0;
			if (watched)
				e = watch(r, &x.block);
		}
		r->last = x.block;
		engine_block_done(&x.block);
	}
	if (!e && !watched && !stop_wanted)
		e = watch(r, &r->last);
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
	int e = ask_block(r, "latest", &head);
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
	int e = jwt_read_secret(r->o->secret, r->secret, r->err);

	if (!e)
		e = http_open(r->o->engine, "--engine", &r->http, r->err);
	if (!e)
		http_stop_on(r->http, &stop_wanted);
	if (!e)
		e = blocksource_open(&range, &r->source, r->err);
	if (!e)
		e = find_range(r, &range);
	if (!e && r->o->save)
		e = open_save(r);
	if (!e)
		e = blocksource_start(r->source, &range, r->err);
	return e;
}

int replay_run(const struct replay_options *o, struct replay_result *ret, struct err *err)
{
	struct run r = { .o = o, .result = ret, .err = err };
	int e = prepare(&r);

	ret->engine = o->engine;
	ret->watched = o->wait == REPLAY_WAIT_QUIET ? "the node answers with the block by its number, and writes nothing to disk any more" :
		       o->wait == REPLAY_WAIT_HEAD  ? "the node answers with the block by its number" : "nothing";
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
	http_close(r.http);
	explicit_bzero(r.secret, sizeof(r.secret));
	buf_done(&r.token);
	buf_done(&r.body);
	return e;
}
