/* test_heaptrack.c - heaptrack's files: what was allocated, freed, alive at the peak and at the end. */
#include "test.h"

#include <unistd.h>

#include "analyze/memory/heapseries.h"
#include "base/buf.h"
#include "golden.h"
#include "heapfiles.h"
#include "import/heap/heapfiles.h"

#define HEAD                                                        \
	"v 10400 3\nX ./prog a b\nI 1000 100\ns 9 /bin/prog\n"      \
	"s 4 main\ns 6 prog.c\ns 5 outer\ns 5 inner\n"              \
	"i 1000 1 2 3 9\nt 1 0\n"                                   \
	"i 2000 1 5 3 4 4 3 5\nt 2 1\n"
/* 1: main; 2: inner inlined into outer, called by main */

static const char good[] = HEAD "a 64 2\na 3e8 1\n"
			   "+ 0\n- 0\n"     /* temporary: 100 bytes */
			   "+ 1\n+ 1\n+ 0\n" /* 2100 alive */
			   "c a\nR 10\n"
			   "- 1\n+ 0\n"     /* 1200 */
			   "c 14\n"
			   "+ 1\n+ 1\n"     /* 3200: the peak */
			   "- 1\n- 0\nc 40\nR 8\n- 0\n"; /* 2000 */

static void events(void **state)
{
	struct profile *p = heapfile_read("heaptrack", good);
	struct buf folded = heapfile_folded(p);
	struct heapseries h;

	heapfile_expect(p, "alloc", 3 * 100 + 4 * 1000, 7);
	heapfile_expect(p, "freed", 3 * 100 + 2 * 1000, 5);
	/* heaptrack itself says four: a free is of the last kind, and after a free of the first one (its own reader forgets so). */
	heapfile_expect(p, "temporary", 3 * 100 + 1000, 4);
	heapfile_expect(p, "peak", 3200, 5);
	heapfile_expect(p, "heap", 2000, 2);
	assert_int_equal(profile_counter(p, KEY_HEAP_ALLOCATIONS), 7);
	assert_string_equal(profile_str(p, p->target), "prog");
	assert_string_equal(profile_str(p, p->processes.v[0].command), "./prog a b");
	/* The same peak, at the same time, by the samples over time. */
	assert_int_equal(heapseries_make(&h, p, &(struct select_options){ 0 }, NULL), 0);
	assert_int_equal(h.peak_bytes, 3200);
	assert_int_equal(h.peak_ns, 20000000);
	assert_int_equal(h.end_ns, 65000000);
	heapseries_done(&h);
	golden_check("import-heaptrack.folded", folded.data, folded.n);
	buf_done(&folded);
	profile_free(p);
}

static void inlined(void **state)
{
	struct profile *p = heapfile_read("heaptrack", HEAD "a 64 2\n+ 0\n");
	const struct profile_frame *f = &p->frames.v[p->stacks.v[p->samples.v[0].stack].frame];

	assert_int_equal(f->line_count, 2);
	assert_true(p->lines.v[f->first_line].inlined);
	assert_string_equal(profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name), "inner");
	assert_int_equal(p->lines.v[f->first_line + 1].line, 5);
	assert_string_equal(profile_str(p, p->modules.v[f->module].path), "/bin/prog");
	profile_free(p);
}

/* Strings have no size below format 3; format 0 and 0x10200 are from before there was a number. */
static void formats(void **state)
{
	struct profile *p = heapfile_read("heaptrack", "v 10100 2\nX x\ns /my prog\ns f g\ni 1 1 2 0 0\nt 1 0\na 8 1\n+ 0\n");

	heapfile_expect(p, "heap", 8, 1);
	assert_string_equal(profile_str(p, p->functions.v[0].name), "f g");
	profile_free(p);
	p = heapfile_read("heaptrack", "v 10200\nX x\ns f\ni 1 0 1 0 0\nt 1 0\na 8 1\n+ 0\n+ 0\n- 0\n");
	heapfile_expect(p, "heap", 8, 1);
	profile_free(p);
	p = heapfile_read("heaptrack", "v 10000\nX x\ns f\ni 1 0 1 0 0\nt 1 0\n+ 8 1 cafe\n+ 9 1 caff\n- caff\n- 1\n");
	heapfile_expect(p, "heap", 8, 1);
	heapfile_expect(p, "temporary", 9, 1);
	assert_int_equal(profile_counter(p, KEY_HEAP_FREES_UNKNOWN), 1);
	profile_free(p);
	import_refused("heaptrack", "v 10400 4\n", "newer than 3");
}

static const char raw[] = "v 10400 3\nx 9 /bin/prog\nX ./prog\nI 1000 100\nm 1 -\nm 1 x 10000 0 100 1000 200\n"
			  "m 8 /lib/a.b 7000000 0 1000\n"
			  "t 11010 0\nt 7000020 1\n+ 64 2 a0\n+ 64 2 b0\n- a0\n+ 64 2 b0\n- c0\n"
			  "m 1 -\nm 5 /lib2 7000000 0 1000\nt 7000020 1\nt 99999999 0\n+ 5 3 a0\n+ 6 4 d0\n+ 7 0 e0\nc 5\n";

static void raw_files(void **state)
{
	struct profile *p = heapfile_read("heaptrack", raw);
	const struct profile_frame *f = &p->frames.v[1];

	/* An address that is given out again was not seen to be freed. */
	heapfile_expect(p, "alloc", 300 + 5 + 6 + 7, 6);
	heapfile_expect(p, "freed", 100, 1);
	/* As heaptrack counts: the object that was freed is like the last one, and the first kind of all. */
	heapfile_expect(p, "temporary", 100, 1);
	assert_string_equal(profile_str(p, p->processes.v[0].exe), "/bin/prog");
	assert_int_equal(f->address, 0x20);
	assert_string_equal(profile_str(p, p->modules.v[f->module].path), "/lib/a.b");
	assert_int_equal(p->frames.v[0].address, 0x1010);
	assert_int_equal(p->frames.v[0].line_count, 0);
	assert_string_equal(profile_str(p, p->modules.v[p->frames.v[2].module].path), "/lib2");
	assert_int_equal(p->frames.v[3].module, PROFILE_NONE);
	assert_int_equal(p->mappings.n, 3);
	profile_free(p);
}

/* The file that ran is elsewhere: --symbols has it, by its name. */
static void files_of_raw(void **state)
{
	_cleanup_free_ char *own = realpath("/bin/sh", NULL); /* a build of clang's need not have a build-id */
	const char *symbols[] = { own, NULL };
	char *text;
	struct stream *in;
	struct profile *p = NULL;

	assert_non_null(own);
	text = mem_printf("v 10400 3\nx %zx /nowhere/%s\nX a\nm 1 x 10000 0 1000\nm 5 /none 20000 0 1000\nt 10010 0\nt 20010 1\n+ 5 2 a0\n",
			  strlen("/nowhere/") + strlen(str_base_name(own)), str_base_name(own));
	in = stream_of(text, strlen(text));
	assert_int_equal(heaptrack_import(&(struct import_input){ .stream = in, .name = "x", .options.symbols = symbols }, &p, NULL), 0);
	assert_int_equal(p->modules.n, 2);
	assert_int_equal(p->modules.v[0].build_id_size, 20);
	assert_int_equal(p->modules.v[1].build_id_size, 0);
	assert_string_equal(profile_str(p, p->modules.v[1].path), "/none");
	profile_free(p);
	stream_free(in);
	free(text);
}

static void attached(void **state)
{
	struct profile *p = heapfile_read("heaptrack", HEAD "a 64 2\n+ 0\n+ 0\nc 100\n+ 0\nA\n- 0\n+ 0\n");

	heapfile_expect(p, "alloc", 100, 1);
	heapfile_expect(p, "heap", 100, 1);
	assert_int_equal(profile_counter(p, KEY_HEAP_FREES_UNKNOWN), 1);
	assert_int_equal(profile_counter(p, KEY_HEAP_FROM_START), 0);
	profile_free(p);
}

static void bad_files(void **state)
{
	static const struct {
		const char *rest, *why;
	} cases[] = {
		{ "t 3 0\n", "line 13: there is no such address or caller" }, /* forward */
		{ "t 0 0\n", "line 13: there is no such address or caller" },
		{ "t 1 3\n", "line 13: there is no such address or caller" },
		{ "i 5 6\n", "line 13: there is no such address or module" },
		{ "i 5 1 6 0 0\n", "line 13: there is no such function" },
		{ "i 5 1 2 6 0\n", "line 13: there is no such function" },
		{ "a 5 3\n", "line 13: there is no such call" },
		{ "+ 0\n", "line 13: there is no such allocation" },
		{ "- 0\n", "line 13: there is no such allocation" },
		{ "+ -1\n", "line 13: there is no such allocation" },
		{ "a 10000000000000000 1\n", "line 13: there is no such allocation" },
		{ "a ffffffffffffffff 1\n+ 0\n", "line 14: allocations add up to more" },
		{ "a 4000000000000000 1\n+ 0\n- 0\n+ 0\n", "line 16: allocations add up to more" },
		{ "s ff a\n", "line 13: there is no such string" },
		{ "s ffffffffffffffff a\n", "line 13: there is no such string" },
		{ "c 5\nc 4\n", "line 14: the time goes back" },
		{ "c ffffffffffffffff\n", "line 13: there is no such time" },
		{ "R fffffffffffffff\n", "line 13: there is no such number of pages" },
		{ "X again\n", "line 13: there are two programs" },
		{ "A\nA\n", "line 14: it was attached twice" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = mem_printf("%s%s", HEAD, cases[i].rest);

		import_refused("heaptrack", text, cases[i].why);
		free(text);
	}
	import_refused("heaptrack", "v 10400 3\nx 1 a\nm 1 x\n", "the module has no address");
	import_refused("heaptrack", "v 10400 3\nx 1 a\nm 1 x 1 5\n", "no such segment");
	import_cut_everywhere("heaptrack", good);
	import_cut_everywhere("heaptrack", raw);
}

/* The slots of a long recording get longer; its sums stay. */
static void long_recording(void **state)
{
	struct buf b = { 0 };
	struct profile *p;
	const size_t n = 200000;

	buf_puts(&b, HEAD "a 64 2\n");
	for (size_t i = 1; i <= n; i++)
		buf_printf(&b, "+ 0\n+ 0\n- 0\nc %zx\n", i * 10);
	p = heapfile_read("heaptrack", b.data);
	heapfile_expect(p, "heap", n * 100, n);
	heapfile_expect(p, "peak", (n + 1) * 100, n + 1);
	heapfile_expect(p, "alloc", 2 * n * 100, 2 * n);
	assert_true(p->samples.n < 15000);
	buf_done(&b);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events),   cmocka_unit_test(inlined),	 cmocka_unit_test(formats),	   cmocka_unit_test(raw_files),
		cmocka_unit_test(files_of_raw),
		cmocka_unit_test(attached), cmocka_unit_test(bad_files), cmocka_unit_test(long_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
