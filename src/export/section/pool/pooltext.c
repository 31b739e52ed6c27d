/*
 * pooltext.c - what the threads of pools ran: a line for each task, job or goroutine, by pool; the same for programs.
 */
#include "analyze/select.h"
#include "analyze/task/poolwork.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { SHARE_COLUMNS = 7, CELL_COLUMNS = 8, NAME_LEAST = 16 };

static void put_cell(struct buf *out, uint64_t ns)
{
	char text[32];

	buf_printf(out, " %s", str_right(text, ns ? str_duration(text, ns) : "-", CELL_COLUMNS));
}

/* What is put, and where. */
struct lines {
	const struct export_job *job;
	const struct poolwork *w;
	struct buf *out;
	bool narrow;                /* waits are one column */
	struct cleantext_set names; /* that were shown */
};

/* The columns before the name. */
static unsigned figure_columns(const struct lines *l)
{
	unsigned waits = l->w->waits ? l->narrow ? 1 : 4 : 0;

	return (l->w->cpu ? SHARE_COLUMNS + CELL_COLUMNS + 1 : 0) + waits * (CELL_COLUMNS + 1) + 2;
}

static void put_figures(const struct lines *l, const struct poolwork_row *r)
{
	struct poolwork_columns c = poolwork_columns(r);
	char text[32];

	if (l->w->cpu) {
		buf_printf(l->out, "%*s", SHARE_COLUMNS, c.cpu_ns ? str_share(text, str_percent(c.cpu_ns, l->w->cpu_ns)) : "-");
		put_cell(l->out, c.cpu_ns);
	}
	if (l->w->waits && l->narrow) {
		put_cell(l->out, c.queue_ns + c.lock_ns + c.disk_ns + c.other_ns);
	} else if (l->w->waits) {
		put_cell(l->out, c.queue_ns);
		put_cell(l->out, c.lock_ns);
		put_cell(l->out, c.disk_ns);
		put_cell(l->out, c.other_ns);
	}
	buf_puts(l->out, "  ");
}

static void put_heads(const struct lines *l)
{
	static const char *const waits[] = { "queue", "lock", "disk", "other" };

	if (l->w->cpu)
		buf_printf(l->out, "%*s", SHARE_COLUMNS + CELL_COLUMNS + 1, "on CPU");
	if (l->w->waits && l->narrow)
		buf_printf(l->out, " %*s", CELL_COLUMNS, "waiting");
	for (size_t i = 0; i < ARRAY_LEN(waits) && l->w->waits && !l->narrow; i++)
		buf_printf(l->out, " %*s", CELL_COLUMNS, waits[i]);
	buf_puts(l->out, "  unit of work\n");
}

/* How wide a text may be behind the figures and so many more columns; 0 = as wide as it is. */
static unsigned room(const struct lines *l, unsigned more)
{
	unsigned used = figure_columns(l) + more, width = l->job->options.columns;

	return width ? MAX(width, used + NAME_LEAST) - used : 0;
}

/* "tokio: 4 threads, tokio-rt-worker" */
static void put_pool(const struct lines *l, const struct poolwork_pool *pool)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	char number[32];

	put_figures(l, &pool->total);
	buf_printf(&text, "%s: %s thread%s", pool->name, str_count(number, pool->threads), pool->threads == 1 ? "" : "s");
	if (*pool->thread) {
		buf_puts(&text, ", ");
		cleantext_put(&text, pool->thread);
	}
	buf_puts(l->out, l->job->options.colour ? TABLE_BOLD : "");
	if (room(l, 0))
		cleantext_cut(l->out, text.data, room(l, 0));
	else
		buf_puts(l->out, text.data);
	buf_printf(l->out, "%s\n", l->job->options.colour ? TABLE_NORMAL : "");
}

static void put_row(struct lines *l, const struct poolwork_row *r)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	put_figures(l, r);
	buf_puts(l->out, "  ");
	cleantext_put(&clean, l->w->types.list.v[r->type].name);
	if (room(l, 2))
		cleantext_function(&l->names, l->out, clean.data, room(l, 2));
	else
		buf_puts(l->out, clean.data);
	buf_putc(l->out, '\n');
}

/* The rest of a pool's rows in one line. */
static void put_rest(const struct lines *l, const struct poolwork_pool *pool, size_t shown)
{
	struct poolwork_row rest = { 0 };
	char number[32];

	for (size_t i = shown; i < pool->count; i++)
		for (int c = 0; c < CAUSE_COUNT; c++)
			rest.ns[c] += l->w->rows.v[pool->first + i].ns[c];
	put_figures(l, &rest);
	buf_printf(l->out, "  and %s more\n", str_count(number, pool->count - shown));
}

static void put_pools(struct lines *l)
{
	const struct poolwork *w = l->w;
	char text[32];

	table_title(l->job, l->out, "What the threads of pools ran");
	if (w->cpu) {
		l->out->data[--l->out->n] = 0;
		buf_printf(l->out, ", %% of %s on CPU\n", str_duration(text, w->cpu_ns));
	}
	put_heads(l);
	for (size_t i = 0; i < w->pools.n; i++) {
		size_t shown = table_shown(l->job, w->pools.v[i].count);

		put_pool(l, &w->pools.v[i]);
		for (size_t k = 0; k < shown; k++)
			put_row(l, &w->rows.v[w->pools.v[i].first + k]);
		if (shown < w->pools.v[i].count)
			put_rest(l, &w->pools.v[i], shown);
	}
}

static void put_text(const struct export_job *job, struct buf *out)
{
	struct poolwork w = { 0 };
	struct lines l = { .job = job, .w = &w, .out = out };

	if (job->selection && poolwork_make(&w, job->profile, &job->selection->options)) {
		l.narrow = job->options.columns && job->options.columns < figure_columns(&l) + NAME_LEAST + 2;
		put_pools(&l);
	}
	poolwork_done(&w);
	cleantext_set_done(&l.names);
}

/* --- for programs --- */

static void put_json_figures(const struct poolwork_row *r, struct json *j)
{
	struct poolwork_columns c = poolwork_columns(r);

	json_put_uints(j, { "samples", r->samples }, { "waits", r->waits }, { "cpu_ns", c.cpu_ns }, { "queue_ns", c.queue_ns },
		       { "lock_ns", c.lock_ns }, { "disk_ns", c.disk_ns }, { "other_ns", c.other_ns }, { "idle_ns", r->ns[CAUSE_IDLE] });
}

static void put_json_row(const struct poolwork *w, const struct poolwork_row *r, struct json *j)
{
	const struct tasktype *t = &w->types.list.v[r->type];

	json_open_row(j, 3);
	json_put_string(j, "kind", tasktype_kind_name(t->kind));
	json_put_string(j, "name", t->name);
	json_put_bool(j, "named", t->named);
	json_put_uints(j, { "threads", r->threads });
	put_json_figures(r, j);
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct poolwork w;

	if (!job->selection)
		return;
	if (poolwork_make(&w, job->profile, &job->selection->options)) {
		json_open_object_line(j, "pool_work", 0);
		json_put_uints(j, { "cpu_ns", w.cpu_ns }, { "named_cpu_ns", w.named_ns });
		json_open_array_line(j, "pools", 1);
		for (size_t i = 0; i < w.pools.n; i++) {
			const struct poolwork_pool *pool = &w.pools.v[i];

			json_open_row(j, 2);
			json_put_string(j, "pool", pool->name);
			json_put_uints(j, { "threads", pool->threads });
			json_put_string(j, "thread", pool->thread);
			put_json_figures(&pool->total, j);
			json_open_array_line(j, "units", 2);
			for (size_t k = 0; k < table_shown(job, pool->count); k++)
				put_json_row(&w, &w.rows.v[pool->first + k], j);
			json_close(j);
			json_close(j);
		}
		json_close(j);
		json_close(j);
	}
	poolwork_done(&w);
}

const struct section section_pools = { .name = "pools", .text = put_text, .json = put_json };
