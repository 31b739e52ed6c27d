#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "target/cgroup/cgrouppath.h"

#define ID "3f9c0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789ab"
#define OTHER "aaaa0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789ab"

static void expect(const char *text, const char *container, const char *engine, const char *unit, const char *path)
{
	struct cgrouppath g;

	cgrouppath_parse(text, &g);
	if (container)
		assert_string_equal(g.container, container);
	else
		assert_null(g.container);
	assert_string_equal(g.engine, engine);
	if (unit)
		assert_string_equal(g.unit, unit);
	else
		assert_null(g.unit);
	if (path)
		assert_string_equal(g.path, path);
	else
		assert_null(g.path);
	cgrouppath_done(&g);
}

static void containers(void **state)
{
	expect("0::/system.slice/docker-" ID ".scope\n", ID, "docker", NULL, "/system.slice/docker-" ID ".scope");
	expect("4:memory:/docker/" ID "\n0::/\n", ID, "docker", NULL, "/docker/" ID);
	expect("9:name=systemd:/libpod_parent/libpod-" ID "\n0::/libpod_parent/libpod-" ID "\n", ID, "podman", NULL,
	       "/libpod_parent/libpod-" ID);
	expect("0::/machine.slice/libpod-" ID ".scope/container\n", ID, "podman", NULL,
	       "/machine.slice/libpod-" ID ".scope/container");
	expect("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope", ID, "containerd", NULL,
	       "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope");
	expect("0::/kubepods/burstable/pod-1/" ID "\n", ID, "", NULL, "/kubepods/burstable/pod-1/" ID);
	expect("0::/kubepods.slice/crio-" ID ".scope\n", ID, "cri-o", NULL, "/kubepods.slice/crio-" ID ".scope");
	/* One in another: the outer one is what the engine of this machine knows. */
	expect("0::/docker/" ID "/docker/" OTHER "\n", ID, "docker", NULL, "/docker/" ID "/docker/" OTHER);
	/* Seen from another namespace. */
	expect("0::/../../docker/" ID "\n", ID, "docker", NULL, "/../../docker/" ID);
}

static void units(void **state)
{
	expect("1:name=systemd:/system.slice/reth.service\n0::/system.slice/reth.service\n", NULL, "", "reth.service",
	       "/system.slice/reth.service");
	expect("4:memory:/\n1:name=systemd:/system.slice/system-reth.slice/reth@1.service\n0::/\n", NULL, "",
	       "reth@1.service", "/system.slice/system-reth.slice/reth@1.service");
	/* The innermost. */
	expect("0::/user.slice/user-1000.slice/user@1000.service/app.slice/reth.service/sub\n", NULL, "", "reth.service",
	       "/user.slice/user-1000.slice/user@1000.service/app.slice/reth.service/sub");
	/* systemd in a container has units that are not ours, and an engine's unit may hold its containers. */
	expect("0::/docker/" ID "/system.slice/ssh.service\n", ID, "docker", NULL, "/docker/" ID "/system.slice/ssh.service");
	expect("0::/system.slice/engine.service/docker/" ID "\n", ID, "docker", NULL,
	       "/system.slice/engine.service/docker/" ID);
}

static void nothing(void **state)
{
	expect("", NULL, "", NULL, NULL);
	expect("0::/\n", NULL, "", NULL, NULL);
	expect("garbage\n:::\n0:\n", NULL, "", NULL, NULL);
	expect("0::/user.slice/session-1.scope\n", NULL, "", NULL, "/user.slice/session-1.scope");
	/* Too short, too long, not hexadecimal, and the one that only watches. */
	expect("0::/docker/3f9c\n", NULL, "", NULL, "/docker/3f9c");
	expect("0::/docker/" ID "0\n", NULL, "", NULL, "/docker/" ID "0");
	expect("0::/libpod_parent/libpod-conmon-" ID ".scope\n", NULL, "", NULL,
	       "/libpod_parent/libpod-conmon-" ID ".scope");
	expect("0::/.service\n", NULL, "", NULL, "/.service");
}

static void ids_of_any_form(void **state)
{
	assert_true(cgrouppath_has("0::/default/web\n", "web"));
	assert_true(cgrouppath_has("4:memory:/\n0::/docker/" ID "\n", ID));
	assert_true(cgrouppath_has("0::/machine.slice/libpod-" ID ".scope/container", ID));
	assert_false(cgrouppath_has("0::/default/web2\n", "web"));
	assert_false(cgrouppath_has("0::/default/myweb\n", "web"));
	assert_false(cgrouppath_has("0::/libpod_parent/conmon-" ID "\n", ID));
	assert_false(cgrouppath_has("web:web:none\n", "web"));
	assert_false(cgrouppath_has("0::/docker/x\n", ""));
	assert_false(cgrouppath_has("", "web"));
}

static void our_own(void **state)
{
	_cleanup_free_ char *text = cgrouppath_text(getpid());
	struct cgrouppath g;

	assert_non_null(text);
	assert_int_equal(cgrouppath_read(getpid(), &g), 0);
	cgrouppath_done(&g);
	assert_int_not_equal(cgrouppath_read(0x7ffffffe, &g), 0);
	cgrouppath_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers), cmocka_unit_test(units),   cmocka_unit_test(nothing),
		cmocka_unit_test(ids_of_any_form), cmocka_unit_test(our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
