/* execer.c [seconds=3] - burns for a third, execs itself, and burns elsewhere for the rest. */
#include <string.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void before_exec_burn(double end)
{
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += spin(100000);
}

static NOINLINE void after_exec_burn(double end)
{
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += spin(100001);
}

int main(int argc, char **argv)
{
	double start = seconds_of(CLOCK_MONOTONIC), seconds = argument(argc, argv, 1, 3);
	if (argc > 2 && strcmp(argv[2], "after") == 0) {
		after_exec_burn(start + seconds);
		return 0;
	}
	say_ready();
	before_exec_burn(start + seconds / 3);
	char rest[32];
	snprintf(rest, sizeof(rest), "%.3f", seconds / 3 * 2);
	execl("/proc/self/exe", "execed", rest, "after", NULL);
	perror("exec");
	return 1;
}
