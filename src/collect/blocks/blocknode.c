/*
 * blocknode.c - what the node says of its blocks: asked about those of the log, or looked at, or told by it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collect/blocks/blockmarksint.h"
#include "collect/blocks/blockpace.h"
#include "profile/profile.h"
#include "ethereum/rpc.h"

enum {
	POLL_MS = BLOCKPACE_ASK_MS, /* how often the node is asked for its newest block */
	CATCH_UP = 64,   /* blocks between two such questions that are asked for; beyond that they are counted */
	AGAIN_MS = 1000, /* after it failed */
};

static void wait_a_while(struct blockmarks *m, unsigned ms)
{
	struct timespec until;

	clock_after_ms(ms, &until);
	pthread_cond_clockwait(&m->asked, &m->lock, CLOCK_MONOTONIC, &until);
}

static void failed(struct blockmarks *m, const struct err *why)
{
	m->failures++;
	m->row++;
	m->rpc_err = *why;
}

/* The node's figures are exact where the log rounds; an answer for another block is ignored. */
static void answer(struct blockmarks *m, uint64_t number, const struct rpcblock *said)
{
	struct blockmarks_entry *e;

	m->row = 0;
	if (number < m->removed || number - m->removed >= m->entries.n)
		return; /* it went without */
	e = &m->entries.v[number - m->removed];
	e->asking = false;
	if (said->block.number != e->said.block.number || (*e->said.hash && strcasecmp(said->hash, e->said.hash))) {
		m->differs++;
		return;
	}
	m->answered++;
	e->answered = true;
	e->said.block.gas = said->block.gas;
	e->said.block.transactions = said->block.transactions;
	e->said.block.known |= BLOCK_GAS | BLOCK_TRANSACTIONS;
}

/* Asks for the first block that waits. False: there is none. Called, and returns, with the lock. */
static bool ask_next(struct blockmarks *m)
{
	struct rpcblock said;
	struct err why = { 0 };
	uint64_t number;
	char by[80];
	size_t i = 0;
	int r;

	while (i < m->entries.n && !m->entries.v[i].asking)
		i++;
	if (i == m->entries.n)
		return false;
	number = m->removed + i;
	if (*m->entries.v[i].said.hash)
		snprintf(by, sizeof(by), "%s", m->entries.v[i].said.hash);
	else
		snprintf(by, sizeof(by), "0x%llx", (unsigned long long)m->entries.v[i].said.block.number);
	pthread_mutex_unlock(&m->lock);
	r = rpc_block(m->rpc, by, &said, &why);
	pthread_mutex_lock(&m->lock);
	if (!r) {
		answer(m, number, &said);
	} else {
		failed(m, &why);
		/* A block that the node does not know does not delay the others. */
		if ((r == -ENOENT || m->row > 1) && number >= m->removed && number - m->removed < m->entries.n) {
			m->entries.v[number - m->removed].asking = false;
			m->unanswered++;
		}
		if (r != -ENOENT && !m->rpc_stop)
			wait_a_while(m, AGAIN_MS);
	}
	return true;
}

static void add_moment(struct blockmarks *m, const struct rpcblock *b, uint64_t now, uint64_t looked)
{
	struct blockmarks_entry e = { .thread = PROFILE_NONE, .looked_ns = looked, .since_ns = now };

	e.said = (struct blocklog_block){ .block = b->block, .start_ns = now, .end_ns = now, .seen_ns = now };
	e.said.block.known = BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS;
	memcpy(e.said.hash, b->hash, sizeof(b->hash));
	pthread_mutex_lock(&m->lock);
	m->answered++;
	m->row = 0;
	vec_push(&m->entries, e);
	pthread_mutex_unlock(&m->lock);
}

/* Where a node without a log is looked at, or tells by itself. */
struct head {
	uint64_t number, looked_ns;
	bool known;
	char hash[67];
	struct blockpace pace;
	uint32_t pause_ms; /* for which nobody asked before the last look */
};

static void report_failure(struct blockmarks *m, const struct err *why)
{
	pthread_mutex_lock(&m->lock);
	failed(m, why);
	pthread_mutex_unlock(&m->lock);
}

/* Blocks between the last one and this, which nobody told us about. */
static void catch_up(struct blockmarks *m, struct head *last, uint64_t number, uint64_t now)
{
	/* A longer pause must not lose a block. */
	uint64_t most = CATCH_UP * (uint64_t)MAX(last->pause_ms / POLL_MS, 1U);
	struct rpcblock b;

	if (!last->known || number <= last->number)
		return;
	if (number > last->number + most) {
		m->skipped += number - last->number - most;
		last->number = number - most;
	}
	for (uint64_t n = last->number + 1; n < number && !m->rpc_stop; n++) {
		char by[32];

		snprintf(by, sizeof(by), "0x%llx", (unsigned long long)n);
		if (!rpc_block(m->rpc, by, &b, NULL) && b.block.number == n)
			add_moment(m, &b, now, last->looked_ns);
		else
			m->skipped++;
	}
}

/* Finds the blocks that are new since the last look. */
static void look_at_head(struct blockmarks *m, struct head *last)
{
	struct rpcblock head;
	struct err why = { 0 };
	int r = rpc_block(m->rpc, "latest", &head, &why);
	uint64_t now = clock_mono_ns(), before = last->number;
	bool new;

	if (r) {
		report_failure(m, &why);
		return;
	}
	m->row = 0;
	catch_up(m, last, head.block.number, now);
	/* The one that is there when it begins is not of this recording; a smaller number, or another hash, is a
	 * reorganized chain. */
	new = last->known && (head.block.number != before || strcmp(head.hash, last->hash));
	if (new)
		add_moment(m, &head, now, last->looked_ns);
	blockpace_answered(&last->pace, now, !new ? 0 : head.block.number > before ? head.block.number - before : 1);
	last->number = head.block.number;
	last->looked_ns = now;
	last->known = true;
	memcpy(last->hash, head.hash, sizeof(last->hash));
}

/* The node says by itself what is new. */
static void wait_for_head(struct blockmarks *m, struct head *last)
{
	struct rpcblock head, b;
	struct err why = { 0 };
	uint64_t now;
	int r = rpc_head(m->rpc, POLL_MS, &head, &now, &why);

	if (r < 0)
		report_failure(m, &why);
	if (r <= 0)
		return;
	m->row = 0;
	last->looked_ns = now > POLL_MS * 1000000ULL ? now - POLL_MS * 1000000ULL : 0;
	catch_up(m, last, head.block.number, now);
	last->known = true;
	last->number = head.block.number;
	/* Its transactions are not in what is told. */
	if (rpc_block(m->rpc, head.hash, &b, &why) || b.block.number != head.block.number) {
		report_failure(m, &why);
		b = head;
	}
	add_moment(m, &b, now, 0);
}

/* Pauses before the next look. Blocks that the program numbers meanwhile are asked for at once. Called, and returns, with the lock. */
static void wait_to_look(struct blockmarks *m, struct head *last)
{
	uint64_t now = clock_mono_ns(), until;

	last->pause_ms = m->options.sparing && !m->row ? blockpace_wait_ms(&last->pace, now) : POLL_MS;
	until = now + (m->row ? AGAIN_MS : last->pause_ms) * 1000000ULL;
	for (; !m->rpc_stop && now < until; now = clock_mono_ns()) {
		wait_a_while(m, (until - now) / 1000000 + 1);
		while (!m->rpc_stop && ask_next(m))
			;
	}
}

void *blocknode_run(void *mark)
{
	struct blockmarks *m = mark;
	struct head last = { 0 };

	pthread_mutex_lock(&m->lock);
	while (!m->rpc_stop) {
		if (!m->options.log) {
			bool tells = rpc_tells(m->rpc);

			/* Blocks that the program numbered itself. */
			if (ask_next(m))
				continue;
			pthread_mutex_unlock(&m->lock);
			if (tells)
				wait_for_head(m, &last);
			else
				look_at_head(m, &last);
			pthread_mutex_lock(&m->lock);
			if (!m->rpc_stop && (m->row || !tells))
				wait_to_look(m, &last);
		} else if (!ask_next(m) && !m->rpc_stop) {
			wait_a_while(m, AGAIN_MS);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}
