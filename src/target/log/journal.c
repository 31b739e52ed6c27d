#include "target/log/journal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"

extern char **environ;

struct journal {
	pid_t pid;
};

static bool is_unit(const char *s)
{
	if (!*s || *s == '-' || strlen(s) > 255)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("@._:-\\", *s))
			return false;
	return true;
}

static int spawn(const char *unit, int out, pid_t *ret)
{
	/* As JSON: a program that writes to the journal itself has its figures in fields of their own. */
	char *argv[] = { "journalctl", "--follow", "--output=json", "--all", "--lines=0", "--unit", (char *)unit, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	int r;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawnattr_init(&how);
	/* In a process group of its own: Ctrl-C reaches only us, and the output until then is read. */
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&how, &none);
	r = posix_spawnp(ret, argv[0], &files, &how, argv, environ);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

int journal_open(const char *unit, struct journal **ret, int *ret_fd, struct err *err)
{
	int pipes[2], r;
	pid_t pid;

	if (!is_unit(unit))
		return err_set(err, EINVAL, "'%.80s' is no name of a unit: --log journal:reth.service", unit);
	if (pipe2(pipes, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	r = spawn(unit, pipes[1], &pid);
	fd_close(&pipes[1]);
	if (r < 0) {
		fd_close(&pipes[0]);
		if (r == -ENOENT)
			return err_set(err, ENOENT, "there is no journalctl here, which reads the journal: --log takes a file, too");
		return err_errno(err, -r, "cannot start journalctl");
	}
	*ret = mem_alloc(sizeof(**ret));
	(*ret)->pid = pid;
	*ret_fd = pipes[0];
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	kill(j->pid, SIGTERM);
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(j);
}
