/* execer.c [seconds=1] - burns a third of this CPU time, execs itself, and burns the rest elsewhere. */
#include <string.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void before_exec_burn(double end)
{
	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		sink += spin(100000);
}

static NOINLINE void after_exec_burn(double end)
{
	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		sink += spin(100001);
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 1);
	if (argc > 2 && strcmp(argv[2], "after") == 0) {
		after_exec_burn(seconds); /* the clock goes on across exec */
		return 0;
	}
	say_ready();
	before_exec_burn(seconds / 3);
	execl("/proc/self/exe", "execed", argc > 1 ? argv[1] : "1", "after", NULL);
	perror("exec");
	return 1;
}
