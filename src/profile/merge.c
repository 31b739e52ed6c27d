#include "profile/profile.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "profile/keys.h"

/* From ids of the profile that is added to ids of the one that grows. */
struct merge {
	struct profile *to;
	const struct profile *from;
	uint32_t *strings, *events, *processes, *threads, *modules, *functions, *frames, *stacks, *series;
};

static uint32_t *table(size_t n)
{
	return mem_resize(NULL, n + 1, sizeof(uint32_t));
}

static uint32_t optional(const uint32_t *ids, uint32_t id)
{
	return id == PROFILE_NONE ? PROFILE_NONE : ids[id];
}

static int check_unit(const char *name, const char *unit, const char *other, struct err *err)
{
	if (!strcmp(unit, other))
		return 0;
	return err_set(err, EINVAL, "\"%s\" is in %s in one recording and in %s in another: "
				    "they cannot be added", name, other, unit);
}

/* The histogram of that name, or PROFILE_NONE. */
static uint32_t find_histogram(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->histograms.n; i++)
		if (!strcmp(profile_str(p, p->histograms.v[i].name), name))
			return i;
	return PROFILE_NONE;
}

/* Before anything is changed. */
static int check_units(const struct profile *to, const struct profile *from, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->events.n && !r; i++) {
		const struct profile_event *e = &from->events.v[i];
		const char *name = profile_str(from, e->name);
		uint32_t k = profile_find_event(to, name, NULL);

		if (k != PROFILE_NONE)
			r = check_unit(name, profile_str(from, e->unit),
				       profile_str(to, to->events.v[k].unit), err);
	}
	for (size_t i = 0; i < from->histograms.n && !r; i++) {
		const struct profile_histogram *h = &from->histograms.v[i];
		const char *name = profile_str(from, h->name);
		uint32_t k = find_histogram(to, name);

		if (k != PROFILE_NONE)
			r = check_unit(name, profile_str(from, h->unit),
				       profile_str(to, to->histograms.v[k].unit), err);
	}
	return r;
}

static void merge_events(struct merge *m)
{
	for (size_t i = 0; i < m->from->events.n; i++) {
		struct profile_event e = m->from->events.v[i];
		uint32_t k = profile_find_event(m->to, profile_str(m->from, e.name), NULL);

		if (k == PROFILE_NONE) {
			m->events[i] = m->to->events.n;
			e.name = m->strings[e.name];
			e.unit = m->strings[e.unit];
			e.describe = m->strings[e.describe];
			vec_push(&m->to->events, e);
			continue;
		}
		m->events[i] = k;
		/* Every sample has its own value; there is a usual one only if both agree. */
		if (m->to->events.v[k].period != e.period)
			m->to->events.v[k].period = 0;
	}
}

/* Times are each recording's own: the earliest start, and an end only where both ended. */
static void join_times(uint64_t *start, uint64_t *end, uint64_t other_start, uint64_t other_end)
{
	*start = MIN(*start, other_start);
	*end = *end && other_end ? MAX(*end, other_end) : 0;
}

static uint32_t merge_owner(struct merge *m, uint32_t owner)
{
	struct profile_owner x;

	if (!owner || owner > m->from->owners.n)
		return 0;
	x = m->from->owners.v[owner - 1];
	x.kind = m->strings[x.kind];
	x.name = m->strings[x.name];
	x.container = m->strings[x.container];
	x.engine = m->strings[x.engine];
	x.image = m->strings[x.image];
	x.pod = m->strings[x.pod];
	x.cgroup = m->strings[x.cgroup];
	return profile_owner(m->to, &x);
}

static void merge_processes(struct merge *m)
{
	size_t old = m->to->processes.n;

	for (size_t i = 0; i < m->from->processes.n; i++) {
		struct profile_process x = m->from->processes.v[i], *y = NULL;
		size_t k;

		x.name = m->strings[x.name];
		x.exe = m->strings[x.exe];
		x.command = m->strings[x.command];
		x.owner = merge_owner(m, x.owner);
		for (k = 0; k < old; k++) {
			y = &m->to->processes.v[k];
			if (y->pid == x.pid && (x.exe ? y->exe == x.exe : !y->exe && y->name == x.name))
				break;
		}
		m->processes[i] = k;
		if (k < old)
			join_times(&y->start_ns, &y->end_ns, x.start_ns, x.end_ns);
		else
			m->processes[i] = profile_add_process(m->to, &x);
	}
}

/* Captures can have many thousands of short-lived threads, so these have an index. */
static uint64_t thread_key(const struct profile_thread *t)
{
	uint32_t key[3] = { t->process, t->tid, t->name };

	return map_hash_bytes(key, sizeof(key));
}

static void merge_threads(struct merge *m)
{
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < m->to->threads.n; i++)
		map_put(&index, thread_key(&m->to->threads.v[i]), i);
	for (size_t i = 0; i < m->from->threads.n; i++) {
		struct profile_thread x = m->from->threads.v[i], *y;
		uint64_t *found;

		x.process = m->processes[x.process];
		x.name = m->strings[x.name];
		found = map_get(&index, thread_key(&x));
		y = found ? &m->to->threads.v[*found] : NULL;
		if (y && y->process == x.process && y->tid == x.tid && y->name == x.name) {
			join_times(&y->start_ns, &y->end_ns, x.start_ns, x.end_ns);
			y->cpu_ns += x.cpu_ns;
			y->run_ns += x.run_ns;
			y->queue_ns += x.queue_ns;
			y->blocked_ns += x.blocked_ns;
			m->threads[i] = *found;
		} else {
			m->threads[i] = profile_add_thread(m->to, &x);
		}
	}
}

static bool same_module(const struct profile_module *a, const struct profile_module *b)
{
	return a->path == b->path && a->kind == b->kind && a->process == b->process &&
	       a->build_id_size == b->build_id_size && !memcmp(a->build_id, b->build_id, a->build_id_size);
}

static void merge_modules(struct merge *m)
{
	size_t old = m->to->modules.n;

	for (size_t i = 0; i < m->from->modules.n; i++) {
		struct profile_module x = m->from->modules.v[i];
		size_t k;

		x.path = m->strings[x.path];
		x.process = optional(m->processes, x.process);
		for (k = 0; k < old && !same_module(&m->to->modules.v[k], &x); k++)
			;
		m->modules[i] = k < old ? k : profile_add_module(m->to, &x);
	}
}

static bool same_mapping(const struct profile_mapping *a, const struct profile_mapping *b)
{
	return a->process == b->process && a->module == b->module && a->start == b->start &&
	       a->end == b->end && a->bias == b->bias;
}

static void merge_mappings(struct merge *m)
{
	size_t old = m->to->mappings.n;

	for (size_t i = 0; i < m->from->mappings.n; i++) {
		struct profile_mapping x = m->from->mappings.v[i];
		size_t k;

		x.process = m->processes[x.process];
		x.module = optional(m->modules, x.module);
		for (k = 0; k < old && !same_mapping(&m->to->mappings.v[k], &x); k++)
			;
		if (k == old)
			profile_add_mapping(m->to, &x);
	}
}

static void merge_functions(struct merge *m)
{
	for (size_t i = 0; i < m->from->ranges.n; i++) {
		const struct profile_range *x = &m->from->ranges.v[i];

		profile_add_range(m->to, m->modules[x->module], x->start, x->end);
	}
	for (size_t i = 0; i < m->from->functions.n; i++) {
		const struct profile_function *f = &m->from->functions.v[i];
		struct profile_function x = { .name = m->strings[f->name], .linkage = m->strings[f->linkage],
					      .file = m->strings[f->file],
					      .module = optional(m->modules, f->module), .named = f->named };

		m->functions[i] = profile_function(m->to, &x);
	}
}

static void merge_lines(struct merge *m, const struct profile_frame *f, uint32_t id)
{
	VEC(struct profile_line) lines = { 0 };

	for (uint32_t k = 0; k < f->line_count; k++) {
		struct profile_line l = m->from->lines.v[f->first_line + k];

		l.function = m->functions[l.function];
		vec_push(&lines, l);
	}
	profile_set_lines(m->to, id, lines.v, lines.n);
	vec_done(&lines);
}

/* A frame that is only a name; more than one line (an import's inlined calls) is never joined. */
static uint32_t merge_named_frame(struct merge *m, const struct profile_frame *f, uint32_t module)
{
	uint32_t function = m->functions[m->from->lines.v[f->first_line].function], id = m->to->frames.n;

	if (f->line_count == 1) {
		uint64_t *found = map_put(&m->to->named_index, map_pair(function, f->kind), id);

		if (*found != id)
			return *found;
	}
	vec_push(&m->to->frames, (struct profile_frame){ .module = module, .kind = f->kind });
	merge_lines(m, f, id);
	return id;
}

/* Code that was made at run time may have taken the place of other code. */
static bool is_other_code(const struct merge *m, const struct profile_frame *f, uint32_t frame)
{
	const struct profile_frame *known = &m->to->frames.v[frame];

	return known->module < m->to->modules.n && m->to->modules.v[known->module].kind == MODULE_JIT && f->line_count &&
	       known->line_count && m->functions[m->from->lines.v[f->first_line].function] !=
					m->to->lines.v[known->first_line].function;
}

static void merge_frames(struct merge *m)
{
	for (size_t i = 0; i < m->from->frames.n; i++) {
		const struct profile_frame *f = &m->from->frames.v[i];
		uint32_t module = optional(m->modules, f->module);

		if (!f->address && f->line_count) {
			m->frames[i] = merge_named_frame(m, f, module);
			continue;
		}
		m->frames[i] = profile_frame(m->to, module, f->kind, f->address);
		if (is_other_code(m, f, m->frames[i]))
			m->frames[i] = profile_frame_again(m->to, m->frames[i]);
		/* Named in one recording only: that name is good for both. */
		if (f->line_count && !m->to->frames.v[m->frames[i]].line_count)
			merge_lines(m, f, m->frames[i]);
	}
}

static void merge_stacks(struct merge *m)
{
	m->stacks[0] = 0;
	for (size_t i = 1; i < m->from->stacks.n; i++) {
		const struct profile_node *n = &m->from->stacks.v[i];

		m->stacks[i] = profile_stack(m->to, m->stacks[n->parent], m->frames[n->frame]);
	}
}

static void merge_samples(struct merge *m)
{
	for (size_t i = 0; i < m->from->samples.n; i++) {
		struct profile_sample x = m->from->samples.v[i];

		x.event = m->events[x.event];
		x.thread = m->threads[x.thread];
		x.stack = m->stacks[x.stack];
		profile_add_sample(m->to, &x);
	}
}

static void merge_wakes(struct merge *m)
{
	for (size_t i = 0; i < m->from->wakes.n; i++) {
		struct profile_wake x = m->from->wakes.v[i];

		x.thread = m->threads[x.thread];
		x.stack = m->stacks[x.stack];
		x.waker = optional(m->threads, x.waker);
		x.waker_name = m->strings[x.waker_name];
		x.waker_stack = m->stacks[x.waker_stack];
		profile_add_wake(m->to, &x);
	}
}

/* Each recording numbers its tasks from 1. */
static void merge_taskwakes(struct merge *m)
{
	uint32_t last = 0;

	for (size_t i = 0; i < m->to->taskwakes.n; i++)
		last = MAX(last, MAX(m->to->taskwakes.v[i].task, m->to->taskwakes.v[i].waker_task));
	for (size_t i = 0; i < m->from->taskwakes.n; i++) {
		struct profile_taskwake x = m->from->taskwakes.v[i];

		x.type = m->strings[x.type];
		x.task += last;
		x.thread = m->threads[x.thread];
		x.waker = optional(m->threads, x.waker);
		x.waker_type = m->strings[x.waker_type];
		x.waker_task += x.waker_task ? last : 0;
		x.waker_stack = m->stacks[x.waker_stack];
		profile_add_taskwake(m->to, &x);
	}
}

static void merge_marks(struct merge *m)
{
	for (size_t i = 0; i < m->from->marks.n; i++) {
		struct profile_mark x = m->from->marks.v[i];

		x.name = m->strings[x.name];
		x.kind = m->strings[x.kind];
		x.thread = optional(m->threads, x.thread);
		profile_add_mark(m->to, &x);
	}
}

static void merge_summed(struct merge *m)
{
	for (size_t i = 0; i < m->from->summed.n; i++)
		profile_add_summed(m->to, &m->from->summed.v[i]);
}

static void merge_points(struct merge *m)
{
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < m->to->series.n; i++)
		map_put(&index, map_pair(m->to->series.v[i].name, m->to->series.v[i].unit), i);
	for (size_t i = 0; i < m->from->series.n; i++) {
		struct profile_series x = { .name = m->strings[m->from->series.v[i].name],
					    .unit = m->strings[m->from->series.v[i].unit] };

		m->series[i] = *map_put(&index, map_pair(x.name, x.unit), m->to->series.n);
		if (m->series[i] == m->to->series.n)
			vec_push(&m->to->series, x);
	}
	for (size_t i = 0; i < m->from->points.n; i++) {
		const struct profile_point *x = &m->from->points.v[i];

		profile_add_point(m->to, m->series[x->series], x->time_ns, x->value);
	}
}

static bool has_counter(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->counters.n; i++)
		if (!strcmp(profile_str(p, p->counters.v[i].name), name))
			return true;
	return false;
}

/* A name that the table does not have comes from another version: such counters are sums. */
static void merge_counter(struct profile *to, const char *name, uint64_t value)
{
	const struct key *key = has_counter(to, name) ? key_find(name) : NULL;
	uint64_t before = key ? profile_counter(to, name) : 0;

	switch (key ? key->merge : KEY_SUM) {
	case KEY_SUM:
	case KEY_JOIN: /* of series only */
		profile_count(to, name, value);
		break;
	case KEY_MIN:
		profile_count_set(to, name, MIN(before, value));
		break;
	case KEY_MAX:
		profile_count_set(to, name, MAX(before, value));
		break;
	case KEY_ALIKE:
		if (before != value)
			profile_count_set(to, KEY_HEAP_INTERVAL_DIFFERS, 1);
		profile_count_set(to, name, MAX(before, value));
		break;
	case KEY_ERROR:
		profile_count_set(to, name, sqrt((double)before * before + (double)value * value));
		break;
	}
}

static void merge_counts(struct merge *m)
{
	for (size_t i = 0; i < m->from->histograms.n; i++) {
		const struct profile_histogram *x = &m->from->histograms.v[i];
		struct profile_histogram *y = profile_add_histogram(m->to, profile_str(m->from, x->name),
								    profile_str(m->from, x->unit));

		for (size_t k = 0; k < ARRAY_LEN(x->counts); k++)
			y->counts[k] += x->counts[k];
	}
	for (size_t i = 0; i < m->from->counters.n; i++)
		merge_counter(m->to, profile_str(m->from, m->from->counters.v[i].name), m->from->counters.v[i].value);
}

static void merge_facts(struct merge *m, bool first)
{
	struct profile *to = m->to;
	const struct profile *from = m->from;

	if (first || !to->target)
		to->target = m->strings[from->target];
	if (first || !to->host)
		to->host = m->strings[from->host];
	if (first || !to->kernel)
		to->kernel = m->strings[from->kernel];
	to->start_wall_ns = first ? from->start_wall_ns : MIN(to->start_wall_ns, from->start_wall_ns);
	to->duration_ns += from->duration_ns;
	to->finished = from->finished && (first || to->finished);
	to->redacted |= from->redacted;
}

static bool is_empty(const struct profile *p)
{
	return !p->events.n && !p->processes.n && !p->samples.n && !p->duration_ns;
}

int profile_merge(struct profile *p, const struct profile *from, struct err *err)
{
	struct merge m = { .to = p, .from = from };
	bool first = is_empty(p);
	uint64_t before = profile_counter(p, KEY_MERGED_RECORDINGS);
	int r = check_units(p, from, err);

	if (r < 0)
		return r;
	m.strings = table(from->strings.n);
	m.events = table(from->events.n);
	m.processes = table(from->processes.n);
	m.threads = table(from->threads.n);
	m.modules = table(from->modules.n);
	m.functions = table(from->functions.n);
	m.frames = table(from->frames.n);
	m.stacks = table(from->stacks.n);
	m.series = table(from->series.n);
	for (size_t i = 0; i < from->strings.n; i++)
		m.strings[i] = profile_string(p, profile_str(from, i));
	merge_events(&m);
	merge_processes(&m);
	merge_threads(&m);
	merge_modules(&m);
	merge_mappings(&m);
	merge_functions(&m);
	merge_frames(&m);
	merge_stacks(&m);
	merge_samples(&m);
	merge_wakes(&m);
	merge_taskwakes(&m);
	merge_marks(&m);
	merge_summed(&m);
	merge_points(&m);
	merge_counts(&m);
	merge_facts(&m, first);
	if (!first)
		profile_count_set(p, KEY_MERGED_RECORDINGS,
				  MAX(before, 1) + MAX(profile_counter(from, KEY_MERGED_RECORDINGS), 1));
	free(m.strings);
	free(m.events);
	free(m.processes);
	free(m.threads);
	free(m.modules);
	free(m.functions);
	free(m.frames);
	free(m.stacks);
	free(m.series);
	return 0;
}
