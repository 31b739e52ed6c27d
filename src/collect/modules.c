#include "collect/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/vec.h"
#include "collect/processes.h"
#include "collect/shared.h"
#include "elf/worker.h"
#include "profile/profile.h"
#include "target/open.h"
#include "target/proc.h"

struct module {
	uint32_t profile_id;
	int fd; /* -1: memory without a file */
	bool elf, table_due;
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	/* The last answer to "where is this file offset": nearly always asked with the same offset again. */
	bool offset_known;
	uint64_t offset, address;
};

struct modules {
	struct profile *profile;
	struct worker *worker;
	const struct processes_sink *sink;
	void *context;
	VEC(struct module) list; /* by id; 0 is none */
	uint32_t vdso;
	bool warned_full;
};

struct modules *modules_new(struct profile *p, struct worker *w, const struct processes_sink *sink,
			    void *context)
{
	struct modules *ms = mem_alloc(sizeof(*ms));

	ms->profile = p;
	ms->worker = w;
	ms->sink = sink;
	ms->context = context;
	vec_push(&ms->list, (struct module){ .fd = -1, .profile_id = PROFILE_NONE });
	return ms;
}

void modules_free(struct modules *ms)
{
	if (!ms)
		return;
	for (size_t i = 0; i < ms->list.n; i++)
		fd_close(&ms->list.v[i].fd);
	vec_done(&ms->list);
	free(ms);
}

static uint32_t add(struct modules *ms, const struct profile_module *what, int fd)
{
	struct module m = { .fd = fd };

	if (ms->list.n >= SHARED_MAX_MODULES) {
		if (!ms->warned_full)
			log_warn("more than %d files are mapped: stacks through further ones are cut off",
				 SHARED_MAX_MODULES);
		ms->warned_full = true;
		fd_close(&fd);
		return 0;
	}
	m.profile_id = profile_add_module(ms->profile, what);
	vec_push(&ms->list, m);
	return ms->list.n - 1;
}

/* Takes over fd, a regular file; path is its name for people. */
static uint32_t add_file(struct modules *ms, int fd, const char *path, enum profile_module_kind kind)
{
	struct profile_module what = { .kind = kind, .process = PROFILE_NONE };
	struct symbols_info info;
	struct err err = { 0 };
	struct module *m;
	struct stat st;
	uint32_t id;
	bool elf;

	if (fstat(fd, &st)) {
		fd_close(&fd);
		return 0;
	}
	for (size_t i = 1; i < ms->list.n; i++) {
		m = &ms->list.v[i];
		if (m->fd >= 0 && m->device == st.st_dev && m->inode == st.st_ino && m->size == st.st_size &&
		    m->changed.tv_sec == st.st_mtim.tv_sec && m->changed.tv_nsec == st.st_mtim.tv_nsec) {
			fd_close(&fd);
			return i;
		}
	}
	elf = worker_inspect(ms->worker, fd, &info, &err) >= 0;
	if (elf) {
		what.build_id_size = info.build_id_size;
		memcpy(what.build_id, info.build_id, sizeof(what.build_id));
	} else {
		log_debug("%s: %s", path, err.text);
	}
	what.path = profile_string(ms->profile, path);
	id = add(ms, &what, fd);
	if (!id)
		return 0;
	m = &ms->list.v[id];
	m->elf = m->table_due = elf;
	m->device = st.st_dev;
	m->inode = st.st_ino;
	m->size = st.st_size;
	m->changed = st.st_mtim;
	if (elf)
		ms->sink->announce(ms->context, id);
	else
		ms->sink->table(ms->context, id, NULL);
	return id;
}

/* Ours is everyone's: the kernel maps one image into all 64-bit processes. */
static uint32_t vdso(struct modules *ms)
{
	unsigned long base = getauxval(AT_SYSINFO_EHDR);
	int fd;

	if (ms->vdso || !base)
		return ms->vdso;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	/* The image is a whole number of pages; the second may not exist, a short write is fine then. */
	if (write(fd, (void *)base, 0x2000) < 0x1000 && write(fd, (void *)base, 0x1000) != 0x1000) {
		fd_close(&fd);
		return 0;
	}
	ms->vdso = add_file(ms, fd, "[vdso]", MODULE_VDSO);
	return ms->vdso;
}

/* File offset to address, by the file's program headers. */
static bool address_of(struct modules *ms, uint32_t id, uint64_t offset, uint64_t *ret)
{
	struct module *m = &ms->list.v[id];

	if (!m->elf)
		return false;
	if (!m->offset_known || m->offset != offset) {
		if (worker_offset_to_address(ms->worker, m->fd, offset, &m->address, NULL) < 0)
			return false;
		m->offset_known = true;
		m->offset = offset;
	}
	*ret = m->address;
	return true;
}

static uint32_t jit_module(struct modules *ms, uint32_t process, uint32_t *jit)
{
	if (!*jit) {
		struct profile_module what = { .kind = MODULE_JIT, .process = process,
					       .path = profile_string(ms->profile, "[jit]") };

		*jit = add(ms, &what, -1);
		if (*jit)
			ms->sink->table(ms->context, *jit, NULL);
	}
	return *jit;
}

uint32_t modules_of_mapping(struct modules *ms, pid_t pid, uint32_t process, const struct proc_mapping *m,
			    uint32_t *jit, uint64_t *ret_bias)
{
	uint64_t address;
	uint32_t id;

	*ret_bias = 0;
	if (!strcmp(m->path, "[vdso]")) {
		id = vdso(ms);
		*ret_bias = m->start;
		return id;
	}
	if (!strcmp(m->path, "[vsyscall]") || !strcmp(m->path, "[uprobes]"))
		return 0;
	if (m->path[0] == '/' && m->inode) {
		_cleanup_free_ char *path = mem_strdup(m->path);
		char *deleted = strstr(path, " (deleted)");
		struct err err = { 0 };
		int fd = -1;

		if (target_open_mapping(pid, m, &fd, &err) < 0) {
			log_debug("pid %d: %s", (int)pid, err.text);
			return jit_module(ms, process, jit);
		}
		if (deleted && !deleted[strlen(" (deleted)")])
			*deleted = 0;
		id = add_file(ms, fd, path, MODULE_FILE);
		if (id && address_of(ms, id, m->offset, &address)) {
			*ret_bias = m->start - address;
			return id;
		}
	}
	return jit_module(ms, process, jit);
}

void modules_prepare(struct modules *ms, const char *path)
{
	int fd = -1;

	if (target_open_host(path, &fd, NULL) < 0)
		return;
	add_file(ms, fd, path, MODULE_FILE);
	modules_load_tables(ms);
}

void modules_load_tables(struct modules *ms)
{
	for (size_t i = 1; i < ms->list.n; i++) {
		struct module *m = &ms->list.v[i];
		struct unwind_table table = { 0 };
		struct err err = { 0 };

		if (!m->table_due)
			continue;
		m->table_due = false;
		if (worker_unwind(ms->worker, m->fd, &table, &err) < 0) {
			log_debug("%s: no unwind table: %s",
				  profile_str(ms->profile, ms->profile->modules.v[m->profile_id].path), err.text);
			ms->sink->table(ms->context, i, NULL);
			continue;
		}
		ms->sink->table(ms->context, i, table.page_count ? &table : NULL);
		unwind_done(&table);
	}
}

uint32_t modules_profile_id(const struct modules *ms, uint32_t module)
{
	return module < ms->list.n ? ms->list.v[module].profile_id : PROFILE_NONE;
}

uint32_t modules_count(const struct modules *ms)
{
	return ms->list.n;
}

void modules_hand_over(struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	for (size_t i = 1; i < ms->list.n; i++) {
		struct module *m = &ms->list.v[i];

		if (m->fd < 0)
			continue;
		take(context, m->profile_id, m->fd);
		m->fd = -1;
	}
}
