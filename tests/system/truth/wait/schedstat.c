/*
 * schedstat.c PID [period in ms] - what the kernel says of each thread of a process, over and over until it is
 * killed or the process is gone:
 *
 *	BEFORE_NS AFTER_NS TID RUN_NS QUEUE_NS TIMES_RUN     (CLOCK_REALTIME)
 *
 * The counts only grow, and were read between the two times, so that a test knows within which bounds they were at any
 * moment: this program may have to wait for a CPU itself.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../truth.h"

static void print_thread(int folder, const char *tid)
{
	char path[300], text[128];
	struct timespec before, after;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/schedstat", tid);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &before);
	n = read(fd, text, sizeof(text) - 1);
	clock_gettime(CLOCK_REALTIME, &after);
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	printf("%lld%09ld %lld%09ld %s %s", (long long)before.tv_sec, before.tv_nsec, (long long)after.tv_sec, after.tv_nsec, tid, text);
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
