#include "test.h"

#include <math.h>
#include <stdio.h>

#include "collect/budget/control.h"

/* A collector as it really is: what its events cost, and how many there are at step 0. */
struct plant {
	double events;      /* a second */
	double least, work; /* percent for a million events */
};

enum { CPU, WAIT, IO, PLANTS };

static double costs_of(const struct control *c, const struct plant *plants, double noise, unsigned second,
		       struct control_cost *costs, double other)
{
	double total = other;

	for (unsigned i = 0; i < c->knobs; i++) {
		const struct control_knob *k = &c->knob[i];
		double events = plants[i].events * k->rate[k->step];
		/* Up and down by the same, in an order that is no alternation. */
		double wobble = 1 + noise * ((second * 7 + i * 3) % 5 - 2.0) / 2;

		costs[i] = (struct control_cost){ .active = plants[i].events > 0, .events = events,
						  .percent = events / 1e6 * (plants[i].least + plants[i].work * k->thin[k->step]) *
							     wobble };
		total += costs[i].percent;
	}
	return total;
}

static void three_knobs(struct control *c, double limit)
{
	unsigned knob;

	control_init(c, limit);
	knob = control_add(c);
	for (int hz = 499; hz >= 12; hz /= 2)
		control_add_step(c, knob, hz >= 190 ? 2 : hz >= 49 ? 3 : 5, 0.5, 1);
	for (int i = 0; i < 2; i++) {
		knob = control_add(c);
		for (int k = 1; k <= 6; k++)
			control_add_step(c, knob, k <= 3 ? 1 : 2, 1, 0.5);
	}
	control_add_step(c, IO, 3, 0.25, 1);
	control_add_step(c, IO, 4, 0.25, 1);
}

/* Runs some seconds; returns the cost of the last, and how often a step changed after the third. */
static double run(struct control *c, const struct plant *plants, double noise, unsigned seconds, unsigned *ret_changes)
{
	struct control_cost costs[CONTROL_KNOBS] = { 0 };
	double total = 0;
	unsigned changes = 0;

	for (unsigned t = 0; t < seconds; t++) {
		total = costs_of(c, plants, noise, t, costs, 0.1);
		if (control_look(c, costs, 0.1) && t >= 4)
			changes++;
	}
	if (ret_changes)
		*ret_changes = changes;
	return total;
}

static void what_is_cheap_is_left_alone(void **state)
{
	const struct plant plants[PLANTS] = { { 2000, 500, 0 }, { 20000, 30, 60 } };
	struct control c;

	three_knobs(&c, 5);
	assert_true(run(&c, plants, 0.3, 60, NULL) < 5);
	for (unsigned i = 0; i < c.knobs; i++)
		assert_int_equal(c.knob[i].step, 0);
}

static void no_limit_changes_nothing(void **state)
{
	const struct plant plants[PLANTS] = { { 2000, 5000, 0 }, { 200000, 30, 60 } };
	struct control c;

	three_knobs(&c, 0);
	assert_true(run(&c, plants, 0, 20, NULL) > 20);
	assert_int_equal(c.knob[CPU].step + c.knob[WAIT].step, 0);
}

/* Stacks of waits are thinned before the clock, and the limit holds after three looks. */
static void thins_stacks_first(void **state)
{
	const struct plant plants[PLANTS] = { { 2000, 500, 0 }, { 100000, 20, 70 } };
	struct control c;
	unsigned changes;

	three_knobs(&c, 5);
	assert_true(run(&c, plants, 0, 4, NULL) <= 5);
	assert_int_equal(c.knob[CPU].step, 0);
	assert_true(c.knob[WAIT].step >= 2);
	three_knobs(&c, 5);
	assert_true(run(&c, plants, 0.1, 120, &changes) <= 5);
	/* No swinging: what was found in the first seconds stays. */
	assert_true(changes <= 2);
}

/* The least that waits cost is above the limit: the clock gives its share, and no more. */
static void none_is_starved(void **state)
{
	const struct plant plants[PLANTS] = { { 2000, 500, 0 }, { 100000, 40, 50 } };
	struct control_cost costs[CONTROL_KNOBS] = { 0 };
	struct control c;

	three_knobs(&c, 1);
	run(&c, plants, 0.05, 30, NULL);
	/* 1 % for three: the clock's share is a third. */
	assert_true(c.knob[CPU].rate[c.knob[CPU].step] * 1.0 > 0.16);
	/* Nothing is left to take: the next second costs as much, and control says so. */
	assert_true(costs_of(&c, plants, 0, 0, costs, 0.1) > 4);
	assert_false(control_look(&c, costs, 0.1));
}

/* Steps that turn out to save nothing are taken back, and tried again only after a while. */
static void useless_steps_are_not_taken(void **state)
{
	const struct plant plants[PLANTS] = { { 0 }, { 100000, 90, 2 } };
	struct control c;

	three_knobs(&c, 2);
	run(&c, plants, 0.02, 1, NULL);
	assert_int_equal(c.knob[WAIT].step, 3);
	run(&c, plants, 0.02, 20, NULL);
	assert_int_equal(c.knob[WAIT].step, 0);
}

static void events_are_left_out_last(void **state)
{
	const struct plant plants[PLANTS] = { { 0 }, { 0 }, { 400000, 30, 60 } };
	struct control c;

	three_knobs(&c, 1);
	assert_true(run(&c, plants, 0.05, 12, NULL) <= 1.05);
	assert_true(c.knob[IO].step > 6);
}

static void rates_rise_again(void **state)
{
	struct plant plants[PLANTS] = { { 2000, 500, 0 }, { 200000, 20, 70 } };
	struct control c;
	unsigned after;

	three_knobs(&c, 3);
	run(&c, plants, 0.05, 10, NULL);
	assert_true(c.knob[WAIT].step >= 3);
	plants[WAIT].events = 2000;
	run(&c, plants, 0.05, 60, NULL);
	assert_int_equal(c.knob[WAIT].step, 0);
	assert_int_equal(c.knob[CPU].step, 0);
	plants[WAIT].events = 200000;
	run(&c, plants, 0.05, 5, &after);
	assert_true(c.knob[WAIT].step >= 3);
}

/* A limit between two steps: raised, regretted, and tried ever less often. */
static void regret_makes_patient(void **state)
{
	const struct plant plants[PLANTS] = { { 0 }, { 100000, 1, 0.1 }, { 0 } };
	struct control_cost costs[CONTROL_KNOBS] = { 0 };
	struct control c;
	unsigned ups = 0;

	three_knobs(&c, 1);
	c.knob[WAIT].step = 2;
	for (unsigned t = 0; t < 300; t++) {
		unsigned before = c.knob[WAIT].step;

		/* The prediction is always wrong: with fewer steps it costs far more. */
		costs_of(&c, plants, 0, t, costs, 0);
		costs[WAIT].percent = before < 2 ? 1.5 : 0.5;
		control_look(&c, costs, 0);
		ups += c.knob[WAIT].step < before;
	}
	assert_in_range(ups, 1, 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_cheap_is_left_alone),
		cmocka_unit_test(no_limit_changes_nothing),
		cmocka_unit_test(thins_stacks_first),
		cmocka_unit_test(none_is_starved),
		cmocka_unit_test(useless_steps_are_not_taken),
		cmocka_unit_test(events_are_left_out_last),
		cmocka_unit_test(rates_rise_again),
		cmocka_unit_test(regret_makes_patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
