#include "test.h"

#include <errno.h>

#include "base/codec/protobuf.h"
#include "base/err.h"
#include "export/foreign/perfetto/threadstates.h"
#include "export/samplerows.h"
#include "exporting.h"
#include "golden.h"
#include "judged.h"

/* A job whose causes are those of the built-in table. */
struct job {
	struct patterns patterns;
	struct causes causes;
	struct selection selection;
	struct export_job job;
};

static void job_init(struct job *j, const struct profile *p, struct select_options o, bool every)
{
	*j = (struct job){ 0 };
	patterns_init(&j->patterns);
	patterns_add_builtin(&j->patterns);
	causes_init(&j->causes, p, &j->patterns);
	o.causes = &j->causes;
	assert_int_equal(selection_make(p, &o, &j->selection, NULL), 0);
	j->job = (struct export_job){ .profile = p, .selection = &j->selection, .options = { .every_event = every } };
}

static void job_done(struct job *j)
{
	selection_done(&j->selection);
	causes_done(&j->causes);
	patterns_done(&j->patterns);
}

static struct buf written(const struct profile *p, struct select_options o)
{
	struct buf out = { 0 };
	struct job j;

	job_init(&j, p, o, true);
	assert_int_equal(perfetto_write(&j.job, &out, NULL), 0);
	job_done(&j);
	return out;
}

/* --- a reader of what was written --- */

enum { BEGIN = 1, END, INSTANT, COUNTER, TYPES };

struct seen {
	size_t packets, tracks, samples, types[TYPES], flows, flow_ends, begun;
	uint64_t last_ns;
};

static uint64_t number_in(const struct protobuf_field *message, uint32_t number)
{
	struct reader r = protobuf_inside(message);
	struct protobuf_field f;
	uint64_t value = 0;

	while (protobuf_next(&r, &f))
		if (f.number == number)
			value = f.value;
	assert_false(r.failed);
	return value;
}

static size_t count_in(const struct protobuf_field *message, uint32_t number)
{
	struct reader r = protobuf_inside(message);
	struct protobuf_field f;
	size_t n = 0;

	while (protobuf_next(&r, &f))
		n += f.number == number;
	assert_false(r.failed);
	return n;
}

static void see_packet(struct seen *s, const struct protobuf_field *packet)
{
	struct reader r = protobuf_inside(packet);
	uint64_t time_ns = number_in(packet, 8);
	struct protobuf_field f;

	s->packets++;
	s->begun += number_in(packet, 13) & 1;
	while (protobuf_next(&r, &f)) {
		s->tracks += f.number == 60;
		s->samples += f.number == 66;
		if (f.number != 11)
			continue;
		assert_in_range(number_in(&f, 9), BEGIN, COUNTER);
		s->types[number_in(&f, 9)]++;
		s->flows += count_in(&f, 47);
		s->flow_ends += count_in(&f, 48);
		assert_true(time_ns >= s->last_ns);
		s->last_ns = time_ns;
	}
	assert_false(r.failed);
}

static struct seen see(const struct buf *b)
{
	struct reader r = reader_of(b->data, b->n);
	struct protobuf_field f;
	struct seen s = { 0 };

	while (protobuf_next(&r, &f)) {
		assert_int_equal(f.number, 1);
		see_packet(&s, &f);
	}
	assert_false(r.failed);
	assert_int_equal(s.types[BEGIN], s.types[END]);
	return s;
}

/* --- tests --- */

static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "perfetto", (struct export_options){ .every_event = true });
	struct seen seen = see(&b);

	golden_check("sample.pftrace", b.data, b.n);
	assert_int_equal(seen.samples, 2000);
	assert_int_equal(seen.begun, 2);
	assert_int_equal(seen.tracks, 2 + 3);
	buf_done(&b);
	profile_free(s.p);
}

static void waits_and_wakers(void **state)
{
	struct waiting w = waiting_make();
	struct buf b = written(w.s.p, (struct select_options){ 0 });
	struct seen seen = see(&b);

	golden_check("waits.pftrace", b.data, b.n);
	/* 1 of a lock by persistence, 69 by busy; the others have no waker that was recorded. */
	assert_int_equal(seen.flows, 70);
	assert_int_equal(seen.flow_ends, 70);
	assert_int_equal(seen.types[INSTANT], 70);
	buf_done(&b);
	profile_free(w.s.p);
}

/* What the states of a thread add up to, cause by cause, shorts included; on the CPU is what is left. */
static void add_up(const struct threadstates *t, uint32_t thread, uint64_t ns[CAUSE_COUNT])
{
	uint64_t last = 0;

	memset(ns, 0, CAUSE_COUNT * sizeof(*ns));
	for (size_t i = 0; i < t->list.n; i++) {
		const struct threadstate *s = &t->list.v[i];

		if (s->thread != thread)
			continue;
		assert_true(s->begin_ns >= last && s->end_ns >= s->begin_ns);
		last = s->end_ns;
		ns[s->cause] += s->end_ns - s->begin_ns;
		for (uint32_t k = 0; k < s->shorts; k++) {
			ns[t->shorts.v[s->first_short + k].cause] += t->shorts.v[s->first_short + k].ns;
			ns[s->cause] -= t->shorts.v[s->first_short + k].ns;
		}
	}
}

static void check_sums(const struct waiting *w, size_t limit)
{
	struct threadstates t;
	struct samplerows rows;
	uint64_t ns[CAUSE_COUNT];
	struct job j;

	job_init(&j, w->s.p, (struct select_options){ 0 }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&t, &j.job, &rows, limit, NULL), 0);
	assert_true(t.whole);
	assert_int_equal(!!t.joined_ns, limit < 80);
	add_up(&t, w->writer, ns);
	assert_int_equal(ns[CAUSE_DISK_WRITE], 700 * MS);
	assert_int_equal(ns[CAUSE_QUEUE], 20 * MS);
	assert_int_equal(ns[CAUSE_CPU], 280 * MS); /* 80 of them are missing in its account */
	add_up(&t, w->rpc, ns);
	assert_int_equal(ns[CAUSE_LOCK], 900 * MS);
	assert_int_equal(ns[CAUSE_CPU], 100 * MS);
	add_up(&t, w->engine, ns);
	assert_int_equal(ns[CAUSE_SLEEP], 690 * MS);
	assert_int_equal(ns[CAUSE_QUEUE], 10 * MS);
	add_up(&t, w->idle, ns);
	assert_int_equal(ns[CAUSE_IDLE], 999 * MS);
	add_up(&t, w->busy, ns);
	assert_int_equal(ns[CAUSE_CPU], 1000 * MS);
	threadstates_done(&t);
	samplerows_done(&rows);
	job_done(&j);
}

/* However many states are kept, sums of each thread and cause stay. */
static void joined_states_keep_sums(void **state)
{
	struct waiting w = waiting_make();

	check_sums(&w, 1000);
	check_sums(&w, 20);
	check_sums(&w, 3);
	check_sums(&w, 0);
	profile_free(w.s.p);
}

/* A thread that ends soon: its only short wait is noted at the begin of a slot before it was born, and another one finds no room. */
static void sums_without_room(void **state)
{
	struct waiting w = waiting_empty();
	struct profile_thread *t = &w.s.p->threads.v[w.rpc];
	struct threadstates states;
	uint64_t ns[CAUSE_COUNT];
	struct samplerows rows;
	struct job j;

	t->start_ns = 104 * MS;
	t->end_ns = 110 * MS;
	waiting_account(&w, w.rpc, 1 * MS, 0, 5 * MS);
	waiting_add(&w, w.wait, w.rpc, w.lock, 100 * MS, 2 * MS, 1);
	waiting_add(&w, w.wait, w.rpc, w.lock, 100 * MS, 1 * MS, 3);
	waiting_add(&w, w.wait, w.rpc, w.lock, 106 * MS, 1 * MS, 1);
	waiting_add(&w, w.wait, w.rpc, w.lock, 110 * MS, 1 * MS, 2);
	job_init(&j, w.s.p, (struct select_options){ .event = w.wait }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&states, &j.job, &rows, 1000, NULL), 0);
	add_up(&states, w.rpc, ns);
	assert_int_equal(ns[CAUSE_LOCK], 5 * MS);
	assert_int_equal(ns[CAUSE_CPU], 1 * MS);
	for (size_t i = 0; i < states.list.n; i++) {
		const struct threadstate *s = &states.list.v[i];

		assert_true(s->thread != w.rpc || (s->begin_ns >= 104 * MS && s->end_ns <= 110 * MS));
		assert_true(s->shorts <= 1); /* one of each cause */
	}
	threadstates_done(&states);
	samplerows_done(&rows);
	job_done(&j);
	profile_free(w.s.p);
}

static void names_of_states(void **state)
{
	struct waiting w = waiting_make();
	struct threadstates t;
	struct samplerows rows;
	struct job j;

	job_init(&j, w.s.p, (struct select_options){ 0 }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&t, &j.job, &rows, 1000, NULL), 0);
	assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.rpc, 0)), "lock");
	/* 100 ms of short waits in the 200 ms after it. */
	assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.rpc, 800 * MS)), "running, short waits");
	assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.busy, 5 * MS)), "running");
	assert_int_equal(threadstates_at(&t, w.busy, 5 * MS)->samples, 1000);
	assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.engine, 995 * MS)), "run queue");
	assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.idle, 0)), "idle");
	assert_null(threadstates_at(&t, w.rpc, 2000 * MS));
	threadstates_done(&t);
	samplerows_done(&rows);
	job_done(&j);
	profile_free(w.s.p);
}

/* Waits are cut at the borders of a range, and so is the time between them. */
static void a_range(void **state)
{
	struct waiting w = waiting_make();
	struct threadstates t;
	struct samplerows rows;
	uint64_t ns[CAUSE_COUNT];
	struct job j;

	job_init(&j, w.s.p, (struct select_options){ .from_ns = 650 * MS, .to_ns = 850 * MS }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&t, &j.job, &rows, 1000, NULL), 0);
	add_up(&t, w.writer, ns);
	assert_int_equal(ns[CAUSE_DISK_WRITE], 50 * MS);
	assert_int_equal(ns[CAUSE_CPU] + ns[CAUSE_QUEUE], 150 * MS);
	add_up(&t, w.busy, ns);
	assert_int_equal(ns[CAUSE_CPU], 200 * MS);
	threadstates_done(&t);
	samplerows_done(&rows);
	job_done(&j);
	profile_free(w.s.p);
}

/* Samples a period apart are one span; a pause between them ends it. */
static void states_of_samples(void **state)
{
	struct sample s = sample_empty();
	uint32_t stack = sample_stack(&s, "main;work");
	struct threadstates t;
	struct samplerows rows;
	struct job j;

	s.now_ns = 10 * MS;
	sample_add(&s, s.main, stack, 5);
	s.now_ns = 100 * MS;
	sample_add(&s, s.main, stack, 1);
	job_init(&j, s.p, (struct select_options){ 0 }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&t, &j.job, &rows, 1000, NULL), 0);
	assert_false(t.whole);
	assert_int_equal(t.list.n, 2);
	assert_int_equal(t.list.v[0].begin_ns, 9 * MS);
	assert_int_equal(t.list.v[0].end_ns, 14 * MS);
	assert_int_equal(t.list.v[0].cpu_ns, 5 * MS);
	assert_string_equal(threadstate_name(&t, &t.list.v[0]), "running");
	assert_int_equal(t.list.v[1].end_ns - t.list.v[1].begin_ns, 1 * MS);
	assert_int_equal(t.list.v[1].stack, stack);
	threadstates_done(&t);
	samplerows_done(&rows);
	job_done(&j);
	profile_free(s.p);
}

/* A long recording that was made small: sums of a slot are a part of the slot, or of what is asked for of it. */
static void summed_slots(void **state)
{
	struct waiting w = waiting_empty();
	struct threadstates t;
	uint64_t ns[CAUSE_COUNT];
	struct samplerows rows;
	struct job j;

	profile_add_summed(w.s.p, &(struct profile_summed){ 0, 1000 * MS });
	waiting_account(&w, w.rpc, 400 * MS, 0, 600 * MS);
	waiting_add(&w, w.wait, w.rpc, w.lock, 0, 600 * MS, 50);
	for (int half = 0; half < 2; half++) {
		job_init(&j, w.s.p, (struct select_options){ .event = w.wait, .to_ns = half ? 500 * MS : 0 }, true);
		assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
		assert_int_equal(threadstates_make(&t, &j.job, &rows, 1000, NULL), 0);
		add_up(&t, w.rpc, ns);
		assert_int_equal(ns[CAUSE_LOCK], half ? 300 * MS : 600 * MS);
		assert_int_equal(ns[CAUSE_CPU], half ? 200 * MS : 400 * MS);
		assert_string_equal(threadstate_name(&t, threadstates_at(&t, w.rpc, 0)), "short waits");
		threadstates_done(&t);
		samplerows_done(&rows);
		job_done(&j);
	}
	profile_free(w.s.p);
}

/* Of samples alone, one that stands for a slot: the thread ran in it, for so long. */
static void summed_samples(void **state)
{
	struct sample s = sample_empty();
	struct threadstates t;
	struct samplerows rows;
	struct job j;

	profile_add_summed(s.p, &(struct profile_summed){ 0, 1000 * MS });
	profile_add_sample(s.p, &(struct profile_sample){ .value = 70 * MS, .thread = s.main, .stack = sample_stack(&s, "main"), .event = s.cpu,
							  .count = 70 });
	job_init(&j, s.p, (struct select_options){ 0 }, true);
	assert_int_equal(samplerows_make(&rows, &j.job, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(threadstates_make(&t, &j.job, &rows, 1000, NULL), 0);
	assert_int_equal(t.list.n, 1);
	assert_int_equal(t.list.v[0].end_ns, 1000 * MS);
	assert_int_equal(t.list.v[0].cpu_ns, 70 * MS);
	assert_int_equal(t.list.v[0].samples, 70);
	assert_string_equal(threadstate_name(&t, &t.list.v[0]), "running in part");
	threadstates_done(&t);
	samplerows_done(&rows);
	job_done(&j);
	profile_free(s.p);
}

/* Blocks may overlap, slices of a track must not. */
static void marks_and_series(void **state)
{
	struct sample s = sample_make();
	struct profile *p = s.p;
	uint32_t kind = profile_string(p, "block"), series = profile_add_series(p, "rss", "bytes");
	struct block known = { 7, 30000000, 120, BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS };
	struct seen seen;
	struct buf b;

	for (unsigned i = 0; i < 4; i++)
		profile_add_mark(p, &(struct profile_mark){ .start_ns = i * 100 * MS, .end_ns = (i * 100 + 150) * MS, .kind = kind,
							    .name = profile_string(p, "block 7"), .thread = PROFILE_NONE, .block = known });
	profile_add_mark(p, &(struct profile_mark){ .start_ns = 5, .end_ns = 5, .kind = kind, .thread = s.main });
	profile_add_point(p, series, 3 * MS, 4096);
	profile_add_point(p, series, 4 * MS, -1);
	b = written(p, (struct select_options){ 0 });
	seen = see(&b);
	assert_int_equal(seen.types[COUNTER], 2);
	assert_int_equal(seen.types[INSTANT], 1);
	assert_int_equal(seen.tracks, 2 + 3 + 2 + 1 + 1);
	buf_done(&b);
	profile_free(p);
}

static void hostile_and_deep(void **state)
{
	struct sample s = export_hostile();
	struct buf b = export_all(s.p, "perfetto", (struct export_options){ .every_event = true });

	see(&b);
	for (size_t i = 0; i + 1 < b.n; i++)
		assert_false(b.data[i] == '\033' && b.data[i + 1] == '[');
	assert_null(memmem(b.data, b.n, "\xff\xc0\x80", 3));
	buf_done(&b);
	profile_free(s.p);
	s = export_deep(20000);
	b = export_all(s.p, "perfetto", (struct export_options){ .every_event = true });
	assert_int_equal(see(&b).samples, 3);
	buf_done(&b);
	profile_free(s.p);
}

/* A sample that stands for four billion is not written so often. */
static void counts_are_bounded(void **state)
{
	struct sample s = sample_empty();
	uint32_t stack = sample_stack(&s, "main");
	struct protobuf_field f;
	struct reader r;
	size_t n = 0;
	struct buf b;

	profile_add_sample(s.p, &(struct profile_sample){ .time_ns = 1, .value = UINT32_MAX * (uint64_t)SAMPLE_PERIOD_NS, .thread = s.main,
							  .stack = stack, .event = s.cpu, .count = UINT32_MAX });
	b = written(s.p, (struct select_options){ 0 });
	r = reader_of(b.data, b.n);
	while (protobuf_next(&r, &f))
		n++;
	assert_false(r.failed);
	assert_in_range(n, 1000000, 2000100);
	buf_done(&b);
	profile_free(s.p);
}

static void nothing_with_a_time(void **state)
{
	struct sample s = sample_empty();
	struct buf b = { 0 };
	struct err err = { 0 };
	struct job j;

	s.p->duration_ns = 0;
	sample_add(&s, s.main, sample_stack(&s, "main"), 1);
	job_init(&j, s.p, (struct select_options){ 0 }, true);
	assert_int_equal(perfetto_write(&j.job, &b, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no times"));
	assert_int_equal(b.n, 0);
	job_done(&j);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(waits_and_wakers),
		cmocka_unit_test(joined_states_keep_sums),
		cmocka_unit_test(sums_without_room),
		cmocka_unit_test(names_of_states),
		cmocka_unit_test(a_range),
		cmocka_unit_test(states_of_samples),
		cmocka_unit_test(summed_slots),
		cmocka_unit_test(summed_samples),
		cmocka_unit_test(marks_and_series),
		cmocka_unit_test(hostile_and_deep),
		cmocka_unit_test(counts_are_bounded),
		cmocka_unit_test(nothing_with_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
