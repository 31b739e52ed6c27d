/* test_callgrind.c - call graphs as stacks: costs are exact, however they are divided. */
#include "test.h"

#include <errno.h>

#include "base/file/lines.h"
#include "base/file/stream.h"
#include "golden.h"
#include "import/text/callgrind.h"
#include "importing.h"
#include "profile/keys.h"

static char *corpus(const char *name, size_t *ret_n)
{
	_cleanup_free_ char *path = mem_printf("%s/callgrind/%s", CORPUS_DIR, name);
	char *text;

	assert_int_equal(fd_read_path(path, 1 << 20, &text, ret_n), 0);
	return text;
}

/* What an event's samples add up to, of all functions, or of one as the leaf. */
static uint64_t sum(const struct profile *p, uint32_t event, const char *leaf)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_frame *f = &p->frames.v[p->stacks.v[s->stack].frame];
		const char *name = profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);

		if (s->event == event && (!leaf || !strcmp(name, leaf)))
			sum += s->value;
	}
	return sum;
}

/* Short names and positions, jumps, lines of another file, functions in a circle, three parts of two threads. */
static void golden(void **state)
{
	size_t n;
	_cleanup_free_ char *text = corpus("threads", &n);
	struct profile *p = import_good("callgrind", text);
	struct buf b = export_all(p, "folded", (struct export_options){ .group = CALLTREE_BY_THREAD, .weigh = EXPORT_WEIGH_VALUE });

	golden_check("callgrind.folded", b.data, b.n);
	buf_done(&b);
	b = export_all(p, "jsonl", (struct export_options){ .every_event = true });
	golden_check("callgrind.jsonl", b.data, b.n);
	buf_done(&b);
	assert_int_equal(p->events.n, 2);
	assert_int_equal(p->threads.n, 2);
	assert_int_equal(p->processes.v[0].pid, 77);
	assert_string_equal(profile_str(p, p->processes.v[0].name), "node");
	assert_int_equal(sum(p, 0, NULL), 325 + 16 + 3);
	assert_int_equal(sum(p, 1, NULL), 30 + 1);
	assert_int_equal(sum(p, 0, "malloc"), 60 + 10 + 9);
	assert_int_equal(sum(p, 0, "main"), 5 + 3);
	assert_int_equal(sum(p, 0, "even"), 60);
	assert_int_equal(sum(p, 1, "run"), 12);
	assert_int_equal(profile_counter(p, KEY_IMPORT_COST_MISSING), 0);
	profile_free(p);
}

/* A third of ten is no number of units: no unit is lost, and none is made. */
static void divisions_lose_nothing(void **state)
{
	struct profile *p = import_good("callgrind", "events: a\nfn=g\n1 10\n"
				       "fn=x\n1 1\ncfn=g\ncalls=1 1\n1 7\nfn=y\n1 1\ncfn=g\ncalls=1 1\n1 7\n"
				       "fn=z\n1 1\ncfn=g\ncalls=1 1\n1 7\n");
	struct buf b = export_all(p, "folded", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE, .group = CALLTREE_MERGED });

	assert_string_equal(b.data, "x 1\nx;g 4\ny 1\ny;g 3\nz 1\nz;g 3\n");
	buf_done(&b);
	profile_free(p);
}

/* What no call explains is outermost. */
static void costs_from_nowhere(void **state)
{
	struct profile *p = import_good("callgrind", "events: a\nfn=g\n1 10\nfn=x\n1 1\ncfn=g\ncalls=1 1\n1 6\n");
	struct buf b = export_all(p, "folded", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE, .group = CALLTREE_MERGED });

	assert_string_equal(b.data, "g 4\nx 1\nx;g 6\n");
	buf_done(&b);
	profile_free(p);
}

/* 2^40 ways lead to the last function: as many stacks are not made. */
static void many_ways(void **state)
{
	enum { LEVELS = 40 };
	struct buf b = { 0 };
	struct profile *p;
	uint32_t reason;
	size_t cut = 0;

	buf_puts(&b, "events: a\n");
	for (int i = 0; i < LEVELS; i++)
		for (int side = 0; side < 2; side++) {
			buf_printf(&b, "fn=f%d.%d\n1 1000000\n", i, side);
			for (int to = 0; to < 2 && i + 1 < LEVELS; to++)
				buf_printf(&b, "cfn=f%d.%d\ncalls=1 1\n%d %d000000\n", i + 1, to, to + 2, LEVELS - i - 1);
		}
	p = import_good("callgrind", b.data);
	assert_int_equal(sum(p, 0, NULL), 2 * LEVELS * 1000000);
	assert_int_equal(sum(p, 0, "f39.1"), 1000000);
	assert_true(p->samples.n < 2 * LEVELS * 256);
	for (size_t i = 0; i < p->samples.n; i++)
		cut += profile_stack_truncated(p, p->samples.v[i].stack, &reason);
	assert_true(cut > 0);
	profile_free(p);
	buf_done(&b);
}

static void deep_calls_and_circles(void **state)
{
	enum { FUNCTIONS = 10000 };

	for (int circle = 0; circle < 2; circle++) {
		struct buf b = { 0 };
		struct profile *p;

		buf_puts(&b, "events: a\n");
		for (int i = 0; i < FUNCTIONS; i++)
			buf_printf(&b, "fn=f%d\n1 3\ncfn=f%d\ncalls=1 1\n1 %d\n", i, circle ? (i + 1) % FUNCTIONS : i + 1,
				   3 * (FUNCTIONS - i - 1));
		p = import_good("callgrind", b.data);
		assert_int_equal(sum(p, 0, NULL), 3 * FUNCTIONS);
		assert_int_equal(sum(p, 0, "f9999"), 3);
		profile_free(p);
		buf_done(&b);
	}
}

/* The root that we write ourselves is no frame. */
static void our_own_root(void **state)
{
	struct profile *p = import_good("callgrind", "creator: gasflame 1\nevents: cpu\n# Unit of cpu: ns\nfn=[all]\ncfn=f\ncalls=1 0\n0 5\nfn=f\n1 5\n");
	struct buf b = export_all(p, "folded", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE, .group = CALLTREE_MERGED });

	assert_string_equal(b.data, "f 5\n");
	assert_string_equal(profile_str(p, p->events.v[0].unit), "ns");
	buf_done(&b);
	profile_free(p);
}

static void errors(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "", "names no events" },
		{ "version: 2\nevents: a\n", "line 1: version 2" },
		{ "events:\n", "line 1: no events" },
		{ "events: a\n1 2\n", "line 2: costs before a function" },
		{ "fn=f\n1 2\n", "line 2: costs before a line that names their events" },
		{ "events: a\nfn=(3)\n", "line 2: the name (3) was never given" },
		{ "events: a\nfn=f\n1 1\ncfn=(4)\n", "line 4: the name (4)" },
		{ "events: a\nfn=f\n4 1\n-5 1\n", "line 4: a position before 0" },
		{ "events: a\nfn=f\n18446744073709551615 1\n+1 1\n", "line 3: a source line beyond" },
		{ "positions: instr\nevents: a\nfn=f\n0xffffffffffffffff 1\n+1 1\n", "line 5: a position beyond" },
		{ "events: a\nfn=f\n1 18446744073709551615\n1 1\n", "line 4: costs add up to more" },
		{ "events: a\nfn=f\n1 18446744073709551616\n", "line 3: no cost, or one that is too large" },
		{ "events: a\nfn=f\n1 1 2\n", "line 3: more costs than events" },
		{ "events: a\nfn=f\n1 x\n", "line 3: no cost" },
		{ "events: a\nfn=f\ncalls=1 1\n", "line 3: a call without the function" },
		{ "events: a\nfn=f\ncfn=g\ncalls=x\n", "line 4: a call without its count" },
		{ "events: a\nfn=f\n1 1\nevents: b\n", "line 4: a part with other events" },
		{ "events: a\nfn=f\n1 1\nevents: a b\n", "line 4: a part with other events" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct profile *p = NULL;

		if (!import_data("callgrind", cases[i].text, strlen(cases[i].text), &p, &err))
			fail_msg("'%s' is no error", cases[i].text);
		if (!strstr(err.text, cases[i].expected))
			fail_msg("'%s' gave '%s'", cases[i].text, err.text);
	}
}

static void hostile_files(void **state)
{
	struct err err = { 0 };
	struct profile *p = NULL;
	size_t n;
	char *text = corpus("overflow-calls", &n);

	assert_int_equal(import_data("callgrind", text, n, &p, &err), -ERANGE);
	assert_non_null(strstr(err.text, "add up to more than can be counted"));
	free(text);
	/* In a circle counts may be anything: no sum is made of them. */
	text = corpus("circle", &n);
	assert_int_equal(import_data("callgrind", text, n, &p, &err), 0);
	assert_int_equal(sum(p, 0, NULL), 15);
	profile_free(p);
	free(text);
	n = LINES_LONGEST + (1 << 20);
	text = mem_alloc(n);
	memset(text, 'x', n);
	assert_int_equal(import_data("callgrind", text, n, &p, &err), -EFBIG);
	assert_non_null(strstr(err.text, "line 1: it is longer"));
	free(text);
}

static void too_long_a_text(void **state)
{
	static const char text[] = "a\nb\nc\n";
	struct stream *in = stream_of(text, strlen(text));
	struct lines t;
	struct err err = { 0 };
	char *line;
	size_t n;

	t = lines_of(in);
	t.limit = 5;
	assert_int_equal(lines_next(&t, &line, &n, &err), -EFBIG);
	assert_string_equal(err.text, "its text is longer than 0 MB");
	lines_done(&t);
	stream_free(in);
}

static void cut_anywhere(void **state)
{
	size_t n;
	_cleanup_free_ char *text = corpus("threads", &n);

	import_cut_bytes("callgrind", text, n);
}

/* A file that says more than it has was cut off, which is counted. */
static void missing_cost(void **state)
{
	struct profile *p = import_good("callgrind", "summary: 100\nevents: a\nfn=f\n1 30\n");

	assert_int_equal(profile_counter(p, KEY_IMPORT_COST_MISSING), 70);
	profile_free(p);
}

static void probes(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ "# callgrind format\nversion: 1\n", true },
		{ "version: 1\ncreator: x\n\nevents: Ir\n", true },
		{ "desc: I1 cache: 1\r\ncmd: ls\r\nevents: Ir\r\nfl=x\r\n", true },
		{ "events: Ir\n", true },
		{ "version: 1\nfn=x\n", false },
		{ "a;b 12\n", false },
		{ "desc: --time-unit=i\ncmd: ls\ntime_unit: i\n", false }, /* massif's */
		{ "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (callgrind_probe(cases[i].text, strlen(cases[i].text), true) != cases[i].is)
			fail_msg("'%s' was taken for something else", cases[i].text);
}

/* Weights, names, files and lines come back from our own files. */
static void round_trip(void **state)
{
	size_t n;
	_cleanup_free_ char *text = corpus("threads", &n);
	struct profile *p = import_good("callgrind", text), *again;
	struct buf b = export_all(p, "callgrind", (struct export_options){ .every_event = true });

	again = import_good("callgrind", b.data);
	for (uint32_t e = 0; e < 2; e++) {
		static const char *const names[] = { NULL, "main", "run", "even", "odd", "malloc", "worker" };

		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			assert_int_equal(sum(again, e, names[i]), sum(p, e, names[i]));
	}
	buf_done(&b);
	profile_free(again);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(divisions_lose_nothing),
		cmocka_unit_test(costs_from_nowhere),
		cmocka_unit_test(many_ways),
		cmocka_unit_test(deep_calls_and_circles),
		cmocka_unit_test(our_own_root),
		cmocka_unit_test(errors),
		cmocka_unit_test(hostile_files),
		cmocka_unit_test(too_long_a_text),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(missing_cost),
		cmocka_unit_test(probes),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
