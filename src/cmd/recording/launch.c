#include "cmd/recording/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "target/hurry.h"

static bool executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As the kernel will show it in /proc/PID/maps: a relative path has no meaning in another folder. */
static char *absolute(const char *path)
{
	char *full = realpath(path, NULL);

	return full ? full : mem_strdup(path);
}

char *launch_find(const char *program, struct err *err)
{
	const char *path = getenv("PATH");
	_cleanup_free_ char *copy = mem_strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
	char *save = NULL;

	if (strchr(program, '/')) {
		if (executable(program))
			return absolute(program);
		err_set(err, ENOENT, "cannot run %s: %s", program,
			access(program, F_OK) ? "there is no such file" : "it is not an executable file");
		return NULL;
	}
	for (char *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		_cleanup_free_ char *full = mem_printf("%s/%s", dir, program);

		if (executable(full))
			return absolute(full);
	}
	err_set(err, ENOENT, "cannot run %s: it is not in PATH (write ./%s for one in this folder)", program, program);
	return NULL;
}

/* In the child: waits at the gate, then becomes the program, or calls call. */
static void __attribute__((noreturn))
child(int gate, int failed, char **argv, int (*call)(void *), void *context)
{
	static const int defaults[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2 };
	char go;
	int e;

	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		signal(defaults[i], SIG_DFL);
	if (fd_read_all(gate, &go, 1) != 1)
		_exit(127);
	if (call) {
		fd_close(&gate);
		fd_close(&failed);
		_exit(call(context));
	}
	/* -e heap stops the program for a moment whenever it executes another one: it must go on if we die
	 * meanwhile. */
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	execvp(argv[0], argv);
	e = errno;
	if (fd_write_all(failed, &e, sizeof(e)))
		_exit(126);
	_exit(127);
}

/* --- its output --- */

enum { COPY = 65536, LAST_WORDS_MS = 500 };

/* Passes on the available output. False: there will be no more. */
static bool copy_once(int from, int to, int *log)
{
	char data[COPY];
	ssize_t n = read(from, data, sizeof(data));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	if (fd_write_all(to, data, n) < 0)
		return false; /* our output has no reader: the program gets SIGPIPE as it would without us */
	/* A reader that does not keep up loses lines, and the program is not held up. */
	if (*log >= 0 && write(*log, data, n) < 0 && errno == EPIPE)
		fd_close(log);
	return true;
}

static void __attribute__((noreturn)) copier(int out, int errors, int log)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2 };
	struct pollfd p[] = { { .fd = out, .events = POLLIN }, { .fd = errors, .events = POLLIN } };

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++)
			if (p[i].fd >= 0 && p[i].revents && !copy_once(p[i].fd, 1 + i, &log))
				fd_close(&p[i].fd);
	}
	_exit(0);
}

/* ends: the program's output and error descriptors. */
static int start_copier(struct launch *l, int ends[2], struct err *err)
{
	int out[2], errors[2], log[2];

	if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC) || pipe2(log, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	fcntl(log[1], F_SETFL, O_NONBLOCK);
	fcntl(log[1], F_SETPIPE_SZ, 1 << 20);
	l->copier = fork();
	if (l->copier < 0)
		return err_errno(err, errno, "cannot start another process");
	if (!l->copier) {
		fd_close(&out[1]);
		fd_close(&errors[1]);
		fd_close(&log[0]);
		copier(out[0], errors[0], log[1]);
	}
	fd_close(&out[0]);
	fd_close(&errors[0]);
	fd_close(&log[1]);
	ends[0] = out[1];
	ends[1] = errors[1];
	l->output = log[0];
	return 0;
}

static void wait_for_copier(struct launch *l)
{
	for (int i = 0; l->copier > 0 && i < LAST_WORDS_MS; i++) {
		if (waitpid(l->copier, NULL, WNOHANG))
			l->copier = -1;
		else
			poll(NULL, 0, 1);
	}
}

static int start(struct launch *l, char **argv, bool listen, int (*call)(void *), void *context, struct err *err)
{
	int gate[2], failed[2], ends[2] = { -1, -1 }, r;

	*l = (struct launch){ .pid = -1, .gate = -1, .failed = -1, .output = -1, .copier = -1 };
	r = listen ? start_copier(l, ends, err) : 0;
	if (r < 0)
		return r;
	if (pipe2(gate, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		int e = errno;

		fd_close(&gate[0]);
		fd_close(&gate[1]);
		return err_errno(err, e, "cannot make a pipe");
	}
	l->pid = fork();
	if (!l->pid) {
		hurry_leave();
		fd_close(&gate[1]);
		fd_close(&failed[0]);
		if (listen && (dup2(ends[0], 1) < 0 || dup2(ends[1], 2) < 0))
			_exit(127);
		child(gate[0], failed[1], argv, call, context);
	}
	fd_close(&gate[0]);
	fd_close(&failed[1]);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	l->gate = gate[1];
	l->failed = failed[0];
	if (l->pid < 0)
		return err_errno(err, errno, "cannot start another process");
	hurry_spare(l->pid);
	return 0;
}

int launch_start(struct launch *l, char **argv, bool listen, struct err *err)
{
	return start(l, argv, listen, NULL, NULL, err);
}

int launch_start_call(struct launch *l, int (*call)(void *context), void *context, struct err *err)
{
	return start(l, NULL, false, call, context, err);
}

int launch_go(struct launch *l, struct err *err)
{
	int e = 0, r = fd_write_all(l->gate, "g", 1);

	fd_close(&l->gate);
	if (r < 0)
		return err_errno(err, -r, "the program to run has died");
	if (fd_read_all(l->failed, &e, sizeof(e)) == sizeof(e))
		return err_errno(err, e, "cannot run the program");
	return 0;
}

bool launch_poll(struct launch *l)
{
	if (!l->ended && l->pid > 0 && waitpid(l->pid, &l->status, WNOHANG) == l->pid)
		l->ended = true;
	return l->ended;
}

void launch_wait(struct launch *l)
{
	while (!l->ended && l->pid > 0) {
		if (waitpid(l->pid, &l->status, 0) == l->pid)
			l->ended = true;
		else if (errno != EINTR)
			break;
	}
	wait_for_copier(l);
}

int launch_exit_code(const struct launch *l)
{
	if (!l->ended)
		return 0;
	return WIFSIGNALED(l->status) ? 128 + WTERMSIG(l->status) : WEXITSTATUS(l->status);
}

void launch_done(struct launch *l)
{
	fd_close(&l->gate); /* a child still at the gate gives up */
	fd_close(&l->failed);
	fd_close(&l->output);
	if (l->pid > 0 && !l->ended)
		launch_poll(l);
}
