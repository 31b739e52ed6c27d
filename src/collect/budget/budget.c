#include "collect/budget/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/bpfengine.h"
#include "collect/budget/control.h"
#include "collect/budget/surcharge.h"
#include "collect/collector.h"
#include "collect/perf/fallback.h"
#include "collect/process/processes.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "profile/thinning.h"

enum {
	OWN = COLLECTOR_COUNT, /* what is no collector's */
	PARTS,
	RECORD_NS = 2000,      /* that we spend on a record at most: the ring, the profile, the capture */
	UNWIND_NS = 1000000,   /* the same where we also unwind the stack, without BPF */
	GUESSED_NS = 5000,     /* that a program spends for each record, where the kernel has no statistics */
	CPU_FLOOR_HZ = 49,     /* of the clock, until all others are thinned */
	CPU_LEAST_HZ = 12,
};
#define SECOND_NS 1000000000ULL

/* What a part has cost: at a moment, in a second, in all. */
struct cost {
	double ns;     /* with the surcharge, and our own time */
	double bpf_ns;
	double events; /* runs of the program that runs most */
	double runs;
	double records;
	double looked_at; /* its stacks that were walked */
};

struct part {
	struct cost at;  /* the kernel's totals, at the last look */
	struct cost sum; /* in all */
	double sampled;  /* events that were looked at while it was thinned */
	unsigned one_in; /* in force; 1: all */
	double least_ns; /* of an event, where it was thinned */
};

struct budget {
	struct session *session;
	struct control control;
	struct surcharge surcharge;
	unsigned knob_of[COLLECTOR_COUNT];
	struct part parts[PARTS];
	uint64_t begun_ns, looked_ns, own_ns, target_ns, start_ns;
	double base_ns, over_ns, bpf_ns, runs;
	double floor; /* percent: mean over the seconds that were too dear and could not be made cheaper */
	unsigned floors;
	bool estimated, said_floor;
	unsigned looks;
};

struct budget *budget_new(struct session *s)
{
	struct budget *b = mem_alloc(sizeof(*b));

	b->session = s;
	return b;
}

void budget_free(struct budget *b)
{
	free(b);
}

/* --- the knobs --- */

/* A clock: each step halves its rate. Beyond 1 kHz it tells little more; below 49 Hz only when all others are thin. */
static void add_clock_steps(struct budget *b, unsigned knob)
{
	for (uint64_t hz = b->session->options->hz / 2; hz >= CPU_LEAST_HZ; hz /= 2)
		control_add_step(&b->control, knob, hz >= 900 ? 0 : hz >= 190 ? 2 : hz >= CPU_FLOOR_HZ ? 3 : 5, 0.5, 1);
}

/* Stacks: the first three steps cost little precision where events are many. */
static void add_thin_steps(struct budget *b, unsigned knob, const struct collector *c)
{
	for (unsigned i = 1; i <= c->thin_steps; i++)
		control_add_step(&b->control, knob, i <= 3 ? 1 : 2, 1, 0.5);
}

static bool is_active(const struct budget *b, size_t i)
{
	const struct session *s = b->session;

	return s->running[i] || (s->fallback && s->chosen[i] && collector_table[i]->flags & COLLECTOR_CLOCK);
}

static void make_knobs(struct budget *b)
{
	control_init(&b->control, b->session->options->max_overhead);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		const struct collector *c = collector_table[i];

		b->parts[i].one_in = 1;
		b->knob_of[i] = control_add(&b->control);
		if (c->set_hz)
			add_clock_steps(b, b->knob_of[i]);
		else if (c->thin)
			add_thin_steps(b, b->knob_of[i], c);
	}
}

_Static_assert((int)COLLECTOR_COUNT <= (int)CONTROL_KNOBS, "a knob for each collector");

/* --- measuring --- */

/* Is it one that costs anything? The collector of marks, say, waits for a program that may never say any. */
static bool costs_something(const struct budget *b, size_t i)
{
	return is_active(b, i) && b->parts[i].sum.ns > 0;
}

struct reading {
	const struct budget *b;
	struct cost parts[PARTS];
};

static size_t owner_of(const struct session *s, const char *program)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		const char *const *name = collector_table[i]->programs;

		for (; s->chosen[i] && name && *name; name++)
			if (!strcmp(*name, program))
				return i;
	}
	return OWN;
}

static void read_program(void *context, const struct bpfengine_program *p)
{
	struct reading *r = context;
	struct cost *c = &r->parts[owner_of(r->b->session, p->name)];

	c->bpf_ns += p->ns;
	c->ns += p->ns + p->runs * r->b->surcharge.ns[surcharge_way_of(p->section, p->name)];
	c->runs += p->runs;
	c->events = MAX(c->events, p->runs);
}

/* Without BPF there are the samples of the clock. */
static void read_fallback(const struct session *s, struct cost *c)
{
	for (int i = 0; i < REASON_COUNT; i++)
		c->records += s->reasons[i];
	c->events = c->looked_at = c->records;
}

/* Totals of the programs and records so far. */
static void read_costs(struct budget *b, struct reading *r)
{
	*r = (struct reading){ .b = b };
	if (!b->session->engine) {
		read_fallback(b->session, &r->parts[COLLECTOR_cpu]);
		return;
	}
	b->estimated = !bpfengine_programs(b->session->engine, read_program, r);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		r->parts[i].records = bpfengine_records(b->session->engine, i);
		/* Each record of a clock is a stack. */
		r->parts[i].looked_at = b->session->running[i] && collector_table[i]->looked_at ?
						collector_table[i]->looked_at(b->session) : r->parts[i].records;
		if (b->estimated) {
			r->parts[i].ns = r->parts[i].records * GUESSED_NS;
			r->parts[i].events = r->parts[i].records;
		}
	}
}

static struct cost less(const struct cost *a, const struct cost *before)
{
	return (struct cost){ .ns = a->ns - before->ns, .bpf_ns = a->bpf_ns - before->bpf_ns,
			      .events = MAX(0, a->events - before->events), .runs = a->runs - before->runs,
			      .records = a->records - before->records,
			      .looked_at = a->looked_at - before->looked_at };
}

static void add(struct cost *sum, const struct cost *c)
{
	sum->ns += c->ns;
	sum->bpf_ns += c->bpf_ns;
	sum->events += c->events;
	sum->runs += c->runs;
	sum->records += c->records;
}

/* Our own CPU time goes to the collectors by their records; the rest is nobody's. */
static void share_own(struct cost *parts, double own_ns, double most_each)
{
	double records = 0, each;

	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		records += parts[i].records;
	each = records ? MIN(most_each, own_ns / records) : 0;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		parts[i].ns += each * parts[i].records;
	parts[OWN].ns += own_ns - each * records;
}

/* What was spent since the last look, by part; the base that it is a part of. */
static double measure(struct budget *b, uint64_t now, struct cost *parts)
{
	uint64_t own = clock_process_cpu_ns(), target = processes_cpu_ns(b->session->processes);
	double base = MAX((double)now - b->looked_ns, target > b->target_ns ? (double)target - b->target_ns : 0);
	struct reading r;

	read_costs(b, &r);
	for (size_t i = 0; i < PARTS; i++) {
		parts[i] = less(&r.parts[i], &b->parts[i].at);
		b->parts[i].at = r.parts[i];
		b->bpf_ns += parts[i].bpf_ns;
		b->runs += parts[i].runs;
	}
	/* In the first second we still read files and make tables. */
	if (b->looks)
		share_own(parts, own - b->own_ns, b->session->engine ? RECORD_NS : UNWIND_NS);
	else
		b->start_ns += own - b->own_ns;
	for (size_t i = 0; i < PARTS; i++)
		add(&b->parts[i].sum, &parts[i]);
	b->own_ns = own;
	b->target_ns = target;
	b->looked_ns = now;
	b->base_ns += base;
	return base;
}

/* --- acting --- */

static void add_point(struct budget *b, const char *family, const char *which, uint64_t now, int64_t value)
{
	struct profile *p = b->session->profile;
	_cleanup_free_ char *key = key_of(family, which);

	profile_add_point(p, profile_series(p, key), collector_time_ns(b->session, now), value);
}

/* Sets a clock, whoever has it. */
static void set_hz(struct budget *b, size_t i, uint64_t hz)
{
	struct session *s = b->session;

	if (collector_table[i]->flags & COLLECTOR_CLOCK) {
		s->hz = hz;
		if (s->fallback)
			fallback_set_hz(s->fallback, hz);
	}
	if (s->running[i])
		collector_table[i]->set_hz(s, hz);
}

/* Brings a collector to the step of its knob, and notes what changed. */
static void apply(struct budget *b, size_t i, bool over, uint64_t now, struct buf *words)
{
	const struct collector *c = collector_table[i];
	const struct control_knob *k = &b->control.knob[b->knob_of[i]];
	struct part *part = &b->parts[i];
	bool less = part->one_in > 1u << k->step;

	if (part->one_in == 1u << k->step)
		return;
	if (part->one_in == 1)
		add_point(b, KEY_THIN_OF, c->name, b->begun_ns, 1);
	part->one_in = 1u << k->step;
	add_point(b, KEY_THIN_OF, c->name, now, part->one_in);
	if (c->set_hz)
		set_hz(b, i, MAX(1, b->session->options->hz >> k->step));
	else
		c->thin(b->session, k->step);
	buf_printf(words, "%s%s: ", words->n ? ", " : "", c->name);
	thinning_words(words, c->name, part->one_in);
	if (over && less)
		buf_puts(words, ", as leaving it out saved nothing");
}

/* What a second told of a collector that is thinned. */
static void note_thinned(struct budget *b, size_t i, const struct cost *cost)
{
	struct part *part = &b->parts[i];
	const struct control_knob *k = &b->control.knob[b->knob_of[i]];
	double each;

	if (part->one_in == 1)
		return;
	part->sampled += cost->looked_at;
	if (collector_table[i]->set_hz || cost->events < 1)
		return;
	each = cost->ns / cost->events;
	part->least_ns = each * k->least / (k->least + k->work * k->thin[k->step]);
}

static void say_floor(struct budget *b, double total, const double *percent)
{
	size_t most = 0;

	for (size_t i = 1; i < COLLECTOR_COUNT; i++)
		if (percent[i] > percent[most])
			most = i;
	if (b->said_floor)
		return;
	b->said_floor = true;
	if (percent[most] > 0 && b->parts[most].least_ns > 0)
		log_warn("recording costs %.2f %%, and not less than %.2f %% is possible at this rate: an event of -e %s costs "
			 "%.2f us at least; record without it, or allow more (--max-overhead)",
			 total, b->floor, collector_table[most]->name, b->parts[most].least_ns / 1000);
	else
		log_warn("recording costs %.2f %%, and not less than %.2f %% is possible: allow more (--max-overhead)", total,
			 b->floor);
}

static void decide(struct budget *b, const struct cost *parts, double base, uint64_t now)
{
	_cleanup_(buf_done) struct buf words = { 0 };
	struct control_cost costs[CONTROL_KNOBS] = { 0 };
	double percent[COLLECTOR_COUNT], total = 0, other;
	bool over;

	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		percent[i] = 100 * parts[i].ns / base;
		costs[b->knob_of[i]] = (struct control_cost){ costs_something(b, i), percent[i], parts[i].events };
		total += percent[i];
		note_thinned(b, i, &parts[i]);
	}
	b->looks++;
	other = 100 * parts[OWN].ns / base;
	total += other;
	over = b->control.limit > 0 && total > b->control.limit;
	if (control_look(&b->control, costs, other)) {
		for (size_t i = 0; i < COLLECTOR_COUNT; i++)
			apply(b, i, over, now, &words);
		if (over)
			log_warn("recording costs %.2f %% of the target's CPU time, more than the %.2f %% allowed: %s", total,
				 b->control.limit, words.data);
		else
			log_info("Recording costs %.2f %%, there is room: %s", total, words.data);
	} else if (over && b->control.over >= 2) {
		b->floor += (control_floor(&b->control, costs, other) - b->floor) / ++b->floors;
		say_floor(b, total, percent);
	}
	if (over)
		b->over_ns += base;
}

/* --- what the session calls --- */

void budget_start(struct budget *b)
{
	struct reading r;

	make_knobs(b);
	b->begun_ns = b->session->start_mono_ns;
	b->start_ns = clock_process_cpu_ns();
	if (b->session->engine)
		surcharge_measure(&b->surcharge);
	read_costs(b, &r);
	for (size_t i = 0; i < PARTS; i++)
		b->parts[i].at = r.parts[i];
	b->own_ns = clock_process_cpu_ns();
	b->target_ns = processes_cpu_ns(b->session->processes);
	b->looked_ns = clock_mono_ns();
}

static void add_points(struct budget *b, const struct cost *parts, double base, uint64_t now)
{
	double total = 0;

	for (size_t i = 0; i < PARTS; i++) {
		total += parts[i].ns;
		if (i == OWN || costs_something(b, i))
			add_point(b, KEY_COST_OF, i == OWN ? "own" : collector_table[i]->name, now, 1e6 * parts[i].ns / base);
	}
	add_point(b, KEY_COST_OF, "total", now, 1e6 * total / base);
}

void budget_look(struct budget *b, uint64_t now)
{
	struct cost parts[PARTS];
	double base;

	if (now < b->looked_ns + SECOND_NS * 9 / 10)
		return;
	base = measure(b, now, parts);
	add_points(b, parts, base, now);
	if (!b->session->paused)
		decide(b, parts, base, now);
}

static void count_part(struct budget *b, size_t i)
{
	const char *name = i == OWN ? "own" : collector_table[i]->name;
	struct profile *p = b->session->profile;
	const struct part *part = &b->parts[i];

	profile_count_set_of(p, KEY_OVERHEAD_NS_OF, name, part->sum.ns);
	profile_count_set_of(p, KEY_OVERHEAD_BPF_NS_OF, name, part->sum.bpf_ns);
	if (i == OWN)
		return;
	profile_count_set_of(p, KEY_OVERHEAD_EVENTS_OF, name, part->sum.events);
	if (part->sampled > 0)
		profile_count_set_of(p, KEY_THINNED_SAMPLED_OF, name, part->sampled);
	if (part->least_ns > 0)
		profile_count_set_of(p, KEY_THINNED_LEAST_NS_OF, name, part->least_ns);
}

void budget_finish(struct budget *b, uint64_t now)
{
	struct profile *p = b->session->profile;
	struct cost parts[PARTS];
	double base;

	if (!b->looked_ns)
		return; /* it never started */
	base = measure(b, now, parts);
	if (now >= b->looked_ns + SECOND_NS / 4)
		add_points(b, parts, base, now);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (costs_something(b, i)) {
			note_thinned(b, i, &parts[i]);
			count_part(b, i);
		}
	count_part(b, OWN);
	if (!b->estimated && b->session->engine) {
		profile_count_set(p, KEY_BPF_RUN_NS, b->bpf_ns);
		profile_count_set(p, KEY_BPF_RUN_COUNT, b->runs);
	}
	profile_count_set(p, KEY_OVERHEAD_LIMIT, 1e4 * b->control.limit);
	profile_count_set(p, KEY_OVERHEAD_BASE_NS, b->base_ns);
	profile_count_set(p, KEY_OVERHEAD_START_NS, b->start_ns);
	if (b->over_ns > 0)
		profile_count_set(p, KEY_OVERHEAD_OVER_NS, b->over_ns);
	if (b->floor > 0)
		profile_count_set(p, KEY_OVERHEAD_FLOOR, 1e4 * b->floor);
	if (b->estimated && b->session->engine)
		profile_count_set(p, KEY_OVERHEAD_ESTIMATED, 1);
}
