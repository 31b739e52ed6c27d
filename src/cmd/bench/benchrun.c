#include "cmd/bench/benchrun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"

static void __attribute__((noreturn)) child(int out, int failed, char **argv)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), e;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(127);
	execvp(argv[0], argv);
	e = errno;
	if (fd_write_all(failed, &e, sizeof(e)))
		_exit(126);
	_exit(127);
}

static void keep_tail(struct buf *tail, const char *text, size_t n)
{
	if (tail->n + n > 2 * BENCHRUN_TAIL) {
		size_t keep = MIN(tail->n, (size_t)BENCHRUN_TAIL);

		memmove(tail->data, tail->data + tail->n - keep, keep);
		tail->n = keep;
	}
	if (n > BENCHRUN_TAIL) {
		text += n - BENCHRUN_TAIL;
		n = BENCHRUN_TAIL;
	}
	buf_add(tail, text, n);
}

/* Reads what is in the pipe now. False: there is no writer any more. */
static bool drain(int fd, benchrun_output_fn *output, void *context, struct benchrun_result *ret)
{
	char text[65536];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0) {
		keep_tail(&ret->tail, text, n);
		output(context, text, n);
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Until it ends. A child of its own that it leaves behind may hold the pipe for ever: its own end counts. */
static uint64_t watch(pid_t pid, int fd, benchrun_output_fn *output, void *context,
		      struct benchrun_result *ret)
{
	_cleanup_fd_ int ended = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = ended, .events = POLLIN } };
	uint64_t end = 0;

	while (!end) {
		/* Without pidfd (before 5.3) the end of the output is the end, all but a little. */
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			end = clock_mono_ns();
		if (fds[0].revents && !drain(fd, output, context, ret)) {
			fds[0].fd = -1;
			if (ended < 0)
				break;
		}
	}
	drain(fd, output, context, ret);
	return end;
}

static uint64_t ns(struct timeval t)
{
	return t.tv_sec * 1000000000ULL + t.tv_usec * 1000ULL;
}

static int open_pipes(int out[2], int failed[2], struct err *err)
{
	int e;

	if (pipe2(out, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		e = errno;
		fd_close(&out[0]);
		fd_close(&out[1]);
		return err_errno(err, e, "cannot make a pipe");
	}
	return 0;
}

int benchrun(char **argv, benchrun_output_fn *output, void *context, struct benchrun_result *ret,
	     struct err *err)
{
	int out[2], failed[2], e = open_pipes(out, failed, err), why = 0;
	struct rusage used = { 0 };
	uint64_t start, end;
	pid_t pid;

	*ret = (struct benchrun_result){ 0 };
	if (e)
		return e;
	ret->start_wall_ns = clock_wall_ns();
	start = clock_mono_ns();
	pid = fork();
	if (!pid)
		child(out[1], failed[1], argv);
	e = errno;
	fd_close(&out[1]);
	fd_close(&failed[1]);
	if (pid < 0) {
		fd_close(&out[0]);
		fd_close(&failed[0]);
		return err_errno(err, e, "cannot start another process");
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	end = watch(pid, out[0], output, context, ret);
	while (wait4(pid, &ret->status, 0, &used) < 0 && errno == EINTR)
		;
	ret->wall_ns = (end ? end : clock_mono_ns()) - start;
	if (fd_read_all(failed[0], &why, sizeof(why)) != sizeof(why))
		why = 0;
	fd_close(&out[0]);
	fd_close(&failed[0]);
	ret->user_ns = ns(used.ru_utime);
	ret->system_ns = ns(used.ru_stime);
	ret->minor_faults = used.ru_minflt;
	ret->major_faults = used.ru_majflt;
	ret->voluntary_switches = used.ru_nvcsw;
	ret->involuntary_switches = used.ru_nivcsw;
	ret->peak_rss_bytes = used.ru_maxrss * 1024ULL;
	return why ? err_errno(err, why, "cannot run %s", argv[0]) : 0;
}
