/* test_printed.c - stacks of bpftrace, DTrace and bcc: what they become, and text that is none. */
#include "test.h"

#include <errno.h>

#include "import/text/printed.h"
#include "importing.h"
#include "profile/keys.h"

/* "event unit value/count comm pid/tid: frames from the leaf on", a line for each sample. */
static char *dump(const struct profile *p)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_thread *t = &p->threads.v[s->thread];

		buf_printf(&b, "%s %s %llu/%u %s %u/%u:", profile_str(p, p->events.v[s->event].name), profile_str(p, p->events.v[s->event].unit),
			   (unsigned long long)s->value, s->count, profile_str(p, t->name), p->processes.v[t->process].pid, t->tid);
		for (uint32_t stack = s->stack; stack; stack = p->stacks.v[stack].parent) {
			const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

			buf_printf(&b, " %s%s", profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name),
				   f->kind == FRAME_KERNEL ? "_[k]" : "");
			if (f->module != PROFILE_NONE)
				buf_printf(&b, "(%s)", profile_str(p, p->modules.v[f->module].path));
		}
		buf_putc(&b, '\n');
	}
	buf_puts(&b, "");
	return b.data;
}

static void expect(const char *format, const char *text, const char *wanted)
{
	const struct import_format *found = import_probe(text, strlen(text), true);
	struct profile *p;
	_cleanup_free_ char *got = NULL;

	if (!found || strcmp(found->name, format))
		fail_msg("is taken for %s, not %s: %s", found ? found->name : "nothing", format, text);
	p = import_good(format, text);
	got = dump(p);
	assert_string_equal(got, wanted);
	profile_free(p);
	import_cut_everywhere(format, text);
}

static const char bpftrace_text[] = "Attaching 2 probes...\n\n\n"
				    "@[\n    read+12\n    main+0x1\n    0x7fcd8f9bea80\n,\n    vfs_read+1\n    do_syscall_64+92\n, my comm, 12]: 7\n"
				    "@[, \n    schedule+35\n    ret_from_fork_asm+26\n, kworker/1:1]: 1\n"
				    "@blocked_us[\"bash\", 3, 4]: 5\n@bytes[\n\t7f12 malloc+1 (/lib/libc.so.6)\n]: count 2, average 4, total 9\n"
				    "@x[a]: \n[1]   5 |@@@|\n@count: 5\n";

static void bpftrace(void **state)
{
	expect("bpftrace", bpftrace_text,
	       "samples count 7/7 my comm 12/12: vfs_read_[k] do_syscall_64_[k] read main [unknown]\n"
	       "samples count 1/1 kworker/1:1 0/0: schedule_[k] ret_from_fork_asm_[k]\n"
	       "blocked_us ns 5000/2 bash 3/4:\n"
	       "bytes bytes 9/2  0/0: malloc(/lib/libc.so.6)\n");
	expect("bpftrace",
	       "{\"type\": \"attached_probes\", \"data\": {\"probes\": 2}}\n\n"
	       "{\"type\": \"map\", \"data\": {\"@\": {\"\\n    vfs_read+1\\n    do_syscall_64+92\\n,bash,12\": 7, \"bash\": -1}, \"@n\": 3}}\n"
	       "{\"type\": \"stats\", \"data\": {\"@t\": {\"a\": {\"count\": 2, \"average\": 3, \"total\": 6}}}}\n",
	       "samples count 7/7 bash 12/12: vfs_read_[k] do_syscall_64_[k]\nt count 6/6 a 0/0:\n");
}

static void dtrace(void **state)
{
	expect("dtrace",
	       "CPU     ID                    FUNCTION:NAME\n  0  64091                        :tick-60s \n\n\n"
	       "              genunix`kmem_cache_free+0x1c\n              unix`sys_syscall+0x17a\n"
	       "              libc.so.1`_write+0xa\n              node`std::foo(int, char)+0x1\n              0xfe12\n                2\n\n"
	       "  bash\n              libc.so.1`read+0x5\n               12\n",
	       "samples count 2/2  0/0: kmem_cache_free_[k](genunix) sys_syscall_[k](unix) _write(libc.so.1) std::foo(int, char)(node) [unknown]\n"
	       "samples count 12/12 bash 0/0: read(libc.so.1)\n");
}

static void bcc(void **state)
{
	expect("bcc",
	       "Sampling at 100 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.\n^C\n"
	       "    vfs_read\n    ksys_read\n    --\n    b'read'\n    main+0x12 (/bin/x)\n    -                my app (12)\n        3\n\n"
	       "    spin [node]\n    -                node (13)\n        1\n\n",
	       "cpu ns 30000000/3 my app 12/12: vfs_read_[k] ksys_read_[k] read main(/bin/x)\ncpu ns 10000000/1 node 13/13: spin(node)\n");
	expect("bcc",
	       "Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.\n"
	       "    finish_task_switch\n    schedule\n    entry_SYSCALL_64_after_hwframe\n    read\n    -                sh (1)\n        99\n\n",
	       "wait ns 99000/2 sh 1/1: finish_task_switch_[k] schedule_[k] entry_SYSCALL_64_after_hwframe_[k] read\n");
	/* libbpf-tools: nothing says what the numbers are but the stacks. */
	expect("bcc",
	       "    bpf_prog_6896d07dd3e1383c_sched_switch\n    bpf_trace_run4\n    __schedule\n    do_syscall_64\n    [Missed User Stack]\n"
	       "    -                sh (1)\n        99\n\n    #0  0x00007f12 read+0xc (/lib/libc.so.6)\n    -                sh (1)\n        1\n",
	       "wait ns 99000/2 sh 1/1: bpf_prog_6896d07dd3e1383c_sched_switch_[k] bpf_trace_run4_[k] __schedule_[k] do_syscall_64_[k] "
	       "[Missed User Stack]\nwait ns 1000/2 sh 1/1: read(/lib/libc.so.6)\n");
	expect("bcc", "  tcp_sendmsg\n  sock_sendmsg\n    b'sshd' [7]\n    2\n", "samples count 2/2 sshd 7/7: tcp_sendmsg sock_sendmsg\n");
}

static void folded_is_folded(void **state)
{
	/* bcc -f, async-profiler, py-spy --format raw, rbspy, Austin, pyroscope. */
	static const char *const texts[] = {
		"bash;main;read;-;vfs_read_[k] 3\n",
		"java/lang/Thread.run_[j];a.b_[0];c.d_[1];e_[i];read_[k] 12\n",
		"main (app.py:12);work (app.py:3) 7\n",
		"<main> - app.rb:3;work - app.rb:1 7\n",
		"# austin: 3.7.0\n# mode: wall\n\nP12;T13;app.py:main:12;app.py:work:3 1234\n",
		"runtime.main;main.main 7\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_string_equal(import_probe(texts[i], strlen(texts[i]), true)->name, "folded");
}

static void marks_of_folded_names(void **state)
{
	static const struct {
		const char *text, *wanted;
	} table[] = {
		{ "java;a.b_[0];c.d_[1];e_[j];g_[w];read_[k] 12\n",
		  "samples count 12/12 java 0/0: read_[k] g_[w] e([jit]) c.d([jit]) a.b([interpreted])\n" },
		{ "bash;main;read;-;vfs_read_[k];more 3\nbash;main 2\n",
		  "samples count 3/3 bash 0/0: more_[k] vfs_read_[k] read main\nsamples count 2/2 bash 0/0: main\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		expect("folded", table[i].text, table[i].wanted);
}

static void bad_input(void **state)
{
	static const struct {
		const char *format, *text, *says;
		int code;
	} table[] = {
		{ "bpftrace", "@[\n    a+1\n]: 18446744073709551615\n", "line 3", -ERANGE },
		{ "bpftrace", "@us[\n    a+1\n]: 9223372036854775\n@us[a]: 9223372036854775\n", "line 4", -ERANGE },
		{ "bpftrace", "{\"type\": \"map\", \"data\": {\"@\": {\n", "line 1", -EINVAL },
		{ "bpftrace", "@x: 5\n", "no stack", -EINVAL },
		{ "dtrace", "  a`b\n  99999999999999999999999999\n", "line 2", -ERANGE },
		{ "bcc", "Sampling at 1 Hertz\n    a\n    -   sh (1)\n    99999999999\n", "line 4", -ERANGE },
		{ "bcc", "", "no stack", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct profile *p = NULL;
		struct err err = { 0 };

		assert_int_equal(import_data(table[i].format, table[i].text, strlen(table[i].text), &p, &err), table[i].code);
		if (!strstr(err.text, table[i].says))
			fail_msg("%s", err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bpftrace), cmocka_unit_test(dtrace),    cmocka_unit_test(bcc),
		cmocka_unit_test(folded_is_folded), cmocka_unit_test(marks_of_folded_names), cmocka_unit_test(bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
