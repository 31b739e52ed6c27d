#include "fleet/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/sql.h"
#include "fleet/storeurl.h"
#include "fleet/window.h"
#include "profile/profile.h"

static const uint64_t second_ns = 1000000000, day_seconds = 86400;
enum { FIRST_PAUSE_MS = 200, LONGEST_PAUSE_MS = 5000, MOST_NAME_BYTES = 200, MOST_LABELS = 64 };

struct pusher {
	struct clickhouse *c;
	struct push_options o;
	unsigned shard;
	uint64_t attempts;
	uint64_t day;    /* the last one that something was sent with */
	struct map sent; /* stacks and frames of that day, and of earlier ones that came since */
};

/* A window of one of several captures. */
struct item {
	const struct windows *w;
	const struct window *x;
};

/* A batch on its way. */
struct batch {
	struct pusher *pusher;
	const struct windows *w; /* of the window whose rows are made just now */
	VEC(struct item) list;
	uint64_t attempt, rows;
	struct buf samples, threads, blocks, counters, points, stacks, frames, commits;
	VEC(uint64_t) named; /* keys of what is in stacks and frames, for sent */
};

/* --- names --- */

static int check_name(const char *what, const char *name, struct err *err)
{
	if (!*name)
		return err_set(err, EINVAL, "%s has no name", what);
	if (strlen(name) > MOST_NAME_BYTES)
		return err_set(err, EINVAL, "%s is longer than %d bytes", what, MOST_NAME_BYTES);
	return 0;
}

int push_check(const struct push_options *o, struct err *err)
{
	int r = check_name("the target", o->target, err);
	size_t n = 0;

	if (!r && o->release)
		r = check_name("the release", o->release, err);
	for (const char *const *label = o->labels; !r && label && *label; label++) {
		r = check_name("a label", *label, err);
		if (!r && (!strchr(*label, '=') || **label == '='))
			r = err_set(err, EINVAL, "a label is KEY=VALUE");
		if (!r && ++n > MOST_LABELS)
			r = err_set(err, EINVAL, "there are more than %d labels", MOST_LABELS);
	}
	return r;
}

/* --- rows --- */

static void put_key(const struct batch *b, struct buf *out, const struct window *x)
{
	uint64_t wall = window_wall_ns(b->w, x), second = wall / second_ns;

	sql_row_u16(out, second / day_seconds);
	sql_row_string(out, b->pusher->o.target);
	sql_row_u32(out, second);
	sql_row_u64(out, window_id(b->pusher->o.target, wall, x->sequence));
	sql_row_u64(out, b->attempt);
}

static void put_who(struct buf *out, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *t = &p->threads.v[thread];

	sql_row_u32(out, t->process < p->processes.n ? p->processes.v[t->process].pid : 0);
	sql_row_u32(out, t->tid);
	sql_row_string(out, profile_str(p, t->comm ? t->comm : t->name));
}

static void put_frame(struct batch *b, uint32_t frame, uint64_t day)
{
	const struct profile *p = b->w->p;
	const struct profile_frame *f = &p->frames.v[frame];
	const struct profile_module *m = f->module < p->modules.n ? &p->modules.v[f->module] : NULL;
	const struct profile_line *lines = f->line_count ? &p->lines.v[f->first_line] : NULL;
	struct buf *out = &b->frames;
	char id[2 * sizeof(m->build_id) + 1] = "";

	for (unsigned i = 0; m && i < m->build_id_size; i++)
		snprintf(id + 2 * i, 3, "%02x", m->build_id[i]);
	sql_row_u16(out, day);
	sql_row_u64(out, b->w->frame_hashes[frame]);
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
	b->rows++;
}

/* Is it the first time that this is sent with this day? */
static bool is_new(struct batch *b, uint64_t hash, uint64_t day)
{
	uint64_t key = map_hash(hash ^ map_hash(day));

	/* An agent runs for months: a day that is over is not remembered. What is late is sent again. */
	if (day > b->pusher->day) {
		map_clear(&b->pusher->sent);
		b->pusher->day = day;
	}
	if (map_get(&b->pusher->sent, key))
		return false;
	map_put(&b->pusher->sent, key, 0);
	vec_push(&b->named, key);
	return true;
}

static void put_stack(struct batch *b, uint32_t stack, uint64_t day)
{
	const struct profile *p = b->w->p;
	size_t n = 0;

	if (!stack || !is_new(b, b->w->stack_hashes[stack], day))
		return;
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent)
		n++;
	sql_row_u16(&b->stacks, day);
	sql_row_u64(&b->stacks, b->w->stack_hashes[stack]);
	sql_row_count(&b->stacks, n);
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent) {
		uint32_t frame = p->stacks.v[s].frame;

		sql_row_u64(&b->stacks, b->w->frame_hashes[frame]);
		if (is_new(b, b->w->frame_hashes[frame], day))
			put_frame(b, frame, day);
	}
	b->rows++;
}

static void put_samples(struct batch *b, const struct window *x, uint64_t day)
{
	const struct profile *p = b->w->p;

	for (size_t i = 0; i < x->samples.n; i++) {
		const struct window_sample *s = &x->samples.v[i];

		put_stack(b, s->stack, day);
		put_key(b, &b->samples, x);
		sql_row_string(&b->samples, profile_str(p, p->events.v[s->event].name));
		put_who(&b->samples, p, s->thread);
		sql_row_string(&b->samples, s->cause);
		sql_row_u64(&b->samples, s->mark == PROFILE_NONE ? 0 : window_mark_id(b->w, b->pusher->o.target, s->mark));
		sql_row_u64(&b->samples, b->w->stack_hashes[s->stack]);
		sql_row_u64(&b->samples, s->value);
		sql_row_u64(&b->samples, s->count);
	}
	b->rows += x->samples.n;
}

static void put_threads(struct batch *b, const struct window *x)
{
	const struct profile *p = b->w->p;

	for (size_t i = 0; i < x->threads.n; i++) {
		const struct window_thread *own = &x->threads.v[i];
		const struct profile_thread *t = &p->threads.v[own->thread];
		const struct profile_process *process = t->process < p->processes.n ? &p->processes.v[t->process] : NULL;
		const uint64_t numbers[] = { p->start_wall_ns + t->start_ns, t->end_ns ? p->start_wall_ns + t->end_ns : 0, own->cpu_ns,
					     own->run_ns, own->queue_ns, own->blocked_ns };

		put_key(b, &b->threads, x);
		put_who(&b->threads, p, own->thread);
		sql_row_string(&b->threads, process ? profile_str(p, process->name) : "");
		sql_row_string(&b->threads, process ? profile_str(p, process->exe) : "");
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			sql_row_u64(&b->threads, numbers[k]);
	}
	b->rows += x->threads.n;
}

static void put_marks(struct batch *b, const struct window *x)
{
	const struct profile *p = b->w->p;

	for (size_t i = 0; i < x->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[x->marks.v[i]];
		const uint64_t numbers[] = { p->start_wall_ns + m->start_ns, p->start_wall_ns + m->end_ns, m->block.number, m->block.gas,
					     m->block.transactions };

		put_key(b, &b->blocks, x);
		sql_row_u64(&b->blocks, window_mark_id(b->w, b->pusher->o.target, x->marks.v[i]));
		sql_row_string(&b->blocks, profile_str(p, m->kind));
		sql_row_string(&b->blocks, profile_str(p, m->name));
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			sql_row_u64(&b->blocks, numbers[k]);
		sql_row_u32(&b->blocks, m->block.known);
	}
	b->rows += x->marks.n;
}

static void put_facts(struct batch *b, const struct window *x)
{
	const struct profile *p = b->w->p;

	for (size_t i = 0; i < x->counters.n; i++) {
		put_key(b, &b->counters, x);
		sql_row_string(&b->counters, profile_str(p, p->counters.v[x->counters.v[i].counter].name));
		sql_row_u64(&b->counters, x->counters.v[i].value);
	}
	for (size_t i = 0; i < x->points.n; i++) {
		const struct profile_point *point = &p->points.v[x->points.v[i]];

		put_key(b, &b->points, x);
		sql_row_string(&b->points, profile_str(p, p->series.v[point->series].name));
		sql_row_string(&b->points, profile_str(p, p->series.v[point->series].unit));
		sql_row_u64(&b->points, p->start_wall_ns + point->time_ns);
		sql_row_i64(&b->points, point->value);
	}
	b->rows += x->counters.n + x->points.n;
}

struct cause_sum {
	const char *name;
	uint64_t ns;
};

/* The account by cause, of the time that threads waited and queued. */
static void put_causes(struct batch *b, const struct window *x)
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
	sql_row_count(&b->commits, list.n);
	for (size_t i = 0; i < list.n; i++)
		sql_row_string(&b->commits, list.v[i].name);
	sql_row_count(&b->commits, list.n);
	for (size_t i = 0; i < list.n; i++)
		sql_row_u64(&b->commits, list.v[i].ns);
	vec_done(&list);
}

static void put_commit(struct batch *b, const struct window *x)
{
	const struct profile *p = b->w->p;
	const struct push_options *o = &b->pusher->o;
	struct buf *out = &b->commits;
	size_t labels = 0;

	while (o->labels && o->labels[labels])
		labels++;
	put_key(b, out, x);
	sql_row_u64(out, window_wall_ns(b->w, x));
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
	put_causes(b, x);
	b->rows++;
}

/* --- a batch --- */

/* Takes back what was not sent, or perhaps not. */
static void forget_named(struct batch *b)
{
	for (size_t i = 0; i < b->named.n; i++)
		map_remove(&b->pusher->sent, b->named.v[i]);
	vec_clear(&b->named);
}

static void batch_clear(struct batch *b)
{
	struct buf *const all[] = { &b->samples, &b->threads, &b->blocks, &b->counters, &b->points, &b->stacks, &b->frames, &b->commits };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i]->n = 0;
	vec_clear(&b->named);
	b->rows = 0;
}

static void batch_done(struct batch *b)
{
	struct buf *const all[] = { &b->samples, &b->threads, &b->blocks, &b->counters, &b->points, &b->stacks, &b->frames, &b->commits };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		buf_done(all[i]);
	vec_done(&b->list);
	vec_done(&b->named);
}

static uint64_t new_attempt(struct pusher *p)
{
	return map_hash(clock_wall_ns() ^ map_hash(clock_mono_ns() ^ map_hash((uint64_t)getpid() << 32 | ++p->attempts)));
}

static int send_batch(struct batch *b, struct err *err)
{
#define KEY "day, target, start, window_id, attempt, "
	/* The commits are the last. */
	const struct {
		const char *table, *columns;
		const struct buf *rows;
	} parts[] = {
		{ "frames", "day, frame, kind, module_kind, module, build_id, address, names, files, lines, named", &b->frames },
		{ "stacks", "day, stack, frames", &b->stacks },
		{ "samples", KEY "event, pid, tid, thread, cause, block, stack, value, count", &b->samples },
		{ "threads", KEY "pid, tid, thread, process, exe, begin_ns, end_ns, cpu_ns, run_ns, queue_ns, blocked_ns", &b->threads },
		{ "blocks", KEY "block, kind, name, begin_ns, end_ns, number, gas, transactions, known", &b->blocks },
		{ "counters", KEY "name, value", &b->counters },
		{ "points", KEY "series, unit, time_ns, value", &b->points },
		{ "windows", KEY "start_ns, duration_ns, sequence, digest, host, kernel, release, labels, events, units, describes, periods, "
				 "totals, counts, causes, cause_ns", &b->commits },
	};
#undef KEY
	int r = 0;

	batch_clear(b);
	b->attempt = new_attempt(b->pusher);
	for (size_t i = 0; i < b->list.n; i++) {
		const struct window *x = b->list.v[i].x;

		b->w = b->list.v[i].w;
		put_samples(b, x, window_wall_ns(b->w, x) / second_ns / day_seconds);
		put_threads(b, x);
		put_marks(b, x);
		put_facts(b, x);
		put_commit(b, x);
	}
	for (size_t i = 0; !r && i < ARRAY_LEN(parts); i++)
		r = clickhouse_insert(b->pusher->c, b->pusher->shard, parts[i].table, parts[i].columns, parts[i].rows, err);
	if (r)
		forget_named(b);
	return r;
}

static uint64_t id_of(const struct batch *b, const struct item *i)
{
	return window_id(b->pusher->o.target, window_wall_ns(i->w, i->x), i->x->sequence);
}

/* Takes the windows that are in the store out of the list. */
static int leave_out_committed(struct batch *b, uint64_t *ret_there, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct map found = { 0 };
	struct answer a;
	size_t kept = 0;
	int r;

	*ret_there = 0;
	buf_puts(&sql, "SELECT window_id, min(digest), max(digest) FROM windows WHERE target = ");
	sql_literal(&sql, b->pusher->o.target);
	buf_puts(&sql, " AND window_id IN (");
	for (size_t i = 0; i < b->list.n; i++)
		buf_printf(&sql, "%s%llu", i ? ", " : "", (unsigned long long)id_of(b, &b->list.v[i]));
	buf_puts(&sql, ") GROUP BY window_id");
	r = clickhouse_select(b->pusher->c, b->pusher->shard, sql.data, &a, err);
	for (size_t i = 0; !r && i < a.rows; i++)
		map_put(&found, answer_u64(&a, i, 0), answer_u64(&a, i, 1) == answer_u64(&a, i, 2) ? answer_u64(&a, i, 1) : 0);
	for (size_t i = 0; !r && i < b->list.n; i++) {
		const struct window *x = b->list.v[i].x;
		const uint64_t *digest = map_get(&found, id_of(b, &b->list.v[i]));

		if (digest && *digest != x->digest)
			r = err_set(err, EEXIST, "window %llu of this recording is in the store with other sums: the recording went on after "
				    "it was pushed, or another one has its target and time; push it with another --target",
				    (unsigned long long)x->sequence);
		else if (!digest)
			b->list.v[kept++] = b->list.v[i];
	}
	if (!r) {
		*ret_there = b->list.n - kept;
		b->list.n = kept;
	}
	map_done(&found);
	answer_done(&a);
	return r;
}

/* --- tries --- */

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* Doubled each time, and of a fleet whose store was away not all at once. */
static void pause_before(const struct pusher *p, unsigned tries)
{
	unsigned ms = MIN((unsigned)FIRST_PAUSE_MS << MIN(tries, 10u), (unsigned)LONGEST_PAUSE_MS);

	ms = ms / 2 + map_hash(clock_mono_ns() ^ (uint64_t)getpid()) % (ms / 2 + 1);
	(p->o.pause ? p->o.pause : sleep_ms)(ms);
}

static bool may_pass(int r)
{
	return r == -EIO || r == -ETIMEDOUT || r == -EAGAIN;
}

static int deliver(struct batch *b, struct push_result *ret, struct err *err)
{
	struct pusher *p = b->pusher;
	uint64_t there;
	int r;

	for (unsigned tries = 0;; tries++) {
		r = leave_out_committed(b, &there, err);
		if (!r) {
			/* What is found after a try of ours is of that try, whose answer was lost. */
			*(tries ? &ret->windows : &ret->there) += there;
			if (!b->list.n)
				return 0;
			r = send_batch(b, err);
		}
		if (!r) {
			ret->windows += b->list.n;
			ret->rows += b->rows;
			return 0;
		}
		if (!may_pass(r) || tries + 1 >= (p->o.tries ? p->o.tries : PUSH_TRIES))
			return r;
		pause_before(p, tries);
	}
}

struct pusher *pusher_new(struct clickhouse *c, const struct push_options *o)
{
	struct pusher *p = mem_alloc(sizeof(*p));

	p->c = c;
	p->o = *o;
	p->shard = storeurl_shard_of(o->target, clickhouse_shards(c));
	return p;
}

void pusher_free(struct pusher *p)
{
	if (!p)
		return;
	map_done(&p->sent);
	free(p);
}

static bool has_item(const struct batch *b, const struct item *item)
{
	uint64_t id = id_of(b, item);

	for (size_t i = 0; i < b->list.n; i++)
		if (id_of(b, &b->list.v[i]) == id)
			return true;
	return false;
}

int pusher_send_many(struct pusher *p, const struct windows *const *captures, size_t n, struct push_result *ret, struct err *err)
{
	struct batch b = { .pusher = p };
	uint64_t before = clickhouse_sent_bytes(p->c);
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		for (size_t k = 0; !r && k < captures[i]->list.n; k++) {
			struct item item = { captures[i], &captures[i]->list.v[k] };

			/* A window that is in the list twice would be committed twice by one attempt: the store has the first one by then. */
			if (b.list.n == PUSH_BATCH || has_item(&b, &item)) {
				r = deliver(&b, ret, err);
				vec_clear(&b.list);
			}
			vec_push(&b.list, item);
		}
	if (!r && b.list.n)
		r = deliver(&b, ret, err);
	ret->bytes += clickhouse_sent_bytes(p->c) - before;
	batch_done(&b);
	return r;
}

int pusher_send(struct pusher *p, const struct windows *w, struct push_result *ret, struct err *err)
{
	return pusher_send_many(p, &w, 1, ret, err);
}
