/* The life of tasks from made-up events: what they awaited, when they were in a queue, and the rows that come of it. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/task/taskpace.h"
#include "collect/task/taskrows.h"
#include "collect/task/taskseries.h"
#include "collect/task/taskstate.h"
#include "profile/keys.h"
#include "profile/profile.h"

#define MS 1000000ULL
#define US 1000ULL

enum { WORKER_1, WORKER_2, POOL, THREADS };

struct world {
	struct profile *p;
	struct taskstate *t;
	uint32_t process, serve, flush, job;
	uint32_t stack; /* of a waker: main, send */
};

static struct world make(void)
{
	struct world w = { .p = profile_new() };
	uint32_t process = profile_add_process(w.p, &(struct profile_process){ .pid = 7 });

	for (uint32_t i = 0; i < THREADS; i++)
		profile_add_thread(w.p, &(struct profile_thread){ .process = process, .tid = 7 + i });
	w.t = taskstate_new(w.p, MS);
	w.process = taskstate_process(w.t, 0);
	w.serve = taskstate_type(w.t, "serve", false, true);
	w.flush = taskstate_type(w.t, "flush", false, false);
	w.job = taskstate_type(w.t, "job", true, false);
	w.stack = profile_stack(w.p, 0, profile_named_frame(w.p, PROFILE_NONE, FRAME_USER, "main"));
	w.stack = profile_stack(w.p, w.stack, profile_named_frame(w.p, PROFILE_NONE, FRAME_USER, "send"));
	return w;
}

static void done(struct world *w)
{
	taskstate_free(w->t);
	profile_free(w->p);
}

static void poll(struct world *w, uint32_t type, uint64_t task, uint32_t thread, uint64_t begin_ns, uint64_t end_ns)
{
	taskstate_event(w->t, &(struct taskstate_event){ .what = TASKSTATE_POLL, .process = w->process, .type = type, .task = task,
							 .header = 0x1000 * task, .thread = thread, .time_ns = begin_ns,
							 .duration_ns = end_ns - begin_ns });
}

static void wake(struct world *w, uint32_t type, uint64_t task, uint32_t thread, uint64_t time_ns, uint64_t waker, uint32_t stack,
		 double scale)
{
	taskstate_event(w->t, &(struct taskstate_event){ .what = TASKSTATE_WAKE, .process = w->process, .type = type, .task = task,
							 .header = 0x1000 * task, .thread = thread, .time_ns = time_ns, .waker = waker,
							 .stack = stack, .scale = scale });
}

static void plain_wake(struct world *w, uint32_t type, uint64_t task, uint32_t thread, uint64_t time_ns)
{
	wake(w, type, task, thread, time_ns, 0, 0, 0);
}

static void gone(struct world *w, uint32_t type, uint64_t task, uint64_t time_ns)
{
	taskstate_event(w->t, &(struct taskstate_event){ .what = TASKSTATE_GONE, .process = w->process, .type = type, .task = task,
							 .header = 0x1000 * task, .time_ns = time_ns });
}

static uint64_t counted(const struct world *w, const char *family, const char *type)
{
	_cleanup_free_ char *key = key_of(family, type);

	return profile_counter(w->p, key);
}

static void assert_closed(const struct world *w, const char *type)
{
	assert_int_equal(counted(w, KEY_TASK_POLL_NS_OF, type) + counted(w, KEY_TASK_QUEUE_NS_OF, type) +
				 counted(w, KEY_TASK_AWAIT_NS_OF, type),
			 counted(w, KEY_TASK_WALL_NS_OF, type));
}

/* The frames of a stack, outermost first: "task serve;main;send". */
static const char *text_of(const struct profile *p, uint32_t stack)
{
	static char text[512];
	const char *names[32];
	int n = 0;

	*text = '\0';
	for (; stack; stack = p->stacks.v[stack].parent) {
		const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

		names[n++] = profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
	}
	while (n--)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", *text ? ";" : "", names[n]);
	return text;
}

/* The sum of an event's samples with that stack; NULL: of all. */
static uint64_t sampled(const struct world *w, const char *event, const char *stack, uint64_t *ret_count)
{
	uint32_t e = profile_find_event(w->p, event, NULL);
	uint64_t sum = 0, count = 0;

	assert_int_not_equal(e, PROFILE_NONE);
	for (size_t i = 0; i < w->p->samples.n; i++) {
		const struct profile_sample *s = &w->p->samples.v[i];

		if (s->event == e && (!stack || !strcmp(text_of(w->p, s->stack), stack))) {
			sum += s->value;
			count += MAX(s->count, 1u);
		}
	}
	if (ret_count)
		*ret_count = count;
	return sum;
}

/* spawn 1 ms, polled 2-3, woken at 8 by flush, polled 9-10, put back by itself, polled 12-13, and finished. */
static void a_life_is_closed(void **state)
{
	struct world w = make();
	struct taskstate_silent *list;
	const struct profile_taskwake *x;
	uint64_t count;

	taskstate_spawn(w.t, w.process, w.serve, WORKER_2, 1 * MS, w.stack);
	poll(&w, w.serve, 1, WORKER_1, 2 * MS, 3 * MS);
	wake(&w, w.serve, 1, WORKER_2, 8 * MS, 2, w.stack, 1.5);
	poll(&w, w.flush, 2, WORKER_2, 7 * MS, 9 * MS);
	poll(&w, w.serve, 1, WORKER_1, 9 * MS, 10 * MS);
	poll(&w, w.serve, 1, WORKER_1, 12 * MS, 13 * MS);
	taskstate_until(w.t, 1500 * MS);
	assert_int_equal(taskstate_ask(w.t, w.process, 1500 * MS, false, &list), 2);
	for (int i = 0; i < 2; i++)
		list[i].finished = list[i].task == 1;
	assert_int_equal(list[0].header, 0x1000 * list[0].task);
	taskstate_answer(w.t, list, 2);
	free(list);
	assert_int_equal(taskstate_ask(w.t, w.process, 1600 * MS, false, &list), 0); /* not so soon again */
	free(list);
	taskstate_finish(w.t, 2000 * MS);

	assert_int_equal(counted(&w, KEY_TASK_SPAWNED_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_FINISHED_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "serve"), 0);
	assert_int_equal(counted(&w, KEY_TASK_POLLS_OF, "serve"), 3);
	assert_int_equal(counted(&w, KEY_TASK_WAKES_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_POLL_NS_OF, "serve"), 3 * MS);
	assert_int_equal(counted(&w, KEY_TASK_POLL_MAX_NS_OF, "serve"), MS);
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"), (1 + 1 + 2) * MS);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"), 5 * MS);
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "serve"), 12 * MS);
	assert_closed(&w, "serve");
	assert_int_equal(sampled(&w, "poll", "task serve", &count), 3 * MS);
	assert_int_equal(count, 3);
	assert_int_equal(sampled(&w, "await", "task serve;main;send", &count), 5 * MS);
	assert_int_equal(count, 1);
	assert_int_equal(sampled(&w, "taskqueue", "task serve;[idle worker]", NULL), 4 * MS);
	assert_int_equal(sampled(&w, "spawn", "main;send;task serve", NULL), 1);

	/* flush was seen first as a waker: its poll is its first, and it is alive. */
	assert_int_equal(counted(&w, KEY_TASK_SPAWNED_OF, "flush"), 1);
	assert_int_equal(counted(&w, KEY_TASK_POLL_NS_OF, "flush"), 2 * MS);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "flush"), 1);
	assert_int_equal(sampled(&w, "await", "task flush;[not ended]", NULL), 1991 * MS);
	assert_closed(&w, "flush");

	assert_int_equal(w.p->taskwakes.n, 1);
	x = &w.p->taskwakes.v[0];
	assert_int_equal(x->time_ns, 8 * MS);
	assert_int_equal(x->await_ns, 5 * MS);
	assert_int_equal(x->queue_ns, 1 * MS);
	assert_string_equal(profile_str(w.p, x->type), "serve");
	assert_string_equal(profile_str(w.p, x->waker_type), "flush");
	assert_int_equal(x->thread, WORKER_1);
	assert_int_equal(x->waker, WORKER_2);
	assert_int_equal(x->waker_stack, w.stack);
	assert_true(x->task && x->waker_task && x->task != x->waker_task);
	done(&w);
}

/* tokio lets go of a task before poll() returns: it may be woken, and even polled elsewhere, before the poll's end is told. */
static void a_wake_may_come_before_the_end_of_the_poll(void **state)
{
	struct world w = make();

	taskstate_spawn(w.t, w.process, w.serve, WORKER_1, 1 * MS, 0);
	plain_wake(&w, w.serve, 1, WORKER_2, 10 * MS - 20); /* of its first poll, which is not known yet */
	poll(&w, w.serve, 1, WORKER_1, 2 * MS, 10 * MS);
	plain_wake(&w, w.serve, 1, WORKER_2, 20 * MS - 30);
	poll(&w, w.serve, 1, WORKER_1, 11 * MS, 20 * MS);
	poll(&w, w.serve, 1, WORKER_2, 20 * MS - 10, 30 * MS);
	taskstate_finish(w.t, 40 * MS);
	assert_int_equal(counted(&w, KEY_TASK_SPAWNED_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"), 1 * MS + 1 * MS);
	assert_int_equal(counted(&w, KEY_TASK_POLL_NS_OF, "serve"), (8 + 9 + 10) * MS);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"), 10 * MS); /* after the last poll */
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "serve"), 39 * MS);
	assert_closed(&w, "serve");
	assert_int_equal(w.p->taskwakes.n, 0);
	done(&w);
}

/* The thread that lets go of a task wakes another one, and is preempted by it: it is told last. */
static void a_poll_may_be_told_after_the_next_one(void **state)
{
	struct world w = make();

	poll(&w, w.flush, 1, WORKER_1, 1 * MS, 2 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 5 * MS);
	poll(&w, w.flush, 1, WORKER_2, 8 * MS, 9 * MS);  /* put back into the queue by the next one, which ran before */
	poll(&w, w.flush, 1, WORKER_1, 6 * MS, 20 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 21 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 24 * MS);
	poll(&w, w.flush, 1, WORKER_2, 26 * MS, 27 * MS); /* woken at 24 */
	poll(&w, w.flush, 1, WORKER_1, 22 * MS, 30 * MS); /* woken at 21 */
	poll(&w, w.flush, 1, WORKER_1, 31 * MS, 32 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 35 * MS);
	poll(&w, w.flush, 1, WORKER_2, 36 * MS, 37 * MS);
	poll(&w, w.flush, 1, WORKER_1, 34 * MS, 38 * MS); /* woken while it was polled: what seemed an await was this poll */
	taskstate_finish(w.t, 40 * MS);
	assert_int_equal(counted(&w, KEY_TASK_POLLS_OF, "flush"), 8);
	/* 1-2, 6-8, 8-9, 22-26, 26-27, 31-32, 34-36, 36-37 */
	assert_int_equal(counted(&w, KEY_TASK_POLL_NS_OF, "flush"), (1 + 2 + 1 + 4 + 1 + 1 + 2 + 1) * MS);
	/* 5-6, 21-22, 27-31, 32-34 */
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "flush"), (1 + 1 + 4 + 2) * MS);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"), (3 + 12 + 3) * MS);
	assert_closed(&w, "flush");
	assert_int_equal(sampled(&w, "poll", NULL, NULL), counted(&w, KEY_TASK_POLL_NS_OF, "flush"));
	assert_int_equal(sampled(&w, "await", NULL, NULL), counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"));
	done(&w);
}

/* Awaits from before count from the start; what is in a queue at the end stays in it. */
static void tasks_are_there_before_and_after(void **state)
{
	struct world w = make();

	plain_wake(&w, w.serve, 5, WORKER_2, 4 * MS);
	poll(&w, w.serve, 5, WORKER_1, 5 * MS, 6 * MS);
	plain_wake(&w, w.serve, 5, WORKER_2, 7 * MS);
	poll(&w, w.serve, 6, WORKER_1, 8 * MS, 9 * MS); /* was in a queue since nobody knows when */
	taskstate_spawn(w.t, w.process, w.serve, WORKER_1, 17 * MS, 0);
	taskstate_finish(w.t, 20 * MS);
	assert_int_equal(counted(&w, KEY_TASK_SPAWNED_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "serve"), 3);
	assert_int_equal(counted(&w, KEY_TASK_POLL_NS_OF, "serve"), 2 * MS);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"), 4 * MS + 1 * MS + 11 * MS);
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"), 1 * MS + 13 * MS + 3 * MS);
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "serve"), 20 * MS + 12 * MS + 3 * MS);
	assert_closed(&w, "serve");
	assert_int_equal(sampled(&w, "taskqueue", NULL, NULL), counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"));
	assert_int_equal(sampled(&w, "await", NULL, NULL), counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"));
	done(&w);
}

/* Dropped while it awaited: its time ends with its last poll, which may be told after that. Numbers are never used again. */
static void a_task_that_is_gone_has_no_await_after_its_last_poll(void **state)
{
	struct world w = make();

	poll(&w, w.flush, 1, WORKER_1, 1 * MS, 2 * MS);
	gone(&w, w.flush, 1, 3 * MS);
	gone(&w, w.flush, 2, 5 * MS - 10);
	poll(&w, w.flush, 2, WORKER_1, 4 * MS, 5 * MS);
	gone(&w, w.flush, 2, 5 * MS);
	gone(&w, w.flush, 99, 5 * MS);
	taskstate_until(w.t, 1001 * MS);
	taskstate_finish(w.t, 2000 * MS);
	assert_int_equal(counted(&w, KEY_TASK_FINISHED_OF, "flush"), 2);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "flush"), 0);
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "flush"), 2 * MS);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"), 0);
	assert_closed(&w, "flush");
	done(&w);
}

/* A job that sends for a long time is in its first poll, of which no event has come. */
static void a_waker_may_be_in_its_first_poll(void **state)
{
	struct world w = make();
	struct taskstate_event job = { .what = TASKSTATE_POLL, .process = w.process, .type = w.job, .task = 9, .header = 0x9000,
				       .thread = POOL, .time_ns = 1 * MS, .duration_ns = 30 * MS };

	taskstate_meet(w.t, w.process, 9, w.job);
	wake(&w, w.serve, 1, POOL, 10 * MS, 9, 0, 0);
	poll(&w, w.serve, 1, WORKER_1, 11 * MS, 12 * MS);
	taskstate_event(w.t, &job);
	taskstate_finish(w.t, 40 * MS);
	assert_int_equal(w.p->taskwakes.n, 1);
	assert_string_equal(profile_str(w.p, w.p->taskwakes.v[0].waker_type), "job");
	assert_true(w.p->taskwakes.v[0].waker_task && w.p->taskwakes.v[0].waker_task != w.p->taskwakes.v[0].task);
	assert_int_equal(counted(&w, KEY_TASK_POLLS_OF, "job"), 1);
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "job"), 39 * MS);
	assert_closed(&w, "job");
	done(&w);
}

/* A blocker: what lay in the queue meanwhile, and the mark. A job of the blocking pool has none. */
static void a_long_poll_is_marked_and_blamed(void **state)
{
	struct world w = make();

	for (int i = 0; i < 30; i++) { /* short ones before */
		plain_wake(&w, w.serve, 1, WORKER_2, i * 100 * US + 10 * US);
		poll(&w, w.serve, 1, WORKER_1, i * 100 * US + 11 * US, i * 100 * US + 12 * US);
	}
	plain_wake(&w, w.serve, 3, WORKER_2, 6 * MS);
	poll(&w, w.flush, 2, WORKER_1, 5 * MS, 25 * MS);
	poll(&w, w.serve, 3, WORKER_1, 25 * MS, 25 * MS + 500 * US);
	poll(&w, w.job, 4, POOL, 1 * MS, 30 * MS);
	taskstate_finish(w.t, 40 * MS);
	assert_int_equal(sampled(&w, "taskqueue", "task serve;task flush", NULL), 19 * MS);
	assert_int_equal(sampled(&w, "taskqueue", "task serve;[idle worker]", NULL), 30 * US);
	assert_int_equal(w.p->marks.n, 1);
	assert_string_equal(profile_str(w.p, w.p->marks.v[0].name), "flush");
	assert_string_equal(profile_str(w.p, w.p->marks.v[0].kind), "long poll");
	assert_int_equal(w.p->marks.v[0].start_ns, 5 * MS);
	assert_int_equal(w.p->marks.v[0].end_ns, 25 * MS);
	assert_int_equal(w.p->marks.v[0].thread, WORKER_1);
	assert_int_equal(counted(&w, KEY_TASK_BLOCKING_OF, "job"), 1);
	assert_int_equal(profile_counter(w.p, KEY_TASK_LONG_POLL_NS), MS);
	done(&w);
}

/* Wakes with a stack share the exact time of all, those of a type without any are under the type alone. */
static void awaits_add_up_to_what_was_awaited(void **state)
{
	struct world w = make();
	uint32_t other = profile_stack(w.p, w.stack, profile_named_frame(w.p, PROFILE_NONE, FRAME_USER, "recv"));
	uint64_t a, b, count_a, count_b, all = 0;

	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t at = i * MS;

		poll(&w, w.serve, 1, WORKER_1, at, at + 100 * US);
		wake(&w, w.serve, 1, WORKER_2, at + 900 * US, 0, i % 10 ? 0 : i % 3 ? w.stack : other, i % 3 ? 7.3 : 14.6);
		poll(&w, w.flush, 2, WORKER_1, at + 950 * US, at + 960 * US);
		plain_wake(&w, w.flush, 2, WORKER_2, at + 970 * US);
		taskstate_until(w.t, at + 970 * US);
		all += 800 * US;
	}
	taskstate_finish(w.t, 3000 * MS);
	assert_int_equal(sampled(&w, "await", NULL, NULL),
			 counted(&w, KEY_TASK_AWAIT_NS_OF, "serve") + counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"));
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"), all);
	a = sampled(&w, "await", "task serve;main;send", &count_a);
	b = sampled(&w, "await", "task serve;main;send;recv", &count_b);
	assert_int_equal(a + b, all);
	assert_int_equal(count_a + count_b, 3000);
	/* Of three one in three has twice the weight: both have the same share. */
	assert_true(a > 0.98 * b && a < 1.02 * b);
	assert_int_equal(sampled(&w, "await", "task flush", NULL), counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"));
	done(&w);
}

/* What a stack stands for comes of figures that the target can write. */
static void odd_weights_do_no_harm(void **state)
{
	static const double odd[] = { 0, -1, INFINITY, -INFINITY, NAN, 1e300, 1 };
	struct world w = make();

	for (uint64_t i = 0; i < ARRAY_LEN(odd); i++) {
		poll(&w, w.flush, 1, WORKER_1, 10 * i * MS, (10 * i + 1) * MS);
		wake(&w, w.flush, 1, WORKER_2, (10 * i + 5) * MS, 0, w.stack, odd[i]);
	}
	poll(&w, w.flush, 1, WORKER_1, 80 * MS, 81 * MS);
	taskstate_finish(w.t, 81 * MS);
	assert_int_equal(sampled(&w, "await", "task flush;main;send", NULL), ARRAY_LEN(odd) * 4 * MS);
	assert_closed(&w, "flush");
	done(&w);
}

static void the_longest_are_kept_one_by_one(void **state)
{
	struct world w = make();
	uint64_t shortest = UINT64_MAX;

	for (uint64_t i = 0; i < 100; i++) { /* in one slot */
		plain_wake(&w, w.flush, 1 + i, WORKER_2, 1000 * MS + i * US);
		poll(&w, w.flush, 1 + i, WORKER_1, 1005 * MS, 1005 * MS + 1);
	}
	for (uint64_t i = 0; i < 500; i++)
		poll(&w, w.flush, 1000 + i, WORKER_1, 1100 * MS + i * US, 1102 * MS + 2 * i * US);
	taskstate_finish(w.t, 3000 * MS);
	assert_int_equal(w.p->taskwakes.n, TASKROWS_WAKES);
	for (size_t i = 0; i < w.p->taskwakes.n; i++)
		shortest = MIN(shortest, w.p->taskwakes.v[i].await_ns);
	assert_int_equal(shortest, 1000 * MS + (100 - TASKROWS_WAKES) * US);
	assert_int_equal(profile_counter(w.p, KEY_TASK_WAKES_LEFT_OUT), 100 - TASKROWS_WAKES);
	assert_int_equal(w.p->marks.n, TASKROWS_MARKS);
	assert_int_equal(profile_counter(w.p, KEY_TASK_LONG_POLLS_LEFT_OUT), 500 - TASKROWS_MARKS);
	done(&w);
}

/* Polls that were lost on their way do not shift what follows. */
static void lost_polls_do_not_shift_the_rest(void **state)
{
	struct world w = make();

	poll(&w, w.flush, 1, WORKER_1, 1 * MS, 2 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 3 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 5 * MS); /* the poll of 4 ms was lost */
	poll(&w, w.flush, 1, WORKER_1, 6 * MS, 7 * MS);
	plain_wake(&w, w.flush, 1, WORKER_2, 8 * MS);
	poll(&w, w.flush, 1, WORKER_1, 9 * MS, 10 * MS);
	taskstate_finish(w.t, 10 * MS);
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "flush"), 4 * MS); /* it is not known when it was polled */
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"), 2 * MS);
	assert_closed(&w, "flush");
	done(&w);
}

static void tasks_of_two_processes_are_told_apart(void **state)
{
	struct world w = make();
	uint32_t first = w.process, second = taskstate_process(w.t, 50 * MS);

	poll(&w, w.flush, 1, WORKER_1, 60 * MS, 61 * MS);
	w.process = second;
	plain_wake(&w, w.flush, 1, WORKER_2, 62 * MS); /* has awaited since 50 ms */
	poll(&w, w.flush, 1, WORKER_2, 63 * MS, 64 * MS);
	taskstate_spawn(w.t, first, w.serve, WORKER_1, 65 * MS, 0);
	taskstate_spawn(w.t, second, w.serve, WORKER_1, 66 * MS, 0); /* never polled */
	taskstate_end_process(w.t, second, 70 * MS);
	taskstate_end_process(w.t, second, 90 * MS);
	assert_int_not_equal(first, second);
	taskstate_finish(w.t, 100 * MS);
	assert_int_equal(counted(&w, KEY_TASK_FINISHED_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "serve"), 1);
	assert_int_equal(counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"), 4 * MS + 35 * MS);
	assert_int_equal(counted(&w, KEY_TASK_ALIVE_OF, "flush"), 1);
	assert_int_equal(counted(&w, KEY_TASK_FINISHED_OF, "flush"), 1);
	assert_int_equal(counted(&w, KEY_TASK_AWAIT_NS_OF, "flush"), 39 * MS + 12 * MS);
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "flush"), 40 * MS + 14 * MS);
	assert_closed(&w, "flush");
	assert_int_equal(taskstate_totals(w.t).tasks, 2);
	done(&w);
}

/* --- a runtime that is made up --- */

struct made {
	struct taskstate_event event;
	uint64_t over_ns;
};

static int by_end(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	return ORDER(x->over_ns, y->over_ns);
}

/* A poll that returns after more than eight others of its task is not put right. */
static void assert_near(uint64_t value, uint64_t truth)
{
	assert_in_range(value, truth - truth / 1000, truth + truth / 1000);
}

/*
 * Tasks that are polled, put back by themselves or woken, some of them while the poll before has not returned yet: rarely for so
 * long that several polls follow meanwhile. The time of each is known; events come in the order in which they are over.
 */
static void a_made_up_runtime_is_told_exactly(void **state)
{
	uint64_t seed = 88172645463325252ULL, poll_ns = 0, queue_ns = 0, await_ns = 0, wall_ns = 0, polls = 0, wakes = 0;
	VEC(struct made) all = { 0 };
	struct world w = make();

	for (uint64_t task = 1; task <= 40; task++) {
		uint64_t at = task * US, born = at, until = at; /* until: the task is free from here on */

		taskstate_spawn(w.t, w.process, w.serve, WORKER_1, at, 0);
		for (int i = 0; i < 200; i++) {
			uint64_t begin, run, tail, free_ns, woken = 0, next, r[5];

			for (int k = 0; k < 5; k++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				r[k] = seed >> 20;
			}
			begin = at;
			run = 1000 + r[0] % 50000;
			free_ns = begin + run;
			tail = r[1] % 4 ? r[1] / 4 % 50 : r[1] / 4 % 5 ? r[1] / 4 % 20000 : r[1] / 4 % 300000;
			if (r[2] % 2)
				woken = free_ns + 1 + r[2] / 2 % (r[2] / 2 % 3 ? 500 : 100000);
			next = (woken ? woken : free_ns) + 1 + r[3] % 30000;
			vec_push(&all, (struct made){ { .what = TASKSTATE_POLL, .process = w.process, .type = w.serve, .task = task,
							.header = 0x1000 * task, .thread = r[4] % 2, .time_ns = begin,
							.duration_ns = run + tail }, free_ns + tail });
			polls++;
			/* As far as it can be known: a poll ends when it returns, or when the next one begins. */
			until = i == 199 ? free_ns + tail : MIN(free_ns + tail, next);
			poll_ns += until - begin;
			if (i == 199)
				break;
			if (woken) {
				vec_push(&all, (struct made){ { .what = TASKSTATE_WAKE, .process = w.process, .type = w.serve, .task = task,
								.header = 0x1000 * task, .thread = r[4] / 2 % 2, .time_ns = woken },
							      woken });
				wakes++;
			}
			await_ns += woken > until ? woken - until : 0;
			queue_ns += next - MAX(until, woken);
			at = next;
		}
		wall_ns += until - born;
	}
	vec_sort(&all, by_end);
	for (size_t i = 0; i < all.n; i++)
		taskstate_event(w.t, &all.v[i].event);
	taskstate_end_process(w.t, w.process, 0);
	taskstate_finish(w.t, 1);
	assert_int_equal(counted(&w, KEY_TASK_POLLS_OF, "serve"), polls);
	assert_int_equal(counted(&w, KEY_TASK_WAKES_OF, "serve"), wakes);
	assert_closed(&w, "serve");
	assert_int_equal(counted(&w, KEY_TASK_WALL_NS_OF, "serve"), wall_ns);
	assert_near(counted(&w, KEY_TASK_POLL_NS_OF, "serve"), poll_ns);
	assert_near(counted(&w, KEY_TASK_QUEUE_NS_OF, "serve"), queue_ns);
	assert_near(counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"), await_ns);
	assert_int_equal(sampled(&w, "poll", NULL, NULL), counted(&w, KEY_TASK_POLL_NS_OF, "serve"));
	assert_int_equal(sampled(&w, "await", NULL, NULL), counted(&w, KEY_TASK_AWAIT_NS_OF, "serve"));
	assert_near(sampled(&w, "taskqueue", NULL, NULL), queue_ns);
	vec_done(&all);
	done(&w);
}

/* --- how often a stack is taken --- */

static void as_many_stacks_as_allowed(void **state)
{
	struct taskpace p;
	uint64_t stacks = 0, now = 1, interval;

	taskpace_init(&p);
	assert_false(taskpace_look(&p, now, 0));
	assert_false(taskpace_look(&p, now + MS, 1000000)); /* too soon to tell */
	/* 20 s of awaiting end in each second, in many short awaits. */
	for (int i = 0; i < 100; i++) {
		now += 100 * MS;
		stacks += 2000 * MS / p.interval_ns;
		taskpace_look(&p, now, stacks);
	}
	assert_in_range(20000 * MS / p.interval_ns, TASKPACE_STACKS / 3, TASKPACE_STACKS);
	interval = p.interval_ns;
	taskpace_thin(&p, 3);
	for (int i = 0; i < 100; i++) {
		now += 100 * MS;
		stacks += 2000 * MS / p.interval_ns;
		taskpace_look(&p, now, stacks);
	}
	assert_in_range(p.interval_ns, 4 * interval, 16 * interval);
	taskpace_thin(&p, 0);
	for (int i = 0; i < 1000; i++)
		taskpace_look(&p, now += 100 * MS, stacks); /* nothing happens */
	assert_int_equal(p.interval_ns, TASKPACE_LEAST_NS);
	assert_true(taskpace_look(&p, now += 100 * MS, stacks += 100000));
	assert_in_range(p.interval_ns, 500 * TASKPACE_LEAST_NS, 2000 * TASKPACE_LEAST_NS); /* at once */
}

/* --- series --- */

static int64_t sum_of(const struct profile *p, const char *key)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->points.n; i++)
		if (!strcmp(profile_str(p, p->series.v[p->points.v[i].series].name), key))
			sum += p->points.v[i].value;
	return sum;
}

static void series_add_up(void **state)
{
	struct profile *p = profile_new();
	struct taskseries s;
	uint64_t last = 0, points = 0;

	taskseries_init(&s, p);
	taskseries_queue(&s, 5 * MS, 27 * MS);
	taskseries_poll(&s, 0, 12 * MS, 14 * MS, false); /* within the next one */
	taskseries_poll(&s, 0, 11 * MS, 31 * MS, false);
	taskseries_poll(&s, 1, 1 * MS, 31 * MS, true);
	taskseries_poll(&s, 0, 500 * MS, 501 * MS, false);
	taskseries_under_way(&s, 1, 600 * MS, 1500 * MS, false);
	taskseries_until(&s, 1500 * MS);
	taskseries_under_way(&s, 1, 600 * MS, 2500 * MS, false);
	taskseries_until(&s, 2500 * MS);
	taskseries_poll(&s, 1, 600 * MS, 2600 * MS, false);
	taskseries_finish(&s, 3000 * MS);
	assert_int_equal(sum_of(p, KEY_TASK_QUEUE), 22 * MS);
	assert_int_equal(sum_of(p, KEY_TASK_BUSY), (20 + 1 + 2000) * MS);
	assert_int_equal(sum_of(p, KEY_TASK_POLLS), 5);
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *x = &p->points.v[i];
		const char *key = profile_str(p, p->series.v[x->series].name);

		assert_true(x->time_ns >= last && x->time_ns <= 3000 * MS);
		last = x->time_ns;
		points += !strcmp(key, KEY_TASK_BUSY);
		if (!strcmp(key, KEY_TASK_BUSY) && x->time_ns == 20 * MS)
			assert_in_range(x->value, 7 * MS, 9 * MS);
	}
	/* Quiet times have no points of their own. */
	assert_true(points > 200 && points < 220);
	taskseries_done(&s);
	profile_free(p);
}

/* An hour has not many more points than a minute, and they still add up. */
static void points_get_rarer(void **state)
{
	struct profile *p = profile_new();
	struct taskseries s;

	taskseries_init(&s, p);
	for (uint64_t i = 0; i < 360000; i++)
		taskseries_poll(&s, 0, i * 10 * MS, i * 10 * MS + MS, false);
	taskseries_finish(&s, 3600000 * MS);
	assert_int_equal(sum_of(p, KEY_TASK_POLLS), 360000);
	assert_int_equal(sum_of(p, KEY_TASK_BUSY), 360000 * MS);
	assert_true(p->points.n / 4 > 10000 && p->points.n / 4 < 20000);
	taskseries_done(&s);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_is_closed),
		cmocka_unit_test(a_wake_may_come_before_the_end_of_the_poll),
		cmocka_unit_test(a_poll_may_be_told_after_the_next_one),
		cmocka_unit_test(tasks_are_there_before_and_after),
		cmocka_unit_test(a_task_that_is_gone_has_no_await_after_its_last_poll),
		cmocka_unit_test(a_waker_may_be_in_its_first_poll),
		cmocka_unit_test(a_long_poll_is_marked_and_blamed),
		cmocka_unit_test(awaits_add_up_to_what_was_awaited),
		cmocka_unit_test(odd_weights_do_no_harm),
		cmocka_unit_test(the_longest_are_kept_one_by_one),
		cmocka_unit_test(lost_polls_do_not_shift_the_rest),
		cmocka_unit_test(tasks_of_two_processes_are_told_apart),
		cmocka_unit_test(a_made_up_runtime_is_told_exactly),
		cmocka_unit_test(as_many_stacks_as_allowed),
		cmocka_unit_test(series_add_up),
		cmocka_unit_test(points_get_rarer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
