/*
 * clickhouse.h - a client for the shards of a ClickHouse, over HTTP.
 *
 * Questions and statements go in the body of a POST; rows go there in RowBinary, packed by gzip, with their statement in the
 * address. User and password are headers. A server may answer 200 and mean an error: the text, the header
 * X-ClickHouse-Exception-Code, an answer to a statement that has none, and an answer without its end are errors here.
 * One thread at a time.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct answer;
struct buf;
struct clickhouse;
struct err;
struct storeurl;

/* How requests reach a shard. Tests have one without a network. */
struct clickhouse_request {
	const char *sql;
	const struct buf *rows; /* of INSERT ... FORMAT RowBinary; NULL = none */
	const char *database;   /* NULL: none, where there may be none yet */
	unsigned timeout_ms;
};
struct clickhouse_reply {
	unsigned status, exception; /* 0 = none */
	const char *text;           /* until the next request; ends in NUL */
	size_t n;
	uint64_t sent_bytes;        /* of the body */
};
struct clickhouse_transport {
	int (*send)(void *context, unsigned shard, const struct clickhouse_request *q, struct clickhouse_reply *ret, struct err *err);
	void (*done)(void *context); /* may be NULL */
	void *context;
};

/* Nothing is sent yet. */
int clickhouse_open(const struct storeurl *url, struct clickhouse **ret, struct err *err);
/* The same by another transport; url is for names only. */
struct clickhouse *clickhouse_new(const struct storeurl *url, const struct clickhouse_transport *transport);
void clickhouse_close(struct clickhouse *c); /* NULL is fine */
void clickhouse_closep(struct clickhouse **c);

/* What is being asked fails with -ECANCELED within a second of the flag being set, and so does all that is asked while it is; not of another
 * transport. Before the first question. */
void clickhouse_stop_on(struct clickhouse *c, const volatile sig_atomic_t *flag);

unsigned clickhouse_shards(const struct clickhouse *c);
const char *clickhouse_database(const struct clickhouse *c);
/* "http://a:8123", without a user. */
const char *clickhouse_address(const struct clickhouse *c, unsigned shard);
/* What the client has sent as rows until now, packed. */
uint64_t clickhouse_sent_bytes(const struct clickhouse *c);

/*
 * All return 0 or:
 *  -ECANCELED		clickhouse_stop_on()
 *  -EIO, -ETIMEDOUT	no answer, or half of one: it may or may not have been done
 *  -EAGAIN		the server cannot now: too much to do, no memory; it may or may not have been done
 *  -EPROTO		it answers, but not as a ClickHouse does
 *  -EACCES		user or password are wrong, or the user must not
 *  -ENXIO		it has no such table or database
 *  -EREMOTEIO		any other error of the server, which is in the sentence, in one line
 */
/* A statement without an answer. _outside: not in the database, which may not be there yet. */
int clickhouse_run(struct clickhouse *c, unsigned shard, const char *sql, struct err *err);
int clickhouse_run_outside(struct clickhouse *c, unsigned shard, const char *sql, struct err *err);
/* A question; sql has no FORMAT. answer_done() in any case. */
int clickhouse_select(struct clickhouse *c, unsigned shard, const char *sql, struct answer *ret, struct err *err);
/* Rows in RowBinary (sql.h); columns: "a, b, c". None: nothing is sent. */
int clickhouse_insert(struct clickhouse *c, unsigned shard, const char *table, const char *columns, const struct buf *rows,
		      struct err *err);
