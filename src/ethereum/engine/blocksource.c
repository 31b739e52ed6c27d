#include "ethereum/engine/blocksource.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/engine/requests.h"
#include "ethereum/rpccall.h"
#include "net/http.h"
#include "ethereum/rpcblock.h"

enum { TIMEOUT_MS = 30000, FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 5000, REMEMBERED = BLOCKSOURCE_FINAL + 1 };

struct blocksource {
	struct blocksource_options o;
	struct http *http;
	FILE *file;
	uint64_t line;
	struct requests *requests; /* NULL = none */

	/* Of the thread: the hashes of the last blocks, by number. */
	struct {
		uint64_t number;
		char hash[ENGINE_HASH];
	} seen[REMEMBERED];
	char previous[ENGINE_HASH];

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool runs;
	/* Under the lock. */
	bool stop, ended;
	struct blocksource_block *queue; /* of o.ahead */
	size_t first, count;
	uint64_t retried;
	struct err err;
};

/* --- asking --- */

static void wait_changed(struct blocksource *s, unsigned ms)
{
	struct timespec until;

	clock_after_ms(ms, &until);
	pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until);
}

/* Sleeps before another try; false: stopped. */
static bool pause_before(struct blocksource *s, unsigned attempt)
{
	unsigned ms = FIRST_PAUSE_MS << MIN(attempt, 6U);
	bool goes_on;

	pthread_mutex_lock(&s->lock);
	s->retried++;
	if (!s->stop)
		wait_changed(s, MIN(ms, (unsigned)LONGEST_PAUSE_MS));
	goes_on = !s->stop;
	pthread_mutex_unlock(&s->lock);
	return goes_on;
}

static int ask(struct blocksource *s, struct rpccall *c, json_t **ret, struct err *err)
{
	int e = rpccall_ask(c, s->http, &(struct http_question){ .timeout_ms = TIMEOUT_MS }, ret, err);

	return e ? err_prefix(err, "%s", http_url(s->http)) ?: e : 0;
}

static int ask_number(struct blocksource *s, uint64_t number, bool full, json_t **ret, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	char by[32];

	snprintf(by, sizeof(by), "0x%llx", (unsigned long long)number);
	rpccall_begin(&c, "eth_getBlockByNumber");
	json_put_string(&c.params, NULL, by);
	json_put_bool(&c.params, NULL, full);
	return ask(s, &c, ret, err);
}

/* The ways to get what a block of JSON-RPC lacks, by a method that takes one of its members. */
static const struct {
	enum engine_extra what;
	const char *method, *member;
} extras[] = {
	{ ENGINE_TRANSACTION, "eth_getRawTransactionByHash", "hash" },
	{ ENGINE_TRANSACTION, "debug_getRawTransaction", "hash" },
	{ ENGINE_ACCESS_LIST, "eth_getBlockAccessListRaw", "number" },
	{ ENGINE_ACCESS_LIST, "debug_getRawBlockAccessList", "number" },
	{ ENGINE_RLP, "debug_getRawBlock", "number" },
};

static int find_extra(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err)
{
	struct blocksource *s = context;

	if (what == ENGINE_REQUESTS)
		return s->requests ? requests_find(s->requests, of, ret, err) : 0;
	for (size_t i = 0; s->http && i < ARRAY_LEN(extras) && !*ret; i++) {
		_cleanup_(rpccall_done) struct rpccall c = { 0 };

		if (extras[i].what != what)
			continue;
		rpccall_begin(&c, extras[i].method);
		json_put_string(&c.params, NULL, json_string_value(json_object_get(of, extras[i].member)));
		if (!ask(s, &c, ret, NULL) && !json_is_string(*ret)) {
			json_decref(*ret);
			*ret = NULL;
		}
	}
	return 0;
}

static int read_block(struct blocksource *s, json_t *block, struct engine_block *ret, struct err *err)
{
	const struct engine_reading how = { .extra = find_extra, .context = s, .reth = s->o.reth, .build = s->o.build };

	return engine_block_read(block, &how, ret, err);
}

static int fetch_once(struct blocksource *s, uint64_t number, struct engine_block *ret, struct err *err)
{
	_cleanup_json_ json_t *block = NULL;
	int e = ask_number(s, number, true, &block, err);

	if (!e && json_is_null(block))
		return err_set(err, ENOENT, "it has no such block");
	if (!e)
		e = read_block(s, block, ret, err);
	if (!e && ret->number != number)
		e = err_set(err, EPROTO, "it answers with block %llu", (unsigned long long)ret->number);
	return e;
}

static bool worth_another_try(int e)
{
	return e == -EIO || e == -ETIMEDOUT || e == -EPROTO || e == -EREMOTEIO || e == -ENOENT;
}

static int fetch(struct blocksource *s, uint64_t number, struct engine_block *ret, struct err *err)
{
	int e;

	for (unsigned attempt = 0;; attempt++) {
		e = fetch_once(s, number, ret, err);
		if (!worth_another_try(e))
			break;
		if (attempt >= s->o.retries || !pause_before(s, attempt))
			return err_prefix(err, "block %llu could not be had in %u tries", (unsigned long long)number, attempt + 1);
		engine_block_done(ret);
	}
	return e ? err_prefix(err, "block %llu", (unsigned long long)number) : 0;
}

/* --- a file --- */

/* The next line that is not blank; 0 at the end. */
static int read_line(struct blocksource *s, struct buf *line, struct err *err)
{
	int c;

	do {
		line->n = 0;
		while ((c = getc_unlocked(s->file)) != EOF && c != '\n') {
			if (line->n >= HTTP_ANSWER_BYTES)
				return err_set(err, EFBIG, "%s: line %llu is too long", s->o.file, (unsigned long long)s->line + 1);
			buf_putc(line, c);
		}
		s->line += line->n || c == '\n';
	} while (c != EOF && !line->n);
	if (ferror(s->file))
		return err_set(err, EIO, "cannot read %s", s->o.file);
	return line->n > 0;
}

/* A line is a block, or a whole answer with one. */
static int parse_line(struct blocksource *s, const struct buf *line, struct engine_block *ret, struct err *err)
{
	_cleanup_json_ json_t *whole = json_loadb(line->data, line->n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
	json_t *block = json_object_get(whole, "number") ? whole : json_object_get(whole, "result");

	*ret = (struct engine_block){ 0 };
	return json_is_object(block) ? read_block(s, block, ret, err) : err_set(err, EBADMSG, "it is no block in JSON");
}

static int read_next(struct blocksource *s, struct engine_block *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf line = { 0 };
	int e;

	for (;;) {
		e = read_line(s, &line, err);
		if (e <= 0)
			return e;
		e = parse_line(s, &line, ret, err);
		if (e)
			return err_prefix(err, "%s: line %llu", s->o.file, (unsigned long long)s->line);
		if (ret->number >= s->o.from && ret->number <= s->o.to)
			return 1;
		engine_block_done(ret);
		*ret = (struct engine_block){ 0 };
	}
}

/* --- the thread --- */

/* Finds the hash of an earlier block: one that was seen, or from the node. */
static void find_hash(struct blocksource *s, uint64_t number, char ret[ENGINE_HASH])
{
	const size_t at = number % REMEMBERED;
	_cleanup_json_ json_t *block = NULL;
	struct rpcblock b = { 0 };

	if ((s->seen[at].number != number || !*s->seen[at].hash) && s->http) {
		if (ask_number(s, number, false, &block, NULL) || rpcblock_read(block, &b) || b.block.number != number)
			*b.hash = 0;
		s->seen[at].number = number;
		memcpy(s->seen[at].hash, b.hash, ENGINE_HASH);
	}
	if (s->seen[at].number == number)
		memcpy(ret, s->seen[at].hash, ENGINE_HASH);
}

static int check_chain(struct blocksource *s, const struct engine_block *b, struct err *err)
{
	if (!*s->previous || !strcasecmp(s->previous, b->parent))
		return 0;
	return err_set(err, EBADMSG, "block %llu does not follow the one before it: %s", (unsigned long long)b->number,
		       s->http ? "the source changed its mind; try again with blocks that are final" :
				 "the file has a gap, or two chains");
}

static void remember(struct blocksource *s, struct blocksource_block *b)
{
	uint64_t number = b->block.number;

	memcpy(s->previous, b->block.hash, ENGINE_HASH);
	find_hash(s, number > BLOCKSOURCE_SAFE ? number - BLOCKSOURCE_SAFE : 0, b->safe);
	find_hash(s, number > BLOCKSOURCE_FINAL ? number - BLOCKSOURCE_FINAL : 0, b->final);
	s->seen[number % REMEMBERED].number = number;
	memcpy(s->seen[number % REMEMBERED].hash, b->block.hash, ENGINE_HASH);
}

/* 1, 0 at the end, or an error. */
static int make_next(struct blocksource *s, uint64_t *number, struct blocksource_block *ret, struct err *err)
{
	int e;

	*ret = (struct blocksource_block){ 0 };
	if (s->http && *number > s->o.to)
		return 0;
	e = s->http ? fetch(s, *number, &ret->block, err) : read_next(s, &ret->block, err);
	if (e < 0 || (!e && !s->http))
		return e;
	++*number;
	e = check_chain(s, &ret->block, err);
	if (!e)
		remember(s, ret);
	return e ? e : 1;
}

static void *produce(void *context)
{
	struct blocksource *s = context;
	uint64_t number = s->o.from;
	struct blocksource_block b;
	struct err err = { 0 };
	bool stop = false;
	int e = 1;

	while (e > 0 && !stop) {
		e = make_next(s, &number, &b, &err);
		pthread_mutex_lock(&s->lock);
		while (e > 0 && !s->stop && s->count == s->o.ahead)
			pthread_cond_wait(&s->changed, &s->lock);
		stop = s->stop;
		if (e > 0 && !stop)
			s->queue[(s->first + s->count++) % s->o.ahead] = b;
		else
			engine_block_done(&b.block);
		s->ended = e <= 0;
		if (e < 0)
			s->err = err;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

int blocksource_next(struct blocksource *s, unsigned wait_ms, struct blocksource_block *ret, struct err *err)
{
	int e = 1;

	pthread_mutex_lock(&s->lock);
	if (!s->count && !s->ended)
		wait_changed(s, wait_ms);
	if (s->count) {
		*ret = s->queue[s->first];
		s->first = (s->first + 1) % s->o.ahead;
		s->count--;
		pthread_cond_broadcast(&s->changed);
	} else if (!s->ended) {
		e = -EAGAIN;
	} else {
		e = -s->err.code;
		if (e && err)
			*err = s->err;
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* --- its life --- */

int blocksource_open(const struct blocksource_options *o, struct blocksource **ret, struct err *err)
{
	struct blocksource *s = mem_alloc(sizeof(*s));
	int e = 0;

	s->o = *o;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (o->rpc) {
		e = http_open(o->rpc, "--from-rpc", &s->http, err);
	} else {
		s->file = fopen(o->file, "re");
		if (!s->file)
			e = err_errno(err, errno, "cannot read %s", o->file);
	}
	if (!e && (o->requests || o->beacon))
		e = requests_open(o->requests, o->beacon, &s->requests, err);
	if (e) {
		blocksource_close(s);
		return e;
	}
	*ret = s;
	return 0;
}

int blocksource_last(struct blocksource *s, uint64_t *ret, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *said = NULL;
	int e;

	rpccall_begin(&c, "eth_blockNumber");
	if (!s->http)
		return -ENOTSUP;
	e = ask(s, &c, &said, err);
	if (!e && !hex_number(json_string_value(said), ret))
		e = err_set(err, EPROTO, "the number of its last block is none");
	return e ? err_prefix(err, "the source of the blocks") : 0;
}

int blocksource_start(struct blocksource *s, const struct blocksource_options *range, struct err *err)
{
	sigset_t all, before;
	int e;

	s->o = *range;
	s->queue = mem_alloc(s->o.ahead * sizeof(*s->queue));
	/* Signals are the command's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&s->thread, NULL, produce, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->runs = !e;
	return e ? err_errno(err, e, "cannot start a thread") : 0;
}

uint64_t blocksource_retried(struct blocksource *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->retried;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void blocksource_close(struct blocksource *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->http)
		http_stop(s->http);
	if (s->runs)
		pthread_join(s->thread, NULL);
	for (; s->count; s->count--, s->first = (s->first + 1) % s->o.ahead)
		engine_block_done(&s->queue[s->first].block);
	free(s->queue);
	http_close(s->http);
	requests_close(s->requests);
	if (s->file)
		fclose(s->file);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}
