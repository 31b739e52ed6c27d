/* idle.c [seconds=5] - sleeps: a target that uses no CPU. */
#include <unistd.h>

#include "../truth.h"

int main(int argc, char **argv)
{
	say_ready();
	usleep((useconds_t)(argument(argc, argv, 1, 5) * 1e6));
	return 0;
}
