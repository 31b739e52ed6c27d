#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"

/* The numbers are the same on every processor; the header of the machine that builds may know fewer rights
 * than the kernel that runs this. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_REFER = 1 << 13,
	FS_TRUNCATE = 1 << 14,
	FS_IOCTL_DEV = 1 << 15,
	FS_VERSION_1 = (1 << 13) - 1,
	FS_OF_A_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
};

enum { NET_BIND_TCP = 1, NET_CONNECT_TCP = 2 };
enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1, SCOPE_SIGNAL = 2 };

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_attr {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

/* Returns all file rights of this version: rights that are not handled are not restricted. */
static uint64_t all_rights(int version)
{
	return FS_VERSION_1 | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
	       (version >= 5 ? FS_IOCTL_DEV : 0);
}

static uint64_t rights_of(const struct landlock *l, unsigned rights)
{
	uint64_t fs = 0;

	if (rights & LANDLOCK_READ)
		fs |= FS_READ_FILE | FS_READ_DIR;
	if (rights & LANDLOCK_WRITE)
		fs |= FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_REG | FS_MAKE_DIR | FS_REMOVE_FILE | FS_REMOVE_DIR;
	if (rights & LANDLOCK_REMOVE)
		fs |= FS_REMOVE_FILE | FS_REMOVE_DIR;
	if (rights & LANDLOCK_EXECUTE)
		fs |= FS_EXECUTE;
	if (rights & LANDLOCK_MOVE)
		fs |= FS_REFER;
	if (rights & LANDLOCK_DEVICE)
		fs |= FS_WRITE_FILE | FS_TRUNCATE;
	return fs & all_rights(l->version);
}

int landlock_init(struct landlock *l, unsigned network, struct err *err)
{
	struct ruleset_attr attr = { 0 };
	size_t size = sizeof(attr.fs);

	*l = (struct landlock){ .rules_fd = -1 };
	l->version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
	if (l->version < 1) {
		l->version = 0;
		return err_set(err, EOPNOTSUPP, "this kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK, "
			       "\"landlock\" in the boot parameter lsm=)");
	}
	attr.fs = all_rights(l->version);
	if (l->version >= 4) {
		attr.net = (network & LANDLOCK_LISTEN ? 0 : NET_BIND_TCP) |
			   (network & LANDLOCK_CONNECT ? 0 : NET_CONNECT_TCP);
		size = sizeof(attr.fs) + sizeof(attr.net);
	}
	if (l->version >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	l->rules_fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return l->rules_fd < 0 ? err_errno(err, errno, "cannot make rules for files") : 0;
}

int landlock_allow(struct landlock *l, const char *path, unsigned rights, struct err *err)
{
	struct path_attr attr = { .allowed = rights_of(l, rights) };
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && !S_ISDIR(st.st_mode))
		attr.allowed &= FS_OF_A_FILE;
	attr.fd = fd;
	if (attr.allowed && syscall(SYS_landlock_add_rule, l->rules_fd, RULE_PATH_BENEATH, &attr, 0))
		return err_errno(err, errno, "cannot allow the use of %s", path);
	return 0;
}

int landlock_enter(struct landlock *l, struct err *err)
{
	int r = 0;

	if (syscall(SYS_landlock_restrict_self, l->rules_fd, 0))
		r = err_errno(err, errno, "cannot confine the process to its files");
	fd_close(&l->rules_fd);
	return r;
}
