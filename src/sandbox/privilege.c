#include "sandbox/privilege.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/filter.h"
#include "sandbox/rights.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

enum {
	R = 1 << PRIVILEGE_RECORDING,
	F = 1 << PRIVILEGE_FINISHING,
	ALWAYS = 0,
	OLD_KERNEL = 1 << 8, /* before 5.9 CAP_SYS_ADMIN included newer capabilities */
	PARANOID = 1 << 9,   /* Debian's perf_event_paranoid 3: no event without CAP_SYS_ADMIN */
};

/* Capabilities that are not listed are dropped: CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT,
 * CAP_NET_ADMIN, CAP_MKNOD, ... */
static const struct {
	int capability;
	unsigned phases;
	unsigned needs; /* one of these; ALWAYS */
	const char *why;
} table[] = {
	{ CAP_PERFMON, R, ALWAYS, "events of CPUs that come back, probes in files that are mapped later" },
	{ CAP_BPF, R, ALWAYS, "the maps of the programs in the kernel, where unprivileged BPF is off" },
	{ CAP_SYS_ADMIN, R, OLD_KERNEL | PARANOID, "in place of the two above" },
	{ CAP_SYS_ADMIN, R | F, OLD_KERNEL, "in place of CAP_CHECKPOINT_RESTORE" },
	{ CAP_SYS_ADMIN, R, PRIVILEGE_HEAP, "to suspend the filter of a thread that is stopped" },
	{ CAP_SYS_NICE, R | F, ALWAYS, "a recorder that gets no CPU goes before others (target/hurry.h)" },
	{ CAP_CHECKPOINT_RESTORE, R | F, ALWAYS, "/proc/PID/map_files" },
	{ CAP_SYS_PTRACE, R | F, ALWAYS, "maps, memory and files of other users' processes" },
	{ CAP_DAC_READ_SEARCH, R | F, ALWAYS, "files that only their owner may read" },
	{ CAP_SYSLOG, R | F, ALWAYS, "the kernel's symbols and log" },
	{ CAP_SETUID, R | F, ALWAYS, "the child that reads files is nobody; the cache of the user behind sudo" },
	{ CAP_SETGID, R | F, ALWAYS, "the same" },
	{ CAP_KILL, R | F, ALWAYS, "to end that child, and what was launched" },
	{ CAP_DAC_OVERRIDE, R | F, PRIVILEGE_OTHERS_FOLDER, "the capture's journal beside it" },
	{ CAP_CHOWN, R | F, PRIVILEGE_GIVE, "the capture is given to the user behind sudo" },
	{ CAP_FOWNER, R | F, PRIVILEGE_GIVE, "its rights, once it is theirs" },
};

static unsigned needs_of_machine(void)
{
	_cleanup_free_ char *paranoid = NULL;
	unsigned major = 0, minor = 0, needs = 0;
	struct utsname u;

	if (!uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 9)))
		needs |= OLD_KERNEL;
	if (!fd_read_path("/proc/sys/kernel/perf_event_paranoid", 64, &paranoid, NULL) && atoi(paranoid) > 2)
		needs |= PARANOID;
	return needs;
}

uint64_t privilege_wanted(enum privilege_phase phase, unsigned needs)
{
	uint64_t wanted = 0;

	needs |= needs_of_machine();
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].phases >> phase & 1 && (table[i].needs == ALWAYS || table[i].needs & needs))
			wanted |= RIGHTS_BIT(table[i].capability);
	return wanted;
}

void privilege_thread(void)
{
	struct err err = { 0 };

	if (rights_keep(privilege_wanted(PRIVILEGE_RECORDING, 0), &err) < 0)
		log_debug("%s", err.text);
}

void privilege_enter(enum privilege_phase phase, unsigned needs)
{
	_cleanup_(buf_done) struct buf names = { 0 };
	struct err err = { 0 };

	if (rights_keep(privilege_wanted(phase, needs), &err) < 0)
		log_debug("%s", err.text);
	/* A filter holds for the phases that follow, too. */
	if (phase == PRIVILEGE_RECORDING && !(needs & PRIVILEGE_HEAP) && filter_recorder(true, &err) < 0)
		log_debug("%s", err.text);
	rights_put_names(rights_effective(), &names);
	log_debug("capabilities %s: %s", phase == PRIVILEGE_RECORDING ? "while recording" : "for the rest", names.data);
}
