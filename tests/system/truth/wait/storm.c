/*
 * storm.c threads N [seconds] - N threads that wait, and are woken in turn: ring_wait().
 * storm.c naps N [seconds]    - N threads that sleep 20 ms at a time: nap_often(). With 10,000 of them half a million waits a second.
 * storm.c forks N [seconds]   - N children a second, each of which naps a millisecond and goes: child_nap().
 * storm.c exit [seconds]      - ends in the middle of a wait, with another thread in one too: endless_wait().
 *
 * At the end each says how many of them there were: "threads N", "children N", nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static sem_t *ring; /* thread i waits for ring[i] */
static volatile uint64_t sink;

static void nap_ms(double ms)
{
	nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000 }, NULL);
}

static NOINLINE void ring_wait(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
	sink++;
}

static void *ring_run(void *arg)
{
	for (;;)
		ring_wait(arg);
	return NULL;
}

static int make_threads(int wanted)
{
	pthread_attr_t small;
	int n = 0;

	ring = calloc((size_t)wanted, sizeof(*ring));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	pthread_attr_setguardsize(&small, 0); /* half as many mappings: there is a limit */
	for (pthread_t thread; n < wanted; n++)
		if (sem_init(&ring[n], 0, 0) || pthread_create(&thread, &small, ring_run, &ring[n]))
			break;
	return n;
}

static void storm_threads(int wanted, double seconds)
{
	int n = make_threads(wanted);

	printf("threads %d\n", n);
	say_ready();
	double end = seconds_of(CLOCK_MONOTONIC) + seconds;
	/* One after the other, so that within a recording some never run. */
	for (int i = 0; seconds_of(CLOCK_MONOTONIC) < end; i = (i + 7) % n) {
		sem_post(&ring[i]);
		if (i % 10 == 0)
			nap_ms(1);
	}
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held until all are there: else the last ones wait long to be made */

static NOINLINE void *nap_often(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	for (;;)
		nap_ms(20);
	return arg;
}

static void storm_naps(int wanted, double seconds)
{
	pthread_attr_t small;
	pthread_t id;
	int n = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_mutex_lock(&gate);
	while (n < wanted && !pthread_create(&id, &small, nap_often, NULL))
		n++;
	say_ready();
	pthread_mutex_unlock(&gate);
	nap_ms(seconds * 1000);
	printf("threads %d\n", n);
}

static NOINLINE void child_nap(void)
{
	nap_ms(1);
	_exit(0);
}

static void storm_forks(int rate, double seconds)
{
	double end = seconds_of(CLOCK_MONOTONIC) + seconds;
	int children = 0;

	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		pid_t child = fork();
		if (!child)
			child_nap();
		if (child > 0) {
			children++;
			printf("child %d %lld%09ld\n", child, (long long)now.tv_sec, now.tv_nsec);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nap_ms(1000.0 / rate);
	}
	while (wait(NULL) > 0)
		;
	printf("children %d\n", children);
}

static NOINLINE void *endless_wait(void *arg)
{
	pause();
	return arg;
}

static NOINLINE void last_wait(double seconds)
{
	nap_ms(seconds * 1000);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (!strcmp(what, "threads")) {
		storm_threads((int)argument(argc, argv, 2, 10000), argument(argc, argv, 3, 5));
	} else if (!strcmp(what, "naps")) {
		storm_naps((int)argument(argc, argv, 2, 10000), argument(argc, argv, 3, 5));
	} else if (!strcmp(what, "forks")) {
		storm_forks((int)argument(argc, argv, 2, 500), argument(argc, argv, 3, 5));
	} else if (!strcmp(what, "exit")) {
		if (pthread_create(&thread, NULL, endless_wait, NULL))
			return 1;
		say_ready();
		last_wait(argument(argc, argv, 2, 2));
	} else {
		return 2;
	}
	fflush(stdout);
	_exit(0);
}
