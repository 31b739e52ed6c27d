#include "cmd/flight/cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/wait/cause.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/flight/keep.h"
#include "profile/keys.h"
#include "profile/profile.h"

static uint32_t *table(size_t n)
{
	uint32_t *ids = mem_resize(NULL, n + 1, sizeof(*ids));

	memset(ids, 0xff, (n + 1) * sizeof(*ids));
	return ids;
}

static uint64_t since(uint64_t time_ns, uint64_t from_ns)
{
	return time_ns > from_ns ? time_ns - from_ns : 0;
}

/* Had it ended before the window? */
static bool is_over(uint64_t end_ns, uint64_t from_ns)
{
	return end_ns && end_ns <= from_ns;
}

/* --- tables --- */

static uint32_t string_of(struct cut *c, uint32_t id)
{
	if (c->strings[id] == PROFILE_NONE)
		c->strings[id] = profile_string(c->out, profile_str(&c->snap->tables, id));
	return c->strings[id];
}

static uint32_t owner_of(struct cut *c, uint32_t owner)
{
	struct profile_owner x;

	if (!owner || owner > c->snap->tables.owners.n)
		return 0;
	x = c->snap->tables.owners.v[owner - 1];
	x.kind = string_of(c, x.kind);
	x.name = string_of(c, x.name);
	x.container = string_of(c, x.container);
	x.engine = string_of(c, x.engine);
	x.image = string_of(c, x.image);
	x.pod = string_of(c, x.pod);
	x.cgroup = string_of(c, x.cgroup);
	return profile_owner(c->out, &x);
}

static uint32_t process_of(struct cut *c, uint32_t id)
{
	struct profile_process x;
	uint64_t from = c->snap->from_ns;

	if (id == PROFILE_NONE || c->processes[id] != PROFILE_NONE)
		return id == PROFILE_NONE ? id : c->processes[id];
	x = c->snap->tables.processes.v[id];
	x.name = string_of(c, x.name);
	x.exe = string_of(c, x.exe);
	x.command = string_of(c, x.command);
	x.owner = owner_of(c, x.owner);
	x.start_ns = since(x.start_ns, from);
	if (x.end_ns)
		x.end_ns = MAX(since(x.end_ns, from), 1);
	return c->processes[id] = profile_add_process(c->out, &x);
}

static uint32_t thread_of(struct cut *c, uint32_t id)
{
	const struct keep_moment *start = &c->snap->pieces.v[0]->start, *to = &c->snap->to;
	struct keep_times was, is;
	struct profile_thread x;
	uint64_t from = c->snap->from_ns;

	if (id == PROFILE_NONE || c->threads[id] != PROFILE_NONE)
		return id == PROFILE_NONE ? id : c->threads[id];
	x = c->snap->tables.threads.v[id];
	was = keep_times_of(start, id);
	is = keep_times_of(to, id);
	x.process = process_of(c, x.process);
	x.name = string_of(c, x.name);
	x.comm = 0;
	x.run_ns = since(is.run_ns, was.run_ns);
	x.queue_ns = since(is.queue_ns, was.queue_ns);
	x.blocked_ns = since(is.blocked_ns, was.blocked_ns);
	x.cpu_ns = from ? 0 : x.cpu_ns;
	x.start_ns = since(x.start_ns, from);
	if (x.end_ns)
		x.end_ns = MAX(since(x.end_ns, from), 1);
	return c->threads[id] = profile_add_thread(c->out, &x);
}

static uint32_t module_of(struct cut *c, uint32_t id)
{
	struct profile_module x;

	if (id == PROFILE_NONE || id >= c->snap->tables.modules.n)
		return PROFILE_NONE;
	if (c->modules[id] != PROFILE_NONE)
		return c->modules[id];
	x = c->snap->tables.modules.v[id];
	x.path = string_of(c, x.path);
	x.process = process_of(c, x.process);
	c->modules[id] = profile_add_module(c->out, &x);
	for (size_t i = 0; i < c->snap->tables.kernel_bases.n; i++)
		if (c->snap->tables.kernel_bases.v[i].module == id)
			profile_set_kernel_base(c->out, c->modules[id], c->snap->tables.kernel_bases.v[i].base);
	return c->modules[id];
}

uint32_t cut_module(const struct cut *c, uint32_t module)
{
	return module < c->snap->tables.modules.n ? c->modules[module] : PROFILE_NONE;
}

static uint32_t function_of(struct cut *c, uint32_t id)
{
	struct profile_function x = c->snap->tables.functions.v[id];

	x.name = string_of(c, x.name);
	x.linkage = string_of(c, x.linkage);
	x.file = string_of(c, x.file);
	x.module = module_of(c, x.module);
	return profile_function(c->out, &x);
}

/* A recorder that goes on and on names frames as they come. */
static void name_frame(struct cut *c, const struct profile_frame *f, uint32_t id)
{
	struct profile_line *lines = mem_resize(NULL, f->line_count, sizeof(*lines));

	for (uint32_t i = 0; i < f->line_count; i++) {
		lines[i] = c->snap->tables.lines.v[f->first_line + i];
		lines[i].function = function_of(c, lines[i].function);
	}
	profile_set_lines(c->out, id, lines, f->line_count);
	free(lines);
}

/* Those without an address are notes, markers, and our own programs. */
static uint32_t frame_of(struct cut *c, uint32_t id)
{
	const struct profile *p = &c->snap->tables;
	const struct profile_frame *f = &p->frames.v[id];
	uint32_t module;

	if (c->frames[id] != PROFILE_NONE)
		return c->frames[id];
	module = module_of(c, f->module);
	if (f->line_count && !f->address) {
		c->frames[id] = profile_named_frame(c->out, module, f->kind,
						    profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name));
		return c->frames[id];
	}
	c->frames[id] = profile_frame(c->out, module, f->kind, f->address);
	if (f->line_count)
		name_frame(c, f, c->frames[id]);
	return c->frames[id];
}

static uint32_t stack_of(struct cut *c, uint32_t id)
{
	size_t n = 0;

	for (; c->stacks[id] == PROFILE_NONE; id = c->snap->tables.stacks.v[id].parent) {
		if (n == c->path_capacity) {
			c->path_capacity = 2 * c->path_capacity + 64;
			c->path = mem_resize(c->path, c->path_capacity, sizeof(*c->path));
		}
		c->path[n++] = id;
	}
	for (; n; n--) {
		uint32_t node = c->path[n - 1];

		c->stacks[node] = profile_stack(c->out, c->stacks[id], frame_of(c, c->snap->tables.stacks.v[node].frame));
		id = node;
	}
	return c->stacks[id];
}

/* --- counters --- */

/* Is it no count of what happened, but a state, a setting or a rate? */
static bool is_level(const char *name)
{
	static const char *const families[] = { KEY_CGROUP_CPU_RECORDINGS_OF,	 KEY_CGROUP_CPU_QUOTA_US_OF,
						KEY_CGROUP_CPU_PERIOD_US_OF,	 KEY_CGROUP_MEMORY_RECORDINGS_OF,
						KEY_CGROUP_MEMORY_LIMIT_BYTES_OF, KEY_CGROUP_MEMORY_HIGH_BYTES_OF,
						KEY_CGROUP_MEMORY_MOST_BYTES_OF };
	const struct key *key = key_find(name);

	if (!key)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (key->name == families[i])
			return true;
	return (key->merge != KEY_SUM && key->merge != KEY_ERROR) || !strcmp(key->unit, "flag");
}

/* Independent errors add up by their squares. */
static uint64_t error_between(uint64_t was, uint64_t is)
{
	double a = was, b = is;

	return b > a ? sqrt(b * b - a * a) : 0;
}

static void add_counters(struct cut *c)
{
	const struct keep_moment *start = &c->snap->pieces.v[0]->start, *to = &c->snap->to;
	_cleanup_(map_done) struct map before = { 0 };

	for (size_t i = 0; i < start->counters.n; i++)
		map_put(&before, start->counters.v[i].name, start->counters.v[i].value);
	for (size_t i = 0; i < to->counters.n; i++) {
		const char *name = profile_str(&c->snap->tables, to->counters.v[i].name);
		const struct key *key = key_find(name);
		uint64_t value = to->counters.v[i].value, *was = map_get(&before, to->counters.v[i].name);

		if (c->snap->from_ns && str_starts(name, "marks."))
			continue;
		if (was && !is_level(name))
			value = key && key->merge == KEY_ERROR ? error_between(*was, value) : since(value, *was);
		profile_count_set(c->out, name, value);
	}
}

static const struct profile_histogram *find_histogram(const struct keep_moment *m, uint32_t name)
{
	for (size_t i = 0; i < m->histograms.n; i++)
		if (m->histograms.v[i].name == name)
			return &m->histograms.v[i];
	return NULL;
}

static void add_histograms(struct cut *c)
{
	const struct keep_moment *start = &c->snap->pieces.v[0]->start, *to = &c->snap->to;

	for (size_t i = 0; i < to->histograms.n; i++) {
		const struct profile_histogram *h = &to->histograms.v[i], *was = find_histogram(start, h->name);
		struct profile_histogram *x = NULL;

		for (size_t k = 0; k < ARRAY_LEN(h->counts); k++) {
			uint64_t n = since(h->counts[k], was ? was->counts[k] : 0);

			if (n && !x)
				x = profile_add_histogram(c->out, profile_str(&c->snap->tables, h->name),
							  profile_str(&c->snap->tables, h->unit));
			if (n)
				x->counts[k] = n;
		}
	}
}

/* --- rows --- */

static void add_sample(struct cut *c, const struct profile *rows, size_t i)
{
	uint64_t from = c->snap->from_ns, begin, end;
	struct profile_sample s = rows->samples.v[i];

	if (s.time_ns < from) {
		select_span(rows, i, c->roles[s.event], &begin, &end);
		if (end <= from)
			return;
		if (end > begin)
			s.value = end - MAX(begin, from);
		s.time_ns = MAX(begin, from);
	}
	s.time_ns -= from;
	s.thread = thread_of(c, s.thread);
	s.stack = stack_of(c, s.stack);
	profile_add_sample(c->out, &s);
}

static void add_wakes(struct cut *c, const struct keep_rows *rows)
{
	uint64_t from = c->snap->from_ns;

	for (size_t i = 0; i < rows->wakes.n; i++) {
		struct profile_wake x = rows->wakes.v[i];

		if (x.time_ns < from)
			continue;
		x.time_ns -= from;
		x.thread = thread_of(c, x.thread);
		x.stack = stack_of(c, x.stack);
		x.waker = thread_of(c, x.waker);
		x.waker_name = string_of(c, x.waker_name);
		x.waker_stack = stack_of(c, x.waker_stack);
		profile_add_wake(c->out, &x);
	}
	for (size_t i = 0; i < rows->taskwakes.n; i++) {
		struct profile_taskwake x = rows->taskwakes.v[i];

		if (x.time_ns < from)
			continue;
		x.time_ns -= from;
		x.type = string_of(c, x.type);
		x.thread = thread_of(c, x.thread);
		x.waker = thread_of(c, x.waker);
		x.waker_type = string_of(c, x.waker_type);
		x.waker_stack = stack_of(c, x.waker_stack);
		profile_add_taskwake(c->out, &x);
	}
}

static void add_marks(struct cut *c, const struct keep_rows *rows)
{
	uint64_t from = c->snap->from_ns;

	for (size_t i = 0; i < rows->marks.n; i++) {
		struct profile_mark x = rows->marks.v[i];

		if (x.start_ns < from) {
			c->began_before += x.end_ns > from && !strcmp(profile_str(&c->snap->tables, x.kind), "block");
			continue;
		}
		x.start_ns -= from;
		x.end_ns = since(x.end_ns, from);
		x.name = string_of(c, x.name);
		x.kind = string_of(c, x.kind);
		x.thread = thread_of(c, x.thread);
		profile_add_mark(c->out, &x);
	}
}

static void add_rows(struct cut *c, const struct keep_rows *rows)
{
	struct profile view = { 0 };

	view.samples.v = rows->samples.v;
	view.samples.n = rows->samples.n;
	for (size_t i = 0; i < rows->samples.n; i++)
		add_sample(c, &view, i);
	add_wakes(c, rows);
	add_marks(c, rows);
	for (size_t i = 0; i < rows->points.n; i++)
		if (rows->points.v[i].time_ns >= c->snap->from_ns)
			profile_add_point(c->out, rows->points.v[i].series, rows->points.v[i].time_ns - c->snap->from_ns,
					  rows->points.v[i].value);
}

/* --- all of it --- */

static void add_tables(struct cut *c)
{
	const struct profile *p = &c->snap->tables;
	uint64_t from = c->snap->from_ns;

	/* Events and series keep their numbers. */
	for (size_t i = 0; i < p->events.n; i++) {
		struct profile_event x = p->events.v[i];

		x.name = string_of(c, x.name);
		x.unit = string_of(c, x.unit);
		x.describe = string_of(c, x.describe);
		vec_push(&c->out->events, x);
		c->roles[i] = cause_role(p, i);
	}
	for (size_t i = 0; i < p->series.n; i++)
		profile_add_series(c->out, profile_str(p, p->series.v[i].name), profile_str(p, p->series.v[i].unit));
	for (size_t i = 0; i < p->processes.n; i++)
		if (!is_over(p->processes.v[i].end_ns, from))
			process_of(c, i);
	for (size_t i = 0; i < p->threads.n; i++)
		if (!is_over(p->threads.v[i].end_ns, from))
			thread_of(c, i);
	for (size_t i = 0; i < p->mappings.n; i++) {
		struct profile_mapping x = p->mappings.v[i];

		if (is_over(p->processes.v[x.process].end_ns, from))
			continue;
		x.process = process_of(c, x.process);
		x.module = module_of(c, x.module);
		x.time_ns = since(x.time_ns, from);
		profile_add_mapping(c->out, &x);
	}
}

void cut_begin(struct cut *c, const struct keep_snap *snap, struct profile *out)
{
	const struct profile *p = &snap->tables;

	*c = (struct cut){ .snap = snap, .out = out };
	c->strings = table(p->strings.n);
	c->processes = table(p->processes.n);
	c->threads = table(p->threads.n);
	c->modules = table(p->modules.n);
	c->frames = table(p->frames.n);
	c->stacks = table(p->stacks.n);
	c->stacks[0] = 0;
	c->roles = mem_alloc(p->events.n + 1);
	out->target = string_of(c, p->target);
	out->host = string_of(c, p->host);
	out->kernel = string_of(c, p->kernel);
	out->start_wall_ns = p->start_wall_ns + snap->from_ns;
	out->duration_ns = snap->to.time_ns - snap->from_ns;
	out->redacted = p->redacted;
	add_tables(c);
	add_counters(c);
	add_histograms(c);
}

size_t cut_pieces(const struct cut *c)
{
	return c->snap->pieces.n + 1;
}

void cut_piece(struct cut *c, size_t i)
{
	const struct keep_piece *p = i < c->snap->pieces.n ? c->snap->pieces.v[i] : NULL;

	if (!p) {
		add_rows(c, &c->snap->open);
		return;
	}
	add_rows(c, &p->rows);
	if (p->summed)
		profile_add_summed(c->out, &(struct profile_summed){ p->start.time_ns - c->snap->from_ns, p->end_ns - c->snap->from_ns });
	if (p->wakes_left_out)
		profile_count(c->out, KEY_WAKES_LEFT_OUT, p->wakes_left_out);
}

void cut_end(struct cut *c)
{
	if (c->began_before)
		profile_count(c->out, KEY_MARKS_BEGAN_BEFORE, c->began_before);
	free(c->strings);
	free(c->processes);
	free(c->threads);
	free(c->modules);
	free(c->frames);
	free(c->stacks);
	free(c->path);
	free(c->roles);
	*c = (struct cut){ 0 };
}

void cut_mark(struct profile *out, const char *reason, uint64_t time_ns)
{
	profile_add_mark(out, &(struct profile_mark){ .start_ns = time_ns, .end_ns = time_ns, .name = profile_string(out, reason),
						      .kind = profile_string(out, "incident"), .thread = PROFILE_NONE });
}
