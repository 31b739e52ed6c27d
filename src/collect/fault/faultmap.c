#include "collect/fault/faultmap.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/map.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "collect/shared.h"
#include "profile/profile.h"
#include "target/proc.h"

enum {
	STALE_NS = 100000000, /* mappings older than this, or than the fault, are read again */
	MOST_TRIES = 16,       /* for the path of a file */
};

struct file {
	uint64_t inode;
	uint32_t device;
	uint32_t note;       /* frame; until a path is known, one that says so */
	uint32_t tries;
	bool found;
	char *base;          /* last part of the path */
};

struct space {
	pid_t pid;
	struct proc_maps maps;
	uint64_t read_ns; /* 0 = never */
};

struct faultmap {
	struct profile *profile;
	VEC(struct file) files;
	struct map by_file; /* hash of device and inode to an index of files */
	VEC(struct space) spaces;
	struct map by_pid;
	uint64_t looked_up, unknown;
};

void faultmap_free(struct faultmap *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->files.n; i++)
		free(m->files.v[i].base);
	for (size_t i = 0; i < m->spaces.n; i++)
		proc_maps_done(&m->spaces.v[i].maps);
	vec_done(&m->files);
	vec_done(&m->spaces);
	map_done(&m->by_file);
	map_done(&m->by_pid);
	free(m);
}

uint64_t faultmap_looked_up(const struct faultmap *m)
{
	return m->looked_up;
}

uint64_t faultmap_unknown(const struct faultmap *m)
{
	return m->unknown;
}

static uint32_t note(struct faultmap *m, const char *name)
{
	return profile_named_frame(m->profile, PROFILE_NONE, FRAME_NOTE, name);
}

/* --- the mappings of processes --- */

static struct space *space_of(struct faultmap *m, pid_t pid)
{
	uint64_t *at = map_get(&m->by_pid, pid);

	if (at)
		return &m->spaces.v[*at];
	vec_push(&m->spaces, (struct space){ .pid = pid });
	*map_put(&m->by_pid, pid, 0) = m->spaces.n - 1;
	return &m->spaces.v[m->spaces.n - 1];
}

static void read_again(struct space *s, uint64_t now)
{
	struct proc_maps fresh = { 0 };

	s->read_ns = now;
	if (proc_maps_read(s->pid, false, &fresh) < 0 || !fresh.list.n) {
		proc_maps_done(&fresh); /* it is gone: what was known before is the best there is */
		return;
	}
	proc_maps_done(&s->maps);
	s->maps = fresh;
}

struct faultmap *faultmap_new(struct profile *p, const pid_t *pids, size_t n)
{
	struct faultmap *m = mem_alloc(sizeof(*m));

	m->profile = p;
	for (size_t i = 0; i < n; i++)
		read_again(space_of(m, pids[i]), 0);
	return m;
}

static const struct proc_mapping *at_address(const struct space *s, uint64_t address)
{
	size_t low = vec_search(i, 0, s->maps.list.n, s->maps.list.v[i].end <= address);

	return low < s->maps.list.n && s->maps.list.v[low].start <= address ? &s->maps.list.v[low] : NULL;
}

static bool is_file(const struct proc_mapping *m)
{
	return m->inode && m->path[0] == '/';
}

static bool same_file(const struct proc_mapping *m, const struct shared_fault *f)
{
	return is_file(m) && m->inode == f->inode && m->device_major == f->device >> 20 &&
	       m->device_minor == (f->device & 0xfffff);
}

/* A mapping of f's file, by device and inode. */
static const struct proc_mapping *mapping_of(const struct space *s, const struct shared_fault *f)
{
	const struct proc_mapping *at = at_address(s, f->address);

	if (at && same_file(at, f))
		return at;
	for (size_t i = 0; i < s->maps.list.n; i++)
		if (same_file(&s->maps.list.v[i], f))
			return &s->maps.list.v[i];
	return NULL;
}

/* A process that forked off and ended has mapped what others have. */
static const struct proc_mapping *mapping_of_others(const struct faultmap *m, const struct shared_fault *f)
{
	const struct proc_mapping *found = NULL;

	for (size_t i = 0; i < m->spaces.n && !found; i++)
		found = mapping_of(&m->spaces.v[i], f);
	return found;
}

/* --- files --- */

static void name_file(struct faultmap *m, struct file *file, const char *path)
{
	free(file->base);
	file->base = mem_strdup(str_base_name(path));
	file->note = note(m, path);
}

static struct file *file_of(struct faultmap *m, uint32_t device, uint64_t inode)
{
	uint64_t key = map_hash(inode) ^ (uint64_t)device << 20;
	uint64_t *at = map_get(&m->by_file, key);
	char name[64];

	if (at)
		return &m->files.v[*at];
	vec_push(&m->files, (struct file){ .inode = inode, .device = device });
	*map_put(&m->by_file, key, 0) = m->files.n - 1;
	snprintf(name, sizeof(name), "[file %llu of device %u:%u]", (unsigned long long)inode, device >> 20,
		 device & 0xfffff);
	name_file(m, &m->files.v[m->files.n - 1], name);
	return &m->files.v[m->files.n - 1];
}

/* Its path if the process has it open. A file that is mapped for a moment only often is. Caller frees. */
static char *path_of_descriptor(const struct shared_fault *f)
{
	char folder[32], path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	ssize_t n = -1;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%u/fd", f->pid);
	dir = opendir(folder);
	while (n < 0 && dir && (entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && S_ISREG(st.st_mode) &&
		    st.st_ino == f->inode && major(st.st_dev) == f->device >> 20 && minor(st.st_dev) == (f->device & 0xfffff))
			n = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
	if (dir)
		closedir(dir);
	if (n <= 0 || path[0] != '/')
		return NULL;
	path[n] = 0;
	return mem_strdup(path);
}

static void look_for_path(struct faultmap *m, struct file *file, const struct shared_fault *f, uint64_t now)
{
	struct space *s = space_of(m, f->pid);
	const struct proc_mapping *mapping = mapping_of(s, f);
	_cleanup_free_ char *open_path = NULL;

	if (!mapping) {
		read_again(s, now);
		mapping = mapping_of(s, f);
	}
	if (!mapping)
		mapping = mapping_of_others(m, f);
	if (!mapping)
		open_path = path_of_descriptor(f);
	if (!mapping && !open_path) { /* a file of an overlay has another inode in /proc than in the kernel */
		mapping = at_address(s, f->address);
		if (mapping && !is_file(mapping))
			mapping = NULL;
	}
	file->tries++;
	if (!mapping && !open_path)
		return;
	name_file(m, file, mapping ? mapping->path : open_path);
	file->found = true;
}

static uint32_t with_range(struct faultmap *m, const struct file *file, const struct shared_fault *f,
			   uint32_t stack)
{
	unsigned long long end = f->offset + (1ULL << f->shift);
	char name[512];

	if (f->what != FAULT_MAJOR || f->shift >= 48)
		return stack;
	if (f->size > f->offset && f->size < end)
		end = f->size;
	snprintf(name, sizeof(name), "%.400s at 0x%llx-0x%llx", file->base,
		 (unsigned long long)f->offset, end);
	return profile_stack(m->profile, stack, note(m, name));
}

static uint32_t with_write(struct faultmap *m, const struct shared_fault *f, uint32_t stack)
{
	if (!(f->flags & FAULT_WRITE_PROTECTED))
		return stack;
	return profile_stack(m->profile, stack,
			     note(m, f->flags & FAULT_SHARED ? "[first write]" : "[copy on write]"));
}

static uint32_t with_file(struct faultmap *m, const struct shared_fault *f, uint32_t stack, uint64_t now)
{
	struct file *file = file_of(m, f->device, f->inode);

	if (!file->found && file->tries < MOST_TRIES)
		look_for_path(m, file, f, now);
	stack = profile_stack(m->profile, stack, file->note);
	return with_range(m, file, f, with_write(m, f, stack));
}

/* The address only is known: look into the mappings, as they are now or were a moment ago. */
static uint32_t with_address(struct faultmap *m, const struct shared_fault *f, uint32_t stack, uint64_t now)
{
	struct space *s = space_of(m, f->pid);
	const struct proc_mapping *mapping;
	struct shared_fault known = *f;

	m->looked_up += f->count;
	if (s->read_ns < f->time_ns || now - s->read_ns > STALE_NS)
		read_again(s, now);
	mapping = at_address(s, f->address);
	if (!mapping) {
		m->unknown += f->count;
		return profile_stack(m->profile, stack, note(m, "[unknown]"));
	}
	if (!is_file(mapping)) {
		uint32_t what = note(m, mapping->path[0] ? mapping->path : "[anonymous]");

		return with_write(m, f, profile_stack(m->profile, stack, what));
	}
	known.device = mapping->device_major << 20 | mapping->device_minor;
	known.inode = mapping->inode;
	while ((mapping->offset + mapping->end - mapping->start - 1) >> known.shift >= SHARED_FAULT_RANGES)
		known.shift++;
	known.offset = (f->address - mapping->start + mapping->offset) >> known.shift << known.shift;
	return with_file(m, &known, stack, now);
}

uint32_t faultmap_stack(struct faultmap *m, const struct shared_fault *f, uint32_t stack, uint64_t now)
{
	static const char *const names[] = { [FAULT_HEAP] = "[heap]", [FAULT_STACK] = "[stack]",
					     [FAULT_ANONYMOUS] = "[anonymous]" };

	if (f->where == FAULT_FILE)
		return with_file(m, f, stack, now);
	if (f->where == FAULT_UNKNOWN)
		return with_address(m, f, stack, now);
	if (f->where >= ARRAY_LEN(names))
		return stack;
	return with_write(m, f, profile_stack(m->profile, stack, note(m, names[f->where])));
}
