#include "symbol/jit/jitfiles.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"
#include "symbol/stillrunning.h"
#include "target/open.h"
#include "target/proc.h"

enum {
	MAX_PROCESSES = 1024, /* held at a time: each takes a few descriptors */
	MAX_DUMPS = 16,       /* of one process; a run time has one */
	MAX_ENVIRON = 1 << 20,
};

struct jitfiles {
	VEC(struct jitfiles_process) list;
	size_t modules; /* of the profile that were looked at */
};

struct jitfiles *jitfiles_new(void)
{
	return mem_alloc(sizeof(struct jitfiles));
}

static void forget_folders(struct jitfiles_process *x)
{
	for (unsigned i = 0; i < x->folder_count; i++) {
		fd_close(&x->folders[i].folder);
		fd_close(&x->folders[i].map);
		free(x->folders[i].path);
	}
	x->folder_count = 0;
}

static void forget(struct jitfiles_process *x)
{
	forget_folders(x);
	vec_done_each(&x->dumps, d, fd_close(&d->fd); free(d->path));
}

void jitfiles_free(struct jitfiles *f)
{
	if (!f)
		return;
	vec_done_each(&f->list, x, forget(x));
	free(f);
}

pid_t jitfiles_dump_number(const char *path)
{
	const char *base = strrchr(path, '/');
	long number = 0;

	if (!base || !str_starts(base + 1, "jit-"))
		return 0;
	for (base += 5; isdigit((unsigned char)*base) && number < INT32_MAX / 10; base++)
		number = number * 10 + (*base - '0');
	return strcmp(base, ".dump") ? 0 : number;
}

/* --- folders --- */

static void add_folder(struct jitfiles_process *x, int folder, const char *name)
{
	struct stat a, b;

	if (folder < 0)
		return;
	for (unsigned i = 0; i < x->folder_count; i++)
		if (!fstat(folder, &a) && !fstat(x->folders[i].folder, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
			fd_close(&folder);
			return;
		}
	if (x->folder_count >= JITFILES_FOLDERS) {
		fd_close(&folder);
		return;
	}
	x->folders[x->folder_count++] = (struct jitfiles_folder){
		.folder = folder, .map = -1, .path = mem_printf("%s/perf-%d.map", name, (int)x->number),
	};
}

/* TMPDIR moves the maps of .NET, PHP and others; the other two are .NET's own. */
static void add_folders_of_environ(struct jitfiles_process *x)
{
	static const char *const names[] = { "DOTNET_PerfMapJitDumpPath=", "COMPlus_PerfMapJitDumpPath=", "TMPDIR=" };
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)x->pid);
	if (fd_read_path(path, MAX_ENVIRON, &text, &n))
		return;
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			const char *folder = str_starts(at, names[i]) ? at + strlen(names[i]) : "";

			if (*folder == '/' && strlen(folder) < 1024)
				add_folder(x, target_open_folder(x->pid, folder, NULL), folder);
		}
}

/* --- maps --- */

/* If the process has ended and its user is unknown, the file must be ours, and no older than the recording. */
static bool is_owner(const struct jitfiles_process *x, const struct profile *p, const struct stat *st)
{
	const char *sudo = getenv("SUDO_UID");
	uint64_t uid;

	if (x->owner_known)
		return st->st_uid == x->uid || st->st_uid == x->euid || !st->st_uid;
	if (st->st_mtim.tv_sec * 1000000000ULL + 1000000000ULL < p->start_wall_ns)
		return false; /* of an older process with that number */
	return st->st_uid == geteuid() ||
	       (sudo && !str_parse_uint(sudo, 0, UINT32_MAX - 1, &uid) && st->st_uid == uid);
}

static bool note_change(struct jitfiles_folder *o, const struct stat *st)
{
	uint64_t changed_ns = st->st_mtim.tv_sec * 1000000000ULL + st->st_mtim.tv_nsec;
	bool same = o->inode == st->st_ino && o->size == (uint64_t)st->st_size && o->changed_ns == changed_ns;

	o->inode = st->st_ino;
	o->size = st->st_size;
	o->changed_ns = changed_ns;
	return !same;
}

/* The file of that name, where there is one; else the one that was there before is kept. */
static bool look_at_map(struct jitfiles_process *x, const struct profile *p, struct jitfiles_folder *o)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (target_open_in(o->folder, str_base_name(o->path), &fd) || fstat(fd, &st))
		return false;
	o->refused = !is_owner(x, p, &st);
	/* The number of one that has ended may be another's by now, and so may be its file. */
	if (o->refused || (!x->pid && o->map >= 0 && o->inode != st.st_ino))
		return false;
	fd_close(&o->map);
	o->map = fd;
	fd = -1;
	return note_change(o, &st);
}

/* --- dumps --- */

/* Takes over fd. */
static bool add_dump(struct jitfiles_process *x, const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || x->dumps.n >= MAX_DUMPS) {
		fd_close(&fd);
		return false;
	}
	for (size_t i = 0; i < x->dumps.n; i++)
		if (x->dumps.v[i].device == st.st_dev && x->dumps.v[i].inode == st.st_ino) {
			fd_close(&fd);
			return false;
		}
	vec_push(&x->dumps, (struct jitfiles_dump){ fd, mem_strdup(path), st.st_dev, st.st_ino, st.st_size });
	return true;
}

/* A run time maps its dump so that profilers find it. */
static bool look_for_dumps(struct jitfiles_process *x)
{
	struct proc_maps maps = { 0 };
	bool found = false;

	if (!x->pid || proc_maps_read(x->pid, true, &maps) < 0)
		return false;
	for (size_t i = 0; i < maps.list.n; i++) {
		char *path = maps.list.v[i].path;
		int fd = -1;

		if (str_ends(path, " (deleted)"))
			path[strlen(path) - strlen(" (deleted)")] = 0;
		if (jitfiles_dump_number(path) && !target_open_mapping(x->pid, &maps.list.v[i], &fd, NULL))
			found |= add_dump(x, path, fd);
	}
	proc_maps_done(&maps);
	return found;
}

static bool have_grown(struct jitfiles_process *x)
{
	bool grown = false;

	for (size_t i = 0; i < x->dumps.n; i++) {
		struct jitfiles_dump *d = &x->dumps.v[i];
		struct stat st;

		if (fstat(d->fd, &st) || d->size == (uint64_t)st.st_size)
			continue;
		d->size = st.st_size;
		grown = true;
	}
	return grown;
}

/* The process has ended, and nobody looked before: the host's files, unless it was in a container. */
static void add_host_files(struct jitfiles_process *x, const struct profile *p)
{
	const struct profile_process *process = &p->processes.v[x->process];

	if (process->inner_pid && process->inner_pid != process->pid)
		return;
	add_folder(x, open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC), "/tmp");
	for (size_t i = 0; i < p->modules.n; i++) {
		const char *path = profile_str(p, p->modules.v[i].path);
		struct stat st;
		int fd = -1;

		if (p->modules.v[i].kind != MODULE_FILE || jitfiles_dump_number(path) != x->number || target_open_host(path, &fd, NULL))
			continue;
		if (!fstat(fd, &st) && is_owner(x, p, &st))
			add_dump(x, path, fd);
		else
			fd_close(&fd);
	}
}

/* --- processes --- */

/* Learns the user, the number and the folders of a process; after exec all of them may be others. */
static void learn(struct jitfiles_process *x, const struct profile *p)
{
	struct proc_status status;
	int tmp;

	forget_folders(x);
	x->pid = stillrunning_pid(p, x->process);
	x->number = p->processes.v[x->process].pid;
	x->start_ticks = x->pid ? proc_started(x->pid) : 0;
	if (!x->pid || !x->start_ticks || proc_status(x->pid, &status) < 0) {
		x->pid = 0;
		add_host_files(x, p);
		return;
	}
	x->number = status.inner_pid ? status.inner_pid : x->pid;
	x->uid = status.uid;
	x->euid = status.euid;
	x->owner_known = true;
	tmp = target_open_folder(x->pid, "/tmp", NULL);
	add_folder(x, tmp, "/tmp");
	add_folders_of_environ(x);
	look_for_dumps(x);
}

static struct jitfiles_process *find(struct jitfiles *f, uint32_t process)
{
	for (size_t i = 0; i < f->list.n; i++)
		if (f->list.v[i].process == process)
			return &f->list.v[i];
	return NULL;
}

/* One that has ended and left nothing makes room. */
static bool make_room(struct jitfiles *f)
{
	if (f->list.n < MAX_PROCESSES)
		return true;
	for (size_t i = 0; i < f->list.n; i++) {
		struct jitfiles_process *x = &f->list.v[i];
		bool useful = x->pid || x->dumps.n;

		for (unsigned k = 0; k < x->folder_count; k++)
			useful |= x->folders[k].map >= 0;
		if (useful)
			continue;
		forget(x);
		f->list.v[i] = f->list.v[--f->list.n];
		return true;
	}
	return false;
}

static struct jitfiles_process *add(struct jitfiles *f, const struct profile *p, uint32_t process)
{
	struct jitfiles_process *x = find(f, process);

	if (!x && (process >= p->processes.n || !stillrunning_kernel(p) || !make_room(f)))
		return NULL;
	if (!x) {
		vec_push(&f->list, (struct jitfiles_process){ .process = process });
		x = &f->list.v[f->list.n - 1];
	}
	/* What is known of one that has ended is what was seen while it lived. */
	if (!x->owner_known || (x->pid && proc_started(x->pid) == x->start_ticks))
		learn(x, p);
	return x;
}

static bool look_at(struct jitfiles_process *x, const struct profile *p)
{
	bool changed = have_grown(x);

	for (unsigned i = 0; i < x->folder_count; i++)
		changed |= look_at_map(x, p, &x->folders[i]);
	return changed;
}

bool jitfiles_look(struct jitfiles *f, const struct profile *p)
{
	bool dumps = false, changed = false;

	for (; f->modules < p->modules.n; f->modules++) {
		const struct profile_module *m = &p->modules.v[f->modules];

		if (m->kind == MODULE_JIT)
			add(f, p, m->process);
		dumps |= m->kind == MODULE_FILE && jitfiles_dump_number(profile_str(p, m->path));
	}
	for (size_t i = 0; i < f->list.n; i++) {
		struct jitfiles_process *x = &f->list.v[i];

		if (!x->pid)
			continue;
		if (dumps)
			changed |= look_for_dumps(x);
		changed |= look_at(x, p);
		/* After the last look: what it wrote before it ended is in its folders. */
		if (proc_started(x->pid) != x->start_ticks) {
			look_at(x, p);
			x->pid = 0;
		}
	}
	return changed;
}

const struct jitfiles_process *jitfiles_of(struct jitfiles *f, const struct profile *p, uint32_t process)
{
	struct jitfiles_process *x = find(f, process);

	if (!x)
		x = add(f, p, process);
	if (x && x->pid)
		look_for_dumps(x);
	if (x)
		look_at(x, p);
	return x;
}

void jitfiles_add_dump(struct jitfiles *f, const struct profile *p, uint32_t process, const char *path, int fd)
{
	struct jitfiles_process *x = find(f, process);
	int own;

	if (!x)
		x = add(f, p, process);
	if (!x || jitfiles_dump_number(path) != x->number)
		return;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own >= 0)
		add_dump(x, path, own);
}
