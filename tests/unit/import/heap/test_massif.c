/* test_massif.c - valgrind's massif: snapshots, trees, and what is wrong with them. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "heapfiles.h"
#include "golden.h"

#define SNAPSHOT(n, time, heap, tree)                                                                                  \
	"#-----------\nsnapshot=" n "\n#-----------\ntime=" time "\nmem_heap_B=" heap "\nmem_heap_extra_B=16\nmem_stacks_B=0\n" \
	"heap_tree=" tree "\n"
#define HEAD "desc: --massif-out-file=x\ncmd: /opt/my/prog -v 3\ntime_unit: "
#define ROOT "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"

static const char good[] = HEAD "ms\n" SNAPSHOT("0", "0", "0", "empty") SNAPSHOT("1", "5", "1000", "detailed")
	"n2: 1000 " ROOT
	" n1: 900 0x109176: keep (prog.c:4)\n"
	"  n0: 900 0x1091DC: main (prog.c:9)\n"
	" n0: 100 in 3 places, all below massif's threshold (1.00%)\n"
	SNAPSHOT("2", "9", "6000", "peak")
	"n2: 6000 " ROOT
	" n2: 5000 0x109176: keep (prog.c:4)\n"
	"  n0: 4000 0x1091F2: f(int (*)(char), a b) (in /usr/lib/a b (1).so)\n"
	"  n0: 600 0x1091DC: main (prog.c:9)\n"
	" n0: 1000 0x4444: ???\n"
	SNAPSHOT("3", "12", "5", "empty") SNAPSHOT("4", "20", "700", "detailed")
	"n1: 700 " ROOT
	" n0: 700 0x109176: keep (prog.c:4)\n";

static void snapshots(void **state)
{
	struct profile *p = heapfile_read("massif", good);
	struct buf folded = heapfile_folded(p);

	heapfile_expect(p, "heap", 700, 1);
	heapfile_expect(p, "peak", 6000, 4);
	heapfile_expect(p, "rise", 1000 + 5400 + 300, 2 + 3 + 1); /* 4000, 400, 1000: keep stays with 400 */
	assert_int_equal(heapfile_sum(p, "rise").bytes - heapfile_sum(p, "fall").bytes, 700);
	assert_int_equal(heapfile_sum(p, "growth").bytes, 700);
	assert_int_equal(heapfile_sum(p, "shrunk").bytes, 1000);
	assert_int_equal(p->duration_ns, 20000000);
	assert_int_equal(profile_counter(p, KEY_HEAP_DUMPS), 3);
	assert_string_equal(profile_str(p, p->target), "prog");
	assert_string_equal(profile_str(p, p->processes.v[0].command), "/opt/my/prog -v 3");
	/* Each snapshot is a point of the series, with a tree or without. */
	assert_int_equal(p->points.n, 10);
	assert_int_equal(p->points.v[0].value, 0);
	golden_check("import-massif.folded", folded.data, folded.n);
	buf_done(&folded);
	profile_free(p);
}

/* The exporter's file has the same totals, peak and times when it is read again. */
static void round_trip(void **state)
{
	struct profile *p = heapfile_read("massif", good), *again;
	struct buf out = heapfile_export(p, "massif", "heap", (struct export_options){ 0 });

	again = heapfile_read("massif", out.data);
	heapfile_expect(again, "heap", 700, 1);
	assert_int_equal(heapfile_sum(again, "peak").bytes, 6000);
	assert_int_equal(heapfile_sum(again, "rise").bytes, heapfile_sum(p, "rise").bytes);
	assert_int_equal(again->duration_ns, p->duration_ns);
	buf_done(&out);
	profile_free(p);
	profile_free(again);
}

static void units(void **state)
{
	struct profile *p = heapfile_read("massif", HEAD "i\n" SNAPSHOT("0", "135649", "0", "empty"));

	assert_int_equal(p->duration_ns, 135649);
	assert_int_equal(p->samples.n, 0);
	profile_free(p);
	import_refused("massif", HEAD "weeks\n", "line 3: time_unit");
	import_refused("massif", HEAD "ms\n" SNAPSHOT("0", "18446744073709551615", "0", "empty"), "line 7: there is no such number");
}

static void bad_trees(void **state)
{
	static const struct {
		const char *tree, *why;
	} cases[] = {
		{ "n1: 5 " ROOT "  n0: 5 0x1: a (b:1)\n", "line 13: its indentation" },
		{ "n1: 5 " ROOT " n0: 6 0x1: a (b:1)\n", "line 13: it has more than its parent" },
		{ "n1: 5 " ROOT " n0: 5 0x1: a (b:1)\n n0: 0 0x1: a (b:1)\n", "line 14: it has more" },
		{ "n1: 5 " ROOT "n0: 5 0x1: a (b:1)\n", "line 13: its indentation" },
		{ " n1: 5 " ROOT, "line 12: its indentation" },
		{ "n1: -5 " ROOT, "line 12: this is no node" },
		{ "n1: 18446744073709551616 " ROOT, "line 12: this is no node" },
		{ "n9999999999: 1 " ROOT, "line 12: this is no node" },
		{ "n2: 5 " ROOT " n0: 5 0x1: a (b:1)\n" SNAPSHOT("1", "1", "1", "empty"), "fewer children" },
		{ SNAPSHOT("1", "1", "1", "empty"), "tree of the snapshot before it is missing" },
		{ "n0: 5 " ROOT SNAPSHOT("1", "0", "1", "forest"), "a tree is empty" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = mem_printf("%s%s", HEAD "ms\n" SNAPSHOT("0", "0", "5", "detailed"), cases[i].tree);

		/* The head has 11 lines. */
		import_refused("massif", text, cases[i].why);
		free(text);
	}
	import_refused("massif", HEAD "ms\n" SNAPSHOT("0", "5", "5", "empty") SNAPSHOT("1", "4", "5", "empty"), "is from before");
	import_refused("massif", HEAD "ms\n", "before its first snapshot");
	/* Two trees of nearly 2^63 bytes. */
	import_refused("massif",
		       HEAD "ms\n" SNAPSHOT("0", "0", "0", "detailed") "n0: 9223372036854775807 " ROOT
		       SNAPSHOT("1", "1", "0", "detailed") "n1: 9223372036854775807 " ROOT
		       " n0: 9223372036854775807 0x1: a (b:1)\n" SNAPSHOT("2", "2", "0", "empty"),
		       "add up to more");
}

static void deep(void **state)
{
	struct buf b = { 0 };

	buf_puts(&b, HEAD "ms\n" SNAPSHOT("0", "0", "1", "detailed") "n1: 1 " ROOT);
	for (int i = 1; i < 5000; i++)
		buf_printf(&b, "%*sn1: 1 0x1: a (b:1)\n", i, "");
	import_refused("massif", b.data, "nested too deep");
	buf_done(&b);
}

/* A tree that was cut off counts for nothing; those before it do. */
static void cut_off(void **state)
{
	_cleanup_free_ char *text = mem_strndup(good, strlen(good) - 5);
	struct profile *p = heapfile_read("massif", text);

	heapfile_expect(p, "heap", 6000, 4);
	assert_int_equal(profile_counter(p, KEY_HEAP_DUMPS_CUT_OFF), 1);
	profile_free(p);
	import_cut_everywhere("massif", good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshots), cmocka_unit_test(round_trip), cmocka_unit_test(units),
		cmocka_unit_test(bad_trees), cmocka_unit_test(deep),	   cmocka_unit_test(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
