/*
 * accounttext.c - the account of the threads' time: wall, on CPU, and a column for each cause of waiting.
 *
 * A column for each cause that is more than nothing in the total, on a terminal as many as fit and the rest in one;
 * threads that did most first, the rest in one line.
 */
#include <stdio.h>

#include "analyze/wait/account.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { NAME_LEAST = 12, NAME_COLUMNS = 26, NAME_MOST = 48, CELL_COLUMNS = 9, FEWEST_CELLS = 5, WIDE_COLUMNS = 120 };

/* In the order of the columns. */
static const struct {
	enum cause cause;
	const char *head;
} columns[] = {
	{ CAUSE_CPU, "on CPU" },      { CAUSE_QUEUE, "queue" },      { CAUSE_QUOTA, "throttled" }, { CAUSE_LOCK, "lock" },
	{ CAUSE_PARK, "condition" },  { CAUSE_DISK_READ, "disk rd" }, { CAUSE_DISK_WRITE, "disk wr" },
	{ CAUSE_FAULT, "fault" },     { CAUSE_NETWORK, "network" },  { CAUSE_SLEEP, "sleep" },
	{ CAUSE_PIPE, "pipe" },       { CAUSE_RECLAIM, "reclaim" },  { CAUSE_IDLE, "idle" },
	{ CAUSE_UNKNOWN, "unknown" },
};

static void put_duration(struct buf *out, uint64_t ns)
{
	char text[32];

	buf_printf(out, " %s", str_right(text, ns ? str_duration(text, ns) : "-", CELL_COLUMNS));
}

struct layout {
	int name; /* columns */
	bool shown[CAUSE_COUNT];
	bool other; /* some are not: one column for them */
};

/* Chooses the causes that are not 0; on a terminal the largest that fit, with room for wall, others,
 * missing. */
static struct layout lay_out(const struct export_job *job, size_t name)
{
	const uint64_t *ns = job->account->total.ns;
	struct layout l = { .name = MAX(NAME_COLUMNS, MIN(name, (size_t)NAME_MOST)) };
	size_t n = 0, fit = CAUSE_COUNT, width = job->options.columns, cells = FEWEST_CELLS * (CELL_COLUMNS + 1);

	if (width) {
		if (width < WIDE_COLUMNS)
			l.name = NAME_COLUMNS; /* causes say more than the ends of names */
		l.name = width > cells + NAME_LEAST ? MIN((size_t)l.name, width - cells) : NAME_LEAST;
		fit = MAX((width - MIN(width, (size_t)l.name)) / (CELL_COLUMNS + 1), (size_t)FEWEST_CELLS) - 3;
	}
	l.shown[CAUSE_CPU] = l.shown[CAUSE_QUEUE] = true;
	for (n = 2; n < fit; n++) {
		int most = -1;

		for (int c = 0; c < CAUSE_COUNT; c++)
			if (!l.shown[c] && ns[c] && (most < 0 || ns[c] > ns[most]))
				most = c;
		if (most < 0)
			break;
		l.shown[most] = true;
	}
	for (int c = 0; c < CAUSE_COUNT; c++)
		l.other |= ns[c] && !l.shown[c];
	return l;
}

static void put_row(const struct layout *l, const struct account_row *r, const char *name, struct buf *out)
{
	_cleanup_(buf_done) struct buf clean = { 0 }, label = { 0 };
	int64_t missing = r->missing_ns;
	uint64_t other = 0;

	cleantext_put(&clean, *name ? name : "[no name]");
	cleantext_cut(&label, clean.data, l->name);
	buf_printf(out, "%s%*s", label.data, l->name - (int)cleantext_columns(label.data), "");
	put_duration(out, r->wall_ns);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (l->shown[columns[i].cause])
			put_duration(out, r->ns[columns[i].cause]);
		else
			other += r->ns[columns[i].cause];
	if (l->other)
		put_duration(out, other);
	put_duration(out, missing > 0 ? missing : 0);
	buf_putc(out, '\n');
}

static void put_heads(const struct layout *l, struct buf *out)
{
	buf_printf(out, "%-*s %*s", l->name, "thread", CELL_COLUMNS, "wall");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (l->shown[columns[i].cause])
			buf_printf(out, " %*s", CELL_COLUMNS, columns[i].head);
	if (l->other)
		buf_printf(out, " %*s", CELL_COLUMNS, "others");
	buf_printf(out, " %*s\n", CELL_COLUMNS, "missing");
}

static void add_rest(struct account_row *rest, const struct account_row *r)
{
	rest->threads += r->threads;
	rest->wall_ns += r->wall_ns;
	rest->missing_ns += r->missing_ns;
	for (int i = 0; i < CAUSE_COUNT; i++)
		rest->ns[i] += r->ns[i];
}

/* Puts remarks that the figures cannot show. */
static void put_remarks(const struct account *a, struct buf *out)
{
	double missing = str_percent(a->total.missing_ns, a->total.wall_ns);
	char text[32];

	if (a->lost)
		buf_printf(out, "%s records of waits were lost: what they held is missing\n",
			   str_count(text, a->lost));
	if (a->unseen)
		buf_printf(out, "%s thread%s did not run once: %s not in any column but wall and missing\n",
			   str_count(text, a->unseen), a->unseen == 1 ? "" : "s",
			   a->unseen == 1 ? "it is" : "they are");
	if (missing > 1)
		buf_printf(out, "%.1f %% of the threads' time is missing\n", missing);
	else if (missing < -1)
		buf_printf(out,
			   "%.1f %% more was counted than the threads' time: they are older than was seen\n",
			   -missing);
	if (a->cpu_is_the_rest)
		buf_puts(out, "on CPU is what the waits leave: it was not measured for this range\n");
	else if (a->sampled_cpu)
		buf_puts(out, "on CPU is from samples for this range, so a few percent can be missing\n");
}

/* "engine (4242)", or "block_executor_ (warm_block) x30". Caller frees. */
static char *row_name(const struct export_job *job, const struct account_row *r, int width)
{
	const struct profile_thread *t = &job->profile->threads.v[r->thread];
	const char *name = profile_str(job->profile, t->name);

	if (r->threads > 1)
		return mem_printf("%.*s x%u", width - 8, name, r->threads);
	return mem_printf("%.*s (%u)", width - 10, name, t->tid);
}

/* The longest name of the rows that are shown. */
static size_t name_columns(const struct export_job *job, const struct account_rows *rows, size_t shown)
{
	size_t most = 0;

	for (size_t i = 0; i < shown; i++) {
		_cleanup_free_ char *name = row_name(job, &rows->list.v[i], NAME_MOST);

		most = MAX(most, cleantext_columns(name));
	}
	return most;
}

static void put_text(const struct export_job *job, struct buf *out)
{
	const struct account *a = job->account;
	struct account_row rest = { .thread = PROFILE_NONE };
	struct account_rows rows;
	struct layout l;
	size_t limit = job->options.limit, shown;
	char text[64], number[32];

	if (!a)
		return;
	account_join_crowds(a, job->profile, &rows);
	shown = limit && limit < rows.list.n ? limit : rows.list.n;
	l = lay_out(job, name_columns(job, &rows, shown));
	table_title(job, out, "Where the time of the threads went");
	put_heads(&l, out);
	for (size_t i = 0; i < rows.list.n; i++) {
		_cleanup_free_ char *name = NULL;

		if (i >= shown) {
			add_rest(&rest, &rows.list.v[i]);
			continue;
		}
		name = row_name(job, &rows.list.v[i], NAME_MOST);
		put_row(&l, &rows.list.v[i], name, out);
	}
	if (rest.threads) {
		snprintf(text, sizeof(text), "%s others", str_count(number, rest.threads));
		put_row(&l, &rest, text, out);
	}
	snprintf(text, sizeof(text), "all %s", str_count(number, a->total.threads));
	put_row(&l, &a->total, text, out);
	put_remarks(a, out);
	vec_done(&rows.list);
}

/* Its JSON is among the members of the waits. */
const struct section section_account = { .name = "account", .text = put_text };
