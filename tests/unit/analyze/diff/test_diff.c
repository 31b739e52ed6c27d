/*
 * test_diff.c - comparisons whose answer is known: made-up runs of one program under an uneven load, of
 * which many pairs show how often chance is taken for a change, and changes for chance.
 */
#include "test.h"

#include <errno.h>

#include "analyze/diff/diff.h"
#include "analyze/tree/top.h"
#include "base/sanitized.h"
#include "base/err.h"
#include "export/diff/difftext.h"
#include "export/report/cleantext.h"
#include "exporting.h"
#include "golden.h"
#include "random.h"

enum { FUNCTIONS = 30, STEP_NS = 1000000, GROUPS = 5 };

/* --- runs of a program --- */

struct run {
	struct profile *p;
	struct selection s;
};

struct load {
	double seconds;
	double noise, memory; /* of each function: how much, and how long, in steps of 10 ms */
	double phases;        /* how much more a function takes in the phase that is its own */
	double phase_steps;   /* how long a phase is, on average */
	double busy;          /* share of the time that it gets a CPU; differs between runs by a third */
	double slower;        /* function 0 takes so much more */
	int missing;          /* this function is not there; 0 = all are */
};

static const char *function_name(int i)
{
	static char name[32];

	snprintf(name, sizeof(name), i ? "work_%02d" : "target", i);
	return name;
}

/* What a function takes when nothing is going on: the first a quarter, the others less and less. */
static double base_weight(int i)
{
	return i ? 0.75 * (FUNCTIONS - i) / (FUNCTIONS * (FUNCTIONS - 1) / 2.0) : 0.25;
}

static struct run finish_run(struct sample *s)
{
	struct run r = { .p = s->p };

	assert_int_equal(selection_make(s->p, &(struct select_options){ .moments = true }, &r.s, NULL), 0);
	return r;
}

static void run_done(struct run *r)
{
	selection_done(&r->s);
	profile_free(r->p);
}

/* One sample each ms while it has a CPU. Odd functions are called by even ones. */
static struct run make_run(const struct load *l, uint64_t seed)
{
	struct random r = { seed * 1000003 };
	struct sample s = sample_empty();
	double noise[FUNCTIONS], weight[FUNCTIONS], busy = l->busy * (0.67 + 0.33 * random_unit(&r));
	uint32_t stacks[FUNCTIONS];
	int phase = 0;

	s.p->duration_ns = (uint64_t)(l->seconds * 1e9);
	for (int i = 0; i < FUNCTIONS; i++) {
		char caller[32];

		snprintf(caller, sizeof(caller), "%s", function_name(i - i % 2));
		stacks[i] = i % 2 ? sample_stack(&s, "main;%s;%s", caller, function_name(i)) :
				    sample_stack(&s, "main;%s", function_name(i));
		noise[i] = l->noise * random_normal(&r);
	}
	for (uint64_t now = 0; now < s.p->duration_ns; now += STEP_NS) {
		double sum = 0, at;
		int chosen = 0;

		if (now % (10 * STEP_NS) == 0 && random_unit(&r) < 1 / fmax(1, l->phase_steps))
			phase = random_next(&r) % GROUPS;
		for (int i = 0; i < FUNCTIONS; i++) {
			if (now % (10 * STEP_NS) == 0)
				noise[i] = l->memory * noise[i] + sqrt(1 - l->memory * l->memory) * l->noise *
									  random_normal(&r);
			weight[i] = base_weight(i) * exp(noise[i]);
			if (i && i % GROUPS == phase)
				weight[i] *= 1 + l->phases;
			if (!i)
				weight[i] *= 1 + l->slower;
			if (i && i == l->missing)
				weight[i] = 0;
			sum += weight[i];
		}
		if (random_unit(&r) > busy)
			continue;
		at = random_unit(&r) * sum;
		while (chosen < FUNCTIONS - 1 && (at -= weight[chosen]) > 0)
			chosen++;
		profile_add_sample(s.p, &(struct profile_sample){ .time_ns = now, .value = SAMPLE_PERIOD_NS,
								  .thread = s.main, .stack = stacks[chosen],
								  .event = s.cpu });
	}
	return finish_run(&s);
}

static struct diff compare_runs(const struct run *a, const struct run *b, struct diff_options o)
{
	struct err err = { 0 };
	struct diff d;

	assert_int_equal(diff_make(&d, &(struct diff_side){ a->p, &a->s }, &(struct diff_side){ b->p, &b->s },
				   &o, &err), 0);
	return d;
}

static struct diff compare_loads(const struct load *a, const struct load *b, uint64_t seed)
{
	struct run x = make_run(a, seed), y = make_run(b, seed + 500000);
	struct diff d = compare_runs(&x, &y, (struct diff_options){ 0 });

	run_done(&x);
	run_done(&y);
	return d;
}

static const struct diff_row *row_of(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->rows.n; i++)
		if (!strcmp(d->rows.v[i].name, name))
			return &d->rows.v[i];
	fail_msg("no row %s", name);
	return NULL;
}

/* --- chance --- */

static const struct load quiet = { .seconds = 5, .busy = 1 };
static const struct load noisy = { .seconds = 5, .noise = 0.5, .memory = 0.7, .busy = 1 };
static const struct load phased = { .seconds = 5, .noise = 0.3, .memory = 0.5, .phases = 4,
				    .phase_steps = 15, .busy = 0.8 };
static const struct load sparse = { .seconds = 4, .noise = 0.5, .memory = 0.8, .phases = 2,
				    .phase_steps = 20, .busy = 0.1 };

/* How many of 60 pairs of the same program have anything marked. One in a hundred is what was promised; 4 of
 * 60 would come by chance once in 400 times if it were kept. */
static void chance_is_not_marked(void **state)
{
	static const struct load *const loads[] = { &quiet, &noisy, &phased, &sparse };
	const int pairs = SANITIZED ? 5 : 60; /* The statistics are proven without sanitizers. */

	for (size_t k = 0; k < ARRAY_LEN(loads); k++) {
		int marked = 0;

		for (int i = 0; i < pairs; i++) {
			struct diff d = compare_loads(loads[k], loads[k], 1000 * k + i);

			marked += d.significant > 0;
			assert_true(d.scale > 0.8 && d.scale < 1.25);
			diff_done(&d);
		}
		if (marked * 20 > pairs)
			fail_msg("load %zu: %d of %d pairs were marked", k, marked, pairs);
	}
}

/* Intervals hold what they promise: 95 % of them have 0 in them where nothing changed. */
static void intervals_cover(void **state)
{
	const int pairs = SANITIZED ? 5 : 60;
	size_t n = 0, outside = 0;

	for (int i = 0; i < pairs; i++) {
		struct diff d = compare_loads(&phased, &phased, 9000 + i);

		for (size_t k = 0; k < d.rows.n; k++)
			if (d.rows.v[k].self.tested) {
				n++;
				outside += d.rows.v[k].self.low > 0 || d.rows.v[k].self.high < 0;
			}
		diff_done(&d);
	}
	assert_true(n > 16u * pairs);
	assert_true(outside < 0.065 * n);
}

/* --- change --- */

static void a_fifth_more_is_found(void **state)
{
	struct load before = { .seconds = 20, .noise = 0.2, .memory = 0.5, .phases = 1, .phase_steps = 15,
			       .busy = 0.8 }, after = before;
	int first = 0, found = 0, others = 0, pairs = SANITIZED ? 5 : 30;
	double change = 0;

	after.slower = 0.2;
	for (int i = 0; i < pairs; i++) {
		struct diff d = compare_loads(&before, &after, 20000 + i);
		const struct diff_row *r = row_of(&d, "target");

		first += !strcmp(d.rows.v[0].name, "target");
		found += r->self.significant;
		others += d.significant_self - r->self.significant;
		change += diff_percent(&r->self, r->self.delta) / pairs;
		diff_done(&d);
	}
	if (first < pairs - 1 || found < pairs * 8 / 10 || others > 1 || fabs(change - 20) > 3)
		fail_msg("of %d first %d, found %d, others %d, change %.1f %%", pairs, first, found, others,
			 change);
}

/* What takes three times as long pushes all others aside, and they have not changed for that. */
static void one_that_pushes_all_others(void **state)
{
	struct load after = phased;
	double change = 0;
	int others = 0;

	after.slower = 2;
	for (int i = 0; i < 10; i++) {
		struct diff d = compare_loads(&phased, &after, 30000 + i);
		const struct diff_row *r = row_of(&d, "target");

		assert_true(r->self.significant && r->self.delta > 0);
		assert_string_equal(d.rows.v[0].name, "target");
		assert_true(d.scaled);
		assert_true(d.scale > 1.2 && d.scale < 1.42); /* it took 15.6 %, and takes thrice that */
		change += diff_percent(&r->self, r->self.delta) / 10;
		others += d.significant_self - 1;
		/* A delta is what it says. */
		assert_true(fabs(r->self.b * d.scale - r->self.a - r->self.delta) < 1e-9);
		assert_true(r->self.low < r->self.delta && r->self.delta < r->self.high);
		diff_done(&d);
	}
	assert_true(others <= 1);
	assert_true(fabs(change - 200) < 30);
}

static void gone_and_new(void **state)
{
	struct load without = quiet;
	struct diff d;
	const struct diff_row *r;

	without.missing = 3;
	d = compare_loads(&quiet, &without, 1);
	r = row_of(&d, "work_03");
	assert_true(r->only_a && !r->only_b && r->self.significant && r->self.b == 0);
	assert_true(r->self.delta < 0 && r->samples_b == 0);
	diff_done(&d);
	d = compare_loads(&without, &quiet, 1);
	r = row_of(&d, "work_03");
	assert_true(r->only_b && !r->only_a && r->self.significant);
	assert_true(isinf(diff_percent(&r->self, r->self.delta)));
	diff_done(&d);
}

/* Half the CPU is no change of any share, but half the value each second. */
static void absolute_and_normalized(void **state)
{
	struct load half = quiet;
	struct run a = make_run(&quiet, 77), b;
	struct diff d;

	half.busy = 0.4;
	b = make_run(&half, 78);
	d = compare_runs(&a, &b, (struct diff_options){ 0 });
	assert_true(d.normalized);
	assert_string_equal(d.unit, "%");
	assert_int_equal(d.significant, 0);
	assert_true(d.all.significant && d.all.delta < 0);
	diff_done(&d);
	d = compare_runs(&a, &b, (struct diff_options){ .absolute = true });
	assert_string_equal(d.unit, "ns/s");
	assert_true(row_of(&d, "target")->self.significant);
	assert_true(row_of(&d, "main")->total.significant);
	assert_true(d.scale == 1 && !d.scaled);
	assert_true(fabs(row_of(&d, "main")->total.a - a.s.all.value / 5.0) < 1);
	diff_done(&d);
	run_done(&a);
	run_done(&b);
}

/* --- the figures themselves --- */

/* Self and total are those of the tables, recursion, inlined calls and all. */
static void same_figures_as_top(void **state)
{
	struct sample s = sample_make();
	struct run r = finish_run(&s);
	struct diff d = compare_runs(&r, &r, (struct diff_options){ 0 });
	double percent = 100.0 / r.s.all.value;
	struct top top;

	top_build(&top, r.p, &r.s, false, TOP_BY_SELF);
	assert_int_equal(top.functions.n, d.rows.n);
	for (size_t i = 0; i < top.functions.n; i++) {
		const struct diff_row *row = row_of(&d, top.functions.v[i].name);

		assert_true(fabs(row->self.a - top.functions.v[i].self.value * percent) < 1e-9);
		assert_true(fabs(row->total.b - top.functions.v[i].total.value * percent) < 1e-9);
		assert_int_equal(row->samples_a, top.functions.v[i].total.samples);
		assert_true(fabs(row->self.delta) < 1e-9);
		assert_true(!row->self.significant && !row->total.significant);
	}
	top_done(&top);
	diff_done(&d);
	d = compare_runs(&r, &r, (struct diff_options){ .no_inline = true, .by_total = true });
	assert_string_equal(d.rows.v[0].name, "_start"); /* no change: the largest first */
	diff_done(&d);
	run_done(&r);
}

/* Interrupts are the machine's: one row, never marked, and not in the totals of what they interrupt. */
static void interrupts_are_apart(void **state)
{
	struct run sides[2];
	struct diff d;
	const struct diff_row *r;

	for (int i = 0; i < 2; i++) {
		struct sample s = sample_empty();
		uint32_t work = sample_stack(&s, "main;work"),
			 irq = sample_stack(&s, "main;work;k:asm_sysvec_apic_timer_interrupt;"
						"k:sysvec_apic_timer_interrupt;k:__irq_exit_rcu;k:softly"),
			 call = sample_stack(&s, "main;k:entry_SYSCALL_64;k:softly");

		for (int k = 0; k < 100; k++) {
			sample_add(&s, s.main, work, 16);
			sample_add(&s, s.main, call, 2);
			sample_add(&s, s.main, irq, i ? 5 : 0);
		}
		s.p->duration_ns = s.now_ns;
		sides[i] = finish_run(&s);
	}
	d = compare_runs(&sides[0], &sides[1], (struct diff_options){ 0 });
	assert_int_equal(d.significant, 0);
	r = row_of(&d, SLICES_INTERRUPTS);
	assert_true(r->outside && !r->self.tested && r->only_b);
	assert_int_equal(r->samples_b, 500);
	r = row_of(&d, "main");
	assert_int_equal(r->samples_b, 1800);
	assert_true(fabs(r->total.delta) < 1e-9);
	assert_int_equal(row_of(&d, "softly")->samples_b, 200);
	assert_true(fabs(d.scale - 2300.0 / 1800) < 1e-9);
	diff_done(&d);
	run_done(&sides[0]);
	run_done(&sides[1]);
}

/* Samples that come as regularly as a clock look as if they had no noise; they are samples all the same. */
static void never_less_noise_than_sampling(void **state)
{
	struct run sides[2];
	struct diff d;

	for (int i = 0; i < 2; i++) {
		struct sample s = sample_empty();
		uint32_t stacks[] = { sample_stack(&s, "main;odd"), sample_stack(&s, "main;even") };

		for (int k = 0; k < 400; k++) {
			sample_add(&s, s.main, stacks[0], 1);
			sample_add(&s, s.main, stacks[1], k % 5 || !i ? 1 : 2);
		}
		s.p->duration_ns = s.now_ns;
		sides[i] = finish_run(&s);
	}
	d = compare_runs(&sides[0], &sides[1], (struct diff_options){ 0 });
	assert_int_equal(row_of(&d, "even")->samples_b, 480);
	assert_true(row_of(&d, "even")->self.tested);
	assert_true(row_of(&d, "even")->self.p > 0.01);
	diff_done(&d);
	run_done(&sides[0]);
	run_done(&sides[1]);
}

/* A long wait lies in all slices that it lasts through: one of 4 s in 5 s is no burst. */
static void waits_are_spread(void **state)
{
	struct run sides[2];
	struct slices sl;
	struct slices_table t;
	uint32_t pick[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	double sum = 0;

	for (int i = 0; i < 2; i++) {
		struct sample s = sample_empty();
		uint32_t wait = profile_add_event(s.p, "wait", "ns", "", 0),
			 stack = sample_stack(&s, "main;read");

		s.p->duration_ns = 5000000000;
		profile_add_sample(s.p, &(struct profile_sample){ .time_ns = 500000000, .value = 4000000000,
								  .thread = s.main, .event = wait,
								  .stack = stack });
		sides[i].p = s.p;
		assert_int_equal(selection_make(s.p, &(struct select_options){ .event = wait, .moments = true,
									      .from_ns = 1000000000 },
						&sides[i].s, NULL), 0);
	}
	slices_table_init(&t);
	slices_init(&sl, &t, sides[0].p, &sides[0].s, 0);
	slices_sum(&sl, t.rows.n);
	slices_series(&sl, pick, t.rows.n);
	assert_int_equal(sl.n, 64);
	assert_true(fabs(sl.duration_ns - 4e9) < 1);
	for (size_t k = 0; k < sl.n; k++) {
		double here = slices_of(&sl, 0, true)[k], wanted = k < 56 ? 4e9 / 64 : 0;

		assert_true(fabs(here - wanted) < 1);
		assert_true(fabs(sl.all[k] - wanted) < 1);
		sum += here;
	}
	assert_true(fabs(sum - 3.5e9) < 1);
	assert_true(fabs(sl.total[0].value - 3.5e9) < 1);
	slices_done(&sl);
	slices_table_done(&t);
	run_done(&sides[0]);
	run_done(&sides[1]);
}

/* Stacks that were counted elsewhere have no times: their counts are all that tells noise. */
static void counts_without_times(void **state)
{
	struct run sides[2];
	struct err err = { 0 };
	struct diff d;

	for (int i = 0; i < 2; i++) {
		struct profile *p = profile_new();
		uint32_t event = profile_add_event(p, "samples", "count", "", 0);
		struct sample s = { .p = p };
		uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = 1 });

		s.node = builder_module(p, "node", MODULE_FILE);
		s.main = builder_thread(p, process, 1, "main");
		for (int k = 0; k < 10; k++) {
			uint64_t count = 1000 + (k == 3 && i ? 400 : k == 4 && i ? 40 : 0);
			uint32_t stack = sample_stack(&s, "main;%s", function_name(k + 1));

			profile_add_sample(p, &(struct profile_sample){ .value = count, .thread = s.main,
									.event = event, .stack = stack });
		}
		sides[i] = finish_run(&s);
	}
	d = compare_runs(&sides[0], &sides[1], (struct diff_options){ 0 });
	assert_true(d.timeless);
	assert_string_equal(d.rows.v[0].name, "work_04");
	assert_true(d.rows.v[0].self.significant);
	assert_true(fabs(diff_percent(&d.rows.v[0].self, d.rows.v[0].self.delta) - 40) < 1);
	assert_int_equal(d.significant_self, 1);
	diff_done(&d);
	assert_int_equal(diff_make(&d, &(struct diff_side){ sides[0].p, &sides[0].s },
				   &(struct diff_side){ sides[1].p, &sides[1].s },
				   &(struct diff_options){ .absolute = true }, &err), -EINVAL);
	diff_done(&d);
	run_done(&sides[0]);
	run_done(&sides[1]);
}

/* A heap: 200 sampled objects, each of which stands for 100 of 5 KB; twice as many of function 0 after. */
static struct run heap_run(uint64_t seconds, int more)
{
	struct profile *p = profile_new();
	uint32_t event = profile_add_event(p, "heap", "bytes", "", 0);
	uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = 1 });
	struct sample s = { .p = p };

	s.node = builder_module(p, "node", MODULE_FILE);
	s.main = builder_thread(p, process, 1, "main");
	p->duration_ns = seconds * 1000000000;
	profile_count_set(p, "heap.interval bytes", 512 << 10);
	for (int k = 0; k < 200 + more; k++) {
		uint32_t stack = sample_stack(&s, "main;%s", function_name(k < 200 ? k % 4 : 0));

		profile_add_sample(p, &(struct profile_sample){ .value = 512 << 10, .count = 100, .thread = s.main, .event = event,
								.time_ns = p->duration_ns / 400 * k, .stack = stack });
	}
	return finish_run(&s);
}

/* What is alive is no rate: it does not depend on how long it was recorded. And few samples that stand for many objects are
 * few samples. */
static void memory_that_is_held(void **state)
{
	struct run one = heap_run(10, 0), longer = heap_run(30, 0), few = heap_run(30, 12), many = heap_run(10, 100);
	struct diff d = compare_runs(&one, &longer, (struct diff_options){ .absolute = true });

	assert_true(d.timeless);
	assert_true(fabs(d.all.a - 200 * (512 << 10)) < 1);
	assert_true(fabs(d.all.delta) < 1);
	assert_int_equal(d.significant_self, 0);
	diff_done(&d);
	/* A quarter more of 50 samples is chance, in objects it would be none. */
	d = compare_runs(&one, &few, (struct diff_options){ .absolute = true });
	assert_int_equal(d.significant_self, 0);
	diff_done(&d);
	d = compare_runs(&one, &many, (struct diff_options){ .absolute = true });
	assert_int_equal(d.significant_self, 1);
	assert_string_equal(d.rows.v[0].name, "target");
	diff_done(&d);
	run_done(&one);
	run_done(&longer);
	run_done(&few);
	run_done(&many);
}

/* --- bad input --- */

static struct buf text_of(const struct run *a, const struct run *b, const struct diff *d,
			  struct export_options o, int format)
{
	struct quality q = { 0 };
	struct export_job before = { a->p, &a->s, &q, o }, after = { b->p, &b->s, &q, o };
	struct diff_job job = { &before, &after, "a.gasflame", "b.gasflame", d, o };
	struct buf out = { 0 };

	(format == 'j' ? diffjson_write : format == 'f' ? difffolded_write : difftext_write)(&job, &out, NULL);
	buf_add(&out, "", 0);
	return out;
}

static void check_poor(const struct run *a, const struct run *b, bool absolute, const char *verdict)
{
	struct diff d = compare_runs(a, b, (struct diff_options){ .absolute = absolute });

	assert_int_equal(d.significant, 0);
	for (int i = 0; i < 2; i++) {
		struct buf out = text_of(a, b, &d, (struct export_options){ 0 }, "tj"[i]);

		assert_null(strstr(out.data, "nan"));
		assert_null(strstr(out.data, "inf"));
		assert_non_null(strstr(out.data, verdict));
		buf_done(&out);
	}
	diff_done(&d);
}

static void empty_and_single(void **state)
{
	struct sample none = sample_empty(), one = sample_empty(), deep = export_deep(4000);
	struct run runs[3];

	sample_add(&one, one.main, sample_stack(&one, "main"), 1);
	runs[0] = finish_run(&none);
	runs[1] = finish_run(&one);
	runs[2] = finish_run(&deep);
	for (int a = 0; a < 3; a++)
		for (int b = 0; b < 3; b++)
			for (int absolute = 0; absolute < 2; absolute++)
				check_poor(&runs[a], &runs[b], absolute,
					   a && b ? "too few samples" : "nothing to compare");
	for (int i = 0; i < 3; i++)
		run_done(&runs[i]);
}

static void what_cannot_be_compared(void **state)
{
	struct sample ns = sample_make(), bytes = sample_make();
	struct err err = { 0 };
	struct run a, b;
	struct diff d;

	bytes.p->events.v[0].unit = profile_string(bytes.p, "bytes");
	a = finish_run(&ns);
	b = finish_run(&bytes);
	assert_int_equal(diff_make(&d, &(struct diff_side){ a.p, &a.s }, &(struct diff_side){ b.p, &b.s },
				   &(struct diff_options){ 0 }, &err), -EINVAL);
	assert_non_null(strstr(err.text, "in ns before and in bytes after"));
	diff_done(&d);
	run_done(&a);
	run_done(&b);
}

static void hostile_names(void **state)
{
	struct sample s = export_hostile();
	struct run r = finish_run(&s);
	struct diff d = compare_runs(&r, &r, (struct diff_options){ 0 });

	for (int i = 0; i < 3; i++) {
		struct buf out = text_of(&r, &r, &d, (struct export_options){ .columns = 80 }, "tjf"[i]);

		for (const char *c = out.data; *c; c++)
			assert_true((unsigned char)*c >= 0x20 || *c == '\n');
		assert_null(strstr(out.data, "\xff"));
		buf_done(&out);
	}
	diff_done(&d);
	run_done(&r);
}

/* --- how it looks --- */

static void golden(void **state)
{
	struct load before = { .seconds = 10, .busy = 0.3 }, after = before;
	struct run a, b;
	struct diff d;
	struct buf out;

	after.slower = 1;
	after.missing = 2;
	a = make_run(&before, 5);
	b = make_run(&after, 6);
	d = compare_runs(&a, &b, (struct diff_options){ 0 });
	out = text_of(&a, &b, &d, (struct export_options){ .limit = 8 }, 't');
	golden_check("diff.txt", out.data, out.n);
	buf_done(&out);
	out = text_of(&a, &b, &d, (struct export_options){ .limit = 8, .columns = 80, .colour = true }, 't');
	golden_check("diff-terminal.txt", out.data, out.n);
	buf_done(&out);
	out = text_of(&a, &b, &d, (struct export_options){ .limit = 2 }, 'j');
	golden_check("diff.json", out.data, out.n);
	buf_done(&out);
	out = text_of(&a, &b, &d, (struct export_options){ .group = CALLTREE_BY_NAME }, 'f');
	golden_check("diff.folded", out.data, out.n);
	buf_done(&out);
	diff_done(&d);
	run_done(&a);
	run_done(&b);
}

static void check_width(const struct run *a, const struct run *b, bool absolute, unsigned columns)
{
	struct diff d = compare_runs(a, b, (struct diff_options){ .absolute = absolute });
	struct buf out = text_of(a, b, &d, (struct export_options){ .columns = columns }, 't');
	char *rest = out.data;

	for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_true(cleantext_columns(line) <= (columns ? columns : 110));
	buf_done(&out);
	diff_done(&d);
}

static void lines_fit(void **state)
{
	struct sample s = sample_make();
	struct run r = finish_run(&s), other = make_run(&quiet, 4);

	for (int absolute = 0; absolute < 2; absolute++) {
		check_width(&r, &other, absolute, 0);
		check_width(&r, &other, absolute, 95);
	}
	run_done(&r);
	run_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chance_is_not_marked),
		cmocka_unit_test(intervals_cover),
		cmocka_unit_test(a_fifth_more_is_found),
		cmocka_unit_test(one_that_pushes_all_others),
		cmocka_unit_test(gone_and_new),
		cmocka_unit_test(absolute_and_normalized),
		cmocka_unit_test(same_figures_as_top),
		cmocka_unit_test(interrupts_are_apart),
		cmocka_unit_test(never_less_noise_than_sampling),
		cmocka_unit_test(waits_are_spread),
		cmocka_unit_test(counts_without_times),
		cmocka_unit_test(memory_that_is_held),
		cmocka_unit_test(empty_and_single),
		cmocka_unit_test(what_cannot_be_compared),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(golden),
		cmocka_unit_test(lines_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
