/*
 * pslook.c - the programs of `ps`: which allocator, and whether symbols and unwind tables are there.
 *
 * Files are opened as the recorder opens them and read by the unprivileged child; each file once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/map.h"
#include "base/text/str.h"
#include "cmd/ps/psrows.h"
#include "elf/worker/worker.h"
#include "target/open.h"
#include "target/processnames.h"

#define LOOK_NS 500000000ULL /* into one file: a huge one shall not take all of the time */

struct file {
	uint64_t device, inode;
	bool read;
	struct symbols_info info;
};

struct looker {
	struct worker *worker;
	VEC(struct file) files;
};

/* The allocator that a library with this name is; NULL = none. */
static const char *library_allocator(const char *name)
{
	static const struct {
		const char *start, *allocator;
	} known[] = {
		{ "libjemalloc", "jemalloc" }, { "libmimalloc", "mimalloc" }, { "libtcmalloc", "tcmalloc" },
		{ "libsnmalloc", "snmalloc" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_starts(name, known[i].start))
			return known[i].allocator;
	return NULL;
}

static const char *c_library(const char *name)
{
	if (str_starts(name, "libc.so") || str_starts(name, "libc-2"))
		return "glibc";
	return str_starts(name, "ld-musl") || str_starts(name, "libc.musl") ? "musl" : NULL;
}

/* Returns the facts about the file behind a mapping; NULL with the reason as errno. */
static const struct file *read_file(struct looker *l, pid_t pid, const struct proc_mapping *m, int *ret_error)
{
	struct file f = { .device = map_pair(m->device_major, m->device_minor), .inode = m->inode };
	_cleanup_fd_ int fd = -1;
	int r;

	for (size_t i = 0; i < l->files.n; i++)
		if (l->files.v[i].inode == f.inode && l->files.v[i].device == f.device)
			return &l->files.v[i];
	r = target_open_mapping(pid, m, &fd, NULL);
	if (!r)
		r = worker_inspect(l->worker, fd, &f.info, NULL);
	f.read = !r;
	*ret_error = r;
	vec_push(&l->files, f);
	return &l->files.v[l->files.n - 1];
}

static enum ps_symbols symbols_of(const struct symbols_info *i)
{
	if (i->symtab || i->minidebug || i->go)
		return i->debug_info || i->go ? PS_SYMBOLS_DEBUG : PS_SYMBOLS_TABLE;
	if (*i->debuglink)
		return PS_SYMBOLS_ELSEWHERE;
	return i->dynsym && i->symbol_count ? PS_SYMBOLS_EXPORTED : PS_SYMBOLS_NONE;
}

static void look(struct looker *l, struct ps_row *row)
{
	const char *library = NULL, *libc = NULL;
	const struct file *program = NULL;
	struct proc_maps maps;
	struct stat exe;
	char path[64];
	int r = proc_maps_read(row->pid, true, &maps), error = 0;

	row->looked = true;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)row->pid);
	if (r || stat(path, &exe)) {
		row->problem = r == -ESRCH ? "gone" : "no permission";
		if (!r)
			proc_maps_done(&maps);
		return;
	}
	for (size_t i = 0; i < maps.list.n; i++) {
		const struct proc_mapping *m = &maps.list.v[i];
		const char *name = processnames_base(m->path);

		library = library ? library : library_allocator(name);
		libc = libc ? libc : c_library(name);
		if (!program && m->inode && m->inode == exe.st_ino)
			program = read_file(l, row->pid, m, &error);
	}
	proc_maps_done(&maps);
	if (!program || !program->read) {
		row->problem = error == -EINVAL ? "no regular file" : "not readable";
	} else {
		row->symbols = symbols_of(&program->info);
		row->unwind = program->info.eh_frame || program->info.debug_frame;
	}
	if (library)
		snprintf(row->allocator, sizeof(row->allocator), "%s", library);
	else if (program && program->read && *program->info.allocator)
		snprintf(row->allocator, sizeof(row->allocator), "%s, static", program->info.allocator);
	else if (libc)
		snprintf(row->allocator, sizeof(row->allocator), "%s", libc);
}

void psrows_look(struct psrows *rows, uint64_t deadline_ns)
{
	struct looker l = { .worker = worker_new() };

	worker_set_timeout(l.worker, LOOK_NS);
	for (size_t i = 0; i < rows->list.n; i++) {
		if (clock_mono_ns() < deadline_ns)
			look(&l, &rows->list.v[i]);
		else
			rows->not_looked++;
	}
	vec_done(&l.files);
	worker_free(l.worker);
}
