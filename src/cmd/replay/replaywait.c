/*
 * replaywait.c - waits until a node keeps the blocks that it was sent, in one of four ways.
 *
 * That a node answers with a block by its number says only that the block is its head: memory answers that. A node that
 * writes nothing any more has probably written it. reth itself says which blocks it has on disk, over a WebSocket, or
 * waits for its own writing before it executes the next payload (reth_newPayload).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "cmd/replay/replayint.h"
#include "cmd/stop.h"
#include "ethereum/rpc.h"

enum { WATCH_MS = 20, NEWS_MS = 100, QUIET_MS = 500, WATCH_SECONDS = 120 };

int replaywait_open(struct run *r)
{
	struct rpcblock none;
	uint64_t ns;
	int e;

	r->wait = r->o->wait_given ? r->o->wait : r->reth ? REPLAY_WAIT_PERSISTED : REPLAY_WAIT_HEAD;
	if (r->wait != REPLAY_WAIT_PERSISTED)
		return 0;
	if (!r->o->news)
		return r->reth ? 0 :
		       err_set(r->err, EINVAL, "--wait persisted: %s says nothing of its disk over the Engine API; name reth's WebSocket "
			       "(--ws ws://127.0.0.1:8546), or use --wait quiet", r->o->engine);
	e = rpc_open(r->o->news, &r->news, r->err);
	if (e)
		return e;
	rpc_tell_persisted(r->news);
	/* Subscribed before the first block is sent. */
	e = rpc_head(r->news, 0, &none, &ns, r->err);
	return e < 0 ? err_prefix(r->err, "%s", r->o->news) : 0;
}

const char *replaywait_words(const struct run *r)
{
	switch (r->wait) {
	case REPLAY_WAIT_HEAD:
		return "the node answers with the block by its number (from memory: that it is on disk is not said)";
	case REPLAY_WAIT_QUIET:
		return "the node answers with the block by its number, and writes nothing to disk any more";
	case REPLAY_WAIT_PERSISTED:
		return r->o->news ? "the node says that it has the block on disk (reth_subscribePersistedBlock)" :
				    "the node waits for its own disk before a block (reth_newPayload)";
	case REPLAY_WAIT_NONE:
		break;
	}
	return "nothing";
}

/* Returns the bytes that the node's processes have written to disk. */
static uint64_t written(const struct replay_options *o)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < o->pid_count; i++) {
		_cleanup_free_ char *path = mem_printf("/proc/%d/io", (int)o->pids[i]), *text = NULL;
		const char *line;
		size_t n;

		if (!fd_read_path(path, 4096, &text, &n) && (line = strstr(text, "\nwrite_bytes: ")))
			sum += strtoull(line + strlen("\nwrite_bytes: "), NULL, 10);
	}
	return sum;
}

/* Waits until nothing was written for a while; returns when the last bytes were. */
static uint64_t watch_disk(struct run *r, uint64_t deadline)
{
	uint64_t bytes = written(r->o), since = clock_mono_ns();

	while (clock_mono_ns() < deadline && clock_mono_ns() - since < QUIET_MS * 1000000ULL && replaynode_nap(WATCH_MS)) {
		uint64_t now = written(r->o);

		if (now != bytes)
			since = clock_mono_ns();
		bytes = now;
	}
	return since;
}

/* reth keeps the last blocks in memory until there are enough of them: --persist-lag says how many. */
static int wait_for_news(struct run *r, const struct engine_block *b, uint64_t deadline)
{
	uint64_t wanted = b->number > r->o->lag ? b->number - r->o->lag : 0;

	while (r->on_disk < wanted && !stop_wanted) {
		struct rpcblock seen;
		uint64_t heard;
		int e = rpc_head(r->news, NEWS_MS, &seen, &heard, r->err);

		if (e > 0 && seen.block.number > r->on_disk)
			r->on_disk = seen.block.number;
		if (e == -EREMOTEIO)
			return err_prefix(r->err, "%s", r->o->news);
		if (e < 0)
			replaynode_nap(WATCH_MS); /* it connects again */
		if (clock_mono_ns() >= deadline)
			return err_set(r->err, ETIMEDOUT,
				       "the node did not say within %d s that it has block %llu on disk (the last one is %llu); if it keeps "
				       "more than %llu blocks in memory, say so: --persist-lag", WATCH_SECONDS, (unsigned long long)wanted,
				       (unsigned long long)r->on_disk, (unsigned long long)r->o->lag);
	}
	return 0;
}

static int wait_for_head(struct run *r, const struct engine_block *b, uint64_t deadline)
{
	struct rpcblock seen = { 0 };
	char by[32];
	int e;

	snprintf(by, sizeof(by), "0x%llx", (unsigned long long)b->number);
	do {
		e = replaynode_block(r, by, &seen);
	} while ((e || strcasecmp(seen.hash, b->hash)) && e != -EACCES && clock_mono_ns() < deadline && replaynode_nap(WATCH_MS));
	if ((e || strcasecmp(seen.hash, b->hash)) && !stop_wanted)
		return err_set(r->err, ETIMEDOUT,
			       "block %llu was accepted, but the node does not answer with it by its number after %d s (--wait none "
			       "does not look)", (unsigned long long)b->number, WATCH_SECONDS);
	return 0;
}

int replaywait_block(struct run *r, const struct engine_block *b)
{
	uint64_t start = clock_mono_ns(), deadline = start + WATCH_SECONDS * 1000000000ULL, kept;
	int e;

	if (r->wait == REPLAY_WAIT_NONE || (r->wait == REPLAY_WAIT_PERSISTED && !r->news))
		return 0;
	e = r->news ? wait_for_news(r, b, deadline) : wait_for_head(r, b, deadline);
	kept = clock_mono_ns();
	if (!e && r->wait == REPLAY_WAIT_QUIET)
		kept = watch_disk(r, deadline);
	r->result->persist_ns += kept > start ? kept - start : 0;
	r->looked_on_ns += clock_mono_ns() - kept; /* to see that no more comes: not the node's time */
	return e;
}
