#include "fleet/clickhouse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "fleet/answer.h"
#include "fleet/storeurl.h"
#include "net/http.h"

/* A month of a busy node is some 100 MB. */
static const uint64_t answer_limit = 1ULL << 30;
enum { GZIP_WINDOW = 15 + 16, GZIP_MEMORY = 8, ERROR_BYTES = 300 };

struct clickhouse {
	struct clickhouse_transport transport;
	VEC(char *) addresses;
	char *database;
	unsigned timeout_ms;
	uint64_t sent_bytes;
};

/* --- over HTTP --- */

struct shard {
	struct http *http; /* NULL until it is used */
	char *address, *user, *key; /* the latter are headers */
};

struct network {
	VEC(struct shard) shards;
	const volatile sig_atomic_t *stop; /* NULL = none */
	struct buf packed;
	char *ca_file; /* NULL = the system's */
};

static void network_done(void *context)
{
	struct network *n = context;

	vec_done_each(&n->shards, e, http_close(e->http); free(e->address); free(e->user); free(e->key));
	buf_done(&n->packed);
	free(n->ca_file);
	free(n);
}

static int pack(struct buf *out, const struct buf *in, struct err *err)
{
	z_stream z = { .next_in = (Bytef *)in->data };
	unsigned char chunk[16384];
	size_t left = in->n;
	int r;

	out->n = 0;
	if (deflateInit2(&z, 1, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ENOMEM, "there is no memory to pack the rows");
	do {
		if (!z.avail_in) {
			z.avail_in = MIN(left, (size_t)1 << 30);
			left -= z.avail_in;
		}
		z.next_out = chunk;
		z.avail_out = sizeof(chunk);
		r = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
		buf_add(out, chunk, sizeof(chunk) - z.avail_out);
	} while (r == Z_OK || r == Z_BUF_ERROR);
	deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : err_set(err, EIO, "the rows cannot be packed");
}

static int network_send(void *context, unsigned shard, const struct clickhouse_request *q, struct clickhouse_reply *ret,
			struct err *err)
{
	struct network *n = context;
	struct shard *s = &n->shards.v[shard];
	const char *packed = q->rows ? "Content-Encoding: gzip" : s->key;
	const char *const headers[] = { "Content-Type: application/octet-stream", s->user, packed, q->rows ? s->key : NULL, NULL };
	_cleanup_(buf_done) struct buf url = { 0 };
	struct http_reply reply;
	struct http_request request = { .headers = headers, .timeout_ms = q->timeout_ms, .limit = answer_limit,
					.once = q->rows, .ca_file = n->ca_file };
	char code[16];
	int r = s->http ? 0 : http_open(s->address, "a store", &s->http, err);

	/* Answers are sent when they are whole: until then the server can still say that it failed. Numbers of 64 bits come as strings,
	 * which is no longer the default: the largest are none in JSON. */
	buf_printf(&url, "%s/?wait_end_of_query=1&output_format_json_quote_64bit_integers=1", s->address);
	if (q->database)
		storeurl_add(&url, "database", q->database);
	if (!r && n->stop)
		http_stop_on(s->http, n->stop);
	if (!r && q->rows) {
		storeurl_add(&url, "query", q->sql);
		r = pack(&n->packed, q->rows, err);
	}
	if (r)
		return r;
	request.url = url.data;
	request.body = q->rows ? n->packed.data : q->sql;
	request.n = q->rows ? n->packed.n : strlen(q->sql);
	r = http_send(s->http, &request, &reply, err);
	if (r)
		return r;
	*ret = (struct clickhouse_reply){ .status = reply.status, .text = reply.text, .n = reply.n, .sent_bytes = request.n };
	if (http_header(&reply, "X-ClickHouse-Exception-Code", code, sizeof(code)))
		ret->exception = strtoul(code, NULL, 10) ?: UINT32_MAX;
	return 0;
}

int clickhouse_open(const struct storeurl *url, struct clickhouse **ret, struct err *err)
{
	struct network *n = mem_alloc(sizeof(*n));
	struct clickhouse_transport transport = { network_send, network_done, n };

	n->ca_file = mem_strdup(url->ca_file);
	for (size_t i = 0; i < url->shards.n; i++) {
		const struct storeurl_shard *from = &url->shards.v[i];

		vec_push(&n->shards, (struct shard){ .address = mem_strdup(from->address),
						     .user = mem_printf("X-ClickHouse-User: %s", *from->user ? from->user : "default"),
						     .key = *from->password ? mem_printf("X-ClickHouse-Key: %s", from->password) : NULL });
	}
	*ret = clickhouse_new(url, &transport);
	return 0;
}

/* --- a client --- */

struct clickhouse *clickhouse_new(const struct storeurl *url, const struct clickhouse_transport *transport)
{
	struct clickhouse *c = mem_alloc(sizeof(*c));

	c->transport = *transport;
	c->database = mem_strdup(url->database);
	c->timeout_ms = url->timeout_ms;
	for (size_t i = 0; i < url->shards.n; i++)
		vec_push(&c->addresses, mem_strdup(url->shards.v[i].address));
	return c;
}

void clickhouse_stop_on(struct clickhouse *c, const volatile sig_atomic_t *flag)
{
	if (c->transport.send == network_send)
		((struct network *)c->transport.context)->stop = flag;
}

void clickhouse_close(struct clickhouse *c)
{
	if (!c)
		return;
	if (c->transport.done)
		c->transport.done(c->transport.context);
	vec_done_each(&c->addresses, e, free(*e));
	free(c->database);
	free(c);
}

void clickhouse_closep(struct clickhouse **c)
{
	clickhouse_close(*c);
}

unsigned clickhouse_shards(const struct clickhouse *c)
{
	return c->addresses.n;
}

const char *clickhouse_database(const struct clickhouse *c)
{
	return c->database;
}

const char *clickhouse_address(const struct clickhouse *c, unsigned shard)
{
	return c->addresses.v[shard];
}

uint64_t clickhouse_sent_bytes(const struct clickhouse *c)
{
	return c->sent_bytes;
}

/* The codes of ClickHouse's errors, as far as one differs from another here (src/Common/ErrorCodes.cpp there). */
static int meaning_of(unsigned code)
{
	static const struct {
		unsigned code;
		int meaning;
	} known[] = {
		{ 60, ENXIO }, { 81, ENXIO }, /* table, database */
		{ 192, EACCES }, { 193, EACCES }, { 194, EACCES }, { 195, EACCES }, { 497, EACCES }, { 516, EACCES },
		/* Timeouts, too many queries or parts, no memory or room, a table that is read-only just now, keepers away. */
		{ 159, EAGAIN }, { 160, EAGAIN }, { 202, EAGAIN }, { 209, EAGAIN }, { 210, EAGAIN }, { 225, EAGAIN }, { 241, EAGAIN },
		{ 242, EAGAIN }, { 243, EAGAIN }, { 252, EAGAIN }, { 285, EAGAIN }, { 319, EAGAIN }, { 999, EAGAIN },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].code == code)
			return known[i].meaning;
	return EREMOTEIO;
}

/* "Code: 60, e.displayText() = DB::Exception: ...": where it begins; NULL: it is no such text. An answer may break off with it. */
static const char *find_exception(const char *text, size_t n)
{
	static const char begin[] = "Code: ";
	const char *found = text;

	if (strlen(text) != n)
		return NULL;
	/* The last one, which is at the end: rows may have such words, too. */
	for (const char *next = strstr(text, begin); next; next = strstr(next + 1, begin))
		found = next;
	return str_starts(found, begin) && strstr(found, "Exception") ? found : NULL;
}

static int server_error(unsigned code, const char *text, struct err *err)
{
	_cleanup_(buf_done) struct buf line = { 0 };
	_cleanup_free_ char *cut = mem_strndup(text, MIN(strlen(text), (size_t)ERROR_BYTES));
	int meaning = meaning_of(code);

	cut[strcspn(cut, "\r\n")] = 0;
	plain_add(&line, cut);
	return err_set(err, meaning, "%s%s", line.n ? line.data : "it failed, and does not say why",
		       meaning == ENXIO ? " (`gasflame store init` makes the tables)" : "");
}

/* What a reply means, before anybody looks for rows in it. */
static int judge(const struct clickhouse_reply *reply, struct err *err)
{
	const char *exception = find_exception(reply->text, reply->n);
	unsigned code = reply->exception ? reply->exception : exception ? strtoul(exception + 6, NULL, 10) : 0;

	if (code && (reply->exception || reply->status != 200))
		return server_error(code, exception ? exception : reply->text, err);
	if (reply->status == 401 || reply->status == 403)
		return err_set(err, EACCES, "it refuses this user (HTTP %u)", reply->status);
	if (reply->status == 429 || reply->status == 502 || reply->status == 503 || reply->status == 504)
		return err_set(err, EAGAIN, "it cannot answer now (HTTP %u)", reply->status);
	if (reply->status != 200)
		return err_set(err, EPROTO, "it answers with HTTP %u: is it a ClickHouse?", reply->status);
	return 0;
}

static int named(struct clickhouse *c, unsigned shard, int r, struct err *err)
{
	if (r)
		err_prefix(err, "%s", c->addresses.v[shard]);
	return r;
}

static int ask(struct clickhouse *c, unsigned shard, const char *sql, const struct buf *rows, bool outside,
	       struct clickhouse_reply *ret, struct err *err)
{
	struct clickhouse_request q = { .sql = sql, .rows = rows, .database = outside ? NULL : c->database, .timeout_ms = c->timeout_ms };
	int r;

	*ret = (struct clickhouse_reply){ 0 };
	r = c->transport.send(c->transport.context, shard, &q, ret, err);
	if (!r && rows)
		c->sent_bytes += ret->sent_bytes;
	return r ? r : judge(ret, err);
}

/* A statement: its answer is empty. */
static int run(struct clickhouse *c, unsigned shard, const char *sql, const struct buf *rows, bool outside, struct err *err)
{
	struct clickhouse_reply reply;
	struct err own = { 0 };
	int r = ask(c, shard, sql, rows, outside, &reply, &own);
	const char *exception = r ? NULL : find_exception(reply.text, reply.n);

	if (exception)
		r = server_error(strtoul(exception + 6, NULL, 10), exception, &own);
	else if (!r && reply.n)
		r = err_set(&own, EPROTO, "it answers a statement that has no answer: is it a ClickHouse?");
	named(c, shard, r, &own);
	if (r && err)
		*err = own;
	return r;
}

int clickhouse_run(struct clickhouse *c, unsigned shard, const char *sql, struct err *err)
{
	return run(c, shard, sql, NULL, false, err);
}

int clickhouse_run_outside(struct clickhouse *c, unsigned shard, const char *sql, struct err *err)
{
	return run(c, shard, sql, NULL, true, err);
}

int clickhouse_insert(struct clickhouse *c, unsigned shard, const char *table, const char *columns, const struct buf *rows,
		      struct err *err)
{
	_cleanup_free_ char *sql = mem_printf("INSERT INTO %s (%s) FORMAT RowBinary", table, columns);

	return rows->n ? run(c, shard, sql, rows, false, err) : 0;
}

int clickhouse_select(struct clickhouse *c, unsigned shard, const char *sql, struct answer *ret, struct err *err)
{
	_cleanup_free_ char *question = mem_printf("%s FORMAT JSONCompact", sql);
	struct clickhouse_reply reply;
	struct err own = { 0 };
	int r;

	*ret = (struct answer){ 0 };
	r = ask(c, shard, question, NULL, false, &reply, &own);
	if (!r) {
		const char *exception = NULL;

		r = answer_parse(ret, reply.text, reply.n, &own);
		if (r)
			exception = find_exception(reply.text, reply.n);
		if (exception)
			r = server_error(strtoul(exception + 6, NULL, 10), exception, &own);
	}
	named(c, shard, r, &own);
	if (r && err)
		*err = own;
	return r;
}
