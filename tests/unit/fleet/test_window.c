#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "windowed.h"

static uint64_t recorded(const struct profile *p, uint32_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		sum += p->samples.v[i].event == event ? p->samples.v[i].value : 0;
	return sum;
}

/* Nothing is lost, and nothing counts twice: by event, of samples and of totals. */
static void sums(void **state)
{
	struct windowed x;
	const struct profile *p;

	windowed_make(&x);
	p = x.w.s.p;
	assert_int_equal(x.windows.list.n, 10);
	for (uint32_t event = 0; event < p->events.n; event++) {
		uint64_t samples = 0, totals = 0;

		for (size_t i = 0; i < x.windows.list.n; i++) {
			const struct window *one = &x.windows.list.v[i];

			for (size_t k = 0; k < one->samples.n; k++)
				samples += one->samples.v[k].event == event ? one->samples.v[k].value : 0;
			totals += one->totals.v[event].value;
		}
		assert_int_equal(samples, recorded(p, event));
		assert_int_equal(totals, recorded(p, event));
	}
	assert_true(recorded(p, x.w.wait) > 0);
	windowed_done(&x);
}

static void alike_is_one(void **state)
{
	struct windowed x;
	size_t samples = 0;

	windowed_make(&x);
	for (size_t i = 0; i < x.windows.list.n; i++) {
		const struct window *one = &x.windows.list.v[i];

		samples += one->samples.n;
		for (size_t a = 0; a < one->samples.n; a++)
			for (size_t b = 0; b < a; b++) {
				const struct window_sample *s = &one->samples.v[a], *t = &one->samples.v[b];

				assert_false(s->event == t->event && s->thread == t->thread && s->stack == t->stack && s->mark == t->mark &&
					     !strcmp(s->cause, t->cause));
			}
	}
	assert_true(samples < x.w.s.p->samples.n);
	windowed_done(&x);
}

static void causes_and_blocks(void **state)
{
	struct windowed x;
	bool lock = false, inside = false, outside = false;

	windowed_make(&x);
	for (size_t i = 0; i < x.windows.list.n; i++)
		for (size_t k = 0; k < x.windows.list.v[i].samples.n; k++) {
			const struct window_sample *s = &x.windows.list.v[i].samples.v[k];

			lock |= !strcmp(s->cause, "lock");
			inside |= s->mark == 0;
			outside |= s->mark == PROFILE_NONE;
			/* The block is from 150 to 250 ms. */
			assert_true(s->mark == PROFILE_NONE || i == 1 || i == 2);
		}
	assert_true(lock && inside && outside);
	assert_int_equal(x.windows.list.v[1].marks.n, 1);
	assert_int_equal(x.windows.list.v[2].marks.n, 0);
	windowed_done(&x);
}

/* The times of a thread are spread over its windows, and add up. */
static void threads(void **state)
{
	struct windowed x;
	const struct profile *p;

	windowed_make(&x);
	p = x.w.s.p;
	for (uint32_t thread = 0; thread < p->threads.n; thread++) {
		uint64_t run = 0, blocked = 0;

		for (size_t i = 0; i < x.windows.list.n; i++)
			for (size_t k = 0; k < x.windows.list.v[i].threads.n; k++)
				if (x.windows.list.v[i].threads.v[k].thread == thread) {
					run += x.windows.list.v[i].threads.v[k].run_ns;
					blocked += x.windows.list.v[i].threads.v[k].blocked_ns;
				}
		assert_int_equal(run, p->threads.v[thread].run_ns);
		assert_int_equal(blocked, p->threads.v[thread].blocked_ns);
	}
	windowed_done(&x);
}

static void counters(void **state)
{
	struct windowed x;
	uint64_t lost = 0;
	unsigned limits = 0;
	struct profile *p;

	windowed_make(&x);
	p = x.w.s.p;
	profile_count(p, KEY_SAMPLES_LOST, 7);
	profile_count(p, KEY_OVERHEAD_LIMIT, 50000);
	windows_done(&x.windows);
	assert_int_equal(windows_make(&x.windows, &x.job, 100 * MS, NULL), 0);
	for (size_t i = 0; i < x.windows.list.n; i++)
		for (size_t k = 0; k < x.windows.list.v[i].counters.n; k++) {
			const struct window_count *c = &x.windows.list.v[i].counters.v[k];
			const char *name = profile_str(p, p->counters.v[c->counter].name);

			lost += !strcmp(name, KEY_SAMPLES_LOST) ? c->value : 0;
			if (!strcmp(name, KEY_OVERHEAD_LIMIT)) {
				assert_int_equal(c->value, 50000);
				limits++;
			}
		}
	assert_int_equal(lost, 7);
	assert_int_equal(limits, 10);
	windowed_done(&x);
}

/* Another recording of the same code, whose ids are others, has the same hashes. */
static void keys(void **state)
{
	struct windowed a, b;
	uint32_t stack = 0;

	windowed_make(&a);
	windowed_make(&b);
	assert_int_equal(a.windows.list.v[3].digest, b.windows.list.v[3].digest);
	for (size_t i = 1; i < a.w.s.p->stacks.n; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(a.windows.stack_hashes[i] != a.windows.stack_hashes[k]);
	profile_named_frame(b.w.s.p, PROFILE_NONE, FRAME_USER, "one more");
	stack = sample_stack(&b.w.s, "one;more;stack");
	windows_done(&b.windows);
	assert_int_equal(windows_make(&b.windows, &b.job, 100 * MS, NULL), 0);
	assert_int_equal(a.windows.stack_hashes[a.w.lock], b.windows.stack_hashes[b.w.lock]);
	assert_true(b.windows.stack_hashes[stack] != a.windows.stack_hashes[a.w.lock]);
	/* A window is its target, start and number. */
	assert_int_equal(window_id("x", 1, 2), window_id("x", 1, 2));
	assert_true(window_id("x", 1, 2) != window_id("y", 1, 2) && window_id("x", 1, 2) != window_id("x", 2, 2) &&
		    window_id("x", 1, 2) != window_id("x", 1, 3));
	/* Other content has another digest. */
	waiting_add(&b.w, b.w.wait, b.w.rpc, b.w.lock, 310 * MS, 5, 1);
	windows_done(&b.windows);
	assert_int_equal(windows_make(&b.windows, &b.job, 100 * MS, NULL), 0);
	assert_true(a.windows.list.v[3].digest != b.windows.list.v[3].digest);
	windowed_done(&a);
	windowed_done(&b);
}

static void without_a_time(void **state)
{
	struct windowed x;
	struct err err = { 0 };

	windowed_make(&x);
	windows_done(&x.windows);
	x.w.s.p->start_wall_ns = 0;
	assert_int_equal(windows_make(&x.windows, &x.job, 100 * MS, &err), -ENODATA);
	x.w.s.p->start_wall_ns = 1;
	windows_done(&x.windows);
	assert_int_equal(windows_make(&x.windows, &x.job, 1, &err), -EFBIG);
	windowed_done(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(alike_is_one),
		cmocka_unit_test(causes_and_blocks),
		cmocka_unit_test(threads),
		cmocka_unit_test(counters),
		cmocka_unit_test(keys),
		cmocka_unit_test(without_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
