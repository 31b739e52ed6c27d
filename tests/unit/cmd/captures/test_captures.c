#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "cmd/captures/captures.h"
#include "cmd/cmd.h"
#include "cmd/captures/newest.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "child.h"
#include "folder.h"

const struct command_group command_groups[] = { { 0 } };
extern const struct command command_clean, command_ls;

static char *caught;

static void make_capture(const char *path, const char *target, uint64_t start_s, bool finished)
{
	struct profile *p = profile_new();
	struct err err = { 0 };
	struct capture *c;

	assert_int_equal(fd_make_dirs(path, 0755), 0);
	p->target = profile_string(p, target);
	p->start_wall_ns = start_s * 1000000000;
	p->duration_ns = 2000000000;
	profile_add_event(p, "cpu", "ns", "CPU time", 1001001);
	p->finished = finished;
	if (capture_create(path, &c, &err) || capture_flush(c, p, &err) || capture_close(c, &err))
		fail_msg("%s", err.text);
	profile_free(p);
}

static void make_file(const char *path, const char *text)
{
	_cleanup_fd_ int fd = -1;

	assert_int_equal(fd_make_dirs(path, 0755), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void make_old(const char *path, unsigned days)
{
	struct timespec t[2] = { { .tv_sec = time(NULL) - days * 86400 },
				 { .tv_sec = time(NULL) - days * 86400 } };

	assert_int_equal(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

static bool there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* Runs a command on a line of words; its stdout is in caught. */
static int run(const struct command *c, const char *line)
{
	char words[512], *argv[32];
	int argc = 0, saved = dup(STDOUT_FILENO), result;
	FILE *file = tmpfile();
	long n;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	result = c->run(c, argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	n = lseek(fileno(file), 0, SEEK_END);
	free(caught);
	caught = calloc(1, n + 1);
	assert_int_equal(pread(fileno(file), caught, n, 0), n);
	fclose(file);
	return result;
}

static void make_tree(void)
{
	make_capture("profiling/reth/cpu-1.gasflame", "reth", 1700000000, true);
	make_file("profiling/reth/cpu-1.svg", "<svg/>");
	make_file("profiling/reth/cpu-1.html", "<html/>");
	make_capture("profiling/old/deep/er/cpu-2.gasflame", "old\033[31m", 1600000000, false);
	make_capture("profiling/new/cpu-3.gasflame", "new", 1800000000, true);
	make_capture("profiling/mixed/renamed.db", "renamed", 1500000000, true);
	make_file("profiling/mixed/renamed.svg", "somebody's drawing");
	make_file("profiling/mixed/notes.gasflame",
		  "not a capture, and long enough to hold the header of a database file.....");
	make_file("profiling/mixed/empty.gasflame", "");
	make_capture("outside/cpu-4.gasflame", "outside", 1500000000, true);
	assert_int_equal(symlink("../outside", "profiling/link"), 0);
	assert_int_equal(symlink("../../outside/cpu-4.gasflame", "profiling/mixed/cpu-4.gasflame"), 0);
	assert_int_equal(mkfifo("profiling/mixed/fifo.gasflame", 0644), 0);
	assert_int_equal(mkdir("profiling/was-empty", 0755), 0);
	make_old("profiling/reth/cpu-1.gasflame", 8);
	make_old("profiling/old/deep/er/cpu-2.gasflame", 30);
	make_old("profiling/mixed/renamed.db", 9);
	make_old("outside/cpu-4.gasflame", 99);
}

static void ls_tells_what_there_is(void **state)
{
	const char *lines[8] = { 0 };
	size_t n = 0;

	assert_int_equal(run(&command_ls, "ls"), EXIT_OK);
	assert_null(strchr(caught, '\033'));
	for (char *l = strtok(caught, "\n"); l && n < 8; l = strtok(NULL, "\n"))
		lines[n++] = l;
	/* A title and four captures, the newest first; no link, no decoy. */
	assert_int_equal(n, 5);
	assert_non_null(strstr(lines[1], "profiling/new/cpu-3.gasflame"));
	assert_non_null(strstr(lines[2], "profiling/reth/cpu-1.gasflame"));
	assert_non_null(strstr(lines[3], "unfinished"));
	assert_non_null(strstr(lines[4], "profiling/mixed/renamed.db"));
	assert_non_null(strstr(lines[2], "reth  "));
	assert_non_null(strstr(lines[2], "2.00 s"));
	assert_null(strstr(lines[2], "unfinished"));
	assert_int_equal(run(&command_ls, "ls --json outside profiling/new"), EXIT_OK);
	assert_non_null(strstr(
		caught, "{\"file\":\"outside/cpu-4.gasflame\",\"target\":\"outside\",\"what\":\"cpu\""));
	assert_non_null(strstr(caught, "\"duration_ns\":2000000000"));
	/* A capture of this folder itself is one of those that a command without a file chooses from. */
	make_capture("here.gasflame", "here", 1900000000, true);
	assert_int_equal(run(&command_ls, "ls"), EXIT_OK);
	assert_non_null(strstr(caught, "\nhere.gasflame "));
	assert_int_equal(unlink("here.gasflame"), 0);
	assert_int_equal(run(&command_ls, "ls no-such-folder"), EXIT_ERROR);
	assert_int_equal(run(&command_ls, "ls profiling/new/cpu-3.gasflame"), EXIT_OK);
	assert_non_null(strstr(caught, "cpu-3"));
}

/* What a command gets in place of the files that were not named; "" where it is an error. */
static const char *newest(unsigned count, char *named, struct owner behind_sudo)
{
	static char text[1024];
	const struct command c = { .name = "report", .newest = count };
	const struct option_spec options[] = { { 0 } };
	char *argv[] = { named, NULL };
	struct command_operands o = { argv, named != NULL };
	struct err err = { 0 };
	int r = newest_complete(&c, options, &o, behind_sudo, &err);

	assert_int_equal(r, *err.text ? -ENOENT : 0);
	snprintf(text, sizeof(text), "%s%s%s", r ? err.text : o.n ? o.v[0] : "", r || o.n < 2 ? "" : " ", r || o.n < 2 ? "" : o.v[1]);
	/* A program keeps them to its end. */
	for (int i = 0; !r && i < o.n; i++)
		if (o.v[i] != named)
			free(o.v[i]);
	return text;
}

static void a_command_without_a_file_takes_the_newest(void **state)
{
	const struct owner nobody = { 0 }, user = { .given = true, .uid = 12345 };

	assert_string_equal(newest(0, NULL, nobody), "");
	assert_string_equal(newest(1, NULL, nobody), "profiling/new/cpu-3.gasflame");
	assert_string_equal(newest(1, "typed", nobody), "typed");
	assert_string_equal(newest(2, NULL, nobody), "profiling/reth/cpu-1.gasflame profiling/new/cpu-3.gasflame");
	/* The older of two is the first, whichever was named. */
	assert_string_equal(newest(2, "profiling/mixed/renamed.db", nobody), "profiling/mixed/renamed.db profiling/new/cpu-3.gasflame");
	assert_string_equal(newest(2, "./profiling/new/cpu-3.gasflame", nobody),
			    "profiling/reth/cpu-1.gasflame ./profiling/new/cpu-3.gasflame");
	/* This folder counts, those below it do not; content counts, the name does not. */
	make_capture("typed-with-o.db", "here", 1500000000, true);
	make_old("profiling/new/cpu-3.gasflame", 1);
	assert_string_equal(newest(1, NULL, nobody), "typed-with-o.db");
	if (!geteuid()) {
		assert_int_equal(chown("typed-with-o.db", 12345, 12345), 0);
		assert_string_equal(newest(1, NULL, nobody), "profiling/new/cpu-3.gasflame");
		assert_string_equal(newest(1, NULL, user), "typed-with-o.db");
	}
	assert_int_equal(unlink("typed-with-o.db"), 0);
	assert_int_equal(utimensat(AT_FDCWD, "profiling/new/cpu-3.gasflame", NULL, 0), 0);
}

static void a_folder_without_captures_says_what_to_type(void **state)
{
	const struct owner nobody = { 0 };

	assert_int_equal(chdir("profiling/was-empty"), 0);
	assert_non_null(strstr(newest(1, NULL, nobody), "`gasflame record TARGET` makes one"));
	make_capture("only.gasflame", "only", 1500000000, true);
	assert_string_equal(newest(1, NULL, nobody), "only.gasflame");
	assert_non_null(strstr(newest(2, NULL, nobody), "there is only one here"));
	if (!geteuid()) {
		assert_int_equal(chown("only.gasflame", 12345, 12345), 0);
		assert_non_null(strstr(newest(1, NULL, nobody), "belongs to user 12345 and is not taken unasked"));
	}
	assert_int_equal(unlink("only.gasflame"), 0);
	assert_int_equal(chdir("../.."), 0);
}

static void clean_wants_to_be_told(void **state)
{
	assert_int_equal(run(&command_clean, "clean"), EXIT_USAGE);
	assert_int_equal(run(&command_clean, "clean --all --older-than 7d"), EXIT_USAGE);
	assert_int_equal(run(&command_clean, "clean --older-than soon"), EXIT_USAGE);
	assert_int_equal(run(&command_clean, "clean --all no-such-folder"), EXIT_ERROR);
	assert_int_equal(run(&command_clean, "clean --all profiling/link"), EXIT_ERROR);
	assert_int_equal(run(&command_clean, "clean --all profiling/link/"), EXIT_ERROR);
	assert_true(there("profiling/new/cpu-3.gasflame") && there("outside/cpu-4.gasflame"));
}

static void a_dry_run_removes_nothing(void **state)
{
	assert_int_equal(run(&command_clean, "clean --older-than 7d --dry-run"), EXIT_OK);
	assert_non_null(strstr(caught, "would remove profiling/reth/cpu-1.gasflame"));
	assert_non_null(strstr(caught, "would remove profiling/reth/cpu-1.svg"));
	assert_null(strstr(caught, "cpu-3"));
	assert_true(there("profiling/reth/cpu-1.gasflame") && there("profiling/reth/cpu-1.svg"));
	assert_true(there("profiling/old/deep/er/cpu-2.gasflame"));
}

static void clean_removes_the_old_and_no_more(void **state)
{
	assert_int_equal(run(&command_clean, "clean --older-than 7d"), EXIT_OK);
	assert_false(there("profiling/reth") || there("profiling/old"));
	assert_false(there("profiling/mixed/renamed.db"));
	/* Not ours: another name, another kind of file, a link, what a link leads to. */
	assert_true(there("profiling/mixed/renamed.svg") && there("profiling/mixed/notes.gasflame"));
	assert_true(there("profiling/mixed/empty.gasflame") && there("profiling/mixed/fifo.gasflame"));
	assert_true(there("profiling/mixed/cpu-4.gasflame") && there("profiling/link"));
	assert_true(there("outside/cpu-4.gasflame") && there("profiling/was-empty"));
	assert_true(there("profiling/new/cpu-3.gasflame"));
}

/* Of another process: it has the capture open, as a recorder has. */
static int create_capture(void *path)
{
	struct err err = { 0 };
	struct capture *capture;

	return capture_create(path, &capture, &err);
}

/* The capture's own journals go with it; one that is being written stays. */
static void journals_and_recordings(void **state)
{
	pid_t pid = child_start(create_capture, "profiling/live.gasflame");

	make_file("profiling/new/cpu-3.gasflame-wal", "left over");
	make_file("profiling/new/cpu-3.gasflame-shm", "left over");
	assert_int_equal(run(&command_ls, "ls"), EXIT_OK);
	assert_non_null(strstr(caught, "recording"));
	assert_int_equal(run(&command_clean, "clean --all --json"), EXIT_OK);
	assert_non_null(strstr(caught, "{\"dry_run\":false,\"captures\":1,\"files\":3,\"bytes\":"));
	assert_false(there("profiling/new"));
	assert_true(there("profiling/live.gasflame"));
	child_end(pid);
	assert_int_equal(run(&command_clean, "clean --all"), EXIT_OK);
	assert_false(there("profiling/live.gasflame") || there("profiling/live.gasflame-wal"));
	assert_true(there("profiling"));
	assert_int_equal(run(&command_ls, "ls --json"), EXIT_OK);
	assert_string_equal(caught, "[]\n");
}

static int set_up(void **state)
{
	if (enter_folder(state))
		return -1;
	log_set_level(LOG_QUIET);
	make_tree();
	return 0;
}

static int tear_down(void **state)
{
	free(caught);
	return remove_folder(state);
}

int main(void)
{
	/* In this order: each leaves the tree to the next. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ls_tells_what_there_is),
		cmocka_unit_test(a_command_without_a_file_takes_the_newest),
		cmocka_unit_test(a_folder_without_captures_says_what_to_type),
		cmocka_unit_test(clean_wants_to_be_told),
		cmocka_unit_test(a_dry_run_removes_nothing),
		cmocka_unit_test(clean_removes_the_old_and_no_more),
		cmocka_unit_test(journals_and_recordings),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
