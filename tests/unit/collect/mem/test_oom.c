#include "test.h"

#include "analyze/memory/oom.h"
#include "base/buf.h"
#include "base/mem.h"
#include "collect/mem/oomwatch.h"
#include "export/export.h"
#include "export/section/oomtext.h"
#include "export/section/section.h"
#include "profile/profile.h"
#include "target/cgroup/limitgroup.h"
#include "builder.h"
#include "jsonmembers.h"

static void add(struct profile *p, uint32_t event, uint32_t thread, const char *stack, uint64_t value,
		uint32_t count)
{
	const struct builder_modules modules = { .program = builder_module(p, "/bin/node", MODULE_FILE) };

	profile_add_sample(p, &(struct profile_sample){ .event = event,
							.thread = thread,
							.stack = builder_stack(p, &modules, 0, "%s", stack),
							.value = value,
							.count = count,
							.time_ns = 3000000000 });
}

/* 10 s on the way to 100 MB, then a kill. */
static struct profile *make_killed(void)
{
	struct profile *p = profile_new();
	uint32_t heap = profile_add_event(p, "heap", "bytes", "", 0), usage, anon, file, victim, process,
		 thread;

	process = profile_add_process(
		p, &(struct profile_process){ .pid = 42, .name = profile_string(p, "node") });
	thread = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 42 });
	victim = profile_add_event(p, "oom:mark_victim", "count", "", 0);
	add(p, heap, thread, "leaky<script>\x1b[31m;malloc", 80 << 20, 1000);
	add(p, heap, thread, "small;malloc", 5 << 20, 0);
	add(p, heap, thread, "small;calloc", 5 << 20, 2);
	add(p, victim, thread, "asker;memset", 1, 1);
	usage = profile_add_series(p, "limit.usage", "bytes");
	anon = profile_add_series(p, "limit.anon", "bytes");
	file = profile_add_series(p, "limit.file", "bytes");
	for (int i = 1; i <= 100; i++) {
		uint64_t at = i * 100000000ULL;

		profile_add_point(p, usage, at, (uint64_t)i << 20);
		profile_add_point(p, anon, at, (uint64_t)i * 95 / 100 << 20);
		profile_add_point(p, file, at, 1 << 20);
	}
	profile_add_mark(p,
			 &(struct profile_mark){ .kind = profile_string(p, "kernel"),
						 .thread = PROFILE_NONE,
						 .name = profile_string(p, "Killed process 42 (\xff<b>)") });
	profile_add_mark(p, &(struct profile_mark){ .kind = profile_string(p, "oom"), .thread = PROFILE_NONE,
						    .start_ns = 77, .name = profile_string(p, "killed") });
	profile_count_set(p, "limit.memory bytes", 100 << 20);
	profile_count_set(p, "limit.oom kills", 1);
	profile_count_set(p, "limit.peak bytes", 100 << 20);
	profile_count_set(p, "limit.hits", 7);
	return p;
}

static void a_kill_is_told(void **state)
{
	struct profile *p = make_killed();
	struct buf out = { 0 };
	struct oom o;

	oom_build(&o, p);
	assert_true(o.recorded);
	assert_int_equal(o.limit, 100 << 20);
	assert_true(o.swap_limit == UINT64_MAX);
	assert_int_equal(o.kills, 1);
	assert_int_equal(o.kill_ns, 3000000000); /* of the tracepoint, rather than of the mark */
	assert_int_equal(o.live.bytes, 90 << 20);
	assert_int_equal(o.live.objects, 1003);
	assert_int_equal(o.live.rows.n, 2);
	assert_string_equal(o.live.rows.v[1].name, "small");
	assert_int_equal(o.live.rows.v[1].bytes, 10 << 20);
	assert_string_equal(o.trigger, "asker");
	assert_string_equal(oom_blame(&o), "heap");
	/* The last is there, and the seconds before it closer together. */
	assert_int_equal(o.points.n, 14);
	assert_int_equal(o.points.v[13].usage, 100 << 20);
	assert_true(o.points.v[13].time_ns - o.points.v[12].time_ns <
		    o.points.v[1].time_ns - o.points.v[0].time_ns);
	assert_int_equal(o.said.n, 1);
	oom_done(&o);

	oomtext_put(p, 0, &out);
	assert_non_null(
		strstr(out.data,
		       "The heap filled it: 90.0 MB alive at the kill, 89 % of it allocated by leaky<scr"));
	assert_non_null(strstr(out.data, "asked for by asker."));
	assert_null(strchr(out.data, 0x1b));
	assert_null(strchr(out.data, (char)0xff));
	out.n = 0;
	put_members(&out, section_limit.json(&(struct export_job){ .profile = p }, &j));
	assert_non_null(strstr(out.data, "\"filled_by\":\"heap\""));
	assert_null(strchr(out.data, 0x1b));
	buf_done(&out);
	profile_free(p);
}

static void who_is_to_blame(void **state)
{
	struct oom_point point = { .usage = 100, .anon = 95 };
	struct oom o = { .recorded = true, .live.bytes = 60 };

	assert_string_equal(oom_blame(&o), "");
	vec_push(&o.points, point);
	assert_string_equal(oom_blame(&o), "heap");
	o.live.bytes = 10;
	assert_string_equal(oom_blame(&o), "other");
	o.points.v[0] = (struct oom_point){ .usage = 100, .anon = 10, .file = 80 };
	/* A heap that was never touched is not what fills it. */
	o.live.bytes = 1000;
	assert_string_equal(oom_blame(&o), "cache");
	o.points.v[0] = (struct oom_point){ .usage = 100, .anon = 10, .kernel = 80 };
	assert_string_equal(oom_blame(&o), "kernel");
	o.points.v[0] = (struct oom_point){ .usage = 100, .anon = 34, .file = 33, .kernel = 33 };
	assert_string_equal(oom_blame(&o), "");
	vec_done(&o.points);
}

static void no_limit_no_words(void **state)
{
	struct profile *p = profile_new();
	struct buf out = { 0 };

	oomtext_put(p, 80, &out);
	assert_int_equal(out.n, 0);
	put_members(&out, section_limit.json(&(struct export_job){ .profile = p }, &j));
	assert_string_equal(out.data, "{}");
	out.n = 0;
	/* A limit of which nothing more is known. */
	profile_count_set(p, "limit.memory bytes", 1);
	oomtext_put(p, 1, &out);
	assert_int_not_equal(out.n, 0);
	out.n = 0;
	put_members(&out, section_limit.json(&(struct export_job){ .profile = p }, &j));
	assert_non_null(strstr(out.data, "\"memory\":1,"));
	buf_done(&out);
	profile_free(p);
}

static void the_kernels_log(void **state)
{
	static const char *const lines[] = {
		"4,1,5000,-;other invoked oom-killer: gfp_mask=0x0\n SUBSYSTEM=x\n",
		"6,2,5001,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a/another,task=other,pid=1,uid=0\n",
		"3,3,5002,-;Memory cgroup out of memory: Killed process 1 (other)\n",
		"6,4,5500,-;usb 1-1: new device\n",
		"4,5,6000,-;node invoked oom-killer: gfp_mask=0x0\n",
		"4,6,6001,-;RIP: 0033:0x7f\n",
		"6,7,6002,-;memory: usage 65536kB, limit 65536kB, failcnt 48\n",
		"6,8,6003,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a/mine-1,task=node,pid=2,uid=0\n",
		"3,9,6004,-;Memory cgroup out of memory: Killed process 2 (node)\n",
		"6,10,6005,-;[ 1 ] not of the report any more\n",
		"",
		";",
		"x;y",
		"6,7;memory: usage",
		"6,1,99999999999999999999999,-;memory: usage\n",
	};
	struct limitgroup c = { .path = mem_strdup("/none/mine-1"), .guard = -1 };
	struct profile *p = profile_new();
	struct oomwatch *w = oomwatch_new(p, &c);
	struct limitgroup_memory before = { .limit = 65536 << 10, .swap_limit = LIMITGROUP_UNLIMITED };
	size_t kernel = 0;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		oomwatch_line(w, lines[i]);
	oomwatch_finish(w, &before, 1000);
	for (size_t i = 0; i < p->marks.n; i++) {
		const char *text = profile_str(p, p->marks.v[i].name);

		if (strcmp(profile_str(p, p->marks.v[i].kind), "kernel"))
			continue;
		kernel++;
		assert_null(strstr(text, "other"));
		assert_null(strstr(text, "RIP"));
		assert_null(strchr(text, '\n'));
		assert_true(p->marks.v[i].start_ns <= 1000);
	}
	assert_true(kernel >= 4);
	assert_int_equal(profile_counter(p, "limit.memory bytes"), 65536 << 10);
	oomwatch_free(w);
	oomwatch_free(NULL);
	profile_free(p);
	free(c.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_is_told),
		cmocka_unit_test(who_is_to_blame),
		cmocka_unit_test(no_limit_no_words),
		cmocka_unit_test(the_kernels_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
