#include "collect/heap/exactheap.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/heap/blob/blob.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/heap/exactlearn.h"
#include "collect/heap/implant.h"
#include "collect/process/processes.h"
#include "profile/profile.h"

enum { TELL_EVERY = 256, SCALE_BITS = 16 };

/* A thread that left its hook without writing its event must not hold up all others. */
static const uint64_t patience_ns = 1000000000;
/* And a thread that waits for us goes on without, when it has waited so long; of its own CPU time, it is no clock. */
static const uint64_t give_up_ns = 2500000000;

struct exactheap {
	struct session *session;
	pid_t pid;
	struct exact_shared *shared;
	struct implant *implant;
	struct exactlearn *learn;
	uint64_t tail;
	uint64_t head, head_ns, scale; /* at the last look; ns for each ticket from there on, in 1 / 2^SCALE_BITS */
	uint64_t stuck, stuck_ns;      /* the event that is waited for, and since when */
	uint64_t lost, unwritten;
	bool ending;                   /* the right of one thread to take tickets without a lock */
	uint32_t one;                  /* whose that was */
	struct map walked;             /* ticket to the thread and stack that the kernel found */
	uint32_t lost_stack;
	uint32_t threads[EXACT_THREADS]; /* the profile's */
	uint64_t last[EXACT_THREADS];    /* address of its last allocation */
};

/* How many turns of a thread that waits take so long: a pause is 10 ns or 50, by processor. The fastest try counts: others
 * may have taken our CPU meanwhile. */
static uint64_t turns_in(uint64_t ns)
{
	enum { TRIES = 8, PAUSES = 5000 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t begin = clock_mono_ns();

		for (int k = 0; k < PAUSES; k++)
			exact_pause();
		least = MIN(least, clock_mono_ns() - begin);
	}
	return ns * PAUSES / MAX(least, 1U);
}

/* --- who takes tickets without a lock (blob/exact.h) --- */

/* One thread may have them for itself, if that can be ended: by a barrier on every processor. (Not with nohz_full.) */
static bool can_end(void)
{
	long r = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return r > 0 && r & MEMBARRIER_CMD_GLOBAL;
}

/* Another thread waits: from now on all use the lock. */
static void share_tickets(struct exactheap *e)
{
	uint64_t only = __atomic_load_n(&e->shared->only, __ATOMIC_ACQUIRE);
	struct exact_thread t;

	if (!e->ending && (only < EXACT_ONE || !__atomic_load_n(&e->shared->asks, __ATOMIC_ACQUIRE)))
		return;
	if (!e->ending) {
		e->ending = true;
		e->one = MIN(only - EXACT_ONE, (uint64_t)EXACT_THREADS);
		__atomic_store_n(&e->shared->only, EXACT_ENDS, __ATOMIC_SEQ_CST);
		/* A thread that has looked before this was inside by then, as we see it; who looks later sees the end. */
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	}
	/* A thread that is not there any more uses nothing. */
	if (implant_thread(e->implant, e->one, &t) && t.inside)
		return;
	e->ending = false;
	__atomic_store_n(&e->shared->only, EXACT_ALL, __ATOMIC_RELEASE);
}

/* --- life --- */

struct exactheap *exactheap_new(struct session *s, pid_t pid, struct implant *i)
{
	struct exactheap *e = mem_alloc(sizeof(*e));

	e->session = s;
	e->pid = pid;
	e->implant = i;
	e->shared = &implant_shared(i)->exact;
	e->learn = exactlearn_new(s, pid, i);
	e->shared->turns = turns_in(give_up_ns);
	e->shared->only = EXACT_ALONE && implant_held(i) && can_end() ? EXACT_FIRST : EXACT_ALL;
	e->tail = e->head = e->shared->tail;
	e->head_ns = clock_mono_ns();
	e->lost_stack = PROFILE_NONE;
	for (int k = 0; k < EXACT_THREADS; k++)
		e->threads[k] = PROFILE_NONE;
	return e;
}

void exactheap_free(struct exactheap *e)
{
	if (!e)
		return;
	exactlearn_free(e->learn);
	map_done(&e->walked);
	free(e);
}

uint64_t exactheap_lost(const struct exactheap *e, bool died)
{
	return e->lost + (died ? 0 : e->unwritten);
}

bool exactheap_pending(const struct exactheap *e)
{
	return __atomic_load_n(&e->shared->head, __ATOMIC_ACQUIRE) != e->tail;
}

/* Read once: the target can change it any time. */
static struct exact_event read_event(const struct exactheap *e, uint64_t ticket)
{
	const volatile struct exact_event *raw = exact_event_of(e->shared, ticket);

	return (struct exact_event){ .address = raw->address, .size = raw->size, .stack = raw->stack, .thread = raw->thread,
				     .what = raw->what };
}

void exactheap_record(struct exactheap *e, const struct shared_heap_stack *r)
{
	/* Its event is not there yet, but who it is of was written before. */
	uint32_t index = read_event(e, r->ticket).thread;
	uint32_t stack = bpfengine_stack(e->session->engine, r->stack);
	uint32_t thread = processes_thread(e->session->processes, r->pid, r->tid, "", clock_mono_ns());

	if (r->ticket - e->tail >= EXACT_EVENTS)
		return;
	*map_put(&e->walked, r->ticket, 0) = map_pair(thread, stack);
	if (stack == PROFILE_NONE)
		return;
	exactlearn_stack(e->learn, stack);
	if (index < EXACT_THREADS)
		exactlearn_thread(e->learn, index, r->tid, r->sp);
}

/* --- reading --- */

/* Now, and how fast tickets were taken since the last look. */
static uint64_t look_at_head(struct exactheap *e, uint64_t *ret_begin, uint64_t *ret_begin_ns)
{
	uint64_t head = __atomic_load_n(&e->shared->head, __ATOMIC_ACQUIRE), now = clock_mono_ns();
	uint64_t taken = head - e->head;

	*ret_begin = e->head;
	*ret_begin_ns = e->head_ns;
	e->scale = taken && taken < 1ULL << 32 ? ((unsigned __int128)(now - e->head_ns) << SCALE_BITS) / taken : 0;
	e->head = head;
	e->head_ns = now;
	/* More than there is room for wait for it, or are lies. */
	return head - e->tail < EXACT_EVENTS ? head : e->tail + EXACT_EVENTS;
}

static uint32_t lost_stack(struct exactheap *e)
{
	struct profile *p = e->session->profile;

	if (e->lost_stack == PROFILE_NONE)
		e->lost_stack = profile_stack(p, 0, profile_truncation_frame(p, "stack lost on its way"));
	e->lost++;
	return e->lost_stack;
}

/* The stack that the kernel walked for a ticket: it has sent it before the event was valid. */
static void find_walked(struct exactheap *e, uint64_t ticket, uint32_t index, struct exactheap_event *event)
{
	uint64_t *found = map_get(&e->walked, ticket);

	if (!found) {
		bpfengine_consume(e->session->engine);
		exactlearn_step(e->learn);
		found = map_get(&e->walked, ticket);
	}
	event->stack = found ? (uint32_t)*found : PROFILE_NONE;
	event->thread = found ? *found >> 32 : PROFILE_NONE;
	if (found)
		map_remove(&e->walked, ticket);
	if (event->stack == PROFILE_NONE)
		event->stack = lost_stack(e);
	if (index < EXACT_THREADS && event->thread != PROFILE_NONE)
		e->threads[index] = event->thread;
}

static bool is_there(const struct exactheap *e, uint64_t ticket)
{
	return __atomic_load_n(&exact_event_of(e->shared, ticket)->seq, __ATOMIC_ACQUIRE) == ticket + 1;
}

/* Is the next event, which is there already, the free of this allocation by the thread that made it? Half of all are so. */
static bool is_freed_next(const struct exactheap *e, uint64_t end, uint64_t address, uint32_t thread)
{
	const volatile struct exact_event *next = exact_event_of(e->shared, e->tail + 1);

	return e->tail + 1 != end && next->what == EXACT_FREED && next->address == address && next->thread == thread &&
	       thread < EXACT_THREADS && is_there(e, e->tail + 1);
}

/* False: it says nothing that could be believed. */
static bool understand(struct exactheap *e, uint64_t ticket, uint64_t end, struct exactheap_event *event)
{
	const struct exact_event raw = read_event(e, ticket);
	uint32_t index = MIN(raw.thread, EXACT_THREADS), stack = raw.stack;

	event->address = raw.address;
	event->freed = raw.what == EXACT_FREED;
	event->freed_next = false;
	if (event->freed) {
		event->at_once = index < EXACT_THREADS && e->last[index] == event->address;
		return true;
	}
	event->at_once = false;
	event->size = raw.size;
	event->stack = stack;
	event->thread = index < EXACT_THREADS ? e->threads[index] : PROFILE_NONE;
	if (stack == EXACT_NONE)
		find_walked(e, ticket, index, event);
	else if (stack >= e->session->profile->stacks.n)
		return false;
	if (index < EXACT_THREADS)
		e->last[index] = event->address;
	if (event->thread == PROFILE_NONE)
		event->thread = processes_thread(e->session->processes, e->pid, e->pid, "", clock_mono_ns());
	event->freed_next = is_freed_next(e, end, event->address, index);
	return true;
}

/* Nobody can write any more because of the event at the tail, and that for long. */
static bool given_up(struct exactheap *e)
{
	if (e->stuck != e->tail) {
		e->stuck = e->tail;
		e->stuck_ns = e->head_ns;
	}
	return e->head - e->tail >= EXACT_EVENTS && e->head_ns - e->stuck_ns > patience_ns;
}

uint64_t exactheap_drain(struct exactheap *e, bool all, exactheap_fn *see, void *context)
{
	uint64_t begin, begin_ns, first = e->tail, told = first, end = look_at_head(e, &begin, &begin_ns);
	struct exactheap_event event = { 0 };

	share_tickets(e);
	exactlearn_step(e->learn);
	for (; e->tail != end; e->tail++) {
		bool there = is_there(e, e->tail);

		if (!there && !all && !given_up(e))
			break;
		event.time_ns = begin_ns + (e->tail > begin ? (e->tail - begin) * e->scale >> SCALE_BITS : 0);
		event.step_ns = e->scale >> SCALE_BITS;
		if (there && understand(e, e->tail, end, &event))
			e->tail += see(context, &event);
		else if (there)
			e->lost++;
		else
			e->unwritten++;
		if (e->tail - told < TELL_EVERY)
			continue;
		told = e->tail;
		__atomic_store_n(&e->shared->tail, e->tail + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&e->shared->tail, e->tail, __ATOMIC_RELEASE);
	return e->tail - first;
}
