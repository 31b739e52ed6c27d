#include "cmd/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

static bool executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *launch_find(const char *program, struct err *err)
{
	const char *path = getenv("PATH");
	_cleanup_free_ char *copy = mem_strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
	char *save = NULL;

	if (strchr(program, '/')) {
		if (executable(program))
			return mem_strdup(program);
		err_set(err, ENOENT, "cannot run %s: %s", program,
			access(program, F_OK) ? "there is no such file" : "it is not an executable file");
		return NULL;
	}
	for (char *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		char *full = mem_printf("%s/%s", dir, program);

		if (executable(full))
			return full;
		free(full);
	}
	err_set(err, ENOENT, "cannot run %s: it is not in PATH (write ./%s for one in this folder)", program, program);
	return NULL;
}

/* In the child: waits at the gate, then becomes the program. */
static void __attribute__((noreturn)) child(int gate, int failed, char **argv)
{
	static const int defaults[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2 };
	char go;
	int e;

	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		signal(defaults[i], SIG_DFL);
	if (fd_read_all(gate, &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	e = errno;
	if (fd_write_all(failed, &e, sizeof(e)))
		_exit(126);
	_exit(127);
}

int launch_start(struct launch *l, char **argv, struct err *err)
{
	int gate[2], failed[2];

	*l = (struct launch){ .pid = -1, .gate = -1, .failed = -1 };
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
		fd_close(&gate[1]);
		fd_close(&failed[0]);
		child(gate[0], failed[1], argv);
	}
	fd_close(&gate[0]);
	fd_close(&failed[1]);
	l->gate = gate[1];
	l->failed = failed[0];
	if (l->pid < 0)
		return err_errno(err, errno, "cannot start another process");
	return 0;
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
	if (l->pid > 0 && !l->ended)
		launch_poll(l);
}
