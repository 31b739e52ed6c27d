/*
 * blockxlayer.c - blocks of X Layer's trace.log, which --log may name: their times are the log's own.
 */
#include <string.h>

#include "base/clock.h"
#include "collect/blocks/blockmarksint.h"
#include "profile/profile.h"
#include "target/log/xlayertrace.h"

static void got_block(void *context, const struct xlayertrace_block *b)
{
	struct blockmarks *m = context;
	uint64_t ahead = clock_wall_ns() - clock_mono_ns();
	/* What the sequencer says of its own work goes before any function's span. */
	struct blockmarks_entry e = { .spanned = true, .thread = PROFILE_NONE, .asking = m->rpc_runs, .since_ns = clock_mono_ns() };

	if (b->start_wall_ns < ahead)
		return; /* the clock was set by years */
	e.said = (struct blocklog_block){ .block = { .number = b->number, .known = BLOCK_NUMBER }, .told = true,
					  .timed = b->start_wall_ns < b->end_wall_ns, .start_ns = b->start_wall_ns - ahead,
					  .end_ns = b->end_wall_ns - ahead, .seen_ns = b->end_wall_ns - ahead, .client = "xlayer" };
	memcpy(e.said.hash, b->hash, sizeof(e.said.hash));
	pthread_mutex_lock(&m->lock);
	e.asking &= m->entries.n < BLOCKMARKS_WAITING;
	vec_push(&m->entries, e);
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
}

bool blockxlayer_line(struct blockmarks *m, const char *line, size_t n)
{
	if (!m->xlayer)
		m->xlayer = xlayertrace_new(got_block, m);
	return xlayertrace_line(m->xlayer, line, n);
}
