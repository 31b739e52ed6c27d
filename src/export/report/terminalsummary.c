/*
 * terminalsummary.c - a summary before the page is open: the target of the recording, whether it can be trusted, where
 * the time went, in a dozen lines of a terminal.
 *
 * Works on the selection's stacks, without a call tree: a page of five million nodes has no room for a second
 * one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/wait/account.h"
#include "analyze/memory/heap.h"
#include "analyze/quality.h"
#include "analyze/wait/verdict.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/ownertext.h"
#include "profile/profile.h"

enum { ROWS = 5, CAUSES = 5, COLUMNS = 110 };

struct leaf {
	uint32_t ident;
	uint64_t self, total;
};

static void put_clean(struct buf *out, const char *text, size_t columns)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *text ? text : "[no name]");
	if (columns)
		cleantext_fit(out, clean.data, columns);
	else
		buf_puts(out, clean.data);
}

/* --- functions --- */

/* The identity at the leaf of a stack, PROFILE_NONE without one. */
static uint32_t leaf_of(struct idents *idents, const struct profile *p, uint32_t stack)
{
	const uint32_t *list;
	uint32_t n;

	/* A note at the leaf is no function of its own. */
	while (stack && p->frames.v[p->stacks.v[stack].frame].kind == FRAME_NOTE && p->stacks.v[stack].parent)
		stack = p->stacks.v[stack].parent;
	if (!stack)
		return PROFILE_NONE;
	list = idents_of_frame(idents, p->stacks.v[stack].frame, &n);
	return list[n - 1];
}

static int compare_leaves(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	return ORDER(y->self, x->self) ?: ORDER(x->ident, y->ident);
}

/* The heaviest leaves first; returns how many there are. */
static size_t find_leaves(const struct export_job *job, struct idents *idents, struct leaf *rows)
{
	const struct selection *s = job->selection;
	VEC(struct leaf) all = { 0 };
	size_t n;

	for (size_t i = 0; i < s->entries.n; i++) {
		uint32_t id = leaf_of(idents, job->profile, s->entries.v[i].stack);

		while (id != PROFILE_NONE && all.n <= id) {
			struct leaf new = { .ident = all.n };

			vec_push(&all, new);
		}
		if (id != PROFILE_NONE)
			all.v[id].self += s->entries.v[i].weight.value;
	}
	vec_sort(&all, compare_leaves);
	n = MIN(all.n, ROWS);
	if (n)
		memcpy(rows, all.v, n * sizeof(*rows));
	vec_done(&all);
	while (n && !rows[n - 1].self)
		n--;
	return n;
}

/* Computes the totals of the rows: a bit for each row that is on a stack. Parents come before their
 * children. */
static void add_totals(const struct export_job *job, struct idents *idents, struct leaf *rows, size_t n)
{
	const struct profile *p = job->profile;
	const struct selection *s = job->selection;
	_cleanup_free_ uint8_t *on = mem_alloc(p->stacks.n + 1), *of = mem_alloc(p->frames.n + 1);

	for (size_t i = 0; i < p->frames.n; i++) {
		uint32_t width;
		const uint32_t *list = idents_of_frame(idents, i, &width);

		for (uint32_t k = 0; k < width; k++)
			for (size_t r = 0; r < n; r++)
				of[i] |= (list[k] == rows[r].ident) << r;
	}
	for (size_t i = 1; i < p->stacks.n; i++)
		on[i] = on[p->stacks.v[i].parent] | of[p->stacks.v[i].frame];
	for (size_t i = 0; i < s->entries.n; i++)
		for (size_t r = 0; r < n; r++)
			if (on[s->entries.v[i].stack] >> r & 1)
				rows[r].total += s->entries.v[i].weight.value;
}

static void put_functions(const struct export_job *job, struct buf *out)
{
	const struct selection *s = job->selection;
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };
	struct leaf rows[ROWS];
	struct idents idents;
	char text[32], self[32], total[32];
	size_t n;

	idents_init(&idents, job->profile, job->options.no_inline ? IDENTS_NO_INLINE : 0);
	n = find_leaves(job, &idents, rows);
	add_totals(job, &idents, rows, n);
	put_clean(out, export_event(job), 0);
	buf_printf(out, " %s%s\n", export_value(text, job, s->all.value),
	           n ? ": of it in the function itself, and with what it calls" : "");
	for (size_t i = 0; i < n; i++) {
		unsigned used = 29, columns = job->options.columns ? job->options.columns : COLUMNS;

		buf_printf(out, "%8s %s  %8s  ", str_share(self, str_percent(rows[i].self, s->all.value)),
		           str_right(text, export_value(text, job, rows[i].self), 9), str_share(total, str_percent(rows[i].total, s->all.value)));
		cleantext_last_function(&functions, out, idents.list.v[rows[i].ident].name, MAX(columns, used + 30), used);
		buf_putc(out, '\n');
	}
	idents_done(&idents);
}

/* --- the account and the verdict --- */

/* "12 threads, 144 s: idle 60 %, on CPU 32 %, ..." */
static void put_account(const struct account_row *r, struct buf *out)
{
	bool said[CAUSE_COUNT] = { 0 };
	char count[32], wall[32];

	if (!r->wall_ns)
		return;
	buf_printf(out, "%s thread%s, %s:", str_count(count, r->threads), r->threads == 1 ? "" : "s",
	           str_duration(wall, r->wall_ns));
	for (int k = 0; k < CAUSES; k++) {
		int best = -1;

		for (int i = 0; i < CAUSE_COUNT; i++)
			if (!said[i] && r->ns[i] && (best < 0 || r->ns[i] > r->ns[best]))
				best = i;
		if (best < 0)
			break;
		said[best] = true;
		buf_printf(out, "%s %s %.1f %%", k ? "," : "", cause_name(best),
		           100.0 * r->ns[best] / r->wall_ns);
	}
	buf_putc(out, '\n');
}

/* Broken between words. */
static void put_sentence(struct buf *out, const char *text, size_t columns)
{
	struct buf clean = { 0 };
	size_t at = 0;

	cleantext_put(&clean, text);
	for (char *rest = clean.data, *word; (word = strsep(&rest, " "));) {
		size_t n = cleantext_columns(word);

		if (at && at + 1 + n > columns) {
			buf_putc(out, '\n');
			at = 0;
		}
		buf_printf(out, "%s%s", at ? " " : "", word);
		at += n + !!at;
	}
	buf_putc(out, '\n');
	buf_done(&clean);
}

static void put_heap(const struct export_job *job, size_t columns, struct buf *out)
{
	struct heap_figures f;

	heap_measure(&f, job->profile, &job->selection->options, job->options.own);
	for (size_t i = 0; i < f.verdict.n; i++)
		put_sentence(out, f.verdict.v[i], columns);
	heap_done(&f);
}

void terminalsummary_put(const struct export_job *job, struct buf *out)
{
	const struct profile *p = job->profile;
	size_t columns = job->options.columns ? job->options.columns : COLUMNS;

	if (*profile_str(p, p->target)) {
		put_clean(out, profile_str(p, p->target), 0);
		buf_puts(out, ", ");
	}
	export_when(job, out);
	buf_putc(out, '\n');
	ownertext_put(p, out);
	quality_line(job->quality, job->selection, out);
	buf_putc(out, '\n');
	if (job->account)
		put_account(&job->account->total, out);
	if (job->selection->all.value)
		put_functions(job, out);
	for (size_t i = 0; job->verdict && i < job->verdict->sentences.n; i++)
		put_sentence(out, job->verdict->sentences.v[i], columns);
	put_heap(job, columns, out);
}
