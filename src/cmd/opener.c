#include "cmd/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/recording/output.h"
#include "sandbox/owner.h"

static struct {
	pid_t pid;
	int fd; /* the command writes a path to it */
} opener = { .fd = -1 };

/* How the process that becomes xdg-open ends when it does not get so far. */
enum { OPEN_NO_PROGRAM = 127, OPEN_NO_USER = 126, OPEN_NO_PAGE = 125, OPEN_NO_DISPLAY = 124 };

/* --- the process that becomes xdg-open --- */

static void be_user_of_session(const struct owner_choice *user)
{
	_cleanup_free_ char *runtime = mem_printf("/run/user/%u", (unsigned)user->uid),
			    *wayland = mem_printf("%s/wayland-0", runtime);
	struct stat st;

	/* In a container that does not allow it owner_become() leaves us as we are. */
	if (owner_become(user, NULL) || geteuid() != user->uid || getuid() != user->uid)
		_exit(OPEN_NO_USER);
	setenv("USER", user->name, 1);
	setenv("LOGNAME", user->name, 1);
	/* sudo keeps DISPLAY, but neither of these. */
	if (lstat(runtime, &st) || !S_ISDIR(st.st_mode) || st.st_uid != user->uid)
		return;
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	if (!getenv("WAYLAND_DISPLAY") && !access(wayland, F_OK))
		setenv("WAYLAND_DISPLAY", "wayland-0", 1);
}

static void __attribute__((noreturn)) become_browser(const char *page, const struct owner_choice *user)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, 0);
	signal(SIGINT, SIG_DFL);
	if (user)
		be_user_of_session(user);
	if (access(page, R_OK))
		_exit(OPEN_NO_PAGE);
	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY") && !getenv("BROWSER"))
		_exit(OPEN_NO_DISPLAY);
	/* The browser outlives us and the terminal. */
	setsid();
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	execlp("xdg-open", "xdg-open", page, (char *)NULL);
	_exit(OPEN_NO_PROGRAM);
}

/* --- the helper --- */

/* Returns the exit code of the opener; 0 if it still runs: then it is the browser itself, which is not
 * waited for. */
static int watch(pid_t pid)
{
	enum { WATCH_MS = 1500, STEP_MS = 20 };

	for (int ms = 0; ms < WATCH_MS; ms += STEP_MS) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		poll(NULL, 0, STEP_MS);
	}
	return 0;
}

static void tell_end(int code, const char *page)
{
	if (code == OPEN_NO_PROGRAM)
		log_warn("there is no xdg-open here: open %s in a browser", page);
	else if (code == OPEN_NO_USER)
		log_warn("cannot become the user behind sudo, and no browser is started as root: open %s yourself", page);
	else if (code == OPEN_NO_PAGE)
		log_warn("the user behind sudo cannot read %s: copy it to where a browser can", page);
	else if (code == OPEN_NO_DISPLAY)
		log_warn("there is no display here: open %s in a browser, or see it from another machine with `gasflame serve`",
			 page);
	else if (code)
		log_warn("xdg-open failed with status %d: open %s in a browser", code, page);
}

static void show_page(const char *page)
{
	struct owner behind_sudo = output_owner();
	struct owner_choice user = { 0 };
	_cleanup_free_ char *full = realpath(page, NULL);
	pid_t pid;

	if (!full)
		return; /* the command has said why */
	if (!geteuid() && (!behind_sudo.given || owner_find_user(&user, behind_sudo.uid))) {
		log_warn("no browser is started as root: open %s as yourself, or use sudo from your own session", full);
	} else {
		pid = fork();
		if (!pid)
			become_browser(full, geteuid() ? NULL : &user);
		tell_end(pid < 0 ? 1 : watch(pid), full);
	}
	owner_done(&user);
}

/* The page is made by a process of its own, which gives up its rights as any other report does. */
static void report_capture(const char *capture)
{
	signal(SIGINT, SIG_DFL);
	execl("/proc/self/exe", "gasflame", log_is_quiet() ? "-q" : "report", log_is_quiet() ? "report" : "--open",
	      "--open", "--", capture, (char *)NULL);
	log_warn("cannot make the page: %m; `gasflame report %s` does", capture);
}

static void __attribute__((noreturn)) be_helper(const char *page, int fd)
{
	char path[PIPE_BUF + 1];
	ssize_t n;

	/* The end of the pipe would not tell: other children of the command have it open, too. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* Ctrl-C ends a recording, which is shown then */
	do
		n = read(fd, path, sizeof(path) - 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		_exit(0);
	path[n] = 0;
	if (page)
		show_page(page);
	else
		report_capture(path);
	_exit(0);
}

/* --- the command --- */

int opener_start(const char *page, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	fflush(NULL);
	opener.pid = fork();
	if (!opener.pid) {
		close(ends[1]);
		be_helper(page, ends[0]);
	}
	close(ends[0]);
	if (opener.pid < 0) {
		close(ends[1]);
		return err_errno(err, errno, "cannot start another process");
	}
	opener.fd = ends[1];
	return 0;
}

void opener_show(const char *path)
{
	if (opener.fd < 0)
		return;
	fflush(stdout);
	/* In one piece: a path is no longer than what a pipe takes at once. */
	if (strlen(path) > PIPE_BUF || fd_write_all(opener.fd, path, strlen(path))) {
		log_warn("cannot reach the helper that opens pages: open %s by hand", path);
		kill(opener.pid, SIGKILL);
	}
	fd_close(&opener.fd);
	while (waitpid(opener.pid, NULL, 0) < 0 && errno == EINTR)
		;
}
