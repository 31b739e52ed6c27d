#include "collect/mem/cgroupwatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/cgroup/cgroupcpu.h"
#include "target/cgroup/cgroupmemory.h"
#include "target/cgroup/cgrouppath.h"
#include "target/proc.h"

enum { GROUPS_MOST = 64 }; /* of a recording: what is beyond is no account but a census */

/* Counters that began somewhere; a group that was made anew begins at 0. */
struct grown {
	uint64_t last, sum;
};

struct cpu_seen {
	char *path;
	struct grown periods, throttled_periods, throttled_ns;
};

struct memory_seen {
	char *path;
	struct grown limit_hits, oom_kills;
	uint64_t most_bytes;
	int version;
};

struct cgroupwatch {
	struct session *session;
	VEC(struct cpu_seen) cpus;
	VEC(struct memory_seen) memories;
	bool looked;
};

struct cgroupwatch *cgroupwatch_new(struct session *s)
{
	struct cgroupwatch *w = mem_alloc(sizeof(*w));

	w->session = s;
	return w;
}

static void forget(struct cgroupwatch *w)
{
	for (size_t i = 0; i < w->cpus.n; i++)
		free(w->cpus.v[i].path);
	for (size_t i = 0; i < w->memories.n; i++)
		free(w->memories.v[i].path);
	vec_clear(&w->cpus);
	vec_clear(&w->memories);
	w->looked = false;
}

void cgroupwatch_free(struct cgroupwatch *w)
{
	if (!w)
		return;
	forget(w);
	vec_done(&w->cpus);
	vec_done(&w->memories);
	free(w);
}

void cgroupwatch_begin(struct cgroupwatch *w)
{
	forget(w);
	cgroupwatch_look(w);
}

static void grow(struct grown *g, uint64_t now, bool first)
{
	if (!first)
		g->sum += now >= g->last ? now - g->last : now;
	g->last = now;
}

static void count(struct cgroupwatch *w, const char *family, const char *path, uint64_t value)
{
	profile_count_set_of(w->session->profile, family, path, value);
}

/* A folder whose figures are kept: how many recordings they come from, for those that must not add up. */
static char *keep(struct cgroupwatch *w, const char *family, const char *path)
{
	count(w, family, path, 1);
	return mem_strdup(path);
}

/* A group that is new began with the recording, but for the first look: then it was there before. */
static void look_at_cpu(struct cgroupwatch *w, const struct cgroupcpu *g)
{
	struct cpu_seen *c;
	bool first = false;
	size_t i = 0;

	while (i < w->cpus.n && strcmp(w->cpus.v[i].path, g->path))
		i++;
	if (i == GROUPS_MOST || (i == w->cpus.n && !g->quota_us))
		return;
	if (i == w->cpus.n) {
		first = !w->looked;
		vec_push(&w->cpus, (struct cpu_seen){ .path = keep(w, KEY_CGROUP_CPU_RECORDINGS_OF, g->path) });
	}
	c = &w->cpus.v[i];
	grow(&c->periods, g->periods, first);
	grow(&c->throttled_periods, g->throttled_periods, first);
	grow(&c->throttled_ns, g->throttled_ns, first);
	if (g->quota_us) {
		count(w, KEY_CGROUP_CPU_QUOTA_US_OF, c->path, g->quota_us);
		count(w, KEY_CGROUP_CPU_PERIOD_US_OF, c->path, g->period_us);
	}
	count(w, KEY_CGROUP_CPU_PERIODS_OF, c->path, c->periods.sum);
	count(w, KEY_CGROUP_CPU_THROTTLED_PERIODS_OF, c->path, c->throttled_periods.sum);
	count(w, KEY_CGROUP_CPU_THROTTLED_NS_OF, c->path, c->throttled_ns.sum);
}

static void look_at_memory(struct cgroupwatch *w, const struct cgroupmemory *g)
{
	struct memory_seen *m;
	bool first = false;
	size_t i = 0;

	while (i < w->memories.n && strcmp(w->memories.v[i].path, g->path))
		i++;
	if (i == GROUPS_MOST)
		return;
	if (i == w->memories.n) {
		first = !w->looked;
		vec_push(&w->memories, (struct memory_seen){ .path = keep(w, KEY_CGROUP_MEMORY_RECORDINGS_OF, g->path) });
	}
	m = &w->memories.v[i];
	m->version = g->version;
	grow(&m->limit_hits, g->limit_hits, first);
	grow(&m->oom_kills, g->oom_kills, first);
	count(w, KEY_CGROUP_MEMORY_LIMIT_HITS_OF, m->path, m->limit_hits.sum);
	count(w, KEY_CGROUP_MEMORY_OOM_KILLS_OF, m->path, m->oom_kills.sum);
	m->most_bytes = MAX(m->most_bytes, g->usage_bytes);
	count(w, KEY_CGROUP_MEMORY_MOST_BYTES_OF, m->path, m->most_bytes);
	if (g->limit_bytes != CGROUPMEMORY_NO_LIMIT)
		count(w, KEY_CGROUP_MEMORY_LIMIT_BYTES_OF, m->path, g->limit_bytes);
	if (g->high_bytes != CGROUPMEMORY_NO_LIMIT)
		count(w, KEY_CGROUP_MEMORY_HIGH_BYTES_OF, m->path, g->high_bytes);
}

/* Nobody is left who would say where they were: a kill may be the reason. */
static void look_at_what_is_left(struct cgroupwatch *w)
{
	for (size_t i = 0; i < w->memories.n; i++) {
		struct memory_seen *m = &w->memories.v[i];
		struct cgroupmemory g;

		if (!cgroupmemory_read_folder(m->path, "", m->version, &g)) {
			grow(&m->limit_hits, g.limit_hits, false);
			grow(&m->oom_kills, g.oom_kills, false);
			count(w, KEY_CGROUP_MEMORY_LIMIT_HITS_OF, m->path, m->limit_hits.sum);
			count(w, KEY_CGROUP_MEMORY_OOM_KILLS_OF, m->path, m->oom_kills.sum);
		}
		cgroupmemory_done(&g);
	}
}

void cgroupwatch_look(struct cgroupwatch *w)
{
	struct session *s = w->session;
	struct proc_ids mains = { 0 };
	_cleanup_free_ char *last = NULL;
	bool quota = false;

	processes_mains(s->processes, &mains);
	for (size_t i = 0; i < mains.list.n; i++) {
		struct cgroupcpu cpu;
		struct cgroupmemory memory;
		char *group = cgrouppath_text(mains.list.v[i]);

		/* The processes of a container follow each other, all in one cgroup. */
		if (!group || (last && !strcmp(group, last))) {
			free(group);
			continue;
		}
		free(last);
		last = group;
		if (!cgroupcpu_read(mains.list.v[i], &cpu))
			look_at_cpu(w, &cpu);
		/* From within a container the groups of others may be out of sight: look for a quota then, too. */
		quota |= cpu.quota_us || (!cpu.path && cgroupcpu_hidden(mains.list.v[i]));
		cgroupcpu_done(&cpu);
		if (!cgroupmemory_read(mains.list.v[i], &memory))
			look_at_memory(w, &memory);
		cgroupmemory_done(&memory);
	}
	if (mains.list.n) {
		s->quota = quota;
		w->looked = true;
	} else {
		look_at_what_is_left(w);
	}
	vec_done(&mains.list);
}
