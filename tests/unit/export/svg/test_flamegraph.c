/* test_flamegraph.c - boxes, words and colours of folded stacks; the places are compared with flamegraph.pl's
 * in tests/system/report/flamegraph.sh. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "export/svg/boxes.h"
#include "export/svg/flamegraph.h"
#include "golden.h"
#include "folded/folded.h"
#include "folded/stacklist.h"

static struct stacklist list_of(const char *text)
{
	struct stream *in = stream_of(text, strlen(text));
	struct stacklist l;

	stacklist_init(&l);
	assert_int_equal(folded_read(in, &(struct folded_options){ 0 }, &l, NULL), 0);
	stream_free(in);
	return l;
}

static struct buf draw(const char *text, const struct flamegraph_options *o, int wanted)
{
	struct stacklist l = list_of(text);
	struct buf out = { 0 };
	struct err err = { 0 };

	assert_int_equal(flamegraph_write(&l, o, &out, &err), wanted);
	stacklist_done(&l);
	return out;
}

static void has(const struct buf *b, const char *what)
{
	if (!strstr(b->data, what))
		fail_msg("'%s' is not in the picture", what);
}

static void has_not(const struct buf *b, const char *what)
{
	if (strstr(b->data, what))
		fail_msg("'%s' is in the picture", what);
}

/* Up to the script, which is flame.js. */
static size_t before_script(const struct buf *b)
{
	return strstr(b->data, "<script>") - b->data;
}

static const char small[] = "a;f 3\na;f1;x 2\na;f;y 4\na;f;y;z_[k] 1\na;f10 1\nb b;-;c 5\nb b;--;<T> 1\n";

static void golden(void **state)
{
	struct flamegraph_options o = flamegraph_defaults();
	struct buf b = draw(small, &o, 0);

	golden_check("flamegraph.svg", b.data, before_script(&b));
	buf_done(&b);
	o.title = "A <chart>";
	o.subtitle = "in order";
	o.flamechart = o.inverted = true;
	o.width = 600;
	o.row_height = 20;
	o.font = "monospace";
	o.font_size = 10;
	o.count_name = "ms";
	o.name_type = "Frame:";
	o.palette = "blue";
	o.notes = "made -- by hand";
	o.factor = 2;
	o.total = 20;
	b = draw("a;b 1.5\na;b 2\na;c 1\na;b 3\n", &o, 0);
	golden_check("flamechart.svg", b.data, before_script(&b));
	buf_done(&b);
}

/* A function is drawn twice where sorted text puts another between its lines. */
static void boxes_are_those_of_sorted_lines(void **state)
{
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t start, end;
	} wanted[] = {
		{ "", 0, 0, 17 },       { "a", 1, 0, 11 },    { "f", 2, 0, 3 },    { "f10", 2, 3, 4 },
		{ "f1", 2, 4, 6 },      { "x", 3, 4, 6 },     { "f", 2, 6, 11 },   { "y", 3, 6, 11 },
		{ "z_[k]", 4, 10, 11 }, { "b b", 1, 11, 17 }, { "--", 2, 11, 12 }, { "<T>", 3, 11, 12 },
		{ "-", 2, 12, 17 },     { "c", 3, 12, 17 },
	};
	struct stacklist l = list_of(small);
	struct boxes b;

	boxes_make(&b, &l, false, 0);
	assert_int_equal(b.list.n, ARRAY_LEN(wanted));
	for (size_t i = 0; i < b.list.n; i++) {
		assert_string_equal(stacklist_name(&l, b.list.v[i].node), wanted[i].name);
		assert_int_equal(b.list.v[i].depth, wanted[i].depth);
		assert_int_equal(b.list.v[i].start, wanted[i].start);
		assert_int_equal(b.list.v[i].end, wanted[i].end);
	}
	assert_int_equal(b.depth, 4);
	boxes_done(&b);
	/* What is narrow goes with all that is above it, and the rest stays where it is. */
	boxes_make(&b, &l, false, 3);
	assert_int_equal(b.list.n, 8);
	assert_int_equal(b.list.v[3].start, 6);
	assert_int_equal(b.depth, 3);
	boxes_done(&b);
	boxes_make(&b, &l, true, 0);
	assert_int_equal(b.list.n, 14);
	assert_string_equal(stacklist_name(&l, b.list.v[3].node), "f1");
	boxes_done(&b);
	stacklist_done(&l);
}

static void differences(void **state)
{
	struct flamegraph_options o = flamegraph_defaults();
	struct buf b = draw("a;b 10 20\na;c 20 10\na;d 5 5\na 0 5\n", &o, 0);

	has(&b, "<title>all (40 samples, 100%)");
	has(&b, "<title>a (40 samples, 100.00%; +12.50%)");
	has(&b, "<title>b (20 samples, 50.00%; +25.00%)");
	has(&b, "<title>c (10 samples, 25.00%; -25.00%)");
	has(&b, "<title>d (5 samples, 12.50%; 0.00%)");
	has(&b, "rgb(255,0,0)");     /* b: as much as anything */
	has(&b, "rgb(0,0,255)");     /* c */
	has(&b, "rgb(255,105,105)"); /* a: half of that */
	has(&b, "rgb(255,255,255)"); /* d */
	buf_done(&b);
	o.negate = true;
	b = draw("a;b 10 20\n", &o, 0);
	has(&b, "b (20 samples, 100.00%; -50.00%)");
	has(&b, "rgb(0,0,255)");
	has_not(&b, "rgb(255,0,0)");
	buf_done(&b);
}

static void no_counts(void **state)
{
	static const char *const texts[] = { "", "\n\n", "nonsense\n", "a;b 0\n" };
	struct flamegraph_options o = flamegraph_defaults();

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct buf b = draw(texts[i], &o, -ENODATA);

		has(&b, "ERROR: there is no stack with a count");
		has(&b, "</svg>");
		buf_done(&b);
	}
}

static void hostile_names_are_text(void **state)
{
	static const char text[] = "</title><script>alert(1)</script>;]]>&amp;\"' 5\n"
				   "\x1b[31m;\xff\xfe;\xe2\x80\xae 5\na;;b 5\n";
	struct flamegraph_options o = flamegraph_defaults();
	struct buf b;

	o.title = "<script>";
	o.count_name = "<x>";
	o.font = "\"><script>";
	b = draw(text, &o, 0);
	b.data[before_script(&b)] = 0;
	has_not(&b, "<script");
	has(&b, "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; (5 &lt;x&gt;, 33.33%)");
	has(&b, "<title> (5 &lt;x&gt;, 33.33%)");
	for (const char *s = b.data; *s; s++)
		assert_true((unsigned char)*s >= 0x20 || *s == '\n');
	buf_done(&b);
}

static void deep_stacks(void **state)
{
	struct flamegraph_options o = flamegraph_defaults();
	struct buf text = { 0 }, b;
	size_t frames = 0;

	for (size_t i = 0; i < 4000; i++)
		buf_printf(&text, "%srecurse", i ? ";" : "");
	buf_puts(&text, " 1\n");
	b = draw(text.data, &o, 0);
	for (const char *s = b.data; (s = strstr(s, "<title>")); s++)
		frames++;
	assert_int_equal(frames, 4001);
	buf_done(&b);
	buf_done(&text);
}

static void palettes(void **state)
{
	/* palette, name, the plain palette that the name picks */
	static const char *const same[][3] = {
		{ "java", "x_[j]", "green" },   { "java", "x_[i]", "aqua" },  { "java", "x_[k]", "orange" },
		{ "java", "Lorg/x", "green" },  { "java", "a:::b", "green" }, { "java", "a::b", "yellow" },
		{ "java", "read", "red" },      { "js", "a/b_[j]", "green" }, { "js", "b_[j]", "aqua" },
		{ "js", "a::b", "yellow" },     { "js", "x/y.js", "green" },  { "js", "a:b", "aqua" },
		{ "js", " ", "green" },         { "js", "x_[k]", "orange" },  { "js", "read", "red" },
		{ "perl", "Perl_pp", "green" }, { "perl", "x.pl", "green" },  { "perl", "x_[k]", "orange" },
		{ "perl", "a::b", "yellow" },   { "perl", "read", "red" },    { "wakeup", "x", "aqua" },
		{ "chain", "x", "blue" },       { "chain", "x_[w]", "aqua" },
	};
	char a[PALETTE_COLOUR], b[PALETTE_COLOUR];
	uint64_t seed = 1;

	for (size_t i = 0; palette_names[i]; i++) {
		palette_colour(a, palette_names[i], "some_function", false, PALETTE_STABLE, &seed);
		assert_string_equal(a, palette_colour(b, palette_names[i], "some_function", false,
		                                      PALETTE_STABLE, &seed));
		assert_string_not_equal(a, "rgb(0,0,0)");
	}
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		if (strcmp(palette_colour(a, same[i][0], same[i][1], false, PALETTE_HASH, &seed),
		           palette_colour(b, same[i][2], same[i][1], false, PALETTE_HASH, &seed)))
			fail_msg("%s of %s is not %s", same[i][1], same[i][0], same[i][2]);
	palette_colour(a, "chain", "x", true, PALETTE_HASH, &seed);
	assert_string_equal(a, palette_colour(b, "aqua", "x", false, PALETTE_HASH, &seed));
	palette_colour(a, "hot", "x", false, PALETTE_RANDOM, &seed);
	assert_string_not_equal(a, palette_colour(b, "hot", "x", false, PALETTE_RANDOM, &seed));
}

static void backgrounds(void **state)
{
	const char *ends[2];

	assert_true(palette_background(NULL, "hot", ends));
	assert_string_equal(ends[1], "#eeeeb0");
	assert_true(palette_background(NULL, "mem", ends));
	assert_string_equal(ends[1], "#e0ffe0");
	assert_true(palette_background(NULL, "chain", ends));
	assert_string_equal(ends[1], "#e0e0ff");
	assert_true(palette_background(NULL, "purple", ends));
	assert_string_equal(ends[1], "#e8e8e8");
	assert_true(palette_background("#123abc", "hot", ends));
	assert_string_equal(ends[0], "#123abc");
	assert_null(ends[1]);
	assert_false(palette_background("#123", "hot", ends));
	assert_false(palette_background("pink", "hot", ends));
}

/* Names that are known keep their colours, new ones are added. */
static void palette_map_is_kept(void **state)
{
	struct flamegraph_options o = flamegraph_defaults();
	struct palette_map m;
	struct buf b, text = { 0 };

	palette_map_init(&m);
	palette_map_parse(&m, "a->rgb(1,2,3)\noperator->->rgb(4,5,6)\nno arrow\n");
	assert_string_equal(palette_map_get(&m, "operator->"), "rgb(4,5,6)");
	o.map = &m;
	b = draw("a;b 1\n", &o, 0);
	has(&b, "rgb(1,2,3)");
	assert_non_null(palette_map_get(&m, "b"));
	palette_map_set(&m, "b", "rgb(7,8,9)");
	palette_map_set(&m, "", "rgb(0,0,0)");
	palette_map_write(&m, &text);
	assert_string_equal(text.data,
	                    "->rgb(0,0,0)\na->rgb(1,2,3)\nb->rgb(7,8,9)\noperator->->rgb(4,5,6)\n");
	buf_done(&text);
	buf_done(&b);
	palette_map_done(&m);
}

static void attributes(void **state)
{
	struct flamegraph_options o = flamegraph_defaults();
	struct flamegraph_attributes a = { 0 };
	struct err err = { 0 };
	struct buf b;

	assert_int_equal(flamegraph_attributes_parse(&a,
	                                             "b\ttitle=my <b>\thref=x?a&b\ttarget=_self\tclass=c\n"
	                                             "c\tg_extra=data-x=\"1\"\ttitle_=no\n",
	                                             &err),
	                 0);
	o.attributes = &a;
	b = draw("a;b 1\na;c 1\n", &o, 0);
	has(&b, "<g class=\"c\" data-name=\"b\"");
	has(&b, "<title>my &lt;b&gt;</title><a xlink:href=\"x?a&amp;b\" target=\"_self\"><rect");
	has(&b, "</a></g>");
	has(&b, "<g data-x=\"1\"");
	has(&b, "<title>c (1 samples, 50.00%)</title><rect");
	assert_int_equal(flamegraph_attributes_parse(&a, "x\ty=z\nnonsense\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2"));
	buf_done(&b);
	flamegraph_attributes_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(boxes_are_those_of_sorted_lines),
		cmocka_unit_test(differences),
		cmocka_unit_test(no_counts),
		cmocka_unit_test(hostile_names_are_text),
		cmocka_unit_test(deep_stacks),
		cmocka_unit_test(palettes),
		cmocka_unit_test(backgrounds),
		cmocka_unit_test(palette_map_is_kept),
		cmocka_unit_test(attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
