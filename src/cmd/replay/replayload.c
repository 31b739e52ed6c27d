/*
 * replayload.c - load for a dev node, as plain JSON-RPC: transfers and calls of a contract of ours, within
 * bounds.
 *
 * Each connection is a thread with an account of the node's own (eth_accounts), whose nonces it counts
 * itself: the node's own choice would race against the blocks that the others have mined.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/replay/replay.h"
#include "cmd/stop.h"
#include "ethereum/rpccall.h"
#include "export/bench/replay.h"
#include "ethereum/codec/hex.h"
#include "net/http.h"
#include "ethereum/rpcblock.h"

enum { TRANSFERS, CALLS, KINDS };
enum {
	TIMEOUT_MS = 30000,
	ANSWER_BYTES = 16 << 20,
	MINED_SECONDS = 20,     /* for the contract, and for the last transactions */
	BLOCKS_MAX = 100000,    /* that are asked for their gas */
	LATE_SECONDS = 5,       /* an answer that comes when the time is over */
	ERRORS_IN_A_ROW = 50,   /* of one connection: it gives up */
	LOOK_MS = 50,
};

const char *const load_kinds[] = { "transfers", "calls", "mixed", NULL };

/*
 * PUSH2 100; JUMPDEST;                       a counter
 * DUP1 PUSH1 0 MSTORE; PUSH1 32 PUSH1 0 SHA3  its hash
 * DUP1 PUSH1 31 AND SSTORE                    into one of 32 places
 * PUSH1 1 SWAP1 SUB; DUP1 PUSH1 3 JUMPI; STOP
 */
#define LOOP "6100645b80600052602060002080601f1655600190038060035700"
/* Copies the 27 bytes behind it into memory and returns them. */
#define DEPLOY "0x601b600c600039601b6000f3" LOOP

struct worker;

struct load {
	const struct load_options *o;
	struct load_result *result;
	char *contract;
	uint64_t start_ns, deadline_ns;
	atomic_uint_fast64_t next; /* the number of the next transaction */
	atomic_bool stop;
	struct worker *workers;
	size_t count;
};

struct worker {
	struct load *load;
	struct http *http;
	char account[43], other[43];
	uint64_t nonce;
	struct load_kind kinds[KINDS];
	unsigned failed_in_a_row;
	pthread_t thread;
	bool runs;
};

/* --- questions --- */

static int ask(struct http *p, struct rpccall *c, json_t **ret, struct err *err)
{
	int e = rpccall_ask(c, p, &(struct http_question){ .timeout_ms = TIMEOUT_MS, .limit = ANSWER_BYTES }, ret, err);

	return e && e != -EREMOTEIO ? err_prefix(err, "%s", http_url(p)) ?: e : e;
}

/* Sends a call whose result is a number. */
static int ask_number(struct http *p, struct rpccall *c, uint64_t *ret, struct err *err)
{
	_cleanup_json_ json_t *said = NULL;
	int e = ask(p, c, &said, err);

	if (!e && !hex_number(json_string_value(said), ret))
		e = err_set(err, EPROTO, "its answer is no number");
	return e;
}

static int count_sent(struct http *p, const char *account, const char *when, uint64_t *ret, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	int e;

	rpccall_begin(&c, "eth_getTransactionCount");
	json_put_string(&c.params, NULL, account);
	json_put_string(&c.params, NULL, when);
	e = ask_number(p, &c, ret, err);
	return e ? err_prefix(err, "eth_getTransactionCount") ?: e : 0;
}

static bool nap(unsigned ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
	return !stop_wanted;
}

/* --- before --- */

/* Finds an account for each worker. */
static int find_accounts(struct load *l, struct http *p, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *list = NULL;
	size_t n = 0;
	int e;

	rpccall_begin(&c, "eth_accounts");
	e = ask(p, &c, &list, err);
	if (e && e != -EREMOTEIO)
		return e;
	for (size_t i = 0; i < json_array_size(list) && n < l->count; i++) {
		const char *account = json_string_value(json_array_get(list, i));

		if (hex_is(account, 20))
			memcpy(l->workers[n++].account, account, 43);
	}
	if (!n)
		return err_set(err, ENODATA,
			       "%s has no accounts of its own (eth_accounts): --load is for a dev node like anvil, which signs for us",
			       l->o->url);
	l->count = n;
	for (size_t i = 0; i < n; i++)
		memcpy(l->workers[i].other, l->workers[(i + 1) % n].account, 43);
	return 0;
}

static int wait_for_contract(struct load *l, struct http *p, const char *hash, struct err *err)
{
	uint64_t deadline = clock_mono_ns() + MINED_SECONDS * 1000000000ULL;

	do {
		_cleanup_(rpccall_done) struct rpccall c = { 0 };
		_cleanup_json_ json_t *receipt = NULL;
		const char *address;
		int e;

		rpccall_begin(&c, "eth_getTransactionReceipt");
		json_put_string(&c.params, NULL, hash);
		e = ask(p, &c, &receipt, err);
		if (e && e != -EREMOTEIO)
			return e;
		address = json_string_value(json_object_get(receipt, "contractAddress"));
		if (hex_is(address, 20))
			l->contract = mem_strdup(address);
	} while (!l->contract && clock_mono_ns() < deadline && nap(LOOK_MS));
	return l->contract ? 0 :
	       err_set(err, stop_wanted ? EINTR : ETIMEDOUT, "the contract was not mined within %d s: does the node mine?",
		       MINED_SECONDS);
}

/* Begins a transaction from one of the node's accounts; its further members follow, then end_transaction(). */
static void begin_transaction(struct rpccall *c, const char *from, const char *gas)
{
	rpccall_begin(c, "eth_sendTransaction");
	json_open_object(&c->params, NULL);
	json_put_string(&c->params, "from", from);
	json_put_string(&c->params, "gas", gas);
}

/* Sends it; *ret is its hash, the caller's. */
static int end_transaction(struct http *p, struct rpccall *c, json_t **ret, struct err *err)
{
	int e = ask(p, c, ret, err);

	return !e && !json_is_string(*ret) ? err_set(err, EPROTO, "its answer does not match the request") : e;
}

static int deploy(struct load *l, struct http *p, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *hash = NULL;
	int e;

	begin_transaction(&c, l->workers[0].account, "0x30d40");
	json_put_string(&c.params, "data", DEPLOY);
	e = end_transaction(p, &c, &hash, err);
	if (e)
		return err_prefix(err, "the contract cannot be deployed");
	return wait_for_contract(l, p, json_string_value(hash), err);
}

/* --- the load --- */

/* Waits until this transaction is due; false: the time is over, or the user stopped it. */
static bool is_due(const struct load *l, uint64_t number)
{
	uint64_t due = l->start_ns + (l->o->rate > 0 ? (uint64_t)(number * 1e9 / l->o->rate) : 0);

	for (;;) {
		uint64_t now = clock_mono_ns();

		if (l->stop || stop_wanted || now >= l->deadline_ns || due >= l->deadline_ns)
			return false;
		if (now >= due)
			return true;
		nap(MIN((due - now) / 1000000 + 1, (uint64_t)LOOK_MS));
	}
}

static int send_one(struct worker *w, unsigned kind, uint64_t *ret_ns, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *hash = NULL;
	char nonce[32];
	int e;

	snprintf(nonce, sizeof(nonce), "0x%llx", (unsigned long long)w->nonce);
	begin_transaction(&c, w->account, kind == CALLS ? "0x3d0900" : "0x5208");
	json_put_string(&c.params, "to", kind == CALLS ? w->load->contract : w->other);
	json_put_string(&c.params, "nonce", nonce);
	if (kind != CALLS)
		json_put_string(&c.params, "value", "0x1");
	e = end_transaction(w->http, &c, &hash, err);
	*ret_ns = c.ns;
	return e;
}

static void send_next(struct worker *w, uint64_t number)
{
	bool mixed = !strcmp(w->load->o->kind, "mixed");
	unsigned kind = mixed ? number % 2 : !strcmp(w->load->o->kind, "calls") ? CALLS : TRANSFERS;
	struct load_kind *k = &w->kinds[kind];
	struct err err = { 0 };
	uint64_t ns;

	if (!send_one(w, kind, &ns, &err)) {
		w->nonce++;
		w->failed_in_a_row = 0;
		vec_push(&k->latencies_ns, ns);
		return;
	}
	if (err.code == ECANCELED && stop_wanted)
		return;
	k->errors++;
	snprintf(k->error, sizeof(k->error), "%.*s", (int)sizeof(k->error) - 1,
		 err.code == ECANCELED ? "no answer when the time was over" : err.text);
	/* Whether it was taken all the same is for the node to say. */
	if (++w->failed_in_a_row >= ERRORS_IN_A_ROW)
		w->load->stop = true;
	else if (count_sent(w->http, w->account, "pending", &w->nonce, NULL))
		nap(LOOK_MS);
}

static void *work(void *context)
{
	struct worker *w = context;
	struct load *l = w->load;

	for (;;) {
		uint64_t number = l->next++;

		if (number >= l->o->count || !is_due(l, number))
			return NULL;
		send_next(w, number);
	}
}

static int start_workers(struct load *l, struct err *err)
{
	sigset_t all, before;
	int e = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l->start_ns = clock_mono_ns();
	l->deadline_ns = l->start_ns + l->o->duration_ns;
	for (size_t i = 0; i < l->count && !e; i++) {
		e = pthread_create(&l->workers[i].thread, NULL, work, &l->workers[i]);
		l->workers[i].runs = !e;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return e ? err_errno(err, e, "cannot start a thread") : 0;
}

/* Waits until all have ended; a request in progress when the time is over is still answered, or given up. */
static void wait_for_workers(struct load *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct worker *w = &l->workers[i];

		while (w->runs) {
			struct timespec until;
			uint64_t sent = MIN(l->next, l->o->count);

			clock_after_ms(LOOK_MS, &until);
			w->runs = pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &until) != 0;
			log_progress("%llu transactions, %.0f s", (unsigned long long)sent, (clock_mono_ns() - l->start_ns) / 1e9);
			if (stop_wanted || l->stop || clock_mono_ns() > l->deadline_ns + LATE_SECONDS * 1000000000ULL)
				for (size_t k = 0; k < l->count; k++)
					http_stop(l->workers[k].http);
		}
	}
	l->result->wall_ns = clock_mono_ns() - l->start_ns;
	log_progress_end();
}

/* --- after --- */

/* Waits for pending transactions to be mined; without mining they stay pending. */
static void wait_for_mining(struct load *l, struct http *p)
{
	uint64_t deadline = clock_mono_ns() + MINED_SECONDS * 1000000000ULL, mined, left, before = UINT64_MAX;

	do {
		left = 0;
		for (size_t i = 0; i < l->count; i++)
			if (!count_sent(p, l->workers[i].account, "latest", &mined, NULL) && mined < l->workers[i].nonce)
				left += l->workers[i].nonce - mined;
		if (left < before) /* as long as it gets less, it is waited for */
			deadline = clock_mono_ns() + MINED_SECONDS / 4 * 1000000000ULL;
		before = left;
	} while (left && clock_mono_ns() < deadline && nap(LOOK_MS));
	l->result->pending = left;
}

static int ask_block(struct http *p, uint64_t number, struct rpcblock *ret)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *block = NULL;
	char by[32];
	int e;

	snprintf(by, sizeof(by), "0x%llx", (unsigned long long)number);
	rpccall_begin(&c, "eth_getBlockByNumber");
	json_put_string(&c.params, NULL, by);
	json_put_bool(&c.params, NULL, false);
	e = ask(p, &c, &block, NULL);
	return e ? e : rpcblock_read(block, ret);
}

static int ask_last(struct http *p, uint64_t *ret, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	int e;

	rpccall_begin(&c, "eth_blockNumber");
	e = ask_number(p, &c, ret, err);
	return e ? err_prefix(err, "eth_blockNumber") ?: e : 0;
}

static void add_blocks(struct load *l, struct http *p, uint64_t first)
{
	struct load_result *r = l->result;
	uint64_t last, deadline = clock_mono_ns() + (stop_wanted ? LATE_SECONDS : MINED_SECONDS) * 1000000000ULL;

	if (ask_last(p, &last, NULL) || last < first || last - first > BLOCKS_MAX)
		return;
	for (uint64_t n = first + 1; n <= last; n++) {
		struct rpcblock b;

		if (clock_mono_ns() > deadline)
			return; /* a part of the gas says less than nothing */
		if (ask_block(p, n, &b))
			return;
		r->blocks++;
		r->gas += b.block.gas;
		r->transactions += b.block.transactions;
	}
	r->mined_known = true;
}

static void gather(struct load *l)
{
	struct load_result *r = l->result;
	const char *kind = l->o->kind;

	for (unsigned k = 0; k < KINDS; k++) {
		struct load_kind *to;

		if (strcmp(kind, "mixed") && strcmp(kind, load_kinds[k]))
			continue;
		to = &r->kinds[r->kind_count++];
		to->name = load_kinds[k];
		for (size_t i = 0; i < l->count; i++) {
			const struct load_kind *from = &l->workers[i].kinds[k];

			for (size_t j = 0; j < from->latencies_ns.n; j++)
				vec_push(&to->latencies_ns, from->latencies_ns.v[j]);
			to->errors += from->errors;
			if (from->errors)
				memcpy(to->error, from->error, sizeof(to->error));
		}
	}
	r->connections = l->count;
	r->stopped = stop_wanted ? "stopped" : l->stop ? "given up: nothing but errors" : NULL;
}

static int prepare(struct load *l, struct http *p, struct err *err)
{
	int e = find_accounts(l, p, err);

	if (!e && strcmp(l->o->kind, "transfers"))
		e = deploy(l, p, err);
	for (size_t i = 0; i < l->count && !e; i++) {
		struct worker *w = &l->workers[i];

		w->load = l;
		e = http_open(l->o->url, "--rpc", &w->http, err);
		if (!e)
			e = count_sent(w->http, w->account, "pending", &w->nonce, err);
	}
	return e;
}

int load_run(const struct load_options *o, struct load_result *ret, struct err *err)
{
	struct load l = { .o = o, .result = ret, .count = o->connections };
	struct http *p = NULL;
	uint64_t first = 0;
	int e;

	ret->url = o->url;
	ret->rate_wanted = o->rate;
	ret->kinds = mem_alloc(KINDS * sizeof(*ret->kinds));
	if (!o->allow_remote && !http_is_local(o->url))
		return err_set(err, EINVAL,
			       "%s is not this machine: --load sends transactions of the node's own accounts; if that is your own dev "
			       "node, say --allow-remote", o->url);
	l.workers = mem_alloc(l.count * sizeof(*l.workers));
	e = http_open(o->url, "--rpc", &p, err);
	if (!e)
		e = prepare(&l, p, err);
	if (!e)
		e = ask_last(p, &first, err);
	if (!e) {
		e = start_workers(&l, err);
		l.stop |= e != 0;
		wait_for_workers(&l);
		gather(&l);
		if (!stop_wanted)
			wait_for_mining(&l, p);
		add_blocks(&l, p, first);
	}
	for (size_t i = 0; i < o->connections; i++) {
		http_close(l.workers[i].http);
		for (unsigned k = 0; k < KINDS; k++)
			vec_done(&l.workers[i].kinds[k].latencies_ns);
	}
	free(l.workers);
	free(l.contract);
	http_close(p);
	return e;
}

void load_done(struct load_result *r)
{
	for (size_t i = 0; i < r->kind_count; i++)
		vec_done(&r->kinds[i].latencies_ns);
	free(r->kinds);
	r->kinds = NULL;
}
