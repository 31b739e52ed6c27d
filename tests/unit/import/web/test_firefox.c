/* test_firefox.c - profiles of the Firefox profiler, read in the forms of several versions, written, and there and back again. */
#include "test.h"

#include "golden.h"
#include "importing.h"
#include "profile/keys.h"

#define META(version, more)                                                                                                    \
	"\"meta\":{\"interval\":1,\"startTime\":1700000000000.5,\"product\":\"prog\",\"preprocessedProfileVersion\":" version \
	",\"categories\":[{\"name\":\"User\",\"color\":\"yellow\"},{\"name\":\"Kernel\",\"color\":\"orange\"}],"               \
	"\"sampleUnits\":{\"time\":\"ms\",\"threadCPUDelta\":\"\xc2\xb5s\"}" more "}"
#define LIBS "\"libs\":[{\"name\":\"prog\",\"path\":\"/bin/prog\",\"breakpadId\":\"0\",\"codeId\":\"0102030405060708090a0b0c0d0e0f1011121314\"}]"
#define STRINGS "[\"main\",\"work\",\"0x1234\",\"sys_read\",\"w.rs\",\"block 7\",\"inner\",\"Other\"]"
/* main > work (line 9, with inner inlined into it) > sys_read; main > 0x1234 */
#define STACKS(prefix) "\"stackTable\":{\"length\":5,\"frame\":[0,1,2,3,4]," prefix "}"
#define PREFIX "\"prefix\":[null,0,1,2,0]"
#define FRAMES(more)                                                                                                       \
	"\"frameTable\":{\"length\":5,\"address\":[-1,256,256,-1,4660],\"inlineDepth\":[0,0,1,0,0],\"category\":[0,0,0,1,null]," \
	"\"func\":[0,1,4,2,3],\"line\":[null,9,5,null,null]" more "}"
#define FUNCS(file) "\"funcTable\":{\"length\":5,\"name\":[0,1,3,2,6],\"resource\":[-1,0,-1,0,0],\"lineNumber\":[3,null,null,null,null]," file "}"
#define RESOURCES "\"resourceTable\":{\"length\":1,\"lib\":[0],\"name\":[0],\"type\":[1]}"
#define SAMPLES "\"samples\":{\"length\":4,\"weightType\":\"samples\",\"weight\":null,\"stack\":[3,4,null,2],\"time\":[1.5,2.5,3.5,4.000001],\"threadCPUDelta\":[0,1000,2,500.5]}"
#define MARKERS                                                                                                                \
	"\"markers\":{\"length\":2,\"name\":[5,0],\"startTime\":[1,2],\"endTime\":[3.5,null],\"phase\":[1,0],\"category\":[0,0]," \
	"\"data\":[{\"type\":\"Block\",\"gas\":21000},null]}"
#define THREAD(more) "{\"name\":\"worker\",\"pid\":\"12.1\",\"tid\":13,\"processName\":\"prog\"," more "," MARKERS "}"

/* Strings, stacks and frames of each thread; times are distances; the shared tables of today. */
#define OLD "{" META("48", "") "," LIBS ",\"threads\":[" THREAD("\"stringArray\":" STRINGS "," STACKS(PREFIX) "," FRAMES("") "," FUNCS("\"fileName\":[null,4,null,null,4]") "," RESOURCES "," SAMPLES) "]}"
#define MIDDLE "{" META("57", "") "," LIBS ",\"threads\":[" THREAD(STACKS(PREFIX) "," FRAMES("") "," FUNCS("\"fileName\":[null,4,null,null,4]") "," RESOURCES "," SAMPLES) "],\"shared\":{\"stringArray\":" STRINGS "}}"
#define SHARED(stacks, frames) \
	"\"shared\":{\"stringArray\":" STRINGS "," stacks "," frames "," FUNCS("\"source\":[null,0,null,null,0]") "," RESOURCES ",\"sources\":{\"length\":1,\"filename\":[4]}}"
#define NEW "{" META("61", "") "," LIBS "," SHARED(STACKS(PREFIX), FRAMES("")) ",\"threads\":[" THREAD(SAMPLES) "]}"
#define NEWEST                                                                                                                     \
	"{\"threads\":[" THREAD("\"samples\":{\"length\":4,\"weightType\":\"samples\",\"weight\":[1,1,1,1],\"stack\":[3,4,null,2],"        \
				"\"timeDeltas\":[1.5,1,1,0.500001],\"threadCPUDelta\":[0,1000,2,500.5]}") "]," SHARED(             \
		STACKS("\"prefixOffset\":[0,1,1,1,4]"), FRAMES(",\"lib\":[-1,0,0,-1,0]")) "," LIBS "," META("70", "") "}"

static void check_one(const char *text)
{
	struct err err = { 0 };
	struct profile *p = import_text("firefox", text, &err);
	const struct profile_frame *f;
	const struct profile_module *m;
	uint32_t samples, cpu;
	char *folded;

	if (!p)
		fail_msg("%s", err.text);
	folded = import_folded(p);
	samples = profile_find_event(p, "samples", "count");
	cpu = profile_find_event(p, "cpu", "ns");
	assert_int_equal(p->samples.n, 5);
	assert_string_equal(folded, "worker;main;prog+0x1234 1\nworker;main;work;inner 1\nworker;main;work;inner;sys_read_[k] 1\n");
	free(folded);
	assert_int_equal(p->samples.v[0].event, samples);
	assert_int_equal(p->samples.v[0].time_ns, 1500000);
	assert_int_equal(p->samples.v[2].event, cpu);
	assert_int_equal(p->samples.v[2].value, 1000000);
	assert_int_equal(p->samples.v[4].time_ns, 4000001);
	assert_int_equal(p->samples.v[4].value, 500500);
	assert_int_equal(p->threads.v[0].tid, 13);
	assert_int_equal(p->processes.v[0].pid, 12);
	assert_string_equal(profile_str(p, p->processes.v[0].name), "prog");
	assert_int_equal(p->start_wall_ns, 1700000000000500000);
	/* The leaf of the first one is of the kernel, and is not in the file; that before it has two calls of one address. */
	f = &p->frames.v[p->stacks.v[p->samples.v[0].stack].frame];
	assert_int_equal(f->kind, FRAME_KERNEL);
	f = &p->frames.v[p->stacks.v[p->samples.v[4].stack].frame];
	assert_int_equal(f->line_count, 2);
	assert_int_equal(f->address, 256);
	assert_int_equal(p->lines.v[f->first_line].line, 5);
	assert_true(p->lines.v[f->first_line].inlined);
	assert_int_equal(p->lines.v[f->first_line + 1].line, 9);
	assert_string_equal(profile_str(p, p->functions.v[p->lines.v[f->first_line].function].file), "w.rs");
	/* An address without a name is for the symbolizer, in its module. */
	f = &p->frames.v[p->stacks.v[p->samples.v[1].stack].frame];
	assert_int_equal(f->line_count, 0);
	assert_int_equal(f->address, 0x1234);
	m = &p->modules.v[f->module];
	assert_string_equal(profile_str(p, m->path), "/bin/prog");
	assert_int_equal(m->build_id_size, 20);
	assert_int_equal(m->build_id[19], 0x14);
	assert_int_equal(p->marks.n, 1);
	assert_int_equal(p->marks.v[0].end_ns, 3500000);
	assert_int_equal(p->marks.v[0].block.number, 7);
	assert_int_equal(p->marks.v[0].block.gas, 21000);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LEFT_OUT), 2); /* a sample without a stack, a marker */
	profile_free(p);
}

static void versions(void **state)
{
	static const char *const list[] = { OLD, MIDDLE, NEW, NEWEST };

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		assert_string_equal(import_probe(list[i], strlen(list[i]), true)->name, "firefox");
		check_one(list[i]);
	}
}

#define SMALL(prefix, samples, more)                                                                                    \
	"{" META("61", "") ",\"shared\":{\"stringArray\":[\"a\",\"b\"],\"stackTable\":{\"frame\":[0,1],\"prefix\":" prefix \
	"},\"frameTable\":{\"func\":[0,1]},\"funcTable\":{\"name\":[0,1]}},\"threads\":[{\"name\":\"t\",\"samples\":" samples more "}]}"

static void weights(void **state)
{
	struct profile *p;

	import_is("firefox", SMALL("[null,0]", "{\"stack\":[0,1],\"time\":[0,1],\"weight\":[2.5,0.000001],\"weightType\":\"tracing-ms\"}", ""),
		  "t;a 2500000\nt;a;b 1\n");
	import_is("firefox", SMALL("[null,0]", "{\"stack\":[0,1],\"time\":[0,1],\"weight\":[7,8],\"weightType\":\"bytes\"}", ""), "t;a 7\nt;a;b 8\n");
	/* The difference of two profiles has negative weights: they are left out. */
	p = import_text("firefox", SMALL("[null,0]", "{\"stack\":[0,1],\"time\":[0,1],\"weight\":[-7,8],\"weightType\":\"samples\"}", ""), NULL);
	assert_int_equal(p->samples.n, 1);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LEFT_OUT), 1);
	profile_free(p);
	p = import_text("firefox", SMALL("[null,0]", "{\"stack\":[]}", ",\"nativeAllocations\":{\"time\":[1,2],\"stack\":[1,0],\"weight\":[64,-32]}"), NULL);
	assert_int_equal(p->samples.n, 2);
	assert_string_equal(profile_str(p, p->events.v[p->samples.v[0].event].name), "allocated");
	assert_string_equal(profile_str(p, p->events.v[p->samples.v[1].event].name), "freed");
	assert_int_equal(p->samples.v[1].value, 32);
	profile_free(p);
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "{}", "no \"meta\"" },
		{ "{\"meta\":{\"version\":30},\"threads\":[]}", "no preprocessedProfileVersion" },
		{ SMALL("[1,0]", "{\"stack\":[1],\"time\":[0]}", ""), "a caller comes after what it calls" },
		{ SMALL("[0,0]", "{\"stack\":[1],\"time\":[0]}", ""), "a caller comes after what it calls" },
		{ SMALL("[null,1e308]", "{\"stack\":[2],\"time\":[0]}", ""), "has fewer rows" },
		{ SMALL("[null,0]", "{\"stack\":[1,1],\"time\":[0,0],\"weight\":[18446744073709551615,1]}", ""), "more than can be counted" },
		{ SMALL("[null,0]", "{\"stack\":[1],\"time\":[0],\"weight\":[1e300]}", ""), "more than can be counted" },
		{ SMALL("[null,0]", "{\"stack\":[NaN],\"time\":[0]}", ""), "no sample in it" },
		{ SMALL("[null,0]", "{\"stack\":[1 1]}", ""), "a comma" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		import_refused("firefox", cases[i].text, cases[i].words);
}

static void cut_off(void **state)
{
	import_cut_everywhere("firefox", NEW);
	import_cut_everywhere("firefox", OLD);
}

static struct buf export_every(const struct profile *p)
{
	return export_all(p, "firefox", (struct export_options){ .every_event = true });
}

static void written(void **state)
{
	struct sample s = sample_make();
	struct buf out;

	profile_add_mark(s.p, &(struct profile_mark){ 1000000, 500000000, profile_string(s.p, "block 42"), profile_string(s.p, "block"), PROFILE_NONE,
						      { .known = BLOCK_NUMBER | BLOCK_GAS, .number = 42, .gas = 30000000 } });
	out = export_every(s.p);
	golden_check("sample.firefox.json", out.data, out.n);
	buf_done(&out);
	profile_free(s.p);
}

/* CPU time and waits are one track of a thread, with a marker for the long wait; counts are another one. */
static void tracks(void **state)
{
	struct sample s = sample_empty();
	uint32_t wait = profile_add_event(s.p, "wait", "ns", "", 0), faults = profile_add_event(s.p, "faults", "count", "", 1);
	uint32_t stack = sample_stack(&s, "main;run;k:futex_wait"), other = sample_stack(&s, "main;run");
	struct profile *p;
	struct buf out;

	sample_add(&s, s.main, other, 3);
	profile_add_sample(s.p, &(struct profile_sample){ 5000000, 2500001, s.main, stack, wait, 1 });
	profile_add_sample(s.p, &(struct profile_sample){ 6000000, 3, s.main, other, faults, 3 });
	profile_add_wake(s.p, &(struct profile_wake){ 5000000, 2500001, 70000, s.main, stack, s.worker, 0, 0 });
	out = export_every(s.p);
	assert_non_null(strstr(out.data, "\"name\":\"main (faults)\""));
	assert_non_null(strstr(out.data, "\"type\":\"Wait\",\"cause\":\"unknown\",\"waker\":\"worker 1\",\"waker_tid\":101,\"queue\":0.07"));
	assert_non_null(strstr(out.data, "\"[unknown]\""));
	p = import_bytes("firefox", out.data, out.n, NULL);
	import_same(s.p, p);
	buf_done(&out);
	profile_free(p);
	profile_free(s.p);
}

static void there_and_back(void **state)
{
	struct sample s = sample_make();
	struct buf out = export_every(s.p), again;
	struct profile *p = import_bytes("firefox", out.data, out.n, NULL);
	char *before, *after;

	assert_non_null(p);
	assert_int_equal(p->start_wall_ns, s.p->start_wall_ns);
	assert_int_equal(p->duration_ns, s.p->duration_ns);
	again = export_every(p);
	before = export_all(s.p, "folded", (struct export_options){ .mark_inlined = true }).data;
	after = export_all(p, "folded", (struct export_options){ .mark_inlined = true }).data;
	assert_string_equal(before, after);
	free(before);
	free(after);
	buf_done(&out);
	buf_done(&again);
	profile_free(p);
	profile_free(s.p);
}

static void hostile_and_deep(void **state)
{
	import_hostile_and_deep("firefox");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions), cmocka_unit_test(weights), cmocka_unit_test(refuses),        cmocka_unit_test(cut_off),
		cmocka_unit_test(written),  cmocka_unit_test(tracks),  cmocka_unit_test(there_and_back), cmocka_unit_test(hostile_and_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
