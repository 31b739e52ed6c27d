#include "export/section/blockstext.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/blocks.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "export/section/blockpartstext.h"
#include "export/section/blocksubsystems.h"
#include "profile/profile.h"

enum { ITEMS = 5, COLUMN = 7, CRATES = 6, CRATE_COLUMN = 13 };

static double ggas_per_s(const struct block_row *r)
{
	return r->block.known & BLOCK_GAS && r->wall_ns ? (double)r->block.gas / r->wall_ns : 0;
}

static const char *thread_name(const struct blocks_job *job, const struct block_row *r)
{
	const struct profile *p = job->profile;

	return r->thread < p->threads.n ? profile_str(p, p->threads.v[r->thread].name) : "";
}

/* --- for people --- */

static const struct {
	const char *head;
	enum block_part part;
} columns[] = {
	{ "own", BLOCK_OWN },
	{ "deps", BLOCK_DEPENDENCY },
	{ "std", BLOCK_STD },
	{ "kernel", BLOCK_KERNEL },
	{ "cpu ?", BLOCK_UNNAMED },
	{ "queue", BLOCK_QUEUE },
	{ "lock", BLOCK_LOCK },
	{ "disk", BLOCK_DISK },
	{ "fault", BLOCK_FAULT },
	{ "net", BLOCK_NETWORK },
	{ "wait", BLOCK_WAIT },
	{ "idle", BLOCK_IDLE },
	{ "?", BLOCK_UNKNOWN },
};

void blockstext_share(struct buf *out, uint64_t ns, uint64_t of, int width)
{
	double percent = str_percent(ns, of);

	if (!ns)
		buf_printf(out, "%*s", width, "-");
	else
		buf_printf(out, "%*.*f", width, percent < 9.95 ? 1 : 0, percent);
}

/* A program's code that has no name is not that which has one. */
static void put_crate(struct buf *out, const struct block_item *crate)
{
	plain_add(out, crate->name);
	buf_puts(out, crate->part == BLOCK_UNNAMED && *crate->name != '[' ? " ?" : "");
}

/* The crates with most of the CPU time have a column each; the last column has the rest. */
static void put_crates(const struct blocks_job *job, const struct block_row *r, struct buf *out)
{
	const struct block_items *all = &job->blocks->crates;
	uint64_t left = 0;

	for (int i = 0; i < BLOCK_PARTS; i++)
		left += block_part_is_cpu(i) ? r->ns[i] : 0;
	for (size_t c = 0; c < MIN(all->n, (size_t)CRATES); c++) {
		uint64_t ns = 0;

		for (size_t i = 0; i < r->crates.n; i++)
			if (r->crates.v[i].name == all->v[c].name && r->crates.v[i].part == all->v[c].part)
				ns = MIN(r->crates.v[i].ns, left);
		left -= ns;
		blockstext_share(out, ns, r->wall_ns, CRATE_COLUMN);
	}
	blockstext_share(out, left, r->wall_ns, COLUMN);
}

static void put_heads(const struct blocks_job *job, struct buf *out)
{
	const struct block_items *all = &job->blocks->crates;

	if (job->by_subsystem) {
		blocksubsystems_heads(job, out);
		return;
	}
	for (size_t c = 0; job->crates && c < MIN(all->n, (size_t)CRATES); c++) {
		_cleanup_(buf_done) struct buf name = { 0 };

		put_crate(&name, &all->v[c]);
		buf_printf(out, " %*.*s", CRATE_COLUMN - 1, CRATE_COLUMN - 1, name.data ? name.data : "");
	}
	if (job->crates)
		buf_printf(out, "%*s", COLUMN, "cpu ..");
	for (size_t c = 0; c < ARRAY_LEN(columns); c++)
		if (!job->crates || !block_part_is_cpu(columns[c].part))
			buf_printf(out, "%*s", COLUMN, columns[c].head);
}

static void put_row(const struct blocks_job *job, const struct block_row *r, struct buf *out)
{
	char number[32], gas[32];

	buf_printf(out, "%12s", r->block.known & BLOCK_NUMBER ? str_count(number, r->block.number) : "-");
	if (r->block.known & BLOCK_GAS)
		buf_printf(out, "  %8.2fM", r->block.gas / 1e6);
	else
		buf_printf(out, "  %9s", "-");
	buf_printf(out, "  %5s", r->block.known & BLOCK_TRANSACTIONS ? str_count(gas, r->block.transactions) : "-");
	if (r->wall_ns)
		buf_printf(out, "  %9.2f", r->wall_ns / 1e6);
	else
		buf_printf(out, "  %9s", "-");
	if (ggas_per_s(r) > 0)
		buf_printf(out, "  %6.3f", ggas_per_s(r));
	else
		buf_printf(out, "  %6s", "-");
	if (job->crates)
		put_crates(job, r, out);
	if (job->by_subsystem)
		blocksubsystems_shares(job, r, out);
	for (size_t c = 0; c < ARRAY_LEN(columns) && !job->by_subsystem; c++)
		if (!job->crates || !block_part_is_cpu(columns[c].part))
			blockstext_share(out, r->ns[columns[c].part], r->wall_ns, COLUMN);
	buf_printf(out, "  %9.2f  ", r->parallel_ns / 1e6);
	plain_add(out, thread_name(job, r));
	if (block_group_count(r->name) > 1)
		buf_printf(out, "  (%s, %llu in one line of the log)", r->name, (unsigned long long)block_group_count(r->name));
	buf_putc(out, '\n');
}

static int compare_slow(const void *a, const void *b, void *context)
{
	const struct block_row *rows = context, *x = &rows[*(const uint32_t *)a], *y = &rows[*(const uint32_t *)b];

	return ORDER(y->wall_ns, x->wall_ns) ?: ORDER(x->mark, y->mark);
}

static void put_summary(const struct blocks *b, struct buf *out)
{
	uint64_t gas = 0, wall = 0;
	char text[32];

	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i].block.known & BLOCK_GAS && b->rows.v[i].wall_ns) {
			gas += b->rows.v[i].block.gas;
			wall += b->rows.v[i].wall_ns;
		}
	buf_printf(out, "%zu block%s", b->rows.n, b->rows.n == 1 ? "" : "s");
	if (b->median_ns)
		buf_printf(out, ", median %s", str_duration(text, b->median_ns));
	if (wall)
		buf_printf(out, ", %.3f Ggas/s over their own time", (double)gas / wall);
	buf_puts(out, ".\n");
	if (b->split < b->rows.n)
		buf_printf(out, "%zu without a split: a moment without a duration, nothing was recorded then, or old samples were summed over longer times.\n", b->rows.n - b->split);
}

/* Puts the crates on the CPU along the paths, as shares of the wall time. */
static void put_sum_of_crates(const struct blocks *b, struct buf *out)
{
	uint64_t wall = 0;

	for (size_t i = 0; i < b->rows.n; i++)
		wall += b->rows.v[i].split ? b->rows.v[i].wall_ns : 0;
	if (!wall || !b->crates.n)
		return;
	buf_puts(out, "On the CPU along their paths, by crate: ");
	for (size_t i = 0; i < MIN(b->crates.n, (size_t)CRATES); i++) {
		buf_puts(out, i ? ", " : "");
		put_crate(out, &b->crates.v[i]);
		buf_printf(out, " %.1f %%", 100.0 * b->crates.v[i].ns / wall);
	}
	buf_puts(out, b->crates.n > CRATES ? ", ... of the wall time.\n" : " of the wall time.\n");
}

static void put_reasons(const struct blocks_job *job, const uint32_t *order, struct buf *out)
{
	const struct blocks *b = job->blocks;
	size_t shown = 0;

	if (!b->difference)
		return;
	buf_putc(out, '\n');
	plain_add(out, b->difference);
	buf_puts(out, "\n");
	for (size_t i = 0; i < b->rows.n && shown < ITEMS; i++) {
		const struct block_row *r = &b->rows.v[order[i]];

		if (!r->reason)
			continue;
		buf_puts(out, "  ");
		plain_add(out, r->name);
		buf_printf(out, ", %.2f ms: ", r->wall_ns / 1e6);
		plain_add(out, r->reason);
		buf_putc(out, '\n');
		shown++;
	}
}

void blockstext_write(const struct blocks_job *job, struct buf *out)
{
	const struct blocks *b = job->blocks;
	_cleanup_free_ uint32_t *order = mem_alloc((b->rows.n + 1) * sizeof(*order));
	size_t n = job->limit ? MIN(job->limit, b->rows.n) : b->rows.n;

	for (size_t i = 0; i < b->rows.n; i++)
		order[i] = i;
	if (b->rows.n > 1)
		qsort_r(order, b->rows.n, sizeof(*order), compare_slow, b->rows.v);
	put_summary(b, out);
	put_sum_of_crates(b, out);
	blockpartstext_put_all(job->parts, b, out);
	blocksubsystems_sum(job, out);
	buf_printf(out, "\n%12s  %9s  %5s  %9s  %6s", "block", "gas", "txs", "wall ms", "Ggas/s");
	put_heads(job, out);
	buf_printf(out, "  %9s  %s\n%46s  %s\n", "beside ms", "thread", "", "percent of the wall time");
	for (size_t i = 0; i < n; i++)
		put_row(job, &b->rows.v[job->by_time ? i : order[i]], out);
	if (n < b->rows.n)
		buf_printf(out, "%12s  %zu more: -n 0 shows all\n", "...", b->rows.n - n);
	put_reasons(job, order, out);
}

static void put_items(const struct blocks_job *job, const char *title, const struct block_items *items, uint64_t wall_ns,
		      struct buf *out)
{
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };
	enum { USED = 35 };

	if (!items->n)
		return;
	buf_printf(out, "\n%s\n", title);
	for (size_t i = 0; i < MIN(items->n, (size_t)2 * ITEMS); i++) {
		const struct block_item *x = &items->v[i];

		buf_printf(out, "%10.3f ms %5.1f %%  %-10s  ", x->ns / 1e6, str_percent(x->ns, wall_ns),
			   block_part_key(x->part));
		cleantext_last_function(&functions, out, x->name, job->columns, USED);
		if (x->under) {
			buf_puts(out, ", under ");
			cleantext_last_function(&functions, out, x->under, job->columns, USED);
		}
		if (x->file) {
			buf_puts(out, ": ");
			plain_add(out, x->file);
		}
		buf_putc(out, '\n');
	}
}

void blockstext_url(const struct blocks_job *job, size_t row, struct buf *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-~";
	const struct block_row *r = row < job->blocks->rows.n ? &job->blocks->rows.v[row] : NULL;

	buf_puts(out, "file://");
	for (const char *s = job->page; *s; s++)
		buf_printf(out, strchr(plain, *s) ? "%c" : "%%%02X", (unsigned char)*s);
	/* As ui/state.js reads it: nanoseconds from the start, and all of a thread's time where it is known. */
	if (r && r->wall_ns)
		buf_printf(out, "#range=%%5B%llu%%2C%llu%%5D%s", (unsigned long long)r->start_ns,
			   (unsigned long long)(r->start_ns + r->wall_ns),
			   select_has_waits(job->profile) ? "&what=wall" : "");
	else if (!r)
		buf_puts(out, "#view=overview");
}

/* Puts the awaits of tasks on the path, each below the one that it is within. */
static void put_hops(const struct block_row *r, struct buf *out)
{
	if (r->hops.n)
		buf_puts(out, "\nTasks on its path\n");
	for (size_t i = 0; i < r->hops.n; i++) {
		const struct block_hop *h = &r->hops.v[i];
		bool ended = h->kind == WAKEKIND_JOIN && h->by_task;

		if (h->ns * 100 < r->wall_ns)
			continue;
		buf_printf(out, "%10.3f ms  %*s", h->ns / 1e6, 2 * (int)h->depth, "");
		plain_add(out, h->type);
		buf_printf(out, " awaited %s", ended ? "the end" : wakekind_name(h->kind));
		if (h->waker && !wakekind_is_outer(h->kind)) {
			buf_puts(out, h->by_task ? " of " : " of thread ");
			plain_add(out, h->waker);
		}
		buf_putc(out, '\n');
	}
}

void blockstext_write_one(const struct blocks_job *job, size_t row, struct buf *out)
{
	const struct block_row *r = &job->blocks->rows.v[row];
	char text[32];

	plain_add(out, r->name);
	buf_printf(out, ": %.3f ms from %.6f s on", r->wall_ns / 1e6, r->start_ns / 1e9);
	if (r->block.known & BLOCK_GAS)
		buf_printf(out, ", %s gas", str_count(text, r->block.gas));
	if (r->block.known & BLOCK_TRANSACTIONS)
		buf_printf(out, ", %s transactions", str_count(text, r->block.transactions));
	if (ggas_per_s(r) > 0)
		buf_printf(out, ", %.3f Ggas/s", ggas_per_s(r));
	buf_puts(out, "\n");
	if (r->reason) {
		buf_puts(out, "slow: ");
		plain_add(out, r->reason);
		buf_putc(out, '\n');
	}
	if (r->split) {
		buf_puts(out, "\nWhere its time went, along thread ");
		plain_add(out, thread_name(job, r));
		buf_puts(out, "\n");
		for (int i = 0; i < BLOCK_PARTS; i++)
			if (r->ns[i])
				buf_printf(out, "%10.3f ms %5.1f %%  %s\n", r->ns[i] / 1e6,
					   100.0 * r->ns[i] / r->wall_ns, block_part_name(i));
		buf_printf(out, "%10.3f ms of it on threads that it waited for; %.3f ms on the CPU beside it\n",
			   r->followed_ns / 1e6, r->parallel_ns / 1e6);
		put_hops(r, out);
		blocksubsystems_list(r, out);
		put_items(job, "Functions", &r->functions, r->wall_ns, out);
		put_items(job, "Crates, on the CPU", &r->crates, r->wall_ns, out);
	}
	blockpartstext_put_one(job->parts, r, out);
	if (job->page) {
		buf_puts(out, "\nThe page, opened on this block:\n  ");
		blockstext_url(job, row, out);
		buf_putc(out, '\n');
		return;
	}
	if (!r->wall_ns)
		return;
	buf_printf(out, "\nThe page of this span:\n  gasflame report --from %.9f --to %.9f ", r->start_ns / 1e9,
		   (r->start_ns + r->wall_ns) / 1e9);
	plain_add_word(out, job->capture);
	buf_putc(out, '\n');
}

/* --- for programs --- */

static void put_json_known(struct json *j, const char *key, const struct block_row *r, uint32_t bit, uint64_t value)
{
	if (r->block.known & bit)
		json_put_uint(j, key, value);
	else
		json_put_null(j, key);
}

static void put_json_items(struct json *j, const char *key, const struct block_items *items)
{
	json_open_array(j, key);
	for (size_t i = 0; i < items->n; i++) {
		json_open_object(j, NULL);
		json_put_string(j, "part", block_part_key(items->v[i].part));
		json_put_string(j, "name", items->v[i].name);
		if (items->v[i].under)
			json_put_string(j, "under", items->v[i].under);
		if (items->v[i].file)
			json_put_string(j, "file", items->v[i].file);
		json_put_uint(j, "ns", items->v[i].ns);
		json_close(j);
	}
	json_close(j);
}

static void put_json_split(struct json *j, const struct block_row *r)
{
	if (!r->split) {
		json_put_null(j, "split");
		return;
	}
	json_open_object(j, "split");
	for (int i = 0; i < BLOCK_PARTS; i++) {
		char key[48];

		snprintf(key, sizeof(key), "%s_ns", block_part_key(i));
		json_put_uint(j, key, r->ns[i]);
	}
	json_close(j);
}

/* "tasks": [...], only where the path has some. */
static void put_json_hops(struct json *j, const struct block_row *r)
{
	if (!r->hops.n)
		return;
	json_open_array(j, "tasks");
	for (size_t i = 0; i < r->hops.n; i++) {
		const struct block_hop *h = &r->hops.v[i];

		json_open_object(j, NULL);
		json_put_string(j, "type", h->type);
		json_put_string(j, "awaited", wakekind_key(h->kind));
		json_put_string(j, "waker", h->waker);
		json_put_bool(j, "waker_is_task", h->by_task);
		json_put_uints(j, { "ns", h->ns }, { "depth", h->depth });
		json_close(j);
	}
	json_close(j);
}

static void put_json_row(const struct blocks_job *job, const struct block_row *r, struct json *j)
{
	const struct profile *p = job->profile;

	json_open_row(j, 0);
	json_put_string(j, "name", r->name);
	put_json_known(j, "number", r, BLOCK_NUMBER, r->block.number);
	json_put_uint(j, "count", block_group_count(r->name));
	put_json_known(j, "gas", r, BLOCK_GAS, r->block.gas);
	put_json_known(j, "transactions", r, BLOCK_TRANSACTIONS, r->block.transactions);
	json_put_uints(j, { "start_ns", r->start_ns }, { "wall_ns", r->wall_ns });
	json_put_fixed(j, "ggas_per_s", r->block.known & BLOCK_GAS && r->wall_ns ? ggas_per_s(r) : NAN, 6);
	json_put_string(j, "thread", thread_name(job, r));
	json_put_uint(j, "tid", r->thread < p->threads.n ? p->threads.v[r->thread].tid : 0);
	put_json_split(j, r);
	json_put_uints(j, { "followed_ns", r->followed_ns }, { "parallel_ns", r->parallel_ns });
	put_json_hops(j, r);
	json_put_bool(j, "slow", r->slow);
	json_put_string(j, "reason", r->reason);
	put_json_items(j, "functions", &r->functions);
	put_json_items(j, "crates", &r->crates);
	blockpartsjson_put(job->parts, r, j);
	put_json_items(j, "subsystems", &r->subsystems);
	put_json_items(j, "subsystem_totals", &r->subsystem_totals);
	json_close(j);
}

void blocksjson_write(const struct blocks_job *job, struct buf *out)
{
	const struct blocks *b = job->blocks;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_uints(&j, { "blocks", b->rows.n }, { "median_ns", b->median_ns }, { "slow", b->slow },
		       { "typical", b->typical });
	json_put_string(&j, "difference", b->difference);
	put_json_items(&j, "crates", &b->crates);
	json_open_array_line(&j, "rows", 0);
	for (size_t i = 0; i < b->rows.n; i++)
		put_json_row(job, &b->rows.v[i], &j);
	json_break(&j, 0);
	json_close(&j);
	json_end_line(&j);
}

/* Quotes around what needs them, doubled within; a leading = + - @ would be a formula to a spreadsheet. */
static void put_csv(struct buf *out, const char *text)
{
	_cleanup_(buf_done) struct buf clean = { 0 };
	const char *s;

	plain_add(&clean, text);
	buf_puts(&clean, "");
	s = clean.data;
	buf_putc(out, '"');
	if (*s && strchr("=+-@", *s))
		buf_putc(out, '\'');
	for (; *s; s++) {
		if (*s == '"')
			buf_putc(out, '"');
		buf_putc(out, *s);
	}
	buf_putc(out, '"');
}

/* An empty cell where it is not known. */
static void put_csv_known(struct buf *out, const char *before, const struct block_row *r, uint32_t bit, uint64_t value)
{
	buf_puts(out, before);
	if (r->block.known & bit)
		buf_printf(out, "%llu", (unsigned long long)value);
}

void blockscsv_write(const struct blocks_job *job, struct buf *out)
{
	const struct blocks *b = job->blocks;

	buf_puts(out, "number,gas,transactions,start_ns,wall_ns,ggas_per_s");
	for (int i = 0; i < BLOCK_PARTS; i++)
		buf_printf(out, ",%s_ns", block_part_key(i));
	buf_puts(out, ",followed_ns,parallel_ns,thread,reason");
	blocksubsystems_csv_heads(job, out);
	buf_putc(out, '\n');
	for (size_t i = 0; i < b->rows.n; i++) {
		const struct block_row *r = &b->rows.v[i];

		put_csv_known(out, "", r, BLOCK_NUMBER, r->block.number);
		put_csv_known(out, ",", r, BLOCK_GAS, r->block.gas);
		put_csv_known(out, ",", r, BLOCK_TRANSACTIONS, r->block.transactions);
		buf_printf(out, ",%llu,%llu,", (unsigned long long)r->start_ns, (unsigned long long)r->wall_ns);
		if (r->block.known & BLOCK_GAS && r->wall_ns)
			buf_printf(out, "%.6f", ggas_per_s(r));
		for (int k = 0; k < BLOCK_PARTS; k++)
			if (r->split)
				buf_printf(out, ",%llu", (unsigned long long)r->ns[k]);
			else
				buf_putc(out, ',');
		buf_printf(out, ",%llu,%llu,", (unsigned long long)r->followed_ns, (unsigned long long)r->parallel_ns);
		put_csv(out, thread_name(job, r));
		buf_putc(out, ',');
		put_csv(out, r->reason ? r->reason : "");
		blocksubsystems_csv(job, r, out);
		buf_putc(out, '\n');
	}
}
