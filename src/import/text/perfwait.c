#include "import/text/perfwait.h"

#include <string.h>

#include "profile/schedwaits.h"
#include "profile/profile.h"

/* A number, or a word, after a key: "prev_pid=12". */
static bool take_key(struct perfline_text t, const char *key, struct perfline_text *ret)
{
	const char *at = t.n ? memmem(t.s, t.n, key, strlen(key)) : NULL, *end = t.s + t.n;

	if (!at)
		return false;
	ret->s = at + strlen(key);
	for (at = ret->s; at < end && !perfline_space(*at);)
		at++;
	ret->n = at - ret->s;
	return ret->n;
}

static bool take_tid(struct perfline_text t, uint32_t *ret)
{
	uint64_t tid = 0;

	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] < '0' || t.s[i] > '9' || tid > UINT32_MAX / 10)
			return false;
		tid = tid * 10 + (t.s[i] - '0');
	}
	*ret = tid;
	return t.n && tid <= INT32_MAX;
}

/* "name:12 [120] ...": the tid before the priority, as perf's own formatter writes it. *ret_after: what follows the priority. */
static bool take_short(struct perfline_text t, uint32_t *ret, struct perfline_text *ret_after)
{
	const char *open = t.n ? memmem(t.s, t.n, " [", 2) : NULL, *colon = open ? memrchr(t.s, ':', open - t.s) : NULL, *close;

	if (!colon || !take_tid((struct perfline_text){ colon + 1, open - colon - 1 }, ret))
		return false;
	close = memchr(open, ']', t.s + t.n - open);
	if (!close)
		return false;
	close++;
	while (close < t.s + t.n && perfline_space(*close))
		close++;
	*ret_after = (struct perfline_text){ close, t.s + t.n - close };
	return true;
}

/* *ret_state: the letter of the state in which the thread leaves. */
static bool take_switch(struct perfline_text t, uint32_t *ret_next, char *ret_state)
{
	const char *arrow = t.n ? memmem(t.s, t.n, "==>", 3) : NULL;
	struct perfline_text state, next, after, left;
	uint32_t tid;

	if (!arrow)
		return false;
	left = (struct perfline_text){ t.s, arrow - t.s };
	next = (struct perfline_text){ arrow + 3, t.s + t.n - arrow - 3 };
	if (take_key(left, "prev_state=", &state)) {
		struct perfline_text number;

		*ret_state = *state.s;
		return take_key(next, "next_pid=", &number) && take_tid(number, ret_next);
	}
	if (!take_short(left, &tid, &state) || !state.n || !take_short(next, ret_next, &after))
		return false;
	*ret_state = *state.s;
	return true;
}

static bool take_wakeup(struct perfline_text t, uint32_t *ret_tid)
{
	struct perfline_text number, after;

	if (take_key(t, " pid=", &number))
		return take_tid(number, ret_tid);
	return take_short(t, ret_tid, &after);
}

/* The letter of a state: R and R+ are ready, X, x and Z have ended, the others sleep. */
static enum schedwaits_state state_of(char letter)
{
	if (letter == 'R')
		return SCHEDWAITS_READY;
	return letter == 'X' || letter == 'x' || letter == 'Z' ? SCHEDWAITS_ENDED : SCHEDWAITS_BLOCKED;
}

static enum schedwaits_kind kind_of(struct perfline_text event)
{
	static const char group[] = "sched:";
	size_t n = strlen(group);

	return event.s && event.n > n && !memcmp(event.s, group, n) ? schedwaits_kind(event.s + n, event.n - n) : SCHED_NONE;
}

bool perfwait_take(struct schedwaits *w, const struct perfline_record *r, uint32_t thread, uint32_t stack)
{
	enum schedwaits_kind kind = r->timed ? kind_of(r->event) : SCHED_NONE;
	uint32_t tid;
	char state;

	if (kind == SCHED_NONE || !(kind == SCHED_SWITCH ? take_switch(r->rest, &tid, &state) : take_wakeup(r->rest, &tid)))
		return false;
	switch (kind) {
	case SCHED_SWITCH:
		schedwaits_left(w, r->tid, thread, stack, state_of(state), r->time_ns);
		schedwaits_came(w, tid, PROFILE_NONE, r->time_ns);
		return true;
	case SCHED_WAKE:
		schedwaits_woken(w, tid, &(struct schedwaits_waker){ .thread = thread, .stack = stack }, r->time_ns);
		return true;
	case SCHED_STAT_BLOCKED:
		schedwaits_woken(w, tid, NULL, r->time_ns);
		return false;
	case SCHED_STAT_QUEUE:
		schedwaits_came(w, tid, PROFILE_NONE, r->time_ns);
		return false;
	default:
		return false;
	}
}
