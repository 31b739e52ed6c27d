#include "collect/cpu/copies.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "collect/shared.h"
#include "collect/unwind/userstack.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { MAX_KEPT = 256, PAGE = 4096 };
static const uint64_t patience_ns = 5000000000;

struct kept {
	struct shared_copy *copy; /* and its pages */
	size_t stack_bytes;
	uint32_t thread;          /* of the profile; its number may be another's when the stack is unwound */
	uint64_t until_ns;
};

struct copies {
	struct session *session;
	VEC(struct kept) list;
};

struct copies *copies_new(struct session *s)
{
	struct copies *c = mem_alloc(sizeof(*c));

	c->session = s;
	return c;
}

void copies_free(struct copies *c)
{
	if (!c)
		return;
	vec_done_each(&c->list, e, free(e->copy));
	free(c);
}

/* --- one stack --- */

/* The copy at hand. Another stack than the one that was copied cannot be read. */
struct walk {
	const struct kept *kept;
	struct bpfengine *engine;
	bool building; /* a table that is still being made was needed */
};

static bool read_copy(void *context, uint64_t address, uint64_t *ret)
{
	const struct walk *w = context;
	uint64_t at = address - w->kept->copy->base;

	if (address < w->kept->copy->base || w->kept->stack_bytes < 8 || at > w->kept->stack_bytes - 8)
		return false;
	memcpy(ret, (const char *)(w->kept->copy + 1) + at, 8);
	return true;
}

static uint64_t rule_of(void *context, uint32_t module, uint64_t address)
{
	struct walk *w = context;

	if (!bpfengine_building(w->engine, module))
		return bpfengine_rule(w->engine, module, address);
	w->building = true;
	return RULE_UNSUPPORTED;
}

struct maps {
	VEC(struct shared_mapping) list;
};

static bool covered(const struct maps *m, uint64_t address)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (address >= m->list.v[i].start && address < m->list.v[i].end)
			return true;
	return false;
}

static int compare_maps(const void *a, const void *b)
{
	const struct shared_mapping *x = a, *y = b;

	return ORDER(x->start, y->start);
}

/* Does the process still run the program that it ran then? Its first file would lie elsewhere otherwise. */
static bool same_image(const struct maps *m, const struct shared_mapping *list, uint32_t count)
{
	for (uint32_t i = 0; m->list.n && i < count; i++)
		if (list[i].start == m->list.v[0].start && list[i].module == m->list.v[0].module)
			return true;
	return false;
}

/* What was mapped: as the kernel side had found it, and, where that is the same program, as user space knows by now. */
static void find_maps(const struct copies *c, const struct kept *k, struct maps *ret)
{
	uint32_t count;
	const struct shared_mapping *list = processes_mappings(c->session->processes, k->copy->record.pid, &count);

	for (size_t i = 0; i < SHARED_YOUNG_MAPPINGS; i++) {
		struct shared_mapping m;

		if (bpfengine_place(c->session->engine, &k->copy->young.mappings[i], &m))
			vec_push(&ret->list, m);
	}
	if (same_image(ret, list, count))
		for (uint32_t i = 0; i < count; i++)
			if (!covered(ret, list[i].start))
				vec_push(&ret->list, list[i]);
	vec_sort(&ret->list, compare_maps);
}

/* Walks the copy. frames: room for user and kernel frames. */
static enum shared_reason walk(const struct copies *c, const struct kept *k, uint64_t *frames, uint16_t *ret_count)
{
	struct walk w = { .kept = k, .engine = c->session->engine };
	struct unwind_regs regs = { .leaf = true };
	struct maps maps = { 0 };
	/* No process: what has the pid now may be another, and its memory says nothing about the copy. */
	struct userstack how = { .pid = -1, .rule = rule_of, .rule_context = &w, .read = read_copy, .read_context = &w };
	enum shared_reason reason;

	_Static_assert((int)UNWIND_REGS == (int)SHARED_COPY_REGISTERS, "the same order");
	memcpy(regs.r, k->copy->registers, sizeof(regs.r));
	find_maps(c, k, &maps);
	how.maps = maps.list.v;
	how.map_count = maps.list.n;
	reason = userstack_walk(&how, &regs, frames, ret_count);
	vec_done(&maps.list);
	if (w.building)
		return REASON_NO_TABLE_YET;
	return reason == REASON_BAD_STACK && k->stack_bytes == SHARED_COPY_PAGES * PAGE ? REASON_DUMP_SHORT : reason;
}

/* True: it has become a sample. */
static bool finish(struct copies *c, const struct kept *k, bool last)
{
	uint64_t frames[SHARED_MAX_USER_FRAMES + SHARED_MAX_KERNEL_FRAMES];
	struct shared_record r = k->copy->record;

	r.reason = walk(c, k, frames, &r.user_count);
	if (!last && (r.reason == REASON_NO_MAPPING || r.reason == REASON_NO_TABLE_YET))
		return false;
	memcpy(frames + r.user_count, k->copy->kernel, r.kernel_count * sizeof(*frames));
	collector_cpu_sample_of(c->session, &r, collector_stack(c->session, &r, frames), k->thread);
	if (r.reason == REASON_COMPLETE)
		profile_count(c->session->profile, KEY_SAMPLES_UNWOUND_LATER, 1);
	return true;
}

void copies_take(struct copies *c, const void *data, size_t size)
{
	struct kept k = { .until_ns = clock_mono_ns() + patience_ns };
	char name[sizeof(k.copy->record.name) + 1] = { 0 };

	if (size <= sizeof(*k.copy) || (size - sizeof(*k.copy)) % PAGE ||
	    ((const struct shared_copy *)data)->record.kernel_count > SHARED_MAX_KERNEL_FRAMES)
		return;
	k.copy = mem_alloc(size);
	memcpy(k.copy, data, size);
	k.copy->record.user_count = 0;
	memcpy(name, k.copy->record.name, sizeof(k.copy->record.name) - 1);
	k.stack_bytes = size - sizeof(*k.copy);
	k.thread = processes_thread(c->session->processes, k.copy->record.pid, k.copy->record.tid, name, k.copy->record.time_ns);
	if (k.copy->record.reason == REASON_NO_MAPPING)
		processes_dirty(c->session->processes, k.copy->record.pid);
	bpfengine_learn(c->session->engine, &k.copy->young);
	if (finish(c, &k, c->list.n >= MAX_KEPT))
		free(k.copy);
	else
		vec_push(&c->list, k);
}

void copies_step(struct copies *c, bool last)
{
	uint64_t now = clock_mono_ns();
	size_t n = 0;

	for (size_t i = 0; i < c->list.n; i++) {
		struct kept *k = &c->list.v[i];

		if (finish(c, k, last || now >= k->until_ns))
			free(k->copy);
		else
			c->list.v[n++] = *k;
	}
	c->list.n = n;
}
