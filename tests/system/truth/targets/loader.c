/* loader.c [seconds=1] - burns a third of this CPU time, loads a library, and burns the rest in it. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void before_load_burn(double end)
{
	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		sink += spin(100000);
}

int main(int argc, char **argv)
{
	char exe[PATH_MAX / 2], path[PATH_MAX];
	double seconds = argument(argc, argv, 1, 1);
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "%s/libloaded.so", dirname(exe));
	say_ready();
	before_load_burn(seconds / 3);
	void *library = dlopen(path, RTLD_NOW);
	uint64_t (*burn)(double);
	*(void **)&burn = library ? dlsym(library, "loaded_burn") : NULL;
	if (!burn) {
		fprintf(stderr, "loader: %s\n", dlerror());
		return 1;
	}
	sink += burn(seconds);
	return 0;
}
