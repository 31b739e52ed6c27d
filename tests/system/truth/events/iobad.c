/*
 * iobad.c [files] - what a recorder can stumble over: a call that is under way when the recording
 * begins, a descriptor that becomes another file while a call is in it, ten thousand open files,
 * threads and processes that end within a call. Says what was moved.
 */
#include "../truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int early[2], swapped[2];

static NOINLINE void *early_reader(void *unused)
{
	char c[100];

	if (read(early[0], c, sizeof(c)) != 77)
		_exit(1);
	return unused;
}

static NOINLINE void *swapped_reader(void *unused)
{
	char c[100];

	if (read(swapped[0], c, sizeof(c)) != 55)
		_exit(1);
	return unused;
}

/* The reader's descriptor becomes another file while it waits. */
static NOINLINE void swap_file(void)
{
	char c[100] = { 0 };
	pthread_t t;

	if (pipe(swapped))
		_exit(1);
	pthread_create(&t, NULL, swapped_reader, NULL);
	usleep(50000);
	dup2(open("/dev/null", O_RDWR), swapped[0]);
	if (write(swapped[1], c, 55) != 55)
		_exit(1);
	pthread_join(t, NULL);
}

static NOINLINE void killed_reader(void)
{
	int fds[2];
	char c;
	pid_t child;

	if (pipe(fds))
		_exit(1);
	child = fork();
	if (!child)
		_exit(read(fds[0], &c, 1) == 1);
	usleep(30000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

static NOINLINE long write_many(int count)
{
	struct rlimit limit;
	long made = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < count; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "many-%d", i);
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		made += fd >= 0 && write(fd, name, 10) == 10;
	}
	return made;
}

int main(int argc, char **argv)
{
	int count = argument(argc, argv, 1, 10000);
	char c[100] = { 0 };
	pthread_t t;

	if (pipe(early))
		return 1;
	pthread_create(&t, NULL, early_reader, NULL);
	usleep(100000);
	say_ready();
	sleep(2); /* the recording begins */
	if (write(early[1], c, 77) != 77)
		return 1;
	pthread_join(t, NULL);
	swap_file();
	for (int i = 0; i < 20; i++)
		killed_reader();
	printf("many %ld\n", write_many(count));
	fflush(stdout);
	sleep(1);
	return 0;
}
