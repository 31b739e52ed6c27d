/* test_chrometrace.c - Chrome traces and CPU profiles of V8 as stacks: self time is exact, what is cut or unbalanced is counted. */
#include "test.h"

#include "golden.h"
#include "import/trace/traceevents.h"
#include "importing.h"
#include "profile/keys.h"

#define EVENT(ph, name, ts, more) "{\"ph\":\"" ph "\",\"pid\":1,\"tid\":2,\"name\":\"" name "\",\"ts\":" ts more "}"
#define NAMED "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"t\"}}"
#define TRACE(events) "[" NAMED "," events "]"

static void spans(void **state)
{
	/* Ends and beginnings, whole spans, in each other and side by side. */
	static const char nested[] = TRACE(EVENT("B", "a", "10", "") "," EVENT("X", "b", "12.5", ",\"dur\":2.25") "," EVENT("B", "c", "16", "") ","
					   EVENT("E", "c", "17", "") "," EVENT("E", "", "20", "") "," EVENT("X", "d", "30", ",\"dur\":0.001"));
	struct profile *p;

	import_is("chrome-trace", nested, "t;a 6750\nt;a;b 2250\nt;a;c 1000\nt;d 1\n");
	p = import_text("chrome-trace", nested, NULL);
	assert_int_equal(p->samples.n, 6);
	assert_int_equal(p->samples.v[1].time_ns, 2500);
	assert_int_equal(p->duration_ns, 20001);
	assert_int_equal(p->threads.v[0].tid, 2);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LEFT_OUT), 0);
	profile_free(p);
	/* The order in the file does not matter to whole spans. */
	import_is("chrome-trace", TRACE(EVENT("X", "b", "2", ",\"dur\":2") "," EVENT("X", "a", "0", ",\"dur\":9")), "t;a 7000\nt;a;b 2000\n");
	import_is("chrome-trace", "{\"other\":[1,{}],\"traceEvents\":" TRACE(EVENT("X", "a", "0", ",\"dur\":9")) ",\"more\":{}}", "t;a 9000\n");
}

static void unbalanced(void **state)
{
	static const struct {
		const char *text, *folded;
		uint64_t left_out;
	} cases[] = {
		{ TRACE(EVENT("E", "a", "1", "") "," EVENT("X", "b", "2", ",\"dur\":1")), "t;b 1000\n", 1 },
		{ TRACE(EVENT("B", "a", "1", "") "," EVENT("B", "b", "3", "") "," EVENT("E", "a", "7", "")), "t;a 2000\nt;a;b 4000\n", 1 },
		{ TRACE(EVENT("B", "a", "1", "") "," EVENT("X", "b", "3", ",\"dur\":2")), "t;a 2000\nt;a;b 2000\n", 1 },
		{ TRACE(EVENT("X", "a", "0", ",\"dur\":10") "," EVENT("X", "b", "5", ",\"dur\":10")), "t;a 5000\nt;a;b 5000\n", 1 },
		{ TRACE(EVENT("B", "a", "9", "") "," EVENT("E", "a", "3", "") "," EVENT("X", "b", "1", ",\"dur\":1")), "t;b 1000\n", 1 },
		{ TRACE(EVENT("s", "f", "1", "") "," EVENT("C", "n", "1", "") "," EVENT("X", "b", "1", ",\"dur\":1")), "t;b 1000\n", 2 },
		{ "[" NAMED "," EVENT("X", "b", "1", ",\"dur\":1"), "t;b 1000\n", 0 },
		{ "[" NAMED "," EVENT("X", "b", "1", ",\"dur\":1") ",{\"ph\":\"X\",\"na", "t;b 1000\n", 0 },
		{ "[" NAMED "," EVENT("X", "b", "1", ",\"dur\":1") ",}", "t;b 1000\n", 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profile *p = import_text("chrome-trace", cases[i].text, NULL);
		uint64_t left_out = profile_counter(p, KEY_IMPORT_LEFT_OUT);

		profile_free(p);
		import_is("chrome-trace", cases[i].text, cases[i].folded);
		if (left_out != cases[i].left_out)
			fail_msg("%s: %llu left out", cases[i].text, (unsigned long long)left_out);
	}
}

/* Spans across threads and blocks are marks. */
static void marks(void **state)
{
	struct profile *p = import_text("chrome-trace",
					TRACE(EVENT("b", "request", "5", ",\"id\":\"0x1\"") "," EVENT("B", "on_new_payload", "6", ",\"args\":{\"block_num\":77}") "," EVENT("E", "on_new_payload", "9", "") ","
					      EVENT("e", "request", "15", ",\"id\":\"0x1\"")),
					NULL);

	assert_int_equal(p->samples.n, 1);
	assert_int_equal(p->marks.n, 2);
	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), "request"))
			assert_int_equal(p->marks.v[i].end_ns - p->marks.v[i].start_ns, 10000);
		else
			assert_int_equal(p->marks.v[i].block.number, 77);
	profile_free(p);
}

/* A name that is longer than the reader of events keeps. */
static void long_names(void **state)
{
	char name[400] = "", text[1000], folded[500];

	memset(name, 'n', 300);
	snprintf(text, sizeof(text), "[%s,{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":0,\"dur\":1}]", NAMED, name);
	snprintf(folded, sizeof(folded), "t;%s 1000\n", name);
	import_is("chrome-trace", text, folded);
}

#define FRAMES "\"stackFrames\":{\"1\":{\"name\":\"root\"},\"2\":{\"name\":\"leaf\",\"parent\":\"1\"},\"3\":{\"name\":\"l\",\"parent\":4},\"4\":{\"name\":\"l\",\"parent\":\"3\"}}"

static void samples(void **state)
{
	import_is("chrome-trace", "{\"traceEvents\":" TRACE(EVENT("P", "s", "4", ",\"sf\":2")) "," FRAMES ",\"samples\":[{\"pid\":1,\"tid\":\"2\",\"ts\":\"9\",\"weight\":\"3\",\"sf\":1}]}",
		  "t;root 3\nt;root;leaf 1\n");
	import_refused("chrome-trace", "{\"traceEvents\":" TRACE(EVENT("P", "s", "4", ",\"sf\":3")) "," FRAMES "}", "their own callers");
}

#define NODES                                                                                                                              \
	"[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\",\"lineNumber\":-1},\"children\":[2,3]},"                                      \
	"{\"id\":2,\"callFrame\":{\"functionName\":\"f\",\"url\":\"f.js\",\"lineNumber\":6},\"children\":[4]},"                                \
	"{\"id\":3,\"callFrame\":{\"functionName\":\"(idle)\"}},{\"id\":4,\"callFrame\":{\"functionName\":\"\",\"lineNumber\":2}}]"
#define CPUPROFILE(nodes, samples, deltas) "{\"nodes\":" nodes ",\"startTime\":1000,\"endTime\":1100,\"samples\":" samples ",\"timeDeltas\":" deltas "}"

static void v8(void **state)
{
	struct profile *p;

	import_is("cpuprofile", CPUPROFILE(NODES, "[2,4,3,2]", "[5,10,20,30]"), "main;(idle) 30000\nmain;f 45000\nmain;f;(anonymous) 20000\n");
	/* Times that go backwards are not counted twice. */
	import_is("cpuprofile", CPUPROFILE(NODES, "[2,3,2]", "[0,-10,30]"), "main;(idle) 20000\nmain;f 80000\n");
	import_refused("cpuprofile", CPUPROFILE(NODES, "[2,3]", "[0]"), "times between them");
	import_refused("cpuprofile", CPUPROFILE("[{\"id\":1,\"parent\":2,\"callFrame\":{\"functionName\":\"a\"}},{\"id\":2,\"parent\":1}]", "[1,1]", "[1,1]"), "their own callers");
	/* The pieces of one in a trace. */
	p = import_text("chrome-trace",
			"[" NAMED ",{\"ph\":\"P\",\"name\":\"Profile\",\"pid\":1,\"tid\":2,\"id\":\"0x1\",\"ts\":1,\"args\":{\"data\":{\"startTime\":100}}},"
			"{\"ph\":\"P\",\"name\":\"ProfileChunk\",\"pid\":1,\"tid\":9,\"id\":\"0x1\",\"ts\":2,\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":"
			"[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}},{\"id\":2,\"parent\":1,\"callFrame\":{\"functionName\":\"g\"}}],\"samples\":[2,2]},"
			"\"timeDeltas\":[0,7]}}},"
			"{\"ph\":\"P\",\"name\":\"ProfileChunk\",\"pid\":1,\"tid\":9,\"id\":\"0x1\",\"ts\":3,\"args\":{\"data\":{\"cpuProfile\":{\"samples\":[1]},\"timeDeltas\":[3],\"endTime\":120}}}]",
			NULL);
	assert_int_equal(p->samples.n, 3);
	assert_int_equal(p->samples.v[0].value, 7000);
	assert_int_equal(p->samples.v[1].value, 3000);
	assert_int_equal(p->samples.v[2].value, 10000);
	assert_string_equal(profile_str(p, p->threads.v[p->samples.v[0].thread].name), "t");
	profile_free(p);
}

static void refuses(void **state)
{
	import_refused("chrome-trace", "[]", "no sample");
	import_refused("chrome-trace", "hello", "no Chrome trace");
	import_refused("chrome-trace", TRACE(EVENT("X", "a", "1e300", ",\"dur\":1")), "no sample");
	import_refused("chrome-trace", TRACE(EVENT("X", "a", "-5", ",\"dur\":1")), "no sample");
	import_refused("cpuprofile", "{\"nodes\":[]}", "no nodes");
	import_refused("cpuprofile", "{\"head\":{\"functionName\":\"(root)\",\"children\":[]},\"samples\":[1],\"timestamps\":[5]}", "before version 58");
}

static void cut_off(void **state)
{
	import_cut_everywhere("chrome-trace", "{\"traceEvents\":" TRACE(EVENT("B", "a", "1", "") "," EVENT("P", "s", "4", ",\"sf\":2") "," EVENT("E", "a", "7", "")) "," FRAMES "}");
	import_cut_everywhere("cpuprofile", CPUPROFILE(NODES, "[2,4,3,2]", "[5,10,20,30]"));
}

/* As many threads as events, and beginnings within beginnings. */
static void many(void **state)
{
	struct buf text = { 0 };
	struct profile *p;

	buf_putc(&text, '[');
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"a\",\"ts\":%d,\"dur\":1},{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"name\":\"b\",\"ts\":%d},\n", i, i, i);
	p = import_text("chrome-trace", text.data, NULL);
	assert_int_equal(p->threads.n, 20000);
	profile_free(p);
	buf_done(&text);
}

struct texts {
	struct traceevents *t;
	struct buf all;
};

static void got_text(void *context, const struct trace_event *e)
{
	struct texts *x = context;
	size_t n;
	const char *text = traceevents_text(x->t, &n);

	buf_add(&x->all, text ? text : "-", text ? n : 1);
	buf_putc(&x->all, '|');
}

static void got_part(void *context, const char *key, const char *text, size_t n)
{
	struct texts *x = context;

	buf_printf(&x->all, "%s=%.*s|", key, (int)n, text);
}

/* The text of an event is whole, however its bytes come; one that is too long has none. */
static void texts(void **state)
{
	static const char trace[] = "{\"samples\": [1,{}],\"traceEvents\":[{\"a\": [\"}]\"]}, {\"b\":\"0123456789012345678901234567890\"},{}],\"stackFrames\":{\"1\":{}}}";

	for (size_t step = 1; step <= sizeof(trace); step++) {
		struct texts x = { 0 };

		x.t = traceevents_new(got_text, &x);
		traceevents_keep(x.t, 30, got_part);
		for (size_t i = 0; i < sizeof(trace) - 1; i += step) {
			char *piece = mem_strndup(trace + i, MIN(step, sizeof(trace) - 1 - i));

			assert_int_equal(traceevents_feed(x.t, piece, strlen(piece), NULL), 0);
			free(piece);
		}
		assert_string_equal(x.all.data, "samples=[1,{}]|{\"a\": [\"}]\"]}|-|{}|stackFrames={\"1\":{}}|");
		traceevents_free(x.t);
		buf_done(&x.all);
	}
}

static void probes(void **state)
{
	static const struct {
		const char *text, *format;
	} cases[] = {
		{ TRACE(EVENT("B", "a", "1", "")), "chrome-trace" },
		{ " \n[{\"name\":\"x\", \"ph\" : \"B\"", "chrome-trace" },
		{ "{\"traceEvents\":[]}", "chrome-trace" },
		{ CPUPROFILE(NODES, "[]", "[]"), "cpuprofile" },
		{ "{\"head\":{\"functionName\":\"(root)\"", "cpuprofile" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(import_probe(cases[i].text, strlen(cases[i].text), false)->name, cases[i].format);
	assert_null(import_probe("[1,2,3]", 7, true));
}

static void as_text(void **state)
{
	static const char text[] = TRACE(EVENT("B", "main", "0", "") "," EVENT("X", "execute", "100", ",\"dur\":2500.5") "," EVENT("X", "commit", "3000", ",\"dur\":1000") ","
					 EVENT("E", "main", "5000", ""));
	struct profile *p = import_text("chrome-trace", text, NULL);
	char *folded = import_folded(p);

	golden_check("chrometrace.folded", folded, strlen(folded));
	free(folded);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans),   cmocka_unit_test(unbalanced), cmocka_unit_test(marks), cmocka_unit_test(long_names), cmocka_unit_test(samples), cmocka_unit_test(v8),
		cmocka_unit_test(refuses), cmocka_unit_test(cut_off),    cmocka_unit_test(many),  cmocka_unit_test(texts),      cmocka_unit_test(probes),  cmocka_unit_test(as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
