/* The spool: its queues, its bound, and what others put into its folders. tests/unit/fleet/agent/test_spoolcrash.c is about crashes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "fleet/agent/spool.h"
#include "fleet/agent/spoolfolder.h"
#include "sandbox/confine.h"

#include "folder.h"
#include "putfile.h"

static const uint64_t begin_ns = UINT64_C(1800000000000000000), step_ns = UINT64_C(10000000000);
static const char *const two[] = { "a", "b", NULL };
static char where[128];

/* Not done here: thousands of them take a busy disk's time. */
int fsync(int fd)
{
	return 0;
}

static char *name_of(unsigned i)
{
	return spool_name("node", begin_ns + i * step_ns, i);
}

/* Another spool for each test. */
static void make_spool(void)
{
	static unsigned number;
	struct err err;

	snprintf(where, sizeof(where), "%s/spool%u", folder, ++number);
	if (spool_make(where, &err))
		fail_msg("%s", err.text);
}

static char *path_of(const char *below)
{
	return mem_printf("%s/%s", where, below);
}

static void put_window(unsigned i, size_t bytes)
{
	_cleanup_free_ char *name = name_of(i), *path = mem_printf("%s/new/%s", where, name), *data = mem_alloc(bytes + 1);

	put_bytes(path, data, bytes, 0600);
}

static struct spool *open_spool(const char *const *sinks, uint64_t max_bytes)
{
	const struct spool_options o = { .folder = where, .max_bytes = max_bytes, .sinks = sinks };
	struct spool *s;
	struct err err;

	if (spool_open(&o, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static int open_fails(const char *const *sinks, const char *says)
{
	const struct spool_options o = { .folder = where, .sinks = sinks };
	struct err err = { 0 };
	struct spool *s;
	int r = spool_open(&o, &s, &err);

	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	return r;
}

static void expect_first(struct spool *s, size_t sink, unsigned i)
{
	_cleanup_free_ char *name = NULL, *wanted = name_of(i);
	_cleanup_fd_ int fd = -1;

	assert_int_equal(spool_first(s, sink, &name, &fd, NULL), 0);
	assert_string_equal(name, wanted);
	assert_true(fd >= 0);
}

static void expect_none(struct spool *s, size_t sink)
{
	char *name;
	int fd;

	assert_int_equal(spool_first(s, sink, &name, &fd, NULL), -ENOENT);
}

static void deliver(struct spool *s, size_t sink, unsigned i)
{
	_cleanup_free_ char *name = name_of(i);

	spool_delivered(s, sink, name);
}

static bool is_there(const char *of, unsigned i)
{
	_cleanup_free_ char *name = name_of(i), *path = mem_printf("%s/%s/%s", where, of, name);
	struct stat st;

	return !lstat(path, &st);
}

/* --- names --- */

static void test_names(void **state)
{
	_cleanup_free_ char *name = spool_name("../../etc/passwd \"'; DROP", UINT64_C(1794974400123000000), 17),
			    *next = spool_name("a", UINT64_C(1794974400124000000), 3), *none = spool_name("", 0, UINT64_MAX);
	uint64_t at;

	assert_memory_equal(name, "20261118T040000.123Z-000017-", 28);
	assert_true(str_ends(name, ".gasflame") && !strchr(name, '/'));
	assert_int_equal(strlen(name), strlen("20261118T040000.123Z-000017-7f3a9c12.gasflame"));
	assert_true(spoolfolder_is_window(name, &at));
	assert_int_equal(at, UINT64_C(1794974400123000000));
	assert_true(strcmp(name, next) < 0);
	assert_true(spoolfolder_is_window(none, &at) && !at);
	assert_false(spoolfolder_is_window("20261118T040000.123Z-000017-7f3a9c12.gasflame.part", NULL));
	assert_false(spoolfolder_is_window("20261118T040000.123Z-000017-7f3a9c12/../x.gasflame", NULL));
	assert_false(spoolfolder_is_window("../20261118T040000.123Z-000017-7f3a9c12.gasflame", NULL));
	assert_false(spoolfolder_is_window("", NULL));
	assert_true(spoolfolder_is_unfinished("20261118T040000.123Z-000017-7f3a9c12.gasflame.part"));
	assert_true(spoolfolder_is_unfinished(".gasflame-0123456789abcdef"));
	assert_false(spoolfolder_is_unfinished("x.part"));
}

static void test_names_of_sinks(void **state)
{
	static const char *const bad[] = { "..", ".", "", "a/b", "../x", "a b", ".a", "a\n", "\xc3\xa4" };
	static const char *const same[] = { "a", "a", NULL };

	make_spool();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *const sinks[] = { "fine", bad[i], NULL };

		assert_int_equal(open_fails(sinks, "letters"), -EINVAL);
	}
	assert_int_equal(open_fails(same, "two sinks"), -EINVAL);
}

static void test_pauses(void **state)
{
	assert_int_equal(spool_pause_ns(0, UINT64_MAX), 0);
	assert_int_equal(spool_pause_ns(1, 0), 500000000);
	assert_int_equal(spool_pause_ns(1, UINT64_C(1) << 63), 1000000000);
	assert_int_equal(spool_pause_ns(4, UINT64_C(1) << 63), 8000000000);
	assert_int_equal(spool_pause_ns(9, UINT64_C(1) << 63), 256000000000);
	assert_int_equal(spool_pause_ns(10, UINT64_C(1) << 63), 300000000000);
	assert_int_equal(spool_pause_ns(UINT32_MAX, 0), 150000000000);
	assert_true(spool_pause_ns(UINT32_MAX, UINT64_MAX) <= UINT64_C(450000000000));
}

/* --- queues --- */

static void test_each_sink_has_its_queue(void **state)
{
	struct spool *s;

	make_spool();
	for (unsigned i = 5; i--;) /* not in the order of their times */
		put_window(i, 100);
	s = open_spool(two, 0);
	assert_int_equal(spool_take(s, NULL), 5);
	assert_int_equal(spool_take(s, NULL), 0);
	assert_int_equal(spool_bytes(s), 500);
	assert_int_equal(spool_windows(s), 5);
	assert_int_equal(spool_state(s, 0).waiting, 5);
	assert_int_equal(spool_state(s, 1).bytes, 500);
	assert_int_equal(spool_state(s, 1).oldest_wall_ns, begin_ns);
	for (unsigned i = 0; i < 5; i++) {
		expect_first(s, 0, i);
		expect_first(s, 0, i); /* until it is delivered */
		deliver(s, 0, i);
	}
	expect_none(s, 0);
	assert_int_equal(spool_state(s, 0).oldest_wall_ns, 0);
	assert_int_equal(spool_bytes(s), 500);
	deliver(s, 1, 2); /* out of turn */
	deliver(s, 1, 2); /* and again */
	spool_delivered(s, 1, "../../../etc/passwd");
	spool_delivered(s, 7, "x");
	assert_int_equal(spool_bytes(s), 400);
	put_window(1, 50); /* the name waits already at b */
	assert_int_equal(spool_take(s, NULL), 0);
	expect_none(s, 0);
	deliver(s, 1, 0);
	deliver(s, 1, 1);
	assert_int_equal(spool_take(s, NULL), 1);
	expect_first(s, 0, 1);
	expect_first(s, 1, 1);
	spool_close(s);

	s = open_spool(two, 0);
	assert_int_equal(spool_state(s, 0).waiting, 1);
	assert_int_equal(spool_state(s, 1).waiting, 3);
	assert_int_equal(spool_bytes(s), 250);
	assert_int_equal(spool_windows(s), 3);
	expect_first(s, 1, 1);
	spool_close(s);
}

static void test_refused(void **state)
{
	_cleanup_free_ char *first = name_of(0);
	struct spool *s;

	make_spool();
	put_window(0, 10);
	put_window(1, 10);
	s = open_spool(two, 0);
	spool_take(s, NULL);
	spool_refused(s, 0, first);
	spool_refused(s, 0, first);
	assert_int_equal(spool_state(s, 0).refused, 1);
	assert_int_equal(spool_state(s, 0).waiting, 1);
	assert_true(is_there("refused/a", 0) && !is_there("to/a", 0) && is_there("to/b", 0));
	expect_first(s, 0, 1);
	expect_first(s, 1, 0);
	deliver(s, 1, 0);
	assert_int_equal(spool_bytes(s), 20); /* it is kept */
	spool_close(s);
	s = open_spool(two, 0);
	assert_int_equal(spool_bytes(s), 20);
	assert_int_equal(spool_state(s, 0).waiting, 1);
	spool_close(s);
}

static void test_lock(void **state)
{
	struct spool *s;

	make_spool();
	s = open_spool(two, 0);
	assert_int_equal(open_fails(two, "another agent"), -EBUSY);
	spool_close(s);
	s = open_spool(two, 0);
	spool_close(s);
}

/* --- the bound --- */

static void test_bound_drops_the_oldest_of_the_longest(void **state)
{
	struct spool *s;

	make_spool();
	s = open_spool(two, 1000);
	for (unsigned i = 0; i < 10; i++)
		put_window(i, 100);
	assert_int_equal(spool_take(s, NULL), 10);
	assert_int_equal(spool_dropped(s), 0);
	for (unsigned i = 0; i < 6; i++)
		deliver(s, 0, i); /* b is the longer one, and only b has these */
	for (unsigned i = 10; i < 13; i++)
		put_window(i, 100);
	assert_int_equal(spool_take(s, NULL), 3);
	assert_int_equal(spool_bytes(s), 1000);
	assert_int_equal(spool_state(s, 0).dropped, 0);
	assert_int_equal(spool_state(s, 1).dropped, 3);
	expect_first(s, 0, 6);
	expect_first(s, 1, 3);
	assert_false(is_there("to/b", 2));
	put_window(13, 1000); /* all else goes */
	assert_int_equal(spool_take(s, NULL), 1);
	assert_int_equal(spool_bytes(s), 1000);
	expect_first(s, 0, 13);
	expect_first(s, 1, 13);
	assert_int_equal(spool_state(s, 0).dropped, 7);
	assert_int_equal(spool_state(s, 1).dropped, 3 + 10);
	assert_int_equal(spool_dropped(s), 20);
	put_window(14, 1001); /* more than all of it */
	assert_int_equal(spool_take(s, NULL), 1);
	assert_int_equal(spool_bytes(s), 0);
	expect_none(s, 0);
	assert_int_equal(spool_state(s, 0).dropped, 9);
	spool_close(s);
}

static void test_bound_keeps_what_sinks_want(void **state)
{
	static const char *const three[] = { "a", "b", "old", NULL };
	const struct spool_options without = { .folder = where, .max_bytes = 1000, .sinks = two };
	_cleanup_free_ char *zero = name_of(0);
	struct spool *s;

	make_spool();
	s = open_spool(three, 1000);
	for (unsigned i = 0; i < 10; i++)
		put_window(i, 100);
	spool_take(s, NULL);
	spool_refused(s, 0, zero);
	deliver(s, 1, 0);
	for (unsigned i = 1; i < 3; i++) {
		deliver(s, 0, i);
		deliver(s, 1, i);
	}
	/* 0 is refused by a, 1 and 2 are only for old, which goes now. */
	assert_int_equal(spool_change(s, &without, NULL), 0);
	assert_int_equal(spool_bytes(s), 1000);
	put_window(10, 200);
	assert_int_equal(spool_take(s, NULL), 1);
	assert_true(is_there("refused/a", 0));
	assert_false(is_there("to/old", 1) || is_there("to/old", 2));
	assert_int_equal(spool_bytes(s), 1000);
	assert_int_equal(spool_dropped(s), 3); /* of old: 0 too, which a's refusal keeps */
	put_window(11, 100);
	assert_int_equal(spool_take(s, NULL), 1);
	assert_false(is_there("refused/a", 0));
	assert_int_equal(spool_state(s, 0).dropped, 1);
	assert_int_equal(spool_state(s, 1).dropped, 0);
	expect_first(s, 0, 3);
	spool_close(s);
}

/* --- other sinks --- */

static void test_change(void **state)
{
	static const char *const other[] = { "c", "b", NULL };
	const struct spool_options o = { .folder = where, .sinks = other }, back = { .folder = where, .sinks = two },
				   elsewhere = { .folder = "/tmp/x", .sinks = two };
	struct err err;
	struct spool *s;

	make_spool();
	put_window(0, 10);
	s = open_spool(two, 0);
	spool_take(s, NULL);
	assert_int_equal(spool_change(s, &elsewhere, &err), -EINVAL);
	assert_int_equal(spool_change(s, &o, &err), 0);
	expect_none(s, 0);
	expect_first(s, 1, 0);
	put_window(1, 10);
	assert_int_equal(spool_take(s, NULL), 1);
	expect_first(s, 0, 1);
	assert_int_equal(spool_state(s, 1).waiting, 2);
	assert_int_equal(spool_state(s, 2).waiting, 0);
	assert_int_equal(spool_change(s, &back, &err), 0);
	expect_first(s, 0, 0); /* it waited, and is back */
	assert_int_equal(spool_state(s, 0).waiting, 1);
	deliver(s, 0, 0);
	spool_close(s);

	/* The folder of a sink that is no more and has nothing goes; c has one. */
	s = open_spool((const char *const[]){ "b", NULL }, 0);
	_cleanup_free_ char *a = path_of("to/a"), *c = path_of("to/c");
	assert_int_not_equal(access(a, F_OK), 0);
	assert_int_equal(access(c, F_OK), 0);
	assert_int_equal(spool_windows(s), 2);
	spool_close(s);
}

/* --- what others put there --- */

static unsigned warnings;

static void count_warning(void *context, const char *text)
{
	warnings++;
	assert_null(strchr(text, '\033'));
}

static void test_foreign_files(void **state)
{
	_cleanup_free_ char *planted = name_of(1), *second = name_of(2), *link = NULL, *hard = NULL, *sink_link = NULL,
			    *victim = in_folder("victim");
	char *names[4] = { NULL };
	struct spool *s;

	make_spool();
	link = mem_printf("%s/new/%s", where, planted);
	put_bytes(victim, "secret", 6, 0600);
	assert_int_equal(symlink(victim, link), 0);
	hard = mem_printf("%s/new/%s", where, second);
	assert_int_equal(linkat(AT_FDCWD, victim, AT_FDCWD, hard, 0), 0);
	names[0] = path_of("new/\033[31mnotes.txt");
	names[1] = path_of("to/.hidden");
	names[2] = path_of("to/file");
	names[3] = path_of("stray");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		put_bytes(names[i], "x", 1, 0600);
	sink_link = path_of("to/linked");
	assert_int_equal(symlink("/tmp", sink_link), 0);
	put_window(0, 10);
	log_set_sink(count_warning, NULL);
	s = open_spool(two, 5); /* a bound does not remove them */
	assert_int_equal(spool_take(s, NULL), 1);
	assert_int_equal(spool_take(s, NULL), 0);
	assert_int_equal(spool_bytes(s), 0);
	expect_none(s, 0);
	spool_close(s);
	log_set_sink(NULL, NULL);
	assert_int_equal(warnings, 1);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(access(names[i], F_OK), 0);
		free(names[i]);
	}
	assert_int_equal(access(victim, F_OK), 0);
	/* Its second name becomes the only one. */
	assert_int_equal(unlink(victim), 0);
	s = open_spool(two, 0);
	assert_int_equal(spool_take(s, NULL), 1);
	expect_first(s, 0, 2);
	spool_close(s);
}

/* A link in place of a folder leads nowhere. */
static void test_planted_folders(void **state)
{
	static const char *const places[] = { "new", "to", "to/a", "refused" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_cleanup_free_ char *outside = in_folder("outside"), *place = NULL;

		make_spool();
		mkdir(outside, 0700);
		place = path_of(places[i]);
		rmdir(place);
		assert_int_equal(symlink(outside, place), 0);
		assert_int_equal(open_fails(two, "is no folder"), -ENOTDIR);
	}
}

static void test_open_to_others(void **state)
{
	static const struct { const char *place; mode_t mode; } wrong[] = {
		{ ".", 0770 }, { ".", 0707 }, { "new", 0755 }, { "to", 0720 }, { "refused", 0701 }, { "to/a", 0702 },
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_free_ char *place = NULL;

		make_spool();
		spool_close(open_spool(two, 0));
		place = path_of(wrong[i].place);
		assert_int_equal(chmod(place, wrong[i].mode), 0);
		assert_int_equal(open_fails(two, "chmod 700"), -EPERM);
	}
	if (!geteuid()) {
		make_spool();
		assert_int_equal(chown(where, 65534, 65534), 0);
		assert_int_equal(open_fails(two, "belongs to user 65534"), -EPERM);
	}
}

static void test_removed_folders(void **state)
{
	_cleanup_free_ char *command = NULL;
	struct spool *s;
	struct err err;

	make_spool();
	put_window(0, 10);
	s = open_spool(two, 0);
	spool_take(s, NULL);
	command = mem_printf("rm -r '%s/to' '%s/new'", where, where);
	assert_int_equal(system(command), 0);
	log_set_sink(count_warning, NULL);
	expect_none(s, 0);
	log_set_sink(NULL, NULL);
	assert_int_equal(spool_take(s, NULL), 0);
	put_window(1, 10);
	assert_int_equal(spool_take(s, NULL), 1);
	expect_first(s, 0, 1);
	free(command);
	command = mem_printf("rm -r '%s'", where);
	assert_int_equal(system(command), 0);
	assert_int_equal(spool_take(s, &err), -ENOENT);
	assert_non_null(strstr(err.text, "was removed"));
	spool_close(s);
}

static void test_unfinished(void **state)
{
	_cleanup_free_ char *name = name_of(0), *part = NULL, *temporary = NULL;
	struct spool *s;

	make_spool();
	part = mem_printf("%s/new/%s.part", where, name);
	temporary = path_of("new/.gasflame-0123456789abcdef");
	put_bytes(part, "x", 1, 0600);
	put_bytes(temporary, "x", 1, 0600);
	s = open_spool(two, 0);
	assert_int_equal(spool_take(s, NULL), 0);
	assert_int_equal(spool_make(where, NULL), 0); /* an agent runs: they may be alive */
	assert_int_equal(access(part, F_OK), 0);
	spool_close(s);
	assert_int_equal(spool_make(where, NULL), 0);
	assert_int_not_equal(access(part, F_OK), 0);
	assert_int_not_equal(access(temporary, F_OK), 0);
}

/* --- many, and a disk that is full --- */

static void test_many(void **state)
{
	enum { MANY = 3000 };
	struct spool *s;
	int taken = 0, n;

	make_spool();
	for (unsigned i = 0; i < MANY; i++)
		put_window(i * 7919 % MANY, 1);
	s = open_spool((const char *const[]){ "a", NULL }, MANY);
	while ((n = spool_take(s, NULL)) > 0) {
		taken += n;
		assert_int_equal(spool_windows(s), MANY);
	}
	assert_int_equal(taken, MANY);
	spool_close(s);
	s = open_spool((const char *const[]){ "a", NULL }, 0);
	for (unsigned i = 0; i < MANY; i++) {
		expect_first(s, 0, i);
		deliver(s, 0, i);
	}
	assert_int_equal(spool_windows(s), 0);
	assert_int_equal(spool_bytes(s), 0);
	spool_close(s);
}

/* As the process that delivers is: it may write here and nowhere else. */
static void test_confined(void **state)
{
	_cleanup_free_ char *first = name_of(0), *outside = in_folder("confined");
	struct spool *s;
	pid_t pid;
	int status;

	make_spool();
	put_window(0, 10);
	put_window(1, 10);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		const struct confine c = { .writes = { where }, .write_count = 1, .moves = true };
		struct err err = { 0 };

		if (confine_enter(&c, NULL, &err))
			_exit(2);
		s = open_spool(two, 0);
		if (spool_take(s, &err) != 2)
			_exit(3);
		spool_refused(s, 0, first);
		deliver(s, 0, 1);
		/* Where there is Landlock, this is what it refuses. */
		_exit(confine_has_landlock() && open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ? 4 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(is_there("refused/a", 0) && is_there("to/b", 1) && !is_there("to/a", 1));
}

/* On tmpfs a link takes one of its inodes. */
static void test_full_disk(void **state)
{
	struct err err = { 0 };
	struct spool *s;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		print_message("no mounts of our own: skipped\n");
		skip();
	}
	_cleanup_free_ char *disk = in_folder("disk");
	assert_int_equal(mkdir(disk, 0700), 0);
	assert_int_equal(mount("none", disk, "tmpfs", 0, "size=1m,nr_inodes=16,mode=0700"), 0);
	snprintf(where, sizeof(where), "%s/spool", disk);
	assert_int_equal(spool_make(where, NULL), 0);
	s = open_spool(two, 0);
	for (unsigned i = 0; i < 4; i++)
		put_window(i, 1000);
	assert_int_equal(spool_take(s, &err), -ENOSPC);
	assert_true(*err.text);
	assert_int_equal(spool_windows(s), 4);
	for (int try = 0; try < 4; try++) {
		for (unsigned i = 0; i < 4; i++)
			for (size_t sink = 0; sink < 2; sink++)
				if (spool_state(s, sink).waiting && spool_state(s, sink).oldest_wall_ns == begin_ns + i * step_ns) {
					expect_first(s, sink, i);
					deliver(s, sink, i);
				}
		spool_take(s, NULL);
	}
	assert_int_equal(spool_windows(s), 0);
	assert_int_equal(spool_dropped(s), 0);
	spool_close(s);
	assert_int_equal(umount(disk), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_of_sinks),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_each_sink_has_its_queue),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_bound_drops_the_oldest_of_the_longest),
		cmocka_unit_test(test_bound_keeps_what_sinks_want),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_foreign_files),
		cmocka_unit_test(test_planted_folders),
		cmocka_unit_test(test_open_to_others),
		cmocka_unit_test(test_removed_folders),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_confined),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
