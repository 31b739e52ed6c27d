/* test_capturenew.c - captures that are made where others make files, too: at the same time, or against us. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/folder.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "folder.h"
#include "putfile.h"


static int entries(void)
{
	DIR *dir = opendir(".");
	int n = -2;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Where something went wrong nothing is left, but for what is another's by now. */
static void a_discarded_capture_is_gone(void **state)
{
	struct profile *p = profile_new();
	struct capture *c = NULL;
	dev_t device;
	ino_t inode;
	struct stat st;

	assert_int_equal(capture_create("x.gasflame", &c, NULL), 0);
	capture_identity(c, &device, &inode);
	assert_int_equal(stat("x.gasflame", &st), 0);
	assert_true(st.st_dev == device && st.st_ino == inode);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	capture_discard(c);
	assert_int_equal(entries(), 0);
	capture_discard(NULL);
	assert_int_equal(capture_create("x.gasflame", &c, NULL), 0);
	assert_int_equal(unlink("x.gasflame"), 0);
	put_bytes("x.gasflame", "another's", 9, 0600);
	unlink("x.gasflame-wal");
	put_bytes("x.gasflame-wal", "another's", 9, 0600);
	capture_discard(c);
	assert_int_equal(access("x.gasflame", F_OK), 0);
	assert_int_equal(access("x.gasflame-wal", F_OK), 0);
	assert_int_equal(unlink("x.gasflame-wal"), 0);
	assert_int_equal(unlink("x.gasflame"), 0);
	assert_int_equal(capture_create("x.gasflame", &c, NULL), 0);
	p->finished = true;
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close_whole(c, NULL), 0);
	assert_int_equal(entries(), 1);
	profile_free(p);
}

/* --- at the same time --- */

enum { RECORDERS = 6 };

/* One of several recorders: begins with the others, and holds its capture until all have tried (the gate is closed
 * then). The answer is what capture_create_with() gave, 254 if the file that has the name now is another. */
static int record(const char *path, unsigned how, uint64_t start_ns, int tried, int gate)
{
	struct profile *p = profile_new();
	struct capture *c = NULL;
	struct capture_summary summary;
	char me[32], byte = 0;
	int r;

	snprintf(me, sizeof(me), "recorder-%d", getpid());
	p->target = profile_string(p, me);
	while (clock_mono_ns() < start_ns)
		;
	r = capture_create_with(path, how, NULL, &c, NULL);
	if (write(tried, &byte, 1) != 1)
		return 253;
	if (r)
		return -r;
	if (read(gate, &byte, 1) != 0)
		return 252;
	p->finished = true;
	if (capture_flush(c, p, NULL) || capture_close(c, NULL) || capture_summary(path, &summary, NULL))
		return 255;
	return strcmp(summary.target, me) ? 254 : 0;
}

/* All at once, and what each of them answered. */
static void race(const char *path, unsigned how, int *ret_won, int refusal)
{
	uint64_t start = clock_mono_ns() + 20000000;
	int tried[2], gate[2];
	pid_t pids[RECORDERS];
	char byte;

	*ret_won = 0;
	assert_true(!pipe(tried) && !pipe(gate));
	for (int i = 0; i < RECORDERS; i++)
		if (!(pids[i] = fork())) {
			close(gate[1]);
			_exit(record(path, how, start, tried[1], gate[0]));
		}
	for (int i = 0; i < RECORDERS; i++)
		assert_int_equal(read(tried[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(gate[i]);
		close(tried[i]);
	}
	for (int i = 0; i < RECORDERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status))
			assert_int_equal(WEXITSTATUS(status), refusal);
		else
			++*ret_won;
	}
}

static void of_recorders_at_the_same_moment_one_wins(void **state)
{
	int won;

	for (int round = 0; round < 5; round++) {
		race("new", CAPTURE_ONCE, &won, EEXIST);
		assert_int_equal(won, 1);
		/* -o: what was there may be replaced, but not what has just begun. */
		race("new", 0, &won, EBUSY);
		assert_int_equal(won, 1);
		assert_int_equal(entries(), 1);
		unlink("new");
		race("new", 0, &won, EBUSY);
		assert_int_equal(won, 1);
		unlink("new");
	}
}

/* --- against us --- */

static void put_number(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = value >> (24 - 8 * i);
}

/* A rollback journal that says: when you are done with me, remove this file (SQLite's file format, "super-journal"). */
static void write_journal(const char *path, const char *victim)
{
	static const uint8_t magic[8] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	uint8_t data[1024] = { 0 }, *p = data + 512;
	uint32_t sum = 0, n = strlen(victim);

	memcpy(data, magic, sizeof(magic));
	put_number(data + 16, 1);
	put_number(data + 20, 512);
	put_number(data + 24, 4096);
	put_number(p, 0x40000000 / 4096 + 1);
	memcpy(p + 4, victim, n);
	for (uint32_t i = 0; i < n; i++)
		sum += (int8_t)victim[i];
	put_number(p + 4 + n, n);
	put_number(p + 8 + n, sum);
	memcpy(p + 12 + n, magic, sizeof(magic));
	put_bytes(path, data, p + 20 + n - data, 0600);
}

/* The same attack works on whoever lets SQLite look around: or this test would show nothing. */
static void assert_attack_works(const char *victim)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open("naive", &db), SQLITE_OK);
	sqlite3_exec(db, "create table x(y)", NULL, NULL, NULL);
	sqlite3_close(db);
	write_journal("naive-journal", victim);
	assert_int_equal(sqlite3_open("naive", &db), SQLITE_OK);
	sqlite3_exec(db, "select * from x", NULL, NULL, NULL);
	sqlite3_close(db);
	assert_int_equal(access(victim, F_OK), -1);
	unlink("naive");
}

/* Somebody lays a file of his beside the new capture, as fast as he can, for as long as we make captures. */
static pid_t start_stranger(const char *from, const char *to)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			if (link(from, to) && errno != EEXIST && errno != ENOENT)
				_exit(1);
	return pid;
}

/* Makes a capture, whatever lies there; it may be refused, but only with a sentence. */
static int make_capture(void)
{
	struct profile *p = profile_new();
	struct capture *c = NULL;
	struct err err = { 0 };
	int r = capture_create("x", &c, &err), closed;

	p->finished = true;
	if (!r)
		r = capture_flush(c, p, &err);
	closed = capture_close(c, r ? NULL : &err);
	r = r ? r : closed;
	profile_free(p);
	if (r)
		assert_true(strlen(err.text) > 0);
	return r;
}

static void journals_of_strangers_are_not_played(void **state)
{
	_cleanup_free_ char *victim = mem_printf("%s/victim", folder);
	const unsigned tries = SANITIZED ? 30 : 150;
	unsigned made = 0, left = tries;
	pid_t stranger;

	put_bytes(victim, "x", 1, 0600);
	assert_attack_works(victim);
	write_journal("journal", victim);
	put_bytes(victim, "x", 1, 0600);
	stranger = start_stranger("journal", "x-journal");
	while (left-- && !access(victim, F_OK))
		made += !make_capture();
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	assert_int_equal(access(victim, F_OK), 0);
	assert_int_equal(made, tries);
}

static void logs_of_strangers_are_not_written(void **state)
{
	_cleanup_free_ char *text = NULL;
	const unsigned tries = SANITIZED ? 30 : 150;
	unsigned made = 0;
	pid_t stranger;
	size_t n;

	put_bytes("precious", "precious", 8, 0600);
	stranger = start_stranger("precious", "x-wal");
	for (unsigned i = 0; i < tries; i++)
		made += !make_capture();
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	assert_int_equal(fd_read_path("precious", 1 << 20, &text, &n), 0);
	assert_string_equal(text, "precious");
	print_message("%u of %u captures were made all the same\n", made, tries);
}

/* What a dead recorder left beside its capture is not taken for the new one's. */
static void old_logs_go_with_the_old_capture(void **state)
{
	static const char *const left[] = { "x-wal", "x-journal", "x-shm" };
	struct capture *c = NULL;
	struct stat st;

	assert_int_equal(capture_create("x", &c, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(left); i++)
		put_bytes(left[i], "old", 3, 0600);
	assert_int_equal(capture_create("x", &c, NULL), 0);
	assert_int_equal(access("x-journal", F_OK), -1);
	assert_int_equal(access("x-shm", F_OK), -1);
	assert_true(!stat("x", &st) && (st.st_mode & 07777) == 0600);
	assert_true(!stat("x-wal", &st) && (st.st_mode & 07777) == 0600);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_int_equal(entries(), 1);
}

static void links_are_left_alone(void **state)
{
	struct capture *c = NULL;
	struct stat st;
	struct err err;

	assert_int_equal(symlink("elsewhere", "x"), 0);
	assert_int_equal(capture_create("x", &c, &err), -ELOOP);
	assert_int_equal(capture_create_with("x", CAPTURE_ONCE, NULL, &c, &err), -EEXIST);
	assert_int_equal(lstat("elsewhere", &st), -1);
	assert_int_equal(entries(), 1);
}

/* The folder is another one before the capture is closed: all stays in the one where it began. */
static void a_folder_that_is_swapped_stays_the_one_it_was(void **state)
{
	struct owner owner = { !geteuid(), 65534, 65534 };
	struct profile *p = profile_new();
	struct capture *c = NULL;
	struct stat st;

	assert_int_equal(capture_create_with("d/x", CAPTURE_FOLDERS, &owner, &c, NULL), 0);
	assert_true(!rename("d", "moved") && !mkdir("d", 0755));
	put_bytes("d/x", "precious", 8, 0600);
	put_bytes("d/x-wal", "precious", 8, 0600);
	p->finished = true;
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	profile_free(p);
	p = NULL;
	assert_int_equal(capture_read("moved/x", &p, NULL), 0);
	assert_true(p->finished);
	profile_free(p);
	assert_true(!stat("d/x", &st) && st.st_size == 8 && st.st_uid == geteuid());
	assert_int_equal(access("moved/x-wal", F_OK), -1);
	assert_true(!stat("moved/x", &st) && st.st_uid == (owner.given ? owner.uid : geteuid()));
	assert_true(!unlink("d/x") && !unlink("d/x-wal") && !rmdir("d") && !unlink("moved/x") && !rmdir("moved"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_discarded_capture_is_gone, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(of_recorders_at_the_same_moment_one_wins, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(journals_of_strangers_are_not_played, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(logs_of_strangers_are_not_written, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(old_logs_go_with_the_old_capture, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(links_are_left_alone, enter_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_folder_that_is_swapped_stays_the_one_it_was, enter_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
