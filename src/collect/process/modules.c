#include "collect/process/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "collect/process/processes.h"
#include "collect/process/reader.h"
#include "collect/shared.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/open.h"
#include "target/proc.h"

/* New files: so many at once, and then so many a second. Programs load some hundreds when they start. */
enum { FILES_AT_ONCE = 2048, FILES_PER_S = 100 };

enum state { STATE_WAITING, STATE_PLACED, STATE_NO_ELF };

struct module {
	uint32_t profile_id; /* PROFILE_NONE while it is waiting */
	enum state state;
	enum profile_module_kind kind;
	int fd; /* -1: memory without a file */
	char *path;
	/* The file, and how mappings name it: for some file systems that is not the same. */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	uint32_t map_major, map_minor;
	struct worker_layout *layout; /* where it is placed */
};

struct modules {
	struct profile *profile;
	struct reader *reader;
	const struct processes_sink *sink;
	void *context;
	VEC(struct module) list; /* by id; 0 is none */
	struct map by_mapping;   /* device and inode of mappings, mixed, to the last such module */
	struct map memory;       /* keys of files without a name that hold code, but no program */
	uint32_t vdso, known;
	double tokens;           /* new files that may come now */
	uint64_t tokens_ns;
	bool warned_full, warned_many;
};

struct modules *modules_new(struct profile *p, bool cached)
{
	struct modules *ms = mem_alloc(sizeof(*ms));

	ms->profile = p;
	ms->reader = reader_new(cached);
	ms->tokens = FILES_AT_ONCE;
	vec_push(&ms->list, (struct module){ .fd = -1, .profile_id = PROFILE_NONE });
	return ms;
}

void modules_set_sink(struct modules *ms, const struct processes_sink *sink, void *context)
{
	ms->sink = sink;
	ms->context = context;
}

void modules_free(struct modules *ms)
{
	if (!ms)
		return;
	reader_free(ms->reader);
	vec_done_each(&ms->list, e, fd_close(&e->fd); free(e->path); free(e->layout));
	map_done(&ms->by_mapping);
	map_done(&ms->memory);
	free(ms);
}

/* Takes over fd. 0 if there is no room. */
static uint32_t add(struct modules *ms, enum profile_module_kind kind, int fd)
{
	if (ms->list.n >= SHARED_MAX_MODULES) {
		if (!ms->warned_full)
			log_warn("more than %d files are mapped: stacks through further ones are cut off",
				 SHARED_MAX_MODULES);
		ms->warned_full = true;
		fd_close(&fd);
		return 0;
	}
	vec_push(&ms->list, (struct module){ .fd = fd, .kind = kind, .profile_id = PROFILE_NONE });
	return ms->list.n - 1;
}

/* The profile hears of a module once all is known that it keeps. */
static void tell_profile(struct modules *ms, struct module *m, const struct profile_module *what)
{
	m->profile_id = profile_add_module(ms->profile, what);
	ms->known++;
}

static bool same_file(const struct module *m, const struct stat *st)
{
	return m->fd >= 0 && m->device == st->st_dev && m->inode == st->st_ino && m->size == st->st_size &&
	       m->changed.tv_sec == st->st_mtim.tv_sec && m->changed.tv_nsec == st->st_mtim.tv_nsec;
}

static uint64_t mapping_key(uint32_t major_number, uint32_t minor_number, uint64_t inode)
{
	return map_hash(map_pair(major_number, minor_number)) ^ inode;
}

/* As long as we have a file open its inode is no other's; it may have been written to. */
static uint32_t find_mapped(const struct modules *ms, const struct proc_mapping *m)
{
	uint64_t *id = map_get(&ms->by_mapping, mapping_key(m->device_major, m->device_minor, m->inode));
	const struct module *module = id ? &ms->list.v[*id] : NULL;
	struct stat st;

	if (!module || module->inode != m->inode || module->map_major != m->device_major ||
	    module->map_minor != m->device_minor || module->fd < 0 || fstat(module->fd, &st) || !same_file(module, &st))
		return 0;
	return *id;
}

/* Says how the kernel sees a module's file: by the numbers that its mappings have. */
static void tell_file(const struct modules *ms, uint32_t id)
{
	const struct module *m = &ms->list.v[id];
	struct shared_code_key key = { 0 };

	if (m->state != STATE_PLACED || !ms->sink->file)
		return;
	if (m->kind != MODULE_VDSO)
		key = (struct shared_code_key){ .inode = m->inode, .size = m->size, .changed_s = m->changed.tv_sec,
						.changed_ns = m->changed.tv_nsec,
						.device = m->map_major << 20 | m->map_minor };
	ms->sink->file(ms->context, id, &key, m->layout);
}

/* Takes over fd, a regular file; path is its name for people. */
static uint32_t add_file(struct modules *ms, int fd, const char *path, enum profile_module_kind kind, uint32_t map_major,
			 uint32_t map_minor)
{
	struct module *m;
	struct stat st;
	uint32_t id;

	if (fstat(fd, &st)) {
		fd_close(&fd);
		return 0;
	}
	for (id = ms->list.n - 1; id > 0 && !same_file(&ms->list.v[id], &st); id--)
		;
	if (id) {
		fd_close(&fd);
	} else {
		id = add(ms, kind, fd);
		if (!id)
			return 0;
		m = &ms->list.v[id];
		m->path = mem_strdup(path);
		m->device = st.st_dev;
		m->inode = st.st_ino;
		m->size = st.st_size;
		m->changed = st.st_mtim;
		reader_add(ms->reader, id, fd, kind == MODULE_VDSO);
	}
	m = &ms->list.v[id];
	m->map_major = map_major;
	m->map_minor = map_minor;
	*map_put(&ms->by_mapping, mapping_key(map_major, map_minor, st.st_ino), 0) = id;
	tell_file(ms, id);
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
	ms->vdso = add_file(ms, fd, "[vdso]", MODULE_VDSO, 0, 0);
	return ms->vdso;
}

uint32_t modules_jit(struct modules *ms, uint32_t process, uint32_t *jit)
{
	if (!*jit) {
		*jit = add(ms, MODULE_JIT, -1);
		if (*jit) {
			tell_profile(ms, &ms->list.v[*jit],
				     &(struct profile_module){ .kind = MODULE_JIT, .process = process,
							       .path = profile_string(ms->profile, "[jit]") });
			ms->sink->table(ms->context, *jit, NULL);
		}
	}
	return *jit;
}

/* May one more file be opened now? */
static bool may_open(struct modules *ms)
{
	uint64_t now = clock_mono_ns();

	if (ms->tokens_ns)
		ms->tokens = MIN(ms->tokens + (now - ms->tokens_ns) * (FILES_PER_S / 1e9), FILES_AT_ONCE);
	ms->tokens_ns = now;
	if (ms->tokens >= 1) {
		ms->tokens--;
		return true;
	}
	if (!ms->warned_many)
		log_warn("many new files are mapped: they are read %d a second, stacks through others are cut off meanwhile",
			 FILES_PER_S);
	ms->warned_many = true;
	profile_count(ms->profile, KEY_FILES_PUT_OFF, 1);
	return false;
}

/* Who starts a program most often has the same root folder. The inode tells whether it is the same file. */
static int open_mapped(pid_t pid, pid_t parent, const struct proc_mapping *m, int *ret_fd)
{
	struct err err = { 0 };

	if (pid && !target_open_mapping(pid, m, ret_fd, &err))
		return 0;
	if (parent && !target_open_mapping(parent, m, ret_fd, &err))
		return 0;
	log_debug("pid %d: %s", (int)pid, err.text);
	return -1;
}

/* .NET writes its code to a memfd, which grows with it: each mapping would be that of a new file, to be opened and read
 * before any stack through it can be walked. It is memory, unless it begins as a program does. */
static bool is_memory(struct modules *ms, uint64_t key, int fd)
{
	char magic[4];

	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, "\177ELF", sizeof(magic)))
		return false;
	*map_put(&ms->memory, key, 0) = 1;
	return true;
}

uint32_t modules_of_mapping(struct modules *ms, pid_t pid, pid_t parent, const struct proc_mapping *m)
{
	bool unlinked = str_starts(m->path, "/memfd:");
	uint64_t key = mapping_key(m->device_major, m->device_minor, m->inode) ^ map_hash(pid);
	_cleanup_free_ char *path = NULL;
	uint32_t id;
	int fd = -1;

	if (!strcmp(m->path, "[vdso]"))
		return vdso(ms);
	if (!strcmp(m->path, "[vsyscall]") || !strcmp(m->path, "[uprobes]"))
		return MODULES_IGNORED;
	if (m->path[0] != '/' || !m->inode)
		return MODULES_MEMORY;
	if (unlinked && map_get(&ms->memory, key))
		return MODULES_MEMORY;
	id = find_mapped(ms, m);
	if (id)
		return id;
	if (!may_open(ms))
		return MODULES_LATER;
	if (open_mapped(pid, parent, m, &fd))
		return MODULES_MEMORY;
	if (unlinked && is_memory(ms, key, fd)) {
		fd_close(&fd);
		return MODULES_MEMORY;
	}
	path = mem_strdup(m->path);
	if (str_ends(path, " (deleted)"))
		path[strlen(path) - strlen(" (deleted)")] = 0;
	return add_file(ms, fd, path, MODULE_FILE, m->device_major, m->device_minor);
}

enum modules_place modules_place(const struct modules *ms, uint32_t module, uint64_t offset, uint64_t *ret_address)
{
	const struct module *m = &ms->list.v[module];

	if (m->state == STATE_WAITING)
		return MODULES_WAIT;
	return m->state == STATE_PLACED && worker_layout_address(m->layout, offset, ret_address) ? MODULES_THERE : MODULES_NOWHERE;
}

void modules_prepare(struct modules *ms, const char *path)
{
	struct stat st;
	int fd = -1;

	vdso(ms); /* every program has it */
	if (target_open_host(path, &fd, NULL) < 0)
		return;
	if (fstat(fd, &st))
		fd_close(&fd);
	else
		add_file(ms, fd, path, MODULE_FILE, major(st.st_dev), minor(st.st_dev));
}

/* --- what was read --- */

static void say_failed(struct modules *ms, const struct module *m, const struct reader_result *r, const char *what)
{
	if (r->status != -ETIMEDOUT) {
		log_debug("%s: no %s: %s", m->path, what, r->text);
		return;
	}
	log_warn("%s: %s; stacks through it may be cut off", m->path, r->text);
	profile_count(ms->profile, KEY_FILES_GIVEN_UP, 1);
}

static void got_layout(struct modules *ms, const struct reader_result *r)
{
	struct module *m = &ms->list.v[r->id];
	struct profile_module what = { .kind = m->kind, .process = PROFILE_NONE,
				       .path = profile_string(ms->profile, m->path) };

	if (r->status < 0) {
		say_failed(ms, m, r, "code");
		m->state = STATE_NO_ELF;
		ms->sink->table(ms->context, r->id, NULL);
	} else {
		m->state = STATE_PLACED;
		m->layout = mem_alloc(sizeof(*m->layout));
		*m->layout = r->layout;
		what.build_id_size = r->layout.build_id_size;
		memcpy(what.build_id, r->layout.build_id, sizeof(what.build_id));
		ms->sink->announce(ms->context, r->id);
		tell_file(ms, r->id);
	}
	tell_profile(ms, m, &what);
}

static void got_table(struct modules *ms, struct reader_result *r)
{
	if (r->status < 0)
		say_failed(ms, &ms->list.v[r->id], r, "unwind table");
	ms->sink->table(ms->context, r->id, !r->status && r->table.page_count ? &r->table : NULL);
	unwind_done(&r->table);
}

bool modules_step(struct modules *ms)
{
	struct reader_result r;
	bool placed = false;

	while (ms->reader && reader_take(ms->reader, &r)) {
		if (r.what == READER_LAYOUT)
			got_layout(ms, &r);
		else
			got_table(ms, &r);
		placed |= r.what == READER_LAYOUT;
	}
	return placed;
}

void modules_each_table(const struct modules *ms, void (*fn)(void *context, const struct unwind_table *table), void *context)
{
	if (ms->reader)
		reader_each_table(ms->reader, fn, context);
}

bool modules_busy(const struct modules *ms)
{
	return ms->reader && reader_busy(ms->reader);
}

int modules_event(const struct modules *ms)
{
	return ms->reader ? reader_event(ms->reader) : -1;
}

uint32_t modules_profile_id(const struct modules *ms, uint32_t module)
{
	return module < ms->list.n ? ms->list.v[module].profile_id : PROFILE_NONE;
}

uint32_t modules_count(const struct modules *ms)
{
	return ms->known;
}

void modules_hand_over(struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	reader_free(ms->reader);
	ms->reader = NULL;
	for (size_t i = 1; i < ms->list.n; i++) {
		struct module *m = &ms->list.v[i];

		if (m->fd < 0 || m->profile_id == PROFILE_NONE)
			continue;
		take(context, m->profile_id, m->fd);
		m->fd = -1;
	}
}

void modules_copy_files(const struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	for (size_t i = 1; i < ms->list.n; i++) {
		const struct module *m = &ms->list.v[i];
		int fd = m->fd < 0 || m->profile_id == PROFILE_NONE ? -1 : fcntl(m->fd, F_DUPFD_CLOEXEC, 3);

		if (fd >= 0)
			take(context, m->profile_id, fd);
	}
}
