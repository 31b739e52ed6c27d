#include "analyze/wait/account.h"

#include <stdlib.h>

#include "analyze/select.h"
#include "base/map.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { AT_WORK_PERCENT = 1 }; /* of its time on the CPU */

uint64_t account_active_ns(const struct account_row *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		if (i != CAUSE_IDLE && i != CAUSE_UNKNOWN)
			sum += r->ns[i];
	return sum;
}

static bool is_soft(enum cause cause)
{
	return cause == CAUSE_PARK || cause == CAUSE_NETWORK || cause == CAUSE_PIPE;
}

bool account_counts(const struct account_row *r, enum cause cause)
{
	if (is_soft(cause))
		return r->ns[CAUSE_CPU] * 100 >= r->wall_ns * AT_WORK_PERCENT;
	return cause == CAUSE_LOCK || cause == CAUSE_DISK_READ || cause == CAUSE_DISK_WRITE ||
	       cause == CAUSE_FAULT || cause == CAUSE_RECLAIM;
}

uint64_t account_worth_ns(const struct account_row *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		if (account_counts(r, i))
			sum += is_soft(i) ? r->ns[i] / 2 : r->ns[i];
	return sum;
}

static uint64_t counted_ns(const struct account_row *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += r->ns[i];
	return sum;
}

/* The collector's own sums of a thread: all of its time since the recording, or the thread, began. Captures exist in
 * which a thread that came last has one below 0, stored as the largest number there is: nothing is known of it. */
static uint64_t kept_ns(const struct profile_thread *t)
{
	if (MAX(MAX(t->run_ns, t->queue_ns), t->blocked_ns) >= INT64_MAX / 2)
		return 0;
	return t->run_ns + t->queue_ns + t->blocked_ns;
}

/* Returns a thread's time within the range. A thread is first seen at its first switch, but the sums
 * include its time since the recording began: they can reach further back. */
static uint64_t wall_of(const struct profile *p, const struct profile_thread *t,
			const struct select_options *o)
{
	uint64_t end = t->end_ns ? t->end_ns : select_duration_ns(p), start = t->start_ns, kept = kept_ns(t);

	if (kept > end)
		end = kept; /* merged recordings: times overlap, sums add up */
	start = MIN(MIN(start, end), end - kept);
	start = MAX(start, o->from_ns);
	if (o->to_ns)
		end = MIN(end, o->to_ns);
	return end > start ? end - start : 0;
}

static bool any_wait(const struct profile *p, const struct causes *c)
{
	for (size_t i = 0; i < p->events.n; i++)
		if (causes_role(c, i) == ROLE_WAIT)
			return true;
	return false;
}

/* Adds the samples; rows are indexed by thread. */
static void add_samples(struct account_row *rows, const struct profile *p, const struct select_options *o,
			struct causes *c, uint64_t *sampled)
{
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		enum role role = causes_role(c, s->event);
		struct account_row *r = &rows[s->thread];
		uint64_t value;

		if (role == ROLE_OTHER)
			continue;
		value = o->from_ns || o->to_ns ? select_value(p, i, role, o->from_ns, o->to_ns) : s->value;
		if (role == ROLE_CPU) {
			sampled[s->thread] += value;
			continue;
		}
		r->ns[causes_of(c, s)] += value;
		if (role == ROLE_WAIT && value)
			r->waits += s->count ? s->count : 1;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct account_row *x = a, *y = b;
	uint64_t m = account_worth_ns(x) + x->ns[CAUSE_CPU] + x->ns[CAUSE_QUEUE] + x->ns[CAUSE_QUOTA];
	uint64_t n = account_worth_ns(y) + y->ns[CAUSE_CPU] + y->ns[CAUSE_QUEUE] + y->ns[CAUSE_QUOTA];

	return ORDER(n, m) ?: ORDER(y->wall_ns, x->wall_ns) ?: ORDER(x->thread, y->thread);
}

static void add_row(struct account_row *to, const struct account_row *r)
{
	to->threads += r->threads;
	to->wall_ns += r->wall_ns;
	to->waits += r->waits;
	to->missing_ns += r->missing_ns;
	for (int i = 0; i < CAUSE_COUNT; i++)
		to->ns[i] += r->ns[i];
}

/* On the CPU and in the run queue: the collector's sums where they apply to the selection. */
static void settle(struct account *a, struct account_row *r, const struct profile_thread *t, bool whole,
		   bool cpu_recorded, uint64_t sampled)
{
	r->ns[CAUSE_CPU] = sampled;
	if (whole && kept_ns(t)) {
		r->ns[CAUSE_CPU] = t->run_ns;
		/* The collector's sum has both. */
		r->ns[CAUSE_QUOTA] = MIN(r->ns[CAUSE_QUOTA], t->queue_ns);
		r->ns[CAUSE_QUEUE] = t->queue_ns - r->ns[CAUSE_QUOTA];
	} else if (!cpu_recorded) {
		uint64_t others = counted_ns(r);

		r->ns[CAUSE_CPU] = r->wall_ns > others ? r->wall_ns - others : 0;
		a->cpu_is_the_rest = true;
	} else {
		a->sampled_cpu = true;
	}
	r->missing_ns = (int64_t)(r->wall_ns - counted_ns(r));
}

bool account_make(struct account *a, const struct profile *p, const struct select_options *o,
		  struct causes *c)
{
	_cleanup_free_ struct account_row *rows = mem_alloc((p->threads.n + 1) * sizeof(*rows));
	_cleanup_free_ uint64_t *sampled = mem_alloc((p->threads.n + 1) * sizeof(*sampled));
	_cleanup_free_ uint8_t *picked = NULL;
	bool whole = !o->from_ns && !o->to_ns, cpu = false;

	*a = (struct account){ .lost = profile_counter(p, KEY_WAITS_LOST), .total.thread = PROFILE_NONE };
	if (!any_wait(p, c) || select_threads(p, o, &picked, NULL))
		return false;
	for (size_t i = 0; i < p->events.n; i++)
		cpu |= causes_role(c, i) == ROLE_CPU;
	add_samples(rows, p, o, c, sampled);
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		struct account_row *r = &rows[i];

		if (!picked[i])
			continue;
		r->thread = i;
		r->threads = 1;
		r->wall_ns = wall_of(p, t, o);
		if (!r->wall_ns && !counted_ns(r))
			continue;
		/* The thread was never seen: even the remainder is unknown. */
		if (!kept_ns(t) && !counted_ns(r) && !sampled[i]) {
			a->unseen++;
			r->missing_ns = (int64_t)r->wall_ns;
		} else {
			settle(a, r, t, whole, cpu, sampled[i]);
		}
		vec_push(&a->threads, *r);
		add_row(&a->total, r);
	}
	vec_sort(&a->threads, compare_rows);
	return true;
}

void account_join_crowds(const struct account *a, const struct profile *p, struct account_rows *ret)
{
	_cleanup_free_ uint64_t *crowd_of = mem_alloc((a->threads.n + 1) * sizeof(*crowd_of));
	_cleanup_free_ uint32_t *sizes = mem_alloc((a->threads.n + 1) * sizeof(*sizes));
	_cleanup_free_ size_t *row_of = mem_alloc((a->threads.n + 1) * sizeof(*row_of));
	struct map index = { 0 };

	*ret = (struct account_rows){ 0 };
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[a->threads.v[i].thread];

		crowd_of[i] = t->end_ns ? *map_put(&index, map_pair(t->process, t->name), i) : i;
		sizes[crowd_of[i]] += t->end_ns != 0;
	}
	for (size_t i = 0; i < a->threads.n; i++) {
		size_t crowd = crowd_of[i];

		if (sizes[crowd] >= ACCOUNT_CROWD && row_of[crowd]) {
			add_row(&ret->list.v[row_of[crowd] - 1], &a->threads.v[i]);
			continue;
		}
		vec_push(&ret->list, a->threads.v[i]);
		if (p->threads.v[a->threads.v[i].thread].end_ns)
			row_of[crowd] = ret->list.n;
	}
	vec_sort(&ret->list, compare_rows);
	map_done(&index);
}

void account_done(struct account *a)
{
	vec_done(&a->threads);
}
