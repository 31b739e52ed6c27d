/*
 * test_roundtrip.c - what is exported and imported again is what it was: weights by event, thread and stack, times and order,
 * as far as a format can hold them. A format is one line of the table; what it holds is what the manual says of it.
 */
#include "test.h"

#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/samplerows.h"
#include "exporting.h"
#include "import/import.h"
#include "judged.h"

enum holds {
	HOLDS_EVENTS = 1,   /* several at once, with their names; else the first one, or the one that the line names */
	HOLDS_THREADS = 2,  /* names */
	HOLDS_TIDS = 4,
	HOLDS_TIMES = 8,    /* of each sample, to the unit of the line */
	HOLDS_ORDER = 16,   /* of the samples of a thread and event */
	HOLDS_VALUES = 32,  /* in the unit of the event; else numbers of samples */
	HOLDS_OUTERMOST_ONLY = 64, /* nothing of inlined calls: they are left out */
};

static const struct format {
	const char *exporter, *importer;
	unsigned holds;
	const char *event;      /* that is exported where it cannot hold several, NULL = cpu */
	uint64_t time_unit_ns;  /* times are rounded to it, 0 = 1 */
} formats[] = {
	{ "folded", "folded", HOLDS_THREADS },
	{ "firefox", "firefox", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_ORDER | HOLDS_VALUES },
	{ "jsonl", "jsonl", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_ORDER | HOLDS_VALUES },
	{ "otlp", "otlp", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_VALUES },
	{ "perf-script", "perf-script", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_ORDER | HOLDS_VALUES },
	{ "pprof", "pprof", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_VALUES },
	{ "speedscope", "speedscope", HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_ORDER | HOLDS_VALUES },
};

/* --- what a profile says, as lines --- */

struct listing {
	VEC(char *) list;
};

static void listing_done(struct listing *l)
{
	vec_done_each(&l->list, line, free(*line));
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_stack(struct buf *b, struct stackcalls *calls, uint32_t stack)
{
	stackcalls_of(calls, stack);
	for (size_t i = calls->list.n; i-- > 0;)
		buf_printf(b, ";%s", calls->list.v[i].name);
}

static void put_row(struct buf *b, const struct profile *p, const struct samplerow *row, const struct format *f, struct stackcalls *calls)
{
	if (f->holds & HOLDS_EVENTS)
		buf_printf(b, "%s ", profile_str(p, p->events.v[row->event].name));
	if (f->holds & HOLDS_TIDS)
		buf_printf(b, "%u ", p->threads.v[row->thread].tid);
	if (f->holds & HOLDS_THREADS)
		buf_printf(b, "%s", profile_str(p, p->threads.v[row->thread].name));
	put_stack(b, calls, row->stack);
}

static void set_job(struct export_job *job, const struct profile *p, const struct format *f, struct selection *s)
{
	struct select_options o = { 0 };

	if (f->event && profile_find_event(p, f->event, NULL) != PROFILE_NONE)
		o.event = profile_find_event(p, f->event, NULL);
	assert_int_equal(selection_make(p, &o, s, NULL), 0);
	*job = (struct export_job){ .profile = p, .selection = s,
				    .options = { .group = CALLTREE_BY_NAME, .every_event = f->holds & HOLDS_EVENTS,
						 .no_inline = f->holds & HOLDS_OUTERMOST_ONLY } };
}

/* The sum of each event, thread and stack: "main;a;b 7", sorted. */
static void read_weights(const struct export_job *job, const struct samplerows *rows, const struct format *f, struct stackcalls *calls,
			 struct listing *ret)
{
	struct strtab keys;
	struct map sums = { 0 };

	strtab_init(&keys);
	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *row = &rows->list.v[i];
		_cleanup_(buf_done) struct buf key = { 0 };

		put_row(&key, job->profile, row, f, calls);
		*map_put(&sums, strtab_add(&keys, key.data), 0) += f->holds & HOLDS_VALUES ? row->value : row->count;
	}
	for (uint32_t i = 1; i < keys.n; i++)
		vec_push(&ret->list, mem_printf("%s %llu", strtab_get(&keys, i), (unsigned long long)*map_get(&sums, i)));
	vec_sort(&ret->list, compare_lines);
	map_done(&sums);
	strtab_done(&keys);
}

/* Each sample by itself, with its time if that is held; in its order, or sorted. */
static void read_samples(const struct export_job *job, const struct samplerows *rows, const struct format *f, struct stackcalls *calls,
			 struct listing *ret)
{
	uint64_t unit = f->time_unit_ns ? f->time_unit_ns : 1, first = UINT64_MAX;

	for (size_t i = 0; i < rows->list.n; i++)
		first = MIN(first, rows->list.v[i].begin_ns);
	for (uint32_t thread = 0; thread < job->profile->threads.n; thread++)
		for (size_t i = 0; i < rows->list.n; i++) {
			const struct samplerow *row = &rows->list.v[i];
			struct buf line = { 0 };

			if (row->thread != thread)
				continue;
			if (f->holds & HOLDS_TIMES)
				buf_printf(&line, "%012llu ", (unsigned long long)((row->begin_ns - first) / unit));
			put_row(&line, job->profile, row, f, calls);
			vec_push(&ret->list, line.data);
		}
	/* Threads may come in another order; samples of one at one time, too. */
	if (f->holds & HOLDS_TIMES)
		vec_sort(&ret->list, compare_lines);
}

static void read_lines(const struct profile *p, const struct format *f, struct listing *weights, struct listing *samples)
{
	struct stackcalls calls;
	struct selection s;
	struct export_job job;
	struct samplerows rows;

	set_job(&job, p, f, &s);
	assert_int_equal(samplerows_make(&rows, &job, 0, NULL), 0);
	stackcalls_init(&calls, &job);
	*weights = *samples = (struct listing){ 0 };
	read_weights(&job, &rows, f, &calls, weights);
	if (f->holds & (HOLDS_TIMES | HOLDS_ORDER))
		read_samples(&job, &rows, f, &calls, samples);
	stackcalls_done(&calls);
	samplerows_done(&rows);
	selection_done(&s);
}

/* --- there and back --- */

static struct buf export_as(const struct profile *p, const struct format *f)
{
	struct quality q;
	struct selection s;
	struct export_job job;
	struct buf out = { 0 };
	struct err err = { 0 };

	set_job(&job, p, f, &s);
	quality_measure(&q, p, &s);
	job.quality = &q;
	if (export_find(f->exporter)->write(&job, &out, &err))
		fail_msg("%s: %s", f->exporter, err.text);
	quality_done(&q);
	selection_done(&s);
	return out;
}

static struct profile *import_as(const struct buf *b, const struct format *f)
{
	_cleanup_(stream_freep) struct stream *in = stream_of(b->data, b->n);
	struct import_input input = { .stream = in, .name = "demo-node", .options = { .root = "/nonexistent" } };
	const struct import_format *known;
	struct profile *p = NULL;
	struct err err = { 0 };
	const char *start;
	ssize_t n = stream_peek(in, &start, &err);

	assert_true(n > 0);
	known = import_probe(start, n, n < STREAM_PEEK_BYTES);
	assert_non_null(known);
	assert_string_equal(known->name, f->importer);
	if (known->read(&input, &p, &err))
		fail_msg("%s: %s", f->importer, err.text);
	return p;
}

static const char *line_of(const struct listing *l, size_t i)
{
	return i < l->list.n ? l->list.v[i] : "(nothing)";
}

/* 1 + the first line that is not the same; 0: all are. */
static size_t first_difference(const struct listing *a, const struct listing *b)
{
	for (size_t i = 0; i < MAX(a->list.n, b->list.n); i++)
		if (strcmp(line_of(a, i), line_of(b, i)))
			return 1 + i;
	return 0;
}

static void check_equal(const struct format *f, const char *what, const struct listing *a, const struct listing *b)
{
	size_t at = first_difference(a, b);

	if (at--)
		fail_msg("%s, %s %zu of %zu and %zu:\n  went %.300s\n  came %.300s", f->exporter, what, at, a->list.n, b->list.n,
			 line_of(a, at), line_of(b, at));
}

static void check_same(const struct format *f, const struct profile *before, const struct profile *after)
{
	struct listing weights[2], samples[2];

	read_lines(before, f, &weights[0], &samples[0]);
	read_lines(after, f, &weights[1], &samples[1]);
	assert_true(weights[0].list.n > 0);
	check_equal(f, "weight", &weights[0], &weights[1]);
	check_equal(f, "sample", &samples[0], &samples[1]);
	for (int i = 0; i < 2; i++) {
		listing_done(&weights[i]);
		listing_done(&samples[i]);
	}
}

/* Out and in, and out and in again: what has become of it once stays. */
static void check_trip(const struct format *f, const struct profile *p)
{
	struct buf once = export_as(p, f), twice, thrice;
	struct profile *first = import_as(&once, f), *second;

	check_same(f, p, first);
	twice = export_as(first, f);
	second = import_as(&twice, f);
	check_same(f, first, second);
	thrice = export_as(second, f);
	assert_int_equal(twice.n, thrice.n);
	assert_memory_equal(twice.data, thrice.data, twice.n);
	profile_free(first);
	profile_free(second);
	buf_done(&once);
	buf_done(&twice);
	buf_done(&thrice);
}

static void samples_of_cpu(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct sample s = sample_make();

		check_trip(&formats[i], s.p);
		profile_free(s.p);
	}
}

static void waits(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct waiting w = waiting_make();

		check_trip(&formats[i], w.s.p);
		profile_free(w.s.p);
	}
}

static uint64_t total_of(const struct profile *p, const struct format *f)
{
	struct selection s;
	struct export_job job;
	struct samplerows rows;
	uint64_t sum = 0;

	set_job(&job, p, f, &s);
	assert_int_equal(samplerows_make(&rows, &job, 0, NULL), 0);
	for (size_t i = 0; i < rows.list.n; i++)
		sum += f->holds & HOLDS_VALUES ? rows.list.v[i].value : rows.list.v[i].count;
	samplerows_done(&rows);
	selection_done(&s);
	return sum;
}

/* Names that a format must change may change; nothing is lost or added. */
static void hostile_names(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct sample s = export_hostile();
		struct buf b = export_as(s.p, &formats[i]);
		struct profile *p = import_as(&b, &formats[i]);

		assert_int_equal(total_of(p, &formats[i]), total_of(s.p, &formats[i]));
		profile_free(p);
		buf_done(&b);
		profile_free(s.p);
	}
}

static size_t differences(const struct profile *a, const struct profile *b, unsigned holds)
{
	const struct format all = { "all", "all", .holds = holds };
	struct listing weights[2], samples[2];
	size_t n;

	read_lines(a, &all, &weights[0], &samples[0]);
	read_lines(b, &all, &weights[1], &samples[1]);
	n = first_difference(&weights[0], &weights[1]) + first_difference(&samples[0], &samples[1]);
	for (int i = 0; i < 2; i++) {
		listing_done(&weights[i]);
		listing_done(&samples[i]);
	}
	return n;
}

/* This test itself: it sees what it claims to compare. */
static void differences_are_seen(void **state)
{
	static const unsigned all = HOLDS_EVENTS | HOLDS_THREADS | HOLDS_TIDS | HOLDS_TIMES | HOLDS_VALUES;
	struct waiting a = waiting_make(), b = waiting_make();
	struct profile_sample *s = b.s.p->samples.v, kept = s[100];
	uint32_t other = s[0].stack;

	assert_int_equal(differences(a.s.p, b.s.p, all | HOLDS_ORDER), 0);
	s[100].time_ns++;
	assert_true(differences(a.s.p, b.s.p, all));
	assert_false(differences(a.s.p, b.s.p, all & ~HOLDS_TIMES));
	s[100] = kept;
	s[100].value++;
	assert_true(differences(a.s.p, b.s.p, all));
	assert_false(differences(a.s.p, b.s.p, all & ~HOLDS_VALUES));
	s[100] = kept;
	s[100].stack = other;
	assert_true(differences(a.s.p, b.s.p, HOLDS_EVENTS));
	s[100] = kept;
	s[100].thread = a.s.other;
	assert_true(differences(a.s.p, b.s.p, HOLDS_EVENTS | HOLDS_THREADS));
	assert_true(differences(a.s.p, b.s.p, HOLDS_EVENTS | HOLDS_TIDS));
	assert_false(differences(a.s.p, b.s.p, HOLDS_EVENTS));
	s[100] = kept;
	profile_free(a.s.p);
	profile_free(b.s.p);
}

static void order_is_seen(void **state)
{
	struct sample a = sample_empty(), b = sample_empty();

	for (int i = 0; i < 2; i++) {
		sample_add(&a, a.main, sample_stack(&a, i ? "main;x" : "main;y"), 1);
		sample_add(&b, b.main, sample_stack(&b, i ? "main;y" : "main;x"), 1);
	}
	assert_true(differences(a.p, b.p, HOLDS_THREADS | HOLDS_ORDER));
	assert_false(differences(a.p, b.p, HOLDS_THREADS));
	profile_free(a.p);
	profile_free(b.p);
}

/* Each format that can be written and read is in the table, or is named here with the reason. */
static void none_is_missing(void **state)
{
	static const char *const others[] = {
		"callgrind",                        /* a call graph: stacks are estimated; test_callgrind.c */
		"massif", "heap_v2", "heaptrack",   /* heaps only: test_heapforeign.c, test_massif.c */
	};

	for (const struct export_format *f = export_formats; f->name; f++) {
		bool found = !import_find(f->name);

		for (size_t i = 0; i < ARRAY_LEN(formats); i++)
			found |= !strcmp(formats[i].exporter, f->name);
		for (size_t i = 0; i < ARRAY_LEN(others); i++)
			found |= !strcmp(others[i], f->name);
		if (!found)
			fail_msg("%s is written and read, and has no line in the table of formats", f->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_of_cpu),
		cmocka_unit_test(waits),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(differences_are_seen),
		cmocka_unit_test(order_is_seen),
		cmocka_unit_test(none_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
