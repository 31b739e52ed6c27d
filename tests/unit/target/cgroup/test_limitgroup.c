#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/cgroup/limitgroup.h"
#include "folder.h"

static void put(const char *group, const char *name, const char *text)
{
	_cleanup_free_ char *path = mem_printf("%s/%s/%s", folder, group, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void is(const char *group, const char *name, const char *wanted)
{
	_cleanup_free_ char *path = mem_printf("%s/%s/%s", folder, group, name);
	char text[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, wanted);
}

static void make(const char *group)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", folder, group);

	assert_int_equal(mkdir(path, 0755), 0);
	put(group, "cgroup.procs", "12\n13\n");
}

static void mount_is(const char *text, bool v2, const char *path, const char *wanted)
{
	_cleanup_free_ char *found = limitgroup_parse_mount(text, v2, path);

	if (wanted)
		assert_string_equal(found, wanted);
	else
		assert_null(found);
}

static void mounts(void **state)
{
	static const char both[] =
		"30 25 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755\n"
		"31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
		"32 30 0:28 / /sys/fs/cgroup/memory rw shared:9 master:3 - cgroup cgroup rw,memory\n"
		"33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	static const char container[] =
		"40 39 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";

	mount_is(both, false, "/a/b", "/sys/fs/cgroup/memory/a/b");
	mount_is(both, false, "/", "/sys/fs/cgroup/memory");
	mount_is(both, true, "/a", "/sys/fs/cgroup/unified/a");
	mount_is(container, true, "/docker/abc/x", "/sys/fs/cgroup/x");
	mount_is(container, true, "/docker/abc", "/sys/fs/cgroup");
	mount_is(container, true, "/docker/abcd", "/sys/fs/cgroup/docker/abcd");
	mount_is(container, false, "/docker/abc", NULL);
	/* A controller whose name begins alike. */
	mount_is("1 1 0:1 / /m rw - cgroup none rw,memory_other\n", false, "/", NULL);
	mount_is("", true, "/", NULL);
	mount_is("1 1 0:1 / /m rw\nnonsense\n - \n", true, "/", NULL);
}

static void version_2(void **state)
{
	struct limitgroup c = { .v2 = true, .guard = -1 };
	struct limitgroup_memory m;
	struct err err = { 0 };

	make("two");
	make("two/child");
	c.path = mem_printf("%s/two/child", folder);
	put("two", "memory.max", "1048576\n");
	put("two/child", "memory.max", "max\n");
	put("two/child", "memory.swap.max", "4096\n");
	put("two/child", "memory.current", "777\n");
	put("two/child", "memory.peak", "999\n");
	put("two/child", "memory.swap.current", "5\n");
	put("two/child", "memory.stat", "anon 100\nfile 200\nkernel 30\nanon_thp 1\nfile_mapped 7\n");
	put("two/child", "memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5\n");
	assert_int_equal(limitgroup_read(&c, &m), 0);
	assert_int_equal(m.limit, 1048576); /* of the group above */
	assert_int_equal(m.swap_limit, 4096);
	assert_int_equal(m.usage, 777);
	assert_int_equal(m.peak, 999);
	assert_int_equal(m.anon, 100);
	assert_int_equal(m.file, 200);
	assert_int_equal(m.kernel, 30);
	assert_int_equal(m.swap, 5);
	assert_int_equal(m.hits, 2);
	assert_int_equal(m.oom_kills, 4);
	assert_int_equal(limitgroup_processes(&c), 2);

	assert_int_equal(limitgroup_limit(&c, 8ULL << 30, 0, &err), 0);
	is("two/child", "memory.max", "8589934592");
	is("two/child", "memory.swap.max", "0096\n"); /* a plain file is not cut by a write */
	assert_int_equal(limitgroup_enter(&c, 4242, &err), 0);
	limitgroup_done(&c);
}

static void version_1(void **state)
{
	struct limitgroup c = { .guard = -1 };
	struct limitgroup_memory m;
	struct err err = { 0 };

	make("one");
	c.path = mem_printf("%s/one", folder);
	put("one", "memory.limit_in_bytes", "9223372036854771712\n");
	put("one", "memory.memsw.limit_in_bytes", "9223372036854771712\n");
	put("one", "memory.usage_in_bytes", "50\n");
	put("one", "memory.max_usage_in_bytes", "60\n");
	put("one", "memory.kmem.usage_in_bytes", "7\n");
	put("one", "memory.failcnt", "3\n");
	put("one", "memory.stat", "cache 1\nrss 2\ntotal_cache 20\ntotal_rss 10\ntotal_swap 4\n");
	put("one", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	assert_int_equal(limitgroup_read(&c, &m), 0);
	assert_true(m.limit == LIMITGROUP_UNLIMITED && m.swap_limit == LIMITGROUP_UNLIMITED);
	assert_int_equal(m.usage, 50);
	assert_int_equal(m.peak, 60);
	assert_int_equal(m.anon, 10);
	assert_int_equal(m.file, 20);
	assert_int_equal(m.kernel, 7);
	assert_int_equal(m.swap, 4);
	assert_int_equal(m.hits, 3);
	assert_int_equal(m.oom_kills, 1);

	/* Both together there. */
	put("one", "memory.limit_in_bytes", "");
	put("one", "memory.memsw.limit_in_bytes", "");
	assert_int_equal(limitgroup_limit(&c, 1000, 24, &err), 0);
	is("one", "memory.limit_in_bytes", "1000");
	is("one", "memory.memsw.limit_in_bytes", "1024");
	assert_int_equal(limitgroup_read(&c, &m), 0);
	assert_int_equal(m.limit, 1000);
	assert_int_equal(m.swap_limit, 24);
	limitgroup_done(&c);
}

static void a_group_that_is_gone(void **state)
{
	struct limitgroup c = { .path = mem_printf("%s/none", folder), .v2 = true, .guard = -1 };
	struct limitgroup_memory m;
	struct err err = { 0 };

	assert_true(limitgroup_read(&c, &m) < 0);
	assert_int_equal(limitgroup_processes(&c), 0);
	assert_int_equal(limitgroup_limit(&c, 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "memory.max"));
	assert_int_equal(limitgroup_enter(&c, 1, &err), -ENOENT);
	assert_int_equal(limitgroup_remove(&c), 0);
	limitgroup_done(&c);
}

/* Whatever becomes of us, the folder goes. */
static void the_guard_removes_it(void **state)
{
	struct limitgroup c = { .path = mem_printf("%s/guarded", folder), .guard = -1 };
	_cleanup_free_ char *path = mem_strdup(c.path);
	struct err err = { 0 };
	int tenths = 300;

	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(limitgroup_guard(&c, &err), 0);
	usleep(50000);
	assert_int_equal(access(path, F_OK), 0);
	limitgroup_done(&c);
	while (!access(path, F_OK) && tenths--)
		usleep(100000);
	assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts),
		cmocka_unit_test(version_2),
		cmocka_unit_test(version_1),
		cmocka_unit_test(a_group_that_is_gone),
		cmocka_unit_test(the_guard_removes_it),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
