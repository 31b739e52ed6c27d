/* test_report.c - the command as it is typed: exit codes, files, and what is said on the way. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "capture/capture.h"
#include "putfile.h"
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
					     "waits.gasflame", "mine.conf",      "good.html",
					     "waits.html",    "empty.html",     "x.html" };

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

	assert_int_equal(RUN("--format", "text", "good.gasflame"), EXIT_OK);
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

/* What a script reads is the path; what a person reads is beside it. */
static void a_page_is_the_default(void **state)
{
	_cleanup_free_ char *out = NULL, *quiet = NULL, *x = NULL, *again = NULL;

	assert_int_equal(RUN("good.gasflame"), EXIT_OK);
	out = contents("out");
	assert_string_equal(out, "good.html\n");
	holds("good.html", "<!DOCTYPE html>");
	holds("good.html", "default-src 'none'");
	holds("good.html", "connect-src 'none'");
	holds("talk", "demo-node, 2.10 s from ");
	holds("talk", "2,000 samples, 97.5 % complete");
	holds("talk", "  35.0 %    700 ms    35.0 %  node::fib\n");
	assert_int_equal(RUN("-q", "good.gasflame"), EXIT_OK);
	quiet = contents("talk");
	assert_string_equal(quiet, "");
	log_set_level(LOG_NORMAL);
	assert_int_equal(RUN("waits.gasflame"), EXIT_OK);
	holds("talk", "5 threads, 5.00 s: on CPU 32.0 %, idle 20.0 %");
	holds("talk", "90 % of thread `rpc-1`");
	/* The same bytes wherever it goes. */
	assert_int_equal(RUN("-o", "x.html", "good.gasflame"), EXIT_OK);
	x = contents("x.html");
	assert_int_equal(RUN("--format", "html", "-o", "-", "good.gasflame"), EXIT_OK);
	again = contents("out");
	assert_string_equal(x, again);
	/* Options of tables choose tables. */
	assert_int_equal(RUN("-n", "3", "good.gasflame"), EXIT_OK);
	holds("out", "By function");
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

static void waits_have_an_account(void **state)
{
	_cleanup_free_ char *folded = NULL;

	assert_int_equal(RUN("--format", "text", "waits.gasflame"), EXIT_OK);
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
	put(folder, "mine.conf", "[mine]\nwaits = futex\nuser = reth::Cache # ours\ncause = network\n"
				"means = The cache is far away.\n");
	assert_int_equal(RUN("--format", "text", "--patterns", "mine.conf", "-t", "rpc-1", "--what", "wait",
			     "waits.gasflame"),
			 EXIT_OK);
	holds("out", "The cache is far away.");
	put(folder, "mine.conf", "# mine\n[mine]\ncause = boredom\n");
	assert_int_equal(RUN("--patterns", "mine.conf", "waits.gasflame"), EXIT_ERROR);
	holds("talk", "mine.conf:3: there is no cause 'boredom'");
}

/* Each question has its report, and the filters work for all of them. */
static void questions_are_answered(void **state)
{
	assert_int_equal(RUN("--json", "--table", "crates", "--own", "alloy-*", "good.gasflame"), EXIT_OK);
	holds("out", "{\"crate\":\"alloy_trie\",\"kind\":\"own\",\"self_samples\":250,");
	assert_int_equal(RUN("--callers", "update", "-t", "worker*", "--from", "1.5", "good.gasflame"),
			 EXIT_OK);
	holds("out", "Callers of `alloy_trie::HashBuilder::update`, % of 250 ms\n  which is 83.3 % of 300 "
		     "ms, and 83.3 %");
	assert_int_equal(RUN("--callees", "node::run", "--percent-limit", "50", "good.gasflame"), EXIT_OK);
	holds("out", " 70.0 %    700 ms   10.0 %  node::fib\n");
	holds("out", "1 branch below 50 % left out (--percent-limit 0 shows all)\n");
	assert_int_equal(RUN("--tree", "--merged", "--depth", "1", "good.gasflame"), EXIT_OK);
	holds("out", " 60.0 %    1.20 s      0 %  - _start\n 37.5 %    750 ms      0 %  - clone3\n");
	assert_int_equal(RUN("--nearest-own", "ext4", "--json", "good.gasflame"), EXIT_OK);
	holds("out", "{\"crate\":\"node\",\"name\":\"node::run\",");
	assert_int_equal(RUN("--nearest-own", "ext4", "--own", "mine", "good.gasflame"), EXIT_OK);
	holds("out", "say which crates do with --own 'name*'");
	assert_int_equal(RUN("--phases", "fib,Hash{1}Builder", "--phases", "help", "good.gasflame"), EXIT_OK);
	holds("out", "Hash{1}Builder\n");
	holds("out", "1.949  helper              help\n");
	assert_int_equal(RUN("--what", "wall", "--tree", "--root", "Cache::get", "waits.gasflame"), EXIT_OK);
	holds("out", "reth::Cache::get");
	holds("out", "[lock]");
}

/* --root and --group change the stacks of all formats that have some. */
static void roots_and_groups_are_for_all_formats(void **state)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(
		RUN("--root", "node::run", "--group", "F=fib", "--format", "folded", "good.gasflame"),
		EXIT_OK);
	text = contents("out");
	assert_string_equal(
		text,
		"main;node::run;F 700\n"
		"main;node::run;write;entry_SYSCALL_64_[k];ksys_write_[k];ext4_file_write_iter_[k] 300\n");
	holds("talk", "2,000 samples"); /* the quality is that of what was selected */
	assert_int_equal(RUN("--root", "node::run", "-o", "-", "--format", "svg", "good.gasflame"), EXIT_OK);
	holds("out", "<title>node::run (1,000 samples, 100.00%)</title>");
	holds("out", ", only below `node::run`: 2,000 samples, ");
	assert_int_equal(RUN("--root", "node::run", "--json", "good.gasflame"), EXIT_OK);
	holds("out",
	      "\"total\":1000000000,\n\"root\":\"node::run\",\n\"outside_root\":1000000000,\n\"functions\":");
	assert_int_equal(RUN("--group", "node::(\\w+)", "--table", "groups", "good.gasflame"), EXIT_OK);
	holds("out", " 15.0 %    300 ms   50.0 %    1.00 s  run\n");
	/* The account is of whole threads: a part of their stacks has none. */
	assert_int_equal(RUN("--what", "wait", "--root", "Cache::get", "waits.gasflame"), EXIT_OK);
	mem_freep(&text);
	text = contents("out");
	assert_null(strstr(text, "Where the time of the threads went"));
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
		{ { "--max-size", "1M", "--format=svg", "good.gasflame" }, EXIT_USAGE, "--max-size is for html" },
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
		{ { "--tree", "--marks", "good.gasflame" },
		  EXIT_USAGE,
		  "--tree and --marks are two reports" },
		{ { "--tree", "-ox.svg", "good.gasflame" }, EXIT_USAGE, "a table, for text, json and csv" },
		{ { "--callers", "nothing", "good.gasflame" }, EXIT_ERROR, "--callers 'nothing' matches no" },
		{ { "--callees", "(", "good.gasflame" }, EXIT_ERROR, "--callees '(' is not a regular" },
		{ { "--root", "nothing", "good.gasflame" }, EXIT_ERROR, "no function matches --root" },
		{ { "--group", "A=nothing", "good.gasflame" }, EXIT_ERROR, "--group 'A=nothing' matches no" },
		{ { "--phases", ",", "good.gasflame" }, EXIT_USAGE, "--phases names no function" },
		{ { "--phases", "nothing", "good.gasflame" }, EXIT_ERROR, "none of these functions" },
		{ { "--marks", "good.gasflame" }, EXIT_ERROR, "no marks in this recording" },
		{ { "--table", "groups", "good.gasflame" }, EXIT_USAGE, "say which with --group" },
		{ { "--own", "x", "--tree", "good.gasflame" }, EXIT_USAGE, "--own is for tables by crate" },
		{ { "--percent-limit", "1", "good.gasflame" }, EXIT_USAGE, "tables have --limit" },
		{ { "--depth", "1", "good.gasflame" }, EXIT_USAGE, "--depth is for --tree" },
		{ { "--tree", "-n1", "good.gasflame" }, EXIT_USAGE, "--limit is for tables" },
		{ { "--callees", "fib", "--by-thread", "good.gasflame" },
		  EXIT_USAGE,
		  "--by-thread is for svg" },
		{ { "--tree", "--sort=total", "good.gasflame" }, EXIT_USAGE, "--sort is for tables" },
		{ { "-n1", "--format=summary", "good.gasflame" }, EXIT_USAGE, "as text, json, csv, dot and heap-table, and this is summary" },
		{ { "--sort=total", "--format=massif", "good.gasflame" }, EXIT_USAGE, "and this is massif" },
		{ { "--json", "--format=svg", "good.gasflame" }, EXIT_USAGE, "choose one" },
		{ { "--root", "fib", "--format=summary", "good.gasflame" },
		  EXIT_USAGE,
		  "--root is for text" },
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
		cmocka_unit_test(a_page_is_the_default),
		cmocka_unit_test(filters_select),
		cmocka_unit_test(waits_have_an_account),
		cmocka_unit_test(a_users_patterns_decide),
		cmocka_unit_test(questions_are_answered),
		cmocka_unit_test(roots_and_groups_are_for_all_formats),
		cmocka_unit_test(a_recording_that_cannot_be_read_has_its_own_exit_code),
		cmocka_unit_test(mistakes_are_explained),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
