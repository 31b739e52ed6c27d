#include "collect/heap/gotslots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/heap/blob/blob.h"
#include "elf/probe/allocator.h"
#include "elf/worker/worker.h"
#include "target/open.h"
#include "target/proc.h"

struct module {
	uint64_t device, inode, bias;
	uint64_t code_start, code_end; /* its executable mapping */
	bool c_library;
	struct allocator_info info;
};

struct search {
	pid_t pid;
	int memory; /* of the process */
	struct gotslots *out;
	VEC(struct module *) modules; /* the program first */
	struct map by_address;        /* to functions */
	struct map seen;              /* slots */
	uint32_t inner;               /* the module whose slots are looked at, if it is a library that is malloc */
};

static bool is_c_library(const char *path)
{
	const char *name = str_base_name(path);

	return str_starts(name, "libc.so") || str_starts(name, "libc-2") || str_starts(name, "ld-musl") ||
	       str_starts(name, "libc.musl");
}

static int read_file(struct worker *w, int fd, uint64_t offset, uint64_t *ret_address, struct allocator_info *ret,
		     struct err *err)
{
	int r = worker_offset_to_address(w, fd, offset, ret_address, err);

	return r < 0 ? r : worker_allocator(w, fd, ret, err);
}

/* Files that are no programs have no slots; one that could not be read may have had some. */
static bool is_failure(int r)
{
	return r == -EIO || r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -ECHILD || r == -ETIMEDOUT || r == -EPERM ||
	       r == -EACCES;
}

/* Reads each file that has code in the process once. Files that cannot be read have no slots that we know. */
static void read_module(struct search *s, struct worker *w, const struct proc_mapping *m)
{
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	struct module *module;
	uint64_t address;
	int r;

	for (size_t i = 0; i < s->modules.n; i++)
		if (s->modules.v[i]->inode == m->inode &&
		    s->modules.v[i]->device == map_pair(m->device_major, m->device_minor))
			return;
	r = target_open_mapping(s->pid, m, &fd, &err);
	module = mem_alloc(sizeof(*module));
	r = r < 0 ? r : read_file(w, fd, m->offset, &address, &module->info, &err);
	if (fd >= 0 && is_failure(r)) /* it may pass */
		r = read_file(w, fd, m->offset, &address, &module->info, &err);
	if (r < 0) {
		if (is_failure(r))
			log_warn("what %s allocates in process %d is not seen: %s", m->path, s->pid, err.text);
		free(module);
		return;
	}
	module->device = map_pair(m->device_major, m->device_minor);
	module->inode = m->inode;
	module->bias = m->start - address;
	module->code_start = m->start;
	module->code_end = m->end;
	module->c_library = is_c_library(m->path);
	vec_push(&s->modules, module);
}

/* Does the file define what others call malloc? Then its operator new is a function of the allocator. */
static bool is_allocator(const struct module *m)
{
	for (uint32_t i = 0; i < m->info.function_count; i++)
		if (allocator_names[m->info.functions[i].name].shape == ALLOCATOR_SIZE &&
		    !allocator_names[m->info.functions[i].name].inside)
			return true;
	return false;
}

/* Is it a library that stands in for malloc? What it calls of itself was seen when it was called: mimalloc's aligned_alloc
 * calls mi_malloc_aligned through a slot. The C library has other functions that allocate. */
static bool is_inner(const struct module *m)
{
	for (uint32_t i = 0; i < m->info.function_count && !m->c_library; i++)
		if (!strcmp(allocator_names[m->info.functions[i].name].name, "malloc"))
			return true;
	return false;
}

static void add_functions(struct search *s)
{
	for (uint32_t k = 0; k < s->modules.n; k++) {
		const struct module *m = s->modules.v[k];

		for (uint32_t i = 0; i < m->info.function_count; i++) {
			const struct allocator_function *f = &m->info.functions[i];
			uint64_t address = f->address + m->bias;
			uint64_t *known = map_put(&s->by_address, address, UINT64_MAX);

			if (allocator_names[f->name].inside && !is_allocator(m))
				continue;
			/* Of several names the first will do for a slot that is filled in; those that are not are looked
			 * up by each of them. */
			if (*known == UINT64_MAX)
				*known = s->out->functions.n;
			vec_push(&s->out->functions, (struct gotslots_function){ address, f->name, k });
		}
	}
}

static bool read_word(const struct search *s, uint64_t address, uint64_t *ret)
{
	return pread(s->memory, ret, sizeof(*ret), address) == sizeof(*ret);
}

static void add_slot(struct search *s, uint64_t address, uint64_t value, uint32_t function)
{
	uint64_t *seen = map_put(&s->seen, address, 0);

	if (allocator_names[s->out->functions.v[function].name].shape == ALLOCATOR_CONTROL ||
	    s->out->functions.v[function].module == s->inner)
		return;
	if (!*seen)
		vec_push(&s->out->slots, (struct gotslots_slot){ address, value, function });
	*seen = 1;
}

/* Slots by what they hold. */
static void scan_range(struct search *s, uint64_t start, uint64_t end)
{
	size_t n = (end - start) / 8;
	_cleanup_free_ uint64_t *words = mem_resize(NULL, n + 1, sizeof(*words));
	ssize_t got = pread(s->memory, words, n * 8, start);

	for (ssize_t i = 0; i < got / 8; i++) {
		uint64_t *function = map_get(&s->by_address, words[i]);

		if (function && *function != UINT64_MAX)
			add_slot(s, start + i * 8, words[i], *function);
	}
}

/* The function of that name that the loader will find: the program's, a library's, and the C library's last. */
static bool find_function(const struct search *s, uint32_t name, uint32_t *ret)
{
	bool found = false;

	for (uint32_t i = 0; i < s->out->functions.n; i++) {
		const struct gotslots_function *f = &s->out->functions.v[i];

		if (f->name != name)
			continue;
		if (!found || s->modules.v[s->out->functions.v[*ret].module]->c_library)
			*ret = i;
		found = true;
	}
	return found;
}

/* Slots by name that are not filled in yet: they lead back into the file's own stubs. */
static void add_unbound(struct search *s, const struct module *m)
{
	for (uint32_t i = 0; i < m->info.slot_count; i++) {
		uint64_t address = m->info.slots[i].address + m->bias, value;
		uint32_t function = 0;

		if (read_word(s, address, &value) && value >= m->code_start && value < m->code_end &&
		    !map_get(&s->by_address, value) && find_function(s, m->info.slots[i].name, &function))
			add_slot(s, address, value, function);
	}
}

static bool allocates(uint32_t name)
{
	return allocator_names[name].shape != ALLOCATOR_FREE && !allocator_names[name].inside;
}

/* Does the program define an allocator that it does not call through slots of its own, the first own_slots? A linker
 * makes such calls direct where it can. A static C library has a slot or two for malloc, and only for itself. */
static bool calls_directly(const struct search *s, size_t own_slots)
{
	const struct gotslots *out = s->out;
	bool has = false, c_library = false;

	for (size_t i = 0; i < s->modules.n; i++)
		c_library |= s->modules.v[i]->c_library;
	for (size_t i = 0; i < out->functions.n; i++)
		has |= !out->functions.v[i].module && allocates(out->functions.v[i].name);
	for (size_t i = 0; i < own_slots && has; i++) {
		const struct gotslots_function *f = &out->functions.v[out->slots.v[i].function];

		has = f->module || !allocates(f->name) || (!c_library && !*allocator_names[f->name].family);
	}
	return has;
}

static void name_allocators(struct search *s)
{
	struct gotslots *out = s->out;
	size_t n = 0;

	for (size_t i = 0; i < out->slots.n; i++) {
		const struct gotslots_function *f = &out->functions.v[out->slots.v[i].function];
		const char *family = allocator_names[f->name].family;
		const char *name = *family ? family : s->modules.v[f->module]->c_library ? "the C library's malloc" : "malloc";

		if (n < sizeof(out->allocators) && !strstr(out->allocators, name))
			n += snprintf(out->allocators + n, sizeof(out->allocators) - n, "%s%s", n ? ", " : "", name);
	}
}

int gotslots_find(pid_t pid, struct worker *w, struct gotslots *ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", pid);
	_cleanup_fd_ int memory = open(path, O_RDONLY | O_CLOEXEC);
	struct search s = { .pid = pid, .memory = memory, .out = ret };
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };
	size_t own_slots = 0;
	int r;

	*ret = (struct gotslots){ 0 };
	if (memory < 0)
		return err_errno(err, errno, "cannot read the memory of process %d", pid);
	r = proc_maps_read(pid, true, &maps);
	if (r < 0)
		return err_errno(err, -r, "cannot read the mappings of process %d", pid);
	if (!maps.list.n)
		return err_set(err, ESRCH, "process %d has ended, or its main thread has", pid);
	for (size_t i = 0; i < maps.list.n; i++)
		if (maps.list.v[i].inode && !str_starts(maps.list.v[i].path, "/memfd:" BLOB_NAMES))
			read_module(&s, w, &maps.list.v[i]);
	add_functions(&s);
	for (size_t k = 0; k < s.modules.n; k++) {
		const struct module *m = s.modules.v[k];

		s.inner = k && is_inner(m) ? k : UINT32_MAX;
		for (uint32_t i = 0; i < m->info.range_count; i++)
			scan_range(&s, m->info.ranges[i].start + m->bias, m->info.ranges[i].end + m->bias);
		add_unbound(&s, m);
		/* Full RELRO files without section names are covered by names alone. */
		for (uint32_t i = 0; i < m->info.slot_count; i++)
			scan_range(&s, m->info.slots[i].address + m->bias, m->info.slots[i].address + m->bias + 8);
		if (!k)
			own_slots = ret->slots.n;
	}
	ret->direct = calls_directly(&s, own_slots);
	name_allocators(&s);
	vec_done_each(&s.modules, e, free(*e));
	map_done(&s.by_address);
	map_done(&s.seen);
	return 0;
}

void gotslots_done(struct gotslots *s)
{
	vec_done(&s->functions);
	vec_done(&s->slots);
}
