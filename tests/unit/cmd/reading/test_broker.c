/* The process that writes for readers: only where the command line says. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "cmd/reading/broker.h"
#include "cmd/recording/output.h"
#include "cmd/cmd.h"

const struct command_group command_groups[] = { { 0 } }; /* of the help, which is not asked for */
static char *inputs[] = { "x.gasflame", "below/y.folded" };
static struct buf page;

static int write_to(const char *path)
{
	struct err err = { 0 };
	int r = broker_write(path, &page, &err);

	assert_int_equal(!r, !err.code);
	return r;
}

static void test_places(void **state)
{
	_cleanup_free_ char *text = NULL;

	assert_true(broker_runs());
	assert_int_equal(write_to("out.txt"), 0);
	assert_int_equal(fd_read_path("out.txt", 100, &text, NULL), 0);
	assert_string_equal(text, "a page");
	assert_int_equal(write_to("x.html"), 0);
	assert_int_equal(write_to("x.diff.html"), 0);
	assert_int_equal(write_to("below/y.svg"), 0);
	assert_int_equal(write_to("also.map"), 0);
}

static void test_elsewhere(void **state)
{
	static const char *const others[] = { "other.html", "xy.html", "x", "x.gasflame", "x.gasflame-wal", "x.sh", "x./../z.html",
					      "below/x.html", "/etc/x.html", "", "../x.html", "out.txt/", "./out.txt.html" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_int_equal(write_to(others[i]), -EACCES);
		assert_true(access(others[i], F_OK) < 0 || !*others[i]);
	}
}

static void test_move(void **state)
{
	_cleanup_free_ char *made = mem_printf("%s/new", broker_folder());
	_cleanup_free_ char *trap = mem_printf("%s/link", broker_folder());
	struct err err = { 0 };
	int fd = open(made, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink("/etc/passwd", trap), 0);
	assert_int_equal(broker_move("new", "elsewhere", &err), -EACCES);
	assert_true(broker_move("link", "out.txt", &err) < 0);
	assert_true(broker_move("../x.html", "out.txt", &err) < 0);
	assert_int_equal(broker_move("new", "out.txt", &err), 0);
	assert_int_equal(access(made, F_OK), -1);
}

/* New files, in the folder of the label alone. */
static void test_new(void **state)
{
	static const struct output_file files[] = { { ".svg", "<svg>", 5 }, { ".html", "<html>", 6 } };
	static const struct output_file script[] = { { ".svg", "<svg>", 5 }, { ".sh", "true", 4 } };
	static const char *const words[] = { "wait", "wait", "../../up", "/etc/x" };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		_cleanup_free_ char *stem = NULL, *page_path = NULL, *svg_path = NULL, *text = NULL;

		assert_int_equal(broker_write_new(words[i], files, 2, &stem, &err), 0);
		assert_true(str_starts(stem, "profiling/slow/"));
		assert_null(strchr(stem + strlen("profiling/slow/"), '/'));
		page_path = mem_printf("%s.html", stem);
		svg_path = mem_printf("%s.svg", stem);
		assert_int_equal(fd_read_path(page_path, 100, &text, NULL), 0);
		assert_string_equal(text, "<html>");
		assert_int_equal(unlink(page_path), 0);
		assert_int_equal(unlink(svg_path), 0);
	}
	assert_int_equal(broker_write_new("wait", script, 2, &(char *){ NULL }, &err), -EACCES);
	assert_int_equal(rmdir("profiling/slow"), 0); /* so no file was made */
	assert_int_equal(rmdir("profiling"), 0);
}

static char folder[] = "/tmp/gasflame-broker-XXXXXX";

/* Runs after the broker has ended, and has removed its own folder in ours. */
static void remove_folder(void)
{
	static const char *const files[] = { "out.txt", "x.html", "x.diff.html", "below/y.svg", "also.map" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		unlink(files[i]);
	if (rmdir("below") || chdir("/") || rmdir(folder)) {
		perror(folder);
		_exit(1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_new),
	};
	struct broker_places places = { .output = "out.txt", .also = "also.map", .pictures = "slow", .inputs = inputs, .input_count = 2,
					.temporary = ".", .temporary_owner = geteuid() };
	int r;

	if (!mkdtemp(folder) || chdir(folder) || mkdir("below", 0700) || atexit(remove_folder) || broker_start(&places, NULL))
		return 1;
	buf_puts(&page, "a page");
	r = cmocka_run_group_tests(tests, NULL, NULL);
	buf_done(&page);
	return r;
}
