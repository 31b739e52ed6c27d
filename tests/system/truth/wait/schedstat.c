/*
 * schedstat.c PID [period in ms] - what the kernel says of each thread of a process, over and over until it is
 * killed or the process is gone:
 *
 *	TIME_NS TID RUN_NS QUEUE_NS TIMES_RUN     (CLOCK_REALTIME)
 *
 * so that a test can compute by interpolation what happened between any two moments.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../truth.h"

static void print_thread(int folder, const char *tid)
{
	char path[300], text[128];
	struct timespec now;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/schedstat", tid);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	printf("%lld%09ld %s %s", (long long)now.tv_sec, now.tv_nsec, tid, text);
}

int main(int argc, char **argv)
{
	double period_ms = argument(argc, argv, 2, 20);
	char path[64];
	int shown = 0;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "/proc/%s/task", argv[1]);
	for (;;) {
		DIR *folder = opendir(path);
		struct dirent *d;

		if (!folder)
			return 0;
		while ((d = readdir(folder)))
			if (d->d_name[0] != '.')
				print_thread(dirfd(folder), d->d_name);
		closedir(folder);
		if (!shown++)
			say_ready();
		fflush(stdout);
		usleep((useconds_t)(period_ms * 1000));
	}
}
