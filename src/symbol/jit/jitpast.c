#include "symbol/jit/jitpast.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/symbols.h"
#include "profile/profile.h"

enum {
	MAX_REPLACED = 1 << 20,
	MAX_DEPTH = 4096, /* of a stack that is looked at */
};

void jitpast_done(struct jitpast *x)
{
	vec_done(&x->changes);
	map_done(&x->first);
}

static const char *name_of(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	return f->line_count ? profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name) : "";
}

/* The frame itself, one that was made for the same name before, or a new one. */
static uint32_t frame_called(const struct jitpast *x, size_t first, struct profile *p, uint32_t frame, const char *name)
{
	struct profile_function f = { .module = p->frames.v[frame].module };
	struct profile_line line = { 0 };
	uint32_t with;

	if (!strcmp(name_of(p, frame), name))
		return frame;
	for (size_t i = first; i < x->changes.n; i++)
		if (!strcmp(name_of(p, x->changes.v[i].with), name))
			return x->changes.v[i].with;
	f.name = profile_string(p, name);
	line.function = profile_function(p, &f);
	with = profile_frame_again(p, frame);
	profile_set_lines(p, with, &line, 1);
	return with;
}

void jitpast_add(struct jitpast *x, struct profile *p, uint32_t frame, const struct symbols_call *calls, size_t count)
{
	size_t first = x->changes.n;

	if (map_get(&x->first, frame) || !count)
		return;
	*map_put(&x->first, frame, 0) = first;
	for (size_t i = 0; i < count; i++) {
		uint32_t with = frame_called(x, first, p, frame, calls[i].name);

		/* Before the first code there was none. */
		vec_push(&x->changes, (struct jitpast_change){ frame, with, i ? calls[i].line * 1000000ULL : 0 });
	}
}

static uint32_t frame_at(const struct jitpast *x, uint32_t frame, uint64_t time_ns)
{
	const uint64_t *first = map_get(&x->first, frame);
	uint32_t with = frame;

	for (size_t i = first ? *first : x->changes.n;
	     i < x->changes.n && x->changes.v[i].frame == frame && x->changes.v[i].from_ns <= time_ns; i++)
		with = x->changes.v[i].with;
	return with;
}

struct times {
	VEC(uint64_t) list;
};

static int compare_times(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The frames of a stack, innermost first, and the times at which one of them changes. */
static size_t list_frames(const struct jitpast *x, const struct profile *p, uint32_t stack, uint32_t *frames,
			  struct times *times)
{
	size_t depth = 0;

	vec_clear(&times->list);
	for (; stack && depth < MAX_DEPTH; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame;
		const uint64_t *first = map_get(&x->first, frame);

		frames[depth++] = frame;
		for (size_t i = first ? *first : x->changes.n; i < x->changes.n && x->changes.v[i].frame == frame; i++)
			vec_push(&times->list, x->changes.v[i].from_ns);
	}
	vec_sort(&times->list, compare_times);
	return stack ? 0 : depth;
}

static uint32_t stack_at(const struct jitpast *x, struct profile *p, const uint32_t *frames, size_t depth, uint64_t time_ns)
{
	uint32_t stack = 0;

	while (depth-- > 0)
		stack = profile_stack(p, stack, frame_at(x, frames[depth], time_ns));
	return stack;
}

bool jitpast_apply(const struct jitpast *x, struct profile *p)
{
	size_t n = p->stacks.n;
	_cleanup_free_ bool *changes = mem_alloc(n + 1);
	_cleanup_free_ uint32_t *frames = mem_alloc(MAX_DEPTH * sizeof(*frames));
	VEC(struct profile_replaced) list = { 0 };
	struct times times = { 0 };
	bool whole;

	if (p->replaced.n)
		return true; /* it was done before */
	for (uint32_t i = 1; i < n && x->changes.n && list.n < MAX_REPLACED; i++) {
		size_t depth;

		changes[i] = changes[p->stacks.v[i].parent] || map_get(&x->first, p->stacks.v[i].frame);
		depth = changes[i] ? list_frames(x, p, i, frames, &times) : 0;
		for (size_t k = 0; depth && k < times.list.n && list.n < MAX_REPLACED; k++) {
			uint64_t start = times.list.v[k], end = k + 1 < times.list.n ? times.list.v[k + 1] : UINT64_MAX;
			uint32_t with = start == end ? i : stack_at(x, p, frames, depth, start);

			if (with != i)
				vec_push(&list, (struct profile_replaced){ i, with, start, end });
		}
	}
	whole = list.n < MAX_REPLACED;
	profile_replace_stacks(p, list.v, list.n);
	vec_done(&list);
	vec_done(&times.list);
	return whole;
}
