#include "import/perf/perfdataspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/perf/perfdatamodule.h"
#include "profile/profile.h"

enum {
	MAPS_MOST = 1 << 16,      /* of a process: Linux allows 65,530 by default */
	INHERITED_MOST = 4 << 20, /* copies that forks make, in all */
};

void perfdataspaces_done(struct perfdataspaces *s)
{
	vec_done_each(&s->list, e, vec_done(&e->maps));
	vec_done(&s->kernel.maps);
	map_done(&s->pids);
	map_done(&s->tids);
}

/* --- who --- */

static struct perfdataspace *add_space(struct perfdataspaces *s, uint32_t pid, uint32_t parent, uint64_t time_ns)
{
	struct perfdataspace x = { 0 };

	x.process = profile_add_process(s->p, &(struct profile_process){ .pid = pid, .parent_pid = parent, .start_ns = time_ns });
	vec_push(&s->list, x);
	*map_put(&s->pids, pid, 0) = s->list.n - 1;
	return &s->list.v[s->list.n - 1];
}

struct perfdataspace *perfdataspaces_of(struct perfdataspaces *s, uint32_t pid)
{
	const uint64_t *index = map_get(&s->pids, pid);

	return index ? &s->list.v[*index] : add_space(s, pid, 0, 0);
}

static uint32_t add_thread(struct perfdataspaces *s, uint32_t process, uint32_t tid, uint32_t name, uint64_t time_ns)
{
	uint32_t thread = profile_add_thread(
		s->p, &(struct profile_thread){ .process = process, .tid = tid, .name = name, .start_ns = time_ns });

	*map_put(&s->tids, tid, 0) = thread;
	return thread;
}

uint32_t perfdataspaces_known_thread(const struct perfdataspaces *s, uint32_t tid)
{
	const uint64_t *thread = map_get(&s->tids, tid);

	return thread ? *thread : PROFILE_NONE;
}

uint32_t perfdataspaces_thread(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	uint32_t thread = perfdataspaces_known_thread(s, tid), process;

	if (thread != PROFILE_NONE && (!pid || s->p->processes.v[s->p->threads.v[thread].process].pid == pid))
		return thread;
	process = perfdataspaces_of(s, pid ? pid : tid)->process;
	/* The kernel's idle threads, one a CPU, are all 0. */
	return add_thread(s, process, tid, tid || pid ? 0 : profile_string(s->p, "swapper"), time_ns);
}

void perfdataspaces_comm(struct perfdataspaces *s, uint32_t pid, uint32_t tid, const char *name, bool exec, uint64_t time_ns)
{
	struct perfdataspace *space = perfdataspaces_of(s, pid);
	uint32_t thread = perfdataspaces_thread(s, pid, tid, time_ns);

	s->p->threads.v[thread].name = profile_string(s->p, name);
	if (pid == tid)
		s->p->processes.v[space->process].name = profile_string(s->p, name);
	if (!exec)
		return;
	vec_clear(&space->maps);
	s->p->processes.v[space->process].exe = 0;
}

void perfdataspaces_fork(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint32_t parent_pid, uint32_t parent_tid, uint64_t time_ns)
{
	uint32_t name = 0, parent = perfdataspaces_known_thread(s, parent_tid);
	struct perfdataspace *from, *to;

	if (parent != PROFILE_NONE)
		name = s->p->threads.v[parent].name;
	if (pid == parent_pid) {
		add_thread(s, perfdataspaces_of(s, pid)->process, tid, name, time_ns);
		return;
	}
	/* A number may be given again. */
	perfdataspaces_of(s, parent_pid);
	to = add_space(s, pid, parent_pid, time_ns);
	from = perfdataspaces_of(s, parent_pid);
	if (s->inherited + from->maps.n <= INHERITED_MOST && from->maps.n) {
		vec_reserve(&to->maps, from->maps.n);
		memcpy(to->maps.v, from->maps.v, from->maps.n * sizeof(*to->maps.v));
		s->inherited += to->maps.n = from->maps.n;
	}
	/* Those of code without a file are the parent's. */
	for (size_t i = 0; i < to->maps.n; i++)
		to->maps.v[i].resolved = false;
	s->p->processes.v[to->process].name = name;
	s->p->processes.v[to->process].exe = s->p->processes.v[from->process].exe;
	add_thread(s, to->process, tid, name, time_ns);
}

void perfdataspaces_exit(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	uint32_t thread = perfdataspaces_known_thread(s, tid);
	const uint64_t *index = map_get(&s->pids, pid);

	if (thread != PROFILE_NONE)
		s->p->threads.v[thread].end_ns = MAX(time_ns, 1);
	if (pid == tid && index)
		s->p->processes.v[s->list.v[*index].process].end_ns = MAX(time_ns, 1);
}

/* --- where --- */

/* Leaves of a mapping what is outside of [start, end): nothing, one part, or two. */
static size_t cut(const struct perfdatamap *m, uint64_t start, uint64_t end, struct perfdatamap ret[2])
{
	size_t n = 0;

	if (m->start < start) {
		ret[n] = *m;
		ret[n++].end = start;
	}
	if (m->end > end) {
		ret[n] = *m;
		ret[n].start = end;
		ret[n++].offset += end - m->start;
	}
	return n;
}

/* Replaces the mappings that overlap [start, end) by what is left of them, with one between if it is not NULL. */
static void replace(struct perfdataspace *space, uint64_t start, uint64_t end, const struct perfdatamap *with)
{
	size_t first = vec_search(i, 0, space->maps.n, space->maps.v[i].end <= start);
	size_t last = vec_search(i, first, space->maps.n, space->maps.v[i].start < end), n = 0, left;
	struct perfdatamap parts[5];

	if (first < last)
		n = cut(&space->maps.v[first], start, UINT64_MAX, parts);
	if (with)
		parts[n++] = *with;
	if (first < last) {
		struct perfdatamap tail[2];

		left = cut(&space->maps.v[last - 1], 0, end, tail);
		if (left)
			parts[n++] = tail[left - 1];
	}
	vec_reserve(&space->maps, n);
	if (space->maps.n > last)
		memmove(space->maps.v + first + n, space->maps.v + last, (space->maps.n - last) * sizeof(*parts));
	if (n)
		memcpy(space->maps.v + first, parts, n * sizeof(*parts));
	space->maps.n += n;
	space->maps.n -= last - first;
	space->last = 0;
}

void perfdataspaces_unmap(struct perfdataspace *space, uint64_t start, uint64_t end)
{
	if (start < end)
		replace(space, start, end, NULL);
}

void perfdataspaces_map(struct perfdataspaces *s, struct perfdataspace *space, const struct perfdatamap *map)
{
	const struct profile_module *x = map->module < s->modules->list.n ? &s->p->modules.v[s->modules->list.v[map->module].id] : NULL;

	if (map->start >= map->end || space->maps.n >= MAPS_MOST)
		return;
	replace(space, map->start, map->end, map);
	/* The program is mapped before its libraries. */
	if (space != &s->kernel && x && x->kind == MODULE_FILE && !s->p->processes.v[space->process].exe)
		s->p->processes.v[space->process].exe = x->path;
}

/* The mapping's place in its module, once it is asked for. */
static void resolve(struct perfdataspaces *s, const struct perfdataspace *space, struct perfdatamap *m)
{
	struct profile *p = s->p;
	uint32_t id;

	m->resolved = true;
	if (space == &s->kernel || m->name)
		return;
	if (p->modules.v[s->modules->list.v[m->module].id].kind == MODULE_JIT)
		m->module = perfdatamodules_find(s->modules, "", NULL, 0, space->process);
	m->bias = perfdatamodules_bias(s->modules, m->module, m->start, m->offset);
	id = s->modules->list.v[m->module].id;
	profile_add_mapping(p, &(struct profile_mapping){ .process = space->process, .module = id, .start = m->start, .end = m->end, .bias = m->bias });
}

struct perfdatamap *perfdataspaces_find(struct perfdataspaces *s, struct perfdataspace *space, uint64_t address)
{
	struct perfdatamap *m = space->last < space->maps.n ? &space->maps.v[space->last] : NULL;

	if (!m || address < m->start || address >= m->end) {
		size_t i = vec_search(k, 0, space->maps.n, space->maps.v[k].end <= address);

		if (i == space->maps.n || space->maps.v[i].start > address)
			return NULL;
		m = &space->maps.v[space->last = i];
	}
	if (!m->resolved)
		resolve(s, space, m);
	return m;
}
