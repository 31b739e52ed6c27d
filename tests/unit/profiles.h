/*
 * profiles.h - made-up profiles, large and small, and comparing two. For the tests of captures.
 */
#pragma once

#include "folder.h"

#include "base/sanitized.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/capture.h"
#include "profile/profile.h"

/* --- making profiles --- */

/* The same numbers in every run. */
static uint64_t random_state = 1;
static inline uint32_t random_below(uint32_t n)
{
	random_state = map_hash(random_state + 0x9e3779b97f4a7c15ULL);
	return random_state % n;
}

struct shape {
	uint32_t samples, stacks, nodes, frames, functions, threads, depth;
};
/* 60 s at 2,000 samples/s of a real node, and small ones. */
/* Sanitizers make each row many times as dear, and find in a fifth of them what they find in all. */
#define OF_MANY(n) ((n) / (SANITIZED ? 5 : 1))
static const struct shape large = { OF_MANY(120000), OF_MANY(30000), OF_MANY(100000), OF_MANY(20000), OF_MANY(6000), 60, 70 };
static const struct shape small = { 500, 60, 300, 120, 40, 5, 20 };

static inline uint32_t add_function(struct profile *p, uint32_t i, uint32_t module)
{
	char name[128], linkage[128], file[128];

	snprintf(name, sizeof(name), "<reth_node::module_%03u::Type<T> as reth_trait::Trait>::method_%05u_of_"
				     "that_long_type", i % 100, i);
	snprintf(linkage, sizeof(linkage), "_ZN9reth_node6module4Type6method%05u17h%016llxE", i,
		 (unsigned long long)map_hash(i));
	snprintf(file, sizeof(file), "/build/crates/storage/provider/src/providers/database_%u.rs", i % 400);
	return profile_function(p, &(struct profile_function){
					   .name = profile_string(p, name),
					   .linkage = i % 2 ? profile_string(p, linkage) : 0,
					   .file = i % 3 ? profile_string(p, file) : 0,
					   .module = module,
				   });
}

static inline void add_people(struct profile *p, const struct shape *s)
{
	uint32_t process, module;
	char name[32];

	p->target = profile_string(p, "op-reth");
	p->host = profile_string(p, "machine");
	p->kernel = profile_string(p, "6.1.0");
	p->start_wall_ns = 1700000000123456789;
	p->duration_ns = 60000000000;
	profile_add_event(p, "cpu", "ns", "CPU time, sampled at 999 Hz", 1001001);
	process = profile_add_process(p, &(struct profile_process){
						 .pid = 4242, .parent_pid = 1, .name = profile_string(p, "reth"),
						 .exe = profile_string(p, "/usr/bin/reth"),
						 .command = profile_string(p, "reth node --chain dev") });
	for (uint32_t i = 0; i < s->threads; i++) {
		snprintf(name, sizeof(name), "worker-%u", i);
		profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 4242 + i,
								.name = profile_string(p, name),
								.cpu_ns = i * 1000000000ULL,
								.run_ns = i * 1000000001ULL,
								.queue_ns = i * 7ULL,
								.blocked_ns = i * 5000000000ULL });
	}
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const paths[] = { "/usr/bin/reth", "/lib/libc.so.6", "[kernel]" };
		struct profile_module m = { .path = profile_string(p, paths[i]), .process = PROFILE_NONE,
					    .kind = i == 2 ? MODULE_KERNEL : MODULE_FILE,
					    .build_id = { 0xab, 0, i }, .build_id_size = i == 2 ? 0 : 20 };

		module = profile_add_module(p, &m);
		profile_add_mapping(p, &(struct profile_mapping){ .process = process, .module = module,
								  .start = 0x555500000000 + (i << 20),
								  .end = 0x555500100000 + (i << 20),
								  .bias = 0x555500000000, .time_ns = i });
	}
}

static inline void add_frames(struct profile *p, const struct shape *s)
{
	for (uint32_t i = 0; i < s->functions; i++)
		add_function(p, i, i % 20 == 19 ? 2 : i % 20 == 18 ? 1 : 0);
	for (uint32_t i = 0; i < s->frames; i++) {
		struct profile_line lines[3];
		uint32_t first = random_below(s->functions), n = i % 50 ? 1 + i % 3 : 0, id;
		uint32_t module = p->functions.v[first].module;

		id = profile_frame(p, module, module == 2 ? FRAME_KERNEL : FRAME_USER,
				   (module == 2 ? 0xffffffff81000000 : 0x400000) + i * 41ULL);
		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct profile_line){ .function = (first + k * 7) % s->functions,
							  .line = 1 + random_below(2000), .inlined = k + 1 < n };
		if (n)
			profile_set_lines(p, id, lines, n);
	}
}

/* A prefix tree: a new stack leaves an old one at a random depth, as those of real programs do. */
static inline void add_stacks(struct profile *p, const struct shape *s)
{
	uint32_t cut = profile_stack(p, 0, profile_truncation_frame(p, "no table"));
	VEC(uint32_t) leaves = { 0 };
	VEC(uint32_t) path = { 0 };

	vec_push(&leaves, cut);
	while (leaves.n < s->stacks) {
		uint32_t from = random_below(8) ? leaves.v[random_below(leaves.n)] : 0, node, keep, grow;

		vec_clear(&path);
		for (node = from; node; node = p->stacks.v[node].parent)
			vec_push(&path, node);
		keep = path.n ? path.n - random_below(path.n > 4 ? 4 : path.n) : 0;
		node = keep ? path.v[path.n - keep] : 0;
		grow = keep ? 1 + random_below(2 * (s->nodes / s->stacks)) : s->depth / 2 + random_below(s->depth);
		if (p->stacks.n + grow > s->nodes || path.n > 2 * s->depth)
			grow = 1;
		for (uint32_t i = 0; i < grow; i++)
			node = profile_stack(p, node, random_below(s->frames));
		vec_push(&leaves, node);
	}
	for (uint32_t i = 0; i < s->samples; i++)
		profile_add_sample(p, &(struct profile_sample){
					      .time_ns = 500000ULL * i + random_below(400000),
					      .value = i % 10 ? 1001001 : 1001001 + random_below(5000),
					      .thread = random_below(s->threads),
					      .stack = i < leaves.n ? leaves.v[i] : leaves.v[random_below(leaves.n)],
					      .count = i % 7 ? i % 2 : 2 + i % 400 });
	vec_done(&leaves);
	vec_done(&path);
}

/* Awaits of two types of tasks, with every border case there is. */
static inline void add_taskwakes(struct profile *p)
{
	uint32_t types[] = { profile_string(p, "node::serve"), profile_string(p, "node::connect") };

	for (uint32_t i = 0; i < 60; i++)
		profile_add_taskwake(p, &(struct profile_taskwake){
			.time_ns = 90000000ULL * i, .await_ns = 100000 + i * 12345, .queue_ns = i % 3 * 1000, .type = types[i % 2],
			.task = 1 + i / 4, .thread = i % p->threads.n,
			.waker = i % 5 ? i % 3 % p->threads.n : PROFILE_NONE,
			.waker_type = i % 4 ? types[i / 2 % 2] : 0, .waker_task = i % 4 ? 1 + i / 5 : 0,
			.waker_stack = i % 2 ? i % p->stacks.n : 0 });
}

/* Wakes, marks, series and histograms, with every border case there is. */
static inline void add_rest(struct profile *p)
{
	uint32_t note = profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "/data/mdbx.dat"), series[2];
	struct profile_histogram *h;

	for (uint32_t i = 0; i < 200; i++) {
		uint32_t waker = i % 3 ? random_below(p->threads.n) : PROFILE_NONE;
		const char *name = waker != PROFILE_NONE && i % 5 ? profile_str(p, p->threads.v[waker].name) :
				   i % 2 ? "swapper/0" : "kworker/u4:1";
		struct profile_wake w = { .time_ns = 30000000ULL * i, .queue_ns = i % 4 * 1000,
					  .waker = waker, .waker_name = profile_string(p, name) };

		w.blocked_ns = 1000000 + random_below(1 << 30);
		w.thread = random_below(p->threads.n);
		w.stack = profile_stack(p, random_below(p->stacks.n), note);
		w.waker_stack = i % 10 ? random_below(p->stacks.n) : 0;
		profile_add_wake(p, &w);
	}
	for (uint32_t i = 0; i < 30; i++) {
		_cleanup_free_ char *name = mem_printf("block %u", 24443168 + i);

		profile_add_mark(p, &(struct profile_mark){ .start_ns = 200000000ULL * i,
							    .end_ns = 200000000ULL * i + i % 7 * 12345678,
							    .name = profile_string(p, i % 6 ? name : ""),
							    .kind = profile_string(p, i % 4 ? "block" : "phase"),
							    .thread = i % 3 ? i % p->threads.n : PROFILE_NONE,
							    .block.known = i % 8,
							    .block.number = i & BLOCK_NUMBER ? 24443168 + i : 0,
							    .block.gas = i & BLOCK_GAS ? i * 1000 : 0,
							    .block.transactions = i & BLOCK_TRANSACTIONS ? i : 0 });
	}
	series[0] = profile_add_series(p, "memory", "bytes");
	series[1] = profile_add_series(p, "balance", "count");
	for (uint32_t i = 0; i < 100; i++) {
		profile_add_point(p, series[0], 1000000000ULL * i, 5000000000 + random_below(1000000));
		profile_add_point(p, series[1], 1000000000ULL * i, i ? 50 - (int64_t)i : INT64_MIN);
	}
	h = profile_add_histogram(p, "read latency", "ns");
	h->counts[0] = 3;
	h->counts[12] = 4000000000000;
	h->counts[62] = 2;
	h->counts[63] = 1;
	profile_add_histogram(p, "fsync latency", "ns")->counts[20] = 17;
	profile_add_histogram(p, "never", "ns");
	add_taskwakes(p);
}

static inline struct profile *make_profile(const struct shape *s)
{
	struct profile *p = profile_new();

	add_people(p, s);
	add_frames(p, s);
	add_stacks(p, s);
	add_rest(p);
	profile_count(p, "samples.lost", 3);
	p->finished = true;
	return p;
}

static inline void save(struct profile *p, const char *path)
{
	struct capture *c;
	struct err err = { 0 };

	if (capture_create(path, &c, &err) < 0 || capture_flush(c, p, &err) < 0 || capture_close(c, &err) < 0)
		fail_msg("%s", err.text);
}

static inline struct profile *load(const char *path)
{
	struct profile *p = NULL;
	struct err err = { 0 };

	if (capture_read(path, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

/* --- comparing them --- */

#define assert_same_string(a, x, b, y) assert_string_equal(profile_str(a, x), profile_str(b, y))

static inline void assert_same_people(const struct profile *a, const struct profile *b)
{
	assert_same_string(a, a->target, b, b->target);
	assert_same_string(a, a->host, b, b->host);
	assert_same_string(a, a->kernel, b, b->kernel);
	assert_int_equal(a->start_wall_ns, b->start_wall_ns);
	assert_int_equal(a->duration_ns, b->duration_ns);
	assert_int_equal(a->finished, b->finished);
	assert_int_equal(a->events.n, b->events.n);
	assert_int_equal(a->processes.n, b->processes.n);
	assert_int_equal(a->threads.n, b->threads.n);
	assert_int_equal(a->counters.n, b->counters.n);
	for (size_t i = 0; i < a->events.n; i++) {
		assert_same_string(a, a->events.v[i].name, b, b->events.v[i].name);
		assert_same_string(a, a->events.v[i].unit, b, b->events.v[i].unit);
		assert_same_string(a, a->events.v[i].describe, b, b->events.v[i].describe);
		assert_int_equal(a->events.v[i].period, b->events.v[i].period);
	}
	for (size_t i = 0; i < a->processes.n; i++) {
		assert_int_equal(a->processes.v[i].pid, b->processes.v[i].pid);
		assert_int_equal(a->processes.v[i].parent_pid, b->processes.v[i].parent_pid);
		assert_same_string(a, a->processes.v[i].name, b, b->processes.v[i].name);
		assert_same_string(a, a->processes.v[i].exe, b, b->processes.v[i].exe);
		assert_same_string(a, a->processes.v[i].command, b, b->processes.v[i].command);
		assert_int_equal(a->processes.v[i].end_ns, b->processes.v[i].end_ns);
	}
	for (size_t i = 0; i < a->threads.n; i++) {
		assert_int_equal(a->threads.v[i].process, b->threads.v[i].process);
		assert_int_equal(a->threads.v[i].tid, b->threads.v[i].tid);
		assert_same_string(a, a->threads.v[i].name, b, b->threads.v[i].name);
		assert_int_equal(a->threads.v[i].start_ns, b->threads.v[i].start_ns);
		assert_int_equal(a->threads.v[i].end_ns, b->threads.v[i].end_ns);
		assert_int_equal(a->threads.v[i].cpu_ns, b->threads.v[i].cpu_ns);
		assert_int_equal(a->threads.v[i].run_ns, b->threads.v[i].run_ns);
		assert_int_equal(a->threads.v[i].queue_ns, b->threads.v[i].queue_ns);
		assert_int_equal(a->threads.v[i].blocked_ns, b->threads.v[i].blocked_ns);
	}
	for (size_t i = 0; i < a->counters.n; i++)
		assert_int_equal(a->counters.v[i].value,
				 profile_counter(b, profile_str(a, a->counters.v[i].name)));
}

static inline void assert_same_code(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->modules.n, b->modules.n);
	assert_int_equal(a->mappings.n, b->mappings.n);
	assert_int_equal(a->functions.n, b->functions.n);
	assert_int_equal(a->frames.n, b->frames.n);
	for (size_t i = 0; i < a->modules.n; i++) {
		assert_same_string(a, a->modules.v[i].path, b, b->modules.v[i].path);
		assert_int_equal(a->modules.v[i].kind, b->modules.v[i].kind);
		assert_int_equal(a->modules.v[i].process, b->modules.v[i].process);
		assert_int_equal(a->modules.v[i].build_id_size, b->modules.v[i].build_id_size);
		assert_memory_equal(a->modules.v[i].build_id, b->modules.v[i].build_id, a->modules.v[i].build_id_size);
	}
	if (a->mappings.n)
		assert_memory_equal(a->mappings.v, b->mappings.v, a->mappings.n * sizeof(*a->mappings.v));
	for (size_t i = 0; i < a->functions.n; i++) {
		assert_same_string(a, a->functions.v[i].name, b, b->functions.v[i].name);
		assert_same_string(a, a->functions.v[i].linkage, b, b->functions.v[i].linkage);
		assert_same_string(a, a->functions.v[i].file, b, b->functions.v[i].file);
		assert_int_equal(a->functions.v[i].module, b->functions.v[i].module);
	}
	for (size_t i = 0; i < a->frames.n; i++) {
		const struct profile_frame *f = &a->frames.v[i], *g = &b->frames.v[i];

		assert_int_equal(f->module, g->module);
		assert_int_equal(f->kind, g->kind);
		assert_int_equal(f->address, g->address);
		assert_int_equal(f->line_count, g->line_count);
		for (uint32_t k = 0; k < f->line_count; k++) {
			const struct profile_line *l = &a->lines.v[f->first_line + k];
			const struct profile_line *m = &b->lines.v[g->first_line + k];

			assert_int_equal(l->function, m->function);
			assert_int_equal(l->line, m->line);
			assert_int_equal(l->inlined, m->inlined);
		}
	}
}

static inline void assert_same_samples(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->stacks.n, b->stacks.n);
	assert_memory_equal(a->stacks.v, b->stacks.v, a->stacks.n * sizeof(*a->stacks.v));
	assert_int_equal(a->samples.n, b->samples.n);
	for (size_t i = 0; i < a->samples.n; i++) {
		const struct profile_sample *x = &a->samples.v[i], *y = &b->samples.v[i];

		if (x->time_ns != y->time_ns || x->value != y->value || x->thread != y->thread ||
		    x->stack != y->stack || x->event != y->event || MAX(x->count, 1u) != MAX(y->count, 1u))
			fail_msg("sample %zu differs", i);
	}
}

static inline void assert_same_wakes(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->wakes.n, b->wakes.n);
	for (size_t i = 0; i < a->wakes.n; i++) {
		const struct profile_wake *x = &a->wakes.v[i], *y = &b->wakes.v[i];

		if (x->time_ns != y->time_ns || x->blocked_ns != y->blocked_ns ||
		    x->queue_ns != y->queue_ns || x->thread != y->thread || x->stack != y->stack ||
		    x->waker != y->waker || x->waker_stack != y->waker_stack)
			fail_msg("wake %zu differs", i);
		assert_same_string(a, x->waker_name, b, y->waker_name);
	}
}

static inline void assert_same_taskwakes(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->taskwakes.n, b->taskwakes.n);
	for (size_t i = 0; i < a->taskwakes.n; i++) {
		const struct profile_taskwake *x = &a->taskwakes.v[i], *y = &b->taskwakes.v[i];

		if (x->time_ns != y->time_ns || x->await_ns != y->await_ns || x->queue_ns != y->queue_ns || x->task != y->task ||
		    x->thread != y->thread || x->waker != y->waker || x->waker_task != y->waker_task ||
		    x->waker_stack != y->waker_stack)
			fail_msg("wake %zu of a task differs", i);
		assert_same_string(a, x->type, b, y->type);
		assert_same_string(a, x->waker_type, b, y->waker_type);
	}
}

static inline void assert_same_marks(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->marks.n, b->marks.n);
	for (size_t i = 0; i < a->marks.n; i++) {
		const struct profile_mark *x = &a->marks.v[i], *y = &b->marks.v[i];

		if (x->start_ns != y->start_ns || x->end_ns != y->end_ns || x->thread != y->thread ||
		    x->block.known != y->block.known || x->block.number != y->block.number || x->block.gas != y->block.gas ||
		    x->block.transactions != y->block.transactions)
			fail_msg("mark %zu differs", i);
		assert_same_string(a, x->name, b, y->name);
		assert_same_string(a, x->kind, b, y->kind);
	}
}

static inline void assert_same_points(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->series.n, b->series.n);
	for (size_t i = 0; i < a->series.n; i++) {
		assert_same_string(a, a->series.v[i].name, b, b->series.v[i].name);
		assert_same_string(a, a->series.v[i].unit, b, b->series.v[i].unit);
	}
	assert_int_equal(a->points.n, b->points.n);
	for (size_t i = 0; i < a->points.n; i++) {
		assert_int_equal(a->points.v[i].time_ns, b->points.v[i].time_ns);
		assert_int_equal(a->points.v[i].value, b->points.v[i].value);
		assert_int_equal(a->points.v[i].series, b->points.v[i].series);
	}
}

/* In any order; one that counted nothing is as good as none. */
static inline void assert_same_histograms(const struct profile *a, struct profile *b)
{
	size_t full = 0;

	for (size_t i = 0; i < a->histograms.n; i++) {
		const struct profile_histogram *x = &a->histograms.v[i];
		struct profile_histogram *y = profile_add_histogram(b, profile_str(a, x->name),
								profile_str(a, x->unit));

		assert_memory_equal(x->counts, y->counts, sizeof(x->counts));
		assert_same_string(a, x->unit, b, y->unit);
		for (size_t k = 0; k < ARRAY_LEN(x->counts); k++)
			full += x->counts[k] != 0;
	}
	for (size_t i = 0; i < b->histograms.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(b->histograms.v[i].counts); k++)
			full -= b->histograms.v[i].counts[k] != 0;
	assert_int_equal(full, 0);
}

static inline void assert_same(const struct profile *a, struct profile *b)
{
	assert_same_people(a, b);
	assert_same_code(a, b);
	assert_same_samples(a, b);
	assert_same_wakes(a, b);
	assert_same_taskwakes(a, b);
	assert_same_marks(a, b);
	assert_same_points(a, b);
	assert_same_histograms(a, b);
}

