#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "target/host.h"
#include "target/processnames.h"
#include "target/open.h"
#include "target/resolve.h"
#include "child.h"
#include "folder.h"
#include "putfile.h"

/* Runs a program with PDEATHSIG; the pid, after its exec. */
static pid_t start(char *const *argv)
{
	int started[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], argv);
		_exit(127);
	}
	close(started[1]);
	assert_int_equal(read(started[0], &c, 1), 0); /* exec closed it */
	close(started[0]);
	return pid;
}

/* A copy of sleep under another name. */
static char *make_sleeper(const char *name)
{
	char *path = in_folder(name), *data;
	_cleanup_fd_ int fd = -1;
	size_t n;

	assert_int_equal(fd_read_path("/bin/sleep", 64 << 20, &data, &n), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
	free(data);
	return path;
}

/* --- resolve --- */

static void expect_only(const char *name, pid_t pid)
{
	struct err err = { 0 };
	struct proc_ids ids;

	if (target_resolve(name, &ids, &err))
		fail_msg("%s: %s", name, err.text);
	assert_int_equal(ids.list.n, 1);
	assert_int_equal(ids.list.v[0], pid);
	vec_done(&ids.list);
}

static void expect_none(const char *name, int code, const char *text)
{
	struct err err = { 0 };
	struct proc_ids ids;

	assert_int_equal(target_resolve(name, &ids, &err), -code);
	if (!strstr(err.text, text))
		fail_msg("%s: \"%s\" has no \"%s\"", name, err.text, text);
}

static void names_become_processes(void **state)
{
	_cleanup_free_ char *name = mem_printf("gf%d-sleeper-of-a-long-name", getpid()),
			    *path = make_sleeper(name);
	_cleanup_free_ char *kept = mem_strndup(name, 15),
			    *wrong = mem_printf("%.*se", (int)strlen(name) - 2, name);
	char *argv[] = { path, "61.75", NULL };
	pid_t pid = start(argv);
	_cleanup_free_ char *number = mem_printf("%d", pid), *label = NULL, *other = NULL;
	_cleanup_free_ char *pattern = mem_printf("f%d-.*long-name 61[.]7(5|6)$", getpid());
	struct target_found f = { .kind = TARGET_NAME };

	expect_only(number, pid);
	expect_only(name, pid);
	expect_only(kept, pid); /* what the kernel kept of it */
	expect_only(pattern, pid);
	expect_none(wrong, ESRCH, name);
	expect_none("gf-no-such-process-at-all", ESRCH, "process is named");
	expect_none("gf-sleeper[", EINVAL, "nor a pattern");
	expect_none("", EINVAL, "empty");
	vec_push(&f.pids.list, pid);
	label = target_label(number, &f);
	assert_string_equal(label, name);
	other = target_label("long-name 61", &f);
	assert_string_equal(other, name);
	vec_done(&f.pids.list);
	child_end(pid);
	expect_none(number, ESRCH, "there is no process");
}

static void several_and_scripts(void **state)
{
	_cleanup_free_ char *name = mem_printf("gf%d-twin", getpid()), *path = make_sleeper(name);
	_cleanup_free_ char *script_name = mem_printf("gf%d-script.sh", getpid()),
			    *script = in_folder(script_name);
	char *argv[] = { path, "62", NULL }, *sh[] = { "/bin/sh", script, "--flag", NULL };
	pid_t one = start(argv), two = start(argv), three;
	struct err err = { 0 };
	struct proc_ids ids;

	assert_int_equal(target_resolve(name, &ids, &err), 0);
	assert_int_equal(ids.list.n, 2);
	vec_done(&ids.list);
	/* It stays without a child, which would go by the same name until its exec. */
	put_bytes(script, "kill -STOP $$\n", strlen("kill -STOP $$\n"), 0644);
	three = start(sh);
	expect_only(script_name, three);
	child_end(one);
	child_end(two);
	child_end(three);
}

/* `su postgres` and sh -c 'postgres ...' are not postgres, also where nothing else has that word. */
static void an_argument_is_no_name(void **state)
{
	_cleanup_free_ char *word = mem_printf("gf%d-argument", getpid()), *forced = mem_printf("cmd:%s", word),
			    *carrier = NULL, *path = NULL;
	char *sh[] = { "/bin/sh", "-c", "kill -STOP $$", word, NULL };
	pid_t shell = start(sh), named;

	carrier = mem_printf("process %d (su, sudo or sh -c) only has it as an argument: cmd:", shell);
	expect_none(word, ESRCH, carrier);
	expect_only(forced, shell);
	path = make_sleeper(word);
	named = start((char *[]){ path, "63", NULL });
	expect_only(word, named);
	child_end(named);
	child_end(shell);
}

static void scripts_of_interpreters(void **state)
{
	static const struct {
		const char *program, *command, *script;
		bool code;
	} cases[] = {
		{ "bash", "bash /opt/node.sh --dev", "node.sh" },
		{ "bash", "-bash", "" },
		{ "bash", "bash -c postgres -D /data", "", true },
		{ "dash", "sh -ec postgres", "", true },
		{ "python3.12", "python3 -u -Xtracemalloc tools/load.py 5", "load.py" },
		{ "python3.12", "python3 -m http.server", "http.server" },
		{ "perl", "perl -e sleep", "", true },
		{ "java", "java -Xmx4g -jar besu.jar", "besu.jar" },
		{ "su", "su postgres", "" },
		{ "sudo", "sudo -u postgres psql", "" },
		{ "tail", "tail -f postgres", "" },
		{ "reth", "reth node", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool code;
		_cleanup_free_ char *script = processnames_script(cases[i].program, cases[i].command, &code);

		assert_string_equal(script, cases[i].script);
		assert_int_equal(code, cases[i].code);
	}
}

static void what_was_found_is_said(void **state)
{
	_cleanup_free_ char *name = mem_printf("gf%d-found", getpid()), *path = make_sleeper(name),
			    *wanted = NULL, *pattern = mem_printf("%s 6[4]", name);
	char *argv[] = { path, "64", NULL };
	pid_t one = start(argv), two = start(argv);
	struct err err = { 0 };
	struct target_found f;
	struct buf b = { 0 };

	assert_int_equal(target_find(name, &f, &err), 0);
	target_describe(name, &f, &b);
	wanted = mem_printf("2 processes named %s: %d, %d", name, MIN(one, two), MAX(one, two));
	assert_string_equal(b.data, wanted);
	target_found_done(&f);
	child_end(two);
	b.n = 0;
	assert_int_equal(target_find(pattern, &f, &err), 0);
	target_describe(pattern, &f, &b);
	free(wanted);
	wanted = mem_printf("1 process with %s in its command line: %d (%.15s)", pattern, one, name);
	assert_string_equal(b.data, wanted);
	target_found_done(&f);
	buf_done(&b);
	child_end(one);
}

static void not_ourselves(void **state)
{
	_cleanup_free_ char *number = mem_printf("%d", getpid()), *name = mem_printf("gf%d-me", getpid());
	struct proc_stat stat;
	int status;
	pid_t child;

	/* Our own name, and our parent's. */
	prctl(PR_SET_NAME, name);
	expect_none(name, ESRCH, "process is named");
	child = fork();
	if (!child) {
		prctl(PR_SET_NAME, "gf-other");
		expect_none(name, ESRCH, "process is named");
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(proc_stat(getpid(), &stat), 0);
	assert_string_equal(stat.name, name);
	expect_none(number, EINVAL, "gasflame itself");
	expect_none("99999999999", EINVAL, "is not the number");
	expect_none("2147483646", ESRCH, "there is no process");
}

static void labels_are_file_names(void **state)
{
	static const char *const cases[][2] = {
		{ "reth", "reth" }, { "op-reth_2.0", "op-reth_2.0" }, { "/usr/bin/reth", "reth" },
		{ "../../etc/passwd", "passwd" }, { "reth .*--chain", "reth-.-chain" }, { "..", "process" },
		{ "4242", "process" }, { "a/ b", "a-b" }, { "-rf", "rf" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *label = target_label(cases[i][0], NULL);

		assert_string_equal(label, cases[i][1]);
		assert_null(strchr(label, '/'));
	}
}

static void *ask_by_tid(void *ret)
{
	_cleanup_free_ char *number = mem_printf("%d", (int)syscall(SYS_gettid));
	struct err err = { 0 };
	struct proc_ids ids;

	*(int *)ret = target_resolve(number, &ids, &err);
	return NULL;
}

/* A thread's number stands for its process: here that is ourselves, which is refused. */
static void thread_numbers(void **state)
{
	pthread_t thread;
	int r = 0;

	assert_int_equal(pthread_create(&thread, NULL, ask_by_tid, &r), 0);
	pthread_join(thread, NULL);
	assert_int_equal(r, -EINVAL);
}

/* --- open --- */

struct mapper {
	const char *file, *root;
	uid_t uid;
};

static int map_file(void *context)
{
	struct mapper *m = context;
	int fd = m->file ? open(m->file, O_RDONLY) : -1;

	if (fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return -1;
	if (m->root && (unshare(CLONE_NEWNS) || chroot(m->root) || chdir("/")))
		return -1;
	if (m->uid && (setgroups(0, NULL) || setresgid(m->uid, m->uid, m->uid) || setresuid(m->uid, m->uid, m->uid)))
		return -1;
	prctl(PR_SET_DUMPABLE, 1);
	return prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's have it no more */
}

/* A child that maps a file as code, and waits; its root folder may be another. */
static pid_t start_mapper(const char *file, const char *root, uid_t uid)
{
	return child_start(map_file, &(struct mapper){ file, root, uid });
}

/* Waits for the mapping: execve() closes descriptors, for which start() waits, before it maps the program. */
static struct proc_mapping find_mapping(pid_t pid, const char *part)
{
	struct proc_mapping found = { 0 };
	uint64_t deadline_ns = clock_mono_ns() + 30000000000ULL;
	struct proc_maps maps;

	while (!found.path) {
		assert_true(clock_mono_ns() < deadline_ns);
		assert_int_equal(proc_maps_read(pid, true, &maps), 0);
		for (size_t i = 0; i < maps.list.n && !found.path; i++)
			if (strstr(maps.list.v[i].path, part)) {
				found = maps.list.v[i];
				found.path = mem_strdup(found.path);
			}
		proc_maps_done(&maps);
	}
	return found;
}

static void expect_content(int fd, const char *text)
{
	_cleanup_free_ char *data = NULL;

	assert_int_equal(fd_read_file(fd, 1 << 20, &data, NULL), 0);
	assert_string_equal(data, text);
}

/* Kept by the child: the text it should find, or the error; 0 if so. */
static int open_as(uid_t uid, pid_t pid, const struct proc_mapping *m, const char *text)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct err err = { 0 };
		char got[64] = "";
		int fd, r;

		if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(100);
		prctl(PR_SET_DUMPABLE, 1);
		r = target_open_mapping(pid, m, &fd, &err);
		if (r)
			_exit(-r);
		_exit(!text || (read(fd, got, sizeof(got) - 1) > 0 && !strcmp(got, text)) ? 0 : 101);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void mapped_files(void **state)
{
	_cleanup_free_ char *path = in_folder("gf lib.so");
	struct err err = { 0 };
	struct proc_mapping m;
	uid_t uid = geteuid() ? 0 : 65534;
	int fd = -1;
	pid_t pid;

	put_bytes(path, "first", strlen("first"), 0644);
	pid = start_mapper(path, NULL, uid);
	m = find_mapping(pid, "gf lib.so");
	assert_int_equal(target_open_mapping(pid, &m, &fd, &err), 0);
	expect_content(fd, "first");
	fd_close(&fd);
	if (geteuid())
		goto out;
	/* The same user without capabilities: by name, as long as the file is the mapped one. */
	assert_int_equal(open_as(uid, pid, &m, "first"), 0);
	assert_int_equal(open_as(uid + 1, pid, &m, "first"), EACCES);
	unlink(path);
	put_bytes(path, "second", strlen("second"), 0644);
	free(m.path);
	m = find_mapping(pid, "gf lib.so");
	assert_string_equal(m.path + strlen(m.path) - 10, " (deleted)");
	assert_int_equal(open_as(uid, pid, &m, "second"), ESTALE);
	/* With capabilities the very file that is mapped, though its name is another's now. */
	if (!target_open_mapping(pid, &m, &fd, &err)) {
		expect_content(fd, "first");
		fd_close(&fd);
	} else {
		struct host host;

		host_probe(&host);
		assert_false(host_capable(&host, CAP_SYS_ADMIN));
	}
out:
	free(m.path);
	child_end(pid);
}

/* The program itself, deleted: exe leads to it without any capability. */
static void deleted_program(void **state)
{
	_cleanup_free_ char *path = make_sleeper("gf-deleted");
	char *argv[] = { path, "64", NULL };
	pid_t pid = start(argv);
	struct proc_mapping m;
	struct err err = { 0 };
	int fd = -1;

	unlink(path);
	m = find_mapping(pid, "gf-deleted");
	m.start += 4096; /* not a name in map_files */
	assert_int_equal(target_open_mapping(pid, &m, &fd, &err), 0);
	fd_close(&fd);
	free(m.path);
	child_end(pid);
}

static void expect_refused(pid_t pid, const char *path, int code)
{
	uint64_t start_ns = clock_mono_ns();
	struct err err = { 0 };
	int fd = -1;

	assert_int_equal(target_open_path(pid, path, &fd, &err), -code);
	assert_int_equal(fd, -1);
	assert_true(*err.text);
	assert_true(clock_mono_ns() - start_ns < 20000000000); /* A FIFO would block for ever. */
}

static char *make_hostile_root(void)
{
	char *root = in_folder("root");
	_cleanup_free_ char *secret = in_folder("secret"), *lib = in_folder("root/lib"),
			    *x = in_folder("root/lib/x.so"), *real = in_folder("root/lib/real.so"),
			    *in = in_folder("root/lib/inner.so"), *up = in_folder("root/lib/up.so"),
			    *fifo = in_folder("root/lib/fifo.so"), *dev = in_folder("root/lib/dev.so"),
			    *loop = in_folder("root/lib/loop.so"), *away = in_folder("root/away");

	put_bytes(secret, "secret", strlen("secret"), 0644);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(mkdir(lib, 0755), 0);
	put_bytes(real, "real", strlen("real"), 0644);
	assert_int_equal(symlink(secret, x), 0);
	assert_int_equal(symlink("/lib/real.so", in), 0);
	assert_int_equal(symlink("../../secret", up), 0);
	assert_int_equal(symlink("loop.so", loop), 0);
	assert_int_equal(symlink(folder, away), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(mknod(dev, S_IFCHR | 0644, makedev(1, 5)), 0);
	return root;
}

static void expect_path(pid_t pid, const char *path, const char *text)
{
	struct err err = { 0 };
	int fd = -1;

	if (target_open_path(pid, path, &fd, &err))
		fail_msg("%s", err.text);
	expect_content(fd, text);
	close(fd);
}

/* openat2 fails in this process from now on, as on a kernel that has none. */
static void forbid_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void hostile_roots(void **state)
{
	_cleanup_free_ char *root = NULL;
	int status;
	pid_t pid, child;

	if (geteuid()) {
		print_message("skipped: a process with another root folder needs root\n");
		skip();
	}
	root = make_hostile_root();
	pid = start_mapper(NULL, root, 0);
	expect_path(pid, "/lib/real.so", "real");
	expect_path(pid, "/lib/inner.so", "real"); /* absolute, in its own root */
	expect_path(pid, "/../../lib/real.so", "real");
	expect_refused(pid, "/lib/x.so", ENOENT);
	expect_refused(pid, "/lib/up.so", ENOENT);
	expect_refused(pid, "/away/secret", ENOENT);
	expect_refused(pid, "/lib/loop.so", ELOOP);
	expect_refused(pid, "/lib/fifo.so", EINVAL);
	expect_refused(pid, "/lib/dev.so", EINVAL);
	expect_refused(pid, "/lib", EINVAL);
	/* A kernel without openat2: no symbolic link at all, the rest alike. */
	child = fork();
	if (!child) {
		forbid_openat2();
		expect_path(pid, "/lib/real.so", "real");
		expect_refused(pid, "/lib/x.so", ELOOP);
		expect_refused(pid, "/lib/inner.so", ELOOP);
		expect_refused(pid, "/away/secret", ELOOP);
		expect_refused(pid, "/lib/../../secret", ELOOP);
		expect_refused(pid, "/lib/fifo.so", EINVAL);
		expect_refused(pid, "/lib/dev.so", EINVAL);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	child_end(pid);
	expect_refused(pid, "/lib/real.so", ESRCH);
}

static void host_files(void **state)
{
	_cleanup_free_ char *file = in_folder("plain"), *link = in_folder("link"), *fifo = in_folder("fifo");
	struct err err = { 0 };
	int fd = -1;

	put_bytes(file, "text", strlen("text"), 0644);
	assert_int_equal(symlink("plain", link), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(target_open_host(link, &fd, &err), 0);
	expect_content(fd, "text");
	fd_close(&fd);
	assert_int_equal(target_open_host(fifo, &fd, &err), -EINVAL);
	assert_int_equal(target_open_host("/dev/null", &fd, &err), -EINVAL);
	assert_int_equal(target_open_host(folder, &fd, &err), -EINVAL);
	assert_int_equal(target_open_host("/no/such/file", &fd, &err), -ENOENT);
	assert_int_equal(fd, -1);
}

static void the_host(void **state)
{
	struct host h;

	host_probe(&h);
	assert_true(h.major >= 3);
	assert_true(h.cpus >= 1);
	assert_true(*h.release && *h.machine);
	assert_in_range(h.paranoid + 2, 0, 16);
	assert_true(h.can_bpf == (!h.bpf_error && !h.bpf_attach_error));
	assert_false(host_capable(&h, 64));
	assert_false(host_capable(&h, -1));
}

/* For other users, too. */
static int make_open_folder(void **state)
{
	return make_folder(state) || chmod(folder, 0755) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_processes),
		cmocka_unit_test(several_and_scripts),
		cmocka_unit_test(an_argument_is_no_name),
		cmocka_unit_test(scripts_of_interpreters),
		cmocka_unit_test(what_was_found_is_said),
		cmocka_unit_test(not_ourselves),
		cmocka_unit_test(labels_are_file_names),
		cmocka_unit_test(thread_numbers),
		cmocka_unit_test(mapped_files),
		cmocka_unit_test(deleted_program),
		cmocka_unit_test(hostile_roots),
		cmocka_unit_test(host_files),
		cmocka_unit_test(the_host),
	};

	return cmocka_run_group_tests(tests, make_open_folder, remove_folder);
}
