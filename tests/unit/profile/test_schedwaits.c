/* test_schedwaits.c - what the scheduler says as waits, time in the queue, wakes and accounts: each rule of the header. */
#include "test.h"

#include "base/buf.h"
#include "profile/schedwaits.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

static const uint64_t ms = 1000000;

struct fixture {
	struct profile *p;
	struct schedwaits w;
	uint32_t a, b, idle;       /* threads of the tids 1, 2, 0 */
	uint32_t read, write, irq; /* stacks */
};

static uint32_t stack_of(struct profile *p, enum profile_frame_kind kind, const char *name)
{
	return profile_stack(p, 0, profile_named_frame(p, PROFILE_NONE, kind, name));
}

static uint32_t add_thread(struct profile *p, uint32_t process, uint32_t tid, const char *name)
{
	return profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = tid, .name = profile_string(p, name) });
}

static void woken(struct fixture *f, uint32_t tid, uint32_t waker, uint32_t stack, uint64_t time_ns)
{
	schedwaits_woken(&f->w, tid, waker == PROFILE_NONE ? NULL : &(struct schedwaits_waker){ .thread = waker, .stack = stack }, time_ns);
}

static struct fixture begin(void)
{
	struct fixture f = { .p = profile_new() };
	uint32_t process = profile_add_process(f.p, &(struct profile_process){ .pid = 1 });

	f.a = add_thread(f.p, process, 1, "a");
	f.b = add_thread(f.p, process, 2, "b");
	f.idle = add_thread(f.p, process, 0, "swapper");
	f.read = stack_of(f.p, FRAME_USER, "read");
	f.write = stack_of(f.p, FRAME_USER, "write");
	f.irq = stack_of(f.p, FRAME_KERNEL, "hrtimer_interrupt");
	f.irq = profile_stack(f.p, stack_of(f.p, FRAME_KERNEL, "asm_sysvec_apic_timer_interrupt"), f.p->stacks.v[f.irq].frame);
	schedwaits_init(&f.w, f.p);
	return f;
}

/* "wait 5 at 0 of a: read", in ms; wakes; then what each thread's account has. */
static void expect(struct fixture *f, const char *wanted)
{
	const struct profile *p = f->p;
	struct buf b = { 0 };

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_frame *frame = &p->frames.v[p->stacks.v[s->stack].frame];

		buf_printf(&b, "%s %g at %g of %s: %s\n", profile_str(p, p->events.v[s->event].name), (double)s->value / ms,
			   (double)s->time_ns / ms, profile_str(p, p->threads.v[s->thread].name),
			   profile_str(p, p->functions.v[p->lines.v[frame->first_line].function].name));
	}
	for (size_t i = 0; i < p->wakes.n; i++) {
		const struct profile_wake *k = &p->wakes.v[i];

		buf_printf(&b, "%s woken by %s%s: %g %g\n", profile_str(p, p->threads.v[k->thread].name), profile_str(p, k->waker_name),
			   k->waker == PROFILE_NONE ? " (no thread)" : "", (double)k->blocked_ns / ms, (double)k->queue_ns / ms);
	}
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];

		if (t->run_ns || t->blocked_ns || t->queue_ns)
			buf_printf(&b, "%s ran %g blocked %g queue %g\n", profile_str(p, t->name), (double)t->run_ns / ms,
				   (double)t->blocked_ns / ms, (double)t->queue_ns / ms);
	}
	if (f->w.unended)
		buf_printf(&b, "unended %d%s\n", (int)f->w.unended, f->w.overflow ? ", too much" : "");
	buf_puts(&b, "");
	assert_string_equal(b.data, wanted);
	buf_done(&b);
	schedwaits_done(&f->w);
	profile_free(f->p);
}

static void kinds(void **state)
{
	static const struct {
		const char *name;
		enum schedwaits_kind kind;
	} table[] = { { "sched_switch", SCHED_SWITCH },           { "sched_waking", SCHED_WAKE },
		      { "sched_wakeup_new", SCHED_WAKE },         { "sched_stat_iowait", SCHED_STAT_BLOCKED },
		      { "sched_stat_wait", SCHED_STAT_QUEUE },    { "sched_stat_runtime", SCHED_NONE },
		      { "sched_wake", SCHED_NONE },               { "", SCHED_NONE } };

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(schedwaits_kind(table[i].name, strlen(table[i].name)), table[i].kind);
	assert_int_equal(schedwaits_kind("sched_wakeup_new", strlen("sched_wakeup")), SCHED_WAKE);
}

static void blocked_woken_and_back(void **state)
{
	struct fixture f = begin();

	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 10 * ms);
	schedwaits_came(&f.w, 2, PROFILE_NONE, 10 * ms); /* it is not known yet, and has run for 7 ms when it is */
	woken(&f, 1, f.b, f.write, 15 * ms);
	woken(&f, 1, f.a, f.read, 16 * ms);
	schedwaits_left(&f.w, 2, f.b, f.write, SCHEDWAITS_READY, 17 * ms);
	woken(&f, 2, f.a, f.read, 18 * ms); /* it did not sleep */
	schedwaits_came(&f.w, 1, PROFILE_NONE, 17 * ms);
	schedwaits_end(&f.w, 20 * ms);
	expect(&f, "wait 5 at 10 of a: read\nqueue 2 at 10 of a: read\nqueue 3 at 17 of b: write\na woken by b: 5 2\n"
		   "a ran 3 blocked 5 queue 2\nb ran 7 blocked 0 queue 3\n");
}

static void nobody_says_that_it_was_woken(void **state)
{
	struct fixture f = begin();

	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 0); /* the first moment is one as others are */
	schedwaits_came(&f.w, 1, f.a, 4 * ms);
	schedwaits_left(&f.w, 2, f.b, f.write, SCHEDWAITS_BLOCKED, 5 * ms);
	woken(&f, 2, f.a, f.read, 4 * ms); /* from before it slept */
	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_ENDED, 6 * ms);
	woken(&f, 1, f.b, f.write, 7 * ms);
	schedwaits_left(&f.w, 0, f.idle, f.read, SCHEDWAITS_READY, 7 * ms);
	schedwaits_came(&f.w, 0, f.idle, 7 * ms);
	schedwaits_end(&f.w, 8 * ms);
	expect(&f, "wait 4 at 0 of a: read\nwait 3 at 5 of b: write\na ran 2 blocked 4 queue 0\nb ran 0 blocked 3 queue 0\n");
}

static void it_left_twice(void **state)
{
	struct fixture f = begin();

	/* It was woken: more than that is not known. */
	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 1 * ms);
	woken(&f, 1, PROFILE_NONE, 0, 3 * ms);
	schedwaits_left(&f.w, 1, f.a, f.write, SCHEDWAITS_BLOCKED, 6 * ms);
	/* Nothing is. */
	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_READY, 8 * ms);
	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_READY, 9 * ms);
	schedwaits_came(&f.w, 1, f.a, 10 * ms);
	schedwaits_end(&f.w, 10 * ms);
	expect(&f, "wait 2 at 1 of a: read\nqueue 1 at 9 of a: read\na ran 0 blocked 2 queue 1\nunended 2\n");
}

static void who_wakes(void **state)
{
	struct fixture f = begin();
	const struct {
		uint32_t waker, stack;
		uint64_t blocked_us, queue_us;
	} waits[] = {
		{ f.b, f.write, 999, 0 },  { f.b, f.write, 600, 400 }, { f.b, 0, 2000, 0 },
		{ f.b, f.irq, 3000, 0 },   { f.idle, 0, 4000, 0 },     { PROFILE_NONE, 0, 5000, 0 },
	};
	_cleanup_free_ char *wanted = NULL;
	uint64_t now = 0;

	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, now);
		now += waits[i].blocked_us * 1000;
		woken(&f, 1, waits[i].waker, waits[i].stack, now);
		now += waits[i].queue_us * 1000;
		schedwaits_came(&f.w, 1, f.a, now);
	}
	f.p->samples.n = 0;
	wanted = mem_printf("a woken by b: 0.6 0.4\na woken by b: 2 0\na woken by %s (no thread): 3 0\na woken by %s (no thread): 4 0\n"
			    "a ran 0 blocked 15.599 queue 0.4\n", kernel_interrupt_waker(INTERRUPT_TIMER),
			    kernel_interrupt_waker(INTERRUPT_OTHER));
	expect(&f, wanted);
}

static void events(void **state)
{
	struct fixture f = begin();

	schedwaits_add_events(&f.w, SCHED_OFFCPU);
	assert_int_equal(f.p->events.n, 1);
	assert_non_null(strstr(profile_str(f.p, f.p->events.v[0].describe), "offcpu-time"));
	schedwaits_add_events(&f.w, SCHED_SWITCH);
	schedwaits_add_events(&f.w, SCHED_SWITCH);
	assert_int_equal(f.p->events.n, 2);
	assert_int_equal(f.w.queue_event, 1);
	schedwaits_waited(&f.w, f.a, f.read, 3 * ms, 2 * ms);
	schedwaits_waited(&f.w, f.a, f.read, 3 * ms, 0);
	expect(&f, "wait 2 at 3 of a: read\n");
}

static void more_than_can_be_counted(void **state)
{
	struct fixture f = begin();

	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 0);
	schedwaits_came(&f.w, 1, f.a, UINT64_MAX);
	schedwaits_waited(&f.w, f.a, f.read, 0, 3 * ms);
	schedwaits_waited(&f.w, f.a, f.read, 0, INT64_MAX);
	/* Times that go back are no times. */
	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 5 * ms);
	woken(&f, 1, f.b, f.write, 7 * ms);
	schedwaits_came(&f.w, 1, f.a, 1 * ms);
	expect(&f, "wait 3 at 0 of a: read\nwait 2 at 5 of a: read\na woken by b: 2 0\na ran 0 blocked 2 queue 0\nunended 2, too much\n");
}

/* Who looks on sees everything until now, and what it saw is not counted again. */
static void looks_before_the_end(void **state)
{
	struct fixture f = begin();
	const struct profile_thread *a = &f.p->threads.v[f.a], *b = &f.p->threads.v[f.b];

	schedwaits_left(&f.w, 1, f.a, f.read, SCHEDWAITS_BLOCKED, 1 * ms);
	schedwaits_came(&f.w, 2, f.b, 1 * ms);
	for (unsigned look = 1; look <= 3; look++) {
		schedwaits_peek(&f.w, (1 + look) * ms);
		assert_int_equal(f.p->samples.n, 1);
		assert_int_equal(f.p->samples.v[0].value, look * ms);
		assert_int_equal(a->blocked_ns, look * ms);
		assert_int_equal(b->run_ns, look * ms);
		f.p->samples.n = 0;
	}
	schedwaits_came(&f.w, 1, f.a, 6 * ms);
	schedwaits_end(&f.w, 8 * ms);
	expect(&f, "wait 5 at 1 of a: read\na ran 2 blocked 5 queue 0\nb ran 7 blocked 0 queue 0\n");
}

static void stack_and_name_come_later(void **state)
{
	struct fixture f = begin();

	schedwaits_set_stack(&f.w, 1, f.write); /* it does not wait */
	schedwaits_left(&f.w, 1, f.a, 0, SCHEDWAITS_BLOCKED, 1 * ms);
	schedwaits_set_stack(&f.w, 1, f.read);
	/* A stranger, who is no thread of the profile. */
	schedwaits_woken(&f.w, 1, &(struct schedwaits_waker){ .thread = PROFILE_NONE, .name = profile_string(f.p, "cron") }, 4 * ms);
	schedwaits_came(&f.w, 1, f.a, 5 * ms);
	schedwaits_set_stack(&f.w, 1, f.write);
	schedwaits_end(&f.w, 5 * ms);
	expect(&f, "wait 3 at 1 of a: read\nqueue 1 at 1 of a: read\na woken by cron (no thread): 3 1\na ran 0 blocked 3 queue 1\n");
}

/* A wait whose stack lacks a part is held back until that is found, or until the end. */
static void held_back(void **state)
{
	struct fixture f = begin();
	uint32_t cut = stack_of(f.p, FRAME_TRUNCATED, "no copy");
	uint32_t stack = profile_stack(f.p, cut, f.p->stacks.v[f.irq].frame), found;

	for (int i = 0; i < 2; i++) {
		schedwaits_left(&f.w, 1 + i, i ? f.b : f.a, stack, SCHEDWAITS_BLOCKED, 0);
		schedwaits_hold(&f.w, 1 + i, 77 + i);
		schedwaits_came(&f.w, 1 + i, i ? f.b : f.a, 5 * ms);
	}
	assert_int_equal(f.p->samples.n, 0);
	assert_int_equal(f.p->threads.v[f.a].blocked_ns, 5 * ms);
	schedwaits_found(&f.w, 99, f.read);
	assert_int_equal(f.p->samples.n, 0);
	schedwaits_found(&f.w, 77, f.read);
	assert_int_equal(f.p->samples.n, 1);
	found = f.p->samples.v[0].stack;
	assert_int_equal(f.p->stacks.v[found].parent, f.read);
	assert_int_equal(f.p->stacks.v[found].frame, f.p->stacks.v[f.irq].frame);
	schedwaits_end(&f.w, 20 * ms);
	assert_int_equal(f.p->samples.n, 2);
	assert_int_equal(f.p->samples.v[1].stack, stack);
	assert_int_equal(f.p->threads.v[f.a].blocked_ns, 5 * ms);
	schedwaits_done(&f.w);
	profile_free(f.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),         cmocka_unit_test(blocked_woken_and_back),
		cmocka_unit_test(it_left_twice), cmocka_unit_test(nobody_says_that_it_was_woken),
		cmocka_unit_test(who_wakes),     cmocka_unit_test(events),
		cmocka_unit_test(more_than_can_be_counted), cmocka_unit_test(looks_before_the_end),
		cmocka_unit_test(stack_and_name_come_later),
		cmocka_unit_test(held_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
