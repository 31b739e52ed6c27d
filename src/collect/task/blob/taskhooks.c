/*
 * taskhooks.c - the hooks of tasks' vtables: what they write into the ring of their thread (task.h).
 *
 * Runs in the target, within its runtime: no libc, no locks, no system calls, no floating point, little
 * stack. Whatever is wrong in the shared memory, it must neither loop nor write elsewhere.
 */
#include "task.h"

#include "collect/inject/blobdraw.h"

#ifndef HIDDEN
#define HIDDEN __attribute__((visibility("hidden")))
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define RARE __attribute__((noinline, cold))
#define ORDER() __asm__ volatile("" ::: "memory")

extern struct task_fixed task_fixed HIDDEN;
extern struct task_local task_local HIDDEN;
extern struct task_shared task_shared HIDDEN;
#ifndef TASK_SHARED /* a test has memory of its own */
#define TASK_SHARED task_shared
#endif

typedef void task_function(uint64_t header);

/* Called by entries.S. Polls under way have the first one on their stack, so it has a name in .dynsym. */
void gasflame_task_poll(uint64_t header, uint32_t number);
uint32_t task_wake(uint64_t header, uint32_t number) HIDDEN;
void task_dealloc(uint64_t header, uint32_t number) HIDDEN;

static inline uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return low | (uint64_t)high << 32;
}

static inline uint64_t thread_pointer(void)
{
	uint64_t r;

	__asm__("movq %%fs:0, %0" : "=r"(r));
	return r;
}

static inline uint32_t active(void)
{
	return *(const volatile uint32_t *)&task_local.active;
}

/* --- threads --- */

/* Another place than the first, or a new one. 0: there is none. */
static RARE struct task_thread *look_for_thread(uint64_t pointer)
{
	uint32_t place = task_thread_of(pointer);

	for (uint32_t k = 0; k < TASK_WAYS; k++) {
		struct task_thread *t = &TASK_SHARED.threads[(place + k) & (TASK_THREADS - 1)];
		uint64_t none = 0;

		if (__atomic_load_n(&t->owner, __ATOMIC_RELAXED) == pointer ||
		    __atomic_compare_exchange_n(&t->owner, &none, pointer, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return t;
	}
	__atomic_fetch_add(&TASK_SHARED.strays, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline struct task_thread *this_thread(void)
{
	uint64_t pointer = thread_pointer();
	struct task_thread *t = &TASK_SHARED.threads[task_thread_of(pointer)];

	return LIKELY(__atomic_load_n(&t->owner, __ATOMIC_RELAXED) == pointer) ? t : look_for_thread(pointer);
}

/* --- its ring --- */

/* Nobody reads it: gasflame is late, or gone. A handler of a signal may come here, too, so one instruction counts. */
static inline void lose(struct task_thread *t, uint64_t now)
{
	__asm__ volatile("incq %0" : "+m"(t->lost));
	if ((int64_t)(now - __atomic_load_n(&TASK_SHARED.sign, __ATOMIC_RELAXED)) > (int64_t)task_fixed.patience)
		task_local.active = 0;
}

static inline int has_room(struct task_thread *t, uint64_t n)
{
	return t->head - __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE) <= TASK_EVENTS - n;
}

static inline void put(struct task_thread *t, uint64_t tsc, uint64_t word, uint64_t task, uint64_t more)
{
	uint64_t head = t->head;

	TASK_SHARED.events[t - TASK_SHARED.threads][head & (TASK_EVENTS - 1)] = (struct task_event){ tsc, word, task, more };
	__atomic_store_n(&t->head, head + 1, __ATOMIC_RELEASE);
}

/* Another thread may have the memory of one that has ended, with the same thread pointer. */
static RARE void tell_thread(struct task_thread *t, uint32_t identity)
{
	if (!has_room(t, 1))
		return; /* the next one tells */
	t->identity = identity;
	put(t, ticks(), task_word(0, 0, TASK_IS_THREAD), identity, 0);
}

static inline void check_thread(struct task_thread *t)
{
	uint64_t at = task_fixed.identity_at;
	uint32_t identity = at ? *(const uint32_t *)(thread_pointer() + at) : 0;

	if (!LIKELY(identity == t->identity))
		tell_thread(t, identity);
}

/* Before the time of an entry is taken. 0: a handler of a signal has come between, which must not write. */
static inline int begin_entry(struct task_thread *t)
{
	if (!LIKELY(!t->busy)) {
		lose(t, ticks());
		return 0;
	}
	__atomic_store_n(&t->busy, 1, __ATOMIC_RELAXED);
	ORDER();
	check_thread(t);
	return 1;
}

static inline void end_entry(struct task_thread *t)
{
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/* --- tasks --- */

static inline uint64_t number_of(uint64_t header, uint32_t number)
{
	uint64_t at = task_fixed.vtables[number & (TASK_VTABLES - 1)].id_offset;

	return at ? *(const uint64_t *)(header + at) : header;
}

static inline task_function *real_of(uint32_t number, enum task_slot slot)
{
	return (task_function *)task_fixed.vtables[number & (TASK_VTABLES - 1)].real[slot];
}

static inline void end_poll(struct task_thread *t, uint64_t task, uint64_t word, uint64_t began)
{
	uint64_t hash = task_hash(task), now;

	if (!begin_entry(t))
		return;
	now = ticks();
	__atomic_store_n(&TASK_SHARED.ends[task_end_place(hash)], task_end(hash, now), __ATOMIC_RELAXED);
	if (LIKELY(has_room(t, 1)))
		put(t, now, word, task, now - began);
	else
		lose(t, now);
	end_entry(t);
}

/* A poll within a poll is that of a task that polls others itself. */
void gasflame_task_poll(uint64_t header, uint32_t number)
{
	task_function *real = real_of(number, TASK_SLOT_POLL);
	struct task_thread *t = this_thread();
	uint64_t task, word, began, outer, outer_word, outer_began;
	uint32_t recording = active();

	if (!LIKELY(t)) {
		real(header);
		return;
	}
	/* After the poll the task may be no more. */
	task = number_of(header, number);
	word = task_word(header, number, TASK_IS_POLL);
	outer = t->current;
	outer_word = t->word;
	outer_began = t->began;
	began = ticks();
	t->word = word;
	t->began = began;
	__atomic_store_n(&t->current, task, __ATOMIC_RELEASE);
	real(header);
	/* A child of fork has no shared memory, and another recording knows nothing of this poll. */
	if (!LIKELY(active() == recording))
		return;
	__atomic_store_n(&t->current, outer, __ATOMIC_RELAXED);
	t->word = outer_word;
	t->began = outer_began;
	end_poll(t, task, word, began);
}

/* How long a task has awaited: not longer than we look. */
static inline uint64_t awaited(uint64_t task, uint64_t now)
{
	uint64_t hash = task_hash(task), most = now - TASK_SHARED.since, ticks_ago;
	uint64_t then = __atomic_load_n(&TASK_SHARED.ends[task_end_place(hash)], __ATOMIC_RELAXED), end = task_end(hash, now);

	/* The same bits of the hash, or its end is not known. */
	if ((then ^ end) >> 40)
		return most;
	ticks_ago = ((end - then) & 0xffffffffffULL) << TASK_END_SHIFT;
	return ticks_ago < most ? ticks_ago : most;
}

/* Distances have no memory: one that was drawn by another interval, or by another thread, may be drawn anew. */
static RARE void restart(struct task_thread *t)
{
	if (!t->random)
		t->random = (thread_pointer() ^ task_fixed.seed) * 0x9e3779b97f4a7c15ULL | 1;
	t->interval = *(const volatile uint64_t *)&task_fixed.interval;
	t->countdown = blob_draw(&t->random, t->interval);
}

/* The ticket of a wake that was drawn, 0: there is no room for it. */
static RARE uint32_t take_ticket(struct task_thread *t, uint64_t now, uint64_t word, uint64_t task, uint64_t ago)
{
	uint64_t interval = t->interval;
	uint32_t ticket;

	restart(t);
	if (!has_room(t, 2))
		return 0;
	ticket = __atomic_add_fetch(&TASK_SHARED.tickets, 1, __ATOMIC_RELAXED);
	if (!ticket)
		return 0;
	put(t, now, word ^ task_word(0, 0, TASK_IS_WAKE) ^ task_word(0, 0, TASK_IS_DRAWN_WAKE), task, task_by(t->current, t->word));
	put(t, interval, task_word(ticket, 0, TASK_IS_DRAWN), ago, 0);
	return ticket;
}

/* Is this wake drawn? Each ns that was awaited is as likely as any other. */
static inline uint32_t draw_wake(struct task_thread *t, uint64_t now, uint64_t word, uint64_t task)
{
	uint64_t interval = *(const volatile uint64_t *)&task_fixed.interval, ago;

	if (!interval)
		return 0;
	if (!LIKELY(t->interval == interval))
		restart(t);
	ago = awaited(task, now);
	t->countdown -= ago;
	return LIKELY(t->countdown >= 0) ? 0 : take_ticket(t, now, word, task, ago);
}

/* Before schedule. Returns the ticket of a wake whose stack is to be taken, else 0. */
uint32_t task_wake(uint64_t header, uint32_t number)
{
	struct task_thread *t = this_thread();
	uint64_t task, word, now;
	uint32_t ticket;

	if (!LIKELY(t) || !begin_entry(t))
		return 0;
	now = ticks();
	task = number_of(header, number);
	word = task_word(header, number, TASK_IS_WAKE);
	ticket = draw_wake(t, now, word, task);
	if (LIKELY(!ticket)) {
		if (LIKELY(has_room(t, 1)))
			put(t, now, word, task, task_by(t->current, t->word));
		else
			lose(t, now);
	}
	end_entry(t);
	return ticket;
}

void task_dealloc(uint64_t header, uint32_t number)
{
	struct task_thread *t = this_thread();

	if (LIKELY(t) && begin_entry(t)) {
		uint64_t now = ticks();

		if (LIKELY(has_room(t, 1)))
			put(t, now, task_word(header, number, TASK_IS_DEALLOC), number_of(header, number), 0);
		else
			lose(t, now);
		end_entry(t);
	}
	real_of(number, TASK_SLOT_DEALLOC)(header);
}
