/* test_import.c - folded text: what is a count, what is a stack, and what they become in the model. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "folded/folded.h"
#include "import/import.h"
#include "profile/profile.h"
#include "folded/stacklist.h"

static int read_text(struct stacklist *l, const char *text, struct folded_options o)
{
	struct stream *in = stream_of(text, strlen(text));
	int r;

	stacklist_init(l);
	r = folded_read(in, &o, l, NULL);
	stream_free(in);
	return r;
}

/* "a;b" of a node. */
static char *path_of(const struct stacklist *l, uint32_t node)
{
	static char out[256];
	struct buf b = { 0 };

	for (buf_puts(&b, ""); node; node = l->nodes.v[node].parent) {
		struct buf longer = { 0 };

		buf_printf(&longer, "%s%s%s", stacklist_name(l, node), b.n ? ";" : "", b.data);
		buf_done(&b);
		b = longer;
	}
	snprintf(out, sizeof(out), "%s", b.data);
	buf_done(&b);
	return out;
}

static void counts(void **state)
{
	static const struct {
		const char *line;
		bool good;
		const char *path;
		uint64_t value, before; /* in millionths */
	} cases[] = {
		{ "a;b 12", true, "a;b", 12000000, STACKLIST_NONE },
		{ "a;b 12\r", true, "a;b", 12000000, STACKLIST_NONE },
		{ "a;b\t7", true, "a;b", 7000000, STACKLIST_NONE },
		{ "a;b 0.5", true, "a;b", 500000, STACKLIST_NONE },
		{ "a;b 5.", true, "a;b", 5000000, STACKLIST_NONE },
		{ "a;b 1.2345678", true, "a;b", 1234568, STACKLIST_NONE },
		{ "a;b 0.9999999", true, "a;b", 1000000, STACKLIST_NONE },
		{ "a;b 0000000000000000000000012", true, "a;b", 12000000, STACKLIST_NONE },
		{ "a;b 3 4", true, "a;b", 4000000, 3000000 },
		{ "a;b 1 2 3", true, "a;b 1", 3000000, 2000000 },
		{ "a;b c 3.5 4", true, "a;b c", 4000000, 3500000 },
		{ "a;b  5", true, "a;b ", 5000000, STACKLIST_NONE },
		{ " 5", true, "", 5000000, STACKLIST_NONE },
		{ "a;;b;; 5", true, "a;;b", 5000000, STACKLIST_NONE },
		{ ";a 5", true, ";a", 5000000, STACKLIST_NONE },
		{ "", false },
		{ "a;b", false },
		{ "5", false },
		{ "a;b -5", false },
		{ "a;b +5", false },
		{ "a;b .5", false },
		{ "a;b 1e5", false },
		{ "a;b 0x10", false },
		{ "a;b 5 ", false },
		{ "a;b 1.2.3", false },
		{ "a;b 99999999999999999999999", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stacklist l;
		char *text = mem_printf("%s\nx 0.000001\n", cases[i].line);

		assert_int_equal(read_text(&l, text, (struct folded_options){ 0 }), 0);
		if (l.lines.n != 1u + cases[i].good || l.ignored != !cases[i].good)
			fail_msg("'%s' gave %zu lines", cases[i].line, l.lines.n);
		if (cases[i].good) {
			assert_string_equal(path_of(&l, l.lines.v[0].stack), cases[i].path);
			assert_int_equal(l.lines.v[0].value, cases[i].value);
			assert_int_equal(l.lines.v[0].before, cases[i].before);
		} else {
			assert_int_equal(l.ignored_line, 1);
		}
		stacklist_done(&l);
		free(text);
	}
}

/* Counts become finer as decimals are met; sums stay exact. */
static void decimals(void **state)
{
	struct stacklist l;
	uint64_t total;

	assert_int_equal(read_text(&l, "a 1\nb 2.5\nc 1 0.25\n", (struct folded_options){ 0 }), 0);
	assert_int_equal(l.decimals, 2);
	assert_int_equal(stacklist_unit(&l), 100);
	assert_int_equal(stacklist_total(&l, &total), 0);
	assert_int_equal(total, 375);
	assert_int_equal(l.lines.v[2].before, 100);
	stacklist_done(&l);
	/* What would not fit is an error, not another number. */
	assert_int_equal(read_text(&l, "a 999999999999999999\nb 0.000001\n", (struct folded_options){ 0 }),
	                 -ERANGE);
	stacklist_done(&l);
	assert_int_equal(read_text(&l, "a 999999999999999999\nb 8999999999999999999\nc 9\n",
	                           (struct folded_options){ 0 }),
	                 0);
	stacklist_done(&l);
}

static void orders_and_options(void **state)
{
	struct stacklist l;
	uint32_t *order;
	static const char text[] = "a;f1;x 2\na;f;y 4\na;f 3\na;f10 1\na 1\n;e 2\n 7\na;f;y;z 1\n";
	static const char *const sorted[] = { "", ";e", "a", "a;f", "a;f10", "a;f1;x", "a;f;y", "a;f;y;z" };

	assert_int_equal(read_text(&l, text, (struct folded_options){ 0 }), 0);
	order = stacklist_sort(&l);
	for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
		assert_string_equal(path_of(&l, l.lines.v[order[i]].stack), sorted[i]);
	free(order);
	stacklist_done(&l);
	assert_int_equal(read_text(&l, "a;b;c 1\n;x;y 2\n", (struct folded_options){ .reverse = true }), 0);
	assert_string_equal(path_of(&l, l.lines.v[0].stack), "c;b;a");
	assert_string_equal(path_of(&l, l.lines.v[1].stack), "y;x");
	stacklist_done(&l);
	assert_int_equal(
		read_text(&l, "t;a;b 1\nu;a;b 2\nt 3\n", (struct folded_options){ .first_apart = true }), 0);
	assert_int_equal(l.nodes.n, 3);
	assert_int_equal(l.lines.v[0].stack, l.lines.v[1].stack);
	assert_string_equal(strtab_get(&l.names, l.lines.v[1].first), "u");
	assert_int_equal(l.lines.v[2].stack, 0);
	stacklist_done(&l);
	assert_int_equal(read_text(&l, "a;f+0x1f;0xyz 1\na;f+0xAB;0xyz 2\n", (struct folded_options){ 0 }),
	                 0);
	stacklist_strip_hex(&l);
	assert_int_equal(l.lines.v[0].stack, l.lines.v[1].stack);
	assert_string_equal(path_of(&l, l.lines.v[0].stack), "a;f+0x...;0xyz");
	stacklist_done(&l);
}

/* Enough for the second thread, pieces that end within lines, and batches: all stacks are those of the text.
 */
static void many_lines(void **state)
{
	struct buf text = { 0 };
	struct stacklist l;
	uint64_t sum = 0, total;
	const size_t n = 20000;

	for (size_t i = 0; i < n; i++) {
		buf_puts(&text, "root");
		for (size_t k = 0, x = i * 2654435761u; k < i % 23; k++, x /= 3)
			buf_printf(&text, ";function_%zu", x % 7);
		/* Decimals come late, when thousands of lines wait for them. */
		buf_printf(&text, i == 15000 ? " %zu.5\n" : " %zu\n", i);
		sum += i * 10 + (i == 15000 ? 5 : 0);
	}
	assert_int_equal(read_text(&l, text.data, (struct folded_options){ 0 }), 0);
	assert_int_equal(l.lines.n, n);
	assert_int_equal(stacklist_total(&l, &total), 0);
	assert_int_equal(total, sum);
	for (size_t i = 0; i < n; i += 97) {
		uint32_t node = l.lines.v[i].stack;
		size_t depth = 0;

		for (; node; node = l.nodes.v[node].parent)
			depth++;
		assert_int_equal(depth, 1 + i % 23);
	}
	/* No pair of parent and name is there twice. */
	for (size_t i = 1; i < l.nodes.n; i++)
		assert_int_equal(nodes_put(&l.nodes, l.nodes.v[i].parent, l.nodes.v[i].frame), i);
	stacklist_done(&l);
	buf_done(&text);
}

static void strange_bytes(void **state)
{
	static const char text[] = "a\0b;c 5\n\xff\xfe;<script> 6\nno count";
	struct stream *in = stream_of(text, sizeof(text) - 1);
	struct stacklist l;

	stacklist_init(&l);
	assert_int_equal(folded_read(in, &(struct folded_options){ 0 }, &l, NULL), 0);
	assert_int_equal(l.lines.n, 2);
	assert_int_equal(l.ignored, 1);
	assert_string_equal(path_of(&l, l.lines.v[0].stack), "a\1b;c");
	assert_string_equal(path_of(&l, l.lines.v[1].stack), "\xff\xfe;<script>");
	stacklist_done(&l);
	stream_free(in);
}

static void probes(void **state)
{
	static const char sqlite[] = "SQLite format 3\0\0\0\0\0";

	assert_non_null(import_probe("a;b 5\n", 6, true));
	assert_non_null(import_probe("a;b 5", 5, true));
	assert_null(import_probe("", 0, true));
	assert_null(import_probe(sqlite, sizeof(sqlite), true));
	assert_null(import_probe("hello\nworld 5\nagain\n", 20, true));
	assert_non_null(import_probe("a;long;line", 11, false));
	assert_string_equal(import_find("folded")->name, "folded");
	assert_null(import_find("nothing"));
}

static struct profile *import_text(const char *text, struct err *err)
{
	struct profile *p = NULL;
	struct stream *in = stream_of(text, strlen(text));
	const char *start;
	int r;

	/* The first bytes were looked at by who wanted to know the format. */
	assert_int_equal(stream_peek(in, &start, NULL), strlen(text));
	r = folded_profile(&(struct import_input){ .stream = in, .name = "x.folded" }, &p, err);
	stream_free(in);
	assert_int_equal(!r, p != NULL);
	return p;
}

static void becomes_a_profile(void **state)
{
	struct profile *p = import_text("t;a;b_[k] 3\nt;a 2\nu;a;b_[k] 1\nu 4\nt;a;c_[i] 0\n", NULL);
	const struct profile_sample *s = p->samples.v;

	assert_int_equal(p->samples.n, 4);
	assert_int_equal(p->threads.n, 2);
	assert_string_equal(profile_str(p, p->threads.v[s[2].thread].name), "u");
	assert_true(profile_thread_imported(p, 0));
	assert_int_equal(s[0].stack, s[2].stack);
	assert_int_equal(p->frames.v[p->stacks.v[s[0].stack].frame].kind, FRAME_KERNEL);
	assert_int_equal(s[3].stack, 0);
	assert_int_equal(s[0].value, 3);
	assert_int_equal(s[0].count, 3);
	assert_string_equal(profile_str(p, p->events.v[0].name), "samples");
	assert_string_equal(profile_str(p, p->events.v[0].unit), "count");
	assert_true(p->finished);
	/* The index of the tree is made again at need. */
	assert_int_equal(profile_stack(p, p->stacks.v[s[0].stack].parent, p->stacks.v[s[0].stack].frame),
	                 s[0].stack);
	profile_free(p);
}

static void fractions_and_differences(void **state)
{
	struct profile *p = import_text("t;a 1.25\nt;b 2\n", NULL);
	struct err err = { 0 };

	assert_string_equal(profile_str(p, p->events.v[0].unit), "count/100");
	assert_int_equal(p->samples.v[0].value, 125);
	assert_int_equal(p->samples.v[1].value, 200);
	assert_int_equal(p->samples.v[0].count, 1);
	profile_free(p);
	p = import_text("t;a 1 5\nt;b 2 0\n", NULL);
	assert_int_equal(p->events.n, 2);
	assert_string_equal(profile_str(p, p->events.v[1].name), "before");
	assert_int_equal(p->samples.n, 3);
	assert_int_equal(p->samples.v[0].value, 5);
	assert_int_equal(p->samples.v[2].event, 1);
	profile_free(p);
	p = import_text("t;a 5000000000\n", NULL);
	assert_int_equal(p->samples.v[0].value, 5000000000);
	assert_int_equal(p->samples.v[0].count, 1);
	assert_int_equal(p->events.v[0].period, 0);
	profile_free(p);
	assert_null(import_text("nothing here\n", &err));
	assert_non_null(strstr(err.text, "no line of it is a stack"));
	p = import_text("", NULL);
	assert_int_equal(p->samples.n, 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(decimals),
		cmocka_unit_test(orders_and_options),
		cmocka_unit_test(many_lines),
		cmocka_unit_test(strange_bytes),
		cmocka_unit_test(probes),
		cmocka_unit_test(becomes_a_profile),
		cmocka_unit_test(fractions_and_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
