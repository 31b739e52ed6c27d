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
#include "profile/profile.h"
#include "net/http.h"
#include "target/cgroup/memgroup.h"
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
	struct memgroup_machine machine;
	uint64_t group_reclaimed;
	bool looked, group_seen;
	uint64_t next_walk_ns;
	long page_bytes;
};

/* --- points --- */

enum keep { ALWAYS, UNLESS_ZERO };

/* A series is made when it has something to say first; it goes on then. */
static uint32_t series_of(struct memwatch *w, const char *name, const char *unit)
{
	uint64_t *at = map_put(&w->series, map_hash_bytes(name, strlen(name)), PROFILE_NONE);

	for (size_t i = 0; *at == PROFILE_NONE && i < w->profile->series.n; i++)
		if (!strcmp(profile_str(w->profile, w->profile->series.v[i].name), name))
			*at = i;
	if (*at == PROFILE_NONE)
		*at = profile_add_series(w->profile, name, unit);
	return *at;
}

static void add(struct memwatch *w, uint64_t time_ns, const char *name, const char *unit, uint64_t value,
		enum keep keep)
{
	if (keep == UNLESS_ZERO && !value && !map_get(&w->series, map_hash_bytes(name, strlen(name))))
		return;
	profile_add_point(w->profile, series_of(w, name, unit), time_ns, value);
}

static void add_parts(struct memwatch *w, uint64_t time_ns, const struct memory *m)
{
	static const char *const names[MEMORY_PARTS] = {
		[MEMORY_HEAP] = "mem.part.heap", [MEMORY_ANONYMOUS] = "mem.part.anonymous",
		[MEMORY_FILES] = "mem.part.files", [MEMORY_SHARED] = "mem.part.shared",
		[MEMORY_STACKS] = "mem.part.stacks", [MEMORY_DATA] = "mem.part.data",
		[MEMORY_OTHER] = "mem.part.other",
	};

	for (int i = 0; i < MEMORY_PARTS; i++)
		add(w, time_ns, names[i], "bytes", m->part_bytes[i], ALWAYS);
	add(w, time_ns, "mem.pss", "bytes", m->pss_bytes, ALWAYS);
	add(w, time_ns, "mem.shared pages", "bytes", m->shared_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.locked", "bytes", m->locked_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.huge pages", "bytes", m->huge_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.lazy free", "bytes", m->lazyfree_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.stacks", "count", m->stacks, ALWAYS);
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
	static const char prefix[] = "mem.file:";

	for (size_t i = 0; i < m->files.n && i < FILES_EACH_LOOK && w->files.n < FILES_MOST; i++) {
		_cleanup_free_ char *name = mem_printf("%s%s", prefix, m->files.v[i].path);

		if (!m->files.v[i].rss_bytes || map_get(&w->series, map_hash_bytes(name, strlen(name))))
			continue;
		vec_push(&w->files, series_of(w, name, "bytes"));
	}
	for (size_t i = 0; i < w->files.n; i++) {
		const char *name = profile_str(w->profile, w->profile->series.v[w->files.v[i]].name);
		const struct memory_file *f = find_file(m, name + sizeof(prefix) - 1);

		profile_add_point(w->profile, w->files.v[i], time_ns, f ? f->rss_bytes : 0);
	}
}

static void add_memory(struct memwatch *w, uint64_t time_ns, const struct memory *m)
{
	add(w, time_ns, "mem.rss", "bytes", m->rss_bytes, ALWAYS);
	add(w, time_ns, "mem.anon", "bytes", m->anon_bytes, ALWAYS);
	add(w, time_ns, "mem.swap", "bytes", m->swap_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.page tables", "bytes", m->page_table_bytes, ALWAYS);
	add(w, time_ns, "mem.peak", "bytes", m->peak_bytes, ALWAYS);
	add(w, time_ns, "mem.virtual", "bytes", m->virtual_bytes, ALWAYS);
	add(w, time_ns, "mem.hugetlb", "bytes", m->hugetlb_bytes, UNLESS_ZERO);
	add(w, time_ns, "mem.processes", "count", m->processes, ALWAYS);
	add(w, time_ns, "mem.threads", "count", m->threads, ALWAYS);
	if (!m->walked)
		return;
	add_parts(w, time_ns, m);
	add_files(w, time_ns, m);
}

static void add_group(struct memwatch *w, uint64_t time_ns)
{
	struct memgroup g;

	if (memgroup_read(w->pids.list.v[0], &g))
		return;
	if (!w->group_seen) {
		_cleanup_free_ char *name = mem_printf("cgroup.path: %s", g.path);

		profile_count_set(w->profile, name, g.version);
	}
	add(w, time_ns, "cgroup.memory.usage", "bytes", g.usage_bytes, ALWAYS);
	if (g.limit_bytes != MEMGROUP_NO_LIMIT)
		add(w, time_ns, "cgroup.memory.limit", "bytes", g.limit_bytes, ALWAYS);
	if (g.high_bytes != MEMGROUP_NO_LIMIT)
		add(w, time_ns, "cgroup.memory.high", "bytes", g.high_bytes, ALWAYS);
	add(w, time_ns, "cgroup.memory.anon", "bytes", g.anon_bytes, ALWAYS);
	add(w, time_ns, "cgroup.memory.file", "bytes", g.file_bytes, ALWAYS);
	add(w, time_ns, "cgroup.memory.kernel", "bytes", g.kernel_bytes, ALWAYS);
	add(w, time_ns, "cgroup.memory.swap", "bytes", g.swap_bytes, UNLESS_ZERO);
	add(w, time_ns, "cgroup.memory.peak", "bytes", g.peak_bytes, UNLESS_ZERO);
	add(w, time_ns, "cgroup.memory.limit hits", "count", g.limit_hits, ALWAYS);
	add(w, time_ns, "cgroup.memory.oom kills", "count", g.oom_kills, ALWAYS);
	if (w->group_seen && g.reclaimed_pages >= w->group_reclaimed)
		add(w, time_ns, "cgroup.memory.reclaimed", "bytes",
		    (g.reclaimed_pages - w->group_reclaimed) * w->page_bytes, UNLESS_ZERO);
	w->group_reclaimed = g.reclaimed_pages;
	w->group_seen = true;
	memgroup_done(&g);
}

static void add_machine(struct memwatch *w, uint64_t time_ns)
{
	struct memgroup_machine now;

	if (memgroup_machine(&now))
		return;
	if (w->looked) {
		add(w, time_ns, "machine.reclaimed", "bytes",
		    (now.reclaimed_pages - w->machine.reclaimed_pages) * w->page_bytes, ALWAYS);
		add(w, time_ns, "machine.reclaim stalls", "count", now.stalls - w->machine.stalls, ALWAYS);
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
	struct map seen = { 0 };

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
	map_done(&seen);
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
			profile_count_set(w->profile, "mem.not walked", !sum.walked);
		if (w->looked) {
			add(w, time_ns, "mem.faults.minor", "count", minor, ALWAYS);
			add(w, time_ns, "mem.faults.major", "count", major, ALWAYS);
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
	for (int i = 0; i < METRICS_KEYS; i++) {
		_cleanup_free_ char *name = mem_printf("jemalloc.%s", metrics_names[i]);

		if (m.known[i])
			add(w, time_ns, name, "bytes", m.bytes[i], ALWAYS);
	}
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
