#include "sandbox/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

/* By number; the kernel never gives a number another meaning. */
static const char *const names[] = {
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE",
};

static int get(struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) ? -errno : 0;
}

static int set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .permitted = permitted, .effective = effective },
		{ .permitted = permitted >> 32, .effective = effective >> 32 },
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static uint64_t permitted_now(void)
{
	struct __user_cap_data_struct data[2] = { 0 };

	return get(data) ? 0 : data[0].permitted | (uint64_t)data[1].permitted << 32;
}

uint64_t rights_effective(void)
{
	struct __user_cap_data_struct data[2] = { 0 };

	return get(data) ? 0 : data[0].effective | (uint64_t)data[1].effective << 32;
}

int rights_keep(uint64_t capabilities, struct err *err)
{
	uint64_t keep = permitted_now() & capabilities;
	int r;

	/* Needs CAP_SETPCAP; without it nothing can be gained from the bounding set anyway, as no_new_privs
	 * keeps an execve() from it. */
	for (int c = 0; c < 64 && prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (!(keep & RIGHTS_BIT(c)))
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	r = set(keep, keep);
	if (r < 0)
		return err_errno(err, -r, "cannot give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_errno(err, errno, "cannot give up the rights of programs that change the user");
	return 0;
}

int rights_become(uid_t uid, gid_t gid, uint64_t capabilities)
{
	int r;

	/* A change from root to another user clears the permitted set unless this is set. */
	if (capabilities && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		return -errno;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	r = capabilities ? set(permitted_now() & capabilities, permitted_now() & capabilities) : 0;
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	return r;
}

void rights_put_names(uint64_t capabilities, struct buf *b)
{
	const char *space = "";

	if (!capabilities)
		buf_puts(b, "none");
	for (size_t i = 0; i < 64; i++) {
		if (!(capabilities & RIGHTS_BIT(i)))
			continue;
		if (i < ARRAY_LEN(names))
			buf_printf(b, "%sCAP_%s", space, names[i]);
		else
			buf_printf(b, "%scapability %zu", space, i);
		space = " ";
	}
}
