/*
 * workerint.h - one question to the child and its answer: workercall.c makes calls, worker.c the questions.
 */
#pragma once

#include <stdint.h>

#include "elf/worker/workerproto.h"

struct err;
struct worker;

struct worker_call {
	struct worker_request request;
	int fds[WORKER_FDS]; /* the caller's; the reply file may be -1, and is made then */
	char *bulk;          /* the answer, ours */
	uint64_t bulk_size;
};

void worker_call_init(struct worker_call *c, enum worker_op op, int fd);
void worker_call_done(struct worker_call *c);
/* A child that is broken afterwards is gone. The scratch file is handed over as it is, the others read-only. */
int worker_ask(struct worker *w, struct worker_call *c, struct err *err);
/* What a child says that does not fit together: it is not to be trusted again. */
int worker_bad_answer(struct worker *w, struct err *err);
int worker_make_reply_file(struct err *err);
