#include "analyze/task/taskhealth.h"

#include <string.h>

#include "analyze/io.h"
#include "analyze/select.h"
#include "base/mem.h"
#include "profile/keys.h"
#include "profile/profile.h"

static uint32_t find_series(const struct profile *p, const char *key)
{
	for (uint32_t i = 0; i < p->series.n; i++)
		if (!strcmp(profile_str(p, p->series.v[i].name), key))
			return i;
	return PROFILE_NONE;
}

/* A point is what was since the one before: in a unit of `scale` ns it is so many at a time. */
static struct taskhealth_figure rate_of(const struct profile *p, const struct select_options *o, const char *key, double scale)
{
	uint32_t series = find_series(p, key);
	struct taskhealth_figure f = { 0 };
	uint64_t before = 0, ns = 0;
	double sum = 0;

	for (size_t i = 0; i < p->points.n && series != PROFILE_NONE; i++) {
		const struct profile_point *x = &p->points.v[i];
		uint64_t since = before;

		if (x->series != series)
			continue;
		before = x->time_ns;
		/* Points of merged recordings begin anew. */
		if (since >= x->time_ns || since < o->from_ns || (o->to_ns && x->time_ns > o->to_ns))
			continue;
		f.points++;
		ns += x->time_ns - since;
		sum += x->value;
		if (x->value * scale / (x->time_ns - since) > f.most) {
			f.most = x->value * scale / (x->time_ns - since);
			f.most_at_ns = since;
		}
	}
	f.mean = ns ? sum * scale / ns : 0;
	return f;
}

/* The largest value of a series. */
static int64_t largest_of(const struct profile *p, const struct select_options *o, const char *key, uint64_t *ret_at_ns)
{
	uint32_t series = find_series(p, key);
	int64_t most = 0;

	*ret_at_ns = 0;
	for (size_t i = 0; i < p->points.n && series != PROFILE_NONE; i++) {
		const struct profile_point *x = &p->points.v[i];

		if (x->series != series || x->value <= most || x->time_ns < o->from_ns || (o->to_ns && x->time_ns > o->to_ns))
			continue;
		most = x->value;
		*ret_at_ns = x->time_ns;
	}
	return most;
}

static struct taskhealth_latency latency_of(const struct profile *p, const char *key)
{
	struct taskhealth_latency l = { 0 };

	for (size_t i = 0; i < p->histograms.n; i++) {
		const uint64_t *counts = p->histograms.v[i].counts;

		if (strcmp(profile_str(p, p->histograms.v[i].name), key))
			continue;
		for (int k = 0; k < 64; k++) {
			l.count += counts[k];
			if (counts[k])
				l.max_ns = k == 63 ? UINT64_MAX : 2ULL << k;
		}
		l.p50_ns = io_percentile(counts, 0.5);
		l.p99_ns = io_percentile(counts, 0.99);
	}
	return l;
}

bool taskhealth_make(struct taskhealth *h, const struct profile *p, const struct select_options *o)
{
	*h = (struct taskhealth){ .queue = rate_of(p, o, KEY_TASK_QUEUE, 1), .polls = rate_of(p, o, KEY_TASK_POLLS, 1e9),
				  .busy = rate_of(p, o, KEY_TASK_BUSY, 1), .poll = latency_of(p, KEY_TASK_POLL_LATENCY),
				  .queued = latency_of(p, KEY_TASK_QUEUE_LATENCY), .await = latency_of(p, KEY_TASK_AWAIT_LATENCY) };
	h->longest_poll_ns = largest_of(p, o, KEY_TASK_LONGEST_POLL, &h->longest_poll_at_ns);
	return h->queue.points || h->polls.points || h->busy.points || h->poll.count;
}
