/*
 * difftext.c - the comparison for the terminal: the verdict, the two recordings, a row a function.
 *
 * "*" marks significant rows: where there are colours, red is more, blue is less.
 */
#include "export/diff/difftext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "profile/profile.h"

enum { PIPE_COLUMNS = 110, NAME_MINIMUM = 16, FIXED_SHARES = 73, FIXED_RATES = 77 };

#define DIM "\033[2m"
#define RED "\033[31m"
#define BLUE "\033[34m"

static const char *paint(const struct diff_job *job, const char *colour)
{
	return job->options.colour ? colour : "";
}

/* A clean line, cut to the width. */
static void put_line(const struct diff_job *job, struct buf *out, const char *text)
{
	unsigned columns = job->options.columns ? job->options.columns : PIPE_COLUMNS;
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, text);
	cleantext_cut(out, clean.data, columns);
	buf_putc(out, '\n');
}

/* Words that go on in the next line. */
static void put_wrapped(const struct diff_job *job, struct buf *out, const char *text)
{
	unsigned columns = job->options.columns ? job->options.columns : PIPE_COLUMNS, used = 0;

	for (const char *word = text; *word;) {
		size_t n = strcspn(word, " ");
		struct buf one = { 0 };
		unsigned width;

		buf_add(&one, word, n);
		width = cleantext_columns(one.data);
		if (used && used + 1 + width > columns) {
			buf_putc(out, '\n');
			used = 0;
		}
		if (used)
			buf_putc(out, ' ');
		buf_puts(out, one.data);
		used += width + (used ? 1 : 0);
		buf_done(&one);
		word += n + strspn(word + n, " ");
	}
	buf_putc(out, '\n');
}

static void put_side(const struct diff_job *job, struct buf *out, bool after)
{
	const struct export_job *side = after ? job->after : job->before;
	const char *target = profile_str(side->profile, side->profile->target);
	_cleanup_(buf_done) struct buf line = { 0 };
	char count[32];

	buf_printf(&line, "%s %s: %s%s", after ? "after " : "before",
		   after ? job->name_after : job->name_before, target, *target ? ", " : "");
	export_when(side, &line);
	buf_printf(&line, ", %s %s", str_count(count, side->selection->all.samples),
		   quality_noun(side->selection, side->selection->all.samples));
	put_line(job, out, line.data);
}

/* A value per second in the event's unit. */
static const char *rate_text(char out[32], const struct diff_job *job, double value)
{
	uint64_t rounded = value > 0 && value < 1e18 ? llround(value) : 0;

	return export_value(out, job->diff->samples_a ? job->before : job->after, rounded);
}

static void put_whole(const struct diff_job *job, struct buf *out)
{
	const struct diff *d = job->diff;
	const struct diff_value *v = &d->all;
	_cleanup_(buf_done) struct buf line = { 0 };
	char a[32], b[32];

	buf_printf(&line, "%s, the whole: %s %sbefore, %s after",
		   export_event(d->samples_a ? job->before : job->after), rate_text(a, job, v->a),
		   d->timeless ? "" : "each second ", rate_text(b, job, v->b));
	if (d->timeless)
		buf_puts(&line, "; without times, noise is judged by the counts alone");
	else if (v->tested && v->a > 0)
		buf_printf(&line, " (%+.1f %%, 95 %%: %+.1f to %+.1f%s)", diff_percent(v, v->delta),
			   diff_percent(v, v->low), diff_percent(v, v->high),
			   v->significant ? ", changed" : "");
	put_line(job, out, line.data);
	line.n = 0;
	if (!d->normalized)
		buf_puts(&line, d->timeless ? "before and after are values as they are"
					    : "before and after are values each second of the recording");
	else if (d->scaled)
		buf_printf(&line, "before and after are shares of the whole; changes are at equal work "
			   "(after x %.3f)", d->scale);
	else
		buf_puts(&line, "before and after are shares of the whole, and so are changes");
	put_line(job, out, line.data);
}

static void put_amount(const struct diff_job *job, struct buf *out, double value)
{
	char text[32];

	if (job->diff->normalized)
		buf_printf(out, "%7s ", str_share(text, value));
	else
		buf_printf(out, "%s ", str_right(text, rate_text(text, job, value), 8));
}

static void percent_text(char out[16], double percent)
{
	if (percent >= 9999.5)
		snprintf(out, 16, "x%.3g", percent / 100 + 1);
	else
		snprintf(out, 16, fabs(percent) >= 999.5 ? "%+.0f" : "%+.1f", percent);
}

/* "+20.3 %*" and, of self, its interval. */
static void put_change(const struct diff_job *job, struct buf *out, const struct diff_row *r, bool total)
{
	const struct diff_value *v = total ? &r->total : &r->self;
	char change[24] = "-", low[16], high[16], interval[40] = "";

	if (v->a <= 0 && v->b <= 0) {
		;
	} else if (r->only_a || r->only_b) {
		snprintf(change, sizeof(change), "%s", r->only_a ? "gone" : "new");
	} else if (v->a <= 0) {
		snprintf(change, sizeof(change), "from 0"); /* it was there, with no time of its own */
	} else {
		percent_text(change, diff_percent(v, v->delta));
		if (!strchr(change, 'x'))
			snprintf(change + strlen(change), 3, " %%");
		percent_text(low, fmax(-100, diff_percent(v, v->low)));
		percent_text(high, diff_percent(v, v->high));
		snprintf(interval, sizeof(interval), "%s .. %s", low, high);
	}
	if (r->outside)
		snprintf(interval, sizeof(interval), "not tested");
	else if (!v->tested && (v->a > 0 || v->b > 0))
		snprintf(interval, sizeof(interval), "few samples");
	buf_printf(out, "%s%8s%s%s ", paint(job, v->significant ? v->delta > 0 ? RED : BLUE : DIM), change,
		   v->significant ? "*" : " ", paint(job, TABLE_NORMAL));
	if (!total)
		buf_printf(out, "%s%-16s%s ", paint(job, v->significant ? "" : DIM), interval,
			   paint(job, v->significant ? "" : TABLE_NORMAL));
}

static const char *noun(const struct diff_job *job)
{
	return job->options.grouped ? "subsystem" : "function";
}

static void put_name(const struct diff_job *job, struct cleantext_set *functions, struct buf *out, const struct diff_row *r)
{
	unsigned columns = job->options.columns ? job->options.columns : PIPE_COLUMNS;
	unsigned fixed = job->diff->normalized ? FIXED_SHARES : FIXED_RATES;
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *r->name ? r->name : "[no name]");
	cleantext_function(functions, out, clean.data, columns > fixed + NAME_MINIMUM ? columns - fixed : NAME_MINIMUM);
}

static void put_heading(const struct diff_job *job, struct buf *out, size_t shown)
{
	const struct diff *d = job->diff;
	int w = d->normalized ? 7 : 8;
	char a[32], b[32];

	buf_printf(out, "\n%sBy %s%s, largest change of %s first", paint(job, TABLE_BOLD), noun(job), paint(job, TABLE_NORMAL),
		   job->options.order == TOP_BY_TOTAL ? "total" : "self");
	if (shown < d->rows.n)
		buf_printf(out, ", the first %s of %s (--limit 0 shows all)", str_count(a, shown),
			   str_count(b, d->rows.n));
	/* A column of numbers ends where its heading ends. */
	buf_printf(out, "\n%-*stotal\n", 2 * w + 29, "self");
	buf_printf(out, "%*s %*s %8s  %-16s %*s %*s %8s  %s\n", w, "before", w, "after", "change", "95 %", w,
		   "before", w, "after", "change", noun(job));
}

static void put_table(const struct diff_job *job, struct buf *out)
{
	const struct diff *d = job->diff;
	size_t limit = job->options.limit, shown = limit && limit < d->rows.n ? limit : d->rows.n;
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };

	if (!d->rows.n)
		return;
	put_heading(job, out, shown);
	for (size_t i = 0; i < shown; i++) {
		const struct diff_row *r = &d->rows.v[i];

		put_amount(job, out, r->self.a);
		put_amount(job, out, r->self.b);
		put_change(job, out, r, false);
		put_amount(job, out, r->total.a);
		put_amount(job, out, r->total.b);
		put_change(job, out, r, true);
		put_name(job, &functions, out, r);
		buf_putc(out, '\n');
	}
}

int difftext_write(const struct diff_job *job, struct buf *out, struct err *err)
{
	_cleanup_(buf_done) struct buf verdict = { 0 };

	difftext_verdict(job->diff, &verdict);
	buf_puts(out, paint(job, TABLE_BOLD));
	put_wrapped(job, out, verdict.data);
	buf_puts(out, paint(job, TABLE_NORMAL));
	buf_putc(out, '\n');
	put_side(job, out, false);
	put_side(job, out, true);
	put_whole(job, out);
	put_table(job, out);
	return 0;
}
