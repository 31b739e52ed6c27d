#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "target/proc.h"
#include "child.h"

static void maps_lines_are_read(void **state)
{
	static const char text[] =
		"55d0c0a00000-55d0c0a21000 r-xp 00002000 fd:01 1234567                    /usr/bin/a b  c\n"
		"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
		"7f0000002000-7f0000003000 r-xp 00000000 00:00 0                          [vdso]\n"
		"7f0000004000-7f0000005000 r--s 00001000 00:2e 18446744073709551615       /x\\012y "
		"(deleted)\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
	struct proc_maps m;

	assert_int_equal(proc_maps_parse(text, sizeof(text) - 1, &m), 0);
	assert_int_equal(m.list.n, 5);
	assert_true(m.list.v[0].start == 0x55d0c0a00000 && m.list.v[0].end == 0x55d0c0a21000);
	assert_true(m.list.v[0].offset == 0x2000 && m.list.v[0].inode == 1234567);
	assert_true(m.list.v[0].device_major == 0xfd && m.list.v[0].device_minor == 1);
	assert_true(m.list.v[0].executable && !m.list.v[0].writable);
	assert_string_equal(m.list.v[0].path, "/usr/bin/a b  c");
	assert_string_equal(m.list.v[1].path, "");
	assert_true(m.list.v[1].writable && !m.list.v[1].executable);
	assert_string_equal(m.list.v[2].path, "[vdso]");
	assert_string_equal(m.list.v[3].path, "/x\ny (deleted)");
	assert_true(m.list.v[3].inode == UINT64_MAX);
	assert_string_equal(m.list.v[4].path, "[vsyscall]");
	assert_true(m.list.v[4].end == 0xffffffffff601000);
	proc_maps_done(&m);
}

static void bad_lines_are_counted(void **state)
{
	static const char text[] = "\n"
				   "nonsense\n"
				   "1000-2000\n"
				   "2000-1000 r-xp 0 0:0 0\n"
				   "10000000000000000-20000000000000000 r-xp 0 0:0 0\n"
				   "1000-2000 r-xp 0 0:0 99999999999999999999999\n"
				   "1000-2000 r-xp 0 100000000:0 0\n"
				   "1000-2000 r-xp 0 0:0 0x\n"
				   "1000-2000 r-xp 0 0:0 7 /ok\n";
	struct proc_maps m;

	assert_int_equal(proc_maps_parse(text, sizeof(text) - 1, &m), 7);
	assert_int_equal(m.list.n, 1);
	assert_string_equal(m.list.v[0].path, "/ok");
	proc_maps_done(&m);
	assert_int_equal(proc_maps_parse("", 0, &m), 0);
	assert_int_equal(m.list.n, 0);
	proc_maps_done(&m);
}

static void own_maps_hold_this_function(void **state)
{
	uint64_t here = (uint64_t)(uintptr_t)own_maps_hold_this_function;
	struct proc_maps m;
	bool found = false;

	assert_int_equal(proc_maps_read(getpid(), true, &m), 0);
	for (size_t i = 0; i < m.list.n; i++) {
		assert_true(m.list.v[i].executable);
		if (m.list.v[i].start <= here && here < m.list.v[i].end) {
			found = true;
			assert_non_null(strstr(m.list.v[i].path, "test_proc"));
		}
	}
	assert_true(found);
	proc_maps_done(&m);
}

/* As many mappings as a process may have by default, each one page of other rights than the next. */
static void many_mappings(void **state)
{
	enum { COUNT = 30000 };
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * COUNT * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct proc_maps m;
	uint64_t last = 0;
	size_t inside = 0;

	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(mprotect(p + 2 * i * page, page, PROT_READ), 0);
	assert_int_equal(proc_maps_read(getpid(), false, &m), 0);
	for (size_t i = 0; i < m.list.n; i++) {
		assert_true(m.list.v[i].start >= last);
		last = m.list.v[i].end;
		inside += m.list.v[i].start >= (uintptr_t)p &&
			  m.list.v[i].end <= (uintptr_t)p + 2 * COUNT * page;
	}
	assert_in_range(inside, 2 * COUNT - 1, 2 * COUNT);
	proc_maps_done(&m);
	assert_int_equal(proc_maps_read(getpid(), true, &m), 0);
	assert_true(m.list.n < 1000);
	proc_maps_done(&m);
	munmap(p, 2 * COUNT * page);
}

static void a_hundred_thousand_lines(void **state)
{
	struct buf b = { 0 };
	struct proc_maps m;
	uint64_t start;

	for (uint64_t i = 0; i < 100000; i++)
		buf_printf(&b, "%llx-%llx r-xp 00000000 fd:01 %llu   /opt/lib%llu.so\n",
			   (unsigned long long)(i << 16), (unsigned long long)((i + 1) << 16),
			   (unsigned long long)i, (unsigned long long)i);
	start = clock_process_cpu_ns();
	assert_int_equal(proc_maps_parse(b.data, b.n, &m), 0);
	assert_int_equal(m.list.n, 100000);
	assert_true(clock_process_cpu_ns() - start < 2000000000);
	proc_maps_done(&m);
	buf_done(&b);
}

static int take_name(void *name)
{
	return prctl(PR_SET_NAME, name);
}

/* A child under a name of its own. */
static pid_t start_child(const char *name)
{
	return child_start(take_name, (void *)name);
}

static void odd_names(void **state)
{
	static const char *const names[] = { "a) R 1 (b", "x\ny) S", "((", ") ", "sp ace" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		pid_t pid = start_child(names[i]);
		struct proc_status status;
		struct proc_stat s;

		assert_int_equal(proc_stat(pid, &s), 0);
		assert_string_equal(s.name, names[i]);
		assert_int_equal(s.parent, getpid());
		assert_true(s.state == 'S' || s.state == 'R');
		assert_int_equal(s.threads, 1);
		assert_true(s.rss_bytes > 0 && s.start_ticks > 0);
		assert_int_equal(proc_status(pid, &status), 0);
		assert_int_equal(status.tgid, pid);
		assert_int_equal(status.uid, getuid());
		child_end(pid);
	}
}

static void who_is_gone_is_esrch(void **state)
{
	pid_t pid = start_child("brief");
	struct proc_status status;
	struct proc_stat stat;
	struct proc_maps maps;
	struct proc_ids ids;
	uint64_t cpu, queue;

	kill(pid, SIGKILL);
	/* A zombie first: it has a name and no memory. */
	assert_int_equal(waitid(P_PID, pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_stat(pid, &stat), 0);
	assert_int_equal(stat.state, 'Z');
	if (!proc_maps_read(pid, false, &maps)) {
		assert_int_equal(maps.list.n, 0);
		proc_maps_done(&maps);
	}
	waitpid(pid, NULL, 0);
	assert_int_equal(proc_stat(pid, &stat), -ESRCH);
	assert_int_equal(proc_status(pid, &status), -ESRCH);
	assert_int_equal(proc_maps_read(pid, false, &maps), -ESRCH);
	assert_int_equal(proc_threads(pid, &ids), -ESRCH);
	assert_int_equal(proc_schedstat(pid, pid, &cpu, &queue), -ESRCH);
	assert_null(proc_command(pid));
	assert_null(proc_exe(pid));
}

static bool holds(const struct proc_ids *ids, pid_t pid)
{
	for (size_t i = 0; i < ids->list.n; i++)
		if (ids->list.v[i] == pid)
			return true;
	return false;
}

static void children_all_the_way_down(void **state)
{
	struct proc_ids ids;
	int tell[2];
	pid_t child, grandchild;

	assert_int_equal(pipe(tell), 0);
	child = fork();
	if (!child) {
		pid_t below = start_child("below");

		assert_int_equal(write(tell[1], &below, sizeof(below)), sizeof(below));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	assert_int_equal(proc_children(getpid(), &ids), 0);
	assert_true(holds(&ids, child) && holds(&ids, grandchild) && !holds(&ids, getpid()));
	vec_done(&ids.list);
	assert_int_equal(proc_children(child, &ids), 0);
	assert_int_equal(ids.list.n, 1);
	vec_done(&ids.list);
	assert_int_equal(proc_list(&ids), 0);
	assert_true(holds(&ids, child) && holds(&ids, getpid()) && holds(&ids, getppid()));
	vec_done(&ids.list);
	child_end(child);
	close(tell[0]);
	close(tell[1]);
}

static void *wait_forever(void *fd)
{
	char c;

	return read(*(int *)fd, &c, 1) == 1 ? fd : NULL;
}

static void threads_and_times(void **state)
{
	uint64_t cpu, queue, until = clock_mono_ns() + 30000000;
	int hold[2];
	pthread_t thread;
	struct proc_ids ids;
	struct proc_stat s;

	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_forever, &hold[0]), 0);
	assert_int_equal(proc_threads(getpid(), &ids), 0);
	assert_int_equal(ids.list.n, 2);
	assert_true(holds(&ids, getpid()));
	for (size_t i = 0; i < ids.list.n; i++)
		assert_int_equal(proc_thread_stat(getpid(), ids.list.v[i], &s), 0);
	vec_done(&ids.list);
	assert_int_equal(write(hold[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(hold[0]);
	close(hold[1]);
	while (clock_mono_ns() < until)
		;
	assert_int_equal(proc_schedstat(getpid(), getpid(), &cpu, &queue), 0);
	assert_true(cpu > 1000000 && cpu < 600000000000);
	assert_int_equal(proc_stat(getpid(), &s), 0);
	assert_true(s.minor_faults > 0);
}

static void own_command_and_program(void **state)
{
	char *command = proc_command(getpid()), *exe = proc_exe(getpid());

	assert_non_null(strstr(command, "test_proc"));
	assert_non_null(strstr(exe, "test_proc"));
	assert_int_equal(*exe, '/');
	free(command);
	free(exe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_lines_are_read), cmocka_unit_test(bad_lines_are_counted),
		cmocka_unit_test(own_maps_hold_this_function), cmocka_unit_test(many_mappings),
		cmocka_unit_test(a_hundred_thousand_lines), cmocka_unit_test(odd_names),
		cmocka_unit_test(who_is_gone_is_esrch), cmocka_unit_test(children_all_the_way_down),
		cmocka_unit_test(threads_and_times), cmocka_unit_test(own_command_and_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
