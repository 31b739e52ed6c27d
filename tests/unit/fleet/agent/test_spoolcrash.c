/* The spool when the process, the disk or the machine fails: at every call that changes a folder. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "fleet/agent/spool.h"

#include "folder.h"
#include "putfile.h"

enum { WINDOWS = 4, SINKS = 2, CALLS_MAX = 1000 };

static const char *const sinks[] = { "a", "b", NULL };
static char spool_folder[128], log_path[128];

/* --- the calls, which the linker takes from here --- */

enum fault { NONE, DIES, FAILS };

static struct {
	enum fault how;
	int code;           /* of FAILS */
	unsigned at, calls; /* the call that it is about */
	bool hit;
	struct buf *trace;  /* where not NULL: all calls, one a line */
} hook;

static bool fault(const char *what, int at, const char *name)
{
	hook.calls++;
	if (hook.trace) {
		char link[64], path[256];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
		n = readlink(link, path, sizeof(path) - 1);
		assert_true(n > 0);
		path[n] = 0;
		buf_printf(hook.trace, "%s %s%s%s\n", what, path + strlen(spool_folder), name ? "/" : "", name ? name : "");
	}
	if (hook.how == NONE || hook.calls != hook.at)
		return false;
	hook.hit = true;
	if (hook.how == DIES)
		_exit(99);
	errno = hook.code;
	return true;
}

int linkat(int from, const char *name, int to, const char *new_name, int flags)
{
	return fault("link", to, new_name) ? -1 : (int)syscall(SYS_linkat, from, name, to, new_name, flags);
}

int unlinkat(int at, const char *name, int flags)
{
	return fault("unlink", at, name) ? -1 : (int)syscall(SYS_unlinkat, at, name, flags);
}

int renameat(int from, const char *name, int to, const char *new_name)
{
	return fault("rename", to, new_name) ? -1 : (int)syscall(SYS_renameat2, from, name, to, new_name, 0);
}

int mkdirat(int at, const char *name, mode_t mode)
{
	return fault("mkdir", at, name) ? -1 : (int)syscall(SYS_mkdirat, at, name, mode);
}

/* Not done: no machine fails here, and it would take its time. */
int fsync(int fd)
{
	return fault("fsync", fd, NULL) ? -1 : 0;
}

/* --- an agent that delivers --- */

/* What a sink got outlives us: "?" before the spool knows it, "!" after. */
static void note(char what, size_t sink, const char *name)
{
	_cleanup_fd_ int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	_cleanup_free_ char *line = mem_printf("%c%s %s\n", what, sinks[sink], name);

	assert_int_equal(fd_write_all(fd, line, strlen(line)), 0);
}

static char *window_name(unsigned i)
{
	return spool_name("node", UINT64_C(1800000000000000000) + i * UINT64_C(10000000000), i);
}

/* Sink b refuses the second window. */
static void deliver_one(struct spool *s, size_t sink, const char *name)
{
	_cleanup_free_ char *second = window_name(1);

	if (sink == 1 && !strcmp(name, second)) {
		spool_refused(s, sink, name);
		return;
	}
	note('?', sink, name);
	spool_delivered(s, sink, name);
	note('!', sink, name);
}

static int deliver_all(struct spool *s)
{
	for (size_t sink = 0; sink < SINKS; sink++)
		for (;;) {
			_cleanup_free_ char *name = NULL;
			_cleanup_fd_ int fd = -1;
			int r = spool_first(s, sink, &name, &fd, NULL);

			if (r == -ENOENT)
				break;
			if (r)
				return r;
			deliver_one(s, sink, name);
		}
	return 0;
}

/* As an agent does: what fails is tried again. */
static void run_agent(void)
{
	const struct spool_options o = { .folder = spool_folder, .sinks = sinks };
	struct spool *s = NULL;

	for (int try = 0; !s && try < 3; try++)
		spool_open(&o, &s, NULL);
	assert_non_null(s);
	for (int try = 0; try < 3; try++) {
		spool_take(s, NULL);
		deliver_all(s);
	}
	spool_close(s);
}

/* --- what must be so afterwards --- */

static unsigned count(const char *log, char what, size_t sink, const char *name)
{
	_cleanup_free_ char *line = mem_printf("%c%s %s\n", what, sinks[sink], name);
	unsigned n = 0;

	for (const char *p = log; p && (p = strstr(p, line)); p++)
		n++;
	return n;
}

static bool is_there(const char *of, const char *sink, const char *name)
{
	_cleanup_free_ char *path = mem_printf("%s/%s/%s%s%s", spool_folder, of, sink, *sink ? "/" : "", name);

	return !access(path, F_OK);
}

/* Twice only where it ended between the sink's answer and the spool's call. */
static void check_all_delivered(unsigned crashes)
{
	_cleanup_free_ char *log = NULL;
	size_t n;

	assert_int_equal(fd_read_path(log_path, 1 << 20, &log, &n), 0);
	for (unsigned i = 0; i < WINDOWS; i++)
		for (size_t sink = 0; sink < SINKS; sink++) {
			_cleanup_free_ char *name = window_name(i);
			bool refused = sink == 1 && i == 1;
			unsigned begun = count(log, '?', sink, name), ended = count(log, '!', sink, name);

			assert_false(is_there("new", "", name));
			assert_false(is_there("to", sinks[sink], name));
			assert_int_equal(is_there("refused", sinks[sink], name), refused);
			assert_true(refused ? !begun : begun >= 1);
			assert_true(begun - ended <= crashes && ended <= 1);
		}
}

/* Another spool, with windows that nobody has. */
static void fill(void)
{
	static unsigned number;

	number++;
	snprintf(spool_folder, sizeof(spool_folder), "%s/spool%u", folder, number);
	snprintf(log_path, sizeof(log_path), "%s/log%u", folder, number);
	hook.how = NONE;
	assert_int_equal(spool_make(spool_folder, NULL), 0);
	for (unsigned i = 0; i < WINDOWS; i++) {
		_cleanup_free_ char *name = window_name(i), *path = mem_printf("%s/new/%s", spool_folder, name);

		put_bytes(path, name, strlen(name), 0600);
	}
}

/* Returns whether there was such a call. */
static bool die_at(unsigned at)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		hook.how = DIES;
		hook.at = at;
		hook.calls = 0;
		run_agent();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 99));
	return WEXITSTATUS(status) == 99;
}

static void test_dies_at_every_call(void **state)
{
	unsigned at = 1;

	for (bool died = true; died; at++) {
		assert_true(at < CALLS_MAX);
		fill();
		died = die_at(at);
		run_agent();
		check_all_delivered(1);
	}
	/* 4 windows: an fsync, two links, and three removals each are more than this. */
	assert_true(at > 4 * 6);
}

static void test_dies_again_while_it_recovers(void **state)
{
	unsigned pairs = 0;

	for (unsigned first = 1; first < 40; first += 2)
		for (unsigned second = 1 + first % 3; second < 30; second += 3, pairs++) {
			fill();
			die_at(first);
			die_at(second);
			run_agent();
			check_all_delivered(2);
		}
	assert_true(pairs > 100);
}

/* As above, with a disk that is full, or broken, at one call. */
static void test_fails_at_every_call(void **state)
{
	static const int codes[] = { ENOSPC, EIO };

	for (size_t c = 0; c < ARRAY_LEN(codes); c++) {
		bool hit = true;

		for (unsigned at = 1; hit; at++) {
			assert_true(at < CALLS_MAX);
			fill();
			hook.how = FAILS;
			hook.code = codes[c];
			hook.at = at;
			hook.calls = 0;
			hook.hit = false;
			run_agent();
			hit = hook.hit;
			hook.how = NONE;
			/* The next agent finds what could not be removed, or moved. */
			run_agent();
			if (hit) {
				_cleanup_free_ char *log = NULL, *second = window_name(1);
				size_t n;

				assert_int_equal(fd_read_path(log_path, 1 << 20, &log, &n), 0);
				for (unsigned i = 0; i < WINDOWS; i++)
					for (size_t sink = 0; sink < SINKS; sink++) {
						_cleanup_free_ char *name = window_name(i);

						assert_true(count(log, '!', sink, name) >= (sink == 1 && i == 1 ? 0 : 1));
						assert_true(count(log, '!', sink, name) <= 2);
						assert_false(is_there("new", "", name));
						assert_false(is_there("to", sinks[sink], name));
					}
				assert_true(is_there("refused", "b", second));
			} else {
				check_all_delivered(0);
			}
		}
	}
}

/* --- the machine: what was not made to last may be undone by a crash, in any order --- */

static size_t line_of(const char *trace, const char *line)
{
	const char *p = strstr(trace, line);

	if (!p)
		fail_msg("no \"%s\" in\n%s", line, trace);
	return p - trace;
}

static size_t last_line_of(const char *trace, const char *line)
{
	size_t last = line_of(trace, line);

	for (const char *p; (p = strstr(trace + last + 1, line));)
		last = p - trace;
	return last;
}

static void test_order_of_fsyncs(void **state)
{
	const struct spool_options o = { .folder = spool_folder, .sinks = sinks };
	_cleanup_(buf_done) struct buf trace = { 0 };
	_cleanup_free_ char *name = NULL;
	struct spool *s;
	int fd;

	fill();
	assert_int_equal(spool_open(&o, &s, NULL), 0);
	hook.trace = &trace;
	assert_int_equal(spool_take(s, NULL), WINDOWS);
	hook.trace = NULL;
	for (unsigned i = 0; i < WINDOWS; i++) {
		_cleanup_free_ char *window = window_name(i), *content = mem_printf("fsync /new/%s\n", window),
				    *to_a = mem_printf("link /to/a/%s\n", window), *to_b = mem_printf("link /to/b/%s\n", window),
				    *gone = mem_printf("unlink /new/%s\n", window);

		assert_true(line_of(trace.data, content) < line_of(trace.data, to_a));
		assert_true(line_of(trace.data, content) < line_of(trace.data, to_b));
		assert_true(line_of(trace.data, to_a) < last_line_of(trace.data, "fsync /to/a\n"));
		assert_true(line_of(trace.data, to_b) < last_line_of(trace.data, "fsync /to/b\n"));
		assert_true(last_line_of(trace.data, "fsync /to/a\n") < line_of(trace.data, gone));
		assert_true(last_line_of(trace.data, "fsync /to/b\n") < line_of(trace.data, gone));
		/* Else it would be queued once more after it was delivered. */
		assert_true(line_of(trace.data, gone) < last_line_of(trace.data, "fsync /new\n"));
	}
	assert_int_equal(spool_first(s, 0, &name, &fd, NULL), 0);
	close(fd);
	spool_close(s);
}

/* Until all queues have it, no sink gets it: or it would get it twice. */
static void test_half_linked_is_not_delivered(void **state)
{
	const struct spool_options o = { .folder = spool_folder, .sinks = sinks };
	struct spool *s;
	struct err err = { 0 };
	char *name;
	int fd;

	fill();
	assert_int_equal(spool_open(&o, &s, NULL), 0);
	hook.how = FAILS;
	hook.code = ENOSPC;
	hook.calls = 0;
	hook.at = 3; /* content, link to a, link to b */
	assert_int_equal(spool_take(s, &err), -ENOSPC);
	assert_true(hook.hit && *err.text);
	hook.how = NONE;
	assert_int_equal(spool_first(s, 0, &name, &fd, NULL), -ENOENT);
	assert_int_equal(spool_windows(s), WINDOWS);
	assert_int_equal(spool_take(s, &err), WINDOWS);
	assert_int_equal(spool_state(s, 0).waiting, WINDOWS);
	assert_int_equal(spool_state(s, 1).waiting, WINDOWS);
	spool_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dies_at_every_call),
		cmocka_unit_test(test_dies_again_while_it_recovers),
		cmocka_unit_test(test_fails_at_every_call),
		cmocka_unit_test(test_order_of_fsyncs),
		cmocka_unit_test(test_half_linked_is_not_delivered),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
