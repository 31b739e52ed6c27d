#include "sandbox/confine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "sandbox/filter.h"
#include "sandbox/landlock.h"
#include "sandbox/rights.h"

/* The program that the kernel starts in our place to load us; NULL for a static program. The caller frees it. */
static char *interpreter(void)
{
	_cleanup_free_ char *maps = NULL;
	unsigned long base = getauxval(AT_BASE);

	if (!base || fd_read_path("/proc/self/maps", 64 << 20, &maps, NULL) < 0)
		return NULL;
	for (char *line = maps, *next; line && *line; line = next) {
		unsigned long start;
		char *path = strchr(line, '/');

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (sscanf(line, "%lx-", &start) == 1 && start == base && path && (!next || path < next))
			return mem_strdup(path);
	}
	return NULL;
}

/* The child that reads ELF files executes this program again. */
static int allow_self(struct landlock *l, struct err *err)
{
	_cleanup_free_ char *loader = interpreter();
	int r = landlock_allow(l, "/proc/self/exe", LANDLOCK_EXECUTE, err);

	return !r && loader ? landlock_allow(l, loader, LANDLOCK_EXECUTE, err) : r;
}

/* 1: confined. 0: this kernel cannot. */
static int confine_files(const struct confine *c, struct err *err)
{
	unsigned network = (c->listen ? LANDLOCK_LISTEN : 0) | (c->connect ? LANDLOCK_CONNECT : 0);
	struct landlock l;
	int r = landlock_init(&l, network, err);

	if (r == -EOPNOTSUPP)
		return 0;
	if (!r && c->moves && l.version < 2) {
		fd_close(&l.rules_fd);
		return 0;
	}
	if (!r)
		r = landlock_allow(&l, "/", LANDLOCK_READ, err);
	if (!r)
		r = landlock_allow(&l, "/dev/null", LANDLOCK_DEVICE, err);
	if (!r)
		r = allow_self(&l, err);
	for (size_t i = 0; !r && i < c->write_count; i++)
		r = landlock_allow(&l, c->writes[i], LANDLOCK_WRITE | (c->moves ? LANDLOCK_MOVE : 0), err);
	for (size_t i = 0; !r && i < c->remove_count; i++)
		r = landlock_allow(&l, c->removes[i], LANDLOCK_REMOVE, err);
	if (!r)
		return landlock_enter(&l, err) ?: 1;
	fd_close(&l.rules_fd);
	return r;
}

bool confine_has_landlock(void)
{
	struct landlock l;
	bool has = !landlock_init(&l, 0, NULL);

	fd_close(&l.rules_fd);
	return has;
}

int confine_enter(const struct confine *c, struct buf *ret_held, struct err *err)
{
	const struct filter_reader calls = { .execute = true, .listen = c->listen, .connect = c->connect,
					     .terminal = c->terminal, .link = c->moves };
	int files, r = rights_keep(c->capabilities, err);

	if (r < 0)
		return r;
	/* Other processes of this user cannot read its memory, and it leaves no core file with the data
	 * that it read. The leak check of a build with sanitizers must read its own process at the end. */
	prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0);
	files = confine_files(c, err);
	if (files < 0)
		return files;
	r = filter_reader(&calls, err);
	if (r < 0)
		return r;
	if (ret_held) {
		buf_puts(ret_held, "capabilities ");
		rights_put_names(rights_effective(), ret_held);
		buf_printf(ret_held, ", %s, system calls filtered",
			   files ? "files read-only by Landlock" : "no Landlock in this kernel: files as this user may");
	}
	return 0;
}
