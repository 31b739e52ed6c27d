#include "import/perf/perfdatasched.h"

#include "import/perf/perfdataattr.h"
#include "import/perf/perfdatasample.h"
#include "import/perf/perfdataspace.h"
#include "import/perf/perfdatatrace.h"
#include "profile/schedwaits.h"
#include "profile/profile.h"

enum {
	STATE_BITS = 0xff, /* of prev_state; above it says that the thread was preempted */
	STATE_DEAD = 0x30, /* EXIT_DEAD, EXIT_ZOMBIE */
};

static enum schedwaits_state state_of(uint64_t prev_state)
{
	if (prev_state & STATE_DEAD)
		return SCHEDWAITS_ENDED;
	return prev_state & STATE_BITS ? SCHEDWAITS_BLOCKED : SCHEDWAITS_READY;
}

static uint64_t value_of(const struct perfdataattr *a, const char *field, const struct perfdatasample *x)
{
	return perfdatatrace_value(a->format, field, x->raw, x->raw_bytes);
}

void perfdatasched_sample(struct schedwaits *w, const struct perfdataspaces *spaces, const struct perfdataattr *a,
			  const struct perfdatasample *x, uint32_t thread, uint32_t stack, uint64_t time_ns)
{
	uint32_t tid;

	switch (a->kind) {
	case SCHED_OFFCPU:
		schedwaits_waited(w, thread, stack, time_ns, x->period);
		break;
	case SCHED_SWITCH:
		tid = value_of(a, "prev_pid", x);
		if (tid == x->tid)
			schedwaits_left(w, tid, thread, stack, state_of(value_of(a, "prev_state", x)), time_ns);
		tid = value_of(a, "next_pid", x);
		schedwaits_came(w, tid, perfdataspaces_known_thread(spaces, tid), time_ns);
		break;
	case SCHED_WAKE:
		schedwaits_woken(w, value_of(a, "pid", x), &(struct schedwaits_waker){ .thread = thread, .stack = stack }, time_ns);
		break;
	case SCHED_STAT_BLOCKED:
		schedwaits_woken(w, value_of(a, "pid", x), NULL, time_ns);
		break;
	case SCHED_STAT_QUEUE:
		tid = value_of(a, "pid", x);
		schedwaits_came(w, tid, perfdataspaces_known_thread(spaces, tid), time_ns);
		break;
	}
}

void perfdatasched_fix_ended(const struct perfdataspaces *spaces, const struct perfdataattr *a, struct perfdatasample *x)
{
	uint32_t tid = value_of(a, "prev_pid", x), thread = perfdataspaces_known_thread(spaces, tid);

	if (thread == PROFILE_NONE)
		return;
	x->tid = tid;
	x->pid = spaces->p->processes.v[spaces->p->threads.v[thread].process].pid;
}
