#include "test.h"

#include "base/sanitized.h"
#include "base/clock.h"
#include "exporting.h"
#include "golden.h"

static size_t occurrences(const char *text, const char *what)
{
	size_t n = 0, length = strlen(what);

	/* Not strstr(): sanitizers make it look at all of the text each time. */
	for (; *text; text++)
		n += *text == *what && !strncmp(text, what, length);
	return n;
}

static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b;

	b = export_all(s.p, "svg", (struct export_options){ .group = CALLTREE_BY_NAME });
	golden_check("sample.svg", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "svg",
		       (struct export_options){ .inverted = true,
						.reverse = true,
						.width_px = 600,
						.title = "An icicle",
						.weigh = EXPORT_WEIGH_VALUE });
	golden_check("sample-icicle.svg", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

/* Outside of the script that we wrote there is no element that we did not write. */
static void well_formed(struct buf *b, size_t frames)
{
	char *script = strstr(b->data, "<script><![CDATA[\n"), *end;

	assert_non_null(script);
	end = strstr(script, "]]>");
	assert_string_equal(end, "]]></script>\n</svg>\n");
	*script = 0;
	assert_int_equal(occurrences(b->data, "<script"), 0);
	assert_int_equal(occurrences(b->data, "<g><title>"), frames);
	assert_int_equal(occurrences(b->data, "<title>"), frames);
	assert_int_equal(occurrences(b->data, "<text"), occurrences(b->data, "</text>"));
	for (const char *s = b->data; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\n')
			fail_msg("a control character in the picture");
}

static void hostile_names_are_text(void **state)
{
	struct sample s = export_hostile();
	struct buf b = export_all(s.p, "svg", (struct export_options){ .group = CALLTREE_BY_NAME,
								      .title = "<script>\"&'" });

	well_formed(&b, 1 + 2 + 13 + 1);
	assert_non_null(
		strstr(b.data,
		       "&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; (10 samples, 50.00%)"));
	buf_done(&b);
	profile_free(s.p);
}

static void empty_and_single(void **state)
{
	struct profile *none = profile_new();
	struct sample s = sample_empty();
	struct buf b = export_all(none, "svg", (struct export_options){ 0 });

	well_formed(&b, 0);
	assert_non_null(strstr(b.data, "No samples."));
	buf_done(&b);
	profile_free(none);
	sample_add(&s, s.main, sample_stack(&s, "main"), 1);
	b = export_all(s.p, "svg", (struct export_options){ 0 });
	well_formed(&b, 2);
	assert_non_null(strstr(b.data, "main (1 sample, 100.00%)"));
	assert_non_null(strstr(b.data, "<rect x=\"10\" y=\"73\" width=\"1180\" height=\"15\""));
	buf_done(&b);
	profile_free(s.p);
}

static void deep_stacks(void **state)
{
	struct sample s = export_deep(4000);
	struct buf b = export_all(s.p, "svg", (struct export_options){ 0 });

	well_formed(&b, 4001);
	buf_done(&b);
	profile_free(s.p);
}

/* Nothing below 0.1 px: 20,000 leaves are too many for 1,180 px, and their parent is still there. */
static void narrow_frames_are_left_out(void **state)
{
	struct sample s = sample_empty();
	struct buf b;
	char name[16];

	for (size_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		sample_add(&s, s.main, sample_stack(&s, "main;%s", name), 1);
	}
	sample_add(&s, s.main, sample_stack(&s, "main;wide;leaf"), 2);
	b = export_all(s.p, "svg", (struct export_options){ 0 });
	well_formed(&b, 4);
	buf_done(&b);
	profile_free(s.p);
}

/* 100,000 frames, all of them drawn. The limit is for sanitizers and slow machines. */
static void large_pictures_are_fast(void **state)
{
	const size_t stacks = SANITIZED ? 100 : 1000; /* the time is proven without sanitizers */
	struct sample s = sample_empty();
	uint32_t base[1000];
	uint64_t start_ns;
	struct buf b;
	char name[64];

	for (size_t i = 0; i < stacks; i++) {
		snprintf(name, sizeof(name), "crate%zu::module::function<T, U>::method%zu", i % 40, i);
		base[i] = profile_stack(s.p, 0, profile_named_frame(s.p, s.node, FRAME_USER, name));
		for (size_t depth = 1; depth < 100; depth++) {
			snprintf(name, sizeof(name), "crate::module%zu::function<T, U>::method%zu", depth,
				 (i * depth) % 977);
			base[i] = profile_stack(s.p, base[i],
						profile_named_frame(s.p, s.node, FRAME_USER, name));
		}
	}
	for (size_t i = 0; i < stacks; i++)
		sample_add(&s, s.main, base[i], 120);
	start_ns = clock_process_cpu_ns();
	b = export_all(s.p, "svg", (struct export_options){ 0 });
	print_message("%zu stack nodes -> %zu bytes: %.1f ms of CPU time\n", s.p->stacks.n, b.n,
		      (clock_process_cpu_ns() - start_ns) / 1e6);
	assert_true(clock_process_cpu_ns() - start_ns < 5000000000);
	well_formed(&b, 100 * stacks + 1);
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(hostile_names_are_text),
		cmocka_unit_test(empty_and_single),
		cmocka_unit_test(deep_stacks),
		cmocka_unit_test(narrow_frames_are_left_out),
		cmocka_unit_test(large_pictures_are_fast),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
