#include "collect/heap/heaptarget.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/heap/blob/blob.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/heap/exactheap.h"
#include "collect/heap/implant.h"
#include "collect/process/processes.h"

#include "gasflame.skel.h"

enum { LOOK_SHARE = 20 /* one part in so many of the time */ };

static int attach(struct heaptarget *t, struct bpf_program *program, const uint64_t *offsets, struct err *err)
{
	int n = 0;

	while (t->links[n])
		n++;
	for (; *offsets; offsets++) {
		t->links[n] = bpf_program__attach_uprobe(program, false, -1, implant_path(t->implant), *offsets);
		if (!t->links[n++])
			return err_errno(err, errno, "cannot attach to our hooks in process %d (uprobe)", t->pid);
	}
	return 0;
}

void heaptarget_leave(struct heaptarget *t)
{
	struct err why = { 0 };
	int left;

	if (!t->implant)
		return;
	left = implant_unhook(t->implant, &why);
	if (left)
		log_warn("%d slots of process %d could not be put back: `gasflame heap detach %d` tries again (%s)", left, t->pid,
			 t->pid, why.text);
	for (size_t i = 0; i < ARRAY_LEN(t->links); i++)
		bpf_link__destroy(t->links[i]);
	memset(t->links, 0, sizeof(t->links));
	exactheap_free(t->events);
	t->events = NULL;
	implant_close(t->implant);
	t->implant = NULL;
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

int heaptarget_enter(struct session *s, struct heaptarget *t, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	bool exact = s->options->heap_interval <= 1;
	int r = implant_hook(t->implant, s->worker, err);

	if (!r)
		r = err_set(err, ENOTSUP,
			    "process %d calls no allocator through a slot that we know: its allocator is linked in without symbols, "
			    "or called directly; `gasflame mem %d` and -e fault say where its memory grows",
			    t->pid, t->pid);
	if (r > 0 && exact)
		r = attach(t, skeleton->progs.on_heap_exact, implant_exact_offsets, err);
	else if (r > 0)
		r = attach(t, skeleton->progs.on_heap_alloc, implant_alloc_offsets, err);
	if (!r && !exact)
		r = attach(t, skeleton->progs.on_heap_free, implant_free_offsets, err);
	if (!r) {
		processes_dirty(s->processes, t->pid);
		/* The hooks' own table must be there before the first of them runs. */
		processes_settle(s->processes, 2000000000);
		t->mappings = sum_mappings(s, t->pid);
		r = implant_activate(t->implant, s->options->heap_interval, err);
		if (!r && exact)
			t->events = exactheap_new(s, t->pid, t->implant);
		if (s->options->heap_ours)
			implant_populate(t->implant);
	}
	if (r < 0) {
		heaptarget_leave(t);
		return r;
	}
	log_debug("process %d: %s", t->pid, implant_allocators(t->implant));
	return 0;
}

void heaptarget_look(struct session *s, struct heaptarget *t)
{
	uint64_t begin = clock_mono_ns(), sum;
	struct err why = { 0 };
	int r;

	if (!t->implant || begin < t->look_ns)
		return;
	sum = sum_mappings(s, t->pid);
	if (sum == t->mappings)
		return;
	t->mappings = sum;
	r = implant_hook(t->implant, s->worker, &why);
	if ((r == -EACCES || r == -EPERM) && !t->warned) {
		t->warned = true;
		log_warn("what process %d has loaded since is not recorded: %s", t->pid, why.text);
	}
	t->look_ns = begin + LOOK_SHARE * (clock_mono_ns() - begin);
}
