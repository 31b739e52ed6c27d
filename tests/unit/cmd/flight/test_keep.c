/* What is kept of a recording without an end, and the profile that is cut out of it: the account of the window is whole. */
#include "test.h"

#include "base/mem.h"
#include "builder.h"
#include "cmd/flight/cut.h"
#include "cmd/flight/keep.h"
#include "profile/keys.h"
#include "profile/profile.h"

#define S 1000000000ULL
#define MS 1000000ULL

/* A recorder: one process, two threads, a stack for each second. */
struct world {
	struct profile *p;
	struct keep k;
	struct profile *tally;
	uint32_t cpu, wait, queue, read, rss, worker, module;
	uint64_t taken;
};

static struct world *new_world(uint64_t keep_ns, uint64_t max_bytes)
{
	struct world *w = mem_alloc(sizeof(*w));
	struct profile *p = w->p = profile_new();

	p->start_wall_ns = 1000 * S;
	p->target = profile_string(p, "reth");
	w->cpu = profile_add_event(p, "cpu", "ns", "CPU time", MS);
	w->wait = profile_add_event(p, "wait", "ns", "blocked", 0);
	w->queue = profile_add_event(p, "queue", "ns", "in the queue", 0);
	w->read = profile_add_event(p, "read", "bytes", "read", 0);
	w->rss = profile_series(p, KEY_MEM_RSS);
	profile_add_process(p, &(struct profile_process){ .pid = 7, .name = profile_string(p, "reth") });
	builder_thread(p, 0, 7, "main");
	w->worker = builder_thread(p, 0, 8, "worker");
	w->module = builder_module(p, "/bin/reth", MODULE_FILE);
	profile_add_mapping(p, &(struct profile_mapping){ .module = w->module, .start = 1 << 20, .end = 2 << 20 });
	keep_init(&w->k, p, keep_ns, max_bytes);
	return w;
}

static void free_world(struct world *w)
{
	keep_done(&w->k);
	profile_free(w->p);
	free(w);
}

static uint32_t stack(struct world *w, uint64_t number)
{
	return profile_stack(w->p, 0, profile_frame(w->p, w->module, FRAME_USER, 0x1000 + number));
}

static void add(struct world *w, uint64_t time_ns, uint32_t event, uint64_t value, uint32_t count, uint32_t of)
{
	profile_add_sample(w->p, &(struct profile_sample){ .time_ns = time_ns, .value = value, .event = event, .thread = w->worker, .stack = of,
							   .count = count });
}

/* One second of work: 1,000 ticks of 1 ms less what waits take, in the thread "worker". */
static void work(struct world *w, uint64_t second, uint64_t wait_ns)
{
	struct profile_thread *t = &w->p->threads.v[w->worker];
	uint64_t start = second * S;

	for (uint64_t at = 0; at < S - wait_ns; at += 10 * MS)
		add(w, start + at, w->cpu, 10 * MS, 10, stack(w, second));
	if (wait_ns)
		add(w, start + S - wait_ns, w->wait, wait_ns, 1, stack(w, second));
	t->run_ns += S - wait_ns;
	t->blocked_ns += wait_ns;
	profile_add_point(w->p, w->rss, start, second);
}

static void look(struct world *w, uint64_t time_ns)
{
	struct profile *tally = profile_new();

	w->taken += 1000;
	profile_count(tally, KEY_SAMPLES_TAKEN, w->taken);
	profile_count_set(tally, KEY_SAMPLE_HZ, 999);
	profile_count_set(tally, KEY_WAITS_ERROR_NS, w->taken);
	profile_histogram(tally, KEY_TASK_POLL_LATENCY)->counts[3] = w->taken;
	keep_take(&w->k);
	w->p->duration_ns = time_ns;
	keep_look(&w->k, tally);
	keep_limit(&w->k);
	profile_free(tally);
}

static struct profile *cut(struct world *w)
{
	struct profile *out = profile_new();
	struct keep_snap snap;
	struct cut c;

	keep_snap(&w->k, &snap);
	cut_begin(&c, &snap, out);
	for (size_t i = 0; i < cut_pieces(&c); i++)
		cut_piece(&c, i);
	cut_end(&c);
	keep_snap_done(&snap);
	return out;
}

static uint64_t sum(const struct profile *p, const char *event, uint64_t *ret_count)
{
	uint32_t id = profile_find_event(p, event, NULL);
	uint64_t value = 0, count = 0;

	for (size_t i = 0; i < p->samples.n; i++) {
		if (p->samples.v[i].event != id)
			continue;
		value += p->samples.v[i].value;
		count += MAX(p->samples.v[i].count, 1);
	}
	if (ret_count)
		*ret_count = count;
	return value;
}

static const struct profile_thread *thread_named(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->threads.n; i++)
		if (!strcmp(profile_str(p, p->threads.v[i].name), name))
			return &p->threads.v[i];
	fail_msg("there is no thread %s", name);
	return NULL;
}

static void check_times(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++)
		assert_true(p->samples.v[i].time_ns <= p->duration_ns);
	for (size_t i = 0; i < p->points.n; i++)
		assert_true(p->points.v[i].time_ns <= p->duration_ns);
}

/* All of it, while there is less than is to be kept. */
static void test_whole(void **state)
{
	struct world *w = new_world(60 * S, 0);
	struct profile *p;
	uint64_t count;

	for (uint64_t s = 0; s < 3; s++) {
		work(w, s, 0);
		look(w, (s + 1) * S);
	}
	p = cut(w);
	assert_int_equal(p->duration_ns, 3 * S);
	assert_int_equal(p->start_wall_ns, 1000 * S);
	assert_int_equal(sum(p, "cpu", &count), 3 * S);
	assert_int_equal(count, 3000);
	assert_int_equal(thread_named(p, "worker")->run_ns, 3 * S);
	assert_int_equal(profile_counter(p, KEY_SAMPLES_TAKEN), 3000);
	assert_int_equal(p->points.n, 3);
	assert_string_equal(profile_str(p, p->target), "reth");
	profile_free(p);
	free_world(w);
}

/* The last seconds: times from the window's start on, differences of what is counted. */
static void test_window(void **state)
{
	struct world *w = new_world(4 * S, 0);
	struct profile *p;

	for (uint64_t s = 0; s < 20; s++) {
		work(w, s, 200 * MS);
		look(w, (s + 1) * S);
	}
	assert_int_equal(keep_span_ns(&w->k), 4 * S);
	p = cut(w);
	check_times(p);
	assert_int_equal(p->duration_ns, 4 * S);
	assert_int_equal(p->start_wall_ns, 1016 * S);
	assert_int_equal(sum(p, "cpu", NULL), 3200 * MS);
	assert_int_equal(sum(p, "wait", NULL), 800 * MS);
	assert_int_equal(thread_named(p, "worker")->run_ns, 3200 * MS);
	assert_int_equal(thread_named(p, "worker")->blocked_ns, 800 * MS);
	assert_int_equal(thread_named(p, "main")->run_ns, 0);
	assert_int_equal(profile_counter(p, KEY_SAMPLES_TAKEN), 4000);
	assert_int_equal(profile_counter(p, KEY_SAMPLE_HZ), 999);
	/* 20,000 squared less 16,000 squared. */
	assert_int_equal(profile_counter(p, KEY_WAITS_ERROR_NS), 12000);
	assert_int_equal(profile_histogram(p, KEY_TASK_POLL_LATENCY)->counts[3], 4000);
	/* Stacks that no row has are left out, and modules stay. */
	assert_int_equal(p->stacks.n, 1 + 4);
	assert_int_equal(p->modules.n, 1);
	assert_int_equal(p->mappings.n, 1);
	assert_int_equal(p->points.v[0].value, 16);
	assert_int_equal(p->points.v[0].time_ns, 0);
	profile_free(p);
	free_world(w);
}

/* A wait that had begun before counts from the start of the window on; its time in the queue follows. */
static void test_long_wait(void **state)
{
	struct world *w = new_world(2 * S, 0);
	struct profile_thread *t;
	struct profile *p;

	for (uint64_t s = 1; s <= 5; s++) {
		t = &w->p->threads.v[w->worker];
		t->blocked_ns = s * S;
		look(w, s * S);
	}
	/* From 0 to 5.5 s, then 0.25 s in the queue, told at its end. */
	add(w, 0, w->wait, 5500 * MS, 1, stack(w, 1));
	add(w, 0, w->queue, 250 * MS, 1, stack(w, 1));
	/* Another one that was over before the window, and sums of short ones of that time. */
	add(w, 100 * MS, w->wait, 50 * MS, 1, stack(w, 2));
	add(w, 100 * MS, w->wait, 50 * MS, 9, stack(w, 2));
	t = &w->p->threads.v[w->worker];
	t->blocked_ns = 5500 * MS;
	t->queue_ns = 250 * MS;
	t->run_ns = 250 * MS;
	look(w, 6 * S);
	p = cut(w);
	check_times(p);
	assert_int_equal(p->duration_ns, 2 * S);
	assert_int_equal(sum(p, "wait", NULL), 1500 * MS);
	assert_int_equal(sum(p, "queue", NULL), 250 * MS);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->samples.v[0].time_ns, 0);
	assert_int_equal(p->samples.v[1].time_ns, 1500 * MS);
	t = (struct profile_thread *)thread_named(p, "worker");
	assert_int_equal(t->blocked_ns, 1500 * MS);
	assert_int_equal(t->run_ns + t->queue_ns + t->blocked_ns, p->duration_ns);
	profile_free(p);
	free_world(w);
}

/* What is under way at a look is in a cut, and comes again with what it has grown to. */
static void test_open(void **state)
{
	struct world *w = new_world(10 * S, 0);
	struct profile *p;

	for (uint64_t s = 1; s <= 3; s++) {
		keep_take(&w->k);
		w->p->duration_ns = s * S;
		w->p->threads.v[w->worker].blocked_ns = s * S;
		add(w, 0, w->wait, s * S, 1, stack(w, 1)); /* session_peek() */
		keep_look(&w->k, NULL);
		assert_int_equal(w->p->samples.n, 0);
		p = cut(w);
		assert_int_equal(sum(p, "wait", NULL), s * S);
		assert_int_equal(thread_named(p, "worker")->blocked_ns, s * S);
		profile_free(p);
	}
	free_world(w);
}

/* Threads and processes of before are gone, marks lie in the window as a whole, wakes have their names. */
static void test_tables(void **state)
{
	struct world *w = new_world(2 * S, 0);
	struct profile *p, *q = w->p;
	uint32_t old = profile_add_process(q, &(struct profile_process){ .pid = 9, .name = profile_string(q, "old"), .end_ns = S });
	uint32_t gone = profile_add_thread(q, &(struct profile_thread){ .process = old, .tid = 9, .name = profile_string(q, "gone"), .end_ns = S });
	uint32_t block = profile_string(q, "block");

	profile_add_mapping(q, &(struct profile_mapping){ .process = old, .module = w->module, .start = 1, .end = 2 });
	for (uint64_t s = 1; s <= 6; s++)
		look(w, s * S);
	profile_add_mark(q, &(struct profile_mark){ .start_ns = S, .end_ns = 2 * S, .kind = block, .name = block, .thread = PROFILE_NONE });
	profile_add_mark(q, &(struct profile_mark){ .start_ns = S, .end_ns = 5500 * MS, .kind = block, .name = block, .thread = PROFILE_NONE });
	profile_add_mark(q, &(struct profile_mark){ .start_ns = 6100 * MS, .end_ns = 6200 * MS, .kind = block, .thread = w->worker,
						    .name = profile_string(q, "block 5") });
	profile_add_wake(q, &(struct profile_wake){ .time_ns = 6 * S, .blocked_ns = MS, .thread = w->worker, .waker = gone,
						    .waker_name = profile_string(q, "irq"), .stack = stack(w, 3), .waker_stack = stack(w, 4) });
	look(w, 7 * S);
	p = cut(w);
	cut_mark(p, "SIGUSR1", 2 * S);
	assert_int_equal(p->marks.n, 2);
	assert_string_equal(profile_str(p, p->marks.v[0].name), "block 5");
	assert_int_equal(p->marks.v[0].start_ns, 1100 * MS);
	assert_string_equal(profile_str(p, p->threads.v[p->marks.v[0].thread].name), "worker");
	assert_string_equal(profile_str(p, p->marks.v[1].kind), "incident");
	assert_string_equal(profile_str(p, p->marks.v[1].name), "SIGUSR1");
	assert_int_equal(p->marks.v[1].start_ns, 2 * S);
	assert_int_equal(profile_counter(p, KEY_MARKS_BEGAN_BEFORE), 1);
	/* The waker is named, though it is over. */
	assert_int_equal(p->wakes.n, 1);
	assert_int_equal(p->wakes.v[0].time_ns, S);
	assert_string_equal(profile_str(p, p->wakes.v[0].waker_name), "irq");
	assert_string_equal(profile_str(p, p->threads.v[p->wakes.v[0].waker].name), "gone");
	assert_int_equal(p->threads.n, 3);
	assert_int_equal(p->mappings.n, 1);
	profile_free(p);
	/* Without the wake it is not there. */
	for (uint64_t s = 8; s <= 12; s++)
		look(w, s * S);
	p = cut(w);
	assert_int_equal(p->threads.n, 2);
	assert_int_equal(p->processes.n, 1);
	profile_free(p);
	free_world(w);
}

/* Memory is that of the window, however long it goes on. */
static void test_flat(void **state)
{
	struct world *w = new_world(2 * S, 0);
	uint64_t early = 0;

	for (uint64_t s = 0; s < 200; s++) {
		work(w, s % 20, 100 * MS);
		look(w, (s + 1) * S);
		if (s == 20)
			early = keep_row_bytes(&w->k) + keep_table_bytes(&w->k);
	}
	assert_true(keep_row_bytes(&w->k) + keep_table_bytes(&w->k) <= early + early / 10);
	assert_true(w->k.pieces.n <= 4);
	free_world(w);
}

/* A target that starts a thread each second: those that ended long ago are in no look, and those of the window have their times. */
static void test_threads(void **state)
{
	struct world *w = new_world(4 * S, 0);
	struct profile *p, *q = w->p;

	for (uint64_t s = 0; s < 50; s++) {
		uint32_t id = builder_thread(q, 0, 100 + s, "short");

		q->threads.v[id].start_ns = s * S + 1;
		q->threads.v[id].run_ns = 400 * MS;
		q->threads.v[id].end_ns = s * S + 400 * MS;
		look(w, (s + 1) * S);
	}
	assert_true(w->k.now.threads.n < 10);
	assert_int_equal(keep_times_of(&w->k.now, 2 + 49).run_ns, 400 * MS);
	assert_int_equal(keep_times_of(&w->k.now, 2).run_ns, 0);
	p = cut(w);
	assert_int_equal(p->threads.n, 2 + 4);
	for (size_t i = 2; i < p->threads.n; i++)
		assert_int_equal(p->threads.v[i].run_ns, 400 * MS);
	profile_free(p);
	free_world(w);
}

/* Above the limit old rows are summed, and sums stay exact; and then there is less time. */
static void test_limit(void **state)
{
	struct world *w = new_world(60 * S, 100 << 10);
	struct profile *p;
	uint64_t count;

	for (uint64_t s = 0; s < 40; s++) {
		work(w, s, 100 * MS);
		look(w, (s + 1) * S);
	}
	assert_true(w->k.summed_pieces > 0);
	assert_int_equal(w->k.dropped_pieces, 0);
	p = cut(w);
	check_times(p);
	assert_int_equal(p->duration_ns, 40 * S);
	assert_int_equal(sum(p, "cpu", &count), 36 * S);
	assert_int_equal(count, 36000);
	assert_int_equal(sum(p, "wait", NULL), 4 * S);
	assert_int_equal(p->summed.n, w->k.summed_pieces);
	for (size_t i = 0; i < p->summed.n; i++)
		assert_int_equal(p->summed.v[i].end_ns - p->summed.v[i].start_ns, S);
	profile_free(p);
	w->k.max_bytes = 20 << 10;
	keep_limit(&w->k);
	assert_true(w->k.dropped_pieces > 0);
	assert_true(w->k.pieces.n >= 1);
	p = cut(w);
	assert_true(p->duration_ns < 40 * S);
	assert_int_equal(thread_named(p, "worker")->run_ns, sum(p, "cpu", NULL));
	profile_free(p);
	free_world(w);
}

/* A snap stays as it was while the recording goes on and its pieces are summed and dropped. */
static void test_snap(void **state)
{
	struct world *w = new_world(5 * S, 0);
	struct profile *p = profile_new();
	struct keep_snap snap;
	struct cut c;

	for (uint64_t s = 0; s < 10; s++) {
		work(w, s, 0);
		look(w, (s + 1) * S);
	}
	keep_snap(&w->k, &snap);
	w->k.max_bytes = 8 << 10;
	for (uint64_t s = 10; s < 30; s++) {
		work(w, s, 0);
		look(w, (s + 1) * S);
	}
	cut_begin(&c, &snap, p);
	for (size_t i = 0; i < cut_pieces(&c); i++)
		cut_piece(&c, i);
	assert_int_equal(cut_module(&c, w->module), 0);
	assert_int_equal(cut_module(&c, 99), PROFILE_NONE);
	cut_end(&c);
	assert_int_equal(p->duration_ns, 5 * S);
	assert_int_equal(sum(p, "cpu", NULL), 5 * S);
	assert_int_equal(p->summed.n, 0);
	keep_snap_done(&snap);
	profile_free(p);
	free_world(w);
}

/* --- windows that follow each other, as an agent cuts them --- */

/* The window since the last one, in the form that the agent has it. */
static struct profile *cut_next(struct world *w)
{
	struct profile *p = cut(w);

	keep_next(&w->k);
	return p;
}

/* Each row, count and point is in one window, and none is left out. */
static void test_following(void **state)
{
	struct world *w = new_world(4 * 10 * S, 0);
	uint64_t cpu = 0, wait = 0, run = 0, blocked = 0, duration = 0, taken = 0, counts = 0, points = 0;

	for (uint64_t s = 0; s < 60; s++) {
		struct profile *p;
		uint64_t n;

		/* They end at 10, 30, 35, 40, 50 and 60 s. */
		work(w, s, s % 3 * 100 * MS);
		look(w, (s + 1) * S);
		if (s == 19 || ((s + 1) % 10 && s != 34))
			continue;
		p = cut_next(w);
		check_times(p);
		assert_int_equal(p->start_wall_ns, 1000 * S + duration);
		assert_int_equal(thread_named(p, "worker")->run_ns, sum(p, "cpu", NULL));
		cpu += sum(p, "cpu", &n);
		counts += n;
		wait += sum(p, "wait", NULL);
		run += thread_named(p, "worker")->run_ns;
		blocked += thread_named(p, "worker")->blocked_ns;
		duration += p->duration_ns;
		taken += profile_counter(p, KEY_SAMPLES_TAKEN);
		points += p->points.n;
		profile_free(p);
	}
	assert_int_equal(duration, 60 * S);
	assert_int_equal(cpu + wait, 60 * S);
	assert_int_equal(wait, 20 * 300 * MS);
	assert_int_equal(run, cpu);
	assert_int_equal(blocked, wait);
	assert_int_equal(taken, 60000);
	assert_int_equal(points, 60);
	assert_int_equal(counts, cpu / MS);
	free_world(w);
}

/* A wait from 5 s to 27 s, and then in the queue to 28 s: each window has its part. */
static void test_border(void **state)
{
	static const uint64_t want[] = { 5000, 10000, 7000 };
	struct world *w = new_world(4 * 10 * S, 0);
	struct profile_thread *t;
	uint64_t sums = 0;

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t now = (i + 1) * 10 * S;
		struct profile *p;

		if (i == 2) { /* it is over, and told as a whole */
			add(w, 5 * S, w->wait, 22 * S, 1, stack(w, 1));
			add(w, 5 * S, w->queue, S, 1, stack(w, 1));
		}
		keep_take(&w->k);
		t = &w->p->threads.v[w->worker];
		t->blocked_ns = (i == 2 ? 27 * S : now) - 5 * S;
		t->queue_ns = i == 2 ? S : 0;
		if (i < 2)
			add(w, 5 * S, w->wait, now - 5 * S, 1, stack(w, 1)); /* session_peek() */
		w->p->duration_ns = now;
		keep_look(&w->k, NULL);
		p = cut_next(w);
		check_times(p);
		assert_int_equal(p->duration_ns, 10 * S);
		assert_int_equal(sum(p, "wait", NULL), want[i] * MS);
		assert_int_equal(thread_named(p, "worker")->blocked_ns, want[i] * MS);
		assert_int_equal(sum(p, "queue", NULL), i == 2 ? S : 0);
		sums += sum(p, "wait", NULL);
		profile_free(p);
	}
	assert_int_equal(sums, 22 * S);
	free_world(w);
}

static const char *name_of(const struct profile *p, uint32_t stack, uint32_t line)
{
	const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

	assert_true(line < f->line_count);
	return profile_str(p, p->functions.v[p->lines.v[f->first_line + line].function].name);
}

/* Frames that were named in one window have their names in the next, with files and lines; those that are not yet have none. */
static void test_names(void **state)
{
	struct world *w = new_world(4 * 10 * S, 0);
	uint32_t frame = profile_frame(w->p, w->module, FRAME_USER, 0x2000), named = profile_stack(w->p, 0, frame);
	const struct profile_function inner = { .name = profile_string(w->p, "inner"), .file = profile_string(w->p, "lib.rs"), .module = w->module },
				      outer = { .name = profile_string(w->p, "outer"), .linkage = profile_string(w->p, "_outer"),
						.module = w->module };
	const struct profile_line lines[] = { { .function = profile_function(w->p, &inner), .line = 7, .inlined = true },
					      { .function = profile_function(w->p, &outer), .line = 9 } };
	struct profile *p;

	for (uint64_t i = 0; i < 3; i++) {
		add(w, i * 10 * S, w->cpu, 10 * MS, 10, named);
		look(w, (i + 1) * 10 * S);
		if (i == 1)
			profile_set_lines(w->p, frame, lines, 2);
		p = cut_next(w);
		assert_int_equal(p->samples.n, 1);
		if (!i) {
			assert_int_equal(p->frames.v[p->stacks.v[p->samples.v[0].stack].frame].line_count, 0);
		} else {
			const struct profile_function *f;
			const struct profile_line *line;

			assert_string_equal(name_of(p, p->samples.v[0].stack, 0), "inner");
			assert_string_equal(name_of(p, p->samples.v[0].stack, 1), "outer");
			line = &p->lines.v[p->frames.v[p->stacks.v[p->samples.v[0].stack].frame].first_line];
			assert_int_equal(line->line, 7);
			assert_true(line->inlined);
			f = &p->functions.v[line->function];
			assert_string_equal(profile_str(p, f->file), "lib.rs");
			assert_string_equal(profile_str(p, p->modules.v[f->module].path), "/bin/reth");
		}
		profile_free(p);
	}
	free_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole), cmocka_unit_test(test_window), cmocka_unit_test(test_long_wait), cmocka_unit_test(test_open),
		cmocka_unit_test(test_tables), cmocka_unit_test(test_flat), cmocka_unit_test(test_threads), cmocka_unit_test(test_limit), cmocka_unit_test(test_snap),
		cmocka_unit_test(test_following), cmocka_unit_test(test_border), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
