#include "import/perf/perfdatamodule.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "elf/demangle.h"
#include "elf/unwind/rule.h"
#include "import/import.h"
#include "import/perf/perfdatafacts.h"
#include "profile/profile.h"
#include "target/kallsyms.h"
#include "target/open.h"

enum { LIST_BYTES = 256 << 20 }; /* of the kernel's symbols */

static const char deleted[] = " (deleted)";

void perfdatamodules_done(struct perfdatamodules *m)
{
	vec_done_each(&m->list, e, unwind_done(&e->table); fd_close(&e->fd));
	map_done(&m->index);
	worker_free(m->worker);
	kallsyms_free(m->symbols);
}

static struct worker *worker_of(struct perfdatamodules *m)
{
	if (!m->worker)
		m->worker = worker_new();
	return m->worker;
}

/* --- which --- */

static enum profile_module_kind kind_of(const char *path)
{
	if (!strcmp(path, "[vdso]"))
		return MODULE_VDSO;
	/* "//anon", "/dev/zero", "[heap]", "anon_inode:…", "/SYSV…", "" */
	if (path[0] != '/' || path[1] == '/' || str_starts(path, "/dev/zero") || str_starts(path, "/SYSV") || str_starts(path, "/anon_hugepage"))
		return MODULE_JIT;
	return MODULE_FILE;
}

static uint32_t add_module(struct perfdatamodules *m, const struct profile_module *x)
{
	vec_push(&m->list, (struct perfdatamodule){ .id = profile_add_module(m->p, x), .fd = -1 });
	return m->list.n - 1;
}

/* The slot of a module: 1 + its index, 0 = it is new. */
static uint64_t *slot_of(struct perfdatamodules *m, uint32_t path, const struct profile_module *x)
{
	uint64_t key = map_pair(x->kind == MODULE_JIT ? x->process : x->kind == MODULE_KERNEL ? UINT32_MAX : 0, path);

	if (x->build_id_size)
		key ^= map_hash_bytes(x->build_id, x->build_id_size);
	return map_put(&m->index, map_hash(key), 0);
}

uint32_t perfdatamodules_find(struct perfdatamodules *m, const char *path, const uint8_t *build_id, uint8_t size, uint32_t process)
{
	struct profile_module x = { .kind = kind_of(path), .process = PROFILE_NONE };
	uint64_t *slot;

	if (x.kind == MODULE_JIT) {
		x.process = process;
		path = "[jit]";
	}
	x.path = profile_string(m->p, path);
	if (x.kind == MODULE_FILE && !size) {
		const struct perfdatafacts_build *b = perfdatafacts_build_of(m->facts, path, false);

		build_id = b ? b->id : NULL;
		size = b ? b->size : 0;
	}
	if (x.kind == MODULE_FILE && size) {
		x.build_id_size = MIN(size, sizeof(x.build_id));
		memcpy(x.build_id, build_id, x.build_id_size);
	}
	slot = slot_of(m, x.path, &x);
	if (!*slot)
		*slot = add_module(m, &x) + 1;
	return *slot - 1;
}

uint32_t perfdatamodules_kernel(struct perfdatamodules *m, const char *path)
{
	struct profile_module x = { .kind = MODULE_KERNEL, .process = PROFILE_NONE };
	const char *base = str_base_name(path), *dot = strstr(base, ".ko");
	_cleanup_free_ char *name = NULL;
	uint64_t *slot;

	if (str_starts(path, "[kernel.kallsyms]") || str_starts(path, "[guest.kernel"))
		name = mem_strdup("[kernel]");
	else if (path[0] == '[')
		name = mem_strdup(path);
	else
		name = mem_printf("[%.*s]", dot ? (int)(dot - base) : (int)strlen(base), base);
	/* The kernel's own list has no hyphens in the names of modules. */
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	x.path = profile_string(m->p, name);
	slot = slot_of(m, x.path, &x);
	if (!*slot)
		*slot = add_module(m, &x) + 1;
	return *slot - 1;
}

/* --- its file --- */

/* Is the file the one that was recorded? */
static bool fits(struct perfdatamodules *m, const struct profile_module *x, int fd)
{
	struct worker_identity id = { 0 };
	struct stat st;

	if (x->build_id_size)
		return !worker_identify(worker_of(m), fd, &id, NULL) && id.build_id_size >= x->build_id_size &&
		       !memcmp(id.build_id, x->build_id, x->build_id_size);
	return !m->recorded_wall_ns || (!fstat(fd, &st) && (uint64_t)st.st_mtim.tv_sec * 1000000000ULL <= m->recorded_wall_ns);
}

static int open_fitting(struct perfdatamodules *m, const struct profile_module *x, const char *path, const char *root)
{
	int fd = -1;

	if (root ? target_open_below(root, path, &fd, NULL) : target_open_host(path, &fd, NULL))
		return -1;
	if (!fits(m, x, fd))
		fd_close(&fd);
	return fd;
}

/* --symbols: the file itself, a folder with it, or the root of an image. */
static int open_symbols(struct perfdatamodules *m, const struct profile_module *x, const char *path)
{
	const char *name = str_base_name(path);

	for (const char *const *s = m->options->symbols; s && *s; s++) {
		_cleanup_free_ char *inside = mem_printf("%s/%s", *s, name);
		int fd = -1;

		/* With a build-id to compare, the name does not matter. */
		if (x->build_id_size || !strcmp(str_base_name(*s), name))
			fd = open_fitting(m, x, *s, NULL);
		if (fd < 0)
			fd = open_fitting(m, x, inside, NULL);
		if (fd < 0)
			fd = open_fitting(m, x, path, *s);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* perf keeps copies of what it recorded in ~/.debug. */
static int open_kept(struct perfdatamodules *m, const struct profile_module *x)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	char hex[41] = "";

	if (!home || x->build_id_size < 2)
		return -1;
	for (int i = 0; i < x->build_id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", x->build_id[i]);
	path = mem_printf("%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2);
	return open_fitting(m, x, path, NULL);
}

/* A copy of our own vdso: every process has the same. */
static int open_vdso(void)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	int fd = image ? memfd_create("gasflame-vdso", MFD_CLOEXEC) : -1;

	/* The second page is not always there: write() then stops short. */
	if (fd >= 0 && write(fd, image, 2 * sysconf(_SC_PAGESIZE)) <= 0)
		fd_close(&fd);
	return fd;
}

static void open_module(struct perfdatamodules *m, struct perfdatamodule *e)
{
	struct profile_module x = m->p->modules.v[e->id];
	const char *shown = profile_str(m->p, x.path);
	bool gone = str_ends(shown, deleted);
	_cleanup_free_ char *path = mem_strndup(shown, strlen(shown) - (gone ? sizeof(deleted) - 1 : 0));

	e->opened = true;
	/* The kernel has it: only that very kernel will do. */
	if (x.kind == MODULE_VDSO && perfdatamodules_kernel_is_ours(m) && m->kernel_proven)
		e->fd = open_vdso();
	if (x.kind != MODULE_FILE)
		return;
	/* What was deleted and has no build-id cannot be known again. */
	if (!gone || x.build_id_size)
		e->fd = open_fitting(m, &x, path, m->options->root);
	if (e->fd < 0)
		e->fd = open_symbols(m, &x, path);
	if (e->fd < 0)
		e->fd = open_kept(m, &x);
}

static struct perfdatamodule *opened(struct perfdatamodules *m, uint32_t module)
{
	struct perfdatamodule *e = &m->list.v[module];

	if (!e->opened)
		open_module(m, e);
	return e;
}

static const struct worker_layout *layout_of(struct perfdatamodules *m, uint32_t module)
{
	struct perfdatamodule *e = opened(m, module);
	struct profile_module *x = &m->p->modules.v[e->id];

	if (e->fd < 0)
		return NULL;
	if (!e->layout_read && worker_layout(worker_of(m), e->fd, &e->layout, NULL) < 0)
		e->layout = (struct worker_layout){ 0 };
	e->layout_read = true;
	if (x->kind == MODULE_FILE && !x->build_id_size) {
		x->build_id_size = MIN(e->layout.build_id_size, sizeof(x->build_id));
		memcpy(x->build_id, e->layout.build_id, x->build_id_size);
	}
	return e->layout.part_count ? &e->layout : NULL;
}

uint64_t perfdatamodules_bias(struct perfdatamodules *m, uint32_t module, uint64_t start, uint64_t file_offset)
{
	enum profile_module_kind kind = m->p->modules.v[m->list.v[module].id].kind;
	const struct worker_layout *l;
	uint64_t address;

	if (kind == MODULE_JIT)
		return 0;
	if (kind == MODULE_VDSO)
		return start;
	l = kind == MODULE_FILE ? layout_of(m, module) : NULL;
	if (!l || !worker_layout_address(l, file_offset, &address))
		return start - file_offset;
	return start - address;
}

uint64_t perfdatamodules_rule(struct perfdatamodules *m, uint32_t module, uint64_t address)
{
	struct perfdatamodule *e = opened(m, module);

	if (!e->table_read) {
		e->table_read = true;
		if (e->fd >= 0 && worker_unwind(worker_of(m), e->fd, &e->table, NULL) < 0)
			e->table = (struct unwind_table){ 0 };
	}
	return e->table.page_count ? unwind_find(&e->table, address) : RULE_FRAME_POINTER;
}

bool perfdatamodules_follows_call(struct perfdatamodules *m, uint32_t module, uint64_t address)
{
	const struct worker_layout *l = layout_of(m, module);
	uint8_t b[8];

	for (uint32_t i = 0; l && i < l->part_count; i++) {
		uint64_t in = address - l->parts[i].address;

		if (in < sizeof(b) || in > l->parts[i].size)
			continue;
		if (pread(m->list.v[module].fd, b, sizeof(b), l->parts[i].offset + in - sizeof(b)) != sizeof(b))
			return false;
		return unwind_ends_with_call(m->machine, b);
	}
	return false;
}

/* --- the kernel --- */

/* The build-id of the kernel that runs, from its ELF notes. Returns its size. */
static size_t own_kernel(uint8_t id[20])
{
	enum { NOTES_BYTES = 1 << 16, NOTE_BUILD_ID = 3 };
	_cleanup_free_ char *text = NULL;
	struct reader r;
	size_t n;

	if (fd_read_path("/sys/kernel/notes", NOTES_BYTES, &text, &n) < 0)
		return 0;
	r = reader_of(text, n);
	while (reader_more(&r)) {
		uint32_t name = reader_u32(&r), size = reader_u32(&r), type = reader_u32(&r);
		const uint8_t *who = reader_bytes(&r, (name + 3ULL) & ~3ULL), *what = reader_bytes(&r, (size + 3ULL) & ~3ULL);

		if (who && what && type == NOTE_BUILD_ID && name == 4 && !memcmp(who, "GNU", 4) && size <= 20) {
			memcpy(id, what, size);
			return size;
		}
	}
	return 0;
}

bool perfdatamodules_kernel_is_ours(struct perfdatamodules *m)
{
	const struct perfdatafacts *f = m->facts;
	const struct perfdatafacts_build *b = perfdatafacts_build_of(f, "", true);
	uint8_t id[20];
	size_t n;

	if (m->kernel_known)
		return m->kernel_known > 0;
	n = own_kernel(id);
	/* Without build-ids the symbolizer decides, by the machine's name, the release and the time: it must be told these. */
	m->kernel_proven = b && n && b->size && n >= b->size && !memcmp(id, b->id, b->size);
	if (b && n && b->size)
		m->kernel_known = m->kernel_proven ? 1 : -1;
	else
		m->kernel_known = f->host && *f->host && f->release && *f->release ? 1 : -1;
	return m->kernel_known > 0;
}

/* perf keeps the list of symbols, too, by the build-id. */
static uint64_t find_start(const struct kallsyms *list)
{
	for (size_t i = 0, n = kallsyms_count(list); i < n; i++) {
		uint64_t address;
		const char *name = kallsyms_name(list, i, &address);

		if (!strcmp(name, "_text") || !strcmp(name, "_stext"))
			return address;
	}
	return 0;
}

static void read_list(struct perfdatamodules *m, const struct perfdatafacts_build *b)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	_cleanup_fd_ int fd = -1;
	char hex[41] = "", *text;
	size_t n;

	for (int i = 0; i < b->size; i++)
		snprintf(hex + 2 * i, 3, "%02x", b->id[i]);
	path = mem_printf("%s/.debug/[kernel.kallsyms]/%s/kallsyms", home ? home : "", hex);
	if (!home || target_open_host(path, &fd, NULL) || fd_read_file(fd, LIST_BYTES, &text, &n) < 0)
		return;
	m->symbols = kallsyms_parse(text);
	m->symbols_start = m->symbols && !kallsyms_hidden(m->symbols) ? find_start(m->symbols) : 0;
}

bool perfdatamodules_name_kernel(struct perfdatamodules *m, uint32_t frame)
{
	struct profile *p = m->p;
	const struct perfdatafacts_build *b = perfdatafacts_build_of(m->facts, "", true);
	struct profile_frame f = p->frames.v[frame];
	struct profile_function function = { .module = f.module };
	_cleanup_free_ char *shown = NULL;
	const char *name, *module;

	if (!m->symbols_read && b && b->size)
		read_list(m, b);
	m->symbols_read = true;
	if (!m->symbols_start || strcmp(profile_str(p, p->modules.v[f.module].path), "[kernel]"))
		return false;
	name = kallsyms_find(m->symbols, m->symbols_start + f.address, &module);
	if (!name || *module)
		return false;
	shown = demangle(name, 0);
	function.name = profile_string(p, shown);
	function.linkage = profile_string(p, name);
	if (function.linkage == function.name)
		function.linkage = 0;
	profile_set_lines(p, frame, &(struct profile_line){ .function = profile_function(p, &function) }, 1);
	return true;
}
