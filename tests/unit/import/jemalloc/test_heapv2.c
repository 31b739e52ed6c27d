#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/memory/heapseries.h"
#include "base/err.h"
#include "exporting.h"
#include "golden.h"
#include "import/jemalloc/heapdumps.h"
#include "import/jemalloc/heappprof.h"
#include "import/import.h"
#include "profile/profile.h"

static const char dump[] =
	"heap_v2/524288\n"
	"  t*: 111: 4200000 [0: 0]\n"
	"  t0: 111: 4200000 [0: 0] main thread\n"
	"@ 0x401010 0x402020 0x7f0000001030\n"
	"  t*: 10: 1000000 [20: 2000000]\n"
	"  t0: 6: 600000 [12: 1200000]\n"
	"  t3: 4: 400000 [8: 800000]\n"
	"@ 0x401010 0x402999\n"
	"  t1: 3: 300 [0: 0]\n"
	"  t2: 1: 100 [0: 0]\n"
	"@\n"
	"  t*: 1: 64 [0: 0]\n"
	"@ 0x401010\n"
	"  t*: 0: 0 [0: 0]\n"
	"\n"
	"MAPPED_LIBRARIES:\n"
	"00400000-00401000 r--p 00000000 08:01 42 /nowhere/my node (deleted)\n"
	"00401000-00403000 r-xp 00001000 08:01 42 /nowhere/my node (deleted)\n"
	"7f0000000000-7f0000002000 r-xp 00000000 08:01 43 /nowhere/lib with space.so\n"
	"7f0000010000-7f0000012000 rw-p 00000000 00:00 0 \n";

static struct heapv2 parsed(const char *text)
{
	struct heapv2 h;
	struct err err = { 0 };

	if (heapv2_parse(text, strlen(text), &h, &err))
		fail_msg("%s", err.text);
	return h;
}

/* Names before the dump, the outermost of inlined calls first. */
static void a_symbolized_dump(void **state)
{
	static const char text[] = "--- symbol\nbinary=/nowhere/node\n0x401010 outer--inner\n0x40201f main--\nwhat\n---\n--- heap\n"
				   "heap_v2/0\n  t*: 1: 5 [0: 0]\n@ 0x401010 0x402020\n  t*: 1: 5 [0: 0]\n\nMAPPED_LIBRARIES:\n";
	struct heapv2 h = parsed(text);

	assert_true(heapv2_probe(text, strlen(text), true));
	assert_true(h.symbolized);
	assert_int_equal(h.names.n, 3);
	assert_string_equal(strtab_get(&h.strings, h.names.v[0].string), "inner");
	assert_string_equal(strtab_get(&h.strings, h.names.v[1].string), "outer");
	assert_int_equal(h.names.v[2].address, 0x40201f);
	assert_int_equal(h.stacks.n, 1);
	assert_int_equal(h.bad_lines, 1);
	heapv2_done(&h);
	for (size_t i = 0; i < strlen(text); i++) {
		heapv2_parse(text, i, &h, NULL);
		heapv2_done(&h);
	}
}

static void a_dump(void **state)
{
	struct heapv2 h = parsed(dump);

	assert_int_equal(h.interval, 524288);
	assert_int_equal(h.stacks.n, 4);
	assert_int_equal(h.stacks.v[0].depth, 3);
	assert_int_equal(h.addresses.v[h.stacks.v[0].first], 0x401010);
	/* The total, and not the threads again. */
	assert_int_equal(h.stacks.v[0].live.objects, 10);
	assert_int_equal(h.stacks.v[0].live.bytes, 1000000);
	assert_int_equal(h.stacks.v[0].all.bytes, 2000000);
	/* Threads where there is no total. */
	assert_int_equal(h.stacks.v[1].live.objects, 4);
	assert_int_equal(h.stacks.v[1].live.bytes, 400);
	assert_int_equal(h.stacks.v[2].depth, 0);
	assert_int_equal(h.stacks.v[2].live.bytes, 64);
	assert_true(h.accumulated && h.has_maps && !h.cut);
	assert_int_equal(h.bad_lines, 0);
	assert_int_equal(h.maps.list.n, 4);
	heapv2_done(&h);
}

static void older_ones(void **state)
{
	struct heapv2 h = parsed(
		"heap profile:    2:  8192 [   0:    0] @ heap_v2/1024\n"
		"  1: 4096 [0: 0] @ 0x10 0x20\n"
		"  1: 4096 [3: 9000] @ 0x10 0x30\n"
		"\n"
		"MAPPED_LIBRARIES:\n");

	assert_int_equal(h.interval, 1024);
	assert_int_equal(h.stacks.n, 2);
	assert_int_equal(h.stacks.v[1].live.bytes, 4096);
	assert_int_equal(h.stacks.v[1].all.bytes, 9000);
	heapv2_done(&h);
	h = parsed("heap profile: 1: 10 [ 0: 0] @ heapprofile\n 1: 10 [0: 0] @ 0x10\n");
	assert_int_equal(h.interval, 0);
	assert_int_equal(h.stacks.v[0].live.bytes, 10);
	assert_false(h.has_maps);
	heapv2_done(&h);
}

static void no_dump_at_all(void **state)
{
	static const char *const texts[] = { "",
					     "\n",
					     "heap_v2/",
					     "heap_v2/12",
					     "heap_v2/x\n",
					     "heap_v1/12\n",
					     "main;a 1\n",
					     "heap profile: 1: 2\n" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err err = { 0 };
		struct heapv2 h;

		assert_int_equal(heapv2_parse(texts[i], strlen(texts[i]), &h, &err), -EINVAL);
		assert_non_null(strstr(err.text, "heap_v2"));
		heapv2_done(&h);
	}
}

/* What is left of a file is what was whole: a number of which digits are missing is another number. */
static void cut_at_every_byte(void **state)
{
	struct heapv2 whole = parsed(dump);

	for (size_t n = 0; n < sizeof(dump) - 1; n++) {
		struct heapv2 h;

		if (!heapv2_parse(dump, n, &h, NULL)) {
			assert_true(h.stacks.n <= whole.stacks.n);
			assert_true(h.cut == (dump[n - 1] != '\n'));
			for (size_t i = 0; i < h.stacks.n; i++) {
				uint64_t bytes = h.stacks.v[i].live.bytes;

				/* 300 of the two threads' 400 may be there. */
				assert_true(!bytes || bytes == whole.stacks.v[i].live.bytes || bytes == 300);
				assert_int_equal(h.stacks.v[i].depth, whole.stacks.v[i].depth);
			}
		}
		heapv2_done(&h);
	}
	heapv2_done(&whole);
}

static void bad_lines_are_counted(void **state)
{
	struct heapv2 h = parsed("heap_v2/1\n"
				 "what is this\n"
				 "@ 0x1 zzz\n"
				 "  t*: 1: 2 [0: 0]\n"
				 "@ 0x1\n"
				 "  t*: 99999999999999999999: 1\n"
				 "  t*: 1: 8 [0: 0]\n"
				 "  t*: 1: 8 [0: 0]\n");

	assert_int_equal(h.bad_lines, 4);
	assert_int_equal(h.stacks.n, 1);
	heapv2_done(&h);
}

static void estimates(void **state)
{
	struct heapv2_pair p = heapv2_unbias(524288, (struct heapv2_pair){ 10, 1000000 });
	double scale = 1 / (1 - exp(-100000.0 / 524288));

	assert_int_equal(p.bytes, llround(1000000 * scale));
	assert_int_equal(p.objects, llround(10 * scale));
	p = heapv2_unbias(524288, (struct heapv2_pair){ 0, 77 });
	assert_int_equal(p.bytes, 77);
	p = heapv2_unbias(1, (struct heapv2_pair){ 3, 77 });
	assert_int_equal(p.bytes, 77);
	/* As large as that: left alone rather than made nonsense of. */
	p = heapv2_unbias(UINT64_MAX, (struct heapv2_pair){ UINT64_MAX, UINT64_MAX });
	assert_int_equal(p.bytes, UINT64_MAX);
}

/* --- series --- */

static void add(struct heapdumps *d, const char *name, uint64_t wall_s, const char *text)
{
	struct err err = { 0 };

	if (heapdumps_add_text(d, name, text, strlen(text), wall_s * 1000000000, &err))
		fail_msg("%s", err.text);
}

/* Every allocation seen: figures are what they are. a grows, b comes and goes. */
static struct heapdumps three(void)
{
	struct heapdumps d = { 0 };

	add(&d, "x/jeprof.7.10.i3.heap", 130,
	    "heap_v2/1\n@ 0xa\n t*: 4: 400 [0: 0]\n@ 0xc\n t*: 1: 5 [0: 0]\n");
	add(&d, "x/jeprof.7.2.i1.heap", 100,
	    "heap_v2/1\n@ 0xa\n t*: 1: 100 [0: 0]\n@ 0xc\n t*: 2: 10 [0: 0]\n");
	add(&d, "x/jeprof.7.9.m2.heap", 110,
	    "heap_v2/1\n@ 0xa\n t*: 2: 200 [0: 0]\n@ 0xb\n t*: 1: 900 [0: 0]\n@ 0xc\n t*: 2: 10 [0: 0]\n");
	heapdumps_order(&d);
	return d;
}

static uint64_t sum(const struct profile *p, const char *event, uint64_t until_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		if (!strcmp(profile_str(p, p->events.v[p->samples.v[i].event].name), event) &&
		    p->samples.v[i].time_ns <= until_ns)
			bytes += p->samples.v[i].value;
	return bytes;
}

static struct profile *profile_of(struct heapdumps *d, const struct heapdump *base)
{
	struct profile *p = NULL;
	struct err err = { 0 };

	if (heapdumps_profile(d, &(struct heapdumps_options){ .base = base, .root = "/nonexistent" }, &p,
			      &err))
		fail_msg("%s", err.text);
	return p;
}

static void never_a_sum(void **state)
{
	struct heapdumps d = three();
	struct profile *p = profile_of(&d, NULL);

	assert_int_equal(d.list.v[0].sequence, 2);
	assert_int_equal(d.list.v[1].sequence, 9);
	assert_int_equal(d.list.v[2].sequence, 10);
	assert_int_equal(d.list.v[2].pid, 7);
	assert_int_equal(sum(p, "heap", UINT64_MAX), 405);
	assert_int_equal(sum(p, "growth", UINT64_MAX), 300);
	assert_int_equal(sum(p, "shrunk", UINT64_MAX), 5);
	/* The heap at each moment. */
	assert_int_equal(sum(p, "rise", 0) - sum(p, "fall", 0), 110);
	assert_int_equal(sum(p, "rise", 10e9) - sum(p, "fall", 10e9), 1110);
	assert_int_equal(sum(p, "rise", 30e9) - sum(p, "fall", 30e9), 405);
	assert_int_equal(p->points.n, 3);
	assert_int_equal(p->points.v[1].value, 1110);
	assert_int_equal(p->duration_ns, 30e9);
	assert_true(heapdumps_made(p));
	profile_free(p);
	heapdumps_done(&d);
}

static void against_a_base(void **state)
{
	struct heapdumps d = three(), base = three();
	struct profile *p;

	assert_int_equal(heapdumps_select(&d, "latest", NULL), 0);
	assert_int_equal(d.list.n, 1);
	p = profile_of(&d, &base.list.v[1]);
	assert_int_equal(sum(p, "heap", UINT64_MAX), 405);
	assert_int_equal(sum(p, "growth", UINT64_MAX), 200);
	assert_int_equal(sum(p, "shrunk", UINT64_MAX), 905);
	profile_free(p);
	heapdumps_done(&d);
	heapdumps_done(&base);
}

static void two_processes_are_two_heaps(void **state)
{
	struct heapdumps d = three();
	struct profile *p;

	add(&d, "x/jeprof.8.0.f.heap", 120, "heap_v2/1\n@ 0xa\n t*: 4: 1000 [0: 0]\n");
	heapdumps_order(&d);
	p = profile_of(&d, NULL);
	assert_int_equal(p->processes.n, 2);
	assert_int_equal(sum(p, "heap", UINT64_MAX), 1405);
	assert_int_equal(sum(p, "growth", UINT64_MAX), 300);
	profile_free(p);
	heapdumps_done(&d);
}

static void selections(void **state)
{
	const struct {
		const char *text;
		size_t n;
		uint64_t first;
	} good[] = { { "all", 3, 2 },     { "latest", 1, 10 }, { "last:2", 2, 9 },
		     { "last:99", 3, 2 }, { "9", 1, 9 },       { "10,2", 2, 2 } };
	static const char *const bad[] = { "", "last", "last:", "last:0", "last:x", "1-3", "newest", "7" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct heapdumps d = three();

		assert_int_equal(heapdumps_select(&d, good[i].text, NULL), 0);
		assert_int_equal(d.list.n, good[i].n);
		assert_int_equal(d.list.v[0].sequence, good[i].first);
		heapdumps_done(&d);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct heapdumps d = three();

		assert_true(heapdumps_select(&d, bad[i], NULL) < 0);
		heapdumps_done(&d);
	}
}

/* Files that were copied have one time, or the wrong ones: the numbers count. */
static void copied_files_keep_their_order(void **state)
{
	struct heapdumps d = three();
	struct profile *p;

	for (size_t i = 0; i < d.list.n; i++)
		d.list.v[i].wall_ns = 5000000000;
	p = profile_of(&d, NULL);
	assert_int_equal(p->points.v[0].value, 110);
	assert_true(p->points.v[0].time_ns < p->points.v[1].time_ns &&
		    p->points.v[1].time_ns < p->points.v[2].time_ns);
	profile_free(p);
	heapdumps_done(&d);
}

/* --- frames --- */

static void addresses_and_modules(void **state)
{
	struct heapdumps d = { 0 };
	struct profile *p;
	const struct profile_frame *leaf, *caller, *outer;
	uint32_t stack;

	add(&d, "a.heap", 1, dump);
	p = profile_of(&d, NULL);
	stack = p->samples.v[0].stack;
	leaf = &p->frames.v[p->stacks.v[stack].frame];
	stack = p->stacks.v[stack].parent;
	caller = &p->frames.v[p->stacks.v[stack].frame];
	stack = p->stacks.v[stack].parent;
	outer = &p->frames.v[p->stacks.v[stack].frame];
	/* Where no file tells more, an address is an offset in it; that of a caller is one less. */
	assert_int_equal(leaf->address, 0x1010);
	assert_int_equal(caller->address, 0x201f);
	assert_int_equal(outer->address, 0x102f);
	assert_string_equal(profile_str(p, p->modules.v[leaf->module].path), "/nowhere/my node (deleted)");
	assert_string_equal(profile_str(p, p->modules.v[outer->module].path),
			    "/nowhere/lib with space.so (not found)");
	assert_string_equal(profile_str(p, p->threads.v[0].name), "my node");
	profile_free(p);
	heapdumps_done(&d);
}

static void the_allocators_frames_go(void **state)
{
	struct sample s = sample_empty();

	sample_add(&s, s.main,
		   sample_stack(&s, "main;je_wrapper;grow;malloc;je_malloc_default;prof_backtrace_impl"),
		   1);
	sample_add(&s, s.main, sample_stack(&s, "_rjem_je_malloc;prof_alloc_prep"), 1);
	heapdumps_strip(s.p);
	assert_int_equal(s.p->samples.v[0].stack, sample_stack(&s, "main;je_wrapper;grow"));
	/* A stack of nothing else keeps its outermost. */
	assert_int_equal(s.p->samples.v[1].stack, sample_stack(&s, "_rjem_je_malloc"));
	profile_free(s.p);
}

/* --- over time --- */

static void massif(void **state)
{
	struct heapdumps d = three();
	struct profile *p = profile_of(&d, NULL);
	struct buf b;

	for (size_t i = 0; i < p->frames.n; i++) {
		struct profile_function f = { .name = profile_string(
						      p, (const char *[]){ "a", "c", "b;<\n" }[i % 3]),
					      .module = PROFILE_NONE };

		profile_set_lines(p, i, &(struct profile_line){ .function = profile_function(p, &f) }, 1);
	}
	b = export_all(p, "massif", (struct export_options){ 0 });
	assert_non_null(strstr(b.data,
			       "snapshot=1\n"
			       "#-----------\n"
			       "time=10000\n"
			       "mem_heap_B=1110\n"
			       "mem_heap_extra_B=0\n"
			       "mem_stacks_B=0\n"
			       "heap_tree=peak\n"
			       "n3: 1110 (heap"));
	assert_non_null(strstr(b.data, "time=30000\nmem_heap_B=405\n"));
	assert_null(strstr(b.data, "b;<\n"));
	golden_check("dumps.massif", b.data, b.n);
	buf_done(&b);
	b = export_all(p, "heap-table", (struct export_options){ 0 });
	golden_check("dumps.heaptable", b.data, b.n);
	buf_done(&b);
	profile_free(p);
	heapdumps_done(&d);
}

static void nothing_over_time(void **state)
{
	struct sample s = sample_empty();
	struct heapseries h;
	struct err err = { 0 };

	sample_add(&s, s.main, sample_stack(&s, "main"), 1);
	assert_int_equal(heapseries_make(&h, s.p, &(struct select_options){ 0 }, &err), -ENODATA);
	assert_non_null(strstr(err.text, "-e heap"));
	heapseries_done(&h);
	profile_free(s.p);
}

/* Ten thousand steps: a hundred moments at most, the peak among them. */
static void many_steps(void **state)
{
	struct sample s = sample_empty();
	uint32_t up = profile_add_event(s.p, "alloc", "bytes", "", 0),
		 down = profile_add_event(s.p, "freed", "bytes", "", 0);
	uint32_t stack = sample_stack(&s, "main;f");
	uint64_t moments[100], live = 0, peak = 0;
	struct heapseries h;
	size_t n;

	for (uint64_t i = 0; i < 10000; i++) {
		bool freed = i > 3333;

		live += freed ? -1 : 10;
		peak = live > peak ? live : peak;
		profile_add_sample(s.p, &(struct profile_sample){ .time_ns = i * 1000,
								  .value = freed ? 1 : 10,
								  .thread = s.main,
								  .stack = stack,
								  .event = freed ? down : up });
	}
	s.p->duration_ns = 10000000;
	assert_int_equal(heapseries_make(&h, s.p, &(struct select_options){ 0 }, NULL), 0);
	assert_int_equal(h.peak_bytes, peak);
	assert_int_equal(h.peak_ns, 3333000);
	n = heapseries_moments(&h, moments, 100);
	assert_true(n > 50 && n <= 100);
	assert_int_equal(moments[n - 1], 10000000);
	for (size_t i = 0; i < n; i++) {
		uint64_t seen = MIN(moments[i] / 1000 + 1, 10000), ups = MIN(seen, 3334);
		struct selection at;

		heapseries_at(&h, moments[i], &at);
		assert_int_equal(at.all.value, ups * 10 - (seen - ups));
		selection_done(&at);
	}
	heapseries_done(&h);
	profile_free(s.p);
}

static void as_an_imported_file(void **state)
{
	char path[] = "/tmp/gasflame-heapv2-XXXXXX";
	int fd = mkstemp(path);
	struct profile *p = NULL;
	struct err err = { 0 };

	assert_int_equal(write(fd, dump, sizeof(dump) - 1), sizeof(dump) - 1);
	close(fd);
	assert_true(heapv2_probe(dump, 20, false));
	assert_false(heapv2_probe("main;heap_v2/1 3\n", 17, true));
	if (import_read(path, NULL, NULL, &p, &err))
		fail_msg("%s", err.text);
	assert_true(heapdumps_made(p));
	assert_int_equal(profile_counter(p, "heap.dumps"), 1);
	profile_free(p);
	unlink(path);
}

/* --- pprof --- */

static void put_number(struct buf *b, unsigned field, uint64_t value)
{
	buf_putc(b, field << 3);
	for (; value > 127; value >>= 7)
		buf_putc(b, (value & 127) | 128);
	buf_putc(b, value);
}

static void put_bytes(struct buf *b, unsigned field, const void *data, size_t n)
{
	buf_putc(b, field << 3 | 2);
	buf_putc(b, n);
	buf_add(b, data, n);
}

static void put_message(struct buf *b, unsigned field, struct buf *message)
{
	put_bytes(b, field, message->data, message->n);
	buf_done(message);
}

/* One stack, f called by main, of 4096 bytes. */
static struct buf pprof(bool of_file)
{
	static const char *const strings[] = { "",         "inuse_space", "bytes", "/nowhere/node",
					       "0123abcd", "f",           "main",  "inlined" };
	const uint64_t address[] = { of_file ? 0x1100 : 0x401100, of_file ? 0x1200 : 0x401200 };
	struct buf b = { 0 }, m = { 0 }, line = { 0 };

	put_number(&m, 1, 1);
	put_number(&m, 2, 2);
	put_message(&b, 1, &m);
	put_bytes(&m, 1, "\1\2", 2);
	put_number(&m, 2, 4096);
	put_message(&b, 2, &m);
	put_number(&m, 1, 9);
	put_number(&m, 2, 0x401000);
	put_number(&m, 3, 0x402000);
	put_number(&m, 4, 0x1000);
	put_number(&m, 5, 3);
	put_number(&m, 6, 4);
	put_message(&b, 3, &m);
	for (int i = 0; i < 2; i++) {
		put_number(&m, 1, i + 1);
		put_number(&m, 2, 9);
		put_number(&m, 3, address[i]);
		if (i == 0) {
			put_number(&line, 1, 3);
			put_message(&m, 4, &line);
		}
		put_number(&line, 1, i + 1);
		put_message(&m, 4, &line);
		put_message(&b, 4, &m);
	}
	for (int i = 0; i < 3; i++) {
		put_number(&m, 1, i + 1);
		put_number(&m, 2, 5 + i);
		put_message(&b, 5, &m);
	}
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		put_bytes(&b, 6, strings[i], strlen(strings[i]));
	return b;
}

/* What nodes offer over HTTP: addresses of the process or of the file, it is the same heap. */
static void a_profile_of_pprof(void **state)
{
	for (int of_file = 0; of_file < 2; of_file++) {
		struct buf b = pprof(of_file);
		struct heapdumps d = { 0 };
		struct heapdump dump_of = { .path = mem_strdup("x.heap"), .loaded = true };
		const struct profile_frame *leaf, *caller;
		struct profile *p;
		struct err err = { 0 };

		if (heappprof_read(b.data, b.n, &dump_of.data, &err))
			fail_msg("%s", err.text);
		assert_int_equal(dump_of.data.file_addresses, of_file);
		vec_push(&d.list, dump_of);
		p = profile_of(&d, NULL);
		assert_int_equal(sum(p, "heap", UINT64_MAX), 4096);
		leaf = &p->frames.v[p->stacks.v[p->samples.v[0].stack].frame];
		caller = &p->frames.v[p->stacks.v[p->stacks.v[p->samples.v[0].stack].parent].frame];
		assert_int_equal(leaf->address, 0x1100);
		assert_int_equal(caller->address, 0x1200);
		assert_string_equal(profile_str(p, p->modules.v[leaf->module].path),
				    "/nowhere/node (not found)");
		/* The file is not here: the node's own names. */
		assert_int_equal(leaf->line_count, 2);
		assert_true(p->lines.v[leaf->first_line].inlined);
		assert_string_equal(
			profile_str(p, p->functions.v[p->lines.v[leaf->first_line].function].name),
			"inlined");
		assert_string_equal(
			profile_str(p, p->functions.v[p->lines.v[leaf->first_line + 1].function].name), "f");
		assert_string_equal(
			profile_str(p, p->functions.v[p->lines.v[caller->first_line].function].name), "main");
		profile_free(p);
		heapdumps_done(&d);
		buf_done(&b);
	}
}

static void pprof_cut_at_every_byte(void **state)
{
	struct buf b = pprof(true);

	for (size_t n = 0; n < b.n; n++) {
		struct heapv2 h;

		/* The strings come last: without them nothing is a heap. */
		if (!heappprof_read(b.data, n, &h, NULL))
			assert_int_equal(h.stacks.n, 1);
		heapv2_done(&h);
	}
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump),
		cmocka_unit_test(a_symbolized_dump),
		cmocka_unit_test(older_ones),
		cmocka_unit_test(no_dump_at_all),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(bad_lines_are_counted),
		cmocka_unit_test(estimates),
		cmocka_unit_test(never_a_sum),
		cmocka_unit_test(against_a_base),
		cmocka_unit_test(two_processes_are_two_heaps),
		cmocka_unit_test(selections),
		cmocka_unit_test(copied_files_keep_their_order),
		cmocka_unit_test(addresses_and_modules),
		cmocka_unit_test(the_allocators_frames_go),
		cmocka_unit_test(massif),
		cmocka_unit_test(nothing_over_time),
		cmocka_unit_test(many_steps),
		cmocka_unit_test(as_an_imported_file),
		cmocka_unit_test(a_profile_of_pprof),
		cmocka_unit_test(pprof_cut_at_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
