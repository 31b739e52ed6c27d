/*
 * allsorts.c FOLDER [SECONDS] - two threads that do a bit of everything that a collector looks at: burn, wait for each other, write
 * and read a file in FOLDER, touch fresh pages, allocate and check what they allocated. Ends with 3 when its memory is not what
 * it wrote. Without SECONDS it goes on until it is killed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"

enum { KEPT = 32, PAGES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double end_at;

static NOINLINE void burn_some(void)
{
	uint64_t x = 1;

	for (int i = 0; i < 300000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
}

static NOINLINE void touch_pages(void)
{
	size_t size = PAGES * 4096;
	volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	munmap((void *)p, size);
}

static NOINLINE void move_bytes(int fd)
{
	char data[8192];

	memset(data, 7, sizeof(data));
	if (pwrite(fd, data, sizeof(data), 0) != sizeof(data) || pread(fd, data, sizeof(data), 0) != sizeof(data))
		_exit(4);
	fdatasync(fd);
}

static NOINLINE void allocate_some(unsigned char **kept, unsigned *seed)
{
	for (int n = 0; n < 200; n++) {
		int i = rand_r(seed) % KEPT;
		size_t size = 16 + rand_r(seed) % 4000;

		if (kept[i] && kept[i][0] != (unsigned char)i)
			_exit(3);
		free(kept[i]);
		kept[i] = malloc(size);
		memset(kept[i], i, size);
	}
}

static void *work(void *context)
{
	unsigned char *kept[KEPT] = { 0 };
	unsigned seed = 1;

	while (!end_at || seconds_of(CLOCK_MONOTONIC) < end_at) {
		burn_some();
		touch_pages();
		move_bytes(*(int *)context);
		allocate_some(kept, &seed);
		pthread_mutex_lock(&lock);
		usleep(1000);
		pthread_mutex_unlock(&lock);
		usleep(500);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 2, 0);
	char path[4096];
	pthread_t other;
	int fd;

	snprintf(path, sizeof(path), "%s/allsorts.dat", argc > 1 ? argv[1] : ".");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return 2;
	end_at = seconds ? seconds_of(CLOCK_MONOTONIC) + seconds : 0;
	pthread_create(&other, NULL, work, &fd);
	say_ready();
	work(&fd);
	pthread_join(other, NULL);
	return 0;
}
