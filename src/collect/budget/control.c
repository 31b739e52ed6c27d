#include "collect/budget/control.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

/* How far below the limit a prediction is to be: steps are taken down to the first, and back up to the second. */
#define AIM 0.9
#define ROOM 0.75

enum {
	PATIENCE = 3,       /* calm seconds before a step is taken back */
	PATIENCE_MOST = 60,
	REGRET = 5,         /* seconds within which an excess is blamed on the step that was taken back */
	STEPS_AT_ONCE = 3,  /* of one knob whose savings are not known yet */
	EVENTS_TO_LEARN = 500,
	USELESS = 30,       /* seconds until steps that saved nothing are tried again */
};

void control_init(struct control *c, double limit)
{
	*c = (struct control){ .limit = limit, .patience = PATIENCE, .since_up = REGRET + 1 };
}

/* What a step saves is not known. */
static void forget(struct control_knob *k)
{
	k->least = 0.4;
	k->work = 0.6;
	k->was_each = 0;
}

unsigned control_add(struct control *c)
{
	struct control_knob *k;

	if (c->knobs == CONTROL_KNOBS)
		return CONTROL_KNOBS - 1;
	k = &c->knob[c->knobs];
	*k = (struct control_knob){ 0 };
	forget(k);
	k->rate[0] = k->thin[0] = 1;
	return c->knobs++;
}

void control_add_step(struct control *c, unsigned knob, unsigned tier, double rate, double thin)
{
	struct control_knob *k = &c->knob[knob];

	if (k->steps == CONTROL_STEPS)
		return;
	k->steps++;
	k->tier[k->steps] = tier;
	k->rate[k->steps] = k->rate[k->steps - 1] * rate;
	k->thin[k->steps] = k->thin[k->steps - 1] * thin;
}

static double cost_of_event(const struct control_knob *k, unsigned step)
{
	return k->least + k->work * k->thin[step];
}

double control_predict(const struct control_knob *k, double percent, unsigned step)
{
	return percent * k->rate[step] / k->rate[k->step] * cost_of_event(k, step) / cost_of_event(k, k->step);
}

/* Learns from two steps how much of an event's cost a step saves. True: nothing, and the step was taken back. */
static bool learn(struct control_knob *k, const struct control_cost *cost)
{
	double each, work, least;
	bool useless = false;

	if (k->useless && !--k->useless)
		forget(k);
	if (cost->events < EVENTS_TO_LEARN || cost->percent <= 0)
		return false;
	each = cost->percent / cost->events;
	if (k->was_each > 0 && k->thin[k->was_step] != k->thin[k->step]) {
		work = (k->was_each - each) / (k->thin[k->was_step] - k->thin[k->step]);
		least = each - work * k->thin[k->step];
		/* Noise can say that it saved nothing, or more than there was. */
		work = MAX(work, 0.02 * each);
		least = MAX(least, 0.02 * each);
		k->work = work / (work + least);
		k->least = least / (work + least);
		useless = k->step > k->was_step && each > 0.97 * k->was_each;
	}
	if (useless) {
		k->step = k->was_step;
		k->useless = USELESS;
		return true;
	}
	k->was_each = each;
	k->was_step = k->step;
	return false;
}

void control_relearn(struct control *c)
{
	for (unsigned i = 0; i < c->knobs; i++)
		c->knob[i].was_each = 0;
}

static double sum(const struct control *c, const double *percent, double other)
{
	for (unsigned i = 0; i < c->knobs; i++)
		other += percent[i];
	return other;
}

/* An equal part of the limit for each collector that runs, and one for what is no collector's. */
static double share_of(const struct control *c, const struct control_cost *costs)
{
	unsigned n = 1;

	for (unsigned i = 0; i < c->knobs; i++)
		n += costs[i].active;
	return c->limit / n;
}

/* The knob whose next step is to be taken, or CONTROL_KNOBS. */
static unsigned next_down(const struct control *c, const unsigned *step, const unsigned *before,
			  const double *percent, double share)
{
	unsigned best = CONTROL_KNOBS;

	for (unsigned i = 0; i < c->knobs; i++) {
		const struct control_knob *k = &c->knob[i];
		bool thins = step[i] < k->steps && k->rate[step[i] + 1] == k->rate[step[i]];
		double after;

		if (step[i] == k->steps || percent[i] <= share || (thins && (k->useless || step[i] - before[i] == STEPS_AT_ONCE)))
			continue;
		after = percent[i] * k->rate[step[i] + 1] / k->rate[step[i]] * cost_of_event(k, step[i] + 1) /
			cost_of_event(k, step[i]);
		if (after > 0.97 * percent[i] && k->rate[k->steps] == k->rate[step[i]])
			continue; /* it would save nothing, nor would any step after it */
		if (best == CONTROL_KNOBS || k->tier[step[i] + 1] < c->knob[best].tier[step[best] + 1] ||
		    (k->tier[step[i] + 1] == c->knob[best].tier[step[best] + 1] && percent[i] > percent[best]))
			best = i;
	}
	return best;
}

static bool go_down(struct control *c, const struct control_cost *costs, double other)
{
	double percent[CONTROL_KNOBS], share = share_of(c, costs);
	unsigned step[CONTROL_KNOBS], before[CONTROL_KNOBS], i;
	bool changed = false;

	for (i = 0; i < c->knobs; i++) {
		percent[i] = costs[i].percent;
		before[i] = step[i] = c->knob[i].step;
	}
	while (sum(c, percent, other) > AIM * c->limit && (i = next_down(c, step, before, percent, share)) != CONTROL_KNOBS) {
		step[i]++;
		percent[i] = control_predict(&c->knob[i], costs[i].percent, step[i]);
		changed = true;
	}
	for (i = 0; i < c->knobs; i++)
		c->knob[i].step = step[i];
	return changed;
}

static bool go_up(struct control *c, const struct control_cost *costs, double total)
{
	unsigned best = CONTROL_KNOBS;
	double gain = 0;

	for (unsigned i = 0; i < c->knobs; i++) {
		const struct control_knob *k = &c->knob[i];
		double more;

		if (!k->step || !costs[i].active)
			continue;
		more = control_predict(k, costs[i].percent, k->step - 1) - costs[i].percent;
		if (total + more > ROOM * c->limit)
			continue;
		if (best == CONTROL_KNOBS || k->tier[k->step] > c->knob[best].tier[c->knob[best].step] ||
		    (k->tier[k->step] == c->knob[best].tier[c->knob[best].step] && more < gain)) {
			best = i;
			gain = more;
		}
	}
	if (best == CONTROL_KNOBS)
		return false;
	c->knob[best].step--;
	return true;
}

bool control_look(struct control *c, const struct control_cost *costs, double other)
{
	double total = other;
	bool changed = false;

	for (unsigned i = 0; i < c->knobs; i++) {
		changed |= learn(&c->knob[i], &costs[i]);
		total += costs[i].percent;
	}
	if (c->limit <= 0)
		return false;
	c->since_up = MIN(c->since_up + 1, PATIENCE_MOST);
	if (total > c->limit) {
		c->calm = 0;
		/* A single second that is a little too dear may be chance. */
		if (++c->over < 2 && total < 1.3 * c->limit)
			return changed;
		if (c->since_up <= REGRET)
			c->patience = MIN(2 * c->patience, PATIENCE_MOST);
		return go_down(c, costs, other) || changed;
	}
	c->over = 0;
	/* What was taken back was no mistake. */
	if (c->since_up == REGRET + 1)
		c->patience = MAX(c->patience / 2, PATIENCE);
	if (++c->calm < c->patience || !go_up(c, costs, total))
		return changed;
	c->calm = 0;
	c->since_up = 0;
	return true;
}
