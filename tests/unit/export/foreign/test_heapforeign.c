/* test_heapforeign.c - heaps for jeprof and heaptrack_print: byte for byte, and what they are when they are read again. */
#include "test.h"

#include <errno.h>

#include "exporting.h"
#include "golden.h"
#include "heapfiles.h"

/* Inlined calls, a name with an address only, temporary objects, one of them at the peak, and one that outlives it. */
static const char heap[] = "v 10400 3\nX /bin/prog a b\nI 1000 100\ns 9 /bin/prog\n"
			   "s 4 main\ns 6 prog.c\ns 5 outer\ns 9 a--b::<T>\n"
			   "i 1000 1 2 3 9\nt 1 0\ni 2000 1 5 3 4 4 3 5\nt 2 1\ni 3000 0\nt 3 2\n"
			   "a 0 0\na 64 2\na 3e8 1\na 7 3\n"
			   "+ 1\n- 1\n+ 2\n+ 2\n+ 1\nc a\nR 10\n- 2\n+ 1\n+ 3\nc 14\n+ 2\n+ 2\n- 2\n- 1\nc 40\nR 8\n- 1\n+ 3\n- 3\n";

static const struct export_options all = { .every_event = true };

static void same_sum(const struct profile *a, const struct profile *b, const char *event)
{
	struct heapfile_sum sum = heapfile_sum(a, event);

	heapfile_expect(b, event, sum.bytes, sum.count);
}

static void golden(void **state)
{
	struct profile *p = heapfile_read("heaptrack", heap);
	struct buf dump = heapfile_export(p, "heap_v2", "heap", all), track = heapfile_export(p, "heaptrack", "heap", all);

	golden_check("heap.heap", dump.data, dump.n);
	golden_check("heap.heaptrack", track.data, track.n);
	buf_done(&dump);
	buf_done(&track);
	profile_free(p);
}

static void dump_again(void **state)
{
	struct profile *p = heapfile_read("heaptrack", heap), *again;
	struct buf dump = heapfile_export(p, "heap_v2", "heap", all), a, b;
	const struct profile_frame *f;

	again = heapfile_read("heap_v2", dump.data);
	same_sum(p, again, "heap");
	same_sum(p, again, "alloc");
	/* Two hyphens separate names. */
	a = heapfile_export(p, "folded", "alloc", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE });
	b = heapfile_export(again, "folded", "alloc", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE });
	for (char *at = a.data; (at = strstr(at, "a--b"));)
		at[2] = '_';
	assert_string_equal(a.data, b.data);
	f = &again->frames.v[again->stacks.v[again->samples.v[0].stack].frame];
	assert_true(f->line_count);
	buf_done(&a);
	buf_done(&b);
	buf_done(&dump);
	/* --what names another event: it is what is alive then. */
	profile_free(again);
	dump = heapfile_export(p, "heap_v2", "peak", (struct export_options){ 0 });
	again = heapfile_read("heap_v2", dump.data);
	heapfile_expect(again, "heap", heapfile_sum(p, "peak").bytes, heapfile_sum(p, "peak").count);
	buf_done(&dump);
	profile_free(again);
	profile_free(p);
}

static void track_again(void **state)
{
	struct profile *p = heapfile_read("heaptrack", heap), *again;
	struct buf track = heapfile_export(p, "heaptrack", "heap", all), a = heapfile_folded(p), b;

	again = heapfile_read("heaptrack", track.data);
	b = heapfile_folded(again);
	assert_string_equal(a.data, b.data);
	same_sum(p, again, "heap");
	same_sum(p, again, "alloc");
	same_sum(p, again, "freed");
	same_sum(p, again, "temporary");
	same_sum(p, again, "peak");
	assert_string_equal(profile_str(again, again->processes.v[0].command), "/bin/prog a b");
	assert_int_equal(again->duration_ns / 1000000, p->duration_ns / 1000000 + 1);
	assert_int_equal(profile_counter(again, KEY_HEAP_FREES_UNKNOWN), 0);
	buf_done(&a);
	buf_done(&b);
	buf_done(&track);
	profile_free(p);
	profile_free(again);
}

/* Neither alloc nor freed over time: totals, and differences of trees. */
static void track_of_others(void **state)
{
	static const char dhat[] = "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"bklt\":true,\"te\":5000000,\"tg\":2000000,\"pps\":["
				   "{\"tb\":1000,\"tbk\":10,\"gb\":300,\"gbk\":3,\"eb\":400,\"ebk\":4,\"fs\":[0]},"
				   "{\"tb\":999,\"tbk\":2,\"gb\":999,\"gbk\":2,\"eb\":0,\"ebk\":0,\"fs\":[1]}],\"ftbl\":[\"f\",\"g\"]}";
	static const char massif[] = "desc: x\ncmd: y\ntime_unit: ms\nsnapshot=0\ntime=1\nmem_heap_B=5\nheap_tree=detailed\n"
				     "n1: 50 r\n n0: 50 0x1: a (b:1)\nsnapshot=1\ntime=3\nmem_heap_B=90\nheap_tree=peak\n"
				     "n2: 90 r\n n0: 20 0x1: a (b:1)\n n0: 70 0x1: c (b:1)\nsnapshot=2\ntime=4\nmem_heap_B=9\nheap_tree=detailed\n"
				     "n0: 9 r\n";
	struct profile *p = heapfile_read("dhat", dhat), *again;
	struct buf track = heapfile_export(p, "heaptrack", "heap", all);

	again = heapfile_read("heaptrack", track.data);
	same_sum(p, again, "heap");
	same_sum(p, again, "alloc");
	same_sum(p, again, "peak");
	heapfile_expect(again, "temporary", 0, 0);
	buf_done(&track);
	profile_free(p);
	profile_free(again);
	p = heapfile_read("massif", massif);
	track = heapfile_export(p, "heaptrack", "heap", all);
	again = heapfile_read("heaptrack", track.data);
	assert_int_equal(heapfile_sum(again, "heap").bytes, 9);
	assert_int_equal(heapfile_sum(again, "peak").bytes, 90);
	buf_done(&track);
	profile_free(p);
	profile_free(again);
}

/* Of a heap, with the names of a sample. */
static struct sample as_heap(struct sample s)
{
	s.p->events.v[0].name = profile_string(s.p, "heap");
	s.p->events.v[0].unit = profile_string(s.p, "bytes");
	return s;
}

static void hostile_names(void **state)
{
	static const char *const formats[] = { "heap_v2", "heaptrack" };
	struct sample s = as_heap(export_hostile()), deep = as_heap(export_deep(50000));

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct buf out = heapfile_export(s.p, formats[i], "heap", all);
		struct profile *again = heapfile_read(formats[i], out.data);

		assert_int_equal(heapfile_sum(again, "heap").bytes, heapfile_sum(s.p, "heap").bytes);
		assert_int_equal(profile_counter(again, KEY_HEAP_LINES_NOT_UNDERSTOOD), 0);
		assert_int_equal(profile_counter(again, KEY_IMPORT_LINES_IGNORED), 0);
		for (size_t k = 0; k < out.n; k++)
			assert_true(out.data[k] == '\n' || (unsigned char)out.data[k] >= ' ');
		profile_free(again);
		buf_done(&out);
		out = heapfile_export(deep.p, formats[i], "heap", all);
		assert_true(out.n > 50000);
		buf_done(&out);
	}
	profile_free(s.p);
	profile_free(deep.p);
}

static void refuses(void **state)
{
	struct sample s = sample_make(), heaps = as_heap(sample_empty());
	struct selection sel;
	struct buf out = { 0 };
	struct err err = { 0 };

	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(export_find("heap_v2")->write(&(struct export_job){ s.p, &sel, NULL, all }, &out, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no bytes of a heap"));
	assert_int_equal(export_find("heaptrack")->write(&(struct export_job){ s.p, &sel, NULL, all }, &out, &err), -ENODATA);
	assert_int_equal(out.n, 0);
	selection_done(&sel);
	profile_free(s.p);
	/* Too many allocations for a line each. */
	profile_add_sample(heaps.p, &(struct profile_sample){ .value = 1ULL << 40, .count = 1 << 30, .thread = heaps.main,
							      .event = heaps.cpu });
	assert_int_equal(selection_make(heaps.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(export_find("heaptrack")->write(&(struct export_job){ heaps.p, &sel, NULL, all }, &out, &err), -EFBIG);
	selection_done(&sel);
	buf_done(&out);
	profile_free(heaps.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),	   cmocka_unit_test(dump_again),    cmocka_unit_test(track_again),
		cmocka_unit_test(track_of_others), cmocka_unit_test(hostile_names), cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
