/* The rings of a target's threads: how they are read, and how the hooks write them. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/task/blob/task.h"
#include "collect/task/taskrings.h"

/* The blob's own code, with memory of ours in place of what follows it in a target. */
struct task_shared *memory;
struct task_fixed task_fixed;
struct task_local task_local;
#define HIDDEN
#define TASK_SHARED (*memory)
#include "collect/task/blob/taskhooks.c"

enum { ROOM = 4096, MARGIN = 100, PATIENCE = 10000 };
static struct taskrings_event got[ROOM];

/* All of it is zeros, and takes no memory before it is used. */
static int set_up(void **state)
{
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(&task_fixed, 0, sizeof(task_fixed));
	memset(&task_local, 0, sizeof(task_local));
	task_fixed.patience = INT64_MAX;
	task_local.active = 1;
	*state = taskrings_new(memory);
	return 0;
}

static int tear_down(void **state)
{
	taskrings_free(*state);
	return munmap(memory, sizeof(*memory));
}

static void write_entry(uint32_t ring, uint64_t tsc, uint64_t word, uint64_t task, uint64_t more)
{
	put(&memory->threads[ring], tsc, word, task, more);
}

static size_t look(struct taskrings *r, uint64_t now)
{
	taskrings_look(r, now, MARGIN, PATIENCE, false);
	return taskrings_read(r, got, ROOM);
}

/* --- reading --- */

static void merged(void **state)
{
	struct taskrings *r = *state;

	taskrings_begin(r, 1000);
	write_entry(5, 1100, task_word(0x10, 3, TASK_IS_WAKE), 7, task_by(9, task_word(0x30, 6, TASK_IS_POLL)));
	write_entry(2, 1200, task_word(0x20, 4, TASK_IS_POLL), 8, 50);
	write_entry(5, 1300, task_word(0x10, 3, TASK_IS_DEALLOC), 7, 0);
	write_entry(2, 1250, task_word(0x20, 4, TASK_IS_POLL), 8, 20);
	assert_int_equal(look(r, 2000), 4);
	assert_int_equal(got[0].over, 1100);
	assert_int_equal(got[0].what, TASK_IS_WAKE);
	assert_int_equal(got[0].waker, 9);
	assert_int_equal(got[0].waker_number, 6);
	assert_int_equal(got[0].number, 3);
	assert_int_equal(got[0].header, 0x10);
	assert_int_equal(got[1].over, 1200);
	assert_int_equal(got[1].ticks, 50);
	assert_int_equal(got[2].over, 1250);
	assert_int_equal(got[3].what, TASK_IS_DEALLOC);
	assert_int_equal(memory->threads[5].tail, 2);
	assert_int_equal(taskrings_until(r), 1900);
	assert_int_equal(look(r, 2001), 0);
	assert_int_equal(taskrings_lost(r), 0);
}

/* What is too near to now is left for later: another processor may have written something earlier. */
static void margins(void **state)
{
	struct taskrings *r = *state;

	taskrings_begin(r, 1000);
	write_entry(1, 1950, task_word(0, 0, TASK_IS_WAKE), 1, 0);
	assert_int_equal(look(r, 2000), 0);
	write_entry(2, 1940, task_word(0, 0, TASK_IS_WAKE), 2, 0);
	assert_int_equal(look(r, 2060), 2);
	assert_int_equal(got[0].task, 2);
	assert_int_equal(got[1].task, 1);
}

/* A thread that is about to write holds all others up, but not for ever. */
static void busy(void **state)
{
	struct taskrings *r = *state;

	taskrings_begin(r, 1000);
	assert_int_equal(look(r, 1500), 0); /* nothing before 1400 can come */
	memory->threads[3].busy = 1;
	write_entry(1, 1600, task_word(0, 0, TASK_IS_WAKE), 1, 0);
	write_entry(1, 1390, task_word(0, 0, TASK_IS_WAKE), 2, 0);
	assert_int_equal(look(r, 2000), 0);
	assert_int_equal(taskrings_until(r), 1400);
	write_entry(3, 1500, task_word(0, 0, TASK_IS_WAKE), 3, 0);
	memory->threads[3].busy = 0;
	assert_int_equal(look(r, 2100), 3);
	assert_int_equal(got[0].task, 3);
	assert_int_equal(got[1].task, 1);
	assert_int_equal(got[2].over, 1600); /* a thread's times do not fall */

	memory->threads[3].busy = 1;
	write_entry(1, 2200, task_word(0, 0, TASK_IS_WAKE), 4, 0);
	assert_int_equal(look(r, 3000), 0);
	assert_int_equal(look(r, 3001 + PATIENCE), 1);
	/* It comes at last: not before what was said already. */
	write_entry(3, 2150, task_word(0, 0, TASK_IS_WAKE), 5, 0);
	memory->threads[3].busy = 0;
	assert_int_equal(look(r, 4000 + PATIENCE), 1);
	assert_int_equal(got[0].over, 2200);
}

/* An event that was written after the time of a look was read, and before its ring was: the next look takes it. */
static void early(void **state)
{
	struct taskrings *r = *state;

	taskrings_begin(r, 1000);
	write_entry(1, 2010, task_word(0, 0, TASK_IS_WAKE), 1, 0);
	assert_int_equal(look(r, 2000), 0);
	assert_int_equal(look(r, 2200), 1);
	assert_int_equal(taskrings_lost(r), 0);
	/* One that is later than two looks is none. */
	write_entry(1, 1 << 30, task_word(0, 0, TASK_IS_WAKE), 2, 0);
	write_entry(1, 2500, task_word(0, 0, TASK_IS_WAKE), 3, 0);
	assert_int_equal(look(r, 2600), 0);
	assert_int_equal(look(r, 2700), 1);
	assert_int_equal(got[0].task, 3);
	assert_int_equal(taskrings_lost(r), 1);
}

static void drawn(void **state)
{
	struct taskrings *r = *state;

	taskrings_begin(r, 1000);
	write_entry(1, 1100, task_word(0, 0, TASK_IS_DRAWN_WAKE), 1, 0);
	assert_int_equal(look(r, 2000), 0); /* its second entry is not there yet */
	write_entry(1, 500, task_word(77, 0, TASK_IS_DRAWN), 90, 0);
	assert_int_equal(look(r, 2100), 1);
	assert_int_equal(got[0].what, TASK_IS_WAKE);
	assert_int_equal(got[0].ticket, 77);
	assert_int_equal(got[0].interval, 500);
	assert_int_equal(got[0].awaited, 90);
	/* Another kind in its place. */
	write_entry(1, 2200, task_word(0, 0, TASK_IS_DRAWN_WAKE), 1, 0);
	write_entry(1, 2300, task_word(0, 0, TASK_IS_WAKE), 2, 0);
	assert_int_equal(look(r, 3000), 2);
	assert_int_equal(got[0].ticket, 0);
	assert_int_equal(got[1].task, 2);
	assert_int_equal(taskrings_lost(r), 1);
}

/* What was there before the recording is not of it. */
static void forgotten(void **state)
{
	struct taskrings *r = *state;

	write_entry(1, 900, task_word(0, 0, TASK_IS_WAKE), 1, 0);
	memory->threads[1].lost = 5;
	taskrings_begin(r, 1000);
	write_entry(1, 999, task_word(0, 0, TASK_IS_POLL), 2, 10); /* of a hook that was at work then */
	write_entry(1, 1100, task_word(0, 0, TASK_IS_POLL), 3, 600);
	assert_int_equal(look(r, 2000), 1);
	assert_int_equal(got[0].task, 3);
	assert_int_equal(got[0].ticks, 100); /* a poll does not begin before the recording */
	assert_int_equal(taskrings_lost(r), 0);
}

/* Anything in the shared memory: it ends, and all values are in their limits. */
static void hostile(void **state)
{
	struct taskrings *r = *state;
	uint64_t now = 1000, last = 1000;

	srandom(1);
	taskrings_begin(r, now);
	for (int k = 0; k < 300; k++) {
		size_t n, total = 0;

		for (int i = 0; i < 500; i++) {
			uint64_t *words = (uint64_t *)memory->threads;
			uint32_t ring = random() % 8;
			struct task_event *e = &memory->events[ring][random() % TASK_EVENTS];

			*e = (struct task_event){ random() % 200000, (uint64_t)random() << 33 | random(), random(), random() };
			if (random() % 4 == 0)
				words[random() % (8 * 16)] = (uint64_t)(random() % 40000) << (random() % 2 ? random() % 40 : 0);
		}
		now += random() % 5000;
		taskrings_look(r, now, MARGIN, PATIENCE, false);
		while ((n = taskrings_read(r, got, ROOM))) {
			total += n;
			for (size_t i = 0; i < n; i++) {
				assert_in_range(got[i].over, last, now);
				assert_true(got[i].ticks <= got[i].over - 1000 && got[i].awaited <= got[i].over - 1000);
				assert_true(got[i].number < TASK_VTABLES && got[i].ring < TASK_THREADS);
				assert_true(got[i].what == TASK_IS_POLL || got[i].what == TASK_IS_WAKE || got[i].what == TASK_IS_DEALLOC);
				assert_true(!got[i].ticket || got[i].interval);
				last = got[i].over;
			}
			assert_true(total <= (uint64_t)TASK_THREADS * TASK_EVENTS);
		}
		taskrings_polls(r, now, got, ROOM);
	}
}

/* --- writing --- */

struct made {
	uint64_t state, number;
};
static unsigned calls;
static struct made inner = { 0, 22 };

static void count_call(uint64_t header)
{
	(void)header;
	calls++;
}

/* Polls another one, and wakes it. */
static void poll_inner(uint64_t header)
{
	(void)header;
	calls++;
	task_wake((uintptr_t)&inner, 1);
	gasflame_task_poll((uintptr_t)&inner, 1);
}

static void end_recording(uint64_t header)
{
	count_call(header);
	task_local.active = 2;
}

static void set_vtable(uint32_t number, task_function *poll)
{
	task_fixed.vtables[number] = (struct task_vtable){ .address = 1,
							   .real = { (uintptr_t)poll, (uintptr_t)count_call, (uintptr_t)count_call },
							   .id_offset = offsetof(struct made, number) };
}

static uint64_t begin(struct taskrings *r)
{
	uint64_t now = ticks();

	memory->since = memory->sign = now;
	taskrings_begin(r, now);
	calls = 0;
	return now;
}

static size_t read_now(struct taskrings *r)
{
	taskrings_look(r, ticks(), 0, PATIENCE, true);
	return taskrings_read(r, got, ROOM);
}

static void hooks(void **state)
{
	struct taskrings *r = *state;
	struct made outer = { 0, 11 };
	uint64_t since = begin(r);

	set_vtable(0, poll_inner);
	set_vtable(1, count_call);
	gasflame_task_poll((uintptr_t)&outer, 0);
	task_dealloc((uintptr_t)&outer, 0);
	assert_int_equal(calls, 3); /* each once; a wake calls nothing itself */
	assert_int_equal(read_now(r), 4);
	assert_int_equal(got[0].what, TASK_IS_WAKE);
	assert_int_equal(got[0].task, 22);
	assert_int_equal(got[0].waker, 11);
	assert_int_equal(got[1].what, TASK_IS_POLL);
	assert_int_equal(got[1].task, 22);
	assert_int_equal(got[2].task, 11);
	assert_true(got[2].ticks >= got[1].ticks && got[2].ticks <= ticks() - since);
	assert_int_equal(got[2].header, (uintptr_t)&outer & TASK_HEADER_MASK);
	assert_int_equal(got[3].what, TASK_IS_DEALLOC);
	assert_int_equal(memory->threads[got[0].ring].current, 0);
	assert_int_equal(memory->threads[got[0].ring].busy, 0);
}

/* A poll of another recording is not told. */
static void generations(void **state)
{
	struct made task = { 0, 1 };

	begin(*state);
	set_vtable(0, end_recording);
	gasflame_task_poll((uintptr_t)&task, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(read_now(*state), 0);
}

/* Nobody reads: each event that finds no room is counted; in the end hooks pass on. */
static void full(void **state)
{
	struct taskrings *r = *state;
	struct made task = { 0, 1 };
	size_t n = 0, more;

	begin(r);
	set_vtable(0, count_call);
	for (int i = 0; i < TASK_EVENTS + 1000; i++)
		gasflame_task_poll((uintptr_t)&task, 0);
	assert_int_equal(calls, TASK_EVENTS + 1000);
	assert_int_equal(taskrings_lost(r), 1000);
	assert_int_equal(task_local.active, 1);
	taskrings_look(r, ticks(), 0, PATIENCE, true);
	while ((more = taskrings_read(r, got, ROOM)))
		n += more;
	assert_int_equal(n, TASK_EVENTS);
	task_fixed.patience = 1;
	for (int i = 0; i < TASK_EVENTS; i++)
		task_wake((uintptr_t)&task, 0);
	assert_int_equal(task_local.active, 1);
	task_wake((uintptr_t)&task, 0);
	assert_int_equal(task_local.active, 0);
	assert_int_equal(taskrings_lost(r), 1001);
}

/* A handler of a signal that comes while an entry is written must not write, and is counted. */
static void interrupted(void **state)
{
	struct made task = { 0, 1 };

	begin(*state);
	set_vtable(0, count_call);
	this_thread()->busy = 1;
	assert_int_equal(task_wake((uintptr_t)&task, 0), 0);
	gasflame_task_poll((uintptr_t)&task, 0);
	task_dealloc((uintptr_t)&task, 0);
	assert_int_equal(calls, 2);
	assert_int_equal(taskrings_lost(*state), 3);
	this_thread()->busy = 0;
}

/* All places that a thread may have are taken. */
static void strays(void **state)
{
	struct made task = { 0, 1 };
	uint32_t place = task_thread_of(thread_pointer());

	set_vtable(0, count_call);
	for (uint32_t k = 0; k < TASK_WAYS; k++)
		memory->threads[(place + k) & (TASK_THREADS - 1)].owner = 1;
	begin(*state);
	gasflame_task_poll((uintptr_t)&task, 0);
	assert_int_equal(task_wake((uintptr_t)&task, 0), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(taskrings_lost(*state), 2);
	assert_int_equal(taskrings_owned(*state), TASK_WAYS);
}

static bool always(void *context, uint32_t identity)
{
	(void)context;
	return identity == 42;
}

/* Another thread with the same thread pointer, and places of those that have ended. */
static void identities(void **state)
{
	struct taskrings *r = *state;
	struct made task = { 0, 1 };
	struct task_thread *t = this_thread();

	begin(r);
	tell_thread(t, 41);
	task_wake((uintptr_t)&task, 0);
	tell_thread(t, 42);
	write_entry(t - memory->threads, ticks(), task_word(0, 0, TASK_IS_WAKE), 1, 0);
	assert_true(read_now(r) >= 2);
	assert_int_equal(got[1].identity, 42);
	taskrings_tidy(r, always, NULL);
	assert_int_equal(t->owner, 0);
}

/* --- drawing --- */

/*
 * Many recordings of the same awaits: the sum of what was drawn is, on the average, the sum of all, and as far off as
 * chances say.
 */
static void weights(void **state)
{
	enum { TRIALS = 300, TASKS = 40, EACH = 10, INTERVAL = 100000 };
	double mean = 0, square = 0, truth = 0, expected = 0;

	task_fixed.interval = INTERVAL;
	for (int k = 0; k < TASKS; k++) {
		double d = (100 << k % 12) & ~((1 << TASK_END_SHIFT) - 1), p = 1 - exp(-d / INTERVAL);

		truth += EACH * d;
		expected += p > 0 ? EACH * d * d * (1 - p) / p : 0;
	}
	for (int trial = 0; trial < TRIALS; trial++) {
		struct task_thread *t = &memory->threads[1];
		uint64_t now = 1ULL << 40;
		double sum = 0;

		memset(t, 0, sizeof(*t));
		memset(memory->ends, 0, sizeof(memory->ends));
		t->random = (trial + 1) * 0x9e3779b97f4a7c15ULL | 1;
		memory->since = 1;
		for (int i = 0; i < EACH; i++)
			for (int k = 0; k < TASKS; k++) {
				uint64_t hash = task_hash(k + 1), d = (100 << k % 12) & ~((1 << TASK_END_SHIFT) - 1);

				memory->ends[task_end_place(hash)] = task_end(hash, now);
				now += d;
				if (draw_wake(t, now, task_word(0, 0, TASK_IS_WAKE), k + 1))
					sum += d / (1 - exp(-(double)d / INTERVAL));
				t->tail = t->head;
			}
		mean += sum / TRIALS;
		square += sum * sum / TRIALS;
	}
	assert_true(fabs(mean - truth) < 5 * sqrt(expected / TRIALS));
	assert_true(fabs(sqrt((square - mean * mean) / expected) - 1) < 0.2);
}

/* A task whose end is not known has awaited since the recording began. */
static void unknown(void **state)
{
	uint64_t hash = task_hash(5);

	memory->since = 1000;
	assert_int_equal(awaited(5, 51000), 50000);
	memory->ends[task_end_place(hash)] = task_end(hash, 46080);
	assert_int_equal(awaited(5, 51200), 5120);
	memory->ends[task_end_place(hash)] = task_end(hash ^ 1ULL << 30, 46080); /* another task's */
	assert_int_equal(awaited(5, 51200), 50200);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(merged), TEST(margins), TEST(busy), TEST(early), TEST(drawn),  TEST(forgotten),  TEST(hostile), TEST(hooks),
		TEST(generations), TEST(full), TEST(interrupted), TEST(strays), TEST(identities), TEST(weights), TEST(unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
