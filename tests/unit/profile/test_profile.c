#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "profile/profile.h"

static void frames_and_stacks_are_interned(void **state)
{
	struct profile *p = profile_new();
	uint32_t m = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "/a") });
	uint32_t f = profile_frame(p, m, FRAME_USER, 0x1000), g = profile_frame(p, m, FRAME_USER, 0x1001);
	uint32_t s = profile_stack(p, profile_stack(p, 0, f), g);

	assert_int_not_equal(f, g);
	assert_int_equal(profile_frame(p, m, FRAME_USER, 0x1000), f);
	assert_int_not_equal(profile_frame(p, m, FRAME_KERNEL, 0x1000), f);
	assert_int_equal(profile_stack(p, profile_stack(p, 0, f), g), s);
	assert_int_not_equal(profile_stack(p, 0, g), s);
	profile_free(p);
}

static void a_marker_says_why_a_stack_was_cut(void **state)
{
	struct profile *p = profile_new();
	uint32_t reason = 0, cut = profile_stack(p, 0, profile_truncation_frame(p, "no table"));
	uint32_t f = profile_named_frame(p, PROFILE_NONE, FRAME_USER, "main");

	assert_true(profile_stack_truncated(p, profile_stack(p, cut, f), &reason));
	assert_string_equal(profile_str(p, reason), "no table");
	assert_false(profile_stack_truncated(p, profile_stack(p, 0, f), NULL));
	assert_false(profile_stack_truncated(p, 0, NULL));
	profile_free(p);
}

static void counters_add_up(void **state)
{
	struct profile *p = profile_new();

	profile_count(p, "lost", 2);
	profile_count(p, "lost", 3);
	profile_count_set(p, "cpu", 7);
	assert_int_equal(profile_counter(p, "lost"), 5);
	assert_int_equal(profile_counter(p, "cpu"), 7);
	assert_int_equal(profile_counter(p, "none"), 0);
	profile_free(p);
}

/* Two wakes, of threads and of tasks, two marks, two series, two histograms; the second of each is of this part only. */
static void add_rest(struct profile *p, const char *name, uint32_t padding)
{
	uint32_t note = profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "/data/file"), series;

	profile_add_wake(p, &(struct profile_wake){ .time_ns = 7, .blocked_ns = 8, .queue_ns = 9, .thread = 1,
						    .stack = profile_stack(p, 0, note), .waker = 1,
						    .waker_name = profile_string(p, "main"),
						    .waker_stack = p->samples.v[0].stack });
	profile_add_wake(p, &(struct profile_wake){ .waker = PROFILE_NONE, .waker_name = profile_string(p, name) });
	profile_add_taskwake(p, &(struct profile_taskwake){ .time_ns = 70, .await_ns = 60, .queue_ns = 5, .thread = 1, .task = 2,
							    .type = profile_string(p, name), .waker = 1, .waker_task = 3,
							    .waker_type = profile_string(p, "main"),
							    .waker_stack = p->samples.v[0].stack });
	profile_add_taskwake(p, &(struct profile_taskwake){ .task = 1, .waker = PROFILE_NONE });
	profile_add_mark(p, &(struct profile_mark){ .start_ns = 4, .end_ns = 6, .thread = 1,
						    .name = profile_string(p, name),
						    .kind = profile_string(p, "block") });
	profile_add_mark(p, &(struct profile_mark){ .start_ns = 9, .end_ns = 9, .thread = PROFILE_NONE });
	for (uint32_t i = 0; i < padding; i++)
		profile_add_series(p, name, "padding");
	series = profile_add_series(p, "memory", "bytes");
	profile_add_point(p, series, 1, 10);
	profile_add_point(p, series, 2, -20);
	profile_add_point(p, profile_add_series(p, name, "bytes"), 3, padding);
	profile_add_histogram(p, name, "ns")->counts[2] = 1;
	profile_add_histogram(p, "latency", "ns")->counts[5] = 6;
	profile_add_histogram(p, "latency", "ns")->counts[63] = 7;
}

/* One process with one thread and two stacks: main -> name, and a cut one; other ids each time. */
static struct profile *make_part(const char *name, uint32_t padding)
{
	struct profile *p = profile_new();
	struct profile_line line;
	uint32_t module, root, frame;

	for (uint32_t i = 0; i < padding; i++) {
		profile_string(p, "padding");
		profile_named_frame(p, PROFILE_NONE, FRAME_USER, "padding");
	}
	p->target = profile_string(p, name);
	p->start_wall_ns = 1000 + padding;
	p->duration_ns = 10;
	p->finished = true;
	profile_add_event(p, "cpu", "ns", "CPU time", 5);
	profile_add_process(p, &(struct profile_process){ .pid = 7, .exe = profile_string(p, "/bin/node") });
	profile_add_thread(p, &(struct profile_thread){ .tid = 7, .name = profile_string(p, "main"), .cpu_ns = 4,
						       .run_ns = 3, .queue_ns = 20, .blocked_ns = 100 });
	profile_add_thread(p, &(struct profile_thread){ .tid = 8, .name = profile_string(p, name) });
	module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "/bin/node"),
								 .process = PROFILE_NONE, .build_id = { 1 },
								 .build_id_size = 1 });
	profile_add_mapping(p, &(struct profile_mapping){ .module = module, .start = 1, .end = 2 });
	line = (struct profile_line){ .function = profile_function(p, &(struct profile_function){
					      .name = profile_string(p, "main"), .module = module }) };
	root = profile_frame(p, module, FRAME_USER, 0x10);
	profile_set_lines(p, root, &line, 1);
	frame = profile_named_frame(p, PROFILE_NONE, FRAME_USER, name);
	profile_add_sample(p, &(struct profile_sample){
				      .value = 5, .stack = profile_stack(p, profile_stack(p, 0, root), frame) });
	profile_add_sample(p, &(struct profile_sample){
				      .value = 6, .thread = 1,
				      .stack = profile_stack(p, 0, profile_truncation_frame(p, "no table")) });
	profile_count(p, "lost", 2);
	add_rest(p, name, padding);
	return p;
}

static void recordings_of_one_target_are_joined(void **state)
{
	struct profile *p = profile_new(), *a = make_part("one", 0), *b = make_part("two", 3);

	assert_int_equal(profile_merge(p, b, NULL), 0);
	assert_int_equal(profile_merge(p, a, NULL), 0);
	assert_int_equal(p->events.n, 1);
	assert_int_equal(p->events.v[0].period, 5);
	assert_int_equal(p->processes.n, 1);
	assert_int_equal(p->threads.n, 3); /* main, and one of each: the name tells them apart */
	assert_int_equal(p->threads.v[0].cpu_ns, 8);
	assert_int_equal(p->modules.n, 1);
	assert_int_equal(p->mappings.n, 1);
	assert_int_equal(p->samples.n, 4);
	assert_int_equal(p->samples.v[0].thread, p->samples.v[2].thread);
	assert_int_equal(p->samples.v[1].stack, p->samples.v[3].stack);
	assert_int_not_equal(p->samples.v[0].stack, p->samples.v[2].stack);
	assert_int_equal(p->stacks.v[p->samples.v[0].stack].parent, p->stacks.v[p->samples.v[2].stack].parent);
	assert_true(profile_stack_truncated(p, p->samples.v[3].stack, NULL));
	assert_int_equal(profile_counter(p, "lost"), 4);
	assert_int_equal(p->duration_ns, 20);
	assert_int_equal(p->start_wall_ns, 1000);
	assert_true(p->finished);
	assert_string_equal(profile_str(p, p->target), "two");
	profile_free(p);
	profile_free(a);
	profile_free(b);
}

/* Tasks of two recordings are not the same ones: their numbers differ. */
static void wakes_of_tasks_are_joined(void **state)
{
	struct profile *p = profile_new(), *a = make_part("one", 0), *b = make_part("two", 3);
	const struct profile_taskwake *w;

	assert_int_equal(profile_merge(p, b, NULL), 0);
	assert_int_equal(profile_merge(p, a, NULL), 0);
	assert_int_equal(p->taskwakes.n, 4);
	assert_int_equal(p->taskwakes.v[0].task, 2);
	w = &p->taskwakes.v[2];
	assert_int_equal(w->time_ns, 70);
	assert_int_equal(w->await_ns, 60);
	assert_int_equal(w->queue_ns, 5);
	assert_string_equal(profile_str(p, w->type), "one");
	assert_int_equal(w->task, 5);
	assert_int_equal(w->waker_task, 6);
	assert_int_equal(w->thread, p->samples.v[3].thread);
	assert_int_equal(w->waker, p->samples.v[3].thread);
	assert_string_equal(profile_str(p, w->waker_type), "main");
	assert_int_equal(w->waker_stack, p->samples.v[2].stack);
	assert_int_equal(p->taskwakes.v[3].task, 4);
	assert_int_equal(p->taskwakes.v[3].waker_task, 0);
	assert_int_equal(p->taskwakes.v[3].waker, PROFILE_NONE);
	profile_free(p);
	profile_free(a);
	profile_free(b);
}

static void waits_and_values_are_joined(void **state)
{
	struct profile *p = profile_new(), *a = make_part("one", 0), *b = make_part("two", 3);
	const struct profile_wake *w;
	size_t memory = 0;
	int64_t sum = 0;

	a->samples.v[0].count = 17;
	assert_int_equal(profile_merge(p, b, NULL), 0);
	assert_int_equal(profile_merge(p, a, NULL), 0);
	assert_int_equal(p->threads.v[0].run_ns, 6);
	assert_int_equal(p->threads.v[0].queue_ns, 40);
	assert_int_equal(p->threads.v[0].blocked_ns, 200);
	assert_int_equal(p->samples.v[2].count, 17);
	assert_int_equal(p->wakes.n, 4);
	w = &p->wakes.v[2];
	assert_int_equal(w->time_ns, 7);
	assert_int_equal(w->blocked_ns, 8);
	assert_int_equal(w->queue_ns, 9);
	assert_int_equal(w->thread, p->samples.v[3].thread);
	assert_int_equal(w->waker, p->samples.v[3].thread);
	assert_int_not_equal(w->waker, 1); /* which is another thread here */
	assert_int_equal(w->stack, p->wakes.v[0].stack);
	assert_int_equal(p->frames.v[p->stacks.v[w->stack].frame].kind, FRAME_NOTE);
	assert_int_equal(w->waker_stack, p->samples.v[2].stack);
	assert_string_equal(profile_str(p, w->waker_name), "main");
	assert_int_equal(p->wakes.v[3].waker, PROFILE_NONE);
	assert_string_equal(profile_str(p, p->wakes.v[3].waker_name), "one");
	assert_int_equal(p->marks.n, 4);
	assert_int_equal(p->marks.v[2].start_ns, 4);
	assert_int_equal(p->marks.v[2].end_ns, 6);
	assert_int_equal(p->marks.v[2].thread, p->samples.v[3].thread);
	assert_string_equal(profile_str(p, p->marks.v[2].name), "one");
	assert_string_equal(profile_str(p, p->marks.v[2].kind), "block");
	assert_int_equal(p->marks.v[3].thread, PROFILE_NONE);
	/* "two" in bytes, "two" in padding (three of one name are one), "one", and memory for both */
	assert_int_equal(p->series.n, 4);
	assert_int_equal(p->points.n, 6);
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_series *s = &p->series.v[p->points.v[i].series];

		assert_string_equal(profile_str(p, s->unit), "bytes");
		memory += !strcmp(profile_str(p, s->name), "memory");
		sum += p->points.v[i].value;
	}
	assert_int_equal(memory, 4);
	assert_int_equal(sum, 10 - 20 + 3 + 10 - 20 + 0);
	assert_int_equal(p->histograms.n, 3);
	assert_int_equal(profile_add_histogram(p, "latency", "ns")->counts[5], 12);
	assert_int_equal(profile_add_histogram(p, "latency", "ns")->counts[63], 14);
	assert_int_equal(profile_add_histogram(p, "one", "ns")->counts[2], 1);
	profile_free(p);
	profile_free(a);
	profile_free(b);
}

static void what_differs_stays_apart(void **state)
{
	struct profile *p = make_part("x", 0), *other = make_part("x", 1);

	other->processes.v[0].exe = profile_string(other, "/bin/other");
	other->modules.v[0].build_id[0] = 9;
	other->events.v[0].period = 6;
	other->finished = false;
	assert_int_equal(profile_merge(p, other, NULL), 0);
	assert_int_equal(p->processes.n, 2);
	assert_int_equal(p->threads.n, 4);
	assert_int_equal(p->modules.n, 2);
	assert_int_equal(p->mappings.n, 2);
	assert_int_equal(p->events.v[0].period, 0);
	assert_int_equal(p->samples.v[2].value, 5);
	assert_false(p->finished);
	profile_free(p);
	profile_free(other);
}

static void units_that_differ_are_refused(void **state)
{
	struct profile *p = make_part("x", 0), *other = make_part("y", 1);
	size_t strings = p->strings.n;
	struct err err = { 0 };

	other->events.v[0].unit = profile_string(other, "bytes");
	assert_int_equal(profile_merge(p, other, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bytes"));
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->strings.n, strings);
	/* Neither can histograms of different units be added. */
	other->events.v[0].unit = profile_string(other, "ns");
	profile_add_histogram(other, "latency", "")->unit = profile_string(other, "bytes");
	assert_int_equal(profile_merge(p, other, &err), -EINVAL);
	assert_non_null(strstr(err.text, "latency"));
	assert_int_equal(p->strings.n, strings);
	assert_int_equal(p->wakes.n, 2);
	profile_free(p);
	profile_free(other);
}

/* Rates, limits and peaks are no sums: profile/keys.def says what they are. */
static void counters_merge_by_the_rule_of_their_key(void **state)
{
	static const struct {
		const char *name;
		uint64_t first, second, merged;
	} cases[] = {
		{ "samples.lost", 3, 4, 7 },
		{ "sample.hz", 99, 50, 50 },
		{ "hw.share.cycles", 500000, 1000000, 500000 },
		{ "cgroup.path: /a", 2, 2, 2 },
		{ "limit.peak bytes", 10, 30, 30 },
		{ "heap.interval bytes", 1024, 4096, 4096 },
		{ "heap.peak error bytes", 3, 4, 5 },
		{ "of another version", 1, 2, 3 },
	};
	struct profile *p = profile_new(), *other = profile_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		profile_count(p, cases[i].name, cases[i].first);
		profile_count(other, cases[i].name, cases[i].second);
	}
	profile_count(other, "limit.killed ns", 5); /* in one of them only */
	assert_int_equal(profile_merge(p, other, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(profile_counter(p, cases[i].name), cases[i].merged);
	assert_int_equal(profile_counter(p, "limit.killed ns"), 5);
	assert_int_equal(profile_counter(p, "heap.interval differs"), 1);
	profile_free(p);
	profile_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_and_stacks_are_interned),
		cmocka_unit_test(a_marker_says_why_a_stack_was_cut),
		cmocka_unit_test(counters_add_up),
		cmocka_unit_test(recordings_of_one_target_are_joined),
		cmocka_unit_test(waits_and_values_are_joined),
		cmocka_unit_test(wakes_of_tasks_are_joined),
		cmocka_unit_test(what_differs_stays_apart),
		cmocka_unit_test(units_that_differ_are_refused),
		cmocka_unit_test(counters_merge_by_the_rule_of_their_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
