/*
 * mapper.c - a program that maps code as it should not.
 *
 *	mapper files FILE...      maps each file and runs the function at its offset 0x1000, in turns
 *	mapper pages FILE COUNT   maps an executable page of FILE COUNT times; then one more, and takes that
 *	                          away, again and again
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"

enum { PAGE = 4096, CODE = 0x1000 };

static void *map_code(const char *path, off_t offset, void *at)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, offset);

	if (p == MAP_FAILED) {
		fprintf(stderr, "cannot map %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(fd);
	return p;
}

static void run_files(int count, char **paths)
{
	void (**functions)(void) = calloc(count, sizeof(*functions));

	for (int i = 0; i < count; i++)
		functions[i] = (void (*)(void))map_code(paths[i], CODE, NULL);
	say_ready();
	for (;;)
		for (int i = 0; i < count; i++)
			functions[i]();
}

static void map_pages(const char *path, long count)
{
	/* Every second page, so that they stay mappings of their own. */
	char *room = mmap(NULL, (2 * count + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		exit(1);
	for (long i = 0; i < count; i++)
		map_code(path, 0, room + 2 * i * PAGE);
	say_ready();
	for (;;) {
		munmap(map_code(path, 0, NULL), PAGE);
		usleep(100);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "files"))
		run_files(argc - 2, argv + 2);
	if (argc > 3 && !strcmp(argv[1], "pages"))
		map_pages(argv[2], atol(argv[3]));
	fprintf(stderr, "usage: mapper files FILE... | pages FILE COUNT\n");
	return 2;
}
