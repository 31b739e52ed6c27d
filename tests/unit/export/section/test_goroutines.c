/* test_goroutines.c - waits of goroutines by reason and place, and what of them is no thread's. */
#include "test.h"

#include "analyze/select.h"
#include "analyze/wait/account.h"
#include "analyze/wait/goroutines.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/section/section.h"
#include "jsonmembers.h"
#include "profile/keys.h"
#include "waiting.h"

struct recorded {
	struct waiting w;
	uint32_t wait, idle, queue;  /* events */
	uint32_t receive, sleep, own; /* stacks */
	uint32_t sender, timer;      /* of wakers */
};

static uint32_t with_reason(struct sample *s, const char *stack, const char *reason)
{
	return profile_stack(s->p, sample_stack(s, "%s", stack), profile_named_frame(s->p, PROFILE_NONE, FRAME_NOTE, reason));
}

static struct recorded make(void)
{
	struct recorded r = { .w = waiting_empty() };
	struct sample *s = &r.w.s;

	r.wait = profile_add_event(s->p, "goroutine", "ns", "time goroutines were parked", 0);
	r.queue = profile_add_event(s->p, "goroutine-queue", "ns", "", 0);
	r.idle = profile_add_event(s->p, "goroutine-idle", "ns", "", 0);
	r.receive = with_reason(s, "runtime.goexit;main.serve;main.next;runtime.chanrecv1;runtime.chanrecv;runtime.gopark", "[chan receive]");
	r.sleep = with_reason(s, "runtime.goexit;main.poll;time.Sleep;runtime.gopark", "[sleep]");
	r.own = with_reason(s, "runtime.goexit;runtime.bgsweep;runtime.goparkunlock;runtime.gopark", "[GC sweep wait]");
	r.sender = sample_stack(s, "runtime.goexit;main.feed;runtime.chansend1;runtime.send;runtime.goready");
	r.timer = sample_stack(s, "runtime.mcall;runtime.schedule;runtime.runOneTimer;runtime.goroutineReady;runtime.goready");
	/* A sum of short waits, two long ones, and an idle one. */
	waiting_add(&r.w, r.wait, r.w.writer, r.receive, 0, 50 * MS, 100);
	waiting_add(&r.w, r.wait, r.w.writer, r.receive, 100 * MS, 30 * MS, 1);
	waiting_add(&r.w, r.wait, r.w.writer, r.sleep, 0, 20 * MS, 1);
	waiting_add(&r.w, r.idle, r.w.writer, r.own, 0, 900 * MS, 1);
	waiting_add(&r.w, r.queue, r.w.writer, r.receive, 130 * MS, 2 * MS, 1);
	for (int i = 0; i < 2; i++)
		profile_add_wake(s->p, &(struct profile_wake){
			.time_ns = i ? 0 : 100 * MS, .blocked_ns = i ? 20 * MS : 30 * MS, .thread = r.w.writer,
			.stack = i ? r.sleep : r.receive, .waker = r.w.rpc, .waker_stack = i ? r.timer : r.sender });
	profile_count_set(s->p, KEY_GOROUTINES_PARKS, 102);
	profile_count_set(s->p, KEY_GOROUTINES_BEFORE, 3);
	return r;
}

static void by_reason_and_place(void **state)
{
	struct recorded r = make();
	struct goroutines g;

	goroutines_make(&g, r.w.s.p, &(struct select_options){ 0 });
	assert_int_equal(g.rows.n, 3);
	assert_string_equal(g.rows.v[0].reason, "chan receive");
	assert_string_equal(g.rows.v[0].function, "main.next");
	assert_int_equal(g.rows.v[0].ns, 80 * MS);
	assert_int_equal(g.rows.v[0].count, 101);
	assert_int_equal(g.rows.v[0].longest_ns, 30 * MS);
	assert_int_equal(g.rows.v[0].wakers.n, 1);
	assert_string_equal(g.rows.v[0].wakers.v[0].function, "main.feed");
	assert_string_equal(g.rows.v[1].function, "main.poll");
	assert_string_equal(g.rows.v[1].wakers.v[0].function, "[timer]");
	/* The longest of all, and last: it had nothing to do. */
	assert_true(g.rows.v[2].idle);
	assert_int_equal(g.idle_ns, 900 * MS);
	assert_int_equal(g.ns, 100 * MS);
	assert_int_equal(g.count, 102);
	assert_int_equal(g.queue_ns, 2 * MS);
	goroutines_done(&g);

	/* Of a long wait only the part within the range. */
	goroutines_make(&g, r.w.s.p, &(struct select_options){ .from_ns = 110 * MS, .to_ns = 115 * MS });
	assert_int_equal(g.rows.n, 2);
	assert_int_equal(g.ns, 5 * MS);
	goroutines_done(&g);
	profile_free(r.w.s.p);
}

static void in_the_report(void **state)
{
	struct recorded r = make();
	struct selection sel = { 0 };
	struct export_job job = { .profile = r.w.s.p, .selection = &sel };
	struct buf b = { 0 };

	section_goroutines.text(&job, &b);
	assert_non_null(strstr(b.data, "Where goroutines wait, % of 100 ms parked (and 900 ms idle)\n"));
	assert_non_null(strstr(b.data, " 80.0 %   80.0 ms       101    792 µs   30.0 ms  chan receive           main.next\n"
				       "   ended by   100 %  main.feed\n"));
	assert_non_null(strstr(b.data, "   idle    900 ms         1    900 ms    900 ms  GC sweep wait "));
	assert_non_null(strstr(b.data, "3 waits had begun before the recording"));
	b.n = 0;
	put_members(&b, section_goroutines.json(&job, &j));
	assert_non_null(strstr(b.data, "\"goroutines\":{\"ns\":100000000,\"count\":102,\"idle_ns\":900000000,\"ready_ns\":2000000,"));
	assert_non_null(strstr(b.data, "{\"reason\":\"sleep\",\"function\":\"main.poll\","));
	buf_done(&b);
	profile_free(r.w.s.p);
}

/* The sentence about goroutines, as the verdict of a profile has it; "" = none. */
static const char *said(struct profile *p, char out[512])
{
	struct select_options o = { 0 };
	struct patterns patterns;
	struct causes causes;
	struct account a;
	struct waits w;
	struct verdict v;

	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, p, &patterns);
	o.causes = &causes;
	assert_true(account_make(&a, p, &o, &causes));
	waits_make(&w, p, &o, 10);
	/* No thread waited while a goroutine did. */
	for (size_t i = 0; i < w.sites.n; i++)
		assert_null(strstr(w.sites.v[i].function, "main."));
	verdict_make(&v, p, &a, &w, &o);
	out[0] = 0;
	for (size_t i = 0; i < v.sentences.n; i++)
		if (strstr(v.sentences.v[i], "goroutine"))
			snprintf(out, 512, "%s", v.sentences.v[i]);
	verdict_done(&v);
	waits_done(&w);
	account_done(&a);
	causes_done(&causes);
	patterns_done(&patterns);
	return out;
}

static void threads_are_no_goroutines(void **state)
{
	struct recorded r = make();
	struct waiting plain = waiting_empty(), go = waiting_empty();
	char text[512];

	assert_non_null(strstr(said(r.w.s.p, text), "`--what goroutine` shows"));
	assert_string_equal(said(plain.s.p, text), "");
	sample_stack(&go.s, "runtime.mcall;runtime.schedule");
	assert_non_null(strstr(said(go.s.p, text), "`record -e goroutine` records"));
	profile_free(r.w.s.p);
	profile_free(plain.s.p);
	profile_free(go.s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_reason_and_place),
		cmocka_unit_test(in_the_report),
		cmocka_unit_test(threads_are_no_goroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
