#include "collect/task/tasktarget.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "collect/task/taskfiles.h"
#include "collect/task/taskimplant.h"
#include "collect/task/taskstate.h"
#include "elf/worker/worker.h"
#include "target/open.h"
#include "target/proc.h"

#include "gasflame.skel.h"

#define SETTLE_NS 2000000000ULL

struct vtables {
	VEC(struct taskimplant_vtable) list;
	VEC(uint32_t) types;
};

static bool is_hooked(const struct tasktarget *t, const struct taskfile *file)
{
	for (size_t i = 0; i < t->modules.n; i++)
		if (t->modules.v[i].file == file)
			return true;
	return false;
}

/* How far the file is from where it was linked to. */
static int find_bias(struct session *s, pid_t pid, const struct proc_mapping *m, uint64_t *ret, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	uint64_t address;
	int r = target_open_mapping(pid, m, &fd, err);

	r = r ?: worker_offset_to_address(s->worker, fd, m->offset, &address, err);
	if (!r)
		*ret = m->start - address;
	return r;
}

static void add_vtables(struct vtables *v, const struct taskfile *file, uint64_t bias)
{
	for (size_t i = 0; i < file->program.count; i++) {
		const struct tokio_vtable *x = &file->program.vtables[i];

		vec_push(&v->list, (struct taskimplant_vtable){ .address = x->address + bias, .poll = x->poll + bias,
								.schedule = x->schedule + bias, .dealloc = x->dealloc + bias,
								.id_offset = x->id_offset });
		vec_push(&v->types, file->types[i]);
	}
}

/* The vtables of files that are not hooked yet. */
static int find_vtables(struct session *s, struct tasktarget *t, struct taskfiles *files, struct taskstate *state,
			struct vtables *ret, struct err *err)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };
	int r = proc_maps_read(t->pid, true, &maps);

	if (r < 0)
		return err_errno(err, -r, "cannot read the mappings of process %d", t->pid);
	for (size_t i = 0; i < maps.list.n; i++) {
		const struct proc_mapping *m = &maps.list.v[i];
		const struct taskfile *file = m->inode ? taskfiles_get(files, s, state, t->pid, m) : NULL;
		uint64_t bias = 0;

		if (!file || is_hooked(t, file))
			continue;
		r = find_bias(s, t->pid, m, &bias, err);
		if (r < 0)
			return r;
		add_vtables(ret, file, bias);
		vec_push(&t->modules, (struct tasktarget_module){ file, bias });
	}
	return 0;
}

static void done_vtables(struct vtables *v)
{
	vec_done(&v->list);
	vec_done(&v->types);
}

/* How many are hooked. */
static int hook(struct tasktarget *t, const struct vtables *v, struct err *err)
{
	size_t n = MIN(v->list.n, TASKIMPLANT_VTABLES - MIN(t->types.n, (size_t)TASKIMPLANT_VTABLES));
	int r = n ? taskimplant_hook(t->implant, v->list.v, n, err) : 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		vec_push(&t->types, v->types.v[i]);
	return r;
}

static int attach(struct session *s, struct tasktarget *t, struct err *err)
{
	t->link = bpf_program__attach_uprobe(bpfengine_skeleton(s->engine)->progs.on_task_wake, false, -1, taskimplant_path(t->implant),
					     taskimplant_wake_offsets[0]);
	return t->link ? 0 : err_errno(err, errno, "cannot attach to our hooks in process %d (uprobe)", t->pid);
}

static uint64_t sum_mappings(struct session *s, pid_t pid)
{
	uint32_t count = 0;
	const struct shared_mapping *list = processes_mappings(s->processes, pid, &count);
	uint64_t sum = count;

	for (uint32_t i = 0; i < count; i++)
		sum = map_hash(sum ^ list[i].start ^ (uint64_t)list[i].module << 48);
	return sum;
}

static int begin(struct session *s, struct tasktarget *t, const struct vtables *v, uint64_t interval_ns, struct err *err)
{
	int r = taskimplant_open(t->pid, &t->implant, err);

	r = r < 0 ? r : hook(t, v, err);
	if (!r)
		r = err_set(err, EAGAIN, "none of the %zu vtables of tasks of process %d holds what its file says: it is starting, or "
					 "ends; try again", v->list.n, t->pid);
	r = r < 0 ? r : attach(s, t, err);
	if (r < 0)
		return r;
	processes_dirty(s->processes, t->pid);
	/* The hooks' own table must be there before the first of them runs. */
	processes_settle(s->processes, SETTLE_NS);
	t->mappings = sum_mappings(s, t->pid);
	return taskimplant_activate(t->implant, interval_ns, err);
}

int tasktarget_enter(struct session *s, struct tasktarget *t, struct taskfiles *files, struct taskstate *state,
		     uint64_t interval_ns, struct err *err)
{
	struct vtables v = { 0 };
	int r = find_vtables(s, t, files, state, &v, err);

	if (!r && !v.list.n)
		r = err_set(err, ENOENT, "process %d has no tokio", t->pid);
	r = r ?: begin(s, t, &v, interval_ns, err);
	done_vtables(&v);
	if (r < 0)
		tasktarget_leave(t);
	return r;
}

bool tasktarget_changed(struct session *s, struct tasktarget *t)
{
	uint64_t before = t->mappings;

	t->mappings = sum_mappings(s, t->pid);
	return t->mappings != before;
}

void tasktarget_look(struct session *s, struct tasktarget *t, struct taskfiles *files, struct taskstate *state)
{
	struct vtables v = { 0 };
	struct err why = { 0 };
	int r;

	if (!tasktarget_changed(s, t))
		return;
	r = find_vtables(s, t, files, state, &v, &why) ?: hook(t, &v, &why);
	if (r < 0 && v.list.n && !t->warned) {
		t->warned = true;
		log_warn("tasks of a library that process %d has loaded since are not recorded: %s", t->pid, why.text);
	}
	done_vtables(&v);
}

void tasktarget_leave(struct tasktarget *t)
{
	struct err why = { 0 };
	int left = t->implant ? taskimplant_unhook(t->implant, &why) : 0;

	if (left)
		log_warn("%d slots of process %d could not be put back: `gasflame detach %d` tries again (%s)", left, t->pid, t->pid,
			 why.text);
	bpf_link__destroy(t->link);
	t->link = NULL;
	taskimplant_close(t->implant);
	t->implant = NULL;
	t->since_ns = 0;
	vec_done(&t->modules);
	vec_done(&t->types);
	map_done(&t->stacks);
	map_done(&t->threads);
	map_done(&t->tids);
}
