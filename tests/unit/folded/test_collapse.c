/*
 * test_collapse.c - perf script's text as folded stacks. What is expected here is what stackcollapse-perf.pl printed for
 * the same text.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "folded/collapse/collapse.h"
#include "test.h"

static int put(void *context, const char *text, size_t n)
{
	buf_add(context, text, n);
	return 0;
}

static int memory_file(const char *text, size_t n)
{
	int fd = memfd_create("perf.txt", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, n, 0), n);
	return fd;
}

static struct foldtable_counts fold(const char *text, size_t n, const struct foldtable_options *o, const char *event, unsigned threads,
				    struct buf *out)
{
	struct collapse *c = collapse_new(o, event, threads);
	_cleanup_fd_ int fd = memory_file(text, n);
	_cleanup_(stream_freep) struct stream *in = stream_open(fd);
	struct foldtable_counts counts;
	struct err err = { 0 };

	assert_int_equal(collapse_read(c, in, &err), 0);
	assert_int_equal(foldtable_write(collapse_end(c), put, out), 0);
	counts = foldtable_counts(collapse_end(c));
	collapse_free(c);
	return counts;
}

static void expect(const char *text, struct foldtable_options o, const char *event, const char *wanted)
{
	struct buf out = { 0 };

	fold(text, strlen(text), &o, event, 1, &out);
	assert_string_equal(out.data ? out.data : "", wanted);
	buf_done(&out);
}

static const struct foldtable_options plain;

static void beginnings_of_samples(void **state)
{
	static const struct {
		const char *line, *plain, *pid, *tid;
	} table[] = {
		{ "java 25607 4794564.109216: 3 cycles:", "java;f 3", "java-?;f 3", "java-?/25607;f 3" },
		{ "java 12688/12764 [002] 6544038.708352: 235 cpu-clock:", "java;f 235", "java-12688;f 235", "java-12688/12764;f 235" },
		{ "V8 WorkerThread 24636/25607 [000] 94564.109216: cycles:", "V8_WorkerThread;f 1", "V8_WorkerThread-24636;f 1",
		  "V8_WorkerThread-24636/25607;f 1" },
		{ "tokio-rt 3 77 [001] 1.5:  10 cycles:u: ", "tokio-rt;f 10", "tokio-rt-?;f 10", "tokio-rt-?/3;f 10" },
		{ "sh 7/0 1.5: 0 cycles:", "sh;f 1", "sh-?;f 1", "sh-?/7;f 1" },
		{ "sh 7 1.5: sched:sched_switch: prev_comm=sh", "sh;f 1", "sh-?;f 1", "sh-?/7;f 1" },
		{ "a;b 7 1.5: 1 cycles:", "a;b;f 1", "a;b-?;f 1", "a;b-?/7;f 1" },
		/* A name of one character is none, and what follows is taken for it. */
		{ "a 12 [002] 65.7: 235 cpu-clock:", "a_12_[002]_65.7:;f 235", "a_12_[002]_65.7:-?;f 235", "a_12_[002]_65.7:-?/235;f 235" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		_cleanup_free_ char *text = mem_printf("%s\n\tabc f+0x1 (/bin/x)\n\n", table[i].line);
		const char *wanted[] = { table[i].plain, table[i].pid, table[i].tid };

		for (int k = 0; k < 3; k++) {
			_cleanup_free_ char *line = mem_printf("%s\n", wanted[k]);

			expect(text, (struct foldtable_options){ .pid = k == 1, .tid = k == 2 }, NULL, line);
		}
	}
}

static void frames(void **state)
{
	static const struct {
		const char *frame, *plain, *all;
	} table[] = {
		{ "ffffffff81 next_folio+0xc1 ([kernel.kallsyms])", "next_folio", "next_folio_[k]" },
		{ "7f1 foo (/usr/lib/debug/vmlinux)", "foo", "foo_[k]" },
		{ "7f1 Ljava/io/PrintStream;::print (/tmp/perf-19982.map)", "Ljava/io/PrintStream:::print", "Ljava/io/PrintStream:::print_[j]" },
		{ "7f1 [unknown] (/lib/x86_64-linux-gnu/libc.so.6)", "[libc.so.6]", "[libc.so.6 <7f1>]" },
		{ "7f1 [unknown] ([unknown])", "[unknown]", "[unknown <7f1>]" },
		{ "7f1 [unknown] ([vdso])", "[[vdso]]", "[[vdso] <7f1>]_[k]" },
		{ "7f1 net/http.(*Client).Do (/bin/x)", "net/http.(*Client).Do", "net/http.(*Client).Do" },
		{ "7f1 (anonymous namespace)::f(int) (/bin/x)", NULL, NULL }, /* as a name of a process would be */
		{ "7f1 n::(anonymous namespace)::f(int) (/bin/x)", "n::(anonymous namespace)::f", "n::(anonymous namespace)::f" },
		{ "7f1 RegExp:[&<>\"'] (/tmp/perf-7539.map)", "RegExp:[&<>]", "RegExp:[&<>]_[j]" },
		{ "7f1 a->b->c+0x12 (/bin/x)", "a;b_[i];c_[i]", "a;b_[i];c_[i]" },
		{ "7f1 a->->b (/bin/x)", "a;_[i];b_[i]", "a;_[i];b_[i]" },
		{ "7f1 f (deleted) (/bin/x (deleted))", "f ", "f " },
		{ "abc (/bin/x)", "c", "c" },
		{ "7f1 <alloc::vec::Vec<T> as core::ops::Drop>::drop+0xff (/bin/x)", "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<T> as core::ops::Drop>::drop" },
	};
	static const struct foldtable_options all = { .line = { true, true, true } };

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		/* Twice: the second time it is remembered. */
		_cleanup_free_ char *text = mem_printf("sh 7 1.5: 1 cycles:\n\t%s\n\nsh 7 1.5: 1 cycles:\n\t%s\n\n", table[i].frame, table[i].frame);
		_cleanup_free_ char *wanted = table[i].plain ? mem_printf("sh;%s 2\n", table[i].plain) : mem_strdup("sh 2\n");
		_cleanup_free_ char *marked = table[i].all ? mem_printf("sh;%s 2\n", table[i].all) : mem_strdup("sh 2\n");

		expect(text, plain, NULL, wanted);
		expect(text, all, NULL, marked);
	}
	expect("java 7 1.5: 1 cycles:\n\t7f1 Lorg/a/B;.call(Lx;)V (/tmp/perf-1.map)\n\nsh 7 1.5: 1 cycles:\n\t7f1 Lorg/a/B;.call(Lx;)V (/tmp/perf-1.map)\n\n",
	       plain, NULL, "java;org/a/B:.call 1\nsh;Lorg/a/B:.call 1\n");
}

static void source_lines(void **state)
{
	static const struct foldtable_options o = { .source_lines = true };

	expect("a.out 35081 252436.005167:     667783 cycles:\n"
	       "                  408ebb some_method+0x8b (/full/path/to/a.out)\n"
	       "  uniform_int_dist.h:300\n"
	       "            7f6d2148eb25 __libc_start_main+0xd5 (/lib64/libc-2.33.so)\n"
	       "  libc-2.33.so[27b25]\n"
	       "            7ffc71ee9580 [unknown] ([unknown])\n\n",
	       o, NULL, "a.out;[unknown];__libc_start_main:libc-2.33.so;some_method:uniform_int_dist.h:300 667783\n");
}

static void events(void **state)
{
	static const char text[] = "sh 7 1.5: 3 cycles:\n\t1 f (x)\n\n"
				   "sh 7 1.5: 5 instructions:\n\t1 f (x)\n\n"
				   "sh 7 1.5: 3 cycles:\n\t1 f (x)\n\n"
				   "sh 7 1.5: 1 sched:sched_switch: a=b\n\t1 g (x)\n\n";
	struct foldtable_counts counts;
	struct buf out = { 0 };

	expect(text, plain, NULL, "sh;f 6\nsh;g 1\n");
	expect(text, plain, "instructions", "sh;f 5\nsh;g 1\n");
	counts = fold(text, strlen(text), &plain, NULL, 1, &out);
	assert_int_equal(counts.samples, 3);
	assert_int_equal(counts.filtered, 1);
	assert_int_equal(counts.unknown_lines, 0);
	buf_done(&out);
}

static void what_is_no_sample(void **state)
{
	static const char text[] = "# cmdline : perf record\ngarbage\n\nsh 7 1.5: 1 cycles:\n\t1 f (x)\n\nsh 7 1.5: 1 cycles:\n\t1 unfinished (x)\n";
	struct foldtable_counts counts;
	struct buf out = { 0 };

	counts = fold(text, strlen(text), &plain, NULL, 2, &out);
	assert_string_equal(out.data, "sh;f 1\n");
	assert_int_equal(counts.samples, 1);
	assert_int_equal(counts.unknown_lines, 1);
	buf_done(&out);
	expect("", plain, NULL, "");
	expect("\n\n\n", plain, NULL, "");
	expect("sh 7 1.5: 1 cycles:\n\n", plain, NULL, "sh 1\n");
	/* Sums stay at the largest number. */
	expect("sh 7 1: 18446744073709551615 cycles:\n\nsh 7 1: 18446744073709551615 cycles:\n\nsh 7 1: 99999999999999999999999 cycles:\n\n",
	       plain, NULL, "sh 18446744073709551615\n");
}

static void sorted_as_text(void **state)
{
	/* ';' is greater than '+', '.' and digits, and less than letters. */
	expect("aa 1 1: 1 c:\n\t1 x (m)\n\naa+b 1 1: 1 c:\n\t1 x (m)\n\naa 1 1: 1 c:\n\n"
	       "aab 1 1: 1 c:\n\t1 x (m)\n\naa 1 1: 1 c:\n\t1 x.y (m)\n\naa 1 1: 1 c:\n\t1 z (m)\n\t1 x (m)\n\n",
	       plain, NULL, "aa 1\naa+b;x 1\naa;x 1\naa;x.y 1\naa;x;z 1\naab;x 1\n");
}

/* 12 MB in several pieces: each stack is counted once, however many threads there are. */
static void in_parallel(void **state)
{
	enum { SAMPLES = 60000, STACKS = 97 };
	struct buf text = { 0 }, alone = { 0 }, many = { 0 };
	struct foldtable_counts counts;
	uint64_t sum = 0, wanted = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		buf_printf(&text, "worker %u 1.%06u: %u cycles:\n", 100 + i % 3, i, i % 7 + 1);
		wanted += i % 7 + 1;
		for (unsigned k = 0; k < 4; k++)
			buf_printf(&text, "\t%x function_%u+0x%x (/usr/bin/program)\n", 0x55550000 + i * 4 + k, (i % STACKS) * (k + 1) % 89, i % 256);
		buf_putc(&text, '\n');
	}
	assert_true(text.n > 10 << 20);
	counts = fold(text.data, text.n, &plain, NULL, 1, &alone);
	assert_int_equal(counts.samples, SAMPLES);
	counts = fold(text.data, text.n, &plain, NULL, 5, &many);
	assert_int_equal(counts.samples, SAMPLES);
	assert_string_equal(alone.data, many.data);
	for (const char *s = alone.data; *s; s = strchr(s, '\n') + 1)
		sum += strtoull(strchr(s, ' ') + 1, NULL, 10);
	assert_int_equal(sum, wanted);
	buf_done(&text);
	buf_done(&alone);
	buf_done(&many);
}

static void cut_anywhere(void **state)
{
	static const char text[] = "V8 Worker 24636/25607 [000] 94564.109216:  100 cycles:\n\t7f1 a->b+0x1 (/bin/x (deleted))\n"
				   "\t7f2 (anonymous namespace)::g(int) ([kernel.kallsyms])\n\n";
	static const struct foldtable_options all = { .line = { true, true, true }, .tid = true }, lines = { .source_lines = true };

	for (size_t n = 0; n <= strlen(text); n++) {
		_cleanup_free_ char *cut = mem_strndup(text, n);
		struct buf out = { 0 };

		fold(cut, n, &all, NULL, 1, &out);
		assert_int_equal(out.n > 0, n == strlen(text));
		out.n = 0;
		fold(cut, n, &plain, NULL, 1, &out);
		assert_int_equal(out.n > 0, n == strlen(text));
		fold(cut, n, &lines, NULL, 1, &out);
		buf_done(&out);
	}
}

static void unreadable(void **state)
{
	struct collapse *c = collapse_new(&plain, NULL, 2);
	_cleanup_(stream_freep) struct stream *in = stream_open(-1);
	struct err err = { 0 };

	assert_int_equal(collapse_read(c, in, &err), -EBADF);
	assert_non_null(strstr(err.text, "cannot read"));
	collapse_free(c);
}

/* Frames are counted by what stands for them, and get their names at the end. */
static bool stand_in(void *context, const struct perfline_frame *f, bool java, struct buf *b)
{
	(void)context;
	(void)java;
	if (!f->module.n || *f->module.s != '/')
		return false;
	buf_printf(b, "%.*s", (int)f->pc.n, f->pc.s);
	return true;
}

static bool name_it(void *context, const char *name, struct buf *b)
{
	(void)context;
	if (!strcmp(name, "1f") || !strcmp(name, "2f"))
		buf_puts(b, "outer;inner");
	return b->n;
}

static void names_at_the_end(void **state)
{
	static const char text[] = "sh 7 1.5: 3 cycles:\n\t1f f (/x)\n\t10 g ([kernel])\n\nsh 7 1.5: 4 cycles:\n\t2f f (/x)\n\t10 g ([kernel])\n\n"
				   "sh 7 1.5: 5 cycles:\n\t3f f (/x)\n\n";
	struct foldtable *t = foldtable_new(&(struct foldtable_options){ .inlined = stand_in }), *named = foldtable_new(&plain);
	struct buf out = { 0 };

	foldtable_add(t, text, strlen(text), NULL);
	foldtable_join_renamed(named, t, name_it, NULL);
	assert_int_equal(foldtable_write(named, put, &out), 0);
	assert_string_equal(out.data, "sh;3f 5\nsh;g;outer;inner 7\n");
	assert_int_equal(foldtable_counts(named).samples, 3);
	buf_done(&out);
	foldtable_free(t);
	foldtable_free(named);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_at_the_end),
		cmocka_unit_test(beginnings_of_samples), cmocka_unit_test(frames),
		cmocka_unit_test(source_lines),          cmocka_unit_test(events),
		cmocka_unit_test(what_is_no_sample),     cmocka_unit_test(sorted_as_text),
		cmocka_unit_test(in_parallel),           cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
