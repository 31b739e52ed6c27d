/*
 * pprof.c - all events as one profile of pprof, for go tool pprof, Pyroscope, Parca and others that read profile.proto.
 *
 * Each event is a type of values, and where its samples stand for many, what counts them is another. Rows of one stack, thread,
 * block and cause are one sample; times are lost by that. Labels: thread, tid, pid, cause, block.
 */
#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/codec/gzip.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/foreign/pprof/wiretables.h"
#include "profile/profile.h"

struct type {
	uint32_t name, unit; /* strings */
	uint32_t event;
	bool count;
};

struct writing {
	const struct export_job *job;
	const struct profile *p;
	struct wiretables tables;
	struct wiregroups groups;
	VEC(struct type) types;
	VEC(uint64_t) values; /* a row of them for each group */
	uint32_t *first;      /* by event: its first type */
	uint32_t thread, tid, pid, cause, block; /* strings: the keys of labels */
	struct buf out;
};

/* --- types --- */

static void add_type(struct writing *w, uint32_t event, bool count)
{
	_cleanup_free_ char *name = wiretables_type(w->p, event, count);

	vec_push(&w->types, (struct type){ .name = wiretables_string(&w->tables, name), .event = event, .count = count,
					   .unit = wiretables_string(&w->tables, count ? "count" : wiretables_unit(w->p, event)) });
}

/* A count that is the value itself is not written twice. */
static void add_types(struct writing *w, const struct samplerows *rows)
{
	_cleanup_free_ bool *counted = mem_alloc(w->p->events.n + 1);

	for (size_t i = 0; i < rows->list.n; i++)
		counted[rows->list.v[i].event] |= rows->list.v[i].count != rows->list.v[i].value;
	for (size_t i = 0; i < rows->events.n; i++) {
		uint32_t event = rows->events.v[i];

		w->first[event] = w->types.n;
		if (counted[event] || strcmp(wiretables_unit(w->p, event), "count"))
			add_type(w, event, true);
		add_type(w, event, false);
	}
}

static int add_number(uint64_t *to, uint64_t value)
{
	return __builtin_add_overflow(*to, value, to) || *to > INT64_MAX ? -ERANGE : 0;
}

static int add_rows(struct writing *w, const struct samplerows *rows, struct err *err)
{
	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *row = &rows->list.v[i];
		uint32_t group = wiregroups_of(&w->groups, row), type = w->first[row->event];
		uint64_t *values;
		int r;

		while (w->values.n < w->groups.list.n * w->types.n)
			vec_push(&w->values, 0);
		values = &w->values.v[(size_t)group * w->types.n];
		r = w->types.v[type].count ? add_number(&values[type++], row->count) : 0;
		if (r || add_number(&values[type], row->value))
			return err_set(err, ERANGE, "the values of %s add up to more than a profile of pprof can hold",
				       profile_str(w->p, w->p->events.v[row->event].name));
	}
	return 0;
}

/* --- messages --- */

/* Defaults are left out, as everybody does. */
static void put(struct writing *w, uint32_t field, uint64_t value)
{
	if (value)
		protobuf_put_uint(&w->out, field, value);
}

static void put_type(struct writing *w, uint32_t field, const struct type *t)
{
	size_t begin = protobuf_open(&w->out, field);

	put(w, 1, t->name);
	put(w, 2, t->unit);
	protobuf_close(&w->out, begin);
}

static void put_label(struct writing *w, uint32_t key, uint32_t text, uint64_t number)
{
	size_t begin;

	if (!text && !number)
		return;
	begin = protobuf_open(&w->out, 3);
	put(w, 1, key);
	put(w, 2, text);
	put(w, 3, number);
	protobuf_close(&w->out, begin);
}

static void put_labels(struct writing *w, const struct samplerow *row)
{
	const struct profile_thread *thread = &w->p->threads.v[row->thread];
	const struct profile_mark *block = row->block == PROFILE_NONE ? NULL : &w->p->marks.v[row->block];

	put_label(w, w->thread, wiretables_string(&w->tables, profile_str(w->p, thread->name)), 0);
	put_label(w, w->tid, 0, thread->tid);
	put_label(w, w->pid, 0, thread->process < w->p->processes.n ? w->p->processes.v[thread->process].pid : 0);
	put_label(w, w->cause, wiretables_string(&w->tables, samplerow_cause(row)), 0);
	if (block && block->block.known & BLOCK_NUMBER)
		put_label(w, w->block, 0, block->block.number);
	else if (block)
		put_label(w, w->block, wiretables_string(&w->tables, profile_str(w->p, block->name)), 0);
}

static void put_sample(struct writing *w, size_t group)
{
	const struct samplerow *row = &w->groups.list.v[group];
	size_t begin = protobuf_open(&w->out, 2), list;

	wiretables_put_stack(&w->tables, row->stack, 1, &w->out);
	list = protobuf_open(&w->out, 2);
	for (size_t i = 0; i < w->types.n; i++)
		protobuf_put_varint(&w->out, w->values.v[group * w->types.n + i]);
	protobuf_close(&w->out, list);
	put_labels(w, row);
	protobuf_close(&w->out, begin);
}

static void put_mapping(struct writing *w, uint32_t id)
{
	const struct wiretables_module *m = &w->tables.modules.v[id];
	size_t begin = protobuf_open(&w->out, 3);

	put(w, 1, id);
	put(w, 3, UINT64_MAX); /* all memory: addresses are of the file */
	put(w, 5, m->path);
	put(w, 6, m->build_id);
	put(w, 7, m->functions);
	put(w, 8, m->files);
	put(w, 9, m->lines);
	put(w, 10, m->inlined);
	protobuf_close(&w->out, begin);
}

static void put_location(struct writing *w, uint32_t id)
{
	const struct wiretables_location *l = &w->tables.locations.v[id];
	size_t begin = protobuf_open(&w->out, 4);

	put(w, 1, id);
	put(w, 2, l->module);
	put(w, 3, l->address);
	wiretables_put_lines(&w->tables, l, 4, &w->out);
	protobuf_close(&w->out, begin);
}

static void put_function(struct writing *w, uint32_t id)
{
	const struct wiretables_function *f = &w->tables.functions.v[id];
	size_t begin = protobuf_open(&w->out, 5);

	put(w, 1, id);
	put(w, 2, f->name);
	put(w, 3, f->linkage);
	put(w, 4, f->file);
	protobuf_close(&w->out, begin);
}

static void put_tables(struct writing *w)
{
	for (uint32_t i = 1; i < w->tables.modules.n; i++)
		put_mapping(w, i);
	for (uint32_t i = 1; i < w->tables.locations.n; i++)
		put_location(w, i);
	for (uint32_t i = 1; i < w->tables.functions.n; i++)
		put_function(w, i);
}

/* The period is that of the CPU's clock, else of what is shown first. */
static void put_head(struct writing *w, uint32_t shown)
{
	uint32_t cpu = profile_find_event(w->p, "cpu", "ns"), event = cpu == PROFILE_NONE ? shown : cpu;
	const struct type *value = NULL, *first = NULL;

	for (size_t i = 0; i < w->types.n; i++) {
		if (w->types.v[i].event == event && !w->types.v[i].count)
			value = &w->types.v[i];
		if (w->types.v[i].event == shown && !w->types.v[i].count)
			first = &w->types.v[i];
	}
	put(w, 9, w->p->start_wall_ns);
	put(w, 10, select_duration_ns(w->p));
	if (value && w->p->events.v[event].period) {
		put_type(w, 11, value);
		put(w, 12, w->p->events.v[event].period);
	}
	if (first)
		put(w, 14, first->name);
}

static void put_comments(struct writing *w)
{
	_cleanup_free_ char *target = mem_printf("target: %s", profile_str(w->p, w->p->target));

	put(w, 13, wiretables_string(&w->tables, "recorded by gasflame"));
	if (w->p->target)
		put(w, 13, wiretables_string(&w->tables, target));
}

static void put_all(struct writing *w, const struct samplerows *rows)
{
	uint32_t shown = w->job->selection->options.event;

	if (shown >= w->p->events.n && rows->events.n)
		shown = rows->events.v[0];
	for (size_t i = 0; i < w->types.n; i++)
		put_type(w, 1, &w->types.v[i]);
	for (size_t i = 0; i < w->groups.list.n; i++)
		put_sample(w, i);
	put_tables(w);
	put_head(w, shown);
	put_comments(w);
	for (uint32_t i = 0; i < w->tables.strings.n; i++)
		protobuf_put_string(&w->out, 6, strtab_get(&w->tables.strings, i));
}

int pprof_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct writing w = { .job = job, .p = job->profile };
	struct samplerows rows;
	int r = samplerows_make(&rows, job, 0, err);

	wiretables_init(&w.tables, job);
	w.first = mem_alloc((w.p->events.n + 1) * sizeof(*w.first));
	w.thread = wiretables_string(&w.tables, "thread");
	w.tid = wiretables_string(&w.tables, "tid");
	w.pid = wiretables_string(&w.tables, "pid");
	w.cause = wiretables_string(&w.tables, "cause");
	w.block = wiretables_string(&w.tables, "block");
	if (!r) {
		add_types(&w, &rows);
		r = add_rows(&w, &rows, err);
	}
	if (!r) {
		put_all(&w, &rows);
		gzip_pack(out, w.out.data, w.out.n);
	}
	free(w.first);
	vec_done(&w.types);
	vec_done(&w.values);
	wiregroups_done(&w.groups);
	wiretables_done(&w.tables);
	buf_done(&w.out);
	samplerows_done(&rows);
	return r;
}
