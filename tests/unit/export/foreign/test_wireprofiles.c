/* test_wireprofiles.c - profiles of pprof and OTLP: golden files, and that what is written comes back when it is read. */
#include "test.h"

#include <errno.h>

#include "analyze/wait/cause.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "exporting.h"
#include "golden.h"
#include "import/import.h"
#include "import/pprof/pprof.h"
#include "profile/profile.h"

static const char *const formats[] = { "pprof", "otlp" };

static struct profile *import(const struct buf *b, const char *format)
{
	struct stream *in = stream_of(b->data, b->n);
	struct profile *p = NULL;
	struct err err = { 0 };

	if (import_find(format)->read(&(struct import_input){ .stream = in, .name = "x", .options.root = "/nonexistent" }, &p, &err))
		fail_msg("%s: %s", format, err.text);
	stream_free(in);
	return p;
}

static struct buf unpacked(const struct buf *b)
{
	struct stream *in = stream_of(b->data, b->n);
	struct buf out = { 0 };

	assert_int_equal(stream_whole(in, 1 << 20, &out.data, &out.n, NULL), 0);
	stream_free(in);
	return out;
}

static struct buf all(const struct profile *p, const char *format)
{
	return export_all(p, format, (struct export_options){ .every_event = true });
}

/* zlib's versions differ in what they write: the golden file is what is packed. */
static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b = all(s.p, "pprof"), plain = unpacked(&b), again = all(s.p, "pprof");

	assert_true(b.n == again.n && !memcmp(b.data, again.data, b.n));
	assert_memory_equal(b.data, "\x1f\x8b\x08\0\0\0\0\0", 8); /* no time */
	golden_check("sample.pprof", plain.data, plain.n);
	buf_done(&b);
	buf_done(&plain);
	buf_done(&again);
	b = all(s.p, "otlp");
	golden_check("sample.otlp", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

static char *folded_of(const struct profile *p, const char *event)
{
	struct select_options o = { 0 };
	struct selection sel;
	struct quality q;
	struct buf out = { 0 };

	assert_int_equal(select_event(p, event, &o.event, NULL), 0);
	assert_int_equal(selection_make(p, &o, &sel, NULL), 0);
	quality_measure(&q, p, &sel);
	assert_int_equal(folded_write(&(struct export_job){ p, &sel, &q, { .group = CALLTREE_BY_NAME, .mark_inlined = true } }, &out, NULL), 0);
	quality_done(&q);
	selection_done(&sel);
	buf_add(&out, "", 0);
	return out.data;
}

/* Waits with a count, bytes, files with a build-id, lines, names as the linker has them. */
static struct sample richer(void)
{
	struct sample s = sample_make();
	uint32_t wait = profile_add_event(s.p, "wait", "ns", "", 0), reads = profile_add_event(s.p, "read", "bytes", "", 0);
	uint32_t heap = profile_add_event(s.p, "heap", "bytes", "", 0), odd = profile_add_event(s.p, "half", "count/100", "", 0);
	uint32_t slow = sample_stack(&s, "_start;main;read;k:ksys_read;k:io_schedule"), frame;
	struct profile_function f = { .name = profile_string(s.p, "run(int)"), .linkage = profile_string(s.p, "_Z3runi"),
				      .file = profile_string(s.p, "run.cc"), .module = s.node };
	struct profile_line line = { profile_function(s.p, &f), 42 };

	memset(s.p->modules.v[s.node].build_id, 0xab, 20);
	s.p->modules.v[s.node].build_id_size = 20;
	frame = profile_frame(s.p, s.node, FRAME_USER, 0x1234);
	profile_set_lines(s.p, frame, &line, 1);
	profile_add_sample(s.p, &(struct profile_sample){ 5000000, 700, s.worker, slow, wait, 1 });
	profile_add_sample(s.p, &(struct profile_sample){ 6000000, 90000, s.worker, slow, wait, 12 });
	profile_add_sample(s.p, &(struct profile_sample){ 6000000, 4096, s.main, profile_stack(s.p, slow, frame), reads, 3 });
	profile_add_sample(s.p, &(struct profile_sample){ 2000000000, 1 << 20, s.main, profile_stack(s.p, 0, frame), heap, 5 });
	profile_add_sample(s.p, &(struct profile_sample){ 7000000, 250, s.main, sample_stack(&s, "main;k:[preempted]"), odd, 1 });
	return s;
}

static int compare_times(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->value, y->value) ?: ORDER(x->count, y->count);
}

static void check_times(struct profile *p, struct profile *q)
{
	assert_int_equal(p->samples.n, q->samples.n);
	vec_sort(&p->samples, compare_times);
	vec_sort(&q->samples, compare_times);
	for (size_t i = 0; i < p->samples.n; i++) {
		assert_int_equal(p->samples.v[i].time_ns, q->samples.v[i].time_ns);
		assert_int_equal(p->samples.v[i].value, q->samples.v[i].value);
		assert_int_equal(MAX(p->samples.v[i].count, 1), MAX(q->samples.v[i].count, 1));
	}
	assert_int_equal(p->start_wall_ns, q->start_wall_ns);
	assert_int_equal(p->duration_ns, q->duration_ns);
}

static void there_and_back(void **state)
{
	static const char *const events[] = { "cpu", "wait", "read", "heap", "half" };

	for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
		struct sample s = richer();
		struct buf once = all(s.p, formats[k]), twice;
		struct profile *p = import(&once, formats[k]), *q;
		struct stream *in = stream_of(once.data, once.n);
		const char *start;
		ssize_t n = stream_peek(in, &start, NULL);

		assert_string_equal(import_probe(start, n, true)->name, formats[k]);
		stream_free(in);
		for (size_t i = 0; i < ARRAY_LEN(events); i++) {
			_cleanup_free_ char *wanted = folded_of(s.p, events[i]), *got = folded_of(p, events[i]);

			assert_string_equal(got, wanted);
			assert_string_equal(profile_str(p, p->events.v[profile_find_event(p, events[i], NULL)].unit),
					    profile_str(s.p, s.p->events.v[profile_find_event(s.p, events[i], NULL)].unit));
		}
		assert_int_equal(p->threads.n, s.p->threads.n);
		assert_int_equal(p->processes.n, 2);
		for (size_t i = 0; i < p->modules.n; i++)
			if (!strcmp(profile_str(p, p->modules.v[i].path), "/opt/node/bin/node"))
				assert_memory_equal(p->modules.v[i].build_id, s.p->modules.v[s.node].build_id, 20);
		if (!strcmp(formats[k], "otlp"))
			check_times(s.p, p);
		/* What was read is written and read again as it was. */
		twice = all(p, formats[k]);
		q = import(&twice, formats[k]);
		for (size_t i = 0; i < ARRAY_LEN(events); i++) {
			_cleanup_free_ char *wanted = folded_of(p, events[i]), *got = folded_of(q, events[i]);

			assert_string_equal(got, wanted);
		}
		buf_done(&once);
		buf_done(&twice);
		profile_free(p);
		profile_free(q);
		profile_free(s.p);
	}
}

/* Between the two formats, too: without times OTLP has sums. */
static void from_one_to_the_other(void **state)
{
	struct sample s = richer();
	struct buf pprof = all(s.p, "pprof"), otlp;
	struct profile *p = import(&pprof, "pprof"), *q;
	_cleanup_free_ char *wanted = folded_of(s.p, "wait"), *got = NULL;

	otlp = all(p, "otlp");
	q = import(&otlp, "otlp");
	got = folded_of(q, "wait");
	assert_string_equal(got, wanted);
	buf_done(&pprof);
	buf_done(&otlp);
	profile_free(p);
	profile_free(q);
	profile_free(s.p);
}

/* How often a label's key, value and number are in a profile of pprof. */
static unsigned count_labels(const struct buf *b, const char *key, const char *text, uint64_t number)
{
	struct reader r = reader_of(b->data, b->n), in;
	struct protobuf_field f, g, h;
	VEC(char *) strings = { 0 };
	unsigned found = 0;

	while (protobuf_next(&r, &f))
		if (f.number == 6)
			vec_push(&strings, mem_strndup((const char *)f.data, f.n));
	r = reader_of(b->data, b->n);
	while (protobuf_next(&r, &f)) {
		if (f.number != 2)
			continue;
		in = protobuf_inside(&f);
		while (protobuf_next(&in, &g)) {
			uint64_t v[4] = { 0 };
			struct reader label = protobuf_inside(&g);

			while (g.number == 3 && protobuf_next(&label, &h))
				v[h.number] = h.value;
			found += g.number == 3 && !strcmp(strings.v[v[1]], key) && !strcmp(strings.v[v[2]], text) && v[3] == number;
		}
	}
	vec_done_each(&strings, e, free(*e));
	return found;
}

/* Blocks come back from OTLP, which has times, for each sample as it was. */
static void check_blocks(const struct profile *p)
{
	struct buf once = all(p, "otlp"), twice;
	struct profile *q = import(&once, "otlp");

	assert_int_equal(q->marks.n, 2);
	assert_string_equal(profile_str(q, q->marks.v[0].name), "block 77");
	assert_int_equal(q->marks.v[0].block.number, 77);
	assert_int_equal(q->marks.v[0].start_ns, 1000000);
	assert_int_equal(q->marks.v[0].end_ns, 599000001);
	assert_string_equal(profile_str(q, q->marks.v[1].name), "unknown");
	twice = all(q, "pprof");
	buf_done(&once);
	once = unpacked(&twice);
	assert_int_equal(count_labels(&once, "block", "", 77), 4);
	assert_int_equal(count_labels(&once, "block", "unknown", 0), 1);
	buf_done(&once);
	buf_done(&twice);
	profile_free(q);
}

static void labels(void **state)
{
	struct sample s = richer();
	struct buf b, plain;

	profile_add_mark(s.p, &(struct profile_mark){ .start_ns = 1, .end_ns = 600000000, .name = profile_string(s.p, "block 77"),
						      .kind = profile_string(s.p, "block"), .thread = PROFILE_NONE,
						      .block = { .number = 77, .known = BLOCK_NUMBER } });
	profile_add_mark(s.p, &(struct profile_mark){ .start_ns = 600000000, .end_ns = 700000000, .name = profile_string(s.p, "unknown"),
						      .kind = profile_string(s.p, "block"), .thread = PROFILE_NONE });
	b = all(s.p, "pprof");
	plain = unpacked(&b);
	assert_int_equal(count_labels(&plain, "thread", "worker 1", 0), 4);
	assert_int_equal(count_labels(&plain, "tid", "", 101), 4);
	/* In the first block are the first stack of the CPU, a wait, a read and a half; in the second one a stack. */
	assert_int_equal(count_labels(&plain, "block", "", 77), 4);
	assert_int_equal(count_labels(&plain, "block", "unknown", 0), 1);
	assert_int_equal(count_labels(&plain, "cause", "unknown", 0), 1);
	buf_done(&b);
	buf_done(&plain);
	check_blocks(s.p);
	profile_free(s.p);
}

/* Two events of one name are two types. */
static void no_two_types_of_one_name(void **state)
{
	struct sample s = sample_make();
	struct profile *p;
	struct buf b;

	profile_add_sample(s.p, &(struct profile_sample){ 1, 5, s.main, 0, profile_add_event(s.p, "cpu", "bytes", "", 0), 2 });
	b = all(s.p, "pprof");
	p = import(&b, "pprof");
	assert_int_equal(p->events.n, 2);
	assert_int_not_equal(profile_find_event(p, "cpu.2", "bytes"), PROFILE_NONE);
	buf_done(&b);
	profile_free(p);
	profile_free(s.p);
}

static void hostile_and_deep(void **state)
{
	for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
		struct sample hostile = export_hostile(), deep = export_deep(20000);
		struct buf b = all(hostile.p, formats[k]), d = all(deep.p, formats[k]);
		struct profile *p = import(&b, formats[k]), *q = import(&d, formats[k]);
		_cleanup_free_ char *wanted = folded_of(hostile.p, "cpu"), *got = folded_of(p, "cpu");
		uint32_t depth = 0;

		assert_string_equal(got, wanted);
		for (uint32_t at = q->samples.v[0].stack; at; at = q->stacks.v[at].parent)
			depth++;
		assert_int_equal(depth, 20000);
		buf_done(&b);
		buf_done(&d);
		profile_free(p);
		profile_free(q);
		profile_free(hostile.p);
		profile_free(deep.p);
	}
}

/* What does not fit into 63 bits is no number of these formats. */
static void sums_that_do_not_fit(void **state)
{
	struct sample s = sample_empty();
	struct selection sel;
	struct quality q;
	struct buf out = { 0 };
	struct err err = { 0 };

	for (int i = 0; i < 3; i++)
		profile_add_sample(s.p, &(struct profile_sample){ 1, INT64_MAX / 2, s.main, 0, s.cpu, 1 });
	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	quality_measure(&q, s.p, &sel);
	for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
		assert_int_equal(export_find(formats[k])->write(&(struct export_job){ s.p, &sel, &q, { .every_event = true } }, &out, &err), -ERANGE);
		assert_non_null(strstr(err.text, "add up to more"));
	}
	quality_done(&q);
	selection_done(&sel);
	buf_done(&out);
	profile_free(s.p);
}

/* An import that is cut anywhere is refused, or is a part. */
static void otlp_cut_anywhere(void **state)
{
	struct sample s = sample_empty();
	struct buf b;
	unsigned refusals = 0;

	sample_add(&s, s.main, sample_stack(&s, "main;run;i:inner"), 3);
	b = all(s.p, "otlp");
	for (size_t n = 0; n < b.n; n++) {
		struct buf part = { mem_alloc(n + 1), n, n + 1 };
		struct stream *in;
		struct profile *p = NULL;
		struct err err = { 0 };

		memcpy(part.data, b.data, n);
		in = stream_of(part.data, n);
		otlp_probe(part.data, n, false);
		if (otlp_import(&(struct import_input){ .stream = in, .name = "x", .options.root = "/nonexistent" }, &p, &err))
			refusals++;
		else
			profile_free(p);
		stream_free(in);
		buf_done(&part);
	}
	assert_true(refusals > b.n * 9 / 10);
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(from_one_to_the_other),
		cmocka_unit_test(labels),
		cmocka_unit_test(no_two_types_of_one_name),
		cmocka_unit_test(hostile_and_deep),
		cmocka_unit_test(sums_that_do_not_fit),
		cmocka_unit_test(otlp_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
