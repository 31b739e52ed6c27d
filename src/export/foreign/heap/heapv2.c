/*
 * heapv2.c - a heap as jemalloc dumps it, with its symbols, for jeprof.
 *
 *	--- symbol
 *	binary=/usr/bin/node
 *	0x55e000001010 outer--inner        an address and its functions, the innermost inlined one last
 *	---
 *	--- heap
 *	heap_v2/0                          each object is in it: jeprof takes figures as they are
 *	  t*: 2: 8192 [3: 9000]            objects and bytes alive [and allocated]
 *	  t0: 2: 8192 [3: 9000] main       of each thread
 *	@ 0x55e000001010 0x55e000002021    the leaf first; of callers the address after the call
 *	  t*: 1: 4096 [2: 4904]
 *	  t0: 1: 4096 [2: 4904]
 *
 *	MAPPED_LIBRARIES:
 *	55e000000000-55e000003000 r-xp 00000000 00:00 0 /usr/bin/node
 *
 * Without the symbols it is the file that jemalloc writes (what follows "--- heap"); with them jeprof needs neither the program nor
 * its libraries, and shows names that are nowhere else: of code that was made at run time, and of imported profiles.
 */
#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/foreign/heap/heapplaces.h"
#include "export/report/cleantext.h"
#include "export/samplerows.h"
#include "profile/profile.h"

struct pair {
	uint64_t objects, bytes;
};

/* What a thread has of a stack. */
struct cell {
	uint32_t stack, thread;
	struct pair live, all;
};

struct writer {
	const struct export_job *job;
	struct buf *out;
	struct heapplaces places;
	VEC(struct cell) cells;
	VEC(uint32_t) threads; /* of the profile, in the order of their numbers here */
	struct map thread_numbers;
	uint32_t live, all;    /* events, PROFILE_NONE = none */
};

static void add_pair(struct pair *to, const struct pair *add)
{
	to->objects += add->objects;
	to->bytes += add->bytes;
}

/* --- cells --- */

static int compare_cells(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return ORDER(x->stack, y->stack) ?: ORDER(x->thread, y->thread);
}

static void gather(struct writer *w, const struct samplerows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *r = &rows->list.v[i];
		struct cell c = { .stack = r->stack, .thread = r->thread };
		struct pair pair = { r->count, r->value };

		if (r->event == w->live)
			c.live = pair;
		else if (r->event == w->all)
			c.all = pair;
		else
			continue;
		vec_push(&w->cells, c);
	}
	vec_sort(&w->cells, compare_cells);
	for (size_t i = 0; i < w->cells.n; i++) {
		if (kept && !compare_cells(&w->cells.v[kept - 1], &w->cells.v[i])) {
			add_pair(&w->cells.v[kept - 1].live, &w->cells.v[i].live);
			add_pair(&w->cells.v[kept - 1].all, &w->cells.v[i].all);
		} else {
			w->cells.v[kept++] = w->cells.v[i];
		}
	}
	w->cells.n = kept;
}

/* Which events are alive and allocated: those of a heap, or the one that --what names as alive. */
static int choose_events(struct writer *w, struct err *err)
{
	const struct export_job *job = w->job;
	const struct profile *p = job->profile;
	uint32_t named = job->selection->options.event;

	w->live = w->all = PROFILE_NONE;
	if (!job->options.every_event) {
		if (named < p->events.n && !strcmp(profile_str(p, p->events.v[named].unit), "bytes"))
			w->live = named;
	} else {
		w->live = profile_find_event(p, "heap", "bytes");
		w->all = profile_find_event(p, "alloc", "bytes");
	}
	if (w->live == PROFILE_NONE && w->all == PROFILE_NONE)
		return err_set(err, ENODATA, "there are no bytes of a heap in this recording: record with -e heap, or --what names an event "
					     "in bytes");
	return 0;
}

/* --- text --- */

/* Two hyphens would end a name. */
static void put_name(struct buf *out, const char *name)
{
	size_t start = out->n;

	cleantext_put(out, name);
	for (size_t i = start + 1; i < out->n; i++)
		if (out->data[i] == '-' && out->data[i - 1] == '-')
			out->data[i] = '_';
	/* Nor may one begin where the mark between names ends. */
	if (out->n > start && out->data[start] == '-')
		out->data[start] = '_';
	if (out->n > start && out->data[out->n - 1] == '-')
		out->data[out->n - 1] = '_';
}

static void put_symbols(struct writer *w)
{
	const struct profile *p = w->job->profile;
	_cleanup_free_ bool *done = mem_alloc(p->frames.n + 1);
	struct stackcalls calls;

	stackcalls_init(&calls, w->job);
	buf_puts(w->out, "--- symbol\nbinary=");
	cleantext_put(w->out, p->processes.n ? profile_str(p, p->processes.v[0].exe) : "");
	buf_putc(w->out, '\n');
	for (size_t i = 0; i < w->cells.n; i++)
		for (uint32_t s = w->cells.v[i].stack; s; s = p->stacks.v[s].parent)
			done[p->stacks.v[s].frame] = true;
	for (uint32_t f = 0; f < p->frames.n; f++) {
		if (!done[f])
			continue;
		stackcalls_of_frame(&calls, f);
		buf_printf(w->out, "0x%llx ", (unsigned long long)heapplaces_of(&w->places, f));
		for (size_t k = calls.list.n; k-- > 0;) {
			put_name(w->out, calls.list.v[k].name);
			buf_puts(w->out, k ? "--" : "");
		}
		buf_putc(w->out, '\n');
	}
	buf_puts(w->out, "---\n--- heap\n");
	stackcalls_done(&calls);
}

static void put_pairs(struct buf *out, const struct pair *live, const struct pair *all)
{
	buf_printf(out, "%llu: %llu [%llu: %llu]", (unsigned long long)live->objects, (unsigned long long)live->bytes,
		   (unsigned long long)all->objects, (unsigned long long)all->bytes);
}

static uint64_t number_of(struct writer *w, uint32_t thread)
{
	uint64_t *number = map_put(&w->thread_numbers, thread, w->threads.n);

	if (*number == w->threads.n)
		vec_push(&w->threads, thread);
	return *number;
}

static void put_head(struct writer *w)
{
	const struct profile *p = w->job->profile;
	VEC(struct cell) sums = { 0 };
	struct cell all = { 0 };

	for (size_t i = 0; i < w->cells.n; i++) {
		const struct cell *c = &w->cells.v[i];
		uint64_t number = number_of(w, c->thread);

		if (number == sums.n)
			vec_push(&sums, (struct cell){ 0 });
		add_pair(&sums.v[number].live, &c->live);
		add_pair(&sums.v[number].all, &c->all);
		add_pair(&all.live, &c->live);
		add_pair(&all.all, &c->all);
	}
	buf_puts(w->out, "heap_v2/0\n  t*: ");
	put_pairs(w->out, &all.live, &all.all);
	for (size_t i = 0; i < sums.n; i++) {
		buf_printf(w->out, "\n  t%zu: ", i);
		put_pairs(w->out, &sums.v[i].live, &sums.v[i].all);
		buf_putc(w->out, ' ');
		cleantext_put(w->out, profile_str(p, p->threads.v[w->threads.v[i]].name));
	}
	buf_putc(w->out, '\n');
	vec_done(&sums);
}

/* A stack and the cells of its threads; returns the cell after them. jeprof takes no stack without an address. */
static size_t put_stack(struct writer *w, size_t first)
{
	const struct profile *p = w->job->profile;
	struct cell all = { 0 };
	uint32_t stack = w->cells.v[first].stack;
	size_t end = first;

	for (; end < w->cells.n && w->cells.v[end].stack == stack; end++) {
		add_pair(&all.live, &w->cells.v[end].live);
		add_pair(&all.all, &w->cells.v[end].all);
	}
	buf_puts(w->out, stack ? "@" : "@ 0x1");
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent)
		buf_printf(w->out, " 0x%llx", (unsigned long long)heapplaces_of(&w->places, p->stacks.v[s].frame) + (s != stack));
	buf_puts(w->out, "\n  t*: ");
	put_pairs(w->out, &all.live, &all.all);
	for (size_t i = first; i < end; i++) {
		buf_printf(w->out, "\n  t%llu: ", (unsigned long long)number_of(w, w->cells.v[i].thread));
		put_pairs(w->out, &w->cells.v[i].live, &w->cells.v[i].all);
	}
	buf_putc(w->out, '\n');
	return end;
}

/* The offset in the file is not known, but where the code is in it by its own addresses: mostly that is the same. */
static void put_mappings(struct writer *w)
{
	const struct profile *p = w->job->profile;

	buf_puts(w->out, "\nMAPPED_LIBRARIES:\n");
	/* The program is the first that is mapped. */
	for (size_t i = 0; i < 2 * w->places.mapped.n; i++) {
		const struct profile_mapping *m = &p->mappings.v[w->places.mapped.v[i % w->places.mapped.n]];
		bool program = p->processes.n && p->modules.v[m->module].path == p->processes.v[0].exe;

		if (program == (i >= w->places.mapped.n))
			continue;
		buf_printf(w->out, "%llx-%llx r-xp %08llx 00:00 0 ", (unsigned long long)m->start, (unsigned long long)m->end,
			   (unsigned long long)(m->start - m->bias));
		cleantext_put(w->out, profile_str(p, p->modules.v[m->module].path));
		buf_putc(w->out, '\n');
	}
}

int heapv2_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct writer w = { .job = job, .out = out };
	struct samplerows rows = { 0 };
	int r = choose_events(&w, err);

	r = r ?: samplerows_make(&rows, job, 0, err);
	if (!r) {
		heapplaces_init(&w.places, job->profile);
		gather(&w, &rows);
		put_symbols(&w);
		put_head(&w);
		for (size_t i = 0; i < w.cells.n;)
			i = put_stack(&w, i);
		put_mappings(&w);
		heapplaces_done(&w.places);
	}
	samplerows_done(&rows);
	vec_done(&w.cells);
	vec_done(&w.threads);
	map_done(&w.thread_numbers);
	return r;
}
