/* test_groups.c - CPU quotas: read from files, told from a profile, apart from the run queue. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/groups.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/section/section.h"
#include "jsonmembers.h"
#include "judged.h"
#include "putfile.h"
#include "target/cgroup/cgroupcpu.h"
#include "target/cgroup/cgroupfile.h"
#include "target/cgroup/cgrouppath.h"

/* --- files --- */

struct folders {
	char root[64], outer[80], inner[96];
};

static void folders_make(struct folders *f)
{
	snprintf(f->root, sizeof(f->root), "/tmp/gasflame-groups-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	snprintf(f->outer, sizeof(f->outer), "%s/pod", f->root);
	snprintf(f->inner, sizeof(f->inner), "%s/pod/box", f->root);
	assert_int_equal(mkdir(f->outer, 0700) | mkdir(f->inner, 0700), 0);
}

static void folders_remove(struct folders *f)
{
	static const char *const names[] = { "cpu.max", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us" };
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->inner, names[i]);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", f->outer, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(f->inner) | rmdir(f->outer) | rmdir(f->root), 0);
}

static void the_tightest_quota_counts(void **state)
{
	struct folders f;
	struct cgroupcpu g;

	folders_make(&f);
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 2, &g), -ENOENT);
	put(f.inner, "cpu.stat", "usage_usec 5\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1500\n");
	put(f.inner, "cpu.max", "max 100000\n");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 2, &g), 0);
	assert_int_equal(g.quota_us, 0);
	assert_int_equal(g.throttled_ns, 0);
	cgroupcpu_done(&g);
	/* That of the group above binds it, with that group's numbers. */
	put(f.outer, "cpu.max", "50000 100000\n");
	put(f.outer, "cpu.stat", "nr_periods 20\nnr_throttled 10\nthrottled_usec 250\n");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 2, &g), 0);
	assert_int_equal(g.quota_us, 50000);
	assert_int_equal(g.period_us, 100000);
	assert_int_equal(g.throttled_periods, 10);
	assert_int_equal(g.throttled_ns, 250000);
	cgroupcpu_done(&g);
	put(f.inner, "cpu.max", "4000 10000\n");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 2, &g), 0);
	assert_int_equal(g.quota_us, 4000);
	assert_int_equal(g.periods, 7);
	assert_int_equal(g.throttled_ns, 1500000);
	cgroupcpu_done(&g);
	put(f.inner, "cpu.max", "rubbish\n");
	put(f.outer, "cpu.max", "");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 2, &g), 0);
	assert_int_equal(g.quota_us, 0);
	cgroupcpu_done(&g);
	folders_remove(&f);
}

static void version_1_has_other_files(void **state)
{
	struct folders f;
	struct cgroupcpu g;

	folders_make(&f);
	put(f.inner, "cpu.stat", "nr_periods 100\nnr_throttled 40\nthrottled_time 123456789\n");
	put(f.inner, "cpu.cfs_quota_us", "-1\n");
	put(f.inner, "cpu.cfs_period_us", "100000\n");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 1, &g), 0);
	assert_int_equal(g.quota_us, 0);
	cgroupcpu_done(&g);
	put(f.inner, "cpu.cfs_quota_us", "20000\n");
	assert_int_equal(cgroupcpu_read_folder(f.root, "/pod/box", 1, &g), 0);
	assert_int_equal(g.quota_us, 20000);
	assert_int_equal(g.throttled_ns, 123456789);
	cgroupcpu_done(&g);
	folders_remove(&f);
}

static void ours_can_be_read(void **state)
{
	struct cgroupcpu g;
	int r = cgroupcpu_read(getpid(), &g);

	assert_true(r == 0 || r == -ENOENT);
	cgroupcpu_done(&g);
	assert_int_equal(cgroupcpu_read(0x3fffffff, &g), -ESRCH);
	assert_null(cgrouppath_text(0x3fffffff));
	assert_null(cgroupfile_folder(0x3fffffff));
}

/* --- in a profile --- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CPU "/sys/fs/cgroup/cpu/docker/" ID
#define MEMORY "/sys/fs/cgroup/memory/docker/" ID

/* What the collector leaves of a container with half a CPU and 64 MB. */
static void add_counters(struct profile *p)
{
	profile_count(p, "cgroup.cpu.recordings: " CPU, 1);
	profile_count(p, "cgroup.cpu.quota_us: " CPU, 50000);
	profile_count(p, "cgroup.cpu.period_us: " CPU, 100000);
	profile_count(p, "cgroup.cpu.periods: " CPU, 10);
	profile_count(p, "cgroup.cpu.throttled periods: " CPU, 9);
	profile_count(p, "cgroup.cpu.throttled_ns: " CPU, 400 * MS);
	profile_count(p, "cgroup.memory.recordings: " MEMORY, 1);
	profile_count(p, "cgroup.memory.limit_bytes: " MEMORY, 64 << 20);
	profile_count(p, "cgroup.memory.most_bytes: " MEMORY, 16 << 20);
	profile_count(p, "cgroup.memory.limit hits: " MEMORY, 2);
	/* One without limits has nothing to tell. */
	profile_count(p, "cgroup.memory.most_bytes: /sys/fs/cgroup/memory/other", 1 << 20);
}

static void both_controllers_are_one_group(void **state)
{
	struct waiting w = waiting_make();
	struct groups g;

	groups_make(&g, w.s.p);
	assert_int_equal(g.rows.n + g.restarts.n, 0);
	groups_done(&g);
	add_counters(w.s.p);
	groups_make(&g, w.s.p);
	assert_int_equal(g.rows.n, 1);
	assert_string_equal(g.rows.v[0].path, "/docker/" ID);
	assert_true(groups_cpus(&g.rows.v[0]) == 0.5);
	assert_int_equal(g.rows.v[0].throttled_periods, 9);
	assert_int_equal(g.rows.v[0].limit_bytes, 64 << 20);
	assert_int_equal(g.rows.v[0].limit_hits, 2);
	groups_done(&g);
	profile_free(w.s.p);
}

static void a_merge_does_not_add_up_limits(void **state)
{
	struct waiting a = waiting_make(), b = waiting_make();
	struct groups g;

	add_counters(a.s.p);
	add_counters(b.s.p);
	assert_int_equal(profile_merge(a.s.p, b.s.p, NULL), 0);
	groups_make(&g, a.s.p);
	assert_int_equal(g.rows.n, 1);
	assert_int_equal(g.rows.v[0].quota_us, 50000);
	assert_int_equal(g.rows.v[0].period_us, 100000);
	assert_int_equal(g.rows.v[0].limit_bytes, 64 << 20);
	assert_int_equal(g.rows.v[0].throttled_ns, 800 * MS);
	groups_done(&g);
	profile_free(a.s.p);
	profile_free(b.s.p);
}

static void ids_are_cut(void **state)
{
	static const struct {
		const char *path, *label;
	} cases[] = {
		{ "/docker/" ID, "/docker/0123456789ab" },
		{ "/system.slice/docker-" ID ".scope", "/system.slice/docker-0123456789ab.scope" },
		{ "/user.slice/abc", "/user.slice/abc" },
		{ "", "" },
		{ "/" ID "0", "/" ID "0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *label = groups_label(cases[i].path);

		assert_string_equal(label, cases[i].label);
		free(label);
	}
}

/* --- the account and the verdict --- */

/* busy: 400 ms on the CPU, 450 stopped by the quota, 150 in the queue. */
static struct waiting throttled_make(void)
{
	struct waiting w = waiting_empty();
	uint32_t event = profile_add_event(w.s.p, "throttled", "ns", "", 0);

	for (uint64_t i = 0; i < 10; i++) {
		waiting_add(&w, event, w.busy, w.preempted, (i * 100 + 40) * MS, 45 * MS, 1);
		waiting_add(&w, w.queue, w.busy, w.preempted, (i * 100 + 85) * MS, 15 * MS, 1);
	}
	waiting_account(&w, w.busy, 400 * MS, 600 * MS, 0);
	return w;
}

static void the_quota_is_not_the_queue(void **state)
{
	struct waiting w = throttled_make();
	const struct account_row *r;
	struct all a;

	add_counters(w.s.p);
	begin(&a, w.s.p, (struct select_options){ 0 });
	r = row(&a, w.busy);
	assert_int_equal(r->ns[CAUSE_CPU], 400 * MS);
	assert_int_equal(r->ns[CAUSE_QUOTA], 450 * MS);
	assert_int_equal(r->ns[CAUSE_QUEUE], 150 * MS);
	assert_int_equal(r->missing_ns, 0);
	assert_non_null(strstr(a.verdict.sentences.v[0],
			       "quota of 0.5 CPUs stopped thread `busy` for 450 ms of 1.00 s, and all threads for 450 ms"));
	assert_string_equal(a.verdict.links.v[0].what, "throttled");
	end(&a);
	/* A range cuts both, in their order. */
	begin(&a, w.s.p, (struct select_options){ .from_ns = 50 * MS, .to_ns = 90 * MS });
	r = row(&a, w.busy);
	assert_int_equal(r->ns[CAUSE_QUOTA], 35 * MS);
	assert_int_equal(r->ns[CAUSE_QUEUE], 5 * MS);
	end(&a);
	profile_free(w.s.p);
}

static void a_kernel_that_does_not_tell_is_no_excuse(void **state)
{
	struct waiting w = waiting_empty();
	struct all a;
	bool said = false;

	add_counters(w.s.p);
	waiting_add(&w, w.queue, w.busy, w.preempted, 0, 600 * MS, 1);
	waiting_account(&w, w.busy, 400 * MS, 600 * MS, 0);
	begin(&a, w.s.p, (struct select_options){ 0 });
	for (size_t i = 0; i < a.verdict.sentences.n; i++)
		said |= strstr(a.verdict.sentences.v[i], "stopped it for 400 ms, by the kernel's count") != NULL;
	assert_true(said);
	end(&a);
	profile_free(w.s.p);
}

static void the_text_tells_grants_and_restarts(void **state)
{
	struct waiting w = waiting_make();
	struct export_job job = { .profile = w.s.p };
	struct buf b = { 0 };

	section_cgroups.text(&job, &b);
	assert_int_equal(b.n, 0);
	put_members(&b, section_cgroups.json(&job, &j));
	assert_string_equal(b.data, "{}");
	b.n = 0;
	add_counters(w.s.p);
	profile_count(w.s.p, "restarts", 1);
	profile_count(w.s.p, "restarts.not running_ns", 250 * MS);
	profile_add_mark(w.s.p, &(struct profile_mark){ .start_ns = 500 * MS, .end_ns = 750 * MS, .thread = PROFILE_NONE,
							.name = profile_string(w.s.p, "restart 1: exited with status 3"),
							.kind = profile_string(w.s.p, "restart") });
	section_cgroups.text(&job, &b);
	assert_string_equal(b.data, "\nWhat the cgroups grant\n"
				    "/docker/0123456789ab: 0.5 CPUs (50.0 ms of each 100 ms), used up in 9 of 10 periods: its CPUs stood "
				    "still for 400 ms; memory 64.0 MB, at most 16.0 MB in use, limit met 2 times, 0 OOM kills\n"
				    "\nRestarts\n"
				    "at 500 ms: restart 1: exited with status 3\n"
				    "not running for 250 ms in all\n");
	buf_done(&b);
	b = (struct buf){ 0 };
	put_members(&b, section_cgroups.json(&job, &j));
	assert_non_null(strstr(b.data, "\"quota_us\":50000,\"period_us\":100000,\"periods\":10,\"throttled_periods\":9"));
	assert_non_null(strstr(b.data, "\"restarts\":{\"count\":1,\"not_running_ns\":250000000,"));
	buf_done(&b);
	profile_free(w.s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tightest_quota_counts),
		cmocka_unit_test(version_1_has_other_files),
		cmocka_unit_test(ours_can_be_read),
		cmocka_unit_test(both_controllers_are_one_group),
		cmocka_unit_test(a_merge_does_not_add_up_limits),
		cmocka_unit_test(ids_are_cut),
		cmocka_unit_test(the_quota_is_not_the_queue),
		cmocka_unit_test(a_kernel_that_does_not_tell_is_no_excuse),
		cmocka_unit_test(the_text_tells_grants_and_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
