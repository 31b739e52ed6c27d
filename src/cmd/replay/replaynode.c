/*
 * replaynode.c - calls of the node that a replay drives: the token, repetitions, and what its answers mean.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/replay/replayint.h"
#include "cmd/stop.h"
#include "ethereum/rpcblock.h"
#include "net/http.h"

enum {
	TOKEN_SECONDS = 20,   /* nodes accept one for 60 s, and clocks differ */
	FIRST_PAUSE_MS = 50,
	LONGEST_PAUSE_MS = 5000,
	ANSWER_BYTES = 64 << 20,
};

int replaynode_open(struct run *r)
{
	int e = jwt_read_secret(r->o->secret, r->secret, r->err);

	if (!e)
		e = http_open(r->o->engine, "--engine", &r->http, r->err);
	if (!e)
		http_stop_on(r->http, &stop_wanted);
	return e;
}

void replaynode_close(struct run *r)
{
	http_close(r->http);
	http_close(r->pool);
	explicit_bzero(r->secret, sizeof(r->secret));
	buf_done(&r->token);
}

bool replaynode_nap(uint64_t ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
	return !stop_wanted;
}

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

int replaynode_ask(struct run *r, struct rpccall *c, json_t **ret)
{
	const struct http_question how = { .timeout_ms = r->o->timeout_ms, .limit = ANSWER_BYTES, .bearer = token(r) };
	int e = rpccall_ask(c, r->http, &how, ret, r->err);

	if (e == -EACCES)
		err_set(r->err, EACCES,
			"%s does not take our token (401): --jwt-secret must name the secret that the node itself reads (its "
			"--authrpc.jwtsecret, or jwt.hex in its data folder), and both clocks must agree within a minute",
			r->o->engine);
	else if (e && e != -EREMOTEIO)
		err_prefix(r->err, "%s", r->o->engine);
	return e;
}

/* SYNCING may pass (the node is still at the block before), and so may a connection that breaks. Neither INVALID nor a
 * refusal does. */
int replaynode_ask_status(struct run *r, const char *name, struct rpccall *c, struct engine_status *status)
{
	int e;

	for (unsigned attempt = 0;; attempt++) {
		unsigned ms = FIRST_PAUSE_MS << MIN(attempt, 7U);
		_cleanup_json_ json_t *result = NULL;

		*status = (struct engine_status){ 0 };
		e = replaynode_ask(r, c, &result);
		if (!e)
			e = engine_status_read(result, status, r->err);
		if (e)
			err_prefix(r->err, "%s", name);
		if (!e && status->word == ENGINE_SYNCING)
			r->result->syncing++;
		if (e == -EREMOTEIO || e == -EACCES || e == -ENOSYS || (!e && status->word != ENGINE_SYNCING))
			break;
		if (attempt >= r->o->source.retries || stop_wanted)
			break;
		log_progress("%s: %s; asking again (%u of %u)", name, e ? r->err->text : "SYNCING", attempt + 1, r->o->source.retries);
		if (!replaynode_nap(MIN(ms, (unsigned)LONGEST_PAUSE_MS)))
			break;
		r->result->retried++;
	}
	return e;
}

int replaynode_block(struct run *r, const char *by, struct rpcblock *ret)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *block = NULL;
	int e;

	rpccall_begin(&c, "eth_getBlockByNumber");
	json_put_string(&c.params, NULL, by);
	json_put_bool(&c.params, NULL, false);
	e = replaynode_ask(r, &c, &block);
	if (e && e != -EREMOTEIO && e != -EPROTO)
		return e;
	e = e ? e : rpcblock_read(block, ret);
	return e ? err_set(r->err, -e, "%s does not say what its block %s is", r->o->engine, by) : 0;
}

/* A method that is there complains of its missing parameters. */
int replaynode_choose_api(struct run *r)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *result = NULL;
	int e;

	rpccall_begin(&c, "reth_newPayload");
	if (r->o->api == REPLAY_API_ENGINE || r->o->build)
		return 0;
	e = replaynode_ask(r, &c, &result);
	if (e == -EACCES)
		return e;
	r->reth = c.code == RPC_INVALID_PARAMS;
	if (r->o->api == REPLAY_API_RETH && !r->reth)
		return e == -EREMOTEIO || !e ?
		       err_set(r->err, ENOTSUP, "%s has no reth_newPayload: it is not reth, or one from before 2026 (--api engine)",
			       r->o->engine) : e;
	return 0;
}

int replaynode_judge(struct run *r, const char *what, const struct engine_block *b, const struct engine_status *s)
{
	struct rpcblock head;

	switch (s->word) {
	case ENGINE_VALID:
		return 0;
	case ENGINE_ACCEPTED:
		r->result->accepted++;
		return 0;
	case ENGINE_SYNCING:
		if (!replaynode_block(r, "latest", &head) && b->number != head.block.number + 1)
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

static int choose_once(struct run *r, unsigned version, const char *head, const struct blocksource_block *near,
		       const struct buf *attributes, struct engine_status *status, uint64_t *ret_ns, long long *ret_code)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	char method[40];
	int e;

	snprintf(method, sizeof(method), r->reth ? "reth_forkchoiceUpdated" : "engine_forkchoiceUpdatedV%u", version);
	rpccall_begin(&c, method);
	engine_state_put(&c.params, head, near->safe, near->final);
	if (!r->reth && attributes)
		json_put_raw(&c.params, NULL, attributes->data, attributes->n);
	else if (!r->reth)
		json_put_null(&c.params, NULL);
	if (!r->reth && version >= 4)
		json_put_null(&c.params, NULL); /* custodyColumns: a replay has none */
	e = replaynode_ask_status(r, method, &c, status);
	*ret_ns = c.ns;
	*ret_code = c.code;
	return e;
}

int replaynode_choose(struct run *r, const struct engine_block *b, const char *head, const struct blocksource_block *near,
		      const struct buf *attributes, struct engine_status *status, uint64_t *ret_ns)
{
	unsigned version = r->old_choice ? MIN(engine_choice_version(b->version), 3U) : engine_choice_version(b->version);
	long long code;
	int e = choose_once(r, version, head, near, attributes, status, ret_ns, &code);

	if (e == -EREMOTEIO && version == 4 && (code == RPC_NO_METHOD || code == RPC_UNSUPPORTED_FORK)) {
		log_warn("block %llu: %s; forkchoiceUpdatedV3 from here on", (unsigned long long)b->number, r->err->text);
		r->old_choice = true;
		e = choose_once(r, 3, head, near, attributes, status, ret_ns, &code);
	}
	if (e)
		return err_prefix(r->err, "block %llu", (unsigned long long)b->number);
	return replaynode_judge(r, "forkchoiceUpdated", b, status);
}
