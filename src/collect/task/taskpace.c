#include "collect/task/taskpace.h"

#include "base/mem.h"

#define FIRST_NS 10000000ULL  /* interval */
#define LOOK_NS  100000000ULL

void taskpace_init(struct taskpace *p)
{
	*p = (struct taskpace){ .interval_ns = FIRST_NS };
}

void taskpace_thin(struct taskpace *p, unsigned step)
{
	p->step = step;
}

bool taskpace_look(struct taskpace *p, uint64_t now_ns, uint64_t stacks)
{
	uint64_t before = p->interval_ns;
	double rate, most = (double)TASKPACE_STACKS / (1u << MIN(p->step, 16u));

	if (!p->time_ns) {
		p->time_ns = now_ns;
		p->stacks = stacks;
		return false;
	}
	if (now_ns < p->time_ns + LOOK_NS)
		return false;
	rate = (stacks - p->stacks) * 1e9 / (now_ns - p->time_ns);
	p->time_ns = now_ns;
	p->stacks = stacks;
	/* A burst is answered at once. */
	while (rate > most && p->interval_ns < TASKPACE_MOST_NS) {
		p->interval_ns *= 2;
		rate /= 2;
	}
	if (rate < most / 3 && p->interval_ns == before)
		p->interval_ns = MAX(p->interval_ns / 2, TASKPACE_LEAST_NS);
	return p->interval_ns != before;
}
