/* The figures of a heap: sums, errors, growth, own functions, the verdict; hostile names; nothing recorded.
 */
#include "test.h"

#include <math.h>
#include <string.h>

#include "analyze/memory/heap.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/section/section.h"
#include "profile/profile.h"
#include "builder.h"
#include "jsonmembers.h"

#define SECOND   1000000000ULL
#define INTERVAL (64 << 10)

enum { HEAP, ALLOC, FREED, TEMPORARY, PEAK };

struct maker {
	struct profile *p;
	uint32_t thread;
	struct builder_modules modules;
};

static struct maker begin(uint64_t interval)
{
	static const char *const events[] = { "heap", "alloc", "freed", "temporary", "peak" };
	struct maker m = { .p = profile_new() };
	struct profile *p = m.p;
	uint32_t process;

	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		profile_add_event(p, events[i], "bytes", "", 0);
	m.modules.program = builder_module(p, "/opt/node", MODULE_FILE);
	m.modules.libc = builder_module(p, "/usr/lib/libc.so.6", MODULE_FILE);
	process = profile_add_process(p, &(struct profile_process){ .pid = 7,
								    .name = profile_string(p, "node"),
								    .exe = profile_string(p, "/opt/node") });
	m.thread = builder_thread(p, process, 7, "main");
	p->target = profile_string(p, "node");
	p->duration_ns = 30 * SECOND;
	p->finished = true;
	profile_count_set(p, "heap.interval bytes", interval);
	return m;
}

/* main -> function -> strdup of the C library */
static uint32_t stack_of(struct maker *m, const char *function)
{
	return builder_stack(m->p, &m->modules, 0, "main;%s;l:__GI___strdup", function);
}

static void sample(struct maker *m, uint32_t event, const char *function, uint64_t time_ns, uint64_t bytes,
		   uint32_t count)
{
	profile_add_sample(m->p, &(struct profile_sample){ .event = event,
							   .time_ns = time_ns,
							   .thread = m->thread,
							   .stack = stack_of(m, function),
							   .value = bytes,
							   .count = count });
}

static void live(struct maker *m, const char *function, uint64_t time_ns, uint64_t bytes, uint32_t count)
{
	sample(m, ALLOC, function, time_ns, bytes, count);
	sample(m, HEAP, function, time_ns, bytes, count);
}

/* One that leaks a MB a second, one that holds 40 MB from the beginning on. */
static struct profile *make_leak(void)
{
	struct maker m = begin(INTERVAL);

	for (int i = 0; i < 30; i++)
		live(&m, "leaks", i * SECOND, 1 << 20, 1);
	for (int i = 0; i < 40; i++)
		live(&m, "holds", SECOND / 2, 1 << 20, 1);
	for (int i = 0; i < 10; i++) {
		sample(&m, ALLOC, "passes", i * SECOND, INTERVAL, 1024);
		sample(&m, FREED, "passes", i * SECOND + 1000, INTERVAL, 1024);
	}
	sample(&m, PEAK, "leaks", 29 * SECOND, 30 << 20, 30);
	sample(&m, PEAK, "holds", 29 * SECOND, 40 << 20, 40);
	profile_count_set(m.p, "heap.allocated bytes", 74000000);
	profile_count_set(m.p, "heap.allocations", 10000);
	profile_count_set(m.p, "heap.peak samples", 70);
	profile_add_histogram(m.p, "heap.lifetime", "ns")->counts[10] = 10240;
	return m.p;
}

static const struct heap_function *find(const struct heap_figures *f, const char *name)
{
	for (size_t i = 0; i < f->functions.n; i++)
		if (!strcmp(f->functions.v[i].name, name))
			return &f->functions.v[i];
	return NULL;
}

/* Chance and weight belong together, over ten orders of magnitude. */
static void chances(void **state)
{
	for (double size = 1; size < 1e9; size *= 1.7) {
		double chance = -expm1(-size / INTERVAL);

		if (size > 500) /* below, a byte of rounding is all that there is */
			assert_true(fabs(heap_chance(llrint(size / chance), INTERVAL) / chance - 1) < 0.02);
		else
			assert_true(heap_chance(llrint(size / chance), INTERVAL) < 0.01);
	}
	assert_true(heap_chance(100, 1) == 1);
	assert_true(heap_chance(0, INTERVAL) == 0);
	assert_true(heap_chance(UINT64_MAX, INTERVAL) <= 1);
}

static void leak(void **state)
{
	struct profile *p = make_leak();
	struct heap_figures f;
	const struct heap_function *g;

	assert_true(heap_measure(&f, p, &(struct select_options){ 0 }, NULL));
	assert_int_equal(f.live.bytes, 70 << 20);
	assert_int_equal(f.live.samples, 70);
	assert_int_equal(f.allocated.objects, 70 + 10240);
	assert_int_equal(f.freed.bytes, 10 * INTERVAL);
	assert_int_equal(f.peak.bytes, 70 << 20);
	assert_int_equal(f.peak_ns, 29 * SECOND);
	/* Of ten samples with a chance of nothing, each is its own error. */
	assert_true(fabs(heap_error(&f.freed) - sqrt(10) * INTERVAL) < 1000);
	assert_true(heap_error(&f.live) < 10000); /* a MB is certain to be seen */
	assert_in_range(f.lifetime_ns[0], 1024, 2048);
	g = find(&f, "leaks");
	assert_non_null(g);
	assert_int_equal(g->thirds[0], 10 << 20);
	assert_int_equal(g->thirds[1], 20 << 20);
	assert_int_equal(g->thirds[2], 30 << 20);
	assert_true(g->grows);
	assert_true(fabs(g->age_ns / 1e9 - 15.5) < 0.01);
	g = find(&f, "holds");
	assert_false(g->grows);
	assert_null(find(&f, "__GI___strdup"));
	assert_true(f.symptoms[HEAP_LEAK]);
	assert_false(f.symptoms[HEAP_CHURN]);
	assert_non_null(strstr(f.verdict.v[0], "`leaks` allocates grew from 10.0 MB"));
	heap_done(&f);
	/* The first ten seconds alone: sums of that time only. */
	assert_true(heap_measure(&f, p, &(struct select_options){ .to_ns = 10 * SECOND }, NULL));
	assert_int_equal(find(&f, "leaks")->live.bytes, 10 << 20);
	assert_true(f.filtered);
	heap_done(&f);
	profile_free(p);
}

static bool says(const struct heap_figures *f, const char *words)
{
	for (size_t i = 0; i < f->verdict.n; i++)
		if (strstr(f->verdict.v[i], words))
			return true;
	return false;
}

static struct heap_figures measure(struct profile *p)
{
	struct heap_figures f;

	assert_true(heap_measure(&f, p, &(struct select_options){ 0 }, NULL));
	return f;
}

/* A heap that grew by much and then stayed is no leak, but worth a sentence; advice is apart from the command line. */
static void rise(void **state)
{
	struct maker m = begin(INTERVAL);
	struct heap_figures f;

	for (int i = 0; i < 20; i++)
		live(&m, "loads", SECOND, 1 << 20, 1);
	m.p->threads.v[m.thread].cpu_ns = SECOND;
	assert_true(heap_measure(&f, m.p, &(struct select_options){ 0 }, NULL));
	assert_false(f.symptoms[HEAP_LEAK]);
	assert_true(f.rose);
	assert_non_null(strstr(f.verdict.v[0], "The heap grew by 20.0 MB, 0 B of it after the first third"));
	assert_int_equal(f.verdict.v[0][f.links.v[0].finding], ' ');
	assert_non_null(strstr(f.verdict.v[0] + f.links.v[0].finding, "It has levelled off"));
	assert_int_equal(f.links.v[0].said, strlen(f.verdict.v[0]));
	assert_string_equal(f.links.v[0].function, "loads");
	assert_false(says(&f, "Nothing of the heap"));
	heap_done(&f);
	profile_free(m.p);
}

/* A program's own wrapper of malloc holds nothing: who calls it does. */
static void wrappers_are_plumbing(void **state)
{
	static const char *const stacks[] = { "main;handles;zmalloc_usable;zmalloc;l:malloc", "main;handles;operator new(unsigned long);l:malloc" };
	struct maker m = begin(INTERVAL);
	struct heap_figures f;

	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		profile_add_sample(m.p, &(struct profile_sample){ .event = HEAP, .thread = m.thread, .value = 1 << 20, .count = 1,
								  .stack = builder_stack(m.p, &m.modules, 0, "%s", stacks[i]) });
	f = measure(m.p);
	assert_int_equal(f.functions.n, 1);
	assert_string_equal(f.functions.v[0].name, "handles");
	heap_done(&f);
	profile_free(m.p);
}

static void churn_and_peak(void **state)
{
	struct maker m = begin(0);
	struct heap_figures f;

	for (int i = 0; i < 30; i++) {
		sample(&m, ALLOC, "churns", i * SECOND, 600 << 20, 600);
		sample(&m, FREED, "churns", i * SECOND + 10, 600 << 20, 600);
		sample(&m, TEMPORARY, "churns", i * SECOND + 10, 600 << 20, 600);
	}
	live(&m, "main_loop", 1, 1 << 20, 1);
	sample(&m, PEAK, "churns", 3 * SECOND, 600 << 20, 600);
	m.p->processes.v[0].end_ns = 30 * SECOND;
	assert_true(heap_measure(&f, m.p, &(struct select_options){ 0 }, NULL));
	assert_true(f.exact);
	assert_true(heap_error(&f.allocated) == 0);
	assert_true(f.symptoms[HEAP_CHURN]);
	assert_true(f.symptoms[HEAP_BLOAT]);
	assert_false(f.symptoms[HEAP_LEAK]);
	assert_true(f.ended);
	assert_non_null(strstr(f.verdict.v[0], "1.00 MB in 1 object was not freed"));
	assert_non_null(strstr(f.verdict.v[1], "--what temporary"));
	assert_non_null(strstr(f.verdict.v[2], "--what peak"));
	heap_done(&f);
	profile_free(m.p);
}

/* RSS that grows without the heap. */
static void fragmentation(void **state)
{
	struct maker m = begin(INTERVAL);
	uint32_t rss = profile_add_series(m.p, "mem.rss", "bytes"),
		 heap = profile_add_series(m.p, "heap.live", "bytes");
	struct heap_figures f;

	live(&m, "holds", 0, 1 << 20, 1);
	for (int i = 0; i < 30; i++) {
		profile_add_point(m.p, rss, i * SECOND, (100LL + 10 * i) << 20);
		profile_add_point(m.p, heap, i * SECOND, 50LL << 20);
	}
	assert_true(heap_measure(&f, m.p, &(struct select_options){ 0 }, NULL));
	assert_true(f.symptoms[HEAP_FRAGMENTATION]);
	heap_done(&f);
	profile_free(m.p);
}

/* Slabs that are used little, and pages that are not given back, as jemalloc says. */
static void fragmentation_of_slabs(void **state)
{
	static const char *const totals[] = { "jemalloc.resident", "jemalloc.active", "jemalloc.metadata" };
	static const int64_t bytes[] = { 200LL << 20, 60LL << 20, 10LL << 20 };
	struct maker m = begin(INTERVAL);
	struct heap_figures f;

	live(&m, "holds", 0, 1 << 20, 1);
	profile_count_set(m.p, "jemalloc.class.320.objects", 10000);
	profile_count_set(m.p, "jemalloc.class.320.slabs", 2000);
	profile_count_set(m.p, "jemalloc.class.320.held", 2000 * 20480);
	f = measure(m.p);
	assert_true(f.symptoms[HEAP_FRAGMENTATION]);
	assert_true(says(&f, "of class 320, of whose slabs 8 % are used"));
	assert_false(says(&f, "not given back"));
	heap_done(&f);
	for (int i = 0; i < 3; i++)
		profile_add_point(m.p, profile_add_series(m.p, totals[i], "bytes"), SECOND, bytes[i]);
	f = measure(m.p);
	assert_true(says(&f, "keeps 130 MB of free pages"));
	heap_done(&f);
	profile_free(m.p);
}

/* A peak of a few samples is nothing to rely on. */
static void noise_is_no_bloat(void **state)
{
	struct maker m = begin(512 << 10);
	struct heap_figures f;

	sample(&m, ALLOC, "works", 0, 2 << 20, 1500);
	sample(&m, FREED, "works", 5, 2 << 20, 1500);
	sample(&m, PEAK, "works", 1, 2 << 20, 1500);
	profile_count_set(m.p, "heap.peak samples", 4);
	profile_count_set(m.p, "heap.peak error bytes", 1 << 20);
	f = measure(m.p);
	assert_false(f.symptoms[HEAP_BLOAT]);
	heap_done(&f);
	profile_count_set(m.p, "heap.peak error bytes", 1 << 18);
	f = measure(m.p);
	assert_true(f.symptoms[HEAP_BLOAT]);
	heap_done(&f);
	profile_free(m.p);
}

/* The rest of the guides' tables: slow allocations, out of memory, CPU against memory. */
static void other_symptoms(void **state)
{
	struct maker m = begin(INTERVAL);
	struct profile *p = m.p;
	uint32_t cpu = profile_add_event(p, "cpu", "ns", "", 0), own = stack_of(&m, "works");
	uint32_t inside = builder_stack(p, &m.modules, own, "l:_int_malloc");
	uint32_t kills = profile_add_series(p, "cgroup.memory.oom kills", "count"),
		 usage = profile_add_series(p, "cgroup.memory.usage", "bytes"),
		 limit = profile_add_series(p, "cgroup.memory.limit", "bytes");
	struct heap_figures f;

	live(&m, "works", 0, 1 << 20, 1);
	profile_count_set(p, "target.cpu_ns", 3 * SECOND);
	f = measure(p);
	assert_true(says(&f, "CPU time is low (10 % of a CPU): if it is slow, it waits. Look at -e wait."));
	assert_int_equal(f.verdict.n, 1);
	heap_done(&f);
	for (int i = 0; i < 1000; i++)
		profile_add_sample(p, &(struct profile_sample){ .event = cpu, .thread = m.thread, .value = 1000000,
								.stack = i % 4 ? own : inside });
	for (int i = 0; i < 2; i++) {
		profile_add_point(p, kills, i, 3);
		profile_add_point(p, limit, i, 100 << 20);
		profile_add_point(p, usage, i, 95 << 20);
	}
	f = measure(p);
	assert_true(says(&f, "25 % of the CPU time is spent in the allocator"));
	assert_true(says(&f, "the cgroup uses 95.0 MB of its limit of 100 MB"));
	assert_true(says(&f, "CPU time is low (10 % of a CPU): memory is what to look at"));
	heap_done(&f);
	profile_count_set(p, "target.cpu_ns", 27 * SECOND);
	profile_add_point(p, kills, 9, 4);
	f = measure(p);
	assert_true(says(&f, "killed 1 process of the cgroup"));
	assert_true(says(&f, "CPU time is high, too (90 % of a CPU)"));
	heap_done(&f);
	profile_free(p);
}

static void write_both(struct profile *p, struct buf *text, struct buf *json, struct buf *line)
{
	struct selection s;
	struct quality q;
	struct export_job job = { .profile = p, .selection = &s, .quality = &q };

	assert_int_equal(selection_make(p, &(struct select_options){ .event = 0 }, &s, NULL), 0);
	quality_measure(&q, p, &s);
	quality_line(&q, &s, line);
	section_heap.text(&job, text);
	put_members(json, section_heap.json(&job, &j));
	quality_done(&q);
	selection_done(&s);
}

/* The error of a sum of two recordings; words instead where it is not known; nothing of growth, for their times are not
 * each other's. */
static void merged_recordings(void **state)
{
	struct profile *one = make_leak(), *two = make_leak(), *all = profile_new();
	struct buf text = { 0 }, json = { 0 }, line = { 0 };
	struct heap_figures f, of_one;

	profile_count_set(one, "heap.peak error bytes", 3000);
	profile_count_set(two, "heap.peak error bytes", 4000);
	profile_count_set(one, "heap.from start", 1);
	profile_count_set(two, "heap.from start", 0);
	assert_int_equal(profile_merge(all, one, NULL), 0);
	assert_int_equal(profile_merge(all, two, NULL), 0);
	of_one = measure(one);
	f = measure(all);
	assert_int_equal(f.recordings, 2);
	assert_int_equal(f.interval, INTERVAL);
	assert_int_equal(f.freed.bytes, 2 * of_one.freed.bytes);
	assert_true(fabs(heap_error(&f.freed) / heap_error(&of_one.freed) - sqrt(2)) < 1e-6);
	assert_true(fabs(heap_error(&f.peak) - 5000) < 1);
	assert_int_equal(profile_counter(all, "heap.from start"), 0);
	assert_false(f.symptoms[HEAP_LEAK]);
	assert_false(find(&f, "leaks")->grows);
	heap_done(&f);
	heap_done(&of_one);
	profile_count_set(two, "heap.interval bytes", 1);
	assert_int_equal(profile_merge(all, two, NULL), 0);
	f = measure(all);
	assert_int_equal(f.recordings, 3);
	assert_true(f.no_error);
	assert_false(f.exact);
	heap_done(&f);
	write_both(all, &text, &json, &line);
	assert_non_null(strstr(text.data, "Sums of 3 recordings"));
	assert_non_null(strstr(text.data, "different distances"));
	assert_null(strstr(text.data, "±"));
	assert_non_null(strstr(json.data, "\"error_bytes\":null"));
	buf_done(&text);
	buf_done(&json);
	buf_done(&line);
	profile_free(one);
	profile_free(two);
	profile_free(all);
}

static void texts(void **state)
{
	struct profile *p = make_leak();
	struct buf text = { 0 }, json = { 0 }, line = { 0 };

	write_both(p, &text, &json, &line);
	assert_non_null(strstr(text.data, "Growing to the end"));
	assert_non_null(strstr(text.data, "  10.0 MB   20.0 MB   30.0 MB"));
	assert_non_null(strstr(text.data, "Sampled every 64.0 KB"));
	assert_non_null(strstr(json.data, "\"symptoms\":[\"leak\"]"));
	assert_non_null(strstr(json.data, "\"thirds\":[10485760,20971520,31457280]"));
	assert_true(str_starts(line.data, "70 objects, 100 % complete"));
	buf_done(&text);
	buf_done(&json);
	buf_done(&line);
	profile_free(p);
}

/* Samples are counted, not what they stand for. */
static void few_samples(void **state)
{
	struct maker m = begin(512 << 10);
	struct buf text = { 0 }, json = { 0 }, line = { 0 };

	for (int i = 0; i < 41; i++)
		live(&m, "bad\n\033[31m<name>&\"\xff", i, 512 << 10, 3488);
	write_both(m.p, &text, &json, &line);
	assert_true(str_starts(line.data, "41 samples for 143,008 objects"));
	assert_null(strchr(text.data, '\033'));
	assert_null(strstr(json.data, "\xff"));
	assert_null(strchr(strstr(json.data, "bad"), '\033'));
	buf_done(&text);
	buf_done(&json);
	buf_done(&line);
	profile_free(m.p);
}

static void nothing(void **state)
{
	struct maker m = begin(INTERVAL);
	struct profile *empty = profile_new();
	struct heap_figures f;

	assert_false(heap_measure(&f, m.p, &(struct select_options){ 0 }, NULL));
	heap_done(&f);
	assert_false(heap_measure(&f, empty, &(struct select_options){ 0 }, NULL));
	heap_done(&f);
	profile_free(m.p);
	profile_free(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chances),       cmocka_unit_test(leak),  cmocka_unit_test(churn_and_peak), cmocka_unit_test(rise),
		cmocka_unit_test(wrappers_are_plumbing),
		cmocka_unit_test(fragmentation), cmocka_unit_test(texts), cmocka_unit_test(few_samples),
		cmocka_unit_test(nothing),
		cmocka_unit_test(fragmentation_of_slabs),
		cmocka_unit_test(noise_is_no_bloat),
		cmocka_unit_test(other_symptoms),
		cmocka_unit_test(merged_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
