/*
 * boxed.c [threads [seconds [status]]] - threads that burn in boxed_burn() <- boxed_work(), named box-0, box-1, ...; after that
 * time it ends with that status. Static, as it is the only file of a container's image. 0 threads: it only sleeps.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void boxed_burn(void)
{
	sink += spin(20011);
}

static NOINLINE void boxed_work(void)
{
	for (;;) {
		boxed_burn();
		sink++;
	}
}

static void *run(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "box-%d", (int)(intptr_t)arg);
	prctl(PR_SET_NAME, name);
	boxed_work();
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 2, 60);
	int n = (int)argument(argc, argv, 1, 1);
	pthread_t thread;

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, run, (void *)(intptr_t)i))
			return 1;
	say_ready();
	nanosleep(&(struct timespec){ (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) }, NULL);
	_exit((int)argument(argc, argv, 3, 0));
}
