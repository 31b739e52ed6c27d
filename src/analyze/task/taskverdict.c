#include "analyze/task/taskverdict.h"

#include "analyze/select.h"
#include "analyze/task/blockers.h"
#include "analyze/task/tasks.h"
#include "analyze/wait/verdict.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

enum {
	BLOCKED_PERCENT = 1,  /* of the recording, that workers were blocked at one place, or that tasks were queued for it */
	PREEMPTED_PERCENT = 5, /* of the recording, that polls took long for want of a CPU */
	READY_PERCENT = 50,   /* of the time in which a task could have run, that it lay in the queue */
	QUEUED_PERCENT = 10,  /* and of all of its time */
	AWAITED_PERCENT = 30, /* of a task's time, that it awaited another one */
	BUSY_PERCENT = 70,    /* of that one's time, that it was polled or queued */
	TURN_NS = 100000,     /* before a poll: less is no starving */
};

struct judging {
	struct verdict *v;
	const struct profile *p;
	const struct select_options *o;
	struct tasks t;
	struct blockers b;
};

static const char *name_of(const struct judging *g, uint32_t type)
{
	return type == TASKS_NONE ? "?" : g->t.types.v[type].name;
}

/* --- a worker that is blocked --- */

/* What a place cost: its own time, and that of the tasks which had to wait for it. That a thread had no CPU is not its fault. */
static uint64_t cost_of(const struct blockers_row *r)
{
	return r->cause == CAUSE_QUEUE ? 0 : r->ns - r->by_cause[CAUSE_QUEUE] - r->by_cause[CAUSE_QUOTA] + r->queued_ns;
}

static const struct blockers_row *worst(const struct judging *g)
{
	const struct blockers_row *found = NULL;

	for (size_t i = 0; i < g->b.rows.n; i++)
		if (!found || cost_of(&g->b.rows.v[i]) > cost_of(found))
			found = &g->b.rows.v[i];
	return found && cost_of(found) && cost_of(found) * 100 >= g->t.duration_ns * BLOCKED_PERCENT ? found : NULL;
}

/* Adds ": 75 % of it is fdatasync under `f`". */
static void add_reason(struct buf *b, const struct blockers_row *r)
{
	if (r->cause == CAUSE_UNKNOWN)
		return;
	buf_printf(b, ": %.0f %% of that time is %s", str_percent(r->by_cause[r->cause], r->ns),
		   r->operation ? r->operation : cause_name(r->cause));
	if (*r->function)
		buf_printf(b, " under `%s`", r->function);
	if (r->by_cause[CAUSE_QUEUE] * 100 >= r->ns * QUEUED_PERCENT)
		buf_printf(b, ", and %.0f %% without a CPU", str_percent(r->by_cause[CAUSE_QUEUE], r->ns));
}

static const char *advice_for(enum cause cause)
{
	if (cause == CAUSE_UNKNOWN)
		return "A poll that takes long keeps its worker from all other tasks. `record -e cpu,wait,task` tells what it did.";
	if (cause == CAUSE_CPU)
		return "A poll that computes for long keeps its worker from all other tasks. What usually helps: a pool for computing "
		       "(spawn_blocking, rayon), or yield_now() between its pieces.";
	return "A poll that waits keeps its worker from all other tasks. What usually helps: spawn_blocking or a thread of its "
	       "own for what waits, or the runtime's own calls in place of those that block.";
}

/* Polls that were long because their thread had no CPU: of the type with most of them. */
static void judge_preempted(struct judging *g)
{
	const struct blockers_row *found = NULL;
	char a[32], b[32];

	for (size_t i = 0; i < g->b.rows.n; i++)
		if (g->b.rows.v[i].cause == CAUSE_QUEUE && (!found || g->b.rows.v[i].ns > found->ns))
			found = &g->b.rows.v[i];
	if (found && found->ns * 100 >= g->t.duration_ns * PREEMPTED_PERCENT)
		verdict_say(g->v, (struct verdict_link){ .what = "queue", .thread = PROFILE_NONE, .task = (char *)name_of(g, found->type) },
			    "%s polls of task `%s` took long, %s together, because their threads waited for a CPU.",
			    str_count(a, found->count), name_of(g, found->type), str_duration(b, found->ns));
}

static void judge_blockers(struct judging *g)
{
	const struct blockers_row *r = worst(g);
	_cleanup_(buf_done) struct buf reason = { 0 }, victims = { 0 };
	const struct blockers_poll *longest;
	struct verdict_link link;
	char a[32], b[32], c[32];

	if (!r)
		return;
	longest = &g->b.polls.v[r->longest];
	add_reason(&reason, r);
	if (r->queued)
		buf_printf(&victims, " Meanwhile tasks lay in the queue %s times, for %s together, most of them `%s`.",
			   str_count(a, r->queued), str_duration(b, r->queued_ns), name_of(g, r->victims.v[0].type));
	link = (struct verdict_link){ .what = r->cause == CAUSE_CPU ? "cpu" : r->cause == CAUSE_UNKNOWN ? "poll" : "wait",
				      .thread = PROFILE_NONE, .cause = r->cause,
				      .function = *r->function ? (char *)r->function : NULL, .task = (char *)name_of(g, r->type),
				      .from_ns = longest->start_ns, .to_ns = longest->end_ns };
	verdict_say(g->v, link, "A worker of the async runtime was blocked by task `%s` %s times, for %s together and up to %s%s.%s",
		    name_of(g, r->type), str_count(a, r->count), str_duration(b, r->ns), str_duration(c, r->longest_ns),
		    reason.n ? reason.data : "", victims.n ? victims.data : "");
	link.advice = true;
	verdict_say(g->v, link, "%s", advice_for(r->cause));
}

/* --- a task that starves --- */

static bool starves(const struct judging *g, const struct tasks_type *y)
{
	return y->queue_ns && y->queue_ns * 100 >= (y->poll_ns + y->queue_ns) * READY_PERCENT &&
	       y->queue_ns * 100 >= tasks_wall_ns(y) * QUEUED_PERCENT && y->queue_ns * 100 >= g->t.duration_ns * BLOCKED_PERCENT &&
	       y->queue_ns >= MAX(y->polls, 1) * TURN_NS;
}

/* Adds ", mostly behind polls of `Y`", and that these had no CPU where it is so. */
static void add_behind(const struct judging *g, const struct tasks_type *y, struct buf *b)
{
	const struct tasks_behind *most = y->behind.n ? &y->behind.v[0] : NULL;
	const struct tasks_type *other;
	uint64_t all = 0;

	if (!most || most->type == TASKS_NONE || most->ns * 2 < y->queue_ns)
		return;
	other = &g->t.types.v[most->type];
	for (int c = 0; c < CAUSE_COUNT; c++)
		all += other->by_cause[c];
	buf_printf(b, ", mostly behind polls of %s`%s`", other == y ? "other tasks of " : "", other->name);
	if (other->by_cause[CAUSE_QUEUE] * 100 >= all * READY_PERCENT && all)
		buf_printf(b, ", which had no CPU for %.0f %% of their time", str_percent(other->by_cause[CAUSE_QUEUE], all));
}

/* Jobs for blocking calls wait for a thread of their pool, which may have as many as it likes. */
static void judge_queue(struct judging *g)
{
	const struct tasks_type *found = NULL;
	_cleanup_free_ char *frame = NULL;
	_cleanup_(buf_done) struct buf behind = { 0 };
	struct verdict_link link = { .what = "taskqueue", .thread = PROFILE_NONE };
	char a[32], b[32];

	for (size_t i = 0; i < g->t.types.n; i++) {
		const struct tasks_type *y = &g->t.types.v[i];

		if (starves(g, y) && (!found || !!y->blocking < !!found->blocking ||
				      (!y->blocking == !found->blocking && y->queue_ns > found->queue_ns)))
			found = y;
	}
	if (!found)
		return;
	str_duration(a, found->queue_ns);
	str_duration(b, found->queue_ns / MAX(found->polls, 1));
	link.function = frame = mem_printf(TASKS_PREFIX "%s", found->name);
	link.task = (char *)found->name;
	if (found->blocking) {
		verdict_say(g->v, link, "Jobs `%s` waited for a thread of the pool for blocking calls for %s, %s each: the pool is too small "
			    "(max_blocking_threads), or its jobs take too long.", found->name, a, b);
		return;
	}
	add_behind(g, found, &behind);
	verdict_say(g->v, link, "Task `%s` starved: it lay in the runtime's queue for %s, %.0f %% of the time in which it could have run, "
		    "%s before each poll%s.", found->name, a, str_percent(found->queue_ns, found->poll_ns + found->queue_ns), b,
		    behind.n ? behind.data : "");
}

/* --- a channel whose other end is busy --- */

/* What the tasks of a type awaited of another one that has no time left. */
struct narrow {
	const struct tasks_type *waits, *busy;
	const struct tasks_waker *waker;
};

static bool is_narrow(const struct judging *g, const struct tasks_type *y, const struct tasks_waker *w)
{
	const struct tasks_type *other = w->type == TASKS_NONE ? NULL : &g->t.types.v[w->type];

	return other && other != y && wakekind_is_inner(w->kind) && w->ns * 100 >= g->t.duration_ns * BLOCKED_PERCENT &&
	       w->ns * 100 >= tasks_wall_ns(y) * AWAITED_PERCENT && tasks_wall_ns(other) &&
	       (other->poll_ns + other->queue_ns) * 100 >= tasks_wall_ns(other) * BUSY_PERCENT;
}

static void judge_channels(struct judging *g)
{
	static const struct {
		const char *before, *between, *after;
		bool busy_first;
	} words[WAKEKIND_COUNT] = {
		[WAKEKIND_CHANNEL] = { "The channel from task", "to task", " is", true },
		[WAKEKIND_ROOM] = { "The channel from task", "to task", ", which is full, is", false },
		[WAKEKIND_ONESHOT] = { "The answer of task", "to task", " is", true },
		[WAKEKIND_LOCK] = { "The async lock that task", "gives to task", " is", true },
		[WAKEKIND_NOTIFY] = { "The notification of task", "by task", " is", false },
		[WAKEKIND_JOIN] = { "The end of task", "for task", " is", true },
	};
	struct narrow found = { 0 };
	_cleanup_free_ char *start = NULL, *frame = NULL;
	bool first;
	char a[32];

	for (size_t i = 0; i < g->t.types.n; i++)
		for (size_t k = 0; k < g->t.types.v[i].wakers.n; k++) {
			const struct tasks_waker *w = &g->t.types.v[i].wakers.v[k];

			if (is_narrow(g, &g->t.types.v[i], w) && (!found.waker || w->ns > found.waker->ns))
				found = (struct narrow){ &g->t.types.v[i], &g->t.types.v[w->type], w };
		}
	if (!found.waker)
		return;
	first = words[found.waker->kind].busy_first;
	start = mem_printf("%s `%s` %s `%s`%s the bottleneck", words[found.waker->kind].before,
			   first ? found.busy->name : found.waits->name, words[found.waker->kind].between,
			   first ? found.waits->name : found.busy->name, words[found.waker->kind].after);
	frame = mem_printf(TASKS_PREFIX "%s", found.waits->name);
	verdict_say(g->v, (struct verdict_link){ .what = "await", .thread = PROFILE_NONE, .function = frame, .task = (char *)found.waits->name },
		    "%s: `%s` awaited it for %s, %.0f %% of its time, and `%s` was busy for %.0f %% of its own.", start,
		    found.waits->name, str_duration(a, found.waker->ns), str_percent(found.waker->ns, tasks_wall_ns(found.waits)),
		    found.busy->name, str_percent(found.busy->poll_ns + found.busy->queue_ns, tasks_wall_ns(found.busy)));
}

void taskverdict_add(struct verdict *v, const struct profile *p, const struct select_options *o)
{
	struct judging g = { .v = v, .p = p, .o = o };

	if (!tasks_make(&g.t, p, o, 0))
		return;
	blockers_make(&g.b, p, o, &g.t);
	judge_blockers(&g);
	judge_preempted(&g);
	judge_queue(&g);
	judge_channels(&g);
	blockers_done(&g.b);
	tasks_done(&g.t);
}
