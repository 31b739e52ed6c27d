/* test_speedscope.c - speedscope's files, read and written, and there and back again. */
#include "test.h"

#include "golden.h"
#include "importing.h"
#include "profile/keys.h"

#define SCHEMA "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\""
#define FRAMES "\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"b.c\",\"line\":7,\"col\":3},{\"name\":\"c\"}]}"
#define FILE_OF(profiles) "{" SCHEMA "," FRAMES ",\"name\":\"n\",\"exporter\":\"x@1\",\"activeProfileIndex\":0,\"profiles\":[" profiles "]}"
#define SAMPLED(unit, samples, weights)                                                                                     \
	"{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"" unit "\",\"startValue\":0,\"endValue\":9,\"samples\":" samples \
	",\"weights\":" weights "}"
#define EVENTED(unit, events) \
	"{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"" unit "\",\"startValue\":0,\"endValue\":9,\"events\":[" events "]}"
#define EVENT(type, frame, at) "{\"type\":\"" type "\",\"frame\":" frame ",\"at\":" at "}"

static void sampled(void **state)
{
	struct profile *p = import_text("speedscope", FILE_OF(SAMPLED("milliseconds", "[[0,1],[0,2],[]]", "[1.5, 2,0.25]")), NULL);

	assert_int_equal(p->samples.n, 3);
	assert_int_equal(p->samples.v[1].time_ns, 1500000);
	assert_int_equal(p->samples.v[1].value, 2000000);
	assert_int_equal(p->samples.v[2].stack, 0);
	assert_int_equal(p->duration_ns, 3750000);
	assert_string_equal(profile_str(p, p->target), "n");
	assert_string_equal(profile_str(p, p->threads.v[0].name), "t");
	assert_string_equal(profile_str(p, p->events.v[0].unit), "ns");
	profile_free(p);
	import_is("speedscope", FILE_OF(SAMPLED("none", "[[0,1],[0]]", "[3,4]")), "t;a 4\nt;a;b 3\n");
	import_is("speedscope", FILE_OF(SAMPLED("none", "[[0,1],[0]]", "[3.5,4]")), "t;a 4\nt;a;b 3.5\n");
	import_is("speedscope", FILE_OF(SAMPLED("bytes", "[[0,1]]", "[1e3]")), "t;a;b 1000\n");
	import_is("speedscope", FILE_OF(SAMPLED("nanoseconds", "[[0]]", "[18446744073709551]")), "t;a 18446744073709551\n");
	import_is("speedscope", FILE_OF(SAMPLED("seconds", "[[2]]", "[2]") "," SAMPLED("seconds", "[[2,1]]", "[1]")),
		  "t;c 2000000000\nt;c;b 1000000000\n");
}

/* Old and new order of members, blanks, a byte order mark, escapes. */
static void forms(void **state)
{
	import_is("speedscope", "\xef\xbb\xbf { \"version\" : \"0.0.1\", \"profiles\" : [ " SAMPLED("none", "[ [ 0 , 1 ] ]", " [ 3 ] ") " ] , " FRAMES " } ",
		  "t;a;b 3\n");
	import_is("speedscope", "{\"shared\":{\"frames\":[{\"name\":\"\\u00e9\\ud83d\\ude00\\\"\\n\\u0000\"}]},\"profiles\":[" SAMPLED("none", "[[0]]", "[1]") "]}",
		  "t;\xc3\xa9\xf0\x9f\x98\x80\"\xef\xbf\xbd\xef\xbf\xbd 1\n");
}

static void evented(void **state)
{
	struct profile *p;

	import_is("speedscope",
		  FILE_OF(EVENTED("none", EVENT("O", "0", "0") "," EVENT("O", "1", "2") "," EVENT("C", "1", "5") "," EVENT("C", "0", "9"))),
		  "t;a 6\nt;a;b 3\n");
	/* An end without a beginning, and a frame that ends before one within it. */
	p = import_text("speedscope",
			FILE_OF(EVENTED("microseconds", EVENT("C", "2", "1") "," EVENT("O", "0", "1") "," EVENT("O", "1", "2") "," EVENT("C", "0", "4.5"))),
			NULL);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->samples.v[1].value, 2500);
	assert_int_equal(p->samples.v[1].time_ns, 2000);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LEFT_OUT), 2);
	profile_free(p);
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "ends too early" },
		{ "{" SCHEMA "}", "this is no file of speedscope's" },
		{ "[]", "an object" },
		{ FILE_OF(SAMPLED("none", "[[0,3]]", "[1]")), "an index into a table that has fewer rows" },
		{ FILE_OF(SAMPLED("none", "[[-2]]", "[1]")), "an index into a table" },
		{ FILE_OF(SAMPLED("none", "[[-1]]", "[1]")), "no index of a frame" },
		{ FILE_OF(SAMPLED("none", "[[1e308]]", "[1]")), "an index into a table" },
		{ FILE_OF(SAMPLED("none", "[[NaN]]", "[1]")), "no index of a frame" },
		{ FILE_OF(SAMPLED("none", "[[0],[0]]", "[1]")), "no weight for each sample" },
		{ FILE_OF(SAMPLED("none", "[[0]]", "[1,2]")), "more weights than samples" },
		{ FILE_OF(SAMPLED("none", "[[0],[0]]", "[18446744073709551615,1]")), "more than can be counted" },
		{ FILE_OF(SAMPLED("none", "[[0]]", "[1e308]")), "more than can be counted" },
		{ FILE_OF(SAMPLED("seconds", "[[0]]", "[99999999999999999999]")), "more than can be counted" },
		{ FILE_OF(SAMPLED("parsecs", "[[0]]", "[1]")), "no unit" },
		{ FILE_OF(SAMPLED("none", "[[0]]", "[-1]")), "no sample in it" },
		{ FILE_OF(EVENTED("none", EVENT("O", "0", "5") "," EVENT("C", "0", "4"))), "earlier than the one before" },
		{ FILE_OF(EVENTED("none", EVENT("X", "0", "5"))), "no type, frame or time" },
		{ FILE_OF(EVENTED("none", EVENT("O", "7", "5"))), "an index into a table" },
		{ FILE_OF(SAMPLED("none", "[[0]]", "[1] 2")), "a comma or a closing bracket" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		import_refused("speedscope", cases[i].text, cases[i].words);
}

static void cut_off(void **state)
{
	import_cut_everywhere("speedscope", FILE_OF(SAMPLED("seconds", "[[0,1],[2]]", "[1.5,2]") "," EVENTED("none", EVENT("O", "0", "0") "," EVENT("C", "0", "3"))));
}

/* A list in a list in a list: no recursion of ours, whatever is skipped. */
static void nested(void **state)
{
	size_t n = 1000000;
	char *text = malloc(n + 1);

	memset(text, '[', n);
	text[n] = 0;
	memcpy(text, "{\"a\":", 5);
	import_refused("speedscope", text, "ends too early");
	memset(text, '{', n);
	import_refused("speedscope", text, "the name of a member");
	free(text);
}

static void probes(void **state)
{
	static const char late[] = "{\"profiles\":[{\"type\": \"sampled\", \"startValue\":0,", other[] = "{\"type\":\"sampled\"}";
	static const char text[] = FILE_OF(SAMPLED("none", "[[0]]", "[1]"));

	assert_string_equal(import_probe(text, sizeof(text) - 1, true)->name, "speedscope");
	assert_string_equal(import_probe(late, sizeof(late) - 1, false)->name, "speedscope");
	assert_null(import_probe(other, sizeof(other) - 1, true));
}

static struct buf export_every(const struct profile *p)
{
	return export_all(p, "speedscope", (struct export_options){ .every_event = true });
}

static void written(void **state)
{
	struct sample s = sample_make();
	struct buf out = export_every(s.p);

	golden_check("sample.speedscope.json", out.data, out.n);
	buf_done(&out);
	profile_free(s.p);
}

static void there_and_back(void **state)
{
	struct sample s = sample_make();
	struct buf out = export_every(s.p), again;
	struct profile *p = import_bytes("speedscope", out.data, out.n, NULL);
	char *before, *after;

	assert_non_null(p);
	assert_int_equal(p->start_wall_ns, s.p->start_wall_ns);
	assert_int_equal(p->duration_ns, s.p->duration_ns);
	assert_string_equal(profile_str(p, p->target), "demo-node");
	again = export_every(p);
	assert_string_equal(out.data, again.data);
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

/* Units of a capture that somebody made up. */
static void odd_units(void **state)
{
	static const char *const units[] = { "count/7", "count/70", "count/100", "count/0", "parsecs" };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		struct sample s = sample_empty();
		uint32_t event = profile_add_event(s.p, "odd", units[i], "", 0);
		struct buf out;
		struct profile *p;

		sample_add(&s, s.main, sample_stack(&s, "a"), 1);
		profile_add_sample(s.p, &(struct profile_sample){ 0, 125, s.main, sample_stack(&s, "a"), event, 1 });
		for (int k = 0; k < 2; k++) {
			const char *format = k ? "firefox" : "speedscope";

			out = export_all(s.p, format, (struct export_options){ .every_event = true });
			p = import_bytes(format, out.data, out.n, NULL);
			assert_non_null(p);
			if (!strcmp(units[i], "count/100"))
				assert_int_equal(p->samples.v[1].value, 125);
			profile_free(p);
			buf_done(&out);
		}
		profile_free(s.p);
	}
}

static void hostile_and_deep(void **state)
{
	import_hostile_and_deep("speedscope");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sampled),     cmocka_unit_test(forms),          cmocka_unit_test(evented),
		cmocka_unit_test(refuses),     cmocka_unit_test(cut_off),        cmocka_unit_test(nested),
		cmocka_unit_test(probes),      cmocka_unit_test(written),        cmocka_unit_test(there_and_back),
		cmocka_unit_test(hostile_and_deep), cmocka_unit_test(odd_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
