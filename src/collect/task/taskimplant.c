#include "collect/task/taskimplant.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/inject/blobkind.h"
#include "collect/inject/hookset.h"
#include "collect/task/blob/task.h"
#include "collect/task/taskclock.h"
#include "collect/task/taskrings.h"
#include "target/proc.h"

#include "task.image.h"

enum {
	PAGE = 4096,
	BATCH = 256,          /* events that are read at a time */
	CROWDED = TASK_THREADS * 3 / 4,
	MOST_ID_OFFSET = 4096,
	TCB_BYTES = 4096,     /* of a thread's memory, in which its number is looked for */
	TID_IN_GLIBC = 0x2d0, /* where it has been for long */
	TID_IN_MUSL = 0x30,
	SMALL_TID = 1000,     /* below it any word may be the same by chance */
	COMPLETE = 2,         /* of a task's state word, and where its count of references begins */
	REFERENCES = 6,
	MOST_REFERENCES = 1 << 24,
};
#define PAGES(n) (((n) + PAGE - 1) & ~(uint64_t)(PAGE - 1))

static const uint64_t ms_ns = 1000000, margin_ns = 1000000, patience_ns = 1000000000, silence_ns = 10000000000;

_Static_assert(TASKIMPLANT_VTABLES == TASK_VTABLES, "the same number");

const uint64_t taskimplant_wake_offsets[] = { TASK_WAKE_SEEN_AT, 0 };

struct taskimplant {
	struct hookset h;
	struct task_fixed *fixed;   /* of h */
	struct task_shared *shared;
	struct taskclock clock;
	struct taskrings *rings;
	VEC(struct taskimplant_vtable) vtables; /* in the caller's order */
	uint32_t of_number[TASK_VTABLES];       /* which of them has a number in the blob; UINT32_MAX: none */
	uint32_t recording;                     /* 0: hooks pass on */
	bool ended;                             /* no hook writes any more */
	bool nested;                            /* it has a pid namespace of its own */
	uint64_t pair_ns, woken_ns, tidied_ns;  /* when a pair of clocks was taken, and so on */
	struct {
		uint32_t identity;
		pid_t tid;
	} tids[TASK_THREADS]; /* of rings */
	uint64_t slept; /* times that the hooks went to sleep in a recording */
};

/* An entry is 32 bytes: those of poll, then of schedule, then of dealloc. */
static bool is_hook(uint64_t offset)
{
	return offset >= TASK_ENTRIES_AT && offset < TASK_ENTRIES_AT + TASK_SLOTS * TASK_VTABLES * TASK_ENTRY_BYTES &&
	       offset % TASK_ENTRY_BYTES == 0;
}

_Static_assert(TASK_ENTRIES_AT % TASK_ENTRY_BYTES == 0 &&
		       TASK_ENTRIES_END_AT - TASK_ENTRIES_AT == TASK_SLOTS * TASK_VTABLES * TASK_ENTRY_BYTES,
	       "entries are as long as they are thought to be");

static const struct blobkind kind = {
	.name = TASK_NAME,
	.records = "the tasks",
	.magic = TASK_MAGIC,
	.version = TASK_VERSION,
	.image = task_image,
	.image_bytes = sizeof(task_image),
	.fixed_at = TASK_FIXED_AT,
	.local_at = TASK_LOCAL_AT,
	.shared_at = TASK_SHARED_AT,
	.setup_at = TASK_SETUP_AT,
	.fixed_bytes = sizeof(struct task_fixed),
	.shared_bytes = PAGES(sizeof(struct task_shared)),
	.slots_at = offsetof(struct task_fixed, slots),
	.slots_max = TASK_VTABLES * TASK_SLOTS,
	.is_hook = is_hook,
	.refused = "may not read the time-stamp counter (prctl PR_SET_TSC), and hooks have no other clock: -e cpu and -e wait "
		   "need none",
};

/* --- opening --- */

static struct taskimplant *new_implant(pid_t pid)
{
	struct taskimplant *t = mem_alloc(sizeof(*t));

	hookset_init(&t->h, &kind, pid);
	memset(t->of_number, 0xff, sizeof(t->of_number));
	return t;
}

/*
 * Every C library keeps the number of a thread, as the thread itself sees it, in the memory that the thread pointer points
 * to. setup has noted both of the thread that ran it.
 */
static uint64_t find_identity(const struct taskimplant *t)
{
	struct task_local local = { 0 };
	uint32_t words[TCB_BYTES / sizeof(uint32_t)];

	if (hookset_get(&t->h, t->h.map.image + TASK_LOCAL_AT, &local, sizeof(local)) || !local.tid ||
	    hookset_get(&t->h, local.pointer, words, sizeof(words)))
		return 0;
	if (words[TID_IN_GLIBC / sizeof(*words)] == local.tid)
		return TID_IN_GLIBC;
	if (words[TID_IN_MUSL / sizeof(*words)] == local.tid)
		return TID_IN_MUSL;
	for (size_t i = 1; local.tid >= SMALL_TID && i < ARRAY_LEN(words); i++)
		if (words[i] == local.tid)
			return i * sizeof(*words);
	return 0;
}

static int opened(struct taskimplant *t, int r, struct taskimplant **ret)
{
	struct proc_status status;

	if (r < 0) {
		taskimplant_close(t);
		return r;
	}
	t->fixed = (struct task_fixed *)t->h.map.fixed;
	t->shared = t->h.map.shared;
	t->rings = t->shared ? taskrings_new(t->shared) : NULL;
	t->nested = proc_status(t->h.pid, &status) >= 0 && status.inner_pid != t->h.pid;
	*ret = t;
	return 0;
}

int taskimplant_open(pid_t pid, struct taskimplant **ret, struct err *err)
{
	struct taskimplant *t = new_implant(pid);
	int r = taskclock_check(err);

	taskclock_take(&t->clock);
	r = r ?: hookset_open(&t->h, err);
	r = r ?: hookset_find(&t->h, false, err);
	if (r == -ENOENT)
		r = hookset_make(&t->h, err);
	/* What a gasflame before us left: its numbers of vtables are not ours. */
	if (!r && hookset_unhook(&t->h, err))
		r = err_prefix(err, "process %d has hooks of an earlier recording, which cannot be put back", pid);
	r = opened(t, r, ret);
	if (!r && !t->fixed->identity_at)
		t->fixed->identity_at = find_identity(t);
	return r;
}

int taskimplant_find(pid_t pid, struct taskimplant **ret, struct err *err)
{
	struct taskimplant *t = new_implant(pid);
	int r = hookset_open(&t->h, err);

	r = r ?: hookset_find(&t->h, true, err);
	if (r == -ENOENT)
		r = err_set(err, ENOENT, "process %d has no hooks of gasflame", pid);
	return opened(t, r, ret);
}

void taskimplant_close(struct taskimplant *t)
{
	if (!t)
		return;
	hookset_done(&t->h);
	taskrings_free(t->rings);
	vec_done(&t->vtables);
	free(t);
}

/* --- slots --- */

static uint64_t entry_of(const struct taskimplant *t, uint32_t number, enum task_slot slot)
{
	return t->h.map.image + TASK_ENTRIES_AT + ((uint64_t)slot * TASK_VTABLES + number) * TASK_ENTRY_BYTES;
}

static struct task_vtable record_of(const struct taskimplant_vtable *v)
{
	bool good = v->id_offset % 8 == 0 && v->id_offset <= MOST_ID_OFFSET;

	return (struct task_vtable){ .address = v->address,
				     .real = { v->poll, v->schedule, v->dealloc },
				     .id_offset = good ? v->id_offset : 0 };
}

/* The number of a vtable: the one that it had before, or a new one. -ENOSPC: there are no more. */
static int number_for(struct taskimplant *t, const struct taskimplant_vtable *v)
{
	struct task_vtable wanted = record_of(v);

	for (int k = 0; k < TASK_VTABLES; k++) {
		struct task_vtable *have = &t->fixed->vtables[k];
		int r;

		if (!memcmp(have, &wanted, sizeof(wanted)))
			return k;
		if (have->address)
			continue;
		r = hookset_put(&t->h, hookset_fixed_at(&t->h, have), &wanted, sizeof(wanted));
		if (r < 0)
			return r;
		*have = wanted;
		return k;
	}
	return -ENOSPC;
}

/* 1: the slot leads to our hook, 0: it holds something else. */
static int hook_slot(struct taskimplant *t, uint32_t number, enum task_slot slot)
{
	const struct task_vtable *v = &t->fixed->vtables[number];
	uint64_t at = v->address + slot * sizeof(uint64_t), hook = entry_of(t, number, slot), now = 0;
	int r = hookset_hook(&t->h, at, v->real[slot], hook);

	if (r < 0)
		return r;
	return !hookset_get(&t->h, at, &now, sizeof(now)) && now == hook;
}

struct hooking {
	struct taskimplant *t;
	const struct taskimplant_vtable *v;
	size_t n;
	int hooked;
};

/* All of them; also those of a first try that the kernel ended. */
static int hook_all(void *context)
{
	struct hooking *h = context;

	h->hooked = 0;
	for (size_t i = 0; i < h->n; i++) {
		int number = number_for(h->t, &h->v[i]), r = 1;

		if (number == -EACCES)
			return number;
		for (int slot = 0; number >= 0 && slot < TASK_SLOTS && r > 0; slot++)
			r = hook_slot(h->t, number, slot);
		if (r == -EACCES)
			return r;
		if (number < 0 || r <= 0)
			continue;
		h->t->of_number[number] = h->t->vtables.n + i;
		h->hooked++;
	}
	return 0;
}

int taskimplant_hook(struct taskimplant *t, const struct taskimplant_vtable *v, size_t n, struct err *err)
{
	struct hooking h = { .t = t, .v = v, .n = n };
	int r = n ? hookset_write(&t->h, hook_all, &h, err) : 0;

	for (size_t i = 0; i < n; i++)
		vec_push(&t->vtables, v[i]);
	return r < 0 ? r : h.hooked;
}

int taskimplant_hooked(const struct taskimplant *t)
{
	return hookset_hooked(&t->h);
}

int taskimplant_unhook(struct taskimplant *t, struct err *err)
{
	taskimplant_deactivate(t);
	return hookset_unhook(&t->h, err);
}

/* --- recording --- */

static int write_settings(void *context)
{
	struct taskimplant *t = context;
	const struct task_fixed *f = t->fixed;

	return hookset_put_fixed(&t->h, &f->interval, offsetof(struct task_fixed, vtables) - offsetof(struct task_fixed, interval));
}

/* The rate of the clocks must be known. */
static void take_second_pair(struct taskimplant *t)
{
	const struct timespec nap = { .tv_nsec = (long)ms_ns };

	do {
		nanosleep(&nap, NULL);
		taskclock_take(&t->clock);
	} while (t->clock.n < 2);
	t->pair_ns = clock_mono_ns();
}

int taskimplant_activate(struct taskimplant *t, uint64_t interval_ns, struct err *err)
{
	struct task_fixed *f = t->fixed;
	uint64_t now;
	int r = hookset_set_active(&t->h, 0);

	if (r < 0)
		return err_errno(err, -r, "cannot write to process %d", t->h.pid);
	take_second_pair(t);
	f->patience = taskclock_span(&t->clock, silence_ns);
	if (getrandom(&f->seed, sizeof(f->seed), 0) != sizeof(f->seed))
		f->seed = t->h.map.image ^ getpid();
	r = taskimplant_set_interval(t, interval_ns, err);
	if (r < 0)
		return r;
	now = taskclock_ticks();
	memset(t->shared->ends, 0, sizeof(t->shared->ends));
	__atomic_store_n(&t->shared->since, now, __ATOMIC_RELAXED);
	__atomic_store_n(&t->shared->sign, now, __ATOMIC_RELAXED);
	taskrings_begin(t->rings, now);
	t->slept = 0;
	t->ended = false;
	/* Hooks of a poll that another recording saw begin know by this that it is not theirs. */
	t->recording = (uint32_t)(now >> 8) | 1;
	t->woken_ns = clock_mono_ns();
	r = hookset_set_active(&t->h, t->recording);
	return r < 0 ? err_errno(err, -r, "cannot write to process %d", t->h.pid) : 0;
}

int taskimplant_set_interval(struct taskimplant *t, uint64_t interval_ns, struct err *err)
{
	t->fixed->interval = interval_ns ? MAX(taskclock_span(&t->clock, interval_ns), 1) : 0;
	return hookset_write(&t->h, write_settings, t, err);
}

void taskimplant_deactivate(struct taskimplant *t)
{
	const struct timespec nap = { .tv_nsec = (long)(5 * ms_ns) };

	if (!t->recording)
		return;
	hookset_set_active(&t->h, 0);
	t->recording = 0;
	/* A hook that is at work may end; it takes less than a microsecond. */
	nanosleep(&nap, NULL);
	t->ended = true;
}

/* Hooks that had no room for long went to sleep: we were stopped. */
static void keep_awake(struct taskimplant *t, uint64_t now_ns)
{
	uint32_t active = 0;

	if (!t->recording || now_ns - t->woken_ns < patience_ns)
		return;
	t->woken_ns = now_ns;
	if (!hookset_get(&t->h, t->h.map.image + TASK_LOCAL_AT, &active, sizeof(active)) && !active) {
		t->slept++;
		hookset_set_active(&t->h, t->recording);
	}
}

/* --- threads --- */

/* A thread's number as we see it. */
static pid_t outer_of(const struct taskimplant *t, uint32_t identity)
{
	struct proc_ids threads = { 0 };
	struct proc_status status;
	pid_t found = 0;

	if (!t->nested || !identity)
		return identity;
	if (proc_threads(t->h.pid, &threads) >= 0)
		for (size_t i = 0; i < threads.list.n && !found; i++)
			if (proc_status(threads.list.v[i], &status) >= 0 && (uint32_t)status.inner_pid == identity)
				found = threads.list.v[i];
	vec_done(&threads.list);
	return found;
}

static uint32_t tid_of(struct taskimplant *t, uint32_t ring, uint32_t identity)
{
	if (t->tids[ring].identity != identity) {
		t->tids[ring].identity = identity;
		t->tids[ring].tid = outer_of(t, identity);
	}
	return t->tids[ring].tid;
}

static bool has_ended(void *context, uint32_t identity)
{
	const struct taskimplant *t = context;
	_cleanup_free_ char *path = mem_printf("/proc/%d/task/%d", t->h.pid, (int)outer_of(t, identity));

	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* Threads that have ended keep their place as long as there is room for others. */
static void tidy(struct taskimplant *t, uint64_t now_ns)
{
	if (now_ns - t->tidied_ns < patience_ns)
		return;
	t->tidied_ns = now_ns;
	if (taskrings_owned(t->rings) >= CROWDED)
		taskrings_tidy(t->rings, has_ended, t);
}

/* --- events --- */

static void look(struct taskimplant *t)
{
	uint64_t now_ns = clock_mono_ns();

	/* Not too near to each other, or their own errors would show. */
	if (now_ns - t->pair_ns >= ms_ns) {
		taskclock_take(&t->clock);
		t->pair_ns = now_ns;
	}
	keep_awake(t, now_ns);
	tidy(t, now_ns);
	taskrings_look(t->rings, taskclock_ticks(), taskclock_span(&t->clock, margin_ns), taskclock_span(&t->clock, patience_ns),
		       t->ended);
}

static uint32_t what_of(uint32_t what)
{
	return what == TASK_IS_POLL ? TASK_POLL : what == TASK_IS_WAKE ? TASK_WAKE : TASK_DEALLOC;
}

/* 1 / the chance that a wake after so long a time was drawn. */
static double scale_of(const struct taskrings_event *e)
{
	double x = (double)MAX(e->awaited, 1) / (double)MAX(e->interval, 1);

	return 1 / -expm1(-x);
}

/* false: of a vtable that is not among the caller's. */
static bool translate(struct taskimplant *t, const struct taskrings_event *e, struct taskimplant_event *ret)
{
	uint64_t over_ns = taskclock_ns(&t->clock, e->over), began_ns = e->ticks ? taskclock_ns(&t->clock, e->over - e->ticks) : over_ns;

	if (t->of_number[e->number] == UINT32_MAX)
		return false;
	*ret = (struct taskimplant_event){
		.time_ns = began_ns,
		.duration_ns = over_ns - began_ns,
		.task = e->task,
		.header = e->header,
		.waker = e->waker,
		.waker_vtable = e->waker ? t->of_number[e->waker_number] : UINT32_MAX,
		.tid = tid_of(t, e->ring, e->identity),
		.vtable = t->of_number[e->number],
		.what = what_of(e->what),
		.ticket = e->ticket,
		.scale = e->ticket ? scale_of(e) : 0,
	};
	return true;
}

size_t taskimplant_read(struct taskimplant *t, struct taskimplant_event *ret, size_t room)
{
	struct taskrings_event batch[BATCH];
	size_t n = 0, wanted, got;

	look(t);
	do {
		wanted = MIN(room - n, (size_t)BATCH);
		got = taskrings_read(t->rings, batch, wanted);
		for (size_t i = 0; i < got; i++)
			n += translate(t, &batch[i], &ret[n]);
	} while (got == wanted && n < room);
	return n;
}

uint64_t taskimplant_until(const struct taskimplant *t)
{
	return taskclock_ns(&t->clock, taskrings_until(t->rings));
}

uint64_t taskimplant_lost(const struct taskimplant *t)
{
	return taskrings_lost(t->rings) + t->slept;
}

size_t taskimplant_polls(struct taskimplant *t, struct taskimplant_event *ret, size_t room)
{
	_cleanup_free_ struct taskrings_event *polls = mem_alloc(TASK_THREADS * sizeof(*polls));
	size_t found = taskrings_polls(t->rings, taskclock_ticks(), polls, TASK_THREADS), n = 0;

	for (size_t i = 0; i < found && n < room; i++)
		n += translate(t, &polls[i], &ret[n]);
	return n;
}

/* --- tasks --- */

/*
 * A task's memory as it is now. Freed memory keeps most of what was in it, but for its first words; and a task is never freed
 * before it is complete.
 */
static enum taskimplant_life life_of(const struct taskimplant *t, const struct taskimplant_task *task)
{
	uint64_t words[(MOST_ID_OFFSET + 8) / 8] = { 0 }, state;
	const struct taskimplant_vtable *v;
	size_t id_at, n;

	if (task->vtable >= t->vtables.n)
		return TASK_UNKNOWN;
	v = &t->vtables.v[task->vtable];
	id_at = record_of(v).id_offset;
	n = MAX(id_at + sizeof(uint64_t), 3 * sizeof(uint64_t));
	if (hookset_get(&t->h, task->header, words, n))
		return hookset_gone(&t->h) ? TASK_UNKNOWN : TASK_FINISHED;
	state = words[0];
	if ((id_at && words[id_at / 8] != task->task) || words[2] != v->address || state & COMPLETE)
		return TASK_FINISHED;
	return state >> REFERENCES && state >> REFERENCES <= MOST_REFERENCES ? TASK_ALIVE : TASK_FINISHED;
}

void taskimplant_look(struct taskimplant *t, struct taskimplant_task *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].life = life_of(t, &v[i]);
}

/* --- the process --- */

bool taskimplant_gone(const struct taskimplant *t)
{
	return hookset_gone(&t->h);
}

bool taskimplant_replaced(const struct taskimplant *t)
{
	return hookset_replaced(&t->h);
}

uint64_t taskimplant_stopped_ns(const struct taskimplant *t)
{
	return t->h.stopped_ns;
}

const char *taskimplant_path(const struct taskimplant *t)
{
	return t->h.path;
}
