#include "cmd/recording/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sandbox/privilege.h"
#include "target/hurry.h"

/* Thousands of threads and mapped files each need a descriptor. */
void recorder_raise_limits(void)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	/* Before 5.11 BPF maps counted as locked memory. */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
}

/* A library that a target maps needs its table within milliseconds, and on a busy machine we would wait for
 * our turn behind the very target. Where that is permitted; what comes after the recording is not urgent, unless the
 * machine is so crowded that it would take minutes. */
void recorder_hurry(bool on)
{
	static int before;
	static bool known;

	if (hurry_forbidden())
		return;
	if (on && !known) {
		before = getpriority(PRIO_PROCESS, 0);
		known = true;
	}
	if (on || !hurry_crowded())
		setpriority(PRIO_PROCESS, 0, on ? -10 : before);
	if (hurry_look())
		log_warn(HURRY_WORDS);
}

/* Root without capabilities writes to root's folders only. */
static unsigned needs_of(const char *output)
{
	const char *slash = output ? strrchr(output, '/') : NULL;
	_cleanup_free_ char *folder = slash ? mem_strndup(output, slash - output + 1) : mem_strdup(".");
	unsigned needs = 0;
	struct stat st;

	if (!output || geteuid())
		return 0;
	if (stat(folder, &st) || st.st_uid || !(st.st_mode & S_IWUSR))
		needs |= PRIVILEGE_OTHERS_FOLDER;
	if (getenv("SUDO_UID"))
		needs |= PRIVILEGE_GIVE;
	return needs;
}

void recorder_drop_rights(const char *output, bool hooks)
{
	privilege_enter(PRIVILEGE_RECORDING, needs_of(output) | (hooks ? PRIVILEGE_HEAP : 0));
}

void recorder_drop_more_rights(const char *output)
{
	privilege_enter(PRIVILEGE_FINISHING, needs_of(output));
}
