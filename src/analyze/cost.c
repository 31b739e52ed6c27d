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
		uint64_t ns = p->counters.v[i].value;

		if (!name || !ns) {
			free(name);
			continue;
		}
		c->percent += str_percent(ns, c->base_ns);
		vec_push(&c->rows, (struct cost_row){
			.name = name, .ns = ns, .percent = str_percent(ns, c->base_ns),
			.bpf_ns = profile_counter_of(p, KEY_OVERHEAD_BPF_NS_OF, name),
			.events = profile_counter_of(p, KEY_OVERHEAD_EVENTS_OF, name),
			.sampled = profile_counter_of(p, KEY_THINNED_SAMPLED_OF, name),
			.least_ns = profile_counter_of(p, KEY_THINNED_LEAST_NS_OF, name) });
	}
	vec_sort(&c->rows, compare_rows);
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
			    .start_ns = profile_counter(p, KEY_OVERHEAD_START_NS),
			    .limit = profile_counter(p, KEY_OVERHEAD_LIMIT) / 1e4,
			    .floor = profile_counter(p, KEY_OVERHEAD_FLOOR) / 1e4,
			    .estimated = profile_counter(p, KEY_OVERHEAD_ESTIMATED) };
	if (!c->base_ns)
		return;
	add_rows(c, p);
	for (uint32_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name), *thin = key_rest(KEY_THIN_OF, name);

		if (thin)
			add_spans(c, p, i, thin);
	}
}

void cost_done(struct cost *c)
{
	vec_done_each(&c->rows, row, free(row->name));
	vec_done_each(&c->spans, span, free(span->collector));
}

double cost_error_points(const struct cost_row *row)
{
	return thinning_error_points(row->sampled);
}
