/* test_perfscript.c - perf script's text: what its lines become, waits, the way back, and text that is none. */
#include "test.h"

#include <errno.h>

#include "golden.h"
#include "import/text/perfscript.h"
#include "importing.h"
#include "profile/keys.h"

static void put_stack(struct buf *b, const struct profile *p, uint32_t stack)
{
	for (; stack; stack = p->stacks.v[stack].parent) {
		const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

		buf_printf(b, " %s%llx", f->kind == FRAME_KERNEL ? "k" : f->kind == FRAME_TRUNCATED ? "t" : "", (unsigned long long)f->address);
		for (uint32_t i = 0; i < f->line_count; i++) {
			const struct profile_line *l = &p->lines.v[f->first_line + i];
			const struct profile_function *function = &p->functions.v[l->function];

			buf_printf(b, ":%s", profile_str(p, function->name));
			if (function->file)
				buf_printf(b, "@%s:%u", profile_str(p, function->file), l->line);
		}
		buf_printf(b, "(%s)", f->module == PROFILE_NONE ? "" : profile_str(p, p->modules.v[f->module].path));
	}
	buf_putc(b, '\n');
}

/* A line for each sample, and for each wake. */
static char *dump(const struct profile *p)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_thread *t = &p->threads.v[s->thread];

		buf_printf(&b, "%s %llu %s %s %u/%u %llu:", profile_str(p, p->events.v[s->event].name), (unsigned long long)s->value,
			   profile_str(p, p->events.v[s->event].unit), profile_str(p, t->name), p->processes.v[t->process].pid, t->tid,
			   (unsigned long long)s->time_ns);
		put_stack(&b, p, s->stack);
	}
	for (size_t i = 0; i < p->wakes.n; i++)
		buf_printf(&b, "wake %u by %s: %llu %llu\n", p->threads.v[p->wakes.v[i].thread].tid,
			   profile_str(p, p->wakes.v[i].waker_name), (unsigned long long)p->wakes.v[i].blocked_ns,
			   (unsigned long long)p->wakes.v[i].queue_ns);
	buf_puts(&b, "");
	return b.data;
}

static void expect(const char *text, const char *wanted)
{
	struct profile *p = import_good("perf-script", text);
	_cleanup_free_ char *got = dump(p);

	assert_true(perfscript_probe(text, strlen(text), true));
	assert_string_equal(got, wanted);
	profile_free(p);
}

static void beginnings_of_samples(void **state)
{
	static const struct {
		const char *line, *wanted;
	} table[] = {
		{ "java 25607 4794564.109216: 3 cycles:", "cycles 3 count java 25607/25607 0:" },
		{ "java 12688/12764 [002] 6544038.708352: 235 cpu-clock:ppp: ", "cpu 235 ns java 12688/12764 0:" },
		{ "V8 WorkerThread 24636/25607 [000] 94564.109216: cycles:u:", "cycles:u 1 count V8 WorkerThread 24636/25607 0:" },
		{ "tokio-rt 3 77 [001] 1.5:  10 cpu_core/cycles/u:", "cpu_core/cycles/u 10 count tokio-rt 3 77/77 0:" },
		{ "a 12 [002] 65.700001: 235 task-clock:", "cpu 235 ns a 12/12 0:" },
		{ "           perf  -1/-1  [002] K 65.700001:  1 syscalls:sys_enter_read: fd: 3, buf: 0x1", "syscalls:sys_enter_read 1 count perf 0/0 0:" },
		{ "sh 7/8 [000]  250000 cycles: ", "cycles 250000 count sh 7/8 0:" },
		{ "sh 7/8 250000 cycles: ", "cycles 250000 count sh 7/8 0:" },
		{ "sh 7 1.000000001: ", "samples 1 count sh 7/7 0:" },
		{ "x 7 1.5: 99 offcpu-time: ", "wait 99 ns x 7/7 0:" },
		{ "x 7 1.5: 0 cycles: ", "cycles 1 count x 7/7 0:" },
		{ "x 7 1.5: cpu-clock: ", "cpu-clock 1 count x 7/7 0:" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		_cleanup_free_ char *text = mem_printf("%s\n\tabc f+0x1 (/bin/x)\n\n", table[i].line);
		_cleanup_free_ char *wanted = mem_printf("%s abc:f(/bin/x)\n", table[i].wanted);

		expect(text, wanted);
	}
}

static void frames(void **state)
{
	static const struct {
		const char *frame, *wanted;
	} table[] = {
		{ "\tffffffff81000012 next_folio+0xc1 ([kernel.kallsyms])", " kffffffff81000012:next_folio([kernel])" },
		{ "\t  7d8 ext4_read ([ext4])", " k7d8:ext4_read([ext4])" },
		{ "\tffffffffc0000001 bpf_prog_1_x (bpf_prog_1_x)", " kffffffffc0000001:bpf_prog_1_x(bpf_prog_1_x)" },
		{ "\t7ff1 clock ([vdso])", " 7ff1:clock([vdso])" },
		{ "\t7f1 [unknown] (/lib/libc.so.6)", " 7f1:[unknown](/lib/libc.so.6)" },
		{ "\t7f1 [unknown] ([unknown])", " 7f1:[unknown]()" },
		{ "\t7f1 f(int) const+0x3 (/bin/x (deleted))", " 7f1:f(int) const(/bin/x)" },
		{ "\t7f1 f+0x3 (/bin/x+0x1234)", " 1234:f(/bin/x)" },
		{ "\t7f1 a->b->c+0x12 (/bin/x)", " 7f1:c:b:a(/bin/x)" },
		{ "\t7f1 std::unique_ptr<T>::operator->() (/bin/x)", " 7f1:std::unique_ptr<T>::operator->()(/bin/x)" },
		{ "\t7f1 <fn(A) -> B as FnOnce>::call+0x1 (/bin/x)", " 7f1:<fn(A) -> B as FnOnce>::call(/bin/x)" },
		{ "\t7f1 (anonymous namespace)::f(int) (/bin/x)", " 7f1:(anonymous namespace)::f(int)(/bin/x)" },
		{ "\t7f1 (sh) (/bin/x)", "" },
		{ "\t7f1 i2 (inlined)\n\t7f1 i1 (inlined)\n\t7f1 f+0x9 (/bin/x)\n\t7f2 g (/bin/x)", " 7f1:i2:i1:f(/bin/x) 7f2:g(/bin/x)" },
		{ "\t7f1 f+0x9 (/bin/x)\n  file.c:300\n\t7f2 g (/bin/x)\n  x[7f2]", " 7f1:f@file.c:300(/bin/x) 7f2:g(/bin/x)" },
		{ "\t7f1 i (inlined)\n  in.h:3\n\t7f1 f (/bin/x)\n  file.c:300", " 7f1:i@in.h:3:f@file.c:300(/bin/x)" },
		{ "\t   7f1 f+0x9\n\t   7f2 g", " 7f1:f() 7f2:g()" },
		{ "\tfun\n\tg (/bin/x)\n\tfun (/bin/x)", " 0:fun() 0:g(/bin/x) 0:fun(/bin/x)" },
		{ "        ffffffff8103ce3b native_safe_halt ([kernel.kallsyms]) ", " kffffffff8103ce3b:native_safe_halt([kernel])" },
		{ "\t0 [truncated: no table] ([unknown])", " t0:[truncated: no table]()" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		/* Twice: the second time it is remembered. */
		_cleanup_free_ char *text = mem_printf("sh 7 1.5: 1 cycles:\n%s\n\nsh 7 1.5: 1 cycles:\n%s\n\n", table[i].frame, table[i].frame);
		_cleanup_free_ char *wanted = mem_printf("cycles 1 count sh 7/7 0:%s\ncycles 1 count sh 7/7 0:%s\n", table[i].wanted,
							 table[i].wanted);

		if (!strstr(table[i].frame, "truncated"))
			expect(text, wanted);
	}
}

/* perf script -G: no empty lines, names on the right. */
static void one_line_a_sample(void **state)
{
	expect("              sh  9421  1211.121410:    2004008 cpu-clock:      7fab33998f5d f+0xb5d (/lib/libc.so.6)\n"
	       "      tokio rt 1  9421  1211.121411:    2004008 cpu-clock:  ffffffff81000000 g ([kernel.kallsyms])\n"
	       "              sh  9421  1211.121412:  1 cycles:  \n",
	       "cpu 2004008 ns sh 9421/9421 0: 7fab33998f5d:f(/lib/libc.so.6)\n"
	       "cpu 2004008 ns tokio rt 1 9421/9421 1000: kffffffff81000000:g([kernel])\n"
	       "cycles 1 count sh 9421/9421 2000:\n");
}

static void the_head(void **state)
{
	struct profile *p = import_good("perf-script", "# ========\n# captured on    : Wed Nov 18 00:57:19 2026\n# hostname : box\n# os release : 6.1.0\n"
				      "# cmdline : /usr/bin/perf record -g -- /opt/node --fast\n  with a second line\n# event : name = cycles, , id = { 1 }\n#\n"
				      "sh 7 1.5: 5 cycles:\n\t1 f (x)\n\nnonsense\n");

	assert_string_equal(profile_str(p, p->host), "box");
	assert_string_equal(profile_str(p, p->kernel), "6.1.0");
	assert_string_equal(profile_str(p, p->target), "node");
	assert_true(p->start_wall_ns > 1794000000ULL * 1000000000 && p->finished);
	assert_int_equal(p->events.v[0].period, 5);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LINES_IGNORED), 2);
	profile_free(p);
}

static void threads_and_times(void **state)
{
	struct profile *p = import_good("perf-script", "sh 7/7 1.5: 5 cycles:\n\t1 f (x)\n\nls 7/7 2.5: 6 cycles:\n\t1 f (x)\n\nworker 7/8 2.4: 6 cycles:\n\t1 f (x)\n\n");

	/* A program was executed: two threads of one process, which has the last name. */
	assert_int_equal(p->threads.n, 3);
	assert_int_equal(p->processes.n, 1);
	assert_string_equal(profile_str(p, p->processes.v[0].name), "ls");
	assert_int_equal(p->duration_ns, 1000000000);
	assert_int_equal(p->samples.v[2].time_ns, 900000000);
	assert_int_equal(p->stacks.n, 2);
	assert_int_equal(p->events.v[0].period, 0);
	profile_free(p);
}

static void waits(void **state)
{
	expect("a 1/1 [000] 1.000000: sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n"
	       "\tffffffff81000001 schedule ([kernel.kallsyms])\n\t10 read (/bin/a)\n\n"
	       "b 2/2 [000] 1.005000: sched:sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\t20 write (/bin/b)\n\n"
	       "b 2/2 [000] 1.006000: sched:sched_wakeup: comm=a pid=1 prio=120 target_cpu=000\n\t20 write (/bin/b)\n\n"
	       "b 2/2 [000] 1.007000: sched:sched_switch: b:2 [120] R+ ==> a:1 [120]\n\t21 spin (/bin/b)\n\n"
	       "a 1/1 [000] 1.009000: sched:sched_switch: a:1 [120] S ==> b:2 [120]\n\t11 poll (/bin/a)\n\n"
	       "a 1/1 [000] 1.010000: 7 cycles: \n\t11 poll (/bin/a)\n\n",
	       "wait 5000000 ns a 1/1 0: kffffffff81000001:schedule([kernel]) 10:read(/bin/a)\n"
	       "queue 2000000 ns a 1/1 0: kffffffff81000001:schedule([kernel]) 10:read(/bin/a)\n"
	       "queue 2000000 ns b 2/2 7000000: 21:spin(/bin/b)\n"
	       "cycles 7 count a 1/1 10000000: 11:poll(/bin/a)\n"
	       "wait 1000000 ns a 1/1 9000000: 11:poll(/bin/a)\n"
	       "wake 1 by b: 5000000 2000000\n");
}

static void waits_without_wakeups(void **state)
{
	expect("a 1 1.000000: sched:sched_switch: a:1 [120] D ==> swapper/0:0 [120]\n\n"
	       "swapper 0 1.000500: sched:sched_switch: swapper/0:0 [120] R ==> a:1 [120]\n\n"
	       "a 1 1.000600: sched:sched_switch: this says nothing\n\n"
	       "a 1 1.000700: sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=X ==> next_comm=b next_pid=2 next_prio=120\n\n"
	       "b 2 1.000900: sched:sched_switch: b:2 [120] Z ==> c:3 [120]\n\n",
	       "wait 500000 ns a 1/1 0:\nsched:sched_switch 1 count a 1/1 600000:\n");
}

/* Where only some processes were recorded, nobody switches to them: sched_stat_ events tell, and are samples, too. */
static void waits_of_some_processes(void **state)
{
	expect("a 1 1.000000: 1 sched:sched_switch: a:1 [120] S ==> swapper/0:0 [120]\n\n"
	       "swapper 0 1.003000: 3000000 sched:sched_stat_sleep: comm=a pid=1 delay=3000000 [ns]\n\n"
	       "swapper 0 1.004000: 1000000 sched:sched_stat_wait: comm=a pid=1 delay=1000000 [ns]\n\n",
	       "sched:sched_stat_sleep 3000000 count swapper 0/0 3000000:\n"
	       "wait 3000000 ns a 1/1 0:\nqueue 1000000 ns a 1/1 0:\n"
	       "sched:sched_stat_wait 1000000 count swapper 0/0 4000000:\n");
}

/* It left twice: when the first wait ended is not known. */
static void waits_without_an_end(void **state)
{
	struct profile *p = import_good("perf-script", "a 1 1.000000: sched:sched_switch: a:1 [120] S ==> swapper/0:0 [120]\n\n"
				      "a 1 1.002000: sched:sched_switch: a:1 [120] S ==> swapper/0:0 [120]\n\n"
				      "swapper 0 1.003000: sched:sched_switch: swapper/0:0 [120] R ==> a:1 [120]\n\n");

	assert_int_equal(p->samples.n, 1);
	assert_int_equal(p->samples.v[0].value, 1000000);
	assert_int_equal(profile_counter(p, KEY_IMPORT_WAITS_UNENDED), 1);
	profile_free(p);
}

/* One of everything. */
static struct sample small_sample(void)
{
	static const char *const stacks[] = {
		"_start;main;node::run;node::fib;node::fib", "_start;main;write;k:entry_SYSCALL_64;k:ksys_write",
		"clone3;start_thread;StateRoot<T, H>::calculate;i:HashBuilder::update;i:<impl fn(A) -> B>::cmp",
		"!no table;?;node::callback", "clone3;x+0x1200",
	};
	struct sample s = sample_empty();
	uint32_t wait = profile_add_event(s.p, "wait", "ns", "time blocked", 0);

	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		sample_add(&s, i % 2 ? s.worker : s.main, sample_stack(&s, "%s", stacks[i]), 2);
	profile_add_sample(s.p, &(struct profile_sample){ .time_ns = 20000000, .value = 12345, .thread = s.other, .event = wait,
							  .stack = sample_stack(&s, "_start;main;read") });
	return s;
}

/* What perf script cannot say is lost, the rest is not: the second export is the first. */
static void there_and_back(void **state)
{
	struct sample s = small_sample();
	struct buf first = export_all(s.p, "perf-script", (struct export_options){ .every_event = true }), second;
	struct profile *p = NULL;

	golden_check("sample.perf", first.data, first.n);
	assert_true(perfscript_probe(first.data, MIN(first.n, 65536), false));
	assert_int_equal(import_data("perf-script", first.data, first.n, &p, NULL), 0);
	assert_int_equal(p->samples.n, s.p->samples.n);
	assert_int_equal(p->start_wall_ns, s.p->start_wall_ns);
	assert_int_equal(p->duration_ns, s.p->duration_ns);
	for (size_t i = 0; i < p->samples.n; i++) {
		assert_int_equal(p->samples.v[i].time_ns, s.p->samples.v[i].time_ns);
		assert_int_equal(p->samples.v[i].value, s.p->samples.v[i].value);
	}
	second = export_all(p, "perf-script", (struct export_options){ .every_event = true });
	assert_string_equal(first.data, second.data);
	buf_done(&first);
	buf_done(&second);
	first = export_all(s.p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME, .mark_inlined = true });
	second = export_all(p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME, .mark_inlined = true });
	assert_string_equal(first.data, second.data);
	buf_done(&first);
	buf_done(&second);
	profile_free(p);
	profile_free(s.p);
}

static void hostile_and_deep(void **state)
{
	struct sample samples[] = { export_hostile(), export_deep(20000) };

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct buf b = export_all(samples[i].p, "perf-script", (struct export_options){ .every_event = true });
		struct profile *p = import_good("perf-script", b.data);
		struct buf again = export_all(p, "perf-script", (struct export_options){ .every_event = true });

		assert_int_equal(p->samples.n, samples[i].p->samples.n);
		assert_int_equal(profile_counter(p, KEY_IMPORT_LINES_IGNORED), 0);
		assert_string_equal(b.data, again.data);
		for (size_t k = 0; k < b.n; k++)
			assert_true((unsigned char)b.data[k] >= 0x20 || b.data[k] == '\n' || b.data[k] == '\t');
		buf_done(&b);
		buf_done(&again);
		profile_free(p);
		profile_free(samples[i].p);
	}
}

static void bad_input(void **state)
{
	static const char *const none[] = { "", "\n", "a;b 12\n", "# captured on : x\n", "heap_v2/524288\n", "{\"a\": 1}\n", "\t7f1 f (x)\n" };
	static const char good[] = "# gasflame : perf-script 1\n# event : name = cpu, unit = ns\ntokio rt 3 7/8 [001] 1.500000: 3 cpu: \n\t1 f (inlined)\n"
				   "\t1 f->g+0x1 ([kernel.kallsyms])\n  file.c:3\n\na 1/1 [000] 1.6: sched:sched_switch: a:1 [120] S ==> b:2 [120]\n\t1 f (x)\n\n"
				   "b 2/2 [000] 1.7: sched:sched_switch: b:2 [120] S ==> a:1 [120]\n";
	static const char *const large[] = {
		"sh 7 1.5: 9223372036854775807 cycles:\n\nsh 7 1.5: 9 cycles:\n\n",
		"sh 7 1.5: 99999999999999999999999 cycles:\n\n",
		"a 1 1.1: sched:sched_switch: a:1 [1] S ==> b:2 [1]\n\nb 2 1.1: sched:sched_switch: b:2 [1] S ==> c:3 [1]\n\n\
c 3 1.1: sched:sched_switch: c:3 [1] S ==> d:4 [1]\n\nd 4 9223372030.1: sched:sched_switch: d:4 [1] S ==> e:5 [1]\n\n",
	};
	struct err err = { 0 };
	struct profile *p = NULL;

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		assert_false(perfscript_probe(none[i], strlen(none[i]), true));
		assert_int_equal(import_data("perf-script", none[i], strlen(none[i]), &p, NULL), -EINVAL);
	}
	import_cut_everywhere("perf-script", good);
	for (size_t i = 0; i < ARRAY_LEN(large); i++) {
		assert_int_equal(import_data("perf-script", large[i], strlen(large[i]), &p, &err), -ERANGE);
		assert_non_null(strstr(err.text, "add up to more"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beginnings_of_samples), cmocka_unit_test(frames),
		cmocka_unit_test(one_line_a_sample),     cmocka_unit_test(the_head),
		cmocka_unit_test(threads_and_times),     cmocka_unit_test(waits),
		cmocka_unit_test(waits_without_wakeups), cmocka_unit_test(there_and_back),
		cmocka_unit_test(hostile_and_deep),      cmocka_unit_test(bad_input),
		cmocka_unit_test(waits_of_some_processes), cmocka_unit_test(waits_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
