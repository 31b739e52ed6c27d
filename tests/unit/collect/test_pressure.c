#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/pressure.h"
#include "profile/profile.h"
#include "target/cgroup/cgroupfile.h"

static void pressure_of_a_resource(void **state)
{
	static const char text[] = "some avg10=0.12 avg60=0.00 avg300=0.00 total=12345\n"
				   "full avg10=0.00 avg60=0.00 avg300=0.00 total=678\n";
	uint64_t us;

	assert_int_equal(pressure_parse_psi(text, "some", &us), 0);
	assert_int_equal(us, 12345);
	assert_int_equal(pressure_parse_psi(text, "full", &us), 0);
	assert_int_equal(us, 678);
	assert_int_equal(pressure_parse_psi(text, "so", &us), -ENOENT);
	assert_int_equal(pressure_parse_psi("", "some", &us), -ENOENT);
	/* Not the next line's. */
	assert_int_equal(pressure_parse_psi("some avg10=0\nfull total=5\n", "some", &us), -EBADMSG);
	assert_int_equal(pressure_parse_psi("some total=-1\n", "some", &us), -EBADMSG);
	assert_int_equal(pressure_parse_psi("some total=99999999999999999999999\n", "some", &us), -EBADMSG);
	assert_int_equal(pressure_parse_psi("some total=", "some", &us), -EBADMSG);
}

static void events_of_a_cgroup(void **state)
{
	static const char text[] = "low 0\nhigh 3\nmax 14\noom 0\noom_kill 1\n";
	uint64_t n;

	assert_int_equal(pressure_parse_key(text, "max", &n), 0);
	assert_int_equal(n, 14);
	assert_int_equal(pressure_parse_key(text, "oom_kill", &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(pressure_parse_key(text, "oom", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(pressure_parse_key(text, "oom_group_kill", &n), -ENOENT);
	assert_int_equal(pressure_parse_key("max many\n", "max", &n), -EBADMSG);
}

static void path_is(const char *text, const char *controller, const char *path)
{
	char *found = cgroupfile_path(text, controller);

	if (path)
		assert_string_equal(found, path);
	else
		assert_null(found);
	free(found);
}

static void path_of_a_cgroup(void **state)
{
	static const char text[] = "9:name=systemd:/a\n5:cpu,cpuacct:/b\n4:memory:/process/x:y\n"
				   "0::/unified\n";

	path_is(text, "memory", "/process/x:y");
	path_is(text, "cpuacct", "/b");
	path_is(text, "cpu", "/b");
	path_is(text, "", "/unified");
	path_is(text, "mem", NULL);
	path_is("0::/only", "", "/only");
	path_is("0::/only", "memory", NULL);
	path_is("", "", NULL);
	path_is("garbage\n:\n::", "memory", NULL);
}

/* On any machine: what there is becomes points, what there is not is said. */
static void this_machine(void **state)
{
	struct profile *p = profile_new();
	pid_t self = getpid();
	uint64_t now = clock_mono_ns();
	struct pressure *ps = pressure_new(p, &self, 1, now);

	pressure_tick(ps, now + 1000000000);
	pressure_free(ps);
	assert_int_equal(p->points.n, p->series.n);
	if (access("/proc/pressure/memory", R_OK))
		assert_int_equal(profile_counter(p, "pressure.no psi"), 1);
	else
		assert_true(p->series.n >= 4);
	for (size_t i = 0; i < p->points.n; i++) {
		assert_int_equal(p->points.v[i].time_ns, 1000000000);
		assert_true(p->points.v[i].value >= 0);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pressure_of_a_resource),
		cmocka_unit_test(events_of_a_cgroup),
		cmocka_unit_test(path_of_a_cgroup),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
