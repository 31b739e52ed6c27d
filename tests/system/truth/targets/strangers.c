/*
 * strangers forks N GO PIDS - once the file GO is there, forks N children that fork a child each and die at once, as that does;
 *	writes the pids of all into PIDS, and waits to be ended.
 * strangers take PIDS       - forks one child for each pid in the file, with that very pid (ns_last_pid; as root), which
 *	calls itself "stranger" and burns CPU for a moment: stranger_burn(). Says how many had a pid of the list.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { BURN_STEPS = 1000000 };

/* What both generations write their pids to. */
struct pids {
	uint32_t n;
	int32_t list[];
};

static void note(struct pids *p)
{
	p->list[__atomic_fetch_add(&p->n, 1, __ATOMIC_RELAXED)] = getpid();
}

/* Each CPU tells of its forks by itself, and which is heard first is not certain: of a child's child most likely before the child. */
static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int fork_all(int count, const char *go, const char *path)
{
	size_t size = sizeof(struct pids) + 2 * count * sizeof(int32_t);
	struct pids *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *out;

	say_ready();
	while (access(go, F_OK))
		usleep(1000);
	move_to(1);
	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			move_to(0);
			note(p);
			if (!fork())
				note(p);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	out = fopen(path, "w");
	if (!out)
		return 1;
	for (uint32_t i = 0; i < p->n; i++)
		fprintf(out, "%d\n", p->list[i]);
	fclose(out);
	pause();
	return 0;
}

NOINLINE static void stranger_burn(void)
{
	volatile uint64_t sink = spin(BURN_STEPS);

	(void)sink;
}

static bool take(int pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char text[16];
	int status = 0;
	pid_t child;

	bool set;

	if (fd < 0)
		return false;
	snprintf(text, sizeof(text), "%d", pid - 1);
	set = write(fd, text, strlen(text)) > 0;
	close(fd);
	child = set ? fork() : -1;
	if (!child) {
		prctl(PR_SET_NAME, "stranger");
		if (getpid() != pid)
			_exit(1);
		stranger_burn();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(int argc, char **argv)
{
	uint64_t taken = 0;
	FILE *in;
	int pid;

	if (argc == 5 && !strcmp(argv[1], "forks"))
		return fork_all(atoi(argv[2]), argv[3], argv[4]);
	in = argc == 3 ? fopen(argv[2], "r") : NULL;
	if (!in)
		return 2;
	while (fscanf(in, "%d", &pid) == 1)
		for (int i = 0; i < 5; i++) /* somebody else may be quicker */
			if (take(pid)) {
				taken++;
				break;
			}
	printf("taken %llu\n", (unsigned long long)taken);
	fclose(in);
	return 0;
}
