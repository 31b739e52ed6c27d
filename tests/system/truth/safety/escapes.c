/*
 * escapes.c - a program whose names steer a terminal: of its thread, the file that it reads (argv[1]), and, once the test
 * has renamed it, the function that it burns its time in. It also allocates, faults and waits.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../truth.h"

NOINLINE uint64_t escape_burn(void);

NOINLINE uint64_t escape_burn(void)
{
	return spin(2000003);
}

static void read_file(const char *path)
{
	char data[4096];
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *mapped;

	if (fd < 0 || ftruncate(fd, 1 << 20))
		_exit(2);
	mapped = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	for (int i = 0; i < 256 && mapped != MAP_FAILED; i++)
		*(volatile char *)(mapped + i * 4096L);
	if (mapped != MAP_FAILED)
		munmap(mapped, 1 << 20);
	if (pread(fd, data, sizeof(data), 0) < 0 || pwrite(fd, data, sizeof(data), 0) < 0)
		_exit(3);
	close(fd);
}

static void *work(void *path)
{
	prctl(PR_SET_NAME, "t\033[2J\302\233\x9b\nFAKE");
	for (;;) {
		void *volatile object = malloc(1 << 16);

		escape_burn();
		read_file(path);
		free(object);
		usleep(2000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 1;
	prctl(PR_SET_NAME, "m\033]0;x\007\302\233\nFAKE");
	pthread_create(&thread, NULL, work, argv[1]);
	say_ready();
	pthread_join(thread, NULL);
	return 0;
}
