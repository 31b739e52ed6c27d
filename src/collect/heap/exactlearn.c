#include "collect/heap/exactlearn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/heap/blob/blob.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/heap/implant.h"
#include "collect/process/processes.h"
#include "profile/profile.h"
#include "target/proc.h"

struct waiting {
	uint32_t index;
	pid_t tid;
	uint64_t sp;
};

struct exactlearn {
	struct session *session;
	pid_t pid;
	struct implant *implant;
	struct exact_shared *shared;
	struct map learned;  /* stacks of the profile */
	struct map pcs;      /* frame of the profile to its return address in the process, 0: it cannot be said */
	VEC(struct shared_mapping) mappings; /* as they were when pcs were made */
	VEC(struct waiting) waiting;         /* threads whose stack is to be looked up */
	VEC(uint64_t *) used;                /* keys in the shared memory, to be wiped */
	bool no_identity;                    /* threads cannot be told apart by their memory */
};

struct exactlearn *exactlearn_new(struct session *s, pid_t pid, struct implant *i)
{
	struct exactlearn *l = mem_alloc(sizeof(*l));

	l->session = s;
	l->pid = pid;
	l->implant = i;
	l->shared = &implant_shared(i)->exact;
	return l;
}

void exactlearn_free(struct exactlearn *l)
{
	if (!l)
		return;
	map_done(&l->learned);
	map_done(&l->pcs);
	vec_done(&l->mappings);
	vec_done(&l->waiting);
	vec_done(&l->used);
	free(l);
}

/* --- stacks --- */

/* The key last: whoever finds it finds the value. */
static void publish(struct exactlearn *l, uint64_t *key_at, uint64_t *value_at, uint64_t key, uint64_t value)
{
	__atomic_store_n(value_at, value, __ATOMIC_RELAXED);
	__atomic_store_n(key_at, key, __ATOMIC_RELEASE);
	vec_push(&l->used, key_at);
}

/* Where there is no room, the kernel goes on walking. */
static void publish_rule(struct exactlearn *l, uint64_t pc, uint64_t rule)
{
	struct exact_rule *r = exact_rules_of(l->shared, pc);

	for (int i = 0; i < EXACT_RULE_WAYS && r[i].pc != pc; i++)
		if (!r[i].pc) {
			publish(l, &r[i].pc, &r[i].rule, pc, rule);
			return;
		}
}

static void publish_stack(struct exactlearn *l, uint64_t hash, uint32_t number)
{
	struct exact_stack *s = exact_stacks_of(l->shared, hash);

	for (int i = 0; i < EXACT_STACK_WAYS && s[i].hash != hash; i++)
		if (!s[i].hash) {
			publish(l, &s[i].hash, &s[i].number, hash, number);
			return;
		}
}

/* The return address that a frame of the profile stands for; its rule is published when it is first asked for. */
static uint64_t pc_of(struct exactlearn *l, uint32_t frame)
{
	const struct profile_frame *f = &l->session->profile->frames.v[frame];
	uint64_t *known = map_put(&l->pcs, frame, UINT64_MAX);

	if (*known != UINT64_MAX)
		return *known;
	*known = 0;
	if (f->kind != FRAME_USER)
		return 0;
	for (size_t i = 0; i < l->mappings.n; i++) {
		const struct shared_mapping *m = &l->mappings.v[i];
		uint64_t pc = f->address + m->bias;

		if (pc < m->start || pc >= m->end || processes_module(l->session->processes, m->module) != f->module)
			continue;
		*known = pc + 1; /* a caller's address is the one before */
		publish_rule(l, pc + 1, bpfengine_rule(l->session->engine, m->module, f->address));
		break;
	}
	return *known;
}

void exactlearn_stack(struct exactlearn *l, uint32_t stack)
{
	const struct profile *p = l->session->profile;
	uint64_t *known = map_put(&l->learned, stack, 0), hash = 0;

	if (*known)
		return;
	*known = 1;
	if (!stack || profile_stack_truncated(p, stack, NULL))
		return;
	for (uint32_t node = stack; node; node = p->stacks.v[node].parent) {
		uint64_t pc = pc_of(l, p->stacks.v[node].frame);

		if (!pc)
			return;
		hash = exact_hash(hash, pc);
	}
	if (hash)
		publish_stack(l, hash, stack);
}

/* --- threads --- */

static bool read_process(pid_t pid, uint64_t address, void *data, size_t n)
{
	struct iovec here = { data, n }, there = { (void *)address, n };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* The memory from EXACT_BEFORE before its thread pointer on. What lies before it may begin later. */
static bool read_thread(pid_t pid, uint64_t pointer, void *data, size_t n)
{
	char *to = data;

	if (!EXACT_BEFORE)
		return read_process(pid, pointer, data, n);
	memset(data, 0, n);
	for (size_t part = n; part >= sizeof(uint64_t); part /= 2)
		if (read_process(pid, pointer - part, to + n - part, part))
			return true;
	return false;
}

/*
 * Every C library keeps the number of a thread, as the thread itself sees it, in the memory around its thread pointer.
 * Where that is, is looked up once, and checked for each thread that comes.
 */
static void find_identity(struct exactlearn *l, const struct exact_thread *t, pid_t tid)
{
	uint32_t words[1024];
	struct proc_status status;
	uint64_t at = l->shared->identity_at;

	_Static_assert(!EXACT_BEFORE || EXACT_BEFORE == sizeof(words), "all of it");
	if (l->no_identity || !read_thread(l->pid, t->owner, words, sizeof(words)) || proc_status(tid, &status) < 0)
		return;
	for (size_t i = 1; !at && i < ARRAY_LEN(words); i++)
		if (words[i] == (uint32_t)status.inner_pid)
			at = i * sizeof(*words);
	l->no_identity = !at || at >= sizeof(words) || words[at / sizeof(*words)] != (uint32_t)status.inner_pid;
	if (l->no_identity)
		log_debug("threads of process %d cannot be told apart by their memory: each stack is walked by the kernel", l->pid);
	__atomic_store_n(&l->shared->identity_at, l->no_identity ? 0 : at, __ATOMIC_RELEASE);
}

void exactlearn_thread(struct exactlearn *l, uint32_t index, pid_t tid, uint64_t sp)
{
	struct exact_thread t;

	if (!implant_thread(l->implant, index, &t) || (t.top && sp - t.low < t.top - t.low))
		return;
	for (size_t i = 0; i < l->waiting.n; i++)
		if (l->waiting.v[i].index == index)
			return;
	vec_push(&l->waiting, (struct waiting){ index, tid, sp });
}

/* The mapping of a thread's own stack; NULL: it stands on another one. */
static const struct proc_mapping *own_stack(const struct proc_maps *maps, uint64_t sp, uint64_t pointer, uint64_t *ret_top)
{
	for (size_t i = 0; i < maps->list.n; i++) {
		const struct proc_mapping *m = &maps->list.v[i];

		if (sp < m->start || sp >= m->end || !m->writable)
			continue;
		*ret_top = pointer > sp && pointer < m->end ? pointer : m->end;
		return *ret_top == pointer || !strcmp(m->path, "[stack]") ? m : NULL;
	}
	return NULL;
}

static void find_stacks(struct exactlearn *l)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };

	if (!l->waiting.n || proc_maps_read(l->pid, false, &maps) < 0) {
		vec_clear(&l->waiting);
		return;
	}
	for (size_t i = 0; i < l->waiting.n; i++) {
		const struct waiting *w = &l->waiting.v[i];
		const struct proc_mapping *m;
		struct exact_thread t;
		uint64_t top = 0;

		if (!implant_thread(l->implant, w->index, &t))
			continue;
		m = own_stack(&maps, w->sp, t.owner, &top);
		find_identity(l, &t, w->tid);
		if (m)
			implant_set_stack(l->implant, w->index, m->start, top & ~7ULL);
	}
	vec_clear(&l->waiting);
}

/* --- code that comes and goes --- */

static bool has(const struct shared_mapping *list, uint32_t count, const struct shared_mapping *m)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].start == m->start && list[i].end == m->end && list[i].bias == m->bias && list[i].module == m->module)
			return true;
	return false;
}

/* Other code may be where some was. */
static void forget(struct exactlearn *l)
{
	for (size_t i = 0; i < l->used.n; i++)
		__atomic_store_n(l->used.v[i], 0, __ATOMIC_RELEASE);
	vec_clear(&l->used);
	__atomic_fetch_add(&l->shared->generation, 1, __ATOMIC_SEQ_CST);
}

static void look_at_mappings(struct exactlearn *l)
{
	uint32_t count = 0;
	const struct shared_mapping *now = processes_mappings(l->session->processes, l->pid, &count);
	bool lost = false;

	if (!now || (count == l->mappings.n && !memcmp(now, l->mappings.v, count * sizeof(*now))))
		return;
	for (size_t i = 0; i < l->mappings.n && !lost; i++)
		lost = !has(now, count, &l->mappings.v[i]);
	vec_clear(&l->mappings);
	vec_reserve(&l->mappings, count);
	memcpy(l->mappings.v, now, count * sizeof(*now));
	l->mappings.n = count;
	/* Also those that could not be learned then. */
	map_clear(&l->pcs);
	map_clear(&l->learned);
	if (lost)
		forget(l);
}

void exactlearn_step(struct exactlearn *l)
{
	look_at_mappings(l);
	find_stacks(l);
}
