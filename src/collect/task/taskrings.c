#include "collect/task/taskrings.h"

#include <stdlib.h>

#include "base/mem.h"
#include "collect/task/blob/task.h"

/* What we know of a ring. */
struct ring {
	uint64_t tail, head; /* read, and there to be read */
	uint64_t told;       /* of tail, to the thread: each time costs it a line of its cache */
	uint64_t safe;       /* nothing earlier can come */
	uint64_t busy_since; /* 0: it was not */
	uint64_t last;       /* when the last one was over */
	uint64_t lost;       /* at the begin of the recording */
	uint64_t early_at, early_look; /* an entry that was later than the look that found it, and that look */
	uint32_t identity;
};

struct taskrings {
	struct task_shared *s;
	uint64_t since, now, limit, last, looks;
	uint64_t bad, strays;
	struct ring rings[TASK_THREADS];
	/* A heap of those with an event at hand: the earliest on top. */
	struct front {
		uint64_t over;
		uint32_t ring;
	} fronts[TASK_THREADS];
	size_t count;
};

struct taskrings *taskrings_new(struct task_shared *s)
{
	struct taskrings *r = mem_alloc(sizeof(*r));

	r->s = s;
	return r;
}

void taskrings_free(struct taskrings *r)
{
	free(r);
}

static uint64_t head_of(const struct taskrings *r, uint32_t i)
{
	return __atomic_load_n(&r->s->threads[i].head, __ATOMIC_ACQUIRE);
}

static void tell_tail(struct taskrings *r, uint32_t i)
{
	if (r->rings[i].told == r->rings[i].tail)
		return;
	r->rings[i].told = r->rings[i].tail;
	__atomic_store_n(&r->s->threads[i].tail, r->rings[i].tail, __ATOMIC_RELEASE);
}

void taskrings_begin(struct taskrings *r, uint64_t now)
{
	r->since = r->now = r->limit = r->last = now;
	r->bad = 0;
	r->strays = __atomic_load_n(&r->s->strays, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < TASK_THREADS; i++) {
		struct task_thread *t = &r->s->threads[i];

		r->rings[i] = (struct ring){ .safe = now, .last = now, .head = head_of(r, i), .identity = t->identity,
					     .lost = __atomic_load_n(&t->lost, __ATOMIC_RELAXED) };
		r->rings[i].tail = r->rings[i].head;
		r->rings[i].told = ~r->rings[i].tail;
		tell_tail(r, i);
		__atomic_store_n(&t->current, 0, __ATOMIC_RELAXED);
	}
}

/* --- the order --- */

static struct task_event entry_at(const struct taskrings *r, uint32_t i, uint64_t at)
{
	const volatile struct task_event *e = &r->s->events[i][at & (TASK_EVENTS - 1)];

	return (struct task_event){ e->tsc, e->word, e->task, e->more };
}

static enum task_kind kind_of(const struct task_event *e)
{
	return e->word >> 59;
}

static uint64_t clamp(uint64_t x, uint64_t low, uint64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/*
 * Is the next entry of this ring later than now? It may have been written after now was read: the next look takes it. One
 * that is later than two looks was not written by our hooks: 1.
 */
static int is_early(struct taskrings *r, struct ring *ring, uint64_t tsc)
{
	bool again = ring->early_at == ring->tail && ring->early_look && ring->early_look != r->looks;

	if (tsc <= r->now)
		return 0;
	ring->early_at = ring->tail;
	ring->early_look = r->looks;
	return again ? 1 : -1;
}

/*
 * Is there an event of this ring, and when was it over? Leaves out what is no event. A thread's times do not fall: what is
 * otherwise was not written by our hooks.
 */
static bool next_of(struct taskrings *r, uint32_t i, uint64_t *ret)
{
	struct ring *ring = &r->rings[i];

	for (; ring->tail != ring->head; ring->tail++) {
		struct task_event e = entry_at(r, i, ring->tail);
		int early;

		if (kind_of(&e) == TASK_IS_THREAD) {
			ring->identity = e.task;
			continue;
		}
		/* Of a hook that was at work when the recording began. */
		if (e.tsc < r->since || kind_of(&e) == TASK_IS_DRAWN)
			continue;
		early = is_early(r, ring, e.tsc);
		if (early < 0)
			return false;
		if (kind_of(&e) < TASK_IS_POLL || kind_of(&e) > TASK_IS_DEALLOC || early) {
			r->bad++;
			continue;
		}
		/* Its second entry follows soon. */
		if (kind_of(&e) == TASK_IS_DRAWN_WAKE && ring->head - ring->tail < 2)
			return false;
		*ret = clamp(e.tsc, ring->last, r->now);
		return *ret <= r->limit;
	}
	return false;
}

static void sink(struct taskrings *r, size_t k)
{
	struct front moved = r->fronts[k];

	for (;;) {
		size_t child = 2 * k + 1;

		if (child + 1 < r->count && r->fronts[child + 1].over < r->fronts[child].over)
			child++;
		if (child >= r->count || r->fronts[child].over >= moved.over)
			break;
		r->fronts[k] = r->fronts[child];
		k = child;
	}
	r->fronts[k] = moved;
}

uint64_t taskrings_look(struct taskrings *r, uint64_t now, uint64_t margin, uint64_t patience, bool all)
{
	uint64_t limit = now;

	r->now = now;
	r->looks++;
	__atomic_store_n(&r->s->sign, now, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < TASK_THREADS; i++) {
		struct ring *ring = &r->rings[i];
		bool busy = __atomic_load_n(&r->s->threads[i].busy, __ATOMIC_ACQUIRE);

		ring->head = head_of(r, i);
		/* No hook of ours writes more than there is room for. */
		if (ring->head - ring->tail > TASK_EVENTS) {
			r->bad++;
			ring->tail = ring->head;
			tell_tail(r, i);
		}
		if (!busy)
			ring->busy_since = 0;
		else if (!ring->busy_since)
			ring->busy_since = now;
		if (!busy || all || now - ring->busy_since > patience)
			ring->safe = all ? now : now > margin ? now - margin : 0;
		limit = ring->safe < limit ? ring->safe : limit;
	}
	r->limit = limit > r->limit ? limit : r->limit;
	r->count = 0;
	for (uint32_t i = 0; i < TASK_THREADS; i++) {
		uint64_t over;

		if (r->rings[i].tail == r->rings[i].head)
			continue;
		if (next_of(r, i, &over))
			r->fronts[r->count++] = (struct front){ over, i };
		else
			tell_tail(r, i);
	}
	for (size_t k = r->count / 2; k-- > 0;)
		sink(r, k);
	return r->limit;
}

uint64_t taskrings_until(const struct taskrings *r)
{
	return r->limit;
}

/* Takes the event that is next in its ring. */
static struct taskrings_event take(struct taskrings *r, uint32_t i)
{
	struct ring *ring = &r->rings[i];
	struct task_event e = entry_at(r, i, ring->tail++);
	struct taskrings_event ret = {
		.over = clamp(e.tsc, ring->last, r->now),
		.header = e.word & TASK_HEADER_MASK,
		.task = e.task,
		.ring = i,
		.identity = ring->identity,
		.number = task_number_in(e.word),
		.what = kind_of(&e),
	};

	ring->last = ret.over;
	if (ret.what == TASK_IS_POLL)
		ret.ticks = clamp(e.more, 0, ret.over - r->since);
	else if (ret.what != TASK_IS_DEALLOC)
		ret.waker = e.more & TASK_HEADER_MASK;
	if (ret.waker)
		ret.waker_number = task_number_in(e.more);
	if (ret.what == TASK_IS_DRAWN_WAKE) {
		struct task_event drawn = entry_at(r, i, ring->tail);

		ret.what = TASK_IS_WAKE;
		if (kind_of(&drawn) == TASK_IS_DRAWN && drawn.tsc) {
			ring->tail++;
			ret.ticket = drawn.word;
			ret.interval = drawn.tsc;
			ret.awaited = clamp(drawn.task, 0, ret.over - r->since);
		} else {
			r->bad++;
		}
	}
	return ret;
}

size_t taskrings_read(struct taskrings *r, struct taskrings_event *ret, size_t room)
{
	size_t n = 0;

	while (r->count && n < room) {
		struct front *top = &r->fronts[0];

		ret[n] = take(r, top->ring);
		/* A ring that was waited for in vain may come with something earlier. */
		if (ret[n].over < r->last)
			ret[n].over = r->last;
		r->last = ret[n++].over;
		if (!next_of(r, top->ring, &top->over)) {
			tell_tail(r, top->ring);
			*top = r->fronts[--r->count];
		}
		if (r->count)
			sink(r, 0);
	}
	for (size_t k = 0; k < r->count; k++)
		tell_tail(r, r->fronts[k].ring);
	return n;
}

size_t taskrings_polls(const struct taskrings *r, uint64_t now, struct taskrings_event *ret, size_t room)
{
	size_t n = 0;

	for (uint32_t i = 0; i < TASK_THREADS && n < room; i++) {
		const volatile struct task_thread *t = &r->s->threads[i];
		uint64_t task = t->current, word = t->word, began = t->began;

		/* It may have gone on to another one meanwhile: next time. */
		if (!task || t->current != task || t->began != began || word >> 59 != TASK_IS_POLL || began > now || began < r->since)
			continue;
		ret[n++] = (struct taskrings_event){
			.over = now,
			.ticks = now - began,
			.header = word & TASK_HEADER_MASK,
			.task = task,
			.ring = i,
			.identity = r->rings[i].identity,
			.number = task_number_in(word),
			.what = TASK_IS_POLL,
		};
	}
	return n;
}

uint64_t taskrings_lost(const struct taskrings *r)
{
	uint64_t lost = r->bad + __atomic_load_n(&r->s->strays, __ATOMIC_RELAXED) - r->strays;

	for (uint32_t i = 0; i < TASK_THREADS; i++)
		lost += __atomic_load_n(&r->s->threads[i].lost, __ATOMIC_RELAXED) - r->rings[i].lost;
	return lost;
}

size_t taskrings_owned(const struct taskrings *r)
{
	size_t n = 0;

	for (uint32_t i = 0; i < TASK_THREADS; i++)
		n += !!__atomic_load_n(&r->s->threads[i].owner, __ATOMIC_RELAXED);
	return n;
}

void taskrings_tidy(struct taskrings *r, bool (*ended)(void *context, uint32_t identity), void *context)
{
	for (uint32_t i = 0; i < TASK_THREADS; i++) {
		struct task_thread *t = &r->s->threads[i];
		struct ring *ring = &r->rings[i];
		uint64_t owner = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

		/* The one who comes next tells who it is. */
		if (owner && ring->identity && ring->tail == head_of(r, i) && !__atomic_load_n(&t->busy, __ATOMIC_RELAXED) &&
		    ended(context, ring->identity)) {
			__atomic_store_n(&t->current, 0, __ATOMIC_RELAXED);
			__atomic_compare_exchange_n(&t->owner, &owner, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		}
	}
}
