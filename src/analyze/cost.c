#include "analyze/cost.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "profile/thinning.h"

static int compare_rows(const void *a, const void *b)
{
	const struct cost_row *x = a, *y = b;
	int own = !strcmp(x->name, "own") - !strcmp(y->name, "own");

	return own ? own : x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->name, y->name);
}

static void add_rows(struct cost *c, const struct profile *p)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		char *name = key_which(KEY_OVERHEAD_NS_OF, profile_str(p, p->counters.v[i].name));
		uint64_t ns = p->counters.v[i].value, others, own;
		double percent;

		if (!name || !ns) {
			free(name);
			continue;
		}
		others = c->machine_ns ? MIN(ns, profile_counter_of(p, KEY_OVERHEAD_OTHERS_NS_OF, name)) : 0;
		own = c->machine_ns ? MIN(ns - others, profile_counter_of(p, KEY_OVERHEAD_OWN_NS_OF, name)) : ns;
		percent = str_percent(own, c->base_ns) + str_percent(ns - others - own, c->threads_ns);
		c->percent += percent;
		c->others_percent += str_percent(others, c->machine_ns);
		vec_push(&c->rows, (struct cost_row){
			.name = name, .ns = ns, .others_ns = others, .percent = percent,
			.others_percent = str_percent(others, c->machine_ns),
			.bpf_ns = profile_counter_of(p, KEY_OVERHEAD_BPF_NS_OF, name),
			.events = profile_counter_of(p, KEY_OVERHEAD_EVENTS_OF, name),
			.recorded = profile_counter_of(p, KEY_OVERHEAD_RECORDED_OF, name),
			.sampled = profile_counter_of(p, KEY_THINNED_SAMPLED_OF, name),
			.least_ns = profile_counter_of(p, KEY_THINNED_LEAST_NS_OF, name) });
	}
	vec_sort(&c->rows, compare_rows);
}

static void add_ways(struct cost *c, const struct profile *p, const char *family, bool assumed)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		char *name = key_which(family, profile_str(p, p->counters.v[i].name));

		if (name)
			vec_push(&c->ways, (struct cost_way){ .name = name, .ns = p->counters.v[i].value, .assumed = assumed });
	}
}

/* The base of each second is the larger of the target's CPU time and a tenth of a CPU. */
static void find_base(struct cost *c, const struct profile *p)
{
	uint64_t target_ns = profile_counter(p, KEY_OVERHEAD_TARGET_NS);

	c->cpus = c->machine_ns && p->duration_ns ? (double)target_ns / p->duration_ns : -1;
	if (c->cpus < 0 || target_ns * 1.02 >= c->threads_ns)
		c->base = COST_OF_TARGET;
	else if (c->threads_ns <= p->duration_ns / 10 * 1.02)
		c->base = COST_OF_CPU;
	else
		c->base = COST_OF_EITHER;
}

/* A series has a point wherever the number changed. */
static void add_spans(struct cost *c, const struct profile *p, uint32_t series, const char *collector)
{
	struct cost_span span = { .one_in = 1 };

	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];

		if (point->series != series)
			continue;
		if (span.one_in > 1) {
			span.to_ns = point->time_ns;
			span.collector = mem_strdup(collector);
			vec_push(&c->spans, span);
		}
		span = (struct cost_span){ .one_in = point->value > 0 ? point->value : 1,
					   .from_ns = point->time_ns };
	}
	if (span.one_in > 1) {
		span.to_ns = MAX(p->duration_ns, span.from_ns);
		span.collector = mem_strdup(collector);
		vec_push(&c->spans, span);
	}
}

void cost_build(struct cost *c, const struct profile *p)
{
	*c = (struct cost){ .base_ns = profile_counter(p, KEY_OVERHEAD_BASE_NS),
			    .threads_ns = profile_counter(p, KEY_OVERHEAD_THREADS_NS),
			    .machine_ns = profile_counter(p, KEY_OVERHEAD_MACHINE_NS),
			    .start_ns = profile_counter(p, KEY_OVERHEAD_START_NS),
			    .limit = profile_counter(p, KEY_OVERHEAD_LIMIT) / 1e4,
			    .floor = profile_counter(p, KEY_OVERHEAD_FLOOR) / 1e4,
			    .estimated = profile_counter(p, KEY_OVERHEAD_ESTIMATED) };
	if (!c->base_ns)
		return;
	find_base(c, p);
	add_rows(c, p);
	add_ways(c, p, KEY_OVERHEAD_RUN_NS_OF, false);
	add_ways(c, p, KEY_OVERHEAD_RUN_ASSUMED_NS_OF, true);
	for (uint32_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name), *thin = key_rest(KEY_THIN_OF, name);

		if (thin)
			add_spans(c, p, i, thin);
	}
}

void cost_done(struct cost *c)
{
	vec_done_each(&c->rows, row, free(row->name));
	vec_done_each(&c->ways, way, free(way->name));
	vec_done_each(&c->spans, span, free(span->collector));
}

double cost_error_points(const struct cost_row *row)
{
	return thinning_error_points(row->sampled);
}
