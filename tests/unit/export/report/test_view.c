/* test_view.c - the views as text and JSON: golden files, widths, hostile names, nothing at all. */
#include "test.h"

#include "analyze/tree/restack.h"
#include "base/err.h"
#include "exporting.h"
#include "export/report/cleantext.h"
#include "golden.h"

static const char *const phases[] = { "node::run", "fib", "HashBuilder", "nowhere", NULL };
static const char *const groups[] = { "trie=_trie", "node::([a-z]+)", NULL };
static const char *const own[] = { "node", "*_trie", NULL };

struct shown {
	struct export_options options;
	struct restack_options shape;
};

static const struct shown views[] = {
	{ { .view = EXPORT_VIEW_FUNCTIONS, .limit = 3 }, { 0 } },
	{ { .view = EXPORT_VIEW_MODULES }, { 0 } },
	{ { .view = EXPORT_VIEW_CRATES, .own = own }, { 0 } },
	{ { .view = EXPORT_VIEW_THREADS }, { 0 } },
	{ { .view = EXPORT_VIEW_GROUPS, .grouped = true }, { .groups = groups } },
	{ { .view = EXPORT_VIEW_TREE, .percent_limit = 5 }, { 0 } },
	{ { .view = EXPORT_VIEW_TREE, .depth = 2, .group = CALLTREE_BY_NAME },
	  { .root = "node::run|start_thread" } },
	{ { .view = EXPORT_VIEW_CALLERS, .pattern = "HashBuilder", .group = CALLTREE_BY_THREAD }, { 0 } },
	{ { .view = EXPORT_VIEW_CALLEES, .pattern = "node::run" }, { 0 } },
	{ { .view = EXPORT_VIEW_CALLEES, .pattern = "fib|help" }, { 0 } },
	{ { .view = EXPORT_VIEW_NEAREST_OWN, .pattern = "slice::cmp|ext4", .own = own }, { 0 } },
	{ { .view = EXPORT_VIEW_PHASES, .phases = phases }, { 0 } },
	{ { .view = EXPORT_VIEW_MARKS, .limit = 2 }, { 0 } },
	{ { .view = EXPORT_VIEW_ALL, .limit = 2, .grouped = true },
	  { .root = "node::run", .groups = groups } },
};

static void add_marks(struct profile *p)
{
	static const char *const names[] = { "block 24443168", "block 24443169", "", "tick" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		profile_add_mark(p,
				 &(struct profile_mark){ .start_ns = i * 300000000,
							 .end_ns = i * 300000000 + (i < 3 ? 200000000 : 0),
							 .name = profile_string(p, names[i]),
							 .kind = profile_string(p, i < 2 ? "block" : "phase"),
							 .thread = i == 1 ? 0 : PROFILE_NONE });
}

/* One view of a profile; its error instead where it has one. */
static void put_view(struct buf *out, struct profile *p, const char *format, struct shown v)
{
	struct selection sel;
	struct quality q;
	struct err err = { 0 };
	size_t before = out->n;
	int r;

	assert_int_equal(selection_make(p, &(struct select_options){ 0 }, &sel, NULL), 0);
	quality_measure(&q, p, &sel);
	r = restack_apply(p, &sel, &v.shape, &err);
	if (!r)
		r = export_find(format)->write(&(struct export_job){ p, &sel, &q, v.options }, out, &err);
	if (r) {
		out->n = before;
		buf_printf(out, "%s\n", err.text);
	}
	quality_done(&q);
	selection_done(&sel);
}

static struct buf all_views(struct sample s, const char *format, unsigned columns)
{
	struct buf out = { 0 };

	add_marks(s.p);
	for (size_t i = 0; i < ARRAY_LEN(views); i++) {
		struct shown v = views[i];

		v.options.columns = columns;
		put_view(&out, s.p, format, v);
		buf_putc(&out, '\n');
	}
	buf_putc(&out, 0);
	out.n--;
	profile_free(s.p);
	return out;
}

static void golden(void **state)
{
	struct buf b = all_views(sample_make(), "text", 0);

	golden_check("views.txt", b.data, b.n);
	buf_done(&b);
	b = all_views(sample_make(), "json", 0);
	golden_check("views.json", b.data, b.n);
	buf_done(&b);
}

static void lines_fit_a_terminal(void **state)
{
	static const unsigned widths[] = { 80, 110, 200 };

	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		struct buf b = all_views(sample_make(), "text", widths[i]);
		char *rest = b.data;

		for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			if (cleantext_columns(line) > widths[i] && strlen(line) > 7 && line[6] == '%')
				fail_msg("more than %u columns: %s", widths[i], line);
		buf_done(&b);
	}
}

static void hostile_names_do_nothing(void **state)
{
	static const char *const formats[] = { "text", "json" };

	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (int view = EXPORT_VIEW_ALL; view <= EXPORT_VIEW_MARKS; view++) {
			struct sample s = export_hostile();
			struct shown v = { .options = { .view = view,
							.pattern = ".",
							.grouped = true,
							.columns = 80,
							.phases = (const char *const[]){ "script", NULL } },
					   .shape = { .groups = (const char *const[]){ "(.+)\n", NULL } } };
			struct buf b = { 0 };

			add_marks(s.p);
			s.p->marks.v[0].name = s.p->marks.v[0].kind =
				profile_string(s.p, "\033]0;</script>\007\xff");
			put_view(&b, s.p, formats[i], v);
			for (size_t k = 0; k < b.n; k++)
				if ((unsigned char)b.data[k] < 0x20 && b.data[k] != '\n')
					fail_msg("view %d as %s has byte %d", view, formats[i], b.data[k]);
			assert_null(memchr(b.data, 0xff, b.n));
			buf_done(&b);
			profile_free(s.p);
		}
}

/* No samples, one, and a stack of 4,000 frames. */
static void empty_single_and_deep(void **state)
{
	struct sample one = sample_empty();
	struct buf b = all_views(sample_empty(), "text", 80);

	assert_non_null(strstr(b.data, "0 samples"));
	assert_null(strstr(b.data, "nan"));
	buf_done(&b);
	b = all_views(sample_empty(), "json", 0);
	assert_null(strstr(b.data, "nan"));
	buf_done(&b);
	sample_add(&one, one.main, sample_stack(&one, "node::run"), 1);
	b = all_views(one, "text", 80);
	assert_non_null(strstr(b.data, "  100 %   1.00 ms"));
	assert_non_null(strstr(b.data, "% of 1.00 ms, only 1 sample\n"));
	buf_done(&b);
	b = all_views(export_deep(4000), "text", 80);
	assert_non_null(strstr(b.data, "recurse"));
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(lines_fit_a_terminal),
		cmocka_unit_test(hostile_names_do_nothing),
		cmocka_unit_test(empty_single_and_deep),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
