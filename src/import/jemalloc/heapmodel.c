/*
 * heapmodel.c - heap dumps as a profile: addresses to frames by each dump's own maps, and what changed
 * between them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "import/jemalloc/heapdumps.h"
#include "import/jemalloc/heapmodules.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* What one stack of one process holds: in the dump that is looked at, the one before it, and the first. */
struct cell {
	uint32_t thread, stack;
	struct heapv2_pair now, before, first, all;
};

struct model {
	const struct heapdumps_options *options;
	struct worker *worker;
	struct profile *p;
	struct heapmodules files;
	struct map frames;       /* address to frame, of one dump */
	struct map cell_index;   /* thread and stack to cell */
	VEC(struct cell) cells;
	uint32_t heap, alloc, growth, shrunk, rise, fall, live;
	uint64_t start_wall_ns;
};

/* --- frames and stacks --- */

struct place {
	uint64_t start, end, bias;
	uint32_t module; /* PROFILE_NONE: not resolved yet */
	const struct proc_mapping *map;
};

struct dump_state {
	const struct heapdump *dump;
	uint32_t process, thread;
	VEC(struct place) places; /* executable mappings, by address */
	struct map names;         /* address to the first of its names */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return ORDER(x->start, y->start);
}

static struct place *find_place(struct dump_state *d, uint64_t address)
{
	size_t low = vec_search(i, 0, d->places.n, d->places.v[i].end <= address);

	return low < d->places.n && address >= d->places.v[low].start ? &d->places.v[low] : NULL;
}

/* By the names in the dump, where the file that has more of them is not here. */
static void name_frame(struct model *m, struct dump_state *d, uint32_t frame, uint32_t module,
		       uint64_t address)
{
	const struct heapv2 *data = &d->dump->data;
	uint64_t *first = map_get(&d->names, address);
	struct profile_line lines[32];
	uint32_t n = 0;

	if (!first || m->p->frames.v[frame].line_count)
		return;
	for (size_t i = *first;
	     i < data->names.n && data->names.v[i].address == address && n < ARRAY_LEN(lines); i++) {
		struct profile_function f = {
			.name = profile_string(m->p, strtab_get(&data->strings, data->names.v[i].string)),
			.module = module
		};

		lines[n++] = (struct profile_line){ .function = profile_function(m->p, &f), .inlined = true };
	}
	lines[n - 1].inlined = false;
	profile_set_lines(m->p, frame, lines, n);
}

static uint32_t make_frame(struct model *m, struct dump_state *d, uint64_t address)
{
	struct place *place = find_place(d, address);
	uint32_t frame;

	if (!place) {
		frame = profile_frame(m->p, PROFILE_NONE, FRAME_USER, address);
		name_frame(m, d, frame, PROFILE_NONE, address);
		return frame;
	}
	if (place->module == PROFILE_NONE) {
		place->module = heapmodules_find(&m->files, d->dump, place->map, d->process);
		place->bias =
			heapmodules_bias(&m->files, place->map, place->module, d->dump->data.file_addresses);
		profile_add_mapping(m->p, &(struct profile_mapping){ .process = d->process,
								     .module = place->module,
								     .start = place->start,
								     .end = place->end,
								     .bias = place->bias });
	}
	frame = profile_frame(m->p, place->module, FRAME_USER, address - place->bias);
	if (d->dump->data.symbolized || !heapmodules_found(&m->files, place->module))
		name_frame(m, d, frame, place->module, address);
	return frame;
}

static uint32_t frame_at(struct model *m, struct dump_state *d, uint64_t address, bool leaf)
{
	uint64_t *frame;

	/* A return address may be the first of the next function. */
	address -= !leaf && address;
	frame = map_put(&m->frames, address, PROFILE_NONE);
	if (*frame == PROFILE_NONE)
		*frame = make_frame(m, d, address);
	return *frame;
}

static uint32_t stack_of(struct model *m, struct dump_state *d, const struct heapv2_stack *s)
{
	uint32_t stack = 0;

	for (uint32_t i = s->depth; i-- > 0;)
		stack = profile_stack(m->p, stack,
				      frame_at(m, d, d->dump->data.addresses.v[s->first + i], !i));
	return stack;
}

static struct cell *cell_of(struct model *m, uint32_t thread, uint32_t stack)
{
	uint64_t *at = map_put(&m->cell_index, map_pair(thread, stack), m->cells.n);

	if (*at == m->cells.n)
		vec_push(&m->cells, (struct cell){ .thread = thread, .stack = stack });
	return &m->cells.v[*at];
}

static void add_pair(struct heapv2_pair *to, struct heapv2_pair add)
{
	to->objects += add.objects;
	to->bytes += add.bytes;
}

/* Reads the stacks of a dump into the cells, as the current values or as the first ones. */
static void fill_cells(struct model *m, struct dump_state *d, bool as_base)
{
	const struct heapv2 *data = &d->dump->data;

	map_clear(&m->frames);
	for (size_t i = 0; i < data->maps.list.n; i++)
		if (data->maps.list.v[i].executable)
			vec_push(&d->places,
				 (struct place){ data->maps.list.v[i].start, data->maps.list.v[i].end, 0,
						 PROFILE_NONE, &data->maps.list.v[i] });
	vec_sort(&d->places, compare_places);
	for (size_t i = 0; i < data->names.n; i++)
		map_put(&d->names, data->names.v[i].address, i);
	for (size_t i = 0; i < data->stacks.n; i++) {
		const struct heapv2_stack *s = &data->stacks.v[i];
		struct heapv2_pair live = heapv2_unbias(data->interval, s->live);
		struct cell *c;

		if (!s->live.bytes && !s->all.bytes)
			continue;
		c = cell_of(m, d->thread, stack_of(m, d, s));
		add_pair(as_base ? &c->first : &c->now, live);
		if (!as_base)
			add_pair(&c->all, heapv2_unbias(data->interval, s->all));
	}
	vec_done(&d->places);
	map_done(&d->names);
}

/* --- samples --- */

static void add_sample(struct model *m, uint32_t event, const struct cell *c, uint64_t bytes,
		       uint64_t objects, uint64_t time_ns)
{
	if (bytes)
		profile_add_sample(m->p, &(struct profile_sample){
						 .event = event,
						 .thread = c->thread,
						 .stack = c->stack,
						 .value = bytes,
						 .time_ns = time_ns,
						 .count = MIN(MAX(objects, 1), (uint64_t)UINT32_MAX) });
}

static uint64_t over(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Adds the changes between the dump in the cells and the one before it. */
static void add_steps(struct model *m, uint32_t thread, uint64_t time_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->cells.n; i++) {
		const struct cell *c = &m->cells.v[i];

		if (c->thread != thread)
			continue;
		add_sample(m, m->rise, c, over(c->now.bytes, c->before.bytes),
			   over(c->now.objects, c->before.objects), time_ns);
		add_sample(m, m->fall, c, over(c->before.bytes, c->now.bytes),
			   over(c->before.objects, c->now.objects), time_ns);
		bytes += c->now.bytes;
	}
	profile_add_point(m->p, m->live, time_ns, MIN(bytes, (uint64_t)INT64_MAX));
}

/* The last dump of a process is in the cells. */
static void add_last(struct model *m, uint32_t thread, uint64_t time_ns, bool compared, bool accumulated)
{
	if (accumulated && m->alloc == PROFILE_NONE)
		m->alloc = profile_add_event(m->p, "alloc", "bytes", "allocated since the program began", 0);
	for (size_t i = 0; i < m->cells.n; i++) {
		const struct cell *c = &m->cells.v[i];

		if (c->thread != thread)
			continue;
		add_sample(m, m->heap, c, c->now.bytes, c->now.objects, time_ns);
		if (accumulated)
			add_sample(m, m->alloc, c, c->all.bytes, c->all.objects, time_ns);
		if (!compared)
			continue;
		add_sample(m, m->growth, c, over(c->now.bytes, c->first.bytes),
			   over(c->now.objects, c->first.objects), time_ns);
		add_sample(m, m->shrunk, c, over(c->first.bytes, c->now.bytes),
			   over(c->first.objects, c->now.objects), time_ns);
	}
}

static void next_dump(struct model *m, uint32_t thread, bool was_first)
{
	for (size_t i = 0; i < m->cells.n; i++) {
		struct cell *c = &m->cells.v[i];

		if (c->thread != thread)
			continue;
		if (was_first)
			c->first = c->now;
		c->before = c->now;
		c->now = c->all = (struct heapv2_pair){ 0 };
	}
}

/* --- all --- */

static void make_events(struct model *m, const struct heapdumps *d)
{
	bool compared = m->options->base;

	for (size_t i = 1; i < d->list.n; i++)
		compared |= d->list.v[i].pid == d->list.v[i - 1].pid;
	m->alloc = m->growth = m->shrunk = m->rise = m->fall = PROFILE_NONE;
	m->heap = profile_add_event(m->p, "heap", "bytes", "alive in the last dump", 0);
	if (compared) {
		const char *since =
			m->options->base ? "more than in the base" : "more than in the first dump";
		const char *less = m->options->base ? "less than in the base" : "less than in the first dump";

		m->growth = profile_add_event(m->p, "growth", "bytes", since, 0);
		m->shrunk = profile_add_event(m->p, "shrunk", "bytes", less, 0);
	}
	m->rise = profile_add_event(m->p, "rise", "bytes", "more than in the dump before", 0);
	m->fall = profile_add_event(m->p, "fall", "bytes", "less than in the dump before", 0);
	m->live = profile_series(m->p, KEY_HEAP_LIVE);
}

/* The program is the first file with code in it. */
static void make_process(struct model *m, struct dump_state *d)
{
	const struct proc_maps *maps = &d->dump->data.maps;
	const char *exe = "";
	_cleanup_free_ char *path = NULL;
	struct profile_process process = { .pid = d->dump->pid };

	for (size_t i = 0; i < maps->list.n && !*exe; i++)
		if (maps->list.v[i].path[0] == '/')
			exe = maps->list.v[i].path;
	path = mem_strndup(exe, strlen(exe) - (str_ends(exe, " (deleted)") ? strlen(" (deleted)") : 0));
	process.exe = profile_string(m->p, path);
	process.name = profile_string(m->p, *path ? str_base_name(path) : "heap");
	d->process = profile_add_process(m->p, &process);
	d->thread = profile_add_thread(
		m->p,
		&(struct profile_thread){ .process = d->process, .tid = d->dump->pid, .name = process.name });
	if (!m->p->target)
		m->p->target = process.name;
}

/* File times are the dumps' times unless the files were copied: then the numbers give the order, and no
 * more. */
static bool times_known(const struct heapdumps *d)
{
	for (size_t i = 0; i < d->list.n; i++)
		if (!d->list.v[i].wall_ns || (i && d->list.v[i].pid == d->list.v[i - 1].pid &&
					      d->list.v[i].wall_ns <= d->list.v[i - 1].wall_ns))
			return false;
	return true;
}

static uint64_t first_wall(const struct heapdumps *d)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < d->list.n; i++)
		first = MIN(first, d->list.v[i].wall_ns);
	return first == UINT64_MAX ? 0 : first;
}

static void count_facts(struct model *m, const struct heapdump *dump)
{
	profile_count(m->p, KEY_HEAP_DUMPS, 1);
	profile_count(m->p, KEY_HEAP_DUMPS_CUT_OFF, dump->data.cut);
	profile_count(m->p, KEY_HEAP_DUMPS_WITHOUT_MAPS, !dump->data.has_maps);
	profile_count(m->p, KEY_HEAP_LINES_NOT_UNDERSTOOD, dump->data.bad_lines);
	profile_count_set(m->p, KEY_HEAP_INTERVAL_BYTES, dump->data.interval);
}

static int read_dumps(struct model *m, struct heapdumps *d, struct err *err)
{
	bool timed = times_known(d);
	struct dump_state state = { 0 };

	m->start_wall_ns = first_wall(d);
	for (size_t i = 0; i < d->list.n; i++) {
		struct heapdump *dump = &d->list.v[i];
		bool first = !i || dump->pid != d->list.v[i - 1].pid;
		bool last = i + 1 == d->list.n || d->list.v[i + 1].pid != dump->pid;
		bool was_loaded = dump->loaded;
		uint64_t time_ns = timed ? dump->wall_ns - m->start_wall_ns : i * 1000000000ULL;
		int r = heapdump_load(dump, err);

		if (r)
			return r;
		state.dump = dump;
		if (first)
			make_process(m, &state);
		if (first && m->options->base) {
			struct dump_state base = { m->options->base, state.process, state.thread };

			fill_cells(m, &base, true);
		}
		fill_cells(m, &state, false);
		count_facts(m, dump);
		add_steps(m, state.thread, time_ns);
		if (last)
			add_last(m, state.thread, time_ns, m->options->base || !first,
				 dump->data.accumulated);
		next_dump(m, state.thread, first && !m->options->base);
		m->p->duration_ns = MAX(m->p->duration_ns, time_ns);
		if (!was_loaded)
			heapdump_unload(dump);
	}
	m->p->start_wall_ns = m->start_wall_ns;
	m->p->finished = true;
	return 0;
}

int heapdumps_profile(struct heapdumps *d, const struct heapdumps_options *o, struct profile **ret,
		      struct err *err)
{
	struct model m = { .options = o, .p = profile_new(), .worker = o->worker ? o->worker : worker_new() };
	int r;

	if (!d->list.n) {
		profile_free(m.p);
		if (!o->worker)
			worker_free(m.worker);
		return err_set(err, EINVAL, "no heap dump was named");
	}
	m.files = (struct heapmodules){ o, m.worker, m.p };
	make_events(&m, d);
	r = read_dumps(&m, d, err);
	heapmodules_done(&m.files, !r);
	vec_done(&m.cells);
	map_done(&m.frames);
	map_done(&m.cell_index);
	if (!o->worker)
		worker_free(m.worker);
	if (r)
		profile_free(m.p);
	else
		*ret = m.p;
	return r;
}
