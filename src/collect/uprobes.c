#include "collect/uprobes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "target/host.h"

/* The kernel's ABI, which headers from before 6.6 lack. */
enum { ATTACH_UPROBE_MULTI = 48, LINK_CREATE = 28 };

struct link_create {
	uint32_t program, target, type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t count, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct link_create) == 64, "layout");

struct uprobes {
	int fd; /* of the one link, -1 = there is one for each */
	size_t n;
	struct bpf_link *links[];
};

static bool has_multi(void)
{
	struct host host;

	host_probe(&host);
	return host.major > 6 || (host.major == 6 && host.minor >= 6);
}

void uprobes_prepare(struct bpf_program *program)
{
	if (has_multi())
		bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)ATTACH_UPROBE_MULTI);
}

static int attach_all(struct bpf_program *program, const char *path, const uint64_t *offsets, const uint64_t *cookies, size_t n)
{
	struct link_create c = { .program = bpf_program__fd(program), .type = ATTACH_UPROBE_MULTI, .path = (uintptr_t)path,
				 .offsets = (uintptr_t)offsets, .cookies = (uintptr_t)cookies, .count = n };
	int fd = syscall(SYS_bpf, LINK_CREATE, &c, sizeof(c));

	return fd < 0 ? -errno : fd;
}

static int attach_each(struct uprobes *u, struct bpf_program *program, const char *path, const uint64_t *offsets,
		       const uint64_t *cookies, size_t n)
{
	for (; u->n < n; u->n++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookies[u->n]);

		u->links[u->n] = bpf_program__attach_uprobe_opts(program, -1, path, offsets[u->n], &opts);
		if (!u->links[u->n])
			return -errno;
	}
	return 0;
}

int uprobes_attach(struct bpf_program *program, int fd, const uint64_t *offsets, const uint64_t *cookies, size_t n,
		   struct uprobes **ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/fd/%d", getpid(), fd);
	bool multi = bpf_program__expected_attach_type(program) == (enum bpf_attach_type)ATTACH_UPROBE_MULTI;
	struct uprobes *u = mem_alloc(sizeof(*u) + n * sizeof(u->links[0]));
	int r;

	u->fd = -1;
	if (multi)
		r = u->fd = attach_all(program, path, offsets, cookies, n);
	else
		r = attach_each(u, program, path, offsets, cookies, n);
	if (r < 0) {
		uprobes_detach(u);
		return err_errno(err, -r, "cannot attach to a function (uprobe)");
	}
	*ret = u;
	return 0;
}

void uprobes_detach(struct uprobes *u)
{
	if (!u)
		return;
	fd_close(&u->fd);
	for (size_t i = 0; i < u->n; i++)
		bpf_link__destroy(u->links[i]);
	free(u);
}
