#include "capturefiles.h"

#include "base/text/str.h"
#include "profile/redact.h"

/* One in each place that says whose a recording is. */
static struct profile *make_told(void)
{
	struct profile *p = make_profile(&small);
	uint32_t process;

	p->target = profile_string(p, "hush-target");
	p->host = profile_string(p, "hush-host");
	p->processes.v[0].command = profile_string(p, "reth --password hush-argument");
	p->processes.v[0].name = profile_string(p, "hush-comm");
	p->processes.v[0].exe = profile_string(p, "/home/hush-user/bin/reth");
	p->processes.v[0].owner = profile_owner(p, &(struct profile_owner){
		.kind = profile_string(p, "container"), .name = profile_string(p, "hush-name"),
		.container = profile_string(p, "hush-id"), .image = profile_string(p, "hush-image"),
		.pod = profile_string(p, "hush-pod"), .cgroup = profile_string(p, "/docker/hush-id") });
	process = profile_add_process(p, &(struct profile_process){ .pid = 5, .name = profile_string(p, "hush-other") });
	profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 5, .name = profile_string(p, "hush-thread") });
	profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 6, .name = profile_string(p, "hush-thread") });
	p->modules.v[1].path = profile_string(p, "/home/hush-user/lib/libc.so.6");
	p->functions.v[1].file = profile_string(p, "/home/hush-user/src/main.rs");
	p->functions.v[2].name = profile_string(p, "{closure at /home/hush-user/src/hush file.rs:7}");
	profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "/home/hush-user/data");
	profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "socket hush-peer:30303");
	profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "[preempted]");
	profile_add_wake(p, &(struct profile_wake){ .waker = PROFILE_NONE, .waker_name = profile_string(p, "hush-waker") });
	profile_add_wake(p, &(struct profile_wake){ .waker = PROFILE_NONE, .waker_name = profile_string(p, "swapper/1") });
	profile_add_mark(p, &(struct profile_mark){ .thread = PROFILE_NONE, .kind = profile_string(p, "kernel"),
						    .name = profile_string(p, "Out of memory: Killed process 5 (hush-comm)") });
	profile_add_series(p, "mem.file.rss: /home/hush-user/hush data", "bytes");
	profile_add_series(p, "mem.file.rss: /home/hush-user/hush more", "bytes");
	profile_count(p, "cgroup.cpu.periods: /sys/fs/cgroup/hush-id", 3);
	profile_count(p, "symbols.problem: few symbols for hush-file: it is stripped", 3);
	profile_count(p, "symbols.other build: names of hush-build (no build-id) are used for reth: 7 of 7 functions agree", 3);
	profile_add_event(p, "block:block_rq_issue/bytes", "bytes", "of /home/hush-user/x", 0);
	return p;
}

static void assert_tells_nothing(const char *path)
{
	_cleanup_free_ char *data = NULL;
	const char *found;
	size_t n;

	assert_int_equal(fd_read_path(path, 64 << 20, &data, &n), 0);
	found = memmem(data, n, "hush", 4);
	if (found)
		fail_msg("%s has %.40s", path, found);
}

static bool has_function(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->functions.n; i++)
		if (!strcmp(profile_str(p, p->functions.v[i].name), name))
			return true;
	return false;
}

static const char *thread_name(const struct profile *p, size_t i)
{
	return profile_str(p, p->threads.v[i].name);
}

/* What is to be seen in place of all that; the same whether it was read from a file or changed in memory. */
static void assert_redacted(const struct profile *p)
{
	size_t n = p->threads.n;

	assert_true(p->redacted);
	assert_string_equal(profile_str(p, p->target), "target");
	assert_string_equal(profile_str(p, p->host), "[redacted]");
	assert_string_equal(profile_str(p, p->kernel), "6.1.0");
	assert_string_equal(profile_str(p, p->processes.v[0].exe), "reth");
	assert_string_equal(profile_str(p, p->processes.v[0].name), "reth");
	assert_int_equal(p->processes.v[0].command, 0);
	assert_string_equal(profile_str(p, p->processes.v[1].name), "process 2");
	assert_string_equal(profile_str(p, p->owners.v[0].name), "owner 1");
	assert_string_equal(thread_name(p, n - 1), thread_name(p, n - 2));
	assert_true(str_starts(thread_name(p, n - 1), "thread "));
	assert_string_not_equal(thread_name(p, n - 1), thread_name(p, 0));
	assert_string_equal(profile_str(p, p->modules.v[1].path), "libc.so.6");
	assert_string_equal(profile_str(p, p->functions.v[1].file), "main.rs");
	assert_true(has_function(p, "file 1") && has_function(p, "file 2") && has_function(p, "[preempted]"));
	assert_true(has_function(p, "no table"));
	assert_true(str_starts(profile_str(p, p->functions.v[2].name), "{closure at [path "));
	assert_string_equal(profile_str(p, p->wakes.v[p->wakes.n - 1].waker_name), "swapper/1");
	assert_string_equal(profile_str(p, p->events.v[p->events.n - 1].name), "block:block_rq_issue/bytes");
	assert_int_not_equal(p->series.v[p->series.n - 1].name, p->series.v[p->series.n - 2].name);
}

static void a_redacted_capture_tells_nothing(void **state)
{
	_cleanup_free_ char *path = in_folder("redacted"), *wal = mem_printf("%s-wal", path);
	_cleanup_(profile_freep) struct profile *p = make_told(), *q = NULL;
	struct capture *c;
	struct stat st;
	size_t samples = p->samples.n;

	p->redacted = true;
	p->samples.n = 10;
	assert_int_equal(capture_create(path, &c, NULL), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_tells_nothing(path);
	assert_tells_nothing(wal);
	assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	assert_true(stat(wal, &st) == 0 && (st.st_mode & 0777) == 0600);
	/* In memory it is whole: symbols are yet to be found. */
	assert_string_equal(profile_str(p, p->modules.v[1].path), "/home/hush-user/lib/libc.so.6");
	p->samples.n = samples;
	p->threads.v[0].name = profile_string(p, "hush-renamed");
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_tells_nothing(path);
	q = load(path);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	assert_int_equal(q->samples.n, samples);
	assert_redacted(q);
}

static void a_profile_is_redacted_once(void **state)
{
	_cleanup_free_ char *path = in_folder("memory");
	_cleanup_(profile_freep) struct profile *p = make_told(), *q = NULL;

	redact_profile(p);
	assert_redacted(p);
	save(p, path);
	assert_tells_nothing(path);
	q = load(path);
	assert_redacted(q);
	/* Numbers stay what they are. */
	redact_profile(q);
	for (size_t i = 0; i < p->threads.n; i++)
		assert_string_equal(thread_name(p, i), thread_name(q, i));
	assert_redacted(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_redacted_capture_tells_nothing),
		cmocka_unit_test(a_profile_is_redacted_once),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
