/* The list of collectors, and which of them a session has. */
#include "collect/collector.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "collect/choose.h"
#include "test.h"

static const char *const list[] = {
#define NAME(name) #name,
	COLLECTORS(NAME)
#undef NAME
};

static void table(void **state)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		assert_string_equal(collector_table[i]->name, list[i]);
		assert_true(collector_table[i]->describe && collector_table[i]->start && collector_table[i]->stop);
		assert_int_equal(RECORD_OWNER(RECORD_OF(i, 127) | RECORD_FRAMES), i + 1);
	}
	assert_int_equal(RECORD_OWNER(RECORD_STACK), 0);
	assert_int_equal(RECORD_OWNER(RECORD_EXIT), 0);
	assert_true(RECORD_CPU & RECORD_STACK & RECORD_FRAMES);
	assert_false((RECORD_WAIT | RECORD_WAITS | RECORD_THREAD_END | RECORD_IO | RECORD_FILE | RECORD_EVENT | RECORD_FAULTS |
		      RECORD_FAULT_END | RECORD_HEAP | RECORD_HEAP_STACK | RECORD_ALLOC | RECORD_HW | RECORD_SPAN | RECORD_EXIT) &
		     RECORD_FRAMES);
}

/* Those that are chosen, "cpu,wait", or the error. */
static void check_choice(const struct session_options *options, bool bpf, const char *expected)
{
	struct session s = { .options = options };
	struct err err = { 0 };
	char got[256] = "";
	int r;

	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		s.state[i] = mem_alloc(collector_table[i]->state_size);
	r = choose_collectors(&s, &err);
	if (r >= 0 && !bpf)
		r = choose_without_bpf(&s, "why", &err);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		if (s.chosen[i])
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", *got ? "," : "", list[i]);
		if (collector_table[i]->close)
			collector_table[i]->close(&s);
		free(s.state[i]);
	}
	assert_string_equal(r < 0 ? err.text : got, expected);
}

static void choosing(void **state)
{
	_cleanup_(buf_done) struct buf all = { 0 };

	check_choice(&(struct session_options){ .what = "wait,cpu" }, true, "wait,cpu");
	check_choice(&(struct session_options){ .what = "cpu,wait" }, true, "wait,cpu");
	check_choice(&(struct session_options){ .what = "cpu", .listen = true }, true, "cpu,span,marker");
	check_choice(&(struct session_options){ .what = "cpu", .function_count = 1 }, true, "cpu,span");
	check_choice(&(struct session_options){ .what = "", .listen = true }, true,
		     "say what to record with -e: cpu, for example");
	check_choice(&(struct session_options){ .what = "cpu,event" }, true,
		     "say which event: -e GROUP:NAME (gasflame events lists them)");
	buf_printf(&all, "there is no collector or event 'nap'; there are: ");
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		buf_printf(&all, "%s, ", list[i]);
	buf_printf(&all, "and events (gasflame events lists them)");
	check_choice(&(struct session_options){ .what = "nap" }, true, all.data);
	check_choice(&(struct session_options){ .what = "", .events_file = "/dev/null" }, true, "/dev/null names no event");
}

static void without_bpf(void **state)
{
	check_choice(&(struct session_options){ .what = "cpu,mem" }, false, "cpu,mem");
	check_choice(&(struct session_options){ .what = "cpu", .listen = true }, false, "cpu,marker");
	check_choice(&(struct session_options){ .what = "cpu,wait,io", .what_default = true, .listen = true }, false, "wait,cpu,marker");
	check_choice(&(struct session_options){ .what = "cpu,wait" }, false, "wait,cpu");
	check_choice(&(struct session_options){ .what = "cpu,io" }, false, "-e io needs BPF: why");
	check_choice(&(struct session_options){ .what = "cpu,span" }, false, "-e span needs BPF: why");
	check_choice(&(struct session_options){ .what = "mem" }, false, "mem");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(choosing),
		cmocka_unit_test(without_bpf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
