/*
 * judged.h - the account, the waits and the verdict of a profile, made as the commands do.
 */
#pragma once

#include "analyze/wait/account.h"
#include "analyze/select.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "waiting.h"

struct all {
	struct patterns patterns;
	struct causes causes;
	struct select_options o;
	struct account account;
	struct waits waits;
	struct verdict verdict;
};

static inline void begin(struct all *a, const struct profile *p, struct select_options o)
{
	*a = (struct all){ 0 };
	patterns_init(&a->patterns);
	patterns_add_builtin(&a->patterns);
	causes_init(&a->causes, p, &a->patterns);
	a->o = o;
	a->o.causes = &a->causes;
	assert_true(account_make(&a->account, p, &a->o, &a->causes));
	waits_make(&a->waits, p, &a->o, 10);
	verdict_make(&a->verdict, p, &a->account, &a->waits, &a->o);
}

static inline void end(struct all *a)
{
	verdict_done(&a->verdict);
	waits_done(&a->waits);
	account_done(&a->account);
	causes_done(&a->causes);
	patterns_done(&a->patterns);
}

static inline const struct account_row *row(const struct all *a, uint32_t thread)
{
	for (size_t i = 0; i < a->account.threads.n; i++)
		if (a->account.threads.v[i].thread == thread)
			return &a->account.threads.v[i];
	fail_msg("no row of thread %u", thread);
	return NULL;
}
