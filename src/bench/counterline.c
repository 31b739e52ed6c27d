#include "bench/counterline.h"

void counterline_add(struct counterline *c, const struct counterline_reading *reading)
{
	if (!c->list.n || reading->time_ns > c->list.v[c->list.n - 1].time_ns)
		vec_push(&c->list, *reading);
}

static uint64_t part(uint64_t before, uint64_t after, double share)
{
	return after > before ? before + (uint64_t)((double)(after - before) * share + 0.5) : before;
}

/* The counters as they were at a moment; before the first reading and after the last as they were then. */
static struct counterline_reading at_time(const struct counterline *c, uint64_t time_ns)
{
	size_t low = vec_search(i, 0, c->list.n, c->list.v[i].time_ns <= time_ns);
	struct counterline_reading r;
	const struct counterline_reading *a, *b;
	double share;

	if (!low)
		return c->list.v[0];
	if (low == c->list.n)
		return c->list.v[low - 1];
	a = &c->list.v[low - 1];
	b = &c->list.v[low];
	share = (double)(time_ns - a->time_ns) / (double)(b->time_ns - a->time_ns);
	r.time_ns = time_ns;
	for (size_t i = 0; i < COUNTERS; i++) {
		r.known[i] = a->known[i] && b->known[i];
		r.raw[i].value = part(a->raw[i].value, b->raw[i].value, share);
		r.raw[i].enabled_ns = part(a->raw[i].enabled_ns, b->raw[i].enabled_ns, share);
		r.raw[i].running_ns = part(a->raw[i].running_ns, b->raw[i].running_ns, share);
	}
	return r;
}

void counterline_between(const struct counterline *c, uint64_t from_ns, uint64_t to_ns,
			 struct counter_value ret[COUNTERS])
{
	struct counterline_reading a, b;

	for (size_t i = 0; i < COUNTERS; i++)
		ret[i] = (struct counter_value){ 0 };
	if (!c->list.n || to_ns < from_ns)
		return;
	a = at_time(c, from_ns);
	b = at_time(c, to_ns);
	for (size_t i = 0; i < COUNTERS; i++) {
		const struct counter_raw raw = { b.raw[i].value - a.raw[i].value,
						 b.raw[i].enabled_ns - a.raw[i].enabled_ns,
						 b.raw[i].running_ns - a.raw[i].running_ns };

		if (a.known[i] && b.known[i])
			ret[i] = counter_decode(&raw);
	}
}

void counterline_done(struct counterline *c)
{
	vec_done(&c->list);
}
