/* test_newfile.c - files that we write, in folders where somebody else writes, too. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/newfile.h"
#include "folder.h"

enum { NOBODY = 65534, SOMEBODY = 65533 };


/* A folder for each test; we are in it. */
static int enter(void **state)
{
	return enter_folder(state) || chmod(folder, 0755) ? -1 : 0;
}

static void need_root(void)
{
	if (geteuid()) {
		print_message("skipped: needs root\n");
		skip();
	}
}

static int put(const char *path, unsigned how, const char *text, struct err *err)
{
	return newfile_write(path, how, 0666, NULL, text, strlen(text), err);
}

static void assert_text(const char *path, const char *wanted)
{
	_cleanup_free_ char *text = NULL;
	size_t n;

	assert_int_equal(fd_read_path(path, 1000, &text, &n), 0);
	assert_string_equal(text, wanted);
}

/* Entries of the folder: nothing may be left beside what was asked for. */
static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = -2;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* f() as another user, in a child; its answer must be 0. */
static void as_user(uid_t uid, int (*f)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? 99 : f());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- the plain case --- */

static void a_file_is_whole_or_as_it_was(void **state)
{
	struct rlimit small = { 1000, RLIM_INFINITY }, before;
	_cleanup_free_ char *large = mem_alloc(5001);
	struct stat st;
	struct err err;

	umask(022);
	assert_int_equal(put("x", 0, "one", &err), 0);
	assert_text("x", "one");
	assert_true(!stat("x", &st) && (st.st_mode & 07777) == 0644);
	assert_int_equal(newfile_write("x", 0, 0600, NULL, "two", 3, &err), 0);
	assert_true(!stat("x", &st) && (st.st_mode & 07777) == 0600);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	memset(large, 'x', 5000);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(put("x", NEWFILE_TYPED, large, &err), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_text("x", "two");
	assert_int_equal(entries("."), 1);
}

static void another_name_of_the_file_keeps_its_content(void **state)
{
	struct err err;

	assert_int_equal(put("x", 0, "precious", &err), 0);
	assert_int_equal(link("x", "other"), 0);
	assert_int_equal(put("x", NEWFILE_TYPED, "new", &err), 0);
	assert_text("other", "precious");
	assert_text("x", "new");
}

static void folders_are_no_files(void **state)
{
	struct err err;

	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(put("d", 0, "x", &err), -EISDIR);
	assert_int_equal(put("d/", 0, "x", &err), -EISDIR);
	assert_int_equal(put("..", 0, "x", &err), -EISDIR);
	assert_int_equal(put("d/../y", 0, "x", &err), 0);
	assert_int_equal(put("none/y", 0, "x", &err), -ENOENT);
	assert_int_equal(put("y/z", 0, "x", &err), -ENOTDIR);
	assert_int_equal(put("none/such/y", NEWFILE_FOLDERS, "x", &err), 0);
	assert_text("none/such/y", "x");
	assert_text("y", "x");
}

/* --- once --- */

static void of_two_only_one_gets_the_name(void **state)
{
	_cleanup_(newfile_done) struct newfile a, b;
	struct err err;

	assert_int_equal(newfile_open(&a, "x", NEWFILE_ONCE, 0666, NULL, &err), 0);
	assert_int_equal(newfile_open(&b, "x", NEWFILE_ONCE, 0666, NULL, &err), 0);
	assert_int_equal(fd_write_all(a.fd, "a", 1), 0);
	assert_int_equal(newfile_keep(&a, &err), 0);
	assert_int_equal(newfile_keep(&b, &err), -EEXIST);
	newfile_done(&b);
	assert_text("x", "a");
	assert_int_equal(put("x", NEWFILE_ONCE, "c", &err), -EEXIST);
	assert_int_equal(entries("."), 1);
	/* A link that leads nowhere is something, too. */
	assert_int_equal(symlink("nowhere", "l"), 0);
	assert_int_equal(put("l", NEWFILE_ONCE, "c", &err), -EEXIST);
}

static void what_is_shown_goes_on(void **state)
{
	_cleanup_(newfile_done) struct newfile f;
	struct err err;

	assert_int_equal(newfile_open(&f, "x", NEWFILE_TYPED, 0666, NULL, &err), 0);
	assert_int_equal(newfile_show(&f, &err), 0);
	assert_int_equal(fd_write_all(f.fd, "more", 4), 0);
	assert_text("x", "more");
	newfile_done(&f);
	assert_text("x", "more");
}

/* --- links --- */

static int own_link_is_followed(void)
{
	struct err err;

	if (put("own", NEWFILE_TYPED, "mine", &err) || put("through/y", 0, "y", &err))
		return 1;
	/* A name that we made up is nobody's link. */
	if (put("own", 0, "mine", &err) != -ELOOP)
		return 2;
	return put("foreign", NEWFILE_TYPED, "x", &err) == -ELOOP ? 0 : 3;
}

static void links_of_others_are_not_followed(void **state)
{
	struct stat st;

	need_root();
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(chown("d", NOBODY, NOBODY), 0);
	assert_true(!symlink("d/target", "own") && !lchown("own", NOBODY, NOBODY));
	assert_true(!symlink("d/stolen", "foreign") && !lchown("foreign", SOMEBODY, SOMEBODY));
	assert_true(!symlink("d", "through") && !lchown("through", SOMEBODY, SOMEBODY));
	as_user(NOBODY, own_link_is_followed);
	assert_text("d/target", "mine");
	assert_text("d/y", "y");
	assert_int_equal(lstat("d/stolen", &st), -1);
}

static void root_follows_no_link_to_a_file(void **state)
{
	struct owner owner = { true, NOBODY, NOBODY };
	struct stat st;
	struct err err;

	need_root();
	/* The finding: the report beside a stranger's capture is a link of his, and root wrote through it. */
	assert_true(!mkdir("his", 0755) && !chown("his", NOBODY, NOBODY) && !mkdir("etc", 0755));
	assert_true(!symlink("../etc/NEW", "his/x.html") && !lchown("his/x.html", NOBODY, NOBODY));
	assert_int_equal(newfile_write("his/x.html", 0, 0666, &owner, "x", 1, &err), -ELOOP);
	assert_int_equal(newfile_write("his/x.html", NEWFILE_TYPED, 0666, &owner, "x", 1, &err), -ELOOP);
	assert_int_equal(put("etc/OLD", 0, "precious", &err), 0);
	assert_true(!unlink("his/x.html") && !symlink("../etc/OLD", "his/x.html")); /* root's own, as in a container */
	assert_int_equal(newfile_write("his/x.html", NEWFILE_TYPED, 0666, &owner, "x", 1, &err), -ELOOP);
	assert_text("etc/OLD", "precious");
	assert_true(!stat("etc/OLD", &st) && st.st_uid == 0);
	assert_int_equal(entries("etc"), 1);
	assert_int_equal(entries("his"), 1);
}

static void root_follows_only_its_own_links_to_folders(void **state)
{
	struct err err;

	need_root();
	assert_int_equal(mkdir("etc", 0755), 0);
	assert_int_equal(symlink("etc", "ours"), 0);
	assert_true(!symlink("etc", "his") && !lchown("his", NOBODY, NOBODY));
	assert_true(!symlink("his", "chain"));
	assert_int_equal(put("ours/x", NEWFILE_TYPED, "x", &err), 0);
	assert_text("etc/x", "x");
	assert_int_equal(put("his/y", NEWFILE_TYPED, "y", &err), -ELOOP);
	assert_non_null(strstr(err.text, "symbolic link of user 65534"));
	assert_int_equal(put("chain/y", NEWFILE_FOLDERS, "y", &err), -ELOOP);
	assert_int_equal(put("his/new/y", NEWFILE_FOLDERS, "y", &err), -ELOOP);
	assert_int_equal(entries("etc"), 1);
	assert_true(!symlink("loop", "loop"));
	assert_int_equal(put("loop/y", 0, "y", &err), -ELOOP);
}

/* --- others at work in the same folder --- */

static void only_what_we_made_changes_its_owner(void **state)
{
	_cleanup_(newfile_done) struct newfile f;
	struct owner owner = { true, NOBODY, NOBODY };
	_cleanup_free_ char *path = NULL;
	struct stat st;
	struct err err;

	need_root();
	assert_int_equal(put("precious", 0, "root's", &err), 0);
	assert_int_equal(newfile_open(&f, "x", 0, 0666, &owner, &err), 0);
	assert_true(!unlink(f.temporary) && !link("precious", f.temporary));
	newfile_keep(&f, &err);
	assert_true(!stat("precious", &st) && st.st_uid == 0);
	newfile_done(&f);
	/* Nor is it removed where we remove our own. */
	assert_int_equal(newfile_open(&f, "y", 0, 0666, &owner, &err), 0);
	path = mem_strdup(f.temporary);
	assert_true(!unlink(path) && !link("precious", path));
	newfile_done(&f);
	assert_text(path, "root's");
	assert_int_equal(newfile_open(&f, "z", 0, 0666, &owner, &err), 0);
	assert_int_equal(newfile_keep(&f, &err), 0);
	assert_true(!stat("z", &st) && st.st_uid == NOBODY && st.st_gid == NOBODY);
}

static void a_folder_that_is_swapped_stays_the_one_it_was(void **state)
{
	_cleanup_(newfile_done) struct newfile f;
	struct err err;

	assert_true(!mkdir("d", 0755) && !mkdir("etc", 0755));
	assert_int_equal(newfile_open(&f, "d/x", 0, 0666, NULL, &err), 0);
	assert_true(!rename("d", "moved") && !symlink("etc", "d"));
	assert_int_equal(fd_write_all(f.fd, "x", 1), 0);
	assert_int_equal(newfile_keep(&f, &err), 0);
	assert_text("moved/x", "x");
	assert_int_equal(entries("etc"), 0);
}

static void new_folders_are_given(void **state)
{
	struct owner owner = { true, NOBODY, NOBODY };
	struct stat st;
	struct err err;

	need_root();
	assert_int_equal(mkdir("there", 0755), 0);
	assert_int_equal(newfile_write("there/a/b/x", NEWFILE_FOLDERS, 0666, &owner, "x", 1, &err), 0);
	assert_true(!stat("there", &st) && st.st_uid == 0);
	assert_true(!stat("there/a", &st) && st.st_uid == NOBODY);
	assert_true(!stat("there/a/b", &st) && st.st_uid == NOBODY);
	assert_true(!stat("there/a/b/x", &st) && st.st_uid == NOBODY);
}

/* --- what is no file --- */

static void *read_fifo(void *path)
{
	char *text = NULL;

	return fd_read_path(path, 1000, &text, NULL) ? NULL : text;
}

static void what_was_typed_may_be_no_file(void **state)
{
	int pipes[2], saved = dup(STDOUT_FILENO);
	char text[16] = "", device[32];
	pthread_t reader;
	void *got = NULL;
	struct err err;

	assert_int_equal(put("/dev/null", NEWFILE_TYPED, "x", &err), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(put("fifo", 0, "x", &err), -EEXIST);
	pthread_create(&reader, NULL, read_fifo, "fifo");
	assert_int_equal(put("fifo", NEWFILE_TYPED, "through", &err), 0);
	pthread_join(reader, &got);
	assert_string_equal(got, "through");
	free(got);
	assert_true(!pipe(pipes) && dup2(pipes[1], STDOUT_FILENO) >= 0);
	assert_int_equal(put("/dev/stdout", NEWFILE_TYPED, "out", &err), 0);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(read(pipes[0], text, sizeof(text) - 1), 3);
	assert_string_equal(text, "out");
	snprintf(device, sizeof(device), "/dev/fd/%d", pipes[1]);
	assert_int_equal(put(device, NEWFILE_TYPED, "again", &err), 0);
	assert_int_equal(read(pipes[0], text, sizeof(text) - 1), 5);
	assert_int_equal(put("/dev/fd/999", NEWFILE_TYPED, "x", &err), -EBADF);
	close(saved);
	close(pipes[0]);
	close(pipes[1]);
}

static int write_as_nobody(void)
{
	struct err err;

	/* No file can be made beside it, but it is ours. */
	if (put("closed/mine", NEWFILE_TYPED, "new", &err))
		return 1;
	/* That it could be replaced does not mean that it may be written. */
	if (put("open/readonly", NEWFILE_TYPED, "new", &err) != -EACCES)
		return 2;
	return put("closed/other", NEWFILE_TYPED, "new", &err) == -EACCES ? 0 : 3;
}

static void permissions_are_those_of_the_file(void **state)
{
	struct err err;

	need_root();
	assert_true(!mkdir("closed", 0755) && !mkdir("open", 0755) && !chown("open", NOBODY, NOBODY));
	assert_int_equal(put("closed/mine", 0, "old", &err), 0);
	assert_int_equal(put("open/readonly", 0, "old", &err), 0);
	assert_true(!chown("closed/mine", NOBODY, NOBODY) && !chown("open/readonly", NOBODY, NOBODY) &&
		    !chmod("open/readonly", 0444));
	as_user(NOBODY, write_as_nobody);
	assert_text("closed/mine", "new");
	assert_text("open/readonly", "old");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_whole_or_as_it_was, enter, remove_folder),
		cmocka_unit_test_setup_teardown(another_name_of_the_file_keeps_its_content, enter, remove_folder),
		cmocka_unit_test_setup_teardown(folders_are_no_files, enter, remove_folder),
		cmocka_unit_test_setup_teardown(of_two_only_one_gets_the_name, enter, remove_folder),
		cmocka_unit_test_setup_teardown(what_is_shown_goes_on, enter, remove_folder),
		cmocka_unit_test_setup_teardown(links_of_others_are_not_followed, enter, remove_folder),
		cmocka_unit_test_setup_teardown(root_follows_no_link_to_a_file, enter, remove_folder),
		cmocka_unit_test_setup_teardown(root_follows_only_its_own_links_to_folders, enter, remove_folder),
		cmocka_unit_test_setup_teardown(only_what_we_made_changes_its_owner, enter, remove_folder),
		cmocka_unit_test_setup_teardown(a_folder_that_is_swapped_stays_the_one_it_was, enter, remove_folder),
		cmocka_unit_test_setup_teardown(new_folders_are_given, enter, remove_folder),
		cmocka_unit_test_setup_teardown(what_was_typed_may_be_no_file, enter, remove_folder),
		cmocka_unit_test_setup_teardown(permissions_are_those_of_the_file, enter, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
