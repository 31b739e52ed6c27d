/*
 * comparetext.c - a comparison of runs: for the terminal, as Markdown for a pull request, as JSON.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/compare.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/bench/bench.h"
#include "export/report/cleantext.h"

static const char *const words[] = {
	[COMPARE_SAME] = "no change", [COMPARE_BETTER] = "better", [COMPARE_WORSE] = "worse",
	[COMPARE_MIXED] = "mixed",    [COMPARE_UNKNOWN] = "unknown",
};

/* Returns the most telling figure for the verdict: one that supports it, the median before the others. */
static enum compare_figure telling_figure(const struct compare_row *row)
{
	static const enum compare_figure order[] = { COMPARE_P50, COMPARE_MEAN, COMPARE_P90, COMPARE_P99 };

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (row->word[order[i]] == row->verdict)
			return order[i];
	return COMPARE_P50;
}

static const char *word_of(const struct compare_row *row)
{
	bool times = !strcmp(row->unit, "s"), rate = runs_more_is_better(row->unit);

	switch (row->verdict) {
	case COMPARE_BETTER:
		return times || rate ? "faster" : "less";
	case COMPARE_WORSE:
		return times || rate ? "slower" : "more";
	default:
		return words[row->verdict];
	}
}

/* Gas is the amount of work: more or less of it is neither good nor bad, but shows that the work was not
 * the same. */
static const char *row_word(const struct compare_row *row, enum compare_figure f)
{
	enum compare_word word = row->word[f];

	if (word != COMPARE_BETTER && word != COMPARE_WORSE)
		return "";
	if (!strcmp(row->unit, "gas"))
		return word == COMPARE_BETTER ? "less" : "more";
	return words[word];
}

static char *percent(char out[32], double x)
{
	if (isfinite(x))
		snprintf(out, 32, "%+.*f %%", fabs(x) < 0.0995 ? 2 : 1, x * 100);
	else
		snprintf(out, 32, "-");
	return out;
}

/* Which part of the time has most of a change that is sure. */
static void put_explanation(const struct comparison *c, struct buf *out)
{
	const struct compare_row *part = compare_explain(c), *all = &c->rows.v[0];
	double x, whole = fabs(all->level[1][COMPARE_MEAN] - all->level[0][COMPARE_MEAN]);
	char more[32], of[32];

	if (!part)
		return;
	x = fabs(part->level[1][COMPARE_MEAN] - part->level[0][COMPARE_MEAN]);
	bench_value(more, x, part->unit);
	bench_value(of, whole, all->unit);
	/* Sums over threads may be more than the time in which they were. */
	if (x <= 1.05 * whole)
		buf_printf(out, "; most of it is %s: %s of %s (mean)", part->name, more, of);
	else
		buf_printf(out, "; what changes most with it is %s: %s in all threads (mean)", part->name, more);
}

void compare_sentence(const struct comparison *c, struct buf *out)
{
	const struct compare_row *row = &c->rows.v[0];
	enum compare_figure f = telling_figure(row);
	const struct bootstrap_interval *i = &row->change[f];
	char low[32], high[32], size[32];

	percent(low, i->low);
	percent(high, i->high);
	snprintf(size, sizeof(size), "%.2f %%", fabs(i->estimate) * 100);
	switch (row->verdict) {
	case COMPARE_BETTER:
	case COMPARE_WORSE:
		buf_printf(out, "%s is %s %s (%s; %g %% interval %s to %s)", row->name, size, word_of(row),
			   compare_figure_names[f], c->confidence * 100, low, high);
		put_explanation(c, out);
		break;
	case COMPARE_MIXED:
		buf_printf(out, "%s is better in one figure and worse in another: see the table", row->name);
		break;
	case COMPARE_SAME:
		buf_printf(out, "%s: no change beyond %g %% that is sure (%s %s; %g %% interval %s to %s)",
			   row->name, compare_floor(c, f) * 100, compare_figure_names[f],
			   percent(size, i->estimate), c->confidence * 100, low, high);
		break;
	case COMPARE_UNKNOWN:
		if (c->clusters[0] < BOOTSTRAP_CLUSTERS_MIN || c->clusters[1] < BOOTSTRAP_CLUSTERS_MIN)
			buf_printf(out,
				   "%s: too few runs for a verdict (%zu and %zu, at least %d are needed)",
				   row->name, c->clusters[0], c->clusters[1], BOOTSTRAP_CLUSTERS_MIN);
		else
			buf_printf(out, "%s: no verdict, since it is 0 on the first side", row->name);
		break;
	}
}

/* Explains the interval and its limits. */
static void put_design(const struct comparison *c, struct buf *out)
{
	switch (c->design) {
	case COMPARE_ROUNDS:
		buf_printf(out, "%zu runs of each, made in turn", c->clusters[0]);
		break;
	case COMPARE_INDEPENDENT:
		buf_printf(out,
			   "%zu and %zu runs, one side after the other: what changed on the machine in "
			   "between is in the difference (gasflame bench -- A ::: B makes them in turn)",
			   c->clusters[0], c->clusters[1]);
		break;
	case COMPARE_PAIRS:
		buf_printf(out, "%zu pairs of runs", c->clusters[0]);
		break;
	case COMPARE_BLOCKS:
		buf_printf(out,
			   "%zu blocks of one run of each: how runs differ among themselves is not in the "
			   "interval (give more pairs of files)",
			   c->clusters[0]);
		break;
	case COMPARE_OTHER_BLOCKS:
		buf_printf(out,
			   "%zu and %zu blocks, none of which both sides have: what differs from block to block is in the "
			   "interval, and what changed between the recordings in the difference",
			   c->clusters[0], c->clusters[1]);
		break;
	}
}

static void put_padded(struct buf *out, const char *text, int columns)
{
	int wide = (int)cleantext_columns(text);

	buf_printf(out, "%*s%s", wide < columns ? columns - wide : 1, "", text);
}

static void put_interval(char out[80], const struct bootstrap_interval *i)
{
	char low[32], high[32];

	if (isnan(i->low))
		snprintf(out, 80, "-");
	else
		snprintf(out, 80, "%s to %s", percent(low, i->low), percent(high, i->high));
}

static void text_row(const struct compare_row *row, enum compare_figure f, struct buf *out)
{
	char a[32], b[32], change[32], interval[80];

	put_interval(interval, &row->change[f]);
	buf_printf(out, "  %-20.20s %-4s", f ? "" : row->name, compare_figure_names[f]);
	put_padded(out, bench_value(a, row->level[0][f], row->unit), 15);
	put_padded(out, bench_value(b, row->level[1][f], row->unit), 15);
	put_padded(out, percent(change, row->change[f].estimate), 11);
	put_padded(out, interval, 24);
	buf_printf(out, "%s%s\n", *row_word(row, f) ? "  " : "", row_word(row, f));
}

static bool shown(const struct compare_row *row, size_t f)
{
	return isfinite(row->level[0][f]) && isfinite(row->level[1][f]);
}

void comparetext_put(const struct comparison *c, const struct compare_names *names, struct buf *out)
{
	const char *const sides[] = { names->a, names->b };

	compare_sentence(c, out);
	buf_puts(out, "\n");
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(buf_done) struct buf clean = { 0 };

		cleantext_put(&clean, sides[i]);
		buf_printf(out, "  %c  ", "AB"[i]);
		cleantext_cut(out, clean.data ? clean.data : "", 100);
		buf_putc(out, '\n');
	}
	buf_puts(out, "  ");
	put_design(c, out);
	buf_printf(out, "\n\n  %-25s%15s%15s%11s%24s\n", "", "A", "B", "change", "interval");
	for (size_t i = 0; i < c->rows.n; i++)
		for (size_t f = 0; f < COMPARE_FIGURES; f++)
			/* Of what only explains, the median and the mean will do. */
			if (shown(&c->rows.v[i], f) && (!i || f <= COMPARE_P50))
				text_row(&c->rows.v[i], f, out);
}

/* --- Markdown --- */

/* Escapes characters that Markdown or HTML would interpret. */
static void put_markdown(struct buf *out, const char *s)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, s);
	for (const char *p = clean.data ? clean.data : ""; *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&' || *p == '@' || *p == '|' || *p == '#') {
			buf_printf(out, "&#%d;", *p);
			continue;
		}
		if (strchr("\\`*_{}[]()!~", *p))
			buf_putc(out, '\\');
		buf_putc(out, *p);
	}
}

void comparemarkdown_put(const struct comparison *c, const struct compare_names *names, struct buf *out)
{
	_cleanup_(buf_done) struct buf sentence = { 0 };
	char a[32], b[32], change[32], interval[80];

	compare_sentence(c, &sentence);
	buf_puts(out, "**");
	put_markdown(out, sentence.data);
	buf_puts(out, "**\n\nA: ");
	put_markdown(out, names->a);
	buf_puts(out, "  \nB: ");
	put_markdown(out, names->b);
	buf_puts(out, "  \n");
	put_design(c, out);
	buf_puts(out, "\n\n| | | A | B | change | interval | |\n|---|---|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < c->rows.n; i++)
		for (size_t f = 0; f < COMPARE_FIGURES; f++) {
			const struct compare_row *row = &c->rows.v[i];

			if (!shown(row, f) || (i && f > COMPARE_P50))
				continue;
			buf_puts(out, "| ");
			put_markdown(out, f ? "" : row->name);
			put_interval(interval, &row->change[f]);
			buf_printf(out, " | %s | %s | %s | %s | %s | %s |\n", compare_figure_names[f],
				   bench_value(a, row->level[0][f], row->unit),
				   bench_value(b, row->level[1][f], row->unit),
				   percent(change, row->change[f].estimate), interval, row_word(row, f));
		}
}

/* --- JSON --- */

/* A metric that was not measured has no member. */
static void put_number(struct json *j, const char *key, double x)
{
	if (isfinite(x))
		json_put_real(j, key, x, 17);
}

static void put_pair(struct json *j, const char *key, const size_t n[2])
{
	json_open_array(j, key);
	json_put_uint(j, NULL, n[0]);
	json_put_uint(j, NULL, n[1]);
	json_close(j);
}

static void json_row(const struct compare_row *row, struct json *j)
{
	json_open_row(j, 0);
	json_put_string(j, "name", row->name);
	json_put_string(j, "unit", row->unit);
	json_put_string(j, "verdict", words[row->verdict]);
	put_pair(j, "n", row->n);
	json_open_object(j, "figures");
	for (size_t f = 0; f < COMPARE_FIGURES; f++) {
		if (!shown(row, f))
			continue;
		json_open_object(j, compare_figure_names[f]);
		json_put_string(j, "verdict", words[row->word[f]]);
		put_number(j, "a", row->level[0][f]);
		put_number(j, "b", row->level[1][f]);
		put_number(j, "change", row->change[f].estimate);
		put_number(j, "low", row->change[f].low);
		put_number(j, "high", row->change[f].high);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

void comparejson_put(const struct comparison *c, const struct compare_names *names, struct buf *out)
{
	static const char *const designs[] = { "rounds", "independent", "pairs", "blocks", "other blocks" };
	_cleanup_(buf_done) struct buf sentence = { 0 };
	struct json j = json_begin(out);

	compare_sentence(c, &sentence);
	json_open_object(&j, NULL);
	json_put_string(&j, "gasflame", "compare");
	json_put_uint(&j, "version", 1);
	json_put_string(&j, "a", names->a);
	json_put_string(&j, "b", names->b);
	json_put_string(&j, "sentence", sentence.data);
	json_put_string(&j, "verdict", words[c->rows.v[0].verdict]);
	json_put_string(&j, "design", designs[c->design]);
	put_pair(&j, "clusters", c->clusters);
	json_put_real(&j, "confidence", c->confidence, 6);
	json_open_array(&j, "metrics");
	for (size_t i = 0; i < c->rows.n; i++)
		json_row(&c->rows.v[i], &j);
	json_close(&j);
	json_end_line(&j);
}
