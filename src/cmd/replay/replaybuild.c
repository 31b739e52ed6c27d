/*
 * replaybuild.c - blocks as a sequencer makes them: forkchoiceUpdated with attributes, getPayload, newPayload,
 * forkchoiceUpdated; each step timed.
 *
 * On a chain of the OP stack the attributes have the block's transactions, and the node builds the same block again. On
 * others the node takes them from its pool, to which they are sent first; what it builds may differ, and the next block
 * is built on that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/replay/replayint.h"
#include "cmd/stop.h"
#include "net/http.h"

enum { POOL_MS = 30000, POOL_BYTES = 1 << 20 };

/* A transaction that the pool refuses, because it has it for example, is not in the block: that is counted. */
static int fill_pool(struct run *r, const struct engine_block *b)
{
	_cleanup_json_ json_t *list = json_loadb(b->raw.data, b->raw.n, 0, NULL);
	int e = r->pool || b->op ? 0 : http_open(r->o->pool, "--rpc", &r->pool, r->err);

	if (e)
		return e;
	for (size_t i = 0; !b->op && i < json_array_size(list) && !stop_wanted; i++) {
		_cleanup_(rpccall_done) struct rpccall c = { 0 };
		_cleanup_json_ json_t *hash = NULL;

		rpccall_begin(&c, "eth_sendRawTransaction");
		json_put_string(&c.params, NULL, json_string_value(json_array_get(list, i)));
		e = rpccall_ask(&c, r->pool, &(struct http_question){ .timeout_ms = POOL_MS, .limit = POOL_BYTES }, &hash, r->err);
		if (e && e != -EREMOTEIO)
			return err_prefix(r->err, "block %llu: the node's pool (--rpc %s)", (unsigned long long)b->number, r->o->pool);
		if (e && !r->result->refused++)
			log_warn("block %llu: the node's pool refuses a transaction: %s", (unsigned long long)b->number, r->err->text);
	}
	return 0;
}

/* Of Prague the version is 4, of Osaka 5, and the fields of a block do not tell them apart: the node does. */
static int get_payload(struct run *r, const struct engine_block *b, const char *id, struct engine_built *built, uint64_t *ret_ns)
{
	for (;;) {
		unsigned version = b->version == 5 ? 6 : b->version == 4 && r->osaka ? 5 : b->version;
		_cleanup_(rpccall_done) struct rpccall c = { 0 };
		_cleanup_json_ json_t *result = NULL;
		char method[32];
		int e;

		snprintf(method, sizeof(method), "engine_getPayloadV%u", version);
		rpccall_begin(&c, method);
		json_put_string(&c.params, NULL, id);
		e = replaynode_ask(r, &c, &result);
		*ret_ns = c.ns;
		if (e == -EREMOTEIO && version == 4 && c.code == RPC_UNSUPPORTED_FORK) {
			r->osaka = true;
			continue;
		}
		if (!e)
			e = engine_built_read(result, b, built, r->err);
		return e ? err_prefix(r->err, "block %llu: %s", (unsigned long long)b->number, method) : 0;
	}
}

static int import(struct run *r, const struct engine_block *b, const struct engine_built *built, uint64_t *ret_ns)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	struct engine_status status;
	char method[32];
	int e;

	snprintf(method, sizeof(method), "engine_newPayloadV%u", b->version);
	rpccall_begin_raw(&c, method, built->params.data, built->params.n);
	e = replaynode_ask_status(r, method, &c, &status);
	*ret_ns = c.ns;
	return e ? err_prefix(r->err, "block %llu", (unsigned long long)b->number) : replaynode_judge(r, "newPayload", b, &status);
}

static int build(struct run *r, const struct blocksource_block *x, struct engine_built *built, struct replay_row *row)
{
	const struct engine_block *b = &x->block;
	/* Hashes of the source's chain are the node's only as long as both have the same blocks. */
	struct blocksource_block near = { 0 };
	struct engine_status status;
	int e;

	if (r->result->same == r->result->rows.n) {
		memcpy(near.safe, x->safe, ENGINE_HASH);
		memcpy(near.final, x->final, ENGINE_HASH);
	}
	e = replaynode_choose(r, b, r->head, &near, &b->attributes, &status, &row->attributes_ns);
	if (!e && !*status.payload_id)
		e = err_set(r->err, EPROTO, "block %llu: the node does not begin to build (no payloadId)", (unsigned long long)b->number);
	if (!e && r->o->build_ns)
		replaynode_nap(r->o->build_ns / 1000000);
	if (!e)
		e = get_payload(r, b, status.payload_id, built, &row->get_ns);
	if (!e)
		e = import(r, b, built, &row->payload_ns);
	if (!e)
		e = replaynode_choose(r, b, built->hash, &near, NULL, &status, &row->choice_ns);
	return e;
}

int replaybuild_block(struct run *r, const struct blocksource_block *x, struct replay_row *row, uint64_t *ret_span_ns)
{
	struct engine_built built = { 0 };
	uint64_t begin;
	int e = fill_pool(r, &x->block);

	if (!*r->head)
		memcpy(r->head, x->block.parent, ENGINE_HASH);
	begin = clock_mono_ns();
	row->start_wall_ns = clock_wall_ns();
	if (!e)
		e = build(r, x, &built, row);
	*ret_span_ns = clock_mono_ns() - begin;
	if (!e) {
		row->number = built.number;
		row->gas_limit = built.gas_limit;
		row->gas_used = built.gas_used;
		row->transactions = built.transactions;
		row->total_ns = row->attributes_ns + row->get_ns + row->payload_ns + row->choice_ns;
		r->result->same += !strcasecmp(built.hash, x->block.hash);
		memcpy(r->head, built.hash, ENGINE_HASH);
	}
	engine_built_done(&built);
	return e;
}
