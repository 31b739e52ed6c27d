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

#include <jansson.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/replay/replay.h"
#include "cmd/stop.h"
#include "ethereum/rpc.h"
#include "export/bench/replay.h"
#include "ethereum/engineapi.h"
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

static int ask(struct http *p, const char *method, const char *params, struct http_answer *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	struct http_question q = { .timeout_ms = TIMEOUT_MS, .limit = ANSWER_BYTES };
	int e;

	rpc_request_put(&body, 1, method, params);
	q.body = body.data;
	q.n = body.n;
	e = http_ask(p, &q, ret, err);
	if (e)
		err_prefix(err, "%s", http_url(p));
	return e;
}

static int ask_string(struct http *p, const char *method, const char *params, char **ret, struct err *err)
{
	struct http_answer a;
	int e = ask(p, method, params, &a, err);

	if (!e)
		e = engine_result_read(a.text, a.n, ret, err);
	return e ? err_prefix(err, "%s", method) : 0;
}

static int ask_number(struct http *p, const char *method, const char *params, uint64_t *ret, struct err *err)
{
	_cleanup_free_ char *said = NULL;
	int e = ask_string(p, method, params, &said, err);

	if (!e && !hex_number(said, ret))
		e = err_set(err, EPROTO, "%s: its answer is no number", method);
	return e;
}

static int count_sent(struct http *p, const char *account, const char *when, uint64_t *ret, struct err *err)
{
	char params[96];

	snprintf(params, sizeof(params), "\"%s\",\"%s\"", account, when);
	return ask_number(p, "eth_getTransactionCount", params, ret, err);
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
	const json_t *list;
	struct http_answer a;
	json_t *answer;
	size_t n = 0;
	int e = ask(p, "eth_accounts", "", &a, err);

	if (e)
		return e;
	answer = json_loadb(a.text, a.n, 0, NULL);
	list = json_object_get(answer, "result");
	for (size_t i = 0; i < json_array_size(list) && n < l->count; i++) {
		const char *account = json_string_value(json_array_get(list, i));

		if (hex_is(account, 20))
			memcpy(l->workers[n++].account, account, 43);
	}
	json_decref(answer);
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
	char params[80];

	snprintf(params, sizeof(params), "\"%.66s\"", hash);
	do {
		struct http_answer a;
		json_t *answer;
		const char *address;
		int e = ask(p, "eth_getTransactionReceipt", params, &a, err);

		if (e)
			return e;
		answer = json_loadb(a.text, a.n, 0, NULL);
		address = json_string_value(json_object_get(json_object_get(answer, "result"), "contractAddress"));
		if (hex_is(address, 20))
			l->contract = mem_strdup(address);
		json_decref(answer);
	} while (!l->contract && clock_mono_ns() < deadline && nap(LOOK_MS));
	return l->contract ? 0 :
	       err_set(err, stop_wanted ? EINTR : ETIMEDOUT, "the contract was not mined within %d s: does the node mine?",
		       MINED_SECONDS);
}

static int deploy(struct load *l, struct http *p, struct err *err)
{
	_cleanup_free_ char *params =
		mem_printf("{\"from\":\"%s\",\"data\":\"" DEPLOY "\",\"gas\":\"0x30d40\"}", l->workers[0].account), *hash = NULL;
	int e = ask_string(p, "eth_sendTransaction", params, &hash, err);

	if (e)
		return err_prefix(err, "the contract cannot be deployed");
	return wait_for_contract(l, p, hash, err);
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
	struct load *l = w->load;
	_cleanup_free_ char *hash = NULL, *params = kind == CALLS ?
		mem_printf("{\"from\":\"%s\",\"to\":\"%s\",\"gas\":\"0x3d0900\",\"nonce\":\"0x%llx\"}", w->account, l->contract,
			   (unsigned long long)w->nonce) :
		mem_printf("{\"from\":\"%s\",\"to\":\"%s\",\"value\":\"0x1\",\"gas\":\"0x5208\",\"nonce\":\"0x%llx\"}", w->account,
			   w->other, (unsigned long long)w->nonce);
	struct http_answer a;
	int e = ask(w->http, "eth_sendTransaction", params, &a, err);

	if (e)
		return e;
	*ret_ns = a.ns;
	return engine_result_read(a.text, a.n, &hash, err);
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

static void add_blocks(struct load *l, struct http *p, uint64_t first)
{
	struct load_result *r = l->result;
	struct http_answer a;
	uint64_t last, deadline = clock_mono_ns() + (stop_wanted ? LATE_SECONDS : MINED_SECONDS) * 1000000000ULL;
	char params[64];

	if (ask_number(p, "eth_blockNumber", "", &last, NULL) || last < first || last - first > BLOCKS_MAX)
		return;
	for (uint64_t n = first + 1; n <= last; n++) {
		struct rpcblock b;

		if (clock_mono_ns() > deadline)
			return; /* a part of the gas says less than nothing */

		snprintf(params, sizeof(params), "\"0x%llx\",false", (unsigned long long)n);
		if (ask(p, "eth_getBlockByNumber", params, &a, NULL) || rpcblock_parse(a.text, a.n, &b))
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
		e = ask_number(p, "eth_blockNumber", "", &first, err);
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
