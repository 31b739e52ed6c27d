#include "fleet/push/pushrows.h"

#include <stdio.h>
#include <string.h>

#include "fleet/clickhouse.h"
#include "fleet/push/push.h"
#include "fleet/sql.h"
#include "fleet/window.h"
#include "profile/profile.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;

/* A window whose rows are made just now. */
struct maker {
	struct pushrows *out;
	const struct pushrows_from *from;
	const struct windows *w;
};

/* --- rows --- */

static void put_key(const struct maker *mk, struct buf *out, const struct window *x)
{
	uint64_t wall = window_wall_ns(mk->w, x), second = wall / second_ns;

	sql_row_u16(out, second / day_seconds);
	sql_row_string(out, mk->from->o->target);
	sql_row_u32(out, second);
	sql_row_u64(out, window_id(mk->from->o->target, wall, x->sequence));
	sql_row_u64(out, mk->out->attempt);
}

static void put_who(struct buf *out, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *t = &p->threads.v[thread];

	sql_row_u32(out, t->process < p->processes.n ? p->processes.v[t->process].pid : 0);
	sql_row_u32(out, t->tid);
	sql_row_string(out, profile_str(p, t->comm ? t->comm : t->name));
}

static void put_frame(struct maker *mk, uint32_t frame, uint64_t day)
{
	const struct profile *p = mk->w->p;
	const struct profile_frame *f = &p->frames.v[frame];
	const struct profile_module *m = f->module < p->modules.n ? &p->modules.v[f->module] : NULL;
	const struct profile_line *lines = f->line_count ? &p->lines.v[f->first_line] : NULL;
	struct buf *out = &mk->out->frames;
	char id[2 * sizeof(m->build_id) + 1] = "";

	for (unsigned i = 0; m && i < m->build_id_size; i++)
		snprintf(id + 2 * i, 3, "%02x", m->build_id[i]);
	sql_row_u16(out, day);
	sql_row_u64(out, mk->w->frame_hashes[frame]);
	sql_row_u8(out, f->kind);
	sql_row_u8(out, m ? m->kind : MODULE_NONE);
	sql_row_string(out, m ? profile_str(p, m->path) : "");
	sql_row_string(out, id);
	sql_row_u64(out, f->address);
	sql_row_count(out, f->line_count);
	for (uint32_t i = 0; i < f->line_count; i++)
		sql_row_string(out, profile_str(p, p->functions.v[lines[i].function].name));
	sql_row_count(out, f->line_count);
	for (uint32_t i = 0; i < f->line_count; i++)
		sql_row_string(out, profile_str(p, p->functions.v[lines[i].function].file));
	sql_row_count(out, f->line_count);
	for (uint32_t i = 0; i < f->line_count; i++)
		sql_row_u32(out, lines[i].line);
	sql_row_count(out, f->line_count);
	for (uint32_t i = 0; i < f->line_count; i++)
		sql_row_u8(out, p->functions.v[lines[i].function].named);
	mk->out->count++;
}

/* Is it the first time that this is sent with this day? */
static bool is_new(struct maker *mk, uint64_t hash, uint64_t day)
{
	struct pushsent *sent = mk->from->sent;
	uint64_t key = map_hash(hash ^ map_hash(day));

	/* An agent runs for months: a day that is over is not remembered. What is late is sent again. */
	if (day > sent->day) {
		map_clear(&sent->keys);
		sent->day = day;
	}
	if (map_get(&sent->keys, key))
		return false;
	map_put(&sent->keys, key, 0);
	vec_push(&mk->out->named, (struct pushnamed){ sent, key });
	return true;
}

static void put_stack(struct maker *mk, uint32_t stack, uint64_t day)
{
	const struct profile *p = mk->w->p;
	size_t n = 0;

	if (!stack || !is_new(mk, mk->w->stack_hashes[stack], day))
		return;
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent)
		n++;
	sql_row_u16(&mk->out->stacks, day);
	sql_row_u64(&mk->out->stacks, mk->w->stack_hashes[stack]);
	sql_row_count(&mk->out->stacks, n);
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent) {
		uint32_t frame = p->stacks.v[s].frame;

		sql_row_u64(&mk->out->stacks, mk->w->frame_hashes[frame]);
		if (is_new(mk, mk->w->frame_hashes[frame], day))
			put_frame(mk, frame, day);
	}
	mk->out->count++;
}

static void put_samples(struct maker *mk, const struct window *x, uint64_t day)
{
	const struct profile *p = mk->w->p;

	for (size_t i = 0; i < x->samples.n; i++) {
		const struct window_sample *s = &x->samples.v[i];

		put_stack(mk, s->stack, day);
		put_key(mk, &mk->out->samples, x);
		sql_row_string(&mk->out->samples, profile_str(p, p->events.v[s->event].name));
		put_who(&mk->out->samples, p, s->thread);
		sql_row_string(&mk->out->samples, s->cause);
		sql_row_u64(&mk->out->samples, s->mark == PROFILE_NONE ? 0 : window_mark_id(mk->w, mk->from->o->target, s->mark));
		sql_row_u64(&mk->out->samples, mk->w->stack_hashes[s->stack]);
		sql_row_u64(&mk->out->samples, s->value);
		sql_row_u64(&mk->out->samples, s->count);
	}
	mk->out->count += x->samples.n;
}

static void put_threads(struct maker *mk, const struct window *x)
{
	const struct profile *p = mk->w->p;

	for (size_t i = 0; i < x->threads.n; i++) {
		const struct window_thread *own = &x->threads.v[i];
		const struct profile_thread *t = &p->threads.v[own->thread];
		const struct profile_process *process = t->process < p->processes.n ? &p->processes.v[t->process] : NULL;
		const uint64_t numbers[] = { p->start_wall_ns + t->start_ns, t->end_ns ? p->start_wall_ns + t->end_ns : 0, own->cpu_ns,
					     own->run_ns, own->queue_ns, own->blocked_ns };

		put_key(mk, &mk->out->threads, x);
		put_who(&mk->out->threads, p, own->thread);
		sql_row_string(&mk->out->threads, process ? profile_str(p, process->name) : "");
		sql_row_string(&mk->out->threads, process ? profile_str(p, process->exe) : "");
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			sql_row_u64(&mk->out->threads, numbers[k]);
	}
	mk->out->count += x->threads.n;
}

static void put_marks(struct maker *mk, const struct window *x)
{
	const struct profile *p = mk->w->p;

	for (size_t i = 0; i < x->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[x->marks.v[i]];
		const uint64_t numbers[] = { p->start_wall_ns + m->start_ns, p->start_wall_ns + m->end_ns, m->block.number, m->block.gas,
					     m->block.transactions };

		put_key(mk, &mk->out->blocks, x);
		sql_row_u64(&mk->out->blocks, window_mark_id(mk->w, mk->from->o->target, x->marks.v[i]));
		sql_row_string(&mk->out->blocks, profile_str(p, m->kind));
		sql_row_string(&mk->out->blocks, profile_str(p, m->name));
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			sql_row_u64(&mk->out->blocks, numbers[k]);
		sql_row_u32(&mk->out->blocks, m->block.known);
	}
	mk->out->count += x->marks.n;
}

static void put_facts(struct maker *mk, const struct window *x)
{
	const struct profile *p = mk->w->p;

	for (size_t i = 0; i < x->counters.n; i++) {
		put_key(mk, &mk->out->counters, x);
		sql_row_string(&mk->out->counters, profile_str(p, p->counters.v[x->counters.v[i].counter].name));
		sql_row_u64(&mk->out->counters, x->counters.v[i].value);
	}
	for (size_t i = 0; i < x->points.n; i++) {
		const struct profile_point *point = &p->points.v[x->points.v[i]];

		put_key(mk, &mk->out->points, x);
		sql_row_string(&mk->out->points, profile_str(p, p->series.v[point->series].name));
		sql_row_string(&mk->out->points, profile_str(p, p->series.v[point->series].unit));
		sql_row_u64(&mk->out->points, p->start_wall_ns + point->time_ns);
		sql_row_i64(&mk->out->points, point->value);
	}
	mk->out->count += x->counters.n + x->points.n;
}

struct cause_sum {
	const char *name;
	uint64_t ns;
};

/* The account by cause, of the time that threads waited and queued. */
static void put_causes(struct maker *mk, const struct window *x)
{
	VEC(struct cause_sum) list = { 0 };

	for (size_t i = 0; i < x->samples.n; i++) {
		const struct window_sample *s = &x->samples.v[i];
		size_t k = 0;

		if (!*s->cause)
			continue;
		while (k < list.n && strcmp(list.v[k].name, s->cause))
			k++;
		if (k == list.n)
			vec_push(&list, (struct cause_sum){ s->cause, 0 });
		list.v[k].ns += s->value;
	}
	sql_row_count(&mk->out->commits, list.n);
	for (size_t i = 0; i < list.n; i++)
		sql_row_string(&mk->out->commits, list.v[i].name);
	sql_row_count(&mk->out->commits, list.n);
	for (size_t i = 0; i < list.n; i++)
		sql_row_u64(&mk->out->commits, list.v[i].ns);
	vec_done(&list);
}

static void put_commit(struct maker *mk, const struct window *x)
{
	const struct profile *p = mk->w->p;
	const struct push_options *o = mk->from->o;
	struct buf *out = &mk->out->commits;
	size_t labels = 0;

	while (o->labels && o->labels[labels])
		labels++;
	put_key(mk, out, x);
	sql_row_u64(out, window_wall_ns(mk->w, x));
	sql_row_u64(out, x->duration_ns);
	sql_row_u64(out, x->sequence);
	sql_row_u64(out, x->digest);
	sql_row_string(out, profile_str(p, p->host));
	sql_row_string(out, profile_str(p, p->kernel));
	sql_row_string(out, o->release ? o->release : "");
	sql_row_count(out, labels);
	for (size_t i = 0; i < labels; i++)
		sql_row_string(out, o->labels[i]);
	/* All that were recorded, whether or not something happened: "no waits" is not "waits were not recorded". */
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_string(out, profile_str(p, p->events.v[i].name));
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_string(out, profile_str(p, p->events.v[i].unit));
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_string(out, profile_str(p, p->events.v[i].describe));
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_u64(out, p->events.v[i].period);
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_u64(out, x->totals.v[i].value);
	sql_row_count(out, p->events.n);
	for (size_t i = 0; i < p->events.n; i++)
		sql_row_u64(out, x->totals.v[i].count);
	put_causes(mk, x);
	mk->out->count++;
}

/* --- all of them --- */

void pushrows_add(struct pushrows *r, const struct pushrows_from *from)
{
	struct maker mk = { r, from, from->w };
	const struct window *x = from->x;

	put_samples(&mk, x, window_wall_ns(from->w, x) / second_ns / day_seconds);
	put_threads(&mk, x);
	put_marks(&mk, x);
	put_facts(&mk, x);
	put_commit(&mk, x);
}

/* Takes back what was not sent, or perhaps not. */
static void forget_named(struct pushrows *r)
{
	for (size_t i = 0; i < r->named.n; i++)
		map_remove(&r->named.v[i].sent->keys, r->named.v[i].key);
	vec_clear(&r->named);
}

int pushrows_send(struct pushrows *r, struct clickhouse *c, unsigned shard, struct err *err)
{
#define KEY "day, target, start, window_id, attempt, "
	/* The commits are the last. */
	const struct {
		const char *table, *columns;
		const struct buf *rows;
	} parts[] = {
		{ "frames", "day, frame, kind, module_kind, module, build_id, address, names, files, lines, named", &r->frames },
		{ "stacks", "day, stack, frames", &r->stacks },
		{ "samples", KEY "event, pid, tid, thread, cause, block, stack, value, count", &r->samples },
		{ "threads", KEY "pid, tid, thread, process, exe, begin_ns, end_ns, cpu_ns, run_ns, queue_ns, blocked_ns", &r->threads },
		{ "blocks", KEY "block, kind, name, begin_ns, end_ns, number, gas, transactions, known", &r->blocks },
		{ "counters", KEY "name, value", &r->counters },
		{ "points", KEY "series, unit, time_ns, value", &r->points },
		{ "windows", KEY "start_ns, duration_ns, sequence, digest, host, kernel, release, labels, events, units, describes, periods, "
				 "totals, counts, causes, cause_ns", &r->commits },
	};
#undef KEY
	int result = 0;

	for (size_t i = 0; !result && i < ARRAY_LEN(parts); i++)
		result = clickhouse_insert(c, shard, parts[i].table, parts[i].columns, parts[i].rows, err);
	if (!result)
		vec_clear(&r->named);
	return result;
}

size_t pushrows_bytes(const struct pushrows *r)
{
	return r->samples.n + r->threads.n + r->blocks.n + r->counters.n + r->points.n + r->stacks.n + r->frames.n + r->commits.n;
}

void pushrows_done(struct pushrows *r)
{
	struct buf *const all[] = { &r->samples, &r->threads, &r->blocks, &r->counters, &r->points, &r->stacks, &r->frames, &r->commits };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		buf_done(all[i]);
	forget_named(r);
	vec_done(&r->named);
	*r = (struct pushrows){ 0 };
}
