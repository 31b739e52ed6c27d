/*
 * diffverdict.c - the verdict of a comparison, in a sentence.
 */
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text/str.h"
#include "export/diff/difftext.h"
#include "export/report/cleantext.h"

enum { NAMED = 3, NAME_COLUMNS = 60 };

static void put_name(struct buf *b, const char *name)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *name ? name : "[no name]");
	buf_putc(b, '`');
	cleantext_fit(b, clean.data, NAME_COLUMNS);
	buf_putc(b, '`');
}

static const char *digits(double percent)
{
	return fabs(percent) < 9.95 ? "%.1f" : "%.0f";
}

static void put_percent(struct buf *b, double percent)
{
	char text[32];

	snprintf(text, sizeof(text), fabs(percent) < 99.95 ? "%.1f" : "%.0f", percent);
	buf_puts(b, text);
}

/* "`f` takes 20.3 % more (self, 95 %: 18.1 to 22.6)" */
static void put_change(struct buf *b, const struct diff_row *r, bool total, bool verb)
{
	const struct diff_value *v = total ? &r->total : &r->self;
	double change = diff_percent(v, v->delta), sign = change < 0 ? -1 : 1;
	double low = diff_percent(v, v->delta < 0 ? -v->high : v->low);
	double high = diff_percent(v, v->delta < 0 ? -v->low : v->high);

	put_name(b, r->name);
	if (r->only_a || r->only_b) {
		buf_puts(b, verb ? r->only_a ? " is gone" : " is new" : r->only_a ? " gone" : " new");
		return;
	}
	if (v->a <= 0) {
		buf_puts(b, " has time of its own now");
		return;
	}
	buf_puts(b, verb ? " takes " : " ");
	put_percent(b, sign * change);
	buf_printf(b, " %% %s (%s, 95 %%: ", change < 0 ? "less" : "more", total ? "total" : "self");
	put_percent(b, low);
	buf_puts(b, " to ");
	put_percent(b, v->delta < 0 ? fmin(high, 100) : high);
	buf_putc(b, ')');
}

/* Nothing changed: puts the change of the largest function that would have shown. */
static void put_blindness(struct buf *b, const struct diff *d)
{
	const struct diff_row *largest = NULL;
	char text[32];
	double half;

	for (size_t i = 0; i < d->rows.n; i++)
		if (d->rows.v[i].self.tested && (!largest || d->rows.v[i].self.a > largest->self.a))
			largest = &d->rows.v[i];
	if (!largest || largest->self.a <= 0)
		return;
	/* A significant change among many rows lies about twice as far out as the edge of an interval. */
	half = fmax(5, diff_percent(&largest->self, largest->self.high - largest->self.low));
	if (half > 1000)
		return;
	snprintf(text, sizeof(text), digits(half), half);
	buf_printf(b, "; a change of about %s %% of ", text);
	put_name(b, largest->name);
	buf_puts(b, " would have shown");
}

static void put_list(struct buf *b, const struct diff *d, bool total, size_t n)
{
	size_t named = 0;

	for (size_t i = 0; i < d->rows.n && named < NAMED; i++) {
		const struct diff_row *r = &d->rows.v[i];

		if (!(total ? r->total.significant : r->self.significant))
			continue;
		buf_puts(b, named++ ? ", " : "");
		put_change(b, r, total, n == 1);
	}
	if (n > named)
		buf_printf(b, " and %zu more", n - named);
}

void difftext_verdict(const struct diff *d, struct buf *out)
{
	size_t totals = d->significant - d->significant_self;
	char text[32];

	if (!d->samples_a || !d->samples_b) {
		buf_printf(out, "nothing to compare: there are no samples %s",
			   d->samples_a ? "after" : d->samples_b ? "before" : "at all");
		return;
	}
	if (!d->tested) {
		buf_printf(out, "too few samples to tell anything (%s before, ",
			   str_count(text, d->samples_a));
		buf_printf(out, "%s after): record longer, or at a higher rate",
			   str_count(text, d->samples_b));
		return;
	}
	if (!d->significant) {
		buf_puts(out, "nothing changed beyond noise");
		put_blindness(out, d);
		return;
	}
	if (d->significant_self > 1)
		buf_printf(out, "%zu %s changed: ", d->significant_self, d->grouped ? "subsystems" : "functions");
	if (d->significant_self) {
		put_list(out, d, false, d->significant_self);
		if (d->significant_self == 1)
			buf_puts(out, totals ? "; of the others only totals changed" :
					       ", nothing else changed");
	} else {
		buf_puts(out, "no function's own time changed, but with what they call: ");
		put_list(out, d, true, totals);
	}
	if (d->scaled && fabs(d->scale - 1) >= 0.005) {
		buf_puts(out, ". At equal work the whole takes ");
		put_percent(out, fabs(100 * (d->scale - 1)));
		buf_printf(out, " %% %s", d->scale > 1 ? "more" : "less");
	}
}
