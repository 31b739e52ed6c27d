#include "symbol/stillrunning.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "profile/profile.h"
#include "target/proc.h"

/* Clocks are stepped, and start times are in ticks. */
static const uint64_t slack_ns = 2ULL * 1000000000;

static uint64_t boot_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return clock_wall_ns() - (t.tv_sec * 1000000000ULL + t.tv_nsec);
}

bool stillrunning_kernel(const struct profile *p)
{
	const char *host = profile_str(p, p->host), *kernel = profile_str(p, p->kernel);
	struct utsname u;

	uname(&u);
	return (!host[0] || !strcmp(host, u.nodename)) && (!kernel[0] || !strcmp(kernel, u.release)) &&
	       (!p->start_wall_ns || p->start_wall_ns + slack_ns >= boot_wall_ns());
}

pid_t stillrunning_pid(const struct profile *p, uint32_t process)
{
	struct proc_stat st;
	pid_t pid;

	if (process >= p->processes.n || !stillrunning_kernel(p))
		return 0;
	pid = p->processes.v[process].pid;
	if (!pid || proc_stat(pid, &st) < 0 || st.state == 'Z')
		return 0;
	if (p->start_wall_ns) {
		uint64_t start = boot_wall_ns() + st.start_ticks * (1000000000ULL / sysconf(_SC_CLK_TCK));

		/* Started after the recording ended: the number was given to another process. */
		if (p->duration_ns && start > p->start_wall_ns + p->duration_ns + slack_ns)
			return 0;
	}
	return pid;
}

pid_t stillrunning_pid_of_module(const struct profile *p, uint32_t module)
{
	for (size_t i = p->mappings.n; i-- > 0;) {
		pid_t pid = p->mappings.v[i].module == module ? stillrunning_pid(p, p->mappings.v[i].process) : 0;

		if (pid)
			return pid;
	}
	return 0;
}
