/*
 * taskpage.c - the page of tasks: how busy each type of them is (record -e task).
 */
#include <math.h>
#include <stdio.h>

#include "analyze/select.h"
#include "analyze/task/tasks.h"
#include "base/text/str.h"
#include "profile/profile.h"
#include "tui/model.h"
#include "tui/page.h"

enum { MAX_ROWS = 5000 };

const struct column page_task_columns[] = {
	[TASK_POLL_SHARE] = { "POLL%", "poll_percent", COLUMN_PERCENT, 6, 0 },
	[TASK_POLLS] = { "POLLS/s", "polls_per_second", COLUMN_COUNT, 9, 2 },
	[TASK_MEAN] = { "MEAN", "mean_poll_ns", COLUMN_TIME, 8, 5 },
	[TASK_LONGEST] = { "LONGEST", "longest_poll_ns", COLUMN_TIME, 8, 1 },
	[TASK_QUEUE] = { "QUEUE", "mean_queue_ns", COLUMN_TIME, 8, 3 }, /* before a poll, on average */
	[TASK_NAME] = { "TASK", "task", COLUMN_NAME, 0, 0 },
	{ 0 },
};

void page_fill_tasks(struct table *t, struct model *m, unsigned variant)
{
	const struct tasks *tasks = model_tasks(m);
	double duration = page_duration_ns(m);

	if (!tasks)
		snprintf(t->empty, sizeof(t->empty), "Tasks were not recorded: -e task does, of programs with tokio.");
	else
		snprintf(t->empty, sizeof(t->empty), "No task was polled here.");
	for (size_t i = 0; tasks && duration > 0 && i < MIN(tasks->types.n, (size_t)MAX_ROWS); i++) {
		const struct tasks_type *x = &tasks->types.v[i];
		struct row *r;

		if (!x->polls)
			continue; /* its tasks only await, or there are none */
		r = table_row(t);
		r->value[TASK_POLL_SHARE] = x->poll_ns * 100 / duration;
		r->value[TASK_POLLS] = x->polls * 1e9 / duration;
		r->value[TASK_MEAN] = (double)x->poll_ns / x->polls;
		r->value[TASK_LONGEST] = x->longest_ns ? x->longest_ns : NAN; /* of a window: only long ones are kept one by one */
		r->value[TASK_QUEUE] = (double)x->queue_ns / x->polls;
		r->text[TASK_NAME] = x->name;
		r->kind = x->long_polls ? ROW_HOT : ROW_PLAIN;
		r->id = page_id(x->name, "task");
		r->index = i;
	}
}
