/*
 * workerint.h - one request to the child and its reply: workercall.c makes calls, worker.c builds the
 * requests.
 */
#pragma once

#include <stdint.h>

#include "elf/worker/workerproto.h"

struct err;
struct inspected;
struct worker;

struct worker_call {
	struct worker_request request;
	int fds[WORKER_FDS]; /* owned by the caller; the reply file may be -1, and is made then */
	char *bulk;          /* the reply's bulk, owned by the call */
	uint64_t bulk_size;
};

struct worker_call worker_call(enum worker_op op, int fd);
void worker_call_done(struct worker_call *c);
/* Sends the request and waits. A child that misbehaved is killed. The scratch file is passed as it is, the
 * others read-only. */
int worker_ask(struct worker *w, struct worker_call *c, struct err *err);
/* Reports an inconsistent reply: the child is not trusted again. */
int worker_bad_answer(struct worker *w, struct err *err);
/* What this worker has said of files; the worker's. */
struct inspected *worker_inspected(struct worker *w);
int worker_make_reply_file(struct err *err);
