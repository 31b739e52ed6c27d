/*
 * tasktext.c - types of async tasks: how many, their polls, their time in the queue and awaiting, and who woke them; and how
 * their runtime did.
 */
#include "export/section/task/tasktext.h"

#include "analyze/select.h"
#include "analyze/task/blockers.h"
#include "analyze/task/taskchains.h"
#include "analyze/task/taskhealth.h"
#include "analyze/task/tasks.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { LINES = 3, NOTICED_PERCENT = 5, BEFORE_LINE = 21, BEFORE_TYPE = 79, BEFORE_TYPE_NARROW = 61, WIDE_COLUMNS = 100 };

void tasktext_name(const struct export_job *job, const char *name, unsigned used, struct buf *out)
{
	cleantext_last_function(NULL, out, *name ? name : "[no name]", job->options.columns, used);
}

static bool is_narrow(const struct export_job *job)
{
	return job->options.columns && job->options.columns < WIDE_COLUMNS;
}

static bool is_empty(const struct tasks_type *y)
{
	return !y->seen && !tasks_wall_ns(y);
}

/* --- types --- */

static void put_duration(struct buf *out, uint64_t ns)
{
	char text[32];

	buf_printf(out, " %s", str_right(text, ns ? str_duration(text, ns) : "-", 9));
}

static void put_heads(const struct export_job *job, struct buf *out)
{
	buf_printf(out, "%8s", "tasks");
	if (!is_narrow(job))
		buf_printf(out, " %7s", "alive");
	buf_printf(out, " %10s", "polls");
	if (!is_narrow(job))
		buf_printf(out, " %9s", "mean");
	buf_printf(out, " %9s %9s %9s %9s  %s\n", "longest", "polled", "queued", "awaiting", "type");
}

/* "a message by node::exec::publish in task node::exec::run" */
static void put_waker(const struct export_job *job, const struct tasks *t, const struct tasks_waker *w, struct buf *out)
{
	/* "the end of a task" has its type in it. */
	buf_puts(out, w->kind == WAKEKIND_JOIN && w->type != TASKS_NONE ? "the end" : wakekind_name(w->kind));
	if (*w->function) {
		buf_puts(out, " by ");
		tasktext_name(job, w->function, BEFORE_LINE + 13, out);
	}
	if (w->type != TASKS_NONE) {
		buf_puts(out, w->kind == WAKEKIND_JOIN ? " of task " : " in task ");
		tasktext_name(job, t->types.v[w->type].name, BEFORE_LINE + 13, out);
	}
}

/* Puts what the polls did, where it is more than computing: "polled 75.0% disk write". */
static void put_work(const struct tasks_type *y, struct buf *out)
{
	uint64_t all = 0;
	bool any = false;
	char text[32];

	for (int c = 0; c < CAUSE_COUNT; c++)
		all += y->by_cause[c];
	for (int c = 0; c < CAUSE_COUNT; c++) {
		if (c == CAUSE_CPU || str_percent(y->by_cause[c], all) < NOTICED_PERCENT)
			continue;
		buf_printf(out, "%11s %7s  %s\n", any ? "" : "polled", str_share(text, str_percent(y->by_cause[c], all)), cause_name(c));
		any = true;
	}
}

static void put_wakers(const struct export_job *job, const struct tasks *t, const struct tasks_type *y, struct buf *out)
{
	uint64_t all = y->not_ended_ns;
	size_t shown = 0;
	char text[32];

	for (size_t i = 0; i < y->wakers.n; i++)
		all += y->wakers.v[i].ns;
	for (; shown < y->wakers.n && shown < LINES; shown++) {
		const struct tasks_waker *w = &y->wakers.v[shown];

		if (shown && str_percent(w->ns, all) < NOTICED_PERCENT)
			break;
		buf_printf(out, "%11s %7s  ", shown ? "" : "awaited", str_share(text, str_percent(w->ns, all)));
		put_waker(job, t, w, out);
		buf_putc(out, '\n');
	}
	if (str_percent(y->not_ended_ns, all) >= NOTICED_PERCENT)
		buf_printf(out, "%11s %7s  not ended\n", shown ? "" : "awaited", str_share(text, str_percent(y->not_ended_ns, all)));
}

/* Puts what the worker did meanwhile, where the time in the queue is worth a line. */
static void put_behind(const struct export_job *job, const struct tasks *t, const struct tasks_type *y, struct buf *out)
{
	char text[32];

	if (str_percent(y->queue_ns, tasks_wall_ns(y)) < NOTICED_PERCENT)
		return;
	for (size_t i = 0; i < y->behind.n && i < LINES; i++) {
		const struct tasks_behind *b = &y->behind.v[i];

		if (i && str_percent(b->ns, y->queue_ns) < NOTICED_PERCENT)
			break;
		buf_printf(out, "%11s %7s  ", i ? "" : "queued", str_share(text, str_percent(b->ns, y->queue_ns)));
		buf_puts(out, b->type == TASKS_NONE ? "at an idle worker" : "behind task ");
		if (b->type != TASKS_NONE)
			tasktext_name(job, t->types.v[b->type].name, BEFORE_LINE + 12, out);
		buf_putc(out, '\n');
	}
}

static void put_places(const struct export_job *job, const struct tasks_type *y, struct buf *out)
{
	char text[32];

	for (size_t i = 0; i < y->places.n && i < LINES; i++) {
		if (!*y->places.v[i].function)
			continue;
		buf_printf(out, "%11s %7s  ", i ? "" : "spawned", str_count(text, y->places.v[i].count));
		buf_puts(out, "by ");
		tasktext_name(job, y->places.v[i].function, BEFORE_LINE + 3, out);
		buf_putc(out, '\n');
	}
}

static void put_type(const struct export_job *job, const struct tasks *t, const struct tasks_type *y, struct buf *out)
{
	char a[32];

	buf_printf(out, "%8s", str_count(a, y->seen));
	if (!is_narrow(job))
		buf_printf(out, " %7s", str_count(a, y->alive));
	buf_printf(out, " %10s", str_count(a, y->polls));
	if (!is_narrow(job))
		put_duration(out, y->polls ? y->poll_ns / y->polls : 0);
	put_duration(out, y->longest_ns);
	put_duration(out, y->poll_ns);
	put_duration(out, y->queue_ns);
	put_duration(out, y->await_ns);
	buf_puts(out, "  ");
	tasktext_name(job, y->name, is_narrow(job) ? BEFORE_TYPE_NARROW : BEFORE_TYPE, out);
	buf_puts(out, y->blocking ? " (blocking pool)\n" : "\n");
	put_work(y, out);
	put_wakers(job, t, y, out);
	put_behind(job, t, y, out);
	put_places(job, y, out);
}

static void put_title(const struct export_job *job, const struct tasks *t, size_t types, struct buf *out)
{
	char a[32], b[32], c[32];

	buf_printf(out, "\n%sAsync tasks%s: %s tasks of %s %s", job->options.colour ? TABLE_BOLD : "",
		   job->options.colour ? TABLE_NORMAL : "", str_count(a, t->seen), str_count(b, types), types == 1 ? "type" : "types");
	if (t->version)
		buf_printf(out, ", tokio %llu.%llu.%llu", (unsigned long long)(t->version / 1000000),
			   (unsigned long long)(t->version / 1000 % 1000), (unsigned long long)(t->version % 1000));
	buf_printf(out, "; polled %s, in the runtime's queue %s, awaiting %s\n", str_duration(a, t->poll_ns),
		   str_duration(b, t->queue_ns), str_duration(c, t->await_ns));
}

static void put_types(const struct export_job *job, const struct tasks *t, struct buf *out)
{
	size_t n = 0, shown, put = 0;
	char a[32];

	for (size_t i = 0; i < t->types.n; i++)
		n += !is_empty(&t->types.v[i]);
	if (!n)
		return;
	shown = table_shown(job, n);
	put_title(job, t, n, out);
	put_heads(job, out);
	for (size_t i = 0; i < t->types.n && put < shown; i++) {
		if (is_empty(&t->types.v[i]))
			continue;
		put_type(job, t, &t->types.v[i], out);
		put++;
	}
	if (shown < n)
		buf_printf(out, "and %s more types (--limit 0 shows all)\n", str_count(a, n - shown));
	if (t->lost)
		buf_printf(out, "%s polls, wake-ups and ends of tasks found no room: they are in no figure\n", str_count(a, t->lost));
	if (!t->counted)
		buf_puts(out, "Of a part of a recording, awaits are estimated from the wake-ups that have a stack.\n");
}

/* --- health --- */

static void put_latency(const char *what, const struct taskhealth_latency *l, struct buf *out)
{
	char a[32], b[32], c[32];

	if (l->count)
		buf_printf(out, "  %-18s %s: half of them up to %s, 99 %% up to %s\n", what, str_count(a, l->count),
			   str_duration(b, l->p50_ns), str_duration(c, l->p99_ns));
}

static void put_health(const struct export_job *job, const struct tasks *t, struct buf *out)
{
	struct taskhealth h;
	char a[32], b[32];

	if (!taskhealth_make(&h, job->profile, &job->selection->options))
		return;
	table_title(job, out, "Health of the async runtime");
	if (h.queue.points)
		buf_printf(out, "  %-18s %.1f on average, at most %.1f, at %.2f s\n", "tasks in queues", h.queue.mean, h.queue.most,
			   h.queue.most_at_ns / 1e9);
	if (h.busy.points)
		buf_printf(out, "  %-18s %.1f on average, at most %.1f; %s polled tasks\n", "threads busy", h.busy.mean, h.busy.most,
			   str_count(a, t->workers));
	if (h.polls.points)
		buf_printf(out, "  %-18s %s on average, at most %s\n", "polls a second", str_count(a, h.polls.mean),
			   str_count(b, h.polls.most));
	if (h.longest_poll_ns)
		buf_printf(out, "  %-18s %s, before %.2f s\n", "longest poll", str_duration(a, h.longest_poll_ns),
			   h.longest_poll_at_ns / 1e9);
	put_latency("polls", &h.poll, out);
	put_latency("times in a queue", &h.queued, out);
	put_latency("awaits", &h.await, out);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	const struct select_options *o = job->selection ? &job->selection->options : NULL;
	struct taskchains chains;
	struct blockers blockers;
	struct tasks t;

	if (!o || !tasks_make(&t, job->profile, o, 0))
		return;
	put_types(job, &t, out);
	blockers_make(&blockers, job->profile, o, &t);
	blockertext_put(job, &t, &blockers, out);
	blockers_done(&blockers);
	taskchains_make(&chains, job->profile, o, &t);
	chaintext_put(job, &t, &chains, out);
	taskchains_done(&chains);
	put_health(job, &t, out);
	tasks_done(&t);
}

const struct section section_tasks = { .name = "tasks", .text = put_text, .json = taskjson_put, .page = taskpage_put };
