/*
 * heaptrack.c - a heap as heaptrack writes it, with a line for each allocation and each free, for heaptrack_print and its window.
 *
 *	v 10400 3
 *	X /usr/bin/node --http
 *	s 4 main                      the strings, addresses and calls that what follows needs
 *	i 55e000001010 1 2 3 9
 *	t 1 0
 *	a 3e8 1                       1000 bytes, allocated there
 *	+ 1
 *	- 1
 *	c a                           10 ms since the beginning
 *
 * Objects of a sum have its mean size. What was allocated, freed, freed at once, alive at the end and at the peak is to the byte and
 * the object what the recording says. heaptrack counts a free as temporary if it is of the kind that was allocated
 * last; all others are of kinds that are never allocated, with the same sizes and calls. Kind 0 is not used: heaptrack takes it for
 * the last one after each free.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "export/export.h"
#include "export/foreign/heap/heapplaces.h"
#include "export/foreign/heap/heapsteps.h"
#include "export/report/cleantext.h"
#include "export/samplerows.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Each is a line or two: some hundred megabytes. */
static const uint64_t most_calls = 20000000;

/* What one stack has alive, and what is to happen to it at this time. */
struct cell {
	uint32_t stack;
	bool used;
	struct heapsteps_sum live, up, down, temporary;
};

struct writer {
	const struct export_job *job;
	struct buf *out;
	struct heapplaces places;
	struct stackcalls calls;
	struct strtab strings;       /* their ids are their numbers here */
	size_t strings_put;
	struct map frames, stacks;   /* of the profile, to their numbers here, from 1 on */
	struct map sizes;            /* call and upper half of a size to a number */
	struct map kinds[2];         /* that and the lower half to a kind: of allocations, and of frees */
	uint64_t kind_count;
	struct map index;            /* stack to cell */
	VEC(struct cell) cells;
	VEC(uint32_t) used, path;
	struct heapsteps_sum topmost; /* of this time */
	uint32_t topmost_stack;
	uint32_t resident;           /* series, PROFILE_NONE = none */
	size_t point;                /* the next one that may be of it */
	uint64_t now_ms;
};

/* --- where --- */

static uint32_t put_string(struct writer *w, const char *text)
{
	_cleanup_(buf_done) struct buf clean = { 0 };
	uint32_t id;

	if (!*text)
		return 0;
	cleantext_put(&clean, text);
	id = strtab_add(&w->strings, clean.data);
	if (id > w->strings_put) {
		buf_printf(w->out, "s %zx %s\n", clean.n, clean.data);
		w->strings_put = id;
	}
	return id;
}

/* The number of a frame, which is told first if it is new. */
static uint64_t put_frame(struct writer *w, uint32_t frame)
{
	uint64_t *known = map_get(&w->frames, frame);
	_cleanup_(buf_done) struct buf line = { 0 };

	if (known)
		return *known;
	stackcalls_of_frame(&w->calls, frame);
	buf_printf(&line, "i %llx", (unsigned long long)heapplaces_of(&w->places, frame));
	for (size_t i = 0; i < w->calls.list.n; i++) {
		const struct stackcall *c = &w->calls.list.v[i];

		if (!i)
			buf_printf(&line, " %x", put_string(w, c->module));
		buf_printf(&line, " %x", put_string(w, c->name));
		buf_printf(&line, " %x %x", put_string(w, c->file), c->line);
	}
	buf_printf(w->out, "%s\n", line.data);
	return *map_put(&w->frames, frame, w->frames.n + 1);
}

/* The number of a call, which is told first, with all its callers, if it is new. */
static uint64_t put_stack(struct writer *w, uint32_t stack)
{
	const struct profile *p = w->job->profile;
	uint64_t *known, caller = 0;

	vec_clear(&w->path);
	for (; stack; stack = p->stacks.v[stack].parent) {
		known = map_get(&w->stacks, stack);
		if (known) {
			caller = *known;
			break;
		}
		vec_push(&w->path, stack);
	}
	while (w->path.n) {
		uint32_t s = w->path.v[--w->path.n];

		buf_printf(w->out, "t %llx %llx\n", (unsigned long long)put_frame(w, p->stacks.v[s].frame), (unsigned long long)caller);
		caller = *map_put(&w->stacks, s, w->stacks.n + 1);
	}
	return caller;
}

/* The kind of objects of a size and a call, which is told first if it is new. */
static uint64_t put_kind(struct writer *w, uint32_t stack, uint64_t bytes, bool freed)
{
	uint64_t size = *map_put(&w->sizes, map_pair(stack, bytes >> 32), w->sizes.n);
	uint64_t *kind = map_put(&w->kinds[freed], map_pair(size, bytes), 0), number, call;

	if (*kind)
		return *kind;
	number = *kind = w->kind_count++;
	call = put_stack(w, stack);
	buf_printf(w->out, "a %llx %llx\n", (unsigned long long)bytes, (unsigned long long)call);
	return number;
}

/* --- what happened --- */

/* The next object of a sum: of its mean size, so that the last one ends it. */
static uint64_t next_size(struct heapsteps_sum *sum)
{
	uint64_t size = sum->bytes / sum->count + !!(sum->bytes % sum->count);

	sum->bytes -= size;
	sum->count--;
	return size;
}

static void allocate(struct writer *w, struct cell *c)
{
	uint64_t size = next_size(&c->up);

	buf_printf(w->out, "+ %llx\n", (unsigned long long)put_kind(w, c->stack, size, false));
	c->live.bytes += size;
	c->live.count++;
}

/* False: the next object that is to be freed is not there yet. */
static bool release(struct writer *w, struct cell *c)
{
	struct heapsteps_sum rest = c->down;
	uint64_t size = next_size(&rest);

	/* Differences of dumps may have more objects than there were. */
	if (c->live.bytes < size || (!c->live.count && !size))
		return false;
	buf_printf(w->out, "- %llx\n", (unsigned long long)put_kind(w, c->stack, size, true));
	c->down = rest;
	c->live.bytes -= size;
	c->live.count -= !!c->live.count;
	return true;
}

static void put_temporary(struct writer *w, uint32_t stack, struct heapsteps_sum *sum)
{
	while (sum->count) {
		uint64_t kind = put_kind(w, stack, next_size(sum), false);

		buf_printf(w->out, "+ %llx\n- %llx\n", (unsigned long long)kind, (unsigned long long)kind);
	}
}

/*
 * All that happened at one time. First what was there is freed, then come the objects that live for no time, one after the other,
 * then those that stay: so the heap is never larger than before or after, but for one object.
 */
static void put_moment(struct writer *w)
{
	for (size_t i = 0; i < w->used.n; i++) {
		struct cell *c = &w->cells.v[w->used.v[i]];

		while (c->down.count && release(w, c))
			;
	}
	for (size_t i = 0; i < w->used.n; i++) {
		struct cell *c = &w->cells.v[w->used.v[i]];

		put_temporary(w, c->stack, &c->temporary);
		while (c->down.count && c->up.count) {
			allocate(w, c);
			while (c->down.count && release(w, c))
				;
		}
	}
	for (size_t i = 0; i < w->used.n; i++) {
		struct cell *c = &w->cells.v[w->used.v[i]];

		while (c->up.count)
			allocate(w, c);
		while (c->down.count && release(w, c))
			;
		/* Frees of what the selection does not have. */
		c->down = (struct heapsteps_sum){ 0 };
		c->used = false;
	}
	vec_clear(&w->used);
	put_temporary(w, w->topmost_stack, &w->topmost);
}

static void add_sum(struct heapsteps_sum *to, const struct heapsteps_sum *add)
{
	to->bytes += add->bytes;
	to->count += add->count;
}

static void add_step(struct writer *w, const struct heapstep *s)
{
	uint64_t *at = map_put(&w->index, s->stack, w->cells.n);
	struct cell *c;

	if (*at == w->cells.n)
		vec_push(&w->cells, (struct cell){ .stack = s->stack });
	c = &w->cells.v[*at];
	if (!c->used)
		vec_push(&w->used, *at);
	c->used = true;
	add_sum(s->down ? &c->down : &c->up, &s->sum);
	add_sum(&c->temporary, &s->temporary);
	add_sum(&w->topmost, &s->topmost);
	if (s->topmost.count)
		w->topmost_stack = s->stack;
}

/* --- time --- */

static void put_time(struct writer *w, uint64_t time_ns)
{
	const uint64_t ms_ns = 1000000;

	if (time_ns / ms_ns <= w->now_ms)
		return;
	w->now_ms = time_ns / ms_ns;
	buf_printf(w->out, "c %llx\n", (unsigned long long)w->now_ms);
}

/* Resident memory up to a time. Points of one series are in their order. */
static void put_resident(struct writer *w, uint64_t time_ns)
{
	enum { PAGE = 4096 };
	const struct profile *p = w->job->profile;

	for (; w->point < p->points.n; w->point++) {
		const struct profile_point *at = &p->points.v[w->point];

		if (at->series != w->resident || at->value < 0)
			continue;
		if (at->time_ns > time_ns)
			return;
		put_time(w, at->time_ns);
		buf_printf(w->out, "R %llx\n", (unsigned long long)at->value / PAGE);
	}
}

static uint32_t resident_series(const struct profile *p)
{
	for (size_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name);

		if (!strcmp(name, KEY_HEAP_RSS) || !strcmp(name, KEY_MEM_RSS))
			return i;
	}
	return PROFILE_NONE;
}

/* --- all --- */

static void put_head(struct writer *w)
{
	const struct profile *p = w->job->profile;
	const char *command = p->processes.n ? profile_str(p, p->processes.v[0].command) : "";

	buf_puts(w->out, "v 10400 3\nX ");
	cleantext_put(w->out, *command ? command : profile_str(p, p->target));
	buf_puts(w->out, "\nI 1000 0\na 0 0\n");
	w->kind_count = 1;
}

static void put_all(struct writer *w, const struct heapsteps *steps)
{
	put_head(w);
	for (size_t i = 0; i < steps->list.n; i++) {
		uint64_t time_ns = steps->list.v[i].time_ns;

		if (!w->used.n) {
			put_resident(w, time_ns);
			put_time(w, time_ns);
		}
		add_step(w, &steps->list.v[i]);
		if (i + 1 == steps->list.n || steps->list.v[i + 1].time_ns != time_ns)
			put_moment(w);
	}
	put_resident(w, UINT64_MAX);
	put_time(w, steps->end_ns);
}

int heaptrack_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct writer w = { .job = job, .out = out, .resident = resident_series(job->profile) };
	struct heapsteps steps;
	int r = heapsteps_make(&steps, job, err);

	if (!r && steps.calls > most_calls)
		r = err_set(err, EFBIG, "heaptrack's format has a line for each of these %llu allocations, and more than %llu are too many: "
			    "select some of them (--function, --threads), or take massif or heap_v2, which have sums",
			    (unsigned long long)steps.calls, (unsigned long long)most_calls);
	if (!r) {
		heapplaces_init(&w.places, job->profile);
		stackcalls_init(&w.calls, job);
		strtab_init(&w.strings);
		put_all(&w, &steps);
		strtab_done(&w.strings);
		stackcalls_done(&w.calls);
		heapplaces_done(&w.places);
	}
	heapsteps_done(&steps);
	map_done(&w.frames);
	map_done(&w.stacks);
	map_done(&w.sizes);
	map_done(&w.kinds[0]);
	map_done(&w.kinds[1]);
	map_done(&w.index);
	vec_done(&w.cells);
	vec_done(&w.used);
	vec_done(&w.path);
	return r;
}
