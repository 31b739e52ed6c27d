#include "import/perf/perfdataevents.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/perf/perfdataattr.h"
#include "import/perf/perfdatafacts.h"
#include "profile/schedwaits.h"
#include "profile/keys.h"
#include "profile/profile.h"

void perfdataevents_done(struct perfdataevents *e)
{
	vec_done(&e->totals);
}

static bool is_clock(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool is_dummy(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

/* What the tracepoints of the scheduler, and --off-cpu, are for waits. */
static void find_kind(struct perfdataevents *e, struct perfdataattr *a, const struct perfdatafacts *facts)
{
	const char *name;

	if (a->attr.type == PERF_TYPE_TRACEPOINT && a->attr.sample_type & PERF_SAMPLE_RAW && a->attr.sample_type & PERF_SAMPLE_TID) {
		a->format = perfdatatrace_find(&facts->trace, a->attr.config, &name);
		a->kind = a->format ? schedwaits_kind(name, strlen(name)) : SCHED_NONE;
		/* Of sampled switches nobody knows which ones are missing. */
		if (a->kind == SCHED_SWITCH && (a->attr.freq || a->attr.sample_period > 1)) {
			a->kind = SCHED_NONE;
			profile_count(e->p, KEY_IMPORT_SWITCHES_SAMPLED, 1);
		}
	} else if (a->name && !strcmp(a->name, "offcpu-time")) {
		a->kind = SCHED_OFFCPU;
	}
}

static void describe(const struct perf_event_attr *a, const char *name, char *out, size_t n)
{
	if (a->freq)
		snprintf(out, n, "%s, sampled at %llu Hz", name, (unsigned long long)a->sample_freq);
	else
		snprintf(out, n, "%s, each %lluth", name, (unsigned long long)a->sample_period);
	if (!a->freq && a->sample_period <= 1)
		snprintf(out, n, "%s, each", name);
}

static void add_event(struct perfdataevents *e, struct perfdataattr *a)
{
	_cleanup_free_ char *name = perfdataattr_shown(a);
	const char *unit = is_clock(&a->attr) ? "ns" : "count", *as = name;
	uint64_t period = a->attr.freq ? 0 : a->attr.sample_period;
	char words[256];

	if (is_clock(&a->attr)) {
		if (profile_find_event(e->p, "cpu", "ns") == PROFILE_NONE)
			as = "cpu";
		if (a->attr.freq && a->attr.sample_freq)
			period = 1000000000 / a->attr.sample_freq;
	}
	describe(&a->attr, name, words, sizeof(words));
	a->event = profile_find_event(e->p, as, unit);
	if (a->event == PROFILE_NONE)
		a->event = profile_add_event(e->p, as, unit, words, period);
}

void perfdataevents_prepare(struct perfdataevents *e, struct perfdatafacts *facts, struct schedwaits *waits)
{
	size_t n = facts->attrs.list.n;

	if (e->known == n)
		return;
	/* CPU time is what people look for first, then waits. */
	for (size_t i = e->known; i < n; i++) {
		facts->attrs.list.v[i].event = PROFILE_NONE;
		find_kind(e, &facts->attrs.list.v[i], facts);
		if (is_clock(&facts->attrs.list.v[i].attr))
			add_event(e, &facts->attrs.list.v[i]);
	}
	for (size_t i = e->known; i < n; i++)
		if (facts->attrs.list.v[i].kind == SCHED_SWITCH || facts->attrs.list.v[i].kind == SCHED_OFFCPU)
			schedwaits_add_events(waits, facts->attrs.list.v[i].kind);
	for (size_t i = e->known; i < n; i++) {
		struct perfdataattr *a = &facts->attrs.list.v[i];

		if (!is_clock(&a->attr) && !is_dummy(&a->attr) && a->kind != SCHED_OFFCPU)
			add_event(e, a);
	}
	e->known = n;
}

bool perfdataevents_add(struct perfdataevents *e, const struct profile_sample *s)
{
	while (e->totals.n <= s->event)
		vec_push(&e->totals, 0);
	if (__builtin_add_overflow(e->totals.v[s->event], s->value, &e->totals.v[s->event]))
		return false;
	profile_add_sample(e->p, s);
	return true;
}
