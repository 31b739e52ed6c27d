/*
 * windowed.h - a profile with waits and a block, and its windows, made as `store push` does.
 */
#pragma once

#include "export/export.h"
#include "fleet/window.h"
#include "judged.h"

struct windowed {
	struct waiting w;
	struct patterns patterns;
	struct causes causes;
	struct selection selection;
	struct export_job job;
	struct windows windows;
};

/* A second of recording, in windows of 100 ms. */
static inline void windowed_make(struct windowed *x)
{
	struct profile *p;

	*x = (struct windowed){ .w = waiting_make() };
	p = x->w.s.p;
	p->start_wall_ns = 1794909600123456789;
	profile_add_mark(p, &(struct profile_mark){ .start_ns = 150 * MS, .end_ns = 250 * MS, .name = profile_string(p, "block 7"),
						    .kind = profile_string(p, "block"), .thread = PROFILE_NONE,
						    .block = { 7, 30000000, 99, BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS } });
	patterns_init(&x->patterns);
	patterns_add_builtin(&x->patterns);
	causes_init(&x->causes, p, &x->patterns);
	selection_make(p, &(struct select_options){ .causes = &x->causes }, &x->selection, NULL);
	x->job = (struct export_job){ .profile = p, .selection = &x->selection };
	assert_int_equal(windows_make(&x->windows, &x->job, 100 * MS, NULL), 0);
}

static inline void windowed_done(struct windowed *x)
{
	windows_done(&x->windows);
	selection_done(&x->selection);
	causes_done(&x->causes);
	patterns_done(&x->patterns);
	profile_free(x->w.s.p);
}
