#include "collect/heap/heappace.h"

#include <stddef.h>

enum {
	LEAST_SAMPLES = 100,  /* between two looks: fewer are no matter */
	MOST_SAMPLES = 5000, /* in a second of the targets' CPU time: 1 % of it */
	LOST_SHARE = 100,     /* of so many one may be lost */
};

static const uint64_t step_ns = 100000000, second_ns = 1000000000;

bool heappace_due(const struct heappace *p, uint64_t now)
{
	return now - p->time_ns >= step_ns;
}

/* Raising it makes no room, it only takes less: once more not before there are twice as many. */
static bool is_crowded(struct heappace *p, const struct heappace_seen *seen, uint64_t samples)
{
	if (seen->no_room - p->last.no_room <= samples / LOST_SHARE || seen->live < 2 * p->live_then)
		return false;
	p->live_then = seen->live;
	return true;
}

const char *heappace_look(struct heappace *p, uint64_t now, const struct heappace_seen *seen)
{
	uint64_t samples = seen->samples - p->last.samples, cpu_ns = seen->cpu_ns - p->last.cpu_ns;
	const char *why = NULL;

	if (!p->time_ns)
		; /* the first look is no rate */
	else if (seen->lost - p->last.lost > samples / LOST_SHARE)
		why = "some were lost on their way";
	else if (is_crowded(p, seen, samples))
		why = "too many are alive at a time";
	else if (!p->steady && samples > LEAST_SAMPLES && samples > MOST_SAMPLES * cpu_ns / second_ns)
		why = "more would cost the target over 1 % of its time";
	p->time_ns = now;
	p->last = *seen;
	return why;
}
