#include "collect/task/taskfiles.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/task/sharedtask.h"
#include "collect/task/taskstate.h"
#include "collect/uprobes.h"
#include "elf/worker/worker.h"
#include "target/open.h"
#include "target/proc.h"

#include "gasflame.skel.h"

enum { MOST_FILES = 64 /* with tokio: what is beyond has none that we know */ };

/* Each spawn of a type is told, if all of its places are known. */
static bool is_counted(const struct tokio_vtable *v)
{
	return v->spawn_count && v->spawn_count < TOKIO_SPAWNS;
}

static void name_types(struct taskfile *file, struct taskstate *state, const char *path)
{
	file->types = mem_resize(NULL, file->program.count + 1, sizeof(*file->types));
	for (size_t i = 0; i < file->program.count; i++) {
		const struct tokio_vtable *v = &file->program.vtables[i];
		_cleanup_free_ char *name = v->named ? mem_strdup(v->name) : mem_printf("%s (%s)", v->name, str_base_name(path));

		file->types[i] = taskstate_type(state, name, v->kind == TOKIO_BLOCKING, is_counted(v));
	}
}

static void read_file(struct taskfiles *f, struct session *s, struct taskstate *state, struct taskfile *file, const char *path)
{
	struct err why = { 0 };
	int r = f->used < MOST_FILES ? worker_tokio(s->worker, file->fd, -1, &file->program, &why) : -ENOENT;

	if (!r && file->program.count) {
		f->used++;
		name_types(file, state, path);
		log_debug("%s: tokio %s, %zu types of tasks", path, *file->program.version ? file->program.version : "of unknown version",
			  file->program.count);
		return;
	}
	fd_close(&file->fd);
	if (r == -ENOTSUP)
		f->refused = why;
	else if (r < 0 && r != -ENOENT)
		log_debug("%s: %s", path, why.text);
}

/* fd is taken over. */
static struct taskfile *add(struct taskfiles *f, struct session *s, struct taskstate *state, uint64_t device, uint64_t inode, int fd,
			    const char *path)
{
	struct taskfile *file = mem_alloc(sizeof(*file));

	*file = (struct taskfile){ .device = device, .inode = inode, .fd = fd };
	read_file(f, s, state, file, path);
	vec_push(&f->list, file);
	return file;
}

void taskfiles_foresee(struct taskfiles *f, struct session *s, struct taskstate *state, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		close(fd);
	else
		add(f, s, state, map_pair(major(st.st_dev), minor(st.st_dev)), st.st_ino, fd, path);
}

const struct taskfile *taskfiles_get(struct taskfiles *f, struct session *s, struct taskstate *state, pid_t pid,
				     const struct proc_mapping *m)
{
	uint64_t device = map_pair(m->device_major, m->device_minor);
	struct taskfile *file;
	int fd;

	for (size_t i = 0; i < f->list.n; i++)
		if (f->list.v[i]->inode == m->inode && f->list.v[i]->device == device)
			return f->list.v[i]->program.count ? f->list.v[i] : NULL;
	if (target_open_mapping(pid, m, &fd, NULL) < 0)
		return NULL;
	file = add(f, s, state, device, m->inode, fd, m->path);
	return file->program.count ? file : NULL;
}

static void attach(struct taskfiles *f, struct session *s, struct taskstate *state, struct taskfile *file)
{
	VEC(uint64_t) offsets = { 0 }, cookies = { 0 };
	bool all = true;
	struct err why = { 0 };

	for (size_t i = 0; i < file->program.count; i++) {
		const struct tokio_vtable *v = &file->program.vtables[i];

		all &= f->places.n + v->spawn_count <= SHARED_TASK_PLACES;
		for (size_t k = 0; k < v->spawn_count && f->places.n < SHARED_TASK_PLACES; k++) {
			vec_push(&offsets, v->spawns[k].offset);
			vec_push(&cookies, f->places.n);
			vec_push(&f->places, (struct taskplace){ .type = file->types[i] });
		}
	}
	if (offsets.n && uprobes_attach(bpfengine_skeleton(s->engine)->progs.on_task_spawn, file->fd, offsets.v, cookies.v, offsets.n,
					&file->probes, &why) < 0) {
		log_warn("where tasks are spawned is not recorded: %s", why.text);
		all = false;
	}
	if (!all)
		taskstate_stop_counting(state);
	vec_done(&offsets);
	vec_done(&cookies);
	fd_close(&file->fd);
}

void taskfiles_attach(struct taskfiles *f, struct session *s, struct taskstate *state)
{
	for (size_t i = 0; i < f->list.n && !f->given_up; i++) {
		if (f->list.v[i]->program.count && !f->list.v[i]->attached)
			attach(f, s, state, f->list.v[i]);
		f->list.v[i]->attached = true;
	}
}

void taskfiles_detach(struct taskfiles *f)
{
	for (size_t i = 0; i < f->list.n; i++) {
		uprobes_detach(f->list.v[i]->probes);
		f->list.v[i]->probes = NULL;
	}
}

void taskfiles_done(struct taskfiles *f)
{
	taskfiles_detach(f);
	for (size_t i = 0; i < f->list.n; i++) {
		fd_close(&f->list.v[i]->fd);
		tokio_done(&f->list.v[i]->program);
		free(f->list.v[i]->types);
		free(f->list.v[i]);
	}
	vec_done(&f->list);
	vec_done(&f->places);
}
