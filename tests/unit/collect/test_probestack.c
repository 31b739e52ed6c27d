/* Which kernels may run our programs at uprobes, and what their machine code shows of it. */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "collect/probestack.h"
#include "target/host.h"

static int judge(int major, int minor, bool jit, enum probestack_seen ours, enum probestack_seen control)
{
	struct probestack_facts f = { major, minor, jit, ours, control };
	struct err err = { 0 };
	int r = probestack_judge(&f, &err);

	assert_int_equal(r < 0, *err.text != 0);
	return r;
}

static void kernels(void **state)
{
	const enum probestack_seen UNSEEN = PROBESTACK_UNSEEN, TASK = PROBESTACK_OF_TASK, PRIVATE = PROBESTACK_PRIVATE;

	/* No private stacks yet. */
	assert_int_equal(judge(5, 15, true, TASK, TASK), 0);
	assert_int_equal(judge(6, 12, true, UNSEEN, UNSEEN), 0);
	/* Seen in the code that others have one and ours do not: whatever the version. */
	assert_int_equal(judge(6, 18, true, TASK, PRIVATE), 0);
	assert_int_equal(judge(9, 1, true, TASK, PRIVATE), 0);
	/* Not seen, but tried. */
	assert_int_equal(judge(7, 3, true, UNSEEN, UNSEEN), 0);
	assert_int_equal(judge(7, 3, true, TASK, TASK), 0);
	/* Neither seen nor tried. */
	assert_int_equal(judge(7, 4, true, UNSEEN, UNSEEN), -ENOTSUP);
	assert_int_equal(judge(7, 4, true, TASK, TASK), -ENOTSUP);
	assert_int_equal(judge(8, 0, true, TASK, UNSEEN), -ENOTSUP);
	/* Nothing is compiled: the interpreter's stack is the task's. */
	assert_int_equal(judge(8, 0, false, UNSEEN, UNSEEN), 0);
	/* It would crash, whatever the version. */
	assert_int_equal(judge(6, 18, true, PRIVATE, PRIVATE), -ENOTSUP);
	assert_int_equal(judge(6, 1, true, PRIVATE, UNSEEN), -ENOTSUP);
}

/* Of this kernel: the same program with and without a tail call. */
static void code(void **state)
{
	_cleanup_fd_ int plain = probestack_control(false), tail = probestack_control(true);
	enum probestack_seen seen;
	struct host host;

	host_probe(&host);
	if (plain < 0 || tail < 0 || strcmp(host.machine, "x86_64") || !host.bpf_jit)
		skip();
	seen = probestack_look(plain);
	if (seen == PROBESTACK_UNSEEN)
		skip();
	assert_int_equal(seen, host.major > 6 || (host.major == 6 && host.minor >= 13) ? PROBESTACK_PRIVATE : PROBESTACK_OF_TASK);
	assert_int_equal(probestack_look(tail), PROBESTACK_OF_TASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kernels), cmocka_unit_test(code) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
