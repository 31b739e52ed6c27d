#include "export/section/cost/costtext.h"

#include <stdio.h>
#include <string.h>

#include "analyze/cost.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/thinning.h"

enum { SPANS_EACH = 3 }; /* more than this are told as one */

static void put_row(const struct cost_row *r, struct buf *out)
{
	char events[32], each[32], recorded[32] = "";

	buf_puts(out, "  ");
	cleantext_put(out, r->name);
	for (size_t n = cleantext_columns(r->name); n < 12; n++)
		buf_putc(out, ' ');
	if (r->events && (r->recorded || r->others_ns))
		snprintf(recorded, sizeof(recorded), "%.0f %%", MIN(100, str_percent(r->recorded, r->events)));
	buf_printf(out, " %13s %9s %12s %8.2f %%", r->events ? str_count(events, r->events) : "", recorded,
		   r->events ? str_count(each, r->ns / r->events) : "", r->percent);
	if (r->others_ns)
		buf_printf(out, " %9.2f %%", r->others_percent);
	buf_putc(out, '\n');
}

/* How the costs of runs were found that the kernel's statistics do not show. */
static void put_ways(const struct cost *c, bool assumed, struct buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < c->ways.n; i++) {
		const struct cost_way *w = &c->ways.v[i];

		if (w->assumed != assumed)
			continue;
		buf_puts(out, n++ ? ", " : assumed ? "  assumed beside that: " : "  measured at the start, and added to each run of a program: ");
		cleantext_put(out, w->name);
		buf_printf(out, " %llu ns", (unsigned long long)w->ns);
	}
	if (n)
		buf_putc(out, '\n');
}

static void put_base(const struct cost *c, struct buf *out)
{
	if (c->base == COST_OF_CPU)
		buf_printf(out, "of a tenth of a CPU (the target used %.2f CPUs)", c->cpus);
	else if (c->base == COST_OF_EITHER)
		buf_puts(out, "of the target's CPU time, or of a tenth of a CPU while it used less");
	else
		buf_puts(out, "of the target's CPU time");
	if (c->base != COST_OF_CPU && c->cpus >= 0)
		buf_printf(out, " (%.2f CPUs)", c->cpus);
}


static void put_time(const struct cost_span *s, struct buf *out)
{
	buf_printf(out, " from %.1f to %.1f s", s->from_ns / 1e9, s->to_ns / 1e9);
}

/* n spans of one collector. */
static void put_spans(const struct cost_span *s, size_t n, struct buf *out)
{
	const struct cost_span *most = s;

	buf_puts(out, "  ");
	cleantext_put(out, s->collector);
	buf_puts(out, ": ");
	if (n > SPANS_EACH) {
		for (size_t i = 1; i < n; i++)
			if (s[i].one_in > most->one_in)
				most = &s[i];
		thinning_words(out, most->collector, most->one_in);
		buf_printf(out, " at most, in %zu steps from %.1f to %.1f s", n, s[0].from_ns / 1e9, s[n - 1].to_ns / 1e9);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_printf(out, ", 1 in %llu", (unsigned long long)s[i].one_in);
		else
			thinning_words(out, s->collector, s->one_in);
		put_time(&s[i], out);
	}
}

static void put_thinned(const struct cost *c, struct buf *out)
{
	size_t n;

	for (size_t i = 0; i < c->spans.n; i += n) {
		const struct cost_span *s = &c->spans.v[i];

		for (n = 1; i + n < c->spans.n && !strcmp(s[n].collector, s->collector);)
			n++;
		put_spans(s, n, out);
		for (size_t k = 0; k < c->rows.n; k++)
			if (!strcmp(c->rows.v[k].name, s->collector) && c->rows.v[k].sampled)
				buf_printf(out, "; shares by stack of that time within %.1f points (95 %%)",
					   cost_error_points(&c->rows.v[k]));
		buf_putc(out, '\n');
	}
}

/* The limit could not be kept: what would have kept it. */
static void put_floor(const struct cost *c, struct buf *out)
{
	_cleanup_free_ struct thinning_cost *costs = mem_alloc(MAX(c->rows.n, 1) * sizeof(*costs));
	_cleanup_(buf_done) struct buf advice = { 0 };
	bool others = c->others_percent > c->percent;
	size_t n = 0;

	if (c->floor <= 0)
		return;
	buf_printf(out, "  the least that was possible%s: %.2f %%", others ? " to others" : "", c->floor);
	for (size_t i = 0; i < c->rows.n; i++)
		if (c->rows.v[i].least_ns) {
			buf_puts(out, "; an event of ");
			cleantext_put(out, c->rows.v[i].name);
			buf_printf(out, " costs %.2f µs at least", c->rows.v[i].least_ns / 1e3);
			break;
		}
	buf_putc(out, '\n');
	/* The rows are of the whole recording, thinned or not: scaled to the seconds in which nothing was left to thin. */
	for (size_t i = 0; i < c->rows.n; i++)
		if (strcmp(c->rows.v[i].name, "own"))
			costs[n++] = (struct thinning_cost){ c->rows.v[i].name, c->floor * (others ?
				c->rows.v[i].others_percent / c->others_percent : c->rows.v[i].percent / c->percent) };
	thinning_advice(&advice, costs, n, c->floor, c->limit);
	buf_puts(out, "  ");
	cleantext_put(out, advice.data); /* names of a capture are in it */
	buf_putc(out, '\n');
}

void costtext_put(const struct profile *p, bool colour, struct buf *out)
{
	struct cost c;
	char start[32];

	cost_build(&c, p);
	if (!c.rows.n) {
		cost_done(&c);
		return;
	}
	buf_printf(out, "%sCost of recording: %.2f %% ", colour ? TABLE_BOLD : "", c.percent);
	put_base(&c, out);
	buf_puts(out, colour ? TABLE_NORMAL : "");
	if (c.others_percent > 0)
		buf_printf(out, "; other processes lose %.2f %% of all CPUs", c.others_percent);
	if (c.limit > 0)
		buf_printf(out, "%s %.3g %% allowed", c.others_percent > 0 ? ";" : ",", c.limit);
	buf_printf(out, "; its start took %s of CPU time\n", str_duration(start, c.start_ns));
	buf_printf(out, "  %-12s %13s %9s %12s %10s%s\n", "collector", "events", "recorded", "ns an event", "cost",
		   c.others_percent > 0 ? "   to others" : "");
	for (size_t i = 0; i < c.rows.n; i++)
		put_row(&c.rows.v[i], out);
	if (c.estimated)
		buf_puts(out, "  estimated from records: the kernel gives us no statistics of BPF programs (CAP_SYS_ADMIN)\n");
	put_ways(&c, false, out);
	put_ways(&c, true, out);
	put_thinned(&c, out);
	put_floor(&c, out);
	cost_done(&c);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	_cleanup_(buf_done) struct buf lines = { 0 };

	costtext_put(job->profile, job->options.colour, &lines);
	if (lines.n)
		buf_printf(out, "\n%s", lines.data);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct cost c;

	cost_build(&c, job->profile);
	if (c.rows.n) {
		json_open_object_line(j, "cost", 0);
		json_put_fixed(j, "percent", c.percent, 3);
		json_put_fixed(j, "others_percent", c.others_percent, 3);
		json_put_fixed(j, "limit", c.limit, 3);
		json_put_fixed(j, "floor", c.floor, 3);
		json_put_uints(j, { "base_ns", c.base_ns }, { "start_ns", c.start_ns });
		if (c.cpus >= 0)
			json_put_fixed(j, "target_cpus", c.cpus, 3);
		json_put_bool(j, "estimated", c.estimated);
		json_open_array(j, "collectors");
		for (size_t i = 0; i < c.rows.n; i++) {
			const struct cost_row *r = &c.rows.v[i];

			json_open_row(j, 1);
			json_put_string(j, "name", r->name);
			json_put_uints(j, { "events", r->events }, { "recorded", r->recorded }, { "others_ns", r->others_ns }, { "ns", r->ns }, { "bpf_ns", r->bpf_ns });
			json_put_fixed(j, "percent", r->percent, 3);
			if (r->sampled)
				json_put_fixed(j, "error_points", cost_error_points(r), 2);
			if (r->least_ns)
				json_put_uint(j, "least_ns", r->least_ns);
			json_close(j);
		}
		json_close(j);
		json_open_array(j, "thinned");
		for (size_t i = 0; i < c.spans.n; i++) {
			const struct cost_span *s = &c.spans.v[i];

			json_open_row(j, 1);
			json_put_string(j, "collector", s->collector);
			json_put_uints(j, { "one_in", s->one_in }, { "from_ns", s->from_ns }, { "to_ns", s->to_ns });
			json_close(j);
		}
		json_close(j);
		json_close(j);
	}
	cost_done(&c);
}

const struct section section_cost = { .name = "cost", .text = put_text, .json = put_json };
