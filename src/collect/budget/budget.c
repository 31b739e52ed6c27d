#include "collect/budget/budget.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	double own_ns;    /* of it: our own time */
	double others_ns; /* of it: for events that were passed over, nearly all in other processes */
	double pass_ns;   /* what its runs would have cost, had all been passed over */
	double bpf_ns;
	double events; /* runs of the program that runs most */
	double recorded; /* of them: not passed over */
	double runs;
	double records;
	double looked_at; /* its stacks that were walked */
	double spent_ns;  /* of own_ns: that it measured itself (collector.spent) */
};

/*
 * What costs are parts of. Threads: the target's CPU time, for what our programs take in its threads; a tenth of a CPU where it uses
 * less, as a target that sleeps has time for that. Recorder: the target's CPU time, or one CPU where it uses less. Machine: all
 * CPUs, for what is taken from others.
 */
struct base {
	double threads_ns, recorder_ns, machine_ns;
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
	struct base base;                       /* of all seconds */
	double used_ns, over_ns, bpf_ns, runs; /* used: by the target, in the same time */
	double floor; /* percent: the mean of the seconds that cost too much and in which no step was left to take */
	unsigned floors;
	bool estimated, said_floor;
	bool others; /* they lose more than the target: their loss is what the limit is held against */
	unsigned looks;
	long cpus;
};

struct budget *budget_new(struct session *s)
{
	struct budget *b = mem_alloc(sizeof(*b));

	b->session = s;
	if (s->engine)
		surcharge_begin(&b->surcharge);
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
	uint64_t runs[SURCHARGE_WAYS];
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
	enum surcharge_way way = surcharge_way_of(p->section, p->name);
	double surcharge = r->b->surcharge.ns[way];

	r->runs[way] += p->runs;
	c->bpf_ns += p->ns;
	c->ns += p->ns + p->runs * surcharge;
	c->pass_ns += p->runs * (surcharge + r->b->surcharge.seen_ns);
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

/* Events that were not passed over. Programs at tracepoints run for the events of all processes, clocks for whoever is on
 * the CPU; the other collectors' only for the target. */
static double recorded_events(const struct session *s, size_t i, const struct cost *c)
{
	const struct collector *collector = collector_table[i];

	if (s->running[i] && collector->recorded)
		return collector->recorded(s);
	return collector->set_hz ? c->records : c->events;
}

/* What neither programs nor records show. */
static void add_spent(const struct session *s, size_t i, struct cost *c)
{
	uint64_t target_ns = 0, own_ns = 0, events = 0;

	if (!s->running[i] || !collector_table[i]->spent)
		return;
	collector_table[i]->spent(s, &target_ns, &own_ns, &events);
	c->events = c->recorded = MAX(c->events, (double)events);
	c->ns += target_ns;
	c->spent_ns = own_ns;
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
		r->parts[i].recorded = recorded_events(b->session, i, &r->parts[i]);
		add_spent(b->session, i, &r->parts[i]);
	}
}

/*
 * The part of a cost that went into events that were passed over. Such an event costs an empty program and its surcharge at least;
 * and half of one that is recorded, or more: 0.55 to 0.75 of it, where this was measured. The rest counts as the target's.
 */
static double passed_over_ns(const struct cost *c)
{
	double share = c->events > 0 ? c->recorded / c->events : 1;

	return share < 1 ? MIN(c->ns, (1 - share) * MAX(c->pass_ns, c->ns / (1 + share))) : 0;
}

static struct cost less(const struct cost *a, const struct cost *before)
{
	struct cost c = { .ns = a->ns - before->ns, .bpf_ns = a->bpf_ns - before->bpf_ns,
			  .pass_ns = a->pass_ns - before->pass_ns, .events = MAX(0, a->events - before->events),
			  .recorded = a->recorded - before->recorded, .runs = a->runs - before->runs,
			  .records = a->records - before->records, .looked_at = a->looked_at - before->looked_at,
			  .spent_ns = MAX(0, a->spent_ns - before->spent_ns) };

	c.others_ns = passed_over_ns(&c);
	return c;
}

/* In percent: what is taken from the target and by the recorder, or what others lose. */
static double percent_of(const struct cost *c, const struct base *base, bool others)
{
	if (others)
		return 100 * c->others_ns / base->machine_ns;
	return 100 * ((c->ns - c->others_ns - c->own_ns) / base->threads_ns + c->own_ns / base->recorder_ns);
}

static double sum_percent(const struct cost *parts, const struct base *base, bool others)
{
	double sum = 0;

	for (size_t i = 0; i < PARTS; i++)
		sum += percent_of(&parts[i], base, others);
	return sum;
}

static void add(struct cost *sum, const struct cost *c)
{
	sum->ns += c->ns;
	sum->own_ns += c->own_ns;
	sum->others_ns += c->others_ns;
	sum->bpf_ns += c->bpf_ns;
	sum->events += c->events;
	sum->recorded += c->recorded;
	sum->runs += c->runs;
	sum->records += c->records;
}

/* Our own CPU time goes to the collectors: what they measured themselves, and by their records; the rest is nobody's. */
static void share_own(struct cost *parts, double own_ns, double most_each)
{
	double records = 0, each;

	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		records += parts[i].records;
		parts[i].spent_ns = MIN(parts[i].spent_ns, own_ns);
		own_ns -= parts[i].spent_ns;
	}
	each = records ? MIN(most_each, own_ns / records) : 0;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		parts[i].own_ns = parts[i].spent_ns + each * parts[i].records;
		parts[i].ns += parts[i].own_ns;
	}
	parts[OWN].own_ns = own_ns - each * records;
	parts[OWN].ns += parts[OWN].own_ns;
}

/* Processes that came and went between two looks are in the samples only. */
static uint64_t target_cpu_ns(const struct budget *b)
{
	return MAX(processes_cpu_ns(b->session->processes), b->session->sampled_ns);
}

/* Ours, but for what we do beside recording. */
static uint64_t own_cpu_ns(const struct budget *b)
{
	const struct session_options *o = b->session->options;
	uint64_t all = clock_process_cpu_ns(), aside = o->aside ? o->aside(o->aside_context) : 0;

	return all - MIN(aside, all);
}

/* What was spent since the last look, by part; the base that it is a part of. */
static struct base measure(struct budget *b, uint64_t now, struct cost *parts)
{
	uint64_t own = own_cpu_ns(b), target = target_cpu_ns(b);
	double used = target > b->target_ns ? (double)target - b->target_ns : 0;
	double passed = (double)now - b->looked_ns;
	struct base base = { MAX(passed / 10, used), MAX(passed, used), MAX(passed * b->cpus, used) };
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
	b->base.threads_ns += base.threads_ns;
	b->base.recorder_ns += base.recorder_ns;
	b->base.machine_ns += base.machine_ns;
	b->used_ns += used;
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

/* The limit cannot be kept: what would keep it? */
static void say_floor(struct budget *b, double total, const double *percent)
{
	_cleanup_(buf_done) struct buf words = { 0 };
	struct thinning_cost costs[COLLECTOR_COUNT];
	size_t most = 0;

	if (b->said_floor)
		return;
	b->said_floor = true;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		costs[i] = (struct thinning_cost){ collector_table[i]->name, percent[i] };
		if (percent[i] > percent[most])
			most = i;
	}
	if (b->parts[most].least_ns > 0)
		buf_printf(&words, ": an event of -e %s costs %.2f µs at least", collector_table[most]->name,
			   b->parts[most].least_ns / 1000);
	buf_puts(&words, ". ");
	thinning_advice(&words, costs, COLLECTOR_COUNT, total, b->control.limit);
	log_warn("recording costs %s%.2f %%, more than the %.2f %% allowed, and there is nothing left to thin%s",
		 b->others ? "other processes " : "", total, b->control.limit, words.data);
}

/* Neither the target nor the others are to lose more than the limit: whose loss is nearer to it? */
static void choose_whose(struct budget *b, const struct cost *parts, const struct base *base)
{
	bool others = sum_percent(parts, base, true) > sum_percent(parts, base, false);

	if (others != b->others)
		control_relearn(&b->control);
	b->others = others;
}

static void decide(struct budget *b, const struct cost *parts, const struct base *base, uint64_t now)
{
	_cleanup_(buf_done) struct buf words = { 0 };
	struct control_cost costs[CONTROL_KNOBS] = { 0 };
	double percent[COLLECTOR_COUNT], other, total;
	bool over;

	choose_whose(b, parts, base);
	total = sum_percent(parts, base, b->others);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		percent[i] = percent_of(&parts[i], base, b->others);
		costs[b->knob_of[i]] = (struct control_cost){ costs_something(b, i), percent[i], parts[i].events };
		note_thinned(b, i, &parts[i]);
	}
	b->looks++;
	other = percent_of(&parts[OWN], base, b->others);
	over = b->control.limit > 0 && total > b->control.limit;
	if (control_look(&b->control, costs, other)) {
		for (size_t i = 0; i < COLLECTOR_COUNT; i++)
			apply(b, i, over, now, &words);
		if (over)
			log_warn("recording costs %s%.2f %%, more than the %.2f %% allowed: %s", b->others ? "other processes " : "",
				 total, b->control.limit, words.data);
		else
			log_info("Recording costs %.2f %%, there is room: %s", total, words.data);
	} else if (over && b->control.over >= 2) {
		b->floor += (total - b->floor) / ++b->floors;
		say_floor(b, total, percent);
	}
	if (over)
		b->over_ns += base->machine_ns / b->cpus;
}

/* --- what the session calls --- */

static void want_way(void *context, const struct bpfengine_program *p)
{
	bool *wanted = context;

	wanted[surcharge_way_of(p->section, p->name)] = true;
}

static void measure_surcharge(struct budget *b)
{
	bool wanted[SURCHARGE_WAYS] = { 0 };

	bpfengine_programs(b->session->engine, want_way, wanted);
	surcharge_measure(&b->surcharge, wanted);
}

void budget_start(struct budget *b)
{
	struct reading r;

	make_knobs(b);
	b->cpus = MAX(1, sysconf(_SC_NPROCESSORS_ONLN));
	b->begun_ns = b->session->start_mono_ns;
	b->start_ns = own_cpu_ns(b);
	if (b->session->engine)
		measure_surcharge(b);
	read_costs(b, &r);
	for (size_t i = 0; i < PARTS; i++)
		b->parts[i].at = r.parts[i];
	b->own_ns = own_cpu_ns(b);
	b->target_ns = target_cpu_ns(b);
	b->looked_ns = clock_mono_ns();
}

static void add_points(struct budget *b, const struct cost *parts, const struct base *base, uint64_t now)
{
	for (size_t i = 0; i < PARTS; i++)
		if (i == OWN || costs_something(b, i))
			add_point(b, KEY_COST_OF, i == OWN ? "own" : collector_table[i]->name, now,
				  1e4 * percent_of(&parts[i], base, false));
	add_point(b, KEY_COST_OF, "total", now, 1e4 * sum_percent(parts, base, false));
	add_point(b, KEY_COST_OF, "others", now, 1e4 * sum_percent(parts, base, true));
}

void budget_look(struct budget *b, uint64_t now)
{
	struct cost parts[PARTS];
	struct base base;

	if (now < b->looked_ns + SECOND_NS * 9 / 10)
		return;
	base = measure(b, now, parts);
	add_points(b, parts, &base, now);
	if (!b->session->paused)
		decide(b, parts, &base, now);
}

static void count_part(struct budget *b, size_t i, struct profile *p)
{
	const char *name = i == OWN ? "own" : collector_table[i]->name;
	const struct part *part = &b->parts[i];

	profile_count_set_of(p, KEY_OVERHEAD_NS_OF, name, part->sum.ns);
	profile_count_set_of(p, KEY_OVERHEAD_OWN_NS_OF, name, part->sum.own_ns);
	profile_count_set_of(p, KEY_OVERHEAD_BPF_NS_OF, name, part->sum.bpf_ns);
	if (i == OWN)
		return;
	profile_count_set_of(p, KEY_OVERHEAD_EVENTS_OF, name, part->sum.events);
	profile_count_set_of(p, KEY_OVERHEAD_RECORDED_OF, name, MIN(part->sum.recorded, part->sum.events));
	profile_count_set_of(p, KEY_OVERHEAD_OTHERS_NS_OF, name, part->sum.others_ns);
	if (part->sampled > 0)
		profile_count_set_of(p, KEY_THINNED_SAMPLED_OF, name, part->sampled);
	if (part->least_ns > 0)
		profile_count_set_of(p, KEY_THINNED_LEAST_NS_OF, name, part->least_ns);
}

static void count_surcharges(struct budget *b, struct profile *p)
{
	struct reading r;

	read_costs(b, &r);
	for (int i = SURCHARGE_NONE + 1; i < SURCHARGE_WAYS; i++)
		if (r.runs[i])
			profile_count_set_of(p, b->surcharge.measured[i] ? KEY_OVERHEAD_RUN_NS_OF :
					     KEY_OVERHEAD_RUN_ASSUMED_NS_OF, surcharge_names[i], b->surcharge.ns[i]);
}

void budget_tally(struct budget *b, struct profile *p)
{
	if (!b->looked_ns)
		return; /* it never started */
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (costs_something(b, i))
			count_part(b, i, p);
	count_part(b, OWN, p);
	if (!b->estimated && b->session->engine) {
		profile_count_set(p, KEY_BPF_RUN_NS, b->bpf_ns);
		profile_count_set(p, KEY_BPF_RUN_COUNT, b->runs);
		count_surcharges(b, p);
	}
	profile_count_set(p, KEY_OVERHEAD_LIMIT, 1e4 * b->control.limit);
	profile_count_set(p, KEY_OVERHEAD_BASE_NS, b->base.recorder_ns);
	profile_count_set(p, KEY_OVERHEAD_THREADS_NS, b->base.threads_ns);
	profile_count_set(p, KEY_OVERHEAD_MACHINE_NS, b->base.machine_ns);
	profile_count_set(p, KEY_OVERHEAD_TARGET_NS, b->used_ns);
	profile_count_set(p, KEY_OVERHEAD_START_NS, b->start_ns);
	if (b->over_ns > 0)
		profile_count_set(p, KEY_OVERHEAD_OVER_NS, b->over_ns);
	if (b->floor > 0)
		profile_count_set(p, KEY_OVERHEAD_FLOOR, 1e4 * b->floor);
	if (b->estimated && b->session->engine)
		profile_count_set(p, KEY_OVERHEAD_ESTIMATED, 1);
}

void budget_finish(struct budget *b, uint64_t now)
{
	struct cost parts[PARTS];
	uint64_t passed = now - b->looked_ns;
	struct base base;

	if (!b->looked_ns)
		return; /* it never started */
	base = measure(b, now, parts);
	if (passed >= SECOND_NS / 4)
		add_points(b, parts, &base, now);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (costs_something(b, i))
			note_thinned(b, i, &parts[i]);
	budget_tally(b, b->session->profile);
}
