#include "profile/profile.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"

struct profile *profile_new(void)
{
	struct profile *p = mem_alloc(sizeof(*p));

	strtab_init(&p->strings);
	nodes_init(&p->stacks);
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strtab_done(&p->strings);
	vec_done(&p->events);
	vec_done(&p->owners);
	vec_done(&p->processes);
	vec_done(&p->threads);
	vec_done(&p->modules);
	vec_done(&p->mappings);
	vec_done(&p->ranges);
	vec_done(&p->functions);
	vec_done(&p->lines);
	vec_done(&p->frames);
	nodes_done(&p->stacks);
	vec_done(&p->samples);
	vec_done(&p->wakes);
	vec_done(&p->taskwakes);
	vec_done(&p->marks);
	vec_done(&p->summed);
	vec_done(&p->series);
	vec_done(&p->points);
	vec_done(&p->histograms);
	vec_done(&p->counters);
	vec_done(&p->replaced);
	vec_done(&p->kernel_bases);
	map_done(&p->frame_index);
	map_done(&p->function_index);
	map_done(&p->named_index);
	map_done(&p->counter_index);
	map_done(&p->range_index);
	free(p);
}

void profile_freep(struct profile **p)
{
	profile_free(*p);
}

uint32_t profile_string(struct profile *p, const char *s)
{
	return strtab_add(&p->strings, s);
}

void profile_set_kernel_base(struct profile *p, uint32_t module, uint64_t base)
{
	vec_push(&p->kernel_bases, (struct profile_kernel_base){ module, base });
}

uint64_t profile_kernel_base(const struct profile *p, uint32_t module)
{
	for (size_t i = 0; i < p->kernel_bases.n; i++)
		if (p->kernel_bases.v[i].module == module)
			return p->kernel_bases.v[i].base;
	return 0;
}

uint32_t profile_add_event(struct profile *p, const char *name, const char *unit,
			   const char *describe, uint64_t period)
{
	vec_push(&p->events, (struct profile_event){ .name = profile_string(p, name),
						     .unit = profile_string(p, unit),
						     .describe = profile_string(p, describe),
						     .period = period });
	return p->events.n - 1;
}

uint32_t profile_add_process(struct profile *p, const struct profile_process *process)
{
	vec_push(&p->processes, *process);
	return p->processes.n - 1;
}

uint32_t profile_owner(struct profile *p, const struct profile_owner *x)
{
	for (size_t i = 0; i < p->owners.n; i++) {
		const struct profile_owner *o = &p->owners.v[i];

		if (o->kind == x->kind && (x->container ? o->container == x->container :
							  !o->container && o->cgroup == x->cgroup))
			return i + 1;
	}
	vec_push(&p->owners, *x);
	return p->owners.n;
}

uint32_t profile_add_thread(struct profile *p, const struct profile_thread *thread)
{
	vec_push(&p->threads, *thread);
	return p->threads.n - 1;
}

uint32_t profile_add_module(struct profile *p, const struct profile_module *module)
{
	vec_push(&p->modules, *module);
	return p->modules.n - 1;
}

void profile_add_mapping(struct profile *p, const struct profile_mapping *mapping)
{
	vec_push(&p->mappings, *mapping);
}

void profile_add_sample(struct profile *p, const struct profile_sample *sample)
{
	vec_push(&p->samples, *sample);
}

uint32_t profile_find_event(const struct profile *p, const char *name, const char *unit)
{
	for (uint32_t i = 0; i < p->events.n; i++)
		if (!strcmp(profile_str(p, p->events.v[i].name), name) &&
		    (!unit || !strcmp(profile_str(p, p->events.v[i].unit), unit)))
			return i;
	return PROFILE_NONE;
}

uint32_t profile_add_series(struct profile *p, const char *name, const char *unit)
{
	vec_push(&p->series, (struct profile_series){ .name = profile_string(p, name),
						      .unit = profile_string(p, unit) });
	return p->series.n - 1;
}

void profile_add_point(struct profile *p, uint32_t series, uint64_t time_ns, int64_t value)
{
	vec_push(&p->points, (struct profile_point){ .time_ns = time_ns, .value = value, .series = series });
}

uint32_t profile_series(struct profile *p, const char *key)
{
	uint32_t id = profile_string(p, key);

	for (size_t i = 0; i < p->series.n; i++)
		if (p->series.v[i].name == id)
			return i;
	return profile_add_series(p, key, key_unit(key));
}

struct profile_histogram *profile_add_histogram(struct profile *p, const char *name, const char *unit)
{
	uint32_t id = profile_string(p, name);

	for (size_t i = 0; i < p->histograms.n; i++)
		if (p->histograms.v[i].name == id)
			return &p->histograms.v[i];
	vec_push(&p->histograms, (struct profile_histogram){ .name = id, .unit = profile_string(p, unit) });
	return &p->histograms.v[p->histograms.n - 1];
}

struct profile_histogram *profile_histogram(struct profile *p, const char *key)
{
	return profile_add_histogram(p, key, key_unit(key));
}

void profile_add_mark(struct profile *p, const struct profile_mark *mark)
{
	vec_push(&p->marks, *mark);
}

void profile_add_wake(struct profile *p, const struct profile_wake *wake)
{
	vec_push(&p->wakes, *wake);
}

void profile_add_taskwake(struct profile *p, const struct profile_taskwake *wake)
{
	vec_push(&p->taskwakes, *wake);
}

void profile_add_summed(struct profile *p, const struct profile_summed *slot)
{
	size_t at = vec_search(i, 0, p->summed.n, p->summed.v[i].start_ns < slot->start_ns);

	if (at < p->summed.n && p->summed.v[at].start_ns == slot->start_ns) {
		p->summed.v[at].end_ns = MAX(p->summed.v[at].end_ns, slot->end_ns);
		return;
	}
	vec_push(&p->summed, *slot);
	memmove(p->summed.v + at + 1, p->summed.v + at, (p->summed.n - 1 - at) * sizeof(*slot));
	p->summed.v[at] = *slot;
}

const struct profile_summed *profile_summed_at(const struct profile *p, uint64_t time_ns)
{
	size_t after = vec_search(i, 0, p->summed.n, p->summed.v[i].start_ns <= time_ns);

	return after && p->summed.v[after - 1].end_ns > time_ns ? &p->summed.v[after - 1] : NULL;
}

/*
 * Keys of more than 64 bits are hashed; a collision is told apart by walking on
 * to the next key (key + 1, ...), which keeps map.h to one simple kind of map.
 */
uint32_t profile_function(struct profile *p, const struct profile_function *f)
{
	const size_t size = offsetof(struct profile_function, named);
	uint64_t key = map_hash_bytes(f, size);

	for (;; key++) {
		uint64_t *id = map_put(&p->function_index, key, PROFILE_NONE);

		if (*id == PROFILE_NONE) {
			*id = p->functions.n;
			vec_push(&p->functions, *f);
			return p->functions.n - 1;
		}
		if (!memcmp(&p->functions.v[*id], f, size)) {
			/* A symbol table that turned up later says the same. */
			p->functions.v[*id].named = MIN(p->functions.v[*id].named, f->named);
			return *id;
		}
	}
}

void profile_add_range(struct profile *p, uint32_t module, uint64_t start, uint64_t end)
{
	uint64_t key = map_hash(start) ^ module;

	for (;; key++) {
		uint64_t *id = map_put(&p->range_index, key, PROFILE_NONE);

		if (*id == PROFILE_NONE) {
			*id = p->ranges.n;
			vec_push(&p->ranges, (struct profile_range){ .module = module, .start = start, .end = end });
			return;
		}
		if (p->ranges.v[*id].module == module && p->ranges.v[*id].start == start)
			return;
	}
}

uint32_t profile_frame(struct profile *p, uint32_t module, enum profile_frame_kind kind,
		       uint64_t address)
{
	uint64_t key = map_hash(address) ^ map_pair(module, kind);

	for (;; key++) {
		uint64_t *id = map_put(&p->frame_index, key, PROFILE_NONE);
		struct profile_frame *f;

		if (*id == PROFILE_NONE) {
			*id = p->frames.n;
			vec_push(&p->frames, (struct profile_frame){ .module = module, .kind = kind,
								     .address = address });
			return p->frames.n - 1;
		}
		f = &p->frames.v[*id];
		if (f->module == module && f->kind == kind && f->address == address)
			return *id;
	}
}

uint32_t profile_named_frame(struct profile *p, uint32_t module, enum profile_frame_kind kind,
			     const char *name)
{
	struct profile_function f = { .name = profile_string(p, name), .module = module };
	uint32_t function = profile_function(p, &f);
	uint64_t *id = map_put(&p->named_index, map_pair(function, kind), PROFILE_NONE);

	if (*id == PROFILE_NONE) {
		struct profile_line line = { .function = function };

		*id = p->frames.n;
		vec_push(&p->frames, (struct profile_frame){ .module = module, .kind = kind });
		profile_set_lines(p, *id, &line, 1);
	}
	return *id;
}

uint32_t profile_truncation_frame(struct profile *p, const char *reason)
{
	return profile_named_frame(p, PROFILE_NONE, FRAME_TRUNCATED, reason);
}

uint32_t profile_stack(struct profile *p, uint32_t parent, uint32_t frame)
{
	return nodes_put(&p->stacks, parent, frame);
}

/* Captures of older versions do not say where a name is from: "module+0x1234" is the address itself. */
static bool is_place(const char *name, const char *path)
{
	const char *base = str_base_name(path);
	size_t n = strlen(base);

	if (strncmp(name, base, n) || strncmp(name + n, "+0x", 3))
		return false;
	return name[n + 3] && !name[n + 3 + strspn(name + n + 3, "0123456789abcdef")];
}

bool profile_frame_unnamed(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];
	const struct profile_function *function;
	const char *name;

	if (f->kind == FRAME_TRUNCATED)
		return false;
	if (!f->line_count)
		return true;
	if (f->line_count > 1 || f->module >= p->modules.n)
		return false;
	function = &p->functions.v[p->lines.v[f->first_line].function];
	name = profile_str(p, function->name);
	return !*name || function->named >= NAMED_START || is_place(name, profile_str(p, p->modules.v[f->module].path));
}

void profile_set_lines(struct profile *p, uint32_t frame, const struct profile_line *lines,
		       uint32_t count)
{
	struct profile_frame *f = &p->frames.v[frame];

	f->first_line = p->lines.n;
	f->line_count = count;
	for (uint32_t i = 0; i < count; i++)
		vec_push(&p->lines, lines[i]);
}

uint32_t profile_frame_again(struct profile *p, uint32_t frame)
{
	struct profile_frame f = p->frames.v[frame];

	f.first_line = f.line_count = 0;
	vec_push(&p->frames, f);
	return p->frames.n - 1;
}

uint32_t profile_replaced_stack(const struct profile *p, uint32_t stack, uint64_t time_ns)
{
	size_t low = 0, high = p->replaced.n;

	/* The last one that begins no later. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct profile_replaced *x = &p->replaced.v[middle];

		if (x->stack < stack || (x->stack == stack && x->start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || p->replaced.v[low - 1].stack != stack || time_ns >= p->replaced.v[low - 1].end_ns)
		return stack;
	return p->replaced.v[low - 1].with;
}

void profile_replace_stacks(struct profile *p, const struct profile_replaced *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vec_push(&p->replaced, list[i]);
	for (size_t i = 0; n && i < p->samples.n; i++)
		p->samples.v[i].stack = profile_replaced_stack(p, p->samples.v[i].stack, p->samples.v[i].time_ns);
	for (size_t i = 0; n && i < p->wakes.n; i++) {
		struct profile_wake *w = &p->wakes.v[i];

		w->stack = profile_replaced_stack(p, w->stack, w->time_ns);
		w->waker_stack = profile_replaced_stack(p, w->waker_stack, w->time_ns);
	}
	for (size_t i = 0; n && i < p->taskwakes.n; i++) {
		struct profile_taskwake *w = &p->taskwakes.v[i];

		w->waker_stack = profile_replaced_stack(p, w->waker_stack, w->time_ns);
	}
}

static struct profile_counter *counter(struct profile *p, const char *name)
{
	uint32_t string = profile_string(p, name);
	uint64_t *id = map_put(&p->counter_index, string, PROFILE_NONE);

	if (*id == PROFILE_NONE) {
		*id = p->counters.n;
		vec_push(&p->counters, (struct profile_counter){ .name = string });
	}
	return &p->counters.v[*id];
}

void profile_count(struct profile *p, const char *key, uint64_t add)
{
	counter(p, key)->value += add;
}

void profile_count_of(struct profile *p, const char *family, const char *which, uint64_t add)
{
	_cleanup_free_ char *key = key_of(family, which);

	profile_count(p, key, add);
}

void profile_count_set(struct profile *p, const char *key, uint64_t value)
{
	counter(p, key)->value = value;
}

void profile_count_set_of(struct profile *p, const char *family, const char *which, uint64_t value)
{
	_cleanup_free_ char *key = key_of(family, which);

	profile_count_set(p, key, value);
}

uint64_t profile_counter(const struct profile *p, const char *key)
{
	for (size_t i = 0; i < p->counters.n; i++)
		if (!strcmp(profile_str(p, p->counters.v[i].name), key))
			return p->counters.v[i].value;
	return 0;
}

uint64_t profile_counter_of(const struct profile *p, const char *family, const char *which)
{
	_cleanup_free_ char *key = key_of(family, which);

	return profile_counter(p, key);
}

bool profile_stack_truncated(const struct profile *p, uint32_t stack, uint32_t *ret_reason)
{
	uint32_t root = PROFILE_NONE;

	for (; stack; stack = p->stacks.v[stack].parent)
		root = p->stacks.v[stack].frame;
	if (root == PROFILE_NONE || p->frames.v[root].kind != FRAME_TRUNCATED)
		return false;
	if (ret_reason && p->frames.v[root].line_count)
		*ret_reason = p->functions.v[p->lines.v[p->frames.v[root].first_line].function].name;
	return true;
}
