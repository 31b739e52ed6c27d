#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "exporting.h"

/* Of whatever was recorded. */
static struct buf summary(const struct profile *p)
{
	struct select_options o = { 0 };
	struct selection sel;
	struct buf out = { 0 };

	assert_int_equal(select_event(p, NULL, &o.event, NULL), 0);
	assert_int_equal(selection_make(p, &o, &sel, NULL), 0);
	assert_int_equal(summary_write(&(struct export_job){ .profile = p, .selection = &sel }, &out, NULL), 0);
	selection_done(&sel);
	return out;
}

static uint32_t event(struct profile *p, const char *name, const char *unit, const char *describe)
{
	return profile_add_event(p, name, unit, describe, 0);
}

static void add(struct sample *s, uint32_t event, uint64_t value, uint32_t count, uint32_t stack,
		uint64_t time_ns)
{
	profile_add_sample(s->p, &(struct profile_sample){ .event = event, .value = value, .count = count,
							   .stack = stack, .thread = s->main, .time_ns = time_ns });
}

static void has(const struct buf *b, const char *text)
{
	if (!strstr(b->data, text))
		fail_msg("no \"%s\" in:\n%s", text, b->data);
}

static void has_not(const struct buf *b, const char *text)
{
	if (strstr(b->data, text))
		fail_msg("\"%s\" in:\n%s", text, b->data);
}

/* FUTEX_WAKE is no contention, and futex_wait is not futex. */
static void locks(void **state)
{
	struct sample s = sample_empty();
	uint32_t futex = event(s.p, "syscalls:sys_enter_futex", "count", ""),
		 wait = event(s.p, "syscalls:sys_enter_futex_wait", "count", "");
	struct buf b;

	add(&s, futex, 30, 30, sample_stack(&s, "main;futex;n:FUTEX_WAKE"), 0);
	b = summary(s.p);
	has(&b, "futex calls:         30\n");
	has(&b, "of them waits:     0\n");
	has(&b, "→ Only wakes");
	buf_done(&b);
	add(&s, futex, 1, 0, sample_stack(&s, "main;futex;n:FUTEX_WAIT_BITSET"), 0);
	add(&s, futex, 1, 1, sample_stack(&s, "main;futex;n:FUTEX_LOCK_PI"), 0);
	add(&s, wait, 4, 4, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "futex calls:         32\n");
	has(&b, "futex calls:         32\n    of them waits:     2\n");
	has(&b, "wakes and other:   30\n");
	has(&b, "futex_wait calls:    4\n");
	has(&b, "→ Threads waited");
	has_not(&b, "futex returns");
	has_not(&b, "I/O Operations");
	has_not(&b, "Fast mode");
	buf_done(&b);
	profile_free(s.p);
}

static void sums_errors_and_fast_mode(void **state)
{
	struct sample s = sample_empty();
	uint32_t in = event(s.p, "syscalls:sys_exit_read/ret", "bytes", ""),
		 done = event(s.p, "block:block_rq_complete", "count", "tracepoint, counted, of the whole machine"),
		 own = event(s.p, "mine:own/depth", "count", ""),
		 sync = event(s.p, "syscalls:sys_enter_fsync", "count", "");
	struct buf b;

	add(&s, in, 4096, 3, sample_stack(&s, "main"), 0);
	add(&s, in, 100, 0, sample_stack(&s, "main"), 0);
	add(&s, done, 7, 7, sample_stack(&s, "irq"), 0);
	add(&s, own, 50, 5, sample_stack(&s, "main"), 0);
	profile_count(s.p, "event.negative.syscalls:sys_exit_read/ret", 2);
	profile_count(s.p, "event.elsewhere.syscalls:sys_exit_read/ret", 1234);
	profile_count(s.p, "event.summed.syscalls:sys_exit_read/ret", 3);
	b = summary(s.p);
	has(&b, "read syscalls:       4, 4196 bytes (4.10 KB), 2 of them errors "
		"(and 1,234 outside the target)\n");
	has(&b, "requests completed:  7 (of the whole machine)\n");
	has(&b, "Other events:\n");
	has(&b, "  mine:own/depth:      5, sum 50\n");
	/* Recorded, and did not happen. */
	has(&b, "fsync calls:         0\n");
	has_not(&b, "sync;");
	has(&b, "Fast mode: 3 of 16 events");
	buf_done(&b);
	add(&s, sync, 1, 0, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "→ The target waited for the disk");
	buf_done(&b);
	profile_free(s.p);
}

/* What the guide's script for I/O bandwidth promises: of what was transferred, over the true time. */
static void totals_of_bytes(void **state)
{
	struct sample s = sample_empty();
	uint32_t in = event(s.p, "syscalls:sys_exit_pread64/ret", "bytes", ""),
		 out = event(s.p, "syscalls:sys_exit_sendto/ret", "bytes", ""),
		 both = event(s.p, "syscalls:sys_exit_sendfile64/ret", "bytes", ""),
		 asked = event(s.p, "syscalls:sys_enter_read/count", "bytes", "");
	struct buf b = summary(s.p);

	/* Nothing happened: no division by it. */
	has(&b, "  all read:            0 bytes (0 B)");
	has_not(&b, "read / written");
	has_not(&b, "Which functions");
	buf_done(&b);
	s.p->duration_ns = 2000000000;
	add(&s, in, 6 << 20, 6, sample_stack(&s, "main"), 0);
	add(&s, out, 1 << 20, 512, sample_stack(&s, "main"), 0);
	add(&s, both, 2 << 20, 2, sample_stack(&s, "main"), 0);
	add(&s, asked, 9 << 20, 1, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "  all read:            8388608 bytes (8.00 MB), 1048576 bytes a call, "
		"4.00 MB/s over 2.00 s\n");
	has(&b, "  all written:         3145728 bytes (3.00 MB), 6120 bytes a call, 1.50 MB/s over 2.00 s\n");
	has(&b, "  read / written:      2.67\n");
	has(&b, "--what syscalls:sys_exit_pread64/ret");
	buf_done(&b);
	profile_free(s.p);
}

static void faults(void **state)
{
	struct sample s = sample_empty();
	uint32_t major = event(s.p, "major-faults", "count", ""), minor = event(s.p, "minor-faults", "count", "");
	struct buf b;

	/* The example of the guide. */
	add(&s, major, 12450, 12450, sample_stack(&s, "main"), 0);
	add(&s, minor, 89234, 89234, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "major faults:        12450\n");
	has(&b, "minor faults:        89234\n");
	has(&b, "cache hit rate:      87.8 %");
	has(&b, "read from disk:      48.6 MB");
	has_not(&b, "page faults:");
	has_not(&b, "Memory pressure");
	buf_done(&b);
	add(&s, minor, 1000000000, 1000000000, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "cache hit rate:      99.9 %");
	buf_done(&b);
	profile_free(s.p);
}

/* What the collectors have of the same has its place, too, and is not "other". */
static void collectors(void **state)
{
	struct sample s = sample_empty();
	uint32_t major = event(s.p, "major-time", "ns", ""), reclaims = event(s.p, "reclaims", "count", ""),
		 wait = event(s.p, "wait", "ns", ""), in = event(s.p, "read", "bytes", "");
	struct buf b;

	event(s.p, "major-faults", "count", "");
	b = summary(s.p);
	has(&b, "direct reclaims:     0\n");
	has_not(&b, "had to free memory");
	buf_done(&b);
	add(&s, major, 24000000, 10, sample_stack(&s, "main"), 0);
	add(&s, reclaims, 2, 2, sample_stack(&s, "main"), 0);
	add(&s, wait, 3000000000, 7, sample_stack(&s, "main"), 0);
	add(&s, in, 4096, 2, sample_stack(&s, "main"), 0);
	b = summary(s.p);
	has(&b, "time of major:       10, 24.0 ms\n");
	has(&b, "direct reclaims:     2\n");
	has(&b, "→ Threads had to free memory");
	has(&b, "waits:               7, 3.00 s\n");
	has(&b, "reads:               2, 4096 bytes (4.00 KB)\n");
	has_not(&b, "  reclaims:");
	buf_done(&b);
	profile_free(s.p);
}

/* What is selected is what is counted. */
static void selected(void **state)
{
	struct sample s = sample_empty();
	uint32_t e = event(s.p, "sched:sched_switch", "count", "");
	struct select_options late = { .event = e, .from_ns = 1500 };
	struct selection sel;
	struct export_job job = { .profile = s.p, .selection = &sel };
	struct buf b = { 0 };
	struct err err = { 0 };

	add(&s, e, 5, 5, sample_stack(&s, "main"), 1000);
	add(&s, e, 7, 7, sample_stack(&s, "main"), 2000);
	assert_int_equal(selection_make(s.p, &late, &sel, NULL), 0);
	assert_int_equal(summary_write(&job, &b, NULL), 0);
	has(&b, "Scheduler context switches:\n7\n");
	sel.options.function = "main";
	assert_int_equal(summary_write(&job, &b, &err), -EINVAL);
	has(&(struct buf){ .data = err.text }, "--function");
	selection_done(&sel);
	buf_done(&b);
	profile_free(s.p);
}

static void nothing_recorded(void **state)
{
	struct profile *p = profile_new();
	struct buf b = summary(p);

	assert_string_equal(b.data, "=== Off-CPU Event Summary ===\n");
	buf_done(&b);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks),
		cmocka_unit_test(sums_errors_and_fast_mode),
		cmocka_unit_test(totals_of_bytes),
		cmocka_unit_test(faults),
		cmocka_unit_test(collectors),
		cmocka_unit_test(selected),
		cmocka_unit_test(nothing_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
