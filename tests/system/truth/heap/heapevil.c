/*
 * heapevil.c MODE [ARGUMENT] - processes that want whoever puts hooks into them to do harm.
 *
 *	swap FILE    opens the file for reading, and puts it in the place of each descriptor that it has not made itself
 *	path DIR     has DIR/memfd:gasflame-heap mapped, so that it is called /memfd:gasflame-heap, as our memory is
 *	short        has a memfd of our name mapped as ours is, but of one page
 *	loop         makes code that is not its own, and is new, an endless loop
 *	scribble     waits until it has hooks, forks a child that gives up its rights and fills all memory of ours that it
 *	             finds with nonsense, and then allocates; says "child found N"
 *	family       waits until it has hooks and forks two children that allocate on, too; says "child PID" of each
 *	closer       closes all descriptors but the first three, again and again
 *
 * Each says "ready" and goes on until it is killed. All allocate.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

#define NAME "gasflame-heap"

static int victim = -1, highest;

static void allocate_on(void)
{
	for (;;) {
		void *volatile object = malloc(100 + (unsigned)rand() % 1000);

		free(object);
	}
}

static void give_up_rights(void)
{
	if (!getuid() && (setgid(65534) || setuid(65534)))
		_exit(4);
}

/* Whatever is opened in the next places is somebody else's. */
static void *swap_on(void *argument)
{
	for (;;)
		for (int fd = highest + 1; fd < highest + 4; fd++)
			if (fcntl(fd, F_GETFD) >= 0) {
				dup2(victim, fd);
				usleep(1000);
				close(fd);
			}
	return argument;
}

static void *close_on(void *argument)
{
	for (;;)
		syscall(SYS_close_range, 3U, ~0U, 0);
	return argument;
}

static void start_thread(void *(*run)(void *))
{
	pthread_t id;

	if (pthread_create(&id, NULL, run, NULL))
		_exit(4);
}

/* Maps it as our memory is mapped: code at its beginning, data behind that. */
static void map_like_ours(int fd)
{
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 1 << 16) == MAP_FAILED)
		_exit(5);
}

/* A file in a mount of its own, that is nowhere: its path begins there. */
static int open_detached(const char *folder)
{
	int tree = syscall(SYS_open_tree, AT_FDCWD, folder, 1U /* OPEN_TREE_CLONE */ | O_CLOEXEC), fd;

	if (tree < 0) {
		printf("cannot: %s\n", strerror(errno));
		exit(0);
	}
	fd = openat(tree, "memfd:" NAME, O_RDONLY | O_CLOEXEC);
	return fd;
}

/* Mappings of our name that the process can write to, or make so; each is filled. How many. */
static int fill_ours(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (!strstr(line, "memfd:" NAME) || !strstr(line, "rw-s") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		n++;
		for (unsigned long at = start; at < end && at < start + (1 << 20); at += 8)
			*(volatile uint64_t *)at = 0x4141414141414141;
	}
	if (f)
		fclose(f);
	return n;
}

static int has_hooks(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "memfd:" NAME) && strstr(line, "r-xp");
	if (f)
		fclose(f);
	return found;
}

static void await_hooks(void)
{
	say_ready();
	while (!has_hooks())
		usleep(1000);
	/* They are in use. */
	for (int i = 0; i < 500; i++) {
		void *volatile object = malloc(1000);

		usleep(1000);
		free(object);
	}
}

static void have_children(void)
{
	await_hooks();
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (!child)
			allocate_on();
		printf("child %d\n", child);
	}
	fflush(stdout);
}

static void scribble(void)
{
	await_hooks();
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 0;

		if (!child) {
			give_up_rights();
			_exit(fill_ours());
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
			_exit(3);
		for (int k = 0; k < 10000; k++) {
			void *volatile object = malloc(1000);

			free(object);
		}
		if (!i)
			printf("child found %d\n", WEXITSTATUS(status));
	}
	fflush(stdout);
}

static void *loop_on(void *argument)
{
	for (;;) {
		FILE *f = fopen("/proc/self/maps", "re");
		char line[512];

		while (f && fgets(line, sizeof(line), f)) {
			unsigned long start, end;

			if (!strstr(line, "memfd:" NAME) || !strstr(line, "r-xp") || sscanf(line, "%lx-%lx", &start, &end) != 2)
				continue;
			if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC))
				continue;
			for (unsigned long at = start; at < end; at += 2)
				*(volatile uint16_t *)at = 0xfeeb; /* jmp . */
		}
		if (f)
			fclose(f);
	}
	return argument;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";

	if (!strcmp(mode, "swap")) {
		victim = open(what, O_RDONLY | O_CLOEXEC);
		highest = victim;
		give_up_rights();
		start_thread(swap_on);
	} else if (!strcmp(mode, "path")) {
		map_like_ours(open_detached(what));
		give_up_rights();
	} else if (!strcmp(mode, "short")) {
		int fd = memfd_create(NAME, 0);

		if (ftruncate(fd, 4096) < 0)
			_exit(5);
		map_like_ours(fd);
	} else if (!strcmp(mode, "closer")) {
		start_thread(close_on);
	} else if (!strcmp(mode, "loop")) {
		start_thread(loop_on);
	} else if (!strcmp(mode, "scribble")) {
		scribble();
	} else if (!strcmp(mode, "family")) {
		have_children();
	}
	say_ready();
	allocate_on();
}
