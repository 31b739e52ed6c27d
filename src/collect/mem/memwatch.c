#include "collect/mem/memwatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/pressure.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "net/http.h"
#include "target/cgroup/cgroupmemory.h"
#include "target/memory/memory.h"
#include "target/memory/metrics.h"
#include "target/proc.h"

enum {
	WALK_SHARE = 100,      /* a walk may take one part in so many of the time */
	FILES_EACH_LOOK = 16, FILES_MOST = 64,
	METRICS_MOST = 16 << 20, METRICS_SECONDS = 3,
};

struct memwatch {
	struct profile *profile;
	uint64_t start_mono_ns;
	struct proc_ids pids, family; /* as of the last walk */
	struct pressure *pressure;
	struct map series;        /* hash of the name to the profile's id */
	VEC(uint32_t) files;      /* series of files */
	struct map minor, major;  /* by pid: faults at the last look */
	struct cgroupmemory_machine machine;
	uint64_t group_reclaimed;
	bool looked, group_seen;
	uint64_t next_walk_ns;
	long page_bytes;
};

/* --- points --- */

enum keep { ALWAYS, UNLESS_ZERO };

/* A series is made when it has something to say first; it goes on then. */
static void add(struct memwatch *w, uint64_t time_ns, const char *key, uint64_t value, enum keep keep)
{
	uint64_t hash = map_hash_bytes(key, strlen(key)), *at = map_get(&w->series, hash);

	if (keep == UNLESS_ZERO && !value && !at)
		return;
	if (!at)
		at = map_put(&w->series, hash, profile_series(w->profile, key));
	profile_add_point(w->profile, *at, time_ns, value);
}

static void add_parts(struct memwatch *w, uint64_t time_ns, const struct memory *m)
{
	static const char *const parts[MEMORY_PARTS] = {
		[MEMORY_HEAP] = KEY_MEM_PART_HEAP, [MEMORY_ANONYMOUS] = KEY_MEM_PART_ANONYMOUS,
		[MEMORY_FILES] = KEY_MEM_PART_FILES, [MEMORY_SHARED] = KEY_MEM_PART_SHARED,
		[MEMORY_STACKS] = KEY_MEM_PART_STACKS, [MEMORY_DATA] = KEY_MEM_PART_DATA,
		[MEMORY_OTHER] = KEY_MEM_PART_OTHER,
	};

	for (int i = 0; i < MEMORY_PARTS; i++)
		add(w, time_ns, parts[i], m->part_bytes[i], ALWAYS);
	add(w, time_ns, KEY_MEM_PSS, m->pss_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_SHARED_PAGES, m->shared_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_LOCKED, m->locked_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_HUGE_PAGES, m->huge_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_LAZY_FREE, m->lazyfree_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_STACKS, m->stacks, ALWAYS);
}

static const struct memory_file *find_file(const struct memory *m, const char *path)
{
	for (size_t i = 0; i < m->files.n; i++)
		if (!strcmp(m->files.v[i].path, path))
			return &m->files.v[i];
	return NULL;
}

/* The largest of now, and those that were among the largest before. */
static void add_files(struct memwatch *w, uint64_t time_ns, const struct memory *m)
{
	for (size_t i = 0; i < m->files.n && i < FILES_EACH_LOOK && w->files.n < FILES_MOST; i++) {
		_cleanup_free_ char *key = key_of(KEY_MEM_FILE_OF, m->files.v[i].path);
		uint64_t hash = map_hash_bytes(key, strlen(key));

		if (!m->files.v[i].rss_bytes || map_get(&w->series, hash))
			continue;
		vec_push(&w->files, *map_put(&w->series, hash, profile_series(w->profile, key)));
	}
	for (size_t i = 0; i < w->files.n; i++) {
		const char *name = profile_str(w->profile, w->profile->series.v[w->files.v[i]].name);
		const struct memory_file *f = find_file(m, key_rest(KEY_MEM_FILE_OF, name));

		profile_add_point(w->profile, w->files.v[i], time_ns, f ? f->rss_bytes : 0);
	}
}

static void add_memory(struct memwatch *w, uint64_t time_ns, const struct memory *m)
{
	add(w, time_ns, KEY_MEM_RSS, m->rss_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_ANON, m->anon_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_SWAP, m->swap_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_PAGE_TABLES, m->page_table_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_PEAK, m->peak_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_VIRTUAL, m->virtual_bytes, ALWAYS);
	add(w, time_ns, KEY_MEM_HUGETLB, m->hugetlb_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_MEM_PROCESSES, m->processes, ALWAYS);
	add(w, time_ns, KEY_MEM_THREADS, m->threads, ALWAYS);
	if (!m->walked)
		return;
	add_parts(w, time_ns, m);
	add_files(w, time_ns, m);
}

static void add_group(struct memwatch *w, uint64_t time_ns)
{
	struct cgroupmemory g;

	if (cgroupmemory_read(w->pids.list.v[0], &g))
		return;
	if (!w->group_seen)
		profile_count_set_of(w->profile, KEY_CGROUP_PATH_OF, g.path, g.version);
	add(w, time_ns, KEY_CGROUP_MEMORY_USAGE, g.usage_bytes, ALWAYS);
	if (g.limit_bytes != CGROUPMEMORY_NO_LIMIT)
		add(w, time_ns, KEY_CGROUP_MEMORY_LIMIT, g.limit_bytes, ALWAYS);
	if (g.high_bytes != CGROUPMEMORY_NO_LIMIT)
		add(w, time_ns, KEY_CGROUP_MEMORY_HIGH, g.high_bytes, ALWAYS);
	add(w, time_ns, KEY_CGROUP_MEMORY_ANON, g.anon_bytes, ALWAYS);
	add(w, time_ns, KEY_CGROUP_MEMORY_FILE, g.file_bytes, ALWAYS);
	add(w, time_ns, KEY_CGROUP_MEMORY_KERNEL, g.kernel_bytes, ALWAYS);
	add(w, time_ns, KEY_CGROUP_MEMORY_SWAP, g.swap_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_CGROUP_MEMORY_PEAK, g.peak_bytes, UNLESS_ZERO);
	add(w, time_ns, KEY_CGROUP_MEMORY_LIMIT_HITS, g.limit_hits, ALWAYS);
	add(w, time_ns, KEY_CGROUP_MEMORY_OOM_KILLS, g.oom_kills, ALWAYS);
	if (w->group_seen && g.reclaimed_pages >= w->group_reclaimed)
		add(w, time_ns, KEY_CGROUP_MEMORY_RECLAIMED,
		    (g.reclaimed_pages - w->group_reclaimed) * w->page_bytes, UNLESS_ZERO);
	w->group_reclaimed = g.reclaimed_pages;
	w->group_seen = true;
	cgroupmemory_done(&g);
}

static void add_machine(struct memwatch *w, uint64_t time_ns)
{
	struct cgroupmemory_machine now;

	if (cgroupmemory_machine(&now))
		return;
	if (w->looked) {
		add(w, time_ns, KEY_MACHINE_RECLAIMED,
		    (now.reclaimed_pages - w->machine.reclaimed_pages) * w->page_bytes, ALWAYS);
		add(w, time_ns, KEY_MACHINE_RECLAIM_STALLS, now.stalls - w->machine.stalls, ALWAYS);
	}
	w->machine = now;
}

/* --- looking --- */

/* By what a counter of one process has grown; what was before the first look is not ours. */
static uint64_t grown(struct memwatch *w, struct map *last, pid_t pid, uint64_t value)
{
	uint64_t *at = map_put(last, pid, w->looked ? 0 : value), before = *at;

	*at = value;
	return value >= before ? value - before : 0;
}

/* The processes and what they have started. */
static void find_family(struct memwatch *w)
{
	struct proc_ids *ret = &w->family;
	_cleanup_(map_done) struct map seen = { 0 };

	vec_clear(&ret->list);
	for (size_t i = 0; i < w->pids.list.n; i++) {
		struct proc_ids children;

		if (!map_get(&seen, w->pids.list.v[i]))
			vec_push(&ret->list, w->pids.list.v[i]);
		map_put(&seen, w->pids.list.v[i], 1);
		if (proc_children(w->pids.list.v[i], &children))
			continue;
		for (size_t k = 0; k < children.list.n; k++) {
			if (!map_get(&seen, children.list.v[k]) && children.list.v[k] != getpid())
				vec_push(&ret->list, children.list.v[k]);
			map_put(&seen, children.list.v[k], 1);
		}
		vec_done(&children.list);
	}
}

size_t memwatch_look(struct memwatch *w, uint64_t now, enum memwatch_how how)
{
	uint64_t time_ns = now > w->start_mono_ns ? now - w->start_mono_ns : 0, begin = clock_mono_ns();
	bool walk = how == MEMWATCH_WALK || (how == MEMWATCH_BUDGET && now >= w->next_walk_ns);
	uint64_t minor = 0, major = 0;
	struct memory sum = { 0 };

	if (walk || !w->family.list.n)
		find_family(w);
	for (size_t i = 0; i < w->family.list.n; i++) {
		pid_t pid = w->family.list.v[i];
		struct memory m;

		if (!memory_read(pid, walk, &m)) {
			memory_add(&sum, &m);
			minor += grown(w, &w->minor, pid, m.minor_faults);
			major += grown(w, &w->major, pid, m.major_faults);
		}
		memory_done(&m);
	}
	if (walk)
		w->next_walk_ns = now + (clock_mono_ns() - begin) * WALK_SHARE;
	if (sum.processes && sum.rss_bytes) { /* one that is just ending has none */
		add_memory(w, time_ns, &sum);
		if (walk)
			profile_count_set(w->profile, KEY_MEM_NOT_WALKED, !sum.walked);
		if (w->looked) {
			add(w, time_ns, KEY_MEM_FAULTS_MINOR, minor, ALWAYS);
			add(w, time_ns, KEY_MEM_FAULTS_MAJOR, major, ALWAYS);
		}
		add_group(w, time_ns);
		add_machine(w, time_ns);
		if (w->pressure && w->looked)
			pressure_tick(w->pressure, now);
		w->looked = true;
	}
	memory_done(&sum);
	return sum.processes;
}

int memwatch_metrics(struct memwatch *w, const char *url, uint64_t now, struct err *err)
{
	static const char *const metrics[METRICS_KEYS] = {
		[METRICS_ALLOCATED] = KEY_JEMALLOC_ALLOCATED, [METRICS_ACTIVE] = KEY_JEMALLOC_ACTIVE,
		[METRICS_METADATA] = KEY_JEMALLOC_METADATA, [METRICS_RESIDENT] = KEY_JEMALLOC_RESIDENT,
		[METRICS_MAPPED] = KEY_JEMALLOC_MAPPED, [METRICS_RETAINED] = KEY_JEMALLOC_RETAINED,
	};
	const struct http_limits limits = { METRICS_MOST, METRICS_SECONDS, METRICS_SECONDS };
	uint64_t time_ns = now > w->start_mono_ns ? now - w->start_mono_ns : 0;
	_cleanup_free_ char *text = NULL;
	struct metrics m;
	int r = http_get_text(url, &limits, &text, NULL, err);

	if (r)
		return r;
	if (!metrics_parse(text, &m))
		return err_set(
			err, ENODATA,
			"%.100s has no statistics of jemalloc (jemalloc_allocated, jemalloc_active, ...)",
			url);
	for (int i = 0; i < METRICS_KEYS; i++)
		if (m.known[i])
			add(w, time_ns, metrics[i], m.bytes[i], ALWAYS);
	return 0;
}

/* --- life --- */

struct memwatch *memwatch_new(struct profile *p, const pid_t *pids, size_t n, uint64_t start_mono_ns,
			      bool pressure)
{
	struct memwatch *w = mem_alloc(sizeof(*w));

	w->profile = p;
	w->start_mono_ns = start_mono_ns;
	w->page_bytes = sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < n; i++)
		vec_push(&w->pids.list, pids[i]);
	if (pressure)
		w->pressure = pressure_new(p, pids, n, start_mono_ns);
	return w;
}

void memwatch_watch(struct memwatch *w, const pid_t *pids, size_t n)
{
	vec_clear(&w->pids.list);
	vec_clear(&w->family.list);
	for (size_t i = 0; i < n; i++)
		vec_push(&w->pids.list, pids[i]);
}

void memwatch_free(struct memwatch *w)
{
	if (!w)
		return;
	pressure_free(w->pressure);
	map_done(&w->series);
	map_done(&w->minor);
	map_done(&w->major);
	vec_done(&w->files);
	vec_done(&w->family.list);
	vec_done(&w->pids.list);
	free(w);
}
