/*
 * blockertext.c - long polls for people: where, what they did, and whom they kept waiting; and chains of awaits.
 */
#include "analyze/task/blockers.h"
#include "analyze/task/taskchains.h"
#include "analyze/task/tasks.h"
#include "analyze/wait/cause.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/table.h"
#include "export/section/task/tasktext.h"
#include "profile/profile.h"

enum { CHAINS = 5, VICTIMS = 3, NOTICED_PERCENT = 5, BEFORE_NAME = 31 };

static void put_type(const struct export_job *job, const struct tasks *t, uint32_t type, struct buf *out)
{
	tasktext_name(job, type == TASKS_NONE ? "[another type]" : t->types.v[type].name, BEFORE_NAME + 5, out);
}

/* --- long polls --- */

/* "75.0 ms disk write (fdatasync), 25.0 ms on CPU": most first. */
static void put_causes(const struct blockers_row *r, struct buf *out)
{
	bool said[CAUSE_COUNT] = { 0 };
	char text[32];

	for (int n = 0; n < CAUSE_COUNT; n++) {
		int most = -1;

		for (int c = 0; c < CAUSE_COUNT; c++)
			if (!said[c] && r->by_cause[c] && (most < 0 || r->by_cause[c] > r->by_cause[most]))
				most = c;
		if (most < 0 || (n && str_percent(r->by_cause[most], r->ns) < NOTICED_PERCENT))
			break;
		said[most] = true;
		buf_printf(out, "%s%s %s", n ? ", " : "", str_duration(text, r->by_cause[most]), cause_name(most));
		if ((enum cause)most == r->cause && r->operation)
			buf_printf(out, " (%s)", r->operation);
	}
}

static void put_victims(const struct export_job *job, const struct tasks *t, const struct blockers_row *r, struct buf *out)
{
	char a[32], b[32];

	if (!r->queued)
		return;
	buf_printf(out, "%*squeued meanwhile: %s %s, %s together: ", BEFORE_NAME, "", str_count(a, r->queued),
		   r->queued == 1 ? "time" : "times", str_duration(b, r->queued_ns));
	for (size_t i = 0; i < r->victims.n && i < VICTIMS; i++) {
		buf_puts(out, i ? ", " : "");
		put_type(job, t, r->victims.v[i].type, out);
		buf_printf(out, " %s", str_duration(a, r->victims.v[i].ns));
	}
	buf_puts(out, r->victims.n > VICTIMS ? ", and others\n" : "\n");
}

static void put_row(const struct export_job *job, const struct tasks *t, const struct blockers_row *r, struct buf *out)
{
	char a[32], b[32], c[32];

	buf_printf(out, "%s %9s %s  ", str_right(a, str_duration(a, r->ns), 9), str_count(b, r->count),
		   str_right(c, str_duration(c, r->longest_ns), 9));
	if (*r->function || r->cause == CAUSE_QUEUE) {
		tasktext_name(job, *r->function ? r->function : "[its thread had no CPU]", BEFORE_NAME, out);
		buf_printf(out, "\n%*s", BEFORE_NAME, "");
	}
	if (r->leaf) {
		buf_puts(out, "mostly ");
		tasktext_name(job, r->leaf, BEFORE_NAME + 7, out);
		buf_printf(out, "\n%*s", BEFORE_NAME, "");
	}
	buf_puts(out, "task ");
	put_type(job, t, r->type, out);
	buf_printf(out, "\n%*s", BEFORE_NAME, "");
	put_causes(r, out);
	buf_putc(out, '\n');
	put_victims(job, t, r, out);
}

void blockertext_put(const struct export_job *job, const struct tasks *t, const struct blockers *b, struct buf *out)
{
	size_t shown = table_shown(job, b->rows.n);
	char x[32], y[32], z[32];

	if (!b->rows.n)
		return;
	buf_printf(out, "\n%sLong polls%s: %s of %s or more kept their workers from other tasks for %s\n",
		   job->options.colour ? TABLE_BOLD : "", job->options.colour ? TABLE_NORMAL : "", str_count(x, b->polls.n),
		   str_duration(y, b->least_ns), str_duration(z, b->ns));
	buf_printf(out, "%9s %9s %9s  %s\n", "time", "polls", "longest", "in");
	for (size_t i = 0; i < shown; i++)
		put_row(job, t, &b->rows.v[i], out);
	if (shown < b->rows.n)
		buf_printf(out, "and %s more places (--limit 0 shows all)\n", str_count(x, b->rows.n - shown));
	if (t->long_polls_left_out)
		buf_printf(out, "%s more long polls were not kept, as others of their second were longer\n",
			   str_count(x, t->long_polls_left_out));
	if (!b->waits)
		buf_puts(out, "Waits were not recorded (-e wait): what is no CPU time here is unknown.\n");
}

/* --- chains --- */

/* "A awaited a message by f", and of the next ones " of B, which awaited the end of a task". */
static void put_links(const struct export_job *job, const struct tasks *t, const struct taskchain *c, struct buf *out)
{
	for (uint32_t i = 0; i < c->link_count; i++) {
		const struct taskchains_link *l = &c->links[i];

		buf_puts(out, i ? " of " : "");
		put_type(job, t, l->type, out);
		buf_printf(out, "%s awaited %s", i ? ", which" : "",
			   l->kind == WAKEKIND_JOIN && (i + 1 < c->link_count || c->end_type != TASKS_NONE) ? "the end" :
													     wakekind_name(l->kind));
		if (*l->function) {
			buf_puts(out, " by ");
			tasktext_name(job, l->function, BEFORE_NAME, out);
		}
	}
}

static void put_end(const struct export_job *job, const struct tasks *t, const struct taskchain *c, struct buf *out)
{
	const struct profile *p = job->profile;
	bool thread = c->end_thread < p->threads.n;

	if (c->end_type != TASKS_NONE) {
		buf_puts(out, " of ");
		put_type(job, t, c->end_type, out);
	} else if (thread) {
		buf_puts(out, " of thread ");
		tasktext_name(job, profile_str(p, p->threads.v[c->end_thread].name), BEFORE_NAME, out);
	}
	if (thread && c->end_cause != CAUSE_UNKNOWN) {
		buf_printf(out, ", which was %s%s", c->end_cause == CAUSE_CPU ? "" : "waiting: ", cause_name(c->end_cause));
		if (*c->end_function) {
			buf_puts(out, " in ");
			tasktext_name(job, c->end_function, BEFORE_NAME, out);
		}
	}
	buf_putc(out, '\n');
}

void chaintext_put(const struct export_job *job, const struct tasks *t, const struct taskchains *c, struct buf *out)
{
	size_t shown = job->options.limit ? MIN(c->list.n, (size_t)CHAINS) : c->list.n;
	char a[32], b[32];

	if (!c->list.n)
		return;
	table_title(job, out, "Tasks that waited for each other, by the long awaits");
	buf_printf(out, "%9s %9s  %s\n", "time", "awaits", "chain");
	for (size_t i = 0; i < shown; i++) {
		const struct taskchain *x = &c->list.v[i];

		buf_printf(out, "%s %9s  ", str_right(a, str_duration(a, x->ns), 9), str_count(b, x->count));
		put_links(job, t, x, out);
		put_end(job, t, x, out);
	}
	if (shown < c->list.n)
		buf_printf(out, "and %s more chains (--limit 0 shows all)\n", str_count(a, c->list.n - shown));
	if (t->wakes_left_out)
		buf_printf(out, "%s more long awaits were not kept, as others of their time were longer\n",
			   str_count(a, t->wakes_left_out));
}
