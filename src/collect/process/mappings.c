#include "collect/process/mappings.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/process/modules.h"
#include "collect/shared.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/proc.h"

enum {
	MAX_AREAS = 1 << 18,  /* of one process, unmapped ones included; the kernel allows 65,530 mappings */
	MAX_NOTED = 1 << 16,  /* that the profile keeps of one process */
	READ_REST = 50,       /* reading rests so many times as long as it took: 2 % of a CPU */
	MAKE_REST = 20,
};
static const uint64_t rest_max_ns = 10000000000, later_ns = 200000000;
/* After exec the kernel's records tell all that is mapped; reading it, too, is for those that came out of order. Few
 * programs of a shell loop live so long. */
static const uint64_t young_ns = 20000000;

void mappings_done(struct mappings *m)
{
	vec_done(&m->areas.list);
	vec_done(&m->list);
	*m = (struct mappings){ 0 };
}

void mappings_copy(struct mappings *to, const struct mappings *from, bool young)
{
	*to = (struct mappings){ .jit = from->jit, .dirty = from->dirty, .changed = true, .push = true };
	if (young)
		to->made_ns = to->read_ns = clock_mono_ns() + young_ns;
	for (size_t i = 0; i < from->areas.list.n; i++)
		vec_push(&to->areas.list, from->areas.list.v[i]);
	for (size_t i = 0; i < from->list.n; i++)
		vec_push(&to->list, from->list.v[i]);
}

void mappings_clear(struct mappings *m, bool young)
{
	vec_clear(&m->areas.list);
	vec_clear(&m->list);
	m->jit = 0;
	m->dirty = true;
	m->put_off = true; /* as it should be: not counted */
	m->read_ns = clock_mono_ns() + young_ns;
	m->made_ns = young ? m->read_ns : 0;
}

/* MODULES_LATER: it has to be asked for again. */
static uint32_t put(struct areas *areas, const struct mappings_owner *o, const struct proc_mapping *record, bool *ret_new)
{
	uint32_t file = modules_of_mapping(o->modules, o->pid, o->parent, record);
	struct area area = { record->start, record->end, record->offset, file, 0 };

	if (file == MODULES_IGNORED || file == MODULES_LATER)
		return file;
	if (file == MODULES_MEMORY)
		area.offset = 0;
	*ret_new |= areas_put(areas, area);
	return file;
}

static void ask_later(struct mappings *m, uint64_t now)
{
	m->dirty = true;
	m->read_ns = MAX(m->read_ns, now + later_ns);
}

void mappings_apply(struct mappings *m, const struct mappings_owner *o, const struct proc_mapping *record)
{
	/* Nobody says what is unmapped: where too many have come together, the list is made anew. */
	if (m->areas.list.n >= MAX_AREAS)
		m->dirty = true;
	else if (put(&m->areas, o, record, &m->changed) == MODULES_LATER)
		ask_later(m, clock_mono_ns());
}

/* Of this thread: on a busy machine the time that passes says nothing. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t rest_until(uint64_t began_cpu_ns, uint64_t times)
{
	uint64_t rest = (cpu_ns() - began_cpu_ns) * times;

	return clock_mono_ns() + MIN(rest, rest_max_ns);
}

static void read_all(struct mappings *m, const struct mappings_owner *o)
{
	uint64_t began = cpu_ns();
	struct proc_maps maps = { 0 };
	struct areas areas = { 0 };
	bool later = false;

	m->dirty = false;
	if (proc_maps_read(o->pid, true, &maps) < 0)
		return;
	if (proc_started(o->pid) != o->start_ticks) {
		proc_maps_done(&maps);
		return;
	}
	for (size_t i = 0; i < maps.list.n; i++)
		later |= put(&areas, o, &maps.list.v[i], &m->changed) == MODULES_LATER;
	proc_maps_done(&maps);
	vec_done(&m->areas.list);
	m->areas = areas;
	m->changed = true;
	m->read_ns = rest_until(began, READ_REST);
	if (later)
		ask_later(m, clock_mono_ns());
}

/* --- the list --- */

static void note(struct mappings *m, const struct mappings_owner *o, const struct shared_mapping *s)
{
	if (m->noted++ >= MAX_NOTED) {
		profile_count(o->profile, KEY_MAPPINGS_NOT_KEPT, 1);
		return;
	}
	profile_add_mapping(o->profile,
		&(struct profile_mapping){ .process = o->process, .start = s->start, .end = s->end,
					   .module = modules_profile_id(o->modules, s->module), .bias = s->bias,
					   .time_ns = o->time_ns });
}

/* Translates an area for the unwinder; false: it has none, or none yet. */
static bool place(struct mappings *m, const struct mappings_owner *o, const struct area *a, struct shared_mapping *ret)
{
	uint64_t address = 0;
	enum modules_place where = a->file ? modules_place(o->modules, a->file, a->offset, &address) : MODULES_NOWHERE;

	*ret = (struct shared_mapping){ .start = a->start, .end = a->end, .module = a->file };
	if (where == MODULES_WAIT) {
		m->waiting = true;
		return false;
	}
	if (where == MODULES_THERE)
		ret->bias = a->start - address;
	else
		ret->module = modules_jit(o->modules, o->process, &m->jit);
	return ret->module;
}

/* Both are sorted: what is new in the second is noted. */
static void note_new(struct mappings *m, const struct mappings_owner *o, const struct shared_mapping *list, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		while (k < m->list.n && m->list.v[k].start < list[i].start)
			k++;
		if (k == m->list.n || memcmp(&m->list.v[k], &list[i], sizeof(list[i])))
			note(m, o, &list[i]);
	}
}

/* True when it is not what it was. */
static bool make_list(struct mappings *m, const struct mappings_owner *o)
{
	uint64_t began = cpu_ns();
	VEC(struct shared_mapping) list = { 0 };
	bool same;

	m->changed = m->waiting = false;
	for (size_t i = 0; i < m->areas.list.n; i++) {
		struct shared_mapping *last = list.n ? &list.v[list.n - 1] : NULL, out;

		if (!place(m, o, &m->areas.list.v[i], &out))
			continue;
		if (last && last->module == out.module && last->bias == out.bias && last->end == out.start)
			last->end = out.end;
		else
			vec_push(&list, out);
	}
	same = list.n == m->list.n && (!list.n || !memcmp(list.v, m->list.v, list.n * sizeof(*list.v)));
	if (!same)
		note_new(m, o, list.v, list.n);
	vec_done(&m->list);
	m->list.v = list.v;
	m->list.n = list.n;
	m->list.capacity = list.capacity;
	m->made_ns = rest_until(began, MAKE_REST);
	return !same;
}

bool mappings_refresh(struct mappings *m, const struct mappings_owner *o, bool at_once)
{
	uint64_t now = clock_mono_ns();
	bool push = m->push;

	if (m->changed && m->push && !at_once && now < m->made_ns)
		return false;
	if (m->dirty && (at_once || now >= m->read_ns))
		read_all(m, o);
	else if (m->dirty && !m->put_off)
		profile_count(o->profile, KEY_MAPPINGS_READS_PUT_OFF, 1);
	m->put_off = m->dirty;
	if (m->changed && (at_once || now >= m->made_ns))
		push |= make_list(m, o);
	m->push = false;
	return push;
}
