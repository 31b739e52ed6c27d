/* test_report.c - the command as it is typed: exit codes, files, and what is said on the way. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cmd/cmd.h"
#include "profile/capture.h"
#include "waiting.h"

extern const struct command command_report;
const struct command_group command_groups[] = { { 0 } }; /* main.c's table is not in this program */

static char folder[64];

/* In the folder of the test; two can be used at a time. */
static const char *in_folder(const char *name)
{
	static char paths[2][128];
	static int turn;

	turn ^= 1;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", folder, name);
	return paths[turn];
}

static void save(struct sample *s, const char *name)
{
	struct capture *c = NULL;
	struct err err = { 0 };

	assert_int_equal(capture_create(in_folder(name), &c, &err), 0);
	assert_int_equal(capture_flush(c, s->p, &err), 0);
	assert_int_equal(capture_close(c, &err), 0);
	profile_free(s->p);
}

static int set_up(void **state)
{
	struct sample good = sample_make(), empty = sample_empty();
	struct waiting waiting = waiting_make();

	snprintf(folder, sizeof(folder), "/tmp/gasflame-report-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	save(&good, "good.gasflame");
	save(&empty, "empty.gasflame");
	save(&waiting.s, "waits.gasflame");
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "good.gasflame", "empty.gasflame", "good.svg",
					     "out",           "talk",           "x.folded",
					     "waits.gasflame", "mine.conf" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unlink(in_folder(names[i]));
	return rmdir(folder);
}

static char *contents(const char *name)
{
	char *text = NULL;
	size_t n;

	if (fd_read_path(in_folder(name), 16 << 20, &text, &n))
		fail_msg("no file %s", name);
	return text;
}

/* Runs `gasflame report ARGS` in the folder, with stdout in the file "out" and stderr in "talk". */
static int run(const char *const *args, size_t n)
{
	char *argv[16] = { "report" };
	int saved[2] = { dup(1), dup(2) }, to[2], code, here = open(".", O_RDONLY | O_DIRECTORY);

	for (size_t i = 0; i < n; i++)
		argv[i + 1] = (char *)args[i];
	fflush(stdout);
	to[0] = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	to[1] = open(in_folder("talk"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(chdir(folder), 0);
	dup2(to[0], 1);
	dup2(to[1], 2);
	code = command_report.run(&command_report, n + 1, argv);
	fflush(stdout);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	assert_int_equal(fchdir(here), 0);
	for (int i = 0; i < 2; i++) {
		close(saved[i]);
		close(to[i]);
	}
	close(here);
	return code;
}

#define RUN(...)                                                                                             \
	run((const char *const[]){ __VA_ARGS__ },                                                            \
	    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void holds(const char *name, const char *words)
{
	_cleanup_free_ char *text = contents(name);

	if (!strstr(text, words))
		fail_msg("%s does not hold '%s':\n%s", name, words, text);
}

static void data_and_talk_are_apart(void **state)
{
	_cleanup_free_ char *out = NULL;

	assert_int_equal(RUN("good.gasflame"), EXIT_OK);
	holds("out", "node::fib");
	holds("talk", "2,000 samples, 97.5 % complete");
	out = contents("out");
	assert_null(strstr(out, "complete"));
	assert_int_equal(RUN("--format", "folded", "--merged", "good.gasflame", "good.gasflame"), EXIT_OK);
	holds("out", "_start;main 100\n"); /* two recordings are added */
}

static void a_picture_goes_beside_the_capture(void **state)
{
	assert_int_equal(RUN("--format", "svg", "good.gasflame"), EXIT_OK);
	holds("out", "good.svg\n");
	holds("good.svg", "<svg ");
	assert_int_equal(RUN("--format", "svg", "-o", "-", "--title", "Mine", "good.gasflame"), EXIT_OK);
	holds("out", ">Mine</text>");
	assert_int_equal(RUN("-o", "x.folded", "good.gasflame"), EXIT_OK);
	holds("x.folded", "main;_start;main;node::run;node::fib 100\n");
}

static void filters_select(void **state)
{
	assert_int_equal(RUN("--format", "folded", "-t", "helper", "good.gasflame"), EXIT_OK);
	holds("out", "helper;_start;main;node::help 150\n");
	assert_int_equal(RUN("--format", "json", "--from", "0.5", "--to", "600ms", "good.gasflame"), EXIT_OK);
	holds("out", "\"samples\":100,");
	assert_int_equal(RUN("--format", "json", "-f", "^node::fib$", "--what", "cpu", "good.gasflame"),
			 EXIT_OK);
	holds("out", "\"samples\":700,");
	assert_int_equal(RUN("--format", "json", "--process", "200", "good.gasflame"), EXIT_OK);
	holds("out", "\"samples\":150,");
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(in_folder(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void waits_have_an_account(void **state)
{
	_cleanup_free_ char *folded = NULL;

	assert_int_equal(RUN("waits.gasflame"), EXIT_OK);
	holds("out", "Where the time of the threads went");
	holds("out", "90 % of thread `rpc-1`");
	holds("out", "reth::Cache::insert (persistence)");
	assert_int_equal(RUN("--format", "json", "--what", "queue", "waits.gasflame"), EXIT_OK);
	holds("out", "\"disk-write\":700000000");
	holds("out", "\"total\":30000000");
	assert_int_equal(RUN("--format", "folded", "--what", "wall", "waits.gasflame"), EXIT_OK);
	holds("out", "mdbx_txn_commit");
	folded = contents("out");
	assert_null(strstr(folded, "[idle]"));
	assert_int_equal(RUN("--format", "folded", "--what", "wall", "--idle", "waits.gasflame"), EXIT_OK);
	holds("out", ";[idle] 999000\n");
	assert_int_equal(RUN("-t", "tokio*", "--what", "wait", "waits.gasflame"), EXIT_OK);
	holds("talk", "all of it is idle, 999 ms: --idle shows it");
	/* Two recordings add up. */
	assert_int_equal(RUN("--format", "json", "waits.gasflame", "waits.gasflame"), EXIT_OK);
	holds("out", "\"disk-write\":1400000000");
}

static void a_users_patterns_decide(void **state)
{
	write_file("mine.conf", "[mine]\nwaits = futex\nuser = reth::Cache # ours\ncause = network\n"
				"means = The cache is far away.\n");
	assert_int_equal(RUN("--patterns", "mine.conf", "-t", "rpc-1", "--what", "wait", "waits.gasflame"),
			 EXIT_OK);
	holds("out", "The cache is far away.");
	write_file("mine.conf", "# mine\n[mine]\ncause = boredom\n");
	assert_int_equal(RUN("--patterns", "mine.conf", "waits.gasflame"), EXIT_ERROR);
	holds("talk", "mine.conf:3: there is no cause 'boredom'");
}

static void a_recording_that_cannot_be_read_has_its_own_exit_code(void **state)
{
	assert_int_equal(RUN("empty.gasflame"), EXIT_QUALITY);
	holds("talk", "not fit to read");
}

static void mistakes_are_explained(void **state)
{
	struct {
		const char *args[4];
		int code;
		const char *words;
	} mistakes[] = {
		{ { "nofile" }, EXIT_ERROR, "there is no file nofile: `gasflame ls` lists" },
		{ { "/dev/null" }, EXIT_ERROR, "is not a regular file" },
		{ { "--what", "heap", "good.gasflame" }, EXIT_ERROR, "there is cpu" },
		{ { "--from", "7", "good.gasflame" },
		  EXIT_ERROR,
		  "no samples after 7 s: the recording has 0-2.1 s" },
		{ { "-t", "nobody", "good.gasflame" }, EXIT_ERROR, "there is helper, main, worker 1" },
		{ { "-f", "(", "good.gasflame" }, EXIT_ERROR, "is not a regular expression" },
		{ { "-o", "no/such/x.svg", "good.gasflame" }, EXIT_ERROR, "cannot write no/such/x.svg" },
		{ { "-o", "good.gasflame", "good.gasflame" }, EXIT_ERROR, "is the capture itself" },
		{ { "--inverted", "good.gasflame" }, EXIT_USAGE, "--inverted is for svg" },
		{ { "--merged", "--by-thread", "-ox.folded", "good.gasflame" }, EXIT_USAGE, "only one" },
		{ { "-t", "rpc-1", "waits.gasflame" }, EXIT_ERROR, "--what wait shows what they waited for" },
		{ { "--idle", "good.gasflame" },
		  EXIT_ERROR,
		  "no waits were recorded, which --idle is about" },
		{ { "--what", "wall", "good.gasflame" }, EXIT_ERROR, "there is cpu" },
		{ { "--patterns", "none.conf", "waits.gasflame" },
		  EXIT_ERROR,
		  "cannot read the patterns in none" },
		{ { "--patterns", "waits.gasflame", "waits.gasflame" }, EXIT_ERROR, "is no text" },
		{ { "-q" }, EXIT_USAGE, "report needs a capture" },
	};

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		size_t n = 0;

		while (n < 4 && mistakes[i].args[n])
			n++;
		assert_int_equal(run(mistakes[i].args, n), mistakes[i].code);
		holds("talk", mistakes[i].words);
	}
	assert_int_equal(RUN("good.gasflame"), EXIT_OK); /* it was not written over */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_and_talk_are_apart),
		cmocka_unit_test(a_picture_goes_beside_the_capture),
		cmocka_unit_test(filters_select),
		cmocka_unit_test(waits_have_an_account),
		cmocka_unit_test(a_users_patterns_decide),
		cmocka_unit_test(a_recording_that_cannot_be_read_has_its_own_exit_code),
		cmocka_unit_test(mistakes_are_explained),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
