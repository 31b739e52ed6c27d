/*
 * control.h - decides which collector does less, or more again, from what each of them costs.
 *
 * Pure: costs of the last second in, steps out. A knob stands for a collector. Its step 0 is as designed; each further
 * step multiplies the number of its events (a clock that ticks half as often, a collector that is off for a part of the
 * time) or the work on each of them beyond what every event costs (stacks that are not walked).
 *
 * - Over the limit, steps are taken until the prediction is below it: those of the lowest tier first, within a tier
 *   that of the costliest collector. A collector that costs no more than its share of the limit (an equal part for each
 *   one, and one for the rest) is left alone, so that none is starved for another.
 * - What a step really saved is learnt from the next second. Steps that saved next to nothing are taken back, and tried
 *   again after half a minute: the events may be those of other processes, which cost little more than to be passed over.
 * - Below the limit for some seconds, the last tier is taken back first, one step at a time, where the prediction stays
 *   well below the limit. If that turns out to be too much, the next attempt waits twice as long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_KNOBS = 16, CONTROL_STEPS = 20 };

struct control_knob {
	unsigned steps; /* there are, beyond 0 */
	unsigned step;  /* in force */
	uint8_t tier[CONTROL_STEPS + 1];
	double rate[CONTROL_STEPS + 1]; /* share of the events that are left, at each step */
	double thin[CONTROL_STEPS + 1]; /* and of the work on each beyond the least */
	/* Learnt: the least that an event costs and the work beyond it, as shares of its cost at step 0. */
	double least, work;
	double was_each; /* cost of an event in the second before, and the step that it was at */
	unsigned was_step;
	unsigned useless; /* seconds for which its steps are not tried again, as they saved nothing */
};

struct control {
	double limit; /* percent; 0: none, only watch */
	unsigned knobs;
	struct control_knob knob[CONTROL_KNOBS];
	unsigned over, calm, since_up; /* seconds */
	unsigned patience;             /* calm seconds before a step is taken back */
};

/* A second of a knob. */
struct control_cost {
	bool active;    /* the collector runs */
	double percent;
	double events;
};

void control_init(struct control *c, double limit);
/* Returns the index of a new knob. A knob without steps costs, and cannot be thinned. */
unsigned control_add(struct control *c);
/* Adds a step that multiplies the events, and the work on each, by these. Ignored beyond CONTROL_STEPS. */
void control_add_step(struct control *c, unsigned knob, unsigned tier, double rate, double thin);
/*
 * Looks at the last second: costs of each knob, and percent that no knob stands for. Changes steps; true: at least one.
 */
bool control_look(struct control *c, const struct control_cost *costs, double other);
/* Percents are parts of something else from now on: costs of events cannot be compared with those of the last second. */
void control_relearn(struct control *c);
/* The cost at another step, as far as is known. */
double control_predict(const struct control_knob *k, double percent, unsigned step);
