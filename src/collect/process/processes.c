#include "collect/process/processes.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/process/mappings.h"
#include "collect/process/modules.h"
#include "collect/process/owners.h"
#include "collect/shared.h"
#include "profile/profile.h"
#include "target/proc.h"

struct process {
	pid_t pid;
	pid_t parent;                /* that forked it, where it is one of these; else 0 */
	uint32_t profile_id;
	bool gone;
	bool ending;                 /* its first thread has ended */
	bool main;                   /* asked for, not started by another */
	uint64_t first_ns;           /* when it was known to run, CLOCK_MONOTONIC */
	uint64_t joined_ns;          /* when it was found, if that was after the recording began; else 0 */
	uint64_t start_ticks;        /* tells a pid that was given out again apart; 0: it was gone before it could be looked at,
				      * and what has the pid now is not it */
	uint64_t cpu_start_ns, cpu_now_ns;
	uint64_t looked;             /* the reading in which processes_still() looked at it; 0: none */
	bool there;                  /* what it found */
	struct mappings mappings;
};

struct processes {
	struct profile *profile;
	struct modules *modules;
	const struct processes_sink *sink;
	void *context;
	uint64_t start_mono_ns;
	VEC(struct process) list;
	struct map by_pid;      /* pid to index in list; the live ones */
	struct map by_thread;   /* pid, tid to the profile's thread; the live ones */
	struct map cpu_before;  /* the profile's thread to its CPU time when first seen */
	bool any_dirty, changed, ended;
	bool reading, news;     /* see processes_begin_reading() */
	uint64_t readings;
	bool finds_young; /* the kernel side does */
	uint32_t known_modules;
	const char *watched; /* processes_watch_maps() */
	processes_map_fn *watch;
	void *watch_context;
};

struct processes *processes_new(struct profile *p, bool cached)
{
	struct processes *ps = mem_alloc(sizeof(*ps));

	ps->profile = p;
	ps->modules = modules_new(p, cached);
	return ps;
}

void processes_set_sink(struct processes *ps, const struct processes_sink *sink, void *context)
{
	ps->sink = sink;
	ps->context = context;
	modules_set_sink(ps->modules, sink, context);
}

void processes_foresee(struct processes *ps, pid_t pid)
{
	struct proc_maps maps = { 0 };

	if (proc_maps_read(pid, true, &maps) < 0)
		return;
	for (size_t i = 0; i < maps.list.n; i++)
		modules_of_mapping(ps->modules, pid, 0, &maps.list.v[i]);
	proc_maps_done(&maps);
}

void processes_set_start(struct processes *ps, uint64_t start_mono_ns)
{
	ps->start_mono_ns = start_mono_ns;
}

void processes_set_finds_young(struct processes *ps, bool finds)
{
	ps->finds_young = finds;
}

void processes_free(struct processes *ps)
{
	if (!ps)
		return;
	vec_done_each(&ps->list, e, mappings_done(&e->mappings));
	map_done(&ps->by_pid);
	map_done(&ps->by_thread);
	map_done(&ps->cpu_before);
	modules_free(ps->modules);
	free(ps);
}

static struct process *find(const struct processes *ps, pid_t pid)
{
	uint64_t *i = map_get(&ps->by_pid, pid);

	return i ? &ps->list.v[*i] : NULL;
}

static uint64_t since_start(const struct processes *ps, uint64_t mono_ns)
{
	return mono_ns > ps->start_mono_ns ? mono_ns - ps->start_mono_ns : 0;
}

/* Times of records may be those of the slot that they fall into. Until a pid is given out again all others are, which takes longer. */
enum { SLACK_NS = 2 * SHARED_SLOT_NS, FORK_TICKS = 10 /* from a process's birth to the record of its fork, on a busy machine */ };

/* Is what has the pid now the process that ran at that moment? What was started later is not. A machine that was suspended in between
 * only makes this less strict. */
static bool started_by(uint64_t start_ticks, uint64_t mono_ns)
{
	uint64_t asleep_ns = clock_boot_ns() - clock_mono_ns();

	return start_ticks * SHARED_TICK_NS <= mono_ns + asleep_ns + SLACK_NS;
}

/* Notes when a process was started. mono_ns: it is known to have run then. False: it is gone. */
static bool identify(struct process *pr, uint64_t mono_ns, struct proc_stat *st)
{
	if (proc_stat(pr->pid, st) < 0)
		return false;
	if (!pr->start_ticks && started_by(st->start_ticks, mono_ns))
		pr->start_ticks = st->start_ticks;
	return st->start_ticks == pr->start_ticks;
}

/* Reads the name of a process: after it was added and after each exec. mono_ns: see identify(). */
static void describe(struct processes *ps, struct process *pr, uint64_t mono_ns)
{
	struct profile_process *out = &ps->profile->processes.v[pr->profile_id], found = *out;
	_cleanup_free_ char *command = NULL, *exe = NULL;
	struct proc_stat st;

	if (!identify(pr, mono_ns, &st))
		return;
	command = proc_command(pr->pid);
	exe = proc_exe(pr->pid);
	owners_find(ps->profile, pr->pid, &found);
	/* All of that was its own, if it is still there. */
	if (proc_started(pr->pid) != pr->start_ticks)
		return;
	out->name = profile_string(ps->profile, st.name);
	out->parent_pid = st.parent;
	out->owner = found.owner;
	out->inner_pid = found.inner_pid;
	if (command)
		out->command = profile_string(ps->profile, command);
	if (exe)
		out->exe = profile_string(ps->profile, exe);
}

static struct process *add(struct processes *ps, pid_t pid, uint64_t mono_ns)
{
	struct process pr = { .pid = pid, .mappings.dirty = true, .first_ns = mono_ns };

	pr.profile_id = profile_add_process(ps->profile,
		&(struct profile_process){ .pid = pid, .start_ns = since_start(ps, mono_ns) });
	vec_push(&ps->list, pr);
	*map_put(&ps->by_pid, pid, 0) = ps->list.n - 1;
	ps->any_dirty = ps->changed = ps->news = true;
	return &ps->list.v[ps->list.n - 1];
}

/* It is over: whatever has its pid from now on is another. */
static void retire(struct processes *ps, struct process *pr, uint64_t mono_ns)
{
	pr->gone = true;
	map_remove(&ps->by_pid, pr->pid);
	mappings_done(&pr->mappings);
	ps->profile->processes.v[pr->profile_id].end_ns = MAX(since_start(ps, mono_ns), 1); /* 0 = alive */
	ps->sink->gone(ps->context, pr->pid, pr->start_ticks);
}

/* The threads that are there already, with the CPU time they have used before. */
static void add_threads(struct processes *ps, pid_t pid, uint64_t mono_ns)
{
	struct proc_ids tids = { 0 };

	if (proc_threads(pid, &tids) >= 0)
		for (size_t i = 0; i < tids.list.n; i++) {
			uint64_t cpu, queue;
			struct proc_stat st;
			uint32_t id;

			if (proc_thread_stat(pid, tids.list.v[i], &st) < 0)
				continue;
			id = processes_thread(ps, pid, tids.list.v[i], st.name, mono_ns);
			if (proc_schedstat(pid, tids.list.v[i], &cpu, &queue) >= 0)
				*map_put(&ps->cpu_before, id, 0) = cpu;
		}
	vec_done(&tids.list);
}

int processes_add(struct processes *ps, pid_t pid, bool starting, struct err *err)
{
	struct process *pr = find(ps, pid);
	struct proc_stat st;

	if (pr)
		return 0;
	if (proc_stat(pid, &st) < 0 || st.state == 'Z' || st.state == 'X')
		return err_set(err, ESRCH, "process %d does not run (any more)", (int)pid);
	pr = add(ps, pid, ps->start_mono_ns);
	pr->cpu_start_ns = pr->cpu_now_ns = st.cpu_ns;
	pr->main = true;
	pr->start_ticks = st.start_ticks;
	describe(ps, pr, clock_mono_ns());
	if (starting) {
		pr->mappings.dirty = false;
		ps->sink->mappings(ps->context, pid, pr->start_ticks, NULL, 0);
		return 0;
	}
	add_threads(ps, pid, ps->start_mono_ns);
	processes_refresh(ps);
	return 0;
}

bool processes_join(struct processes *ps, pid_t pid, bool main, uint64_t mono_ns)
{
	struct process *pr;
	struct proc_stat st;

	if (find(ps, pid) || proc_stat(pid, &st) < 0 || st.state == 'Z' || st.state == 'X')
		return false;
	pr = add(ps, pid, mono_ns);
	pr->cpu_start_ns = pr->cpu_now_ns = st.cpu_ns;
	pr->main = main;
	pr->joined_ns = mono_ns;
	pr->first_ns = clock_mono_ns();
	pr->start_ticks = st.start_ticks;
	describe(ps, pr, mono_ns);
	add_threads(ps, pid, mono_ns);
	processes_refresh(ps);
	return true;
}

uint64_t processes_joined_ns(const struct processes *ps, pid_t pid)
{
	const struct process *pr = find(ps, pid);

	return pr ? pr->joined_ns : 0;
}

uint32_t processes_mains(const struct processes *ps, struct proc_ids *ret)
{
	uint32_t alive = 0;

	for (size_t i = 0; i < ps->list.n; i++)
		if (ps->list.v[i].main && !ps->list.v[i].gone) {
			alive++;
			if (ret)
				vec_push(&ret->list, ps->list.v[i].pid);
		}
	return alive;
}

bool processes_looks_like(const struct processes *ps, pid_t pid)
{
	_cleanup_free_ char *exe = proc_exe(pid);
	struct proc_stat st;

	if (proc_stat(pid, &st) < 0)
		return false;
	for (size_t i = 0; i < ps->list.n; i++) {
		const struct profile_process *p = &ps->profile->processes.v[ps->list.v[i].profile_id];

		if (!ps->list.v[i].main)
			continue;
		if (!strcmp(profile_str(ps->profile, p->name), st.name) ||
		    (exe && *exe && !strcmp(profile_str(ps->profile, p->exe), exe)))
			return true;
	}
	return false;
}

bool processes_ended(struct processes *ps)
{
	bool ended = ps->ended;

	ps->ended = false;
	return ended;
}

void processes_prepare(struct processes *ps, const char *path)
{
	modules_prepare(ps->modules, path);
}

void processes_each_table(const struct processes *ps, void (*fn)(void *context, const struct unwind_table *table), void *context)
{
	modules_each_table(ps->modules, fn, context);
}

void processes_reused(struct processes *ps, pid_t pid, uint64_t mono_ns)
{
	struct process *pr = find(ps, pid);

	/* A record of the new one may have come before the one of its fork, or it was found in a cgroup. */
	if (pr && pr->first_ns + SLACK_NS < mono_ns &&
	    (!pr->start_ticks || started_by(pr->start_ticks + FORK_TICKS, mono_ns)))
		retire(ps, pr, mono_ns);
}

/* Until it runs exec a child is what its parent was. Only its number in a namespace of pids has to be looked up: reading
 * all of it again for each program that a shell starts was a third of the recorder's time. */
static void describe_child(struct processes *ps, struct process *pr, uint32_t from_id, uint64_t mono_ns)
{
	struct profile_process *out = &ps->profile->processes.v[pr->profile_id];
	const struct profile_process *from = &ps->profile->processes.v[from_id];
	struct proc_stat st;

	out->name = from->name;
	out->exe = from->exe;
	out->command = from->command;
	out->owner = from->owner;
	if (from->inner_pid)
		describe(ps, pr, mono_ns);
	else if (identify(pr, mono_ns, &st))
		out->parent_pid = st.parent;
}

void processes_fork(struct processes *ps, pid_t parent, pid_t child, uint64_t mono_ns)
{
	struct process *from = find(ps, parent), *pr;
	struct mappings copy;
	uint32_t from_id;

	processes_reused(ps, child, mono_ns);
	if (!from || find(ps, child))
		return;
	/* add() may move the list: take what is needed from the parent first. */
	from_id = from->profile_id;
	mappings_copy(&copy, &from->mappings, ps->finds_young);
	pr = add(ps, child, mono_ns);
	pr->mappings = copy;
	pr->parent = parent;
	describe_child(ps, pr, from_id, mono_ns);
}

void processes_exec(struct processes *ps, pid_t pid, uint64_t mono_ns)
{
	struct process *pr = find(ps, pid);

	if (!pr)
		return;
	mappings_clear(&pr->mappings, ps->finds_young);
	describe(ps, pr, mono_ns);
	processes_dirty(ps, pid);
}

void processes_dirty(struct processes *ps, pid_t pid)
{
	struct process *pr = find(ps, pid);

	if (pr)
		pr->mappings.dirty = ps->any_dirty = ps->news = true;
}

void processes_dirty_all(struct processes *ps)
{
	for (size_t i = 0; i < ps->list.n; i++)
		if (!ps->list.v[i].gone)
			ps->list.v[i].mappings.dirty = ps->any_dirty = ps->news = true;
}

static struct mappings_owner owner_of(const struct processes *ps, const struct process *pr)
{
	const struct process *parent = pr->parent ? find(ps, pr->parent) : NULL;

	return (struct mappings_owner){ .profile = ps->profile, .modules = ps->modules, .pid = pr->pid,
					.parent = parent && parent->start_ticks ? pr->parent : 0, .process = pr->profile_id,
					.start_ticks = pr->start_ticks, .time_ns = since_start(ps, clock_mono_ns()) };
}

void processes_watch_maps(struct processes *ps, const char *part, processes_map_fn *fn, void *context)
{
	ps->watched = part;
	ps->watch = fn;
	ps->watch_context = context;
}

void processes_map(struct processes *ps, pid_t pid, const struct proc_mapping *record)
{
	struct process *pr = find(ps, pid);
	struct mappings_owner o;

	if (!pr)
		return;
	ps->news = true;
	if (!pr->start_ticks) { /* gone; the next process of the program will have the same files */
		o = owner_of(ps, pr);
		modules_of_mapping(ps->modules, 0, o.parent, record);
		return;
	}
	if (ps->watch && strstr(record->path, ps->watched))
		ps->watch(ps->watch_context, pid, record->path);
	o = owner_of(ps, pr);
	mappings_apply(&pr->mappings, &o, record);
	ps->any_dirty |= pr->mappings.changed || pr->mappings.dirty;
}

/* Has all of it ended? The first thread may end before the others. */
static bool is_over(const struct process *pr)
{
	struct proc_stat st;

	return proc_stat(pr->pid, &st) < 0 || st.state == 'Z' || st.state == 'X' || st.start_ticks != pr->start_ticks;
}

/* at_once: however much it costs. */
static void refresh(struct processes *ps, bool at_once)
{
	bool placed = modules_step(ps->modules);

	if (!ps->any_dirty && !placed)
		return;
	ps->any_dirty = false;
	for (size_t i = 0; i < ps->list.n; i++) {
		struct process *pr = &ps->list.v[i];
		struct mappings *m = &pr->mappings;
		struct mappings_owner o;

		m->changed |= placed && m->waiting;
		/* Of one that was gone before it could be looked at, nothing can be read. */
		if (pr->gone || !pr->start_ticks || !(m->dirty || m->changed))
			continue;
		if (pr->ending && is_over(pr)) {
			m->dirty = m->changed = m->push = false;
			continue;
		}
		o = owner_of(ps, pr);
		if (mappings_refresh(m, &o, at_once)) {
			ps->sink->mappings(ps->context, pr->pid, pr->start_ticks, m->list.v, m->list.n);
			ps->changed = true;
		}
		ps->any_dirty |= m->dirty || m->changed;
	}
	if (modules_count(ps->modules) != ps->known_modules) {
		ps->known_modules = modules_count(ps->modules);
		ps->changed = true;
	}
}

void processes_refresh(struct processes *ps)
{
	refresh(ps, false);
}

bool processes_settle(struct processes *ps, uint64_t patience_ns)
{
	enum { LOOK_MS = 20 };
	uint64_t until = clock_mono_ns() + patience_ns, now;

	refresh(ps, true);
	while (modules_busy(ps->modules) && (now = clock_mono_ns()) < until) {
		struct pollfd p = { .fd = modules_event(ps->modules), .events = POLLIN };

		poll(&p, 1, MIN((until - now + 999999) / 1000000, LOOK_MS)); /* there may be no event */
		refresh(ps, true);
	}
	return !modules_busy(ps->modules);
}

int processes_event(const struct processes *ps)
{
	return modules_event(ps->modules);
}

int processes_timeout(const struct processes *ps, int timeout_ms)
{
	enum { SOON_MS = 10 };

	return ps->any_dirty ? MIN(timeout_ms, SOON_MS) : timeout_ms;
}

void processes_rename(struct processes *ps, pid_t pid, pid_t tid, const char *name)
{
	uint64_t *id = map_get(&ps->by_thread, map_pair(pid, tid));

	if (id)
		ps->profile->threads.v[*id].name = profile_string(ps->profile, name);
}

/* It stays known: records about it may still be on their way. */
void processes_thread_exit(struct processes *ps, pid_t pid, pid_t tid, uint64_t mono_ns)
{
	uint64_t *id = map_get(&ps->by_thread, map_pair(pid, tid));
	struct process *pr = pid == tid ? find(ps, pid) : NULL;

	ps->ended |= pid == tid;
	if (pr)
		pr->ending = true;
	if (id && !ps->profile->threads.v[*id].end_ns)
		ps->profile->threads.v[*id].end_ns = MAX(since_start(ps, mono_ns), 1); /* 0 = alive */
}

/* A thread that ended does nothing new; a moment later its number may be another's. So may that of its process, at once. */
static bool is_another(const struct processes *ps, const struct profile_thread *t, const struct process *pr, uint64_t mono_ns)
{
	enum { MOMENT_NS = 1000000000 };

	if (pr && t->process != pr->profile_id)
		return true;
	return t->end_ns && since_start(ps, mono_ns) > t->end_ns + MOMENT_NS;
}

/* Had it ended by the moment at which its number was given to a thread? */
static bool is_before(const struct processes *ps, const struct profile_thread *t, const struct process *pr, uint64_t mono_ns)
{
	return (pr && t->process != pr->profile_id) || (t->end_ns && since_start(ps, mono_ns) > t->end_ns);
}

void processes_thread_start(struct processes *ps, pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid,
			    uint64_t mono_ns)
{
	uint64_t *parent = map_get(&ps->by_thread, map_pair(parent_pid, parent_tid));
	uint64_t *known = map_get(&ps->by_thread, map_pair(pid, tid));
	const char *name = parent ? profile_str(ps->profile, ps->profile->threads.v[*parent].name) : "";

	if (known && !is_before(ps, &ps->profile->threads.v[*known], find(ps, pid), mono_ns))
		return; /* a sample or a look into /proc was quicker, and its name is newer */
	map_remove(&ps->by_thread, map_pair(pid, tid));
	processes_thread(ps, pid, tid, name, mono_ns);
}

uint32_t processes_thread(struct processes *ps, pid_t pid, pid_t tid, const char *name, uint64_t mono_ns)
{
	uint64_t *id = map_get(&ps->by_thread, map_pair(pid, tid));
	struct profile_thread *t;
	struct process *pr = find(ps, pid);
	struct proc_stat st;

	if (id && !is_another(ps, &ps->profile->threads.v[*id], pr, mono_ns)) {
		t = &ps->profile->threads.v[*id];
		if (*name && strcmp(profile_str(ps->profile, t->name), name))
			t->name = profile_string(ps->profile, name);
		return *id;
	}
	if (!pr) { /* its fork is still on the way to us */
		pr = add(ps, pid, mono_ns);
		describe(ps, pr, mono_ns);
	}
	if (!*name)
		name = proc_thread_stat(pid, tid, &st) >= 0 && started_by(st.start_ticks, mono_ns) ? st.name :
		       profile_str(ps->profile, ps->profile->processes.v[pr->profile_id].name);
	id = map_put(&ps->by_thread, map_pair(pid, tid), 0);
	*id = profile_add_thread(ps->profile,
		&(struct profile_thread){ .process = pr->profile_id, .tid = tid,
					  .name = profile_string(ps->profile, name),
					  .start_ns = since_start(ps, mono_ns) });
	return *id;
}

bool processes_knows(const struct processes *ps, pid_t pid)
{
	return find(ps, pid) != NULL;
}

void processes_begin_reading(struct processes *ps)
{
	ps->reading = true;
	ps->news = false;
	ps->readings++;
}

bool processes_end_reading(struct processes *ps)
{
	ps->reading = false;
	return ps->news;
}

bool processes_still(struct processes *ps, pid_t pid)
{
	struct process *pr = find(ps, pid);

	if (!pr || !pr->start_ticks)
		return false;
	if (!ps->reading || pr->looked != ps->readings)
		pr->there = proc_started(pid) == pr->start_ticks;
	pr->looked = ps->readings;
	return pr->there;
}

uint32_t processes_module(const struct processes *ps, uint32_t module)
{
	return modules_profile_id(ps->modules, module);
}

const struct shared_mapping *processes_mappings(const struct processes *ps, pid_t pid, uint32_t *ret_count)
{
	struct process *pr = find(ps, pid);

	*ret_count = pr ? pr->mappings.list.n : 0;
	return pr ? pr->mappings.list.v : NULL;
}

uint32_t processes_check_alive(struct processes *ps, uint64_t mono_ns)
{
	uint32_t alive = 0;

	for (size_t i = 0; i < ps->list.n; i++) {
		struct process *pr = &ps->list.v[i];
		struct proc_stat st;

		if (pr->gone)
			continue;
		if (pr->start_ticks && proc_stat(pr->pid, &st) >= 0 && st.start_ticks == pr->start_ticks) {
			pr->cpu_now_ns = MAX(pr->cpu_now_ns, st.cpu_ns); /* of a zombie, too */
			if (st.state != 'Z' && st.state != 'X') {
				alive++;
				continue;
			}
		}
		retire(ps, pr, mono_ns);
	}
	return alive;
}

uint64_t processes_cpu_ns(const struct processes *ps)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ps->list.n; i++)
		if (ps->list.v[i].cpu_now_ns > ps->list.v[i].cpu_start_ns)
			sum += ps->list.v[i].cpu_now_ns - ps->list.v[i].cpu_start_ns;
	return sum;
}

void processes_finish(struct processes *ps, uint64_t mono_ns)
{
	processes_check_alive(ps, mono_ns);
	for (size_t i = 0; i < ps->profile->threads.n; i++) {
		struct profile_thread *t = &ps->profile->threads.v[i];
		uint32_t pid = ps->profile->processes.v[t->process].pid;
		uint64_t *before = map_get(&ps->cpu_before, i), cpu, queue;

		if (t->end_ns || ps->profile->processes.v[t->process].end_ns || proc_schedstat(pid, t->tid, &cpu, &queue) < 0)
			continue;
		t->cpu_ns = cpu - (before && *before < cpu ? *before : 0);
	}
}

void processes_copy_files(const struct processes *ps, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	modules_copy_files(ps->modules, take, context);
}

void processes_hand_over(struct processes *ps, void (*take)(void *context, uint32_t module, int fd),
			 void *context)
{
	modules_hand_over(ps->modules, take, context);
}

bool processes_changed(struct processes *ps)
{
	bool changed = ps->changed;

	ps->changed = false;
	return changed;
}
