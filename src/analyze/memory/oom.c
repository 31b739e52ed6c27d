#include "analyze/memory/oom.h"

#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { LAST_NS = 2000000000, LAST_ROWS = 8, EARLIER_ROWS = 6 };

static const char *const names[] = { KEY_LIMIT_USAGE, KEY_LIMIT_ANON, KEY_LIMIT_FILE, KEY_LIMIT_KERNEL,
				     KEY_LIMIT_SWAP };

static uint64_t *field(struct oom_point *p, unsigned i)
{
	uint64_t *const fields[] = { &p->usage, &p->anon, &p->file, &p->kernel, &p->swap };

	return fields[i];
}

/* All points, one for each moment. They come together, usage first. */
static void collect_points(struct oom *o, const struct profile *p)
{
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *at = &p->points.v[i];
		const char *name =
			at->series < p->series.n ? profile_str(p, p->series.v[at->series].name) : "";

		for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
			if (strcmp(name, names[k]))
				continue;
			if (!o->points.n || o->points.v[o->points.n - 1].time_ns != at->time_ns)
				vec_push(&o->points, (struct oom_point){ .time_ns = at->time_ns });
			*field(&o->points.v[o->points.n - 1], k) = MAX(at->value, 0);
		}
	}
}

/* Of the way there some, of the last seconds more: evenly, the last one always. */
static void thin_points(struct oom *o)
{
	size_t n = o->points.n, last = n, kept = 0;
	uint64_t end = n ? o->points.v[n - 1].time_ns : 0;

	while (last > 0 && o->points.v[last - 1].time_ns + LAST_NS >= end)
		last--;
	for (size_t i = 0; i < n; i++) {
		size_t of = i < last ? last : n - last, at = i < last ? i : i - last;
		size_t rows = i < last ? EARLIER_ROWS : LAST_ROWS;

		/* The last of each of rows parts of equal length. */
		if (of <= rows || (at + 1) * rows / of != at * rows / of)
			o->points.v[kept++] = o->points.v[i];
	}
	o->points.n = kept;
}

static void read_marks(struct oom *o, const struct profile *p)
{
	bool found = false;

	for (size_t i = 0; i < p->marks.n; i++) {
		const char *kind = profile_str(p, p->marks.v[i].kind);

		if (!strcmp(kind, "kernel"))
			vec_push(&o->said, profile_str(p, p->marks.v[i].name));
		if (strcmp(kind, "oom") || found)
			continue;
		o->kill_ns = p->marks.v[i].start_ns;
		found = true;
	}
}

/* Returns whether the kill was elsewhere on the machine, or not caused by a target. */
static bool is_nobodys(const struct profile *p, uint32_t thread)
{
	return thread >= p->threads.n || p->threads.v[thread].process >= p->processes.n ||
	       !p->processes.v[p->threads.v[thread].process].pid;
}

/* The stack of the kill is that of the allocation that was one too much. */
static void find_trigger(struct oom *o, const struct profile *p)
{
	uint32_t event = profile_find_event(p, "oom:mark_victim", NULL), site;

	o->trigger = o->trigger_module = "";
	for (size_t i = 0; event != PROFILE_NONE && i < p->samples.n; i++) {
		if (p->samples.v[i].event != event || is_nobodys(p, p->samples.v[i].thread))
			continue;
		o->kill_ns = p->samples.v[i].time_ns;
		site = ownfunction_of_stack(&o->live.idents, p->samples.v[i].stack);
		if (site != OWNFUNCTION_NONE && o->live.idents.list.v[site].kind != IDENT_KERNEL) {
			o->trigger = o->live.idents.list.v[site].name;
			o->trigger_module = o->live.idents.list.v[site].module;
		}
		return;
	}
}

void oom_build(struct oom *o, const struct profile *p)
{
	*o = (struct oom){ .limit = profile_counter(p, KEY_LIMIT_MEMORY_BYTES) };
	o->recorded = o->limit > 0;
	leak_build(&o->live, p, o->recorded ? "heap" : "");
	o->trigger = o->trigger_module = "";
	if (!o->recorded)
		return;
	o->swap_limit = profile_counter(p, KEY_LIMIT_SWAP_LIMITED) ? profile_counter(p, KEY_LIMIT_SWAP_BYTES)
								 : UINT64_MAX;
	o->kills = profile_counter(p, KEY_LIMIT_OOM_KILLS);
	o->hits = profile_counter(p, KEY_LIMIT_HITS);
	o->peak = profile_counter(p, KEY_LIMIT_PEAK_BYTES);
	collect_points(o, p);
	thin_points(o);
	read_marks(o, p);
	find_trigger(o, p);
}

void oom_done(struct oom *o)
{
	vec_done(&o->points);
	vec_done(&o->said);
	leak_done(&o->live);
}

const char *oom_blame(const struct oom *o)
{
	const struct oom_point *p = o->points.n ? &o->points.v[o->points.n - 1] : NULL;
	uint64_t heap;

	if (!p || !p->usage)
		return "";
	/* Sampled: more than there is would be noise. */
	heap = MIN(o->live.bytes, p->anon + p->swap);
	if (heap * 2 >= p->usage)
		return "heap";
	if (p->file * 2 >= p->usage)
		return "cache";
	if (p->kernel * 2 >= p->usage)
		return "kernel";
	return p->anon * 2 >= p->usage ? "other" : "";
}
