#include "cmd/store/watchtext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "fleet/watch/watch.h"

static const char *const kinds[WATCH_KINDS] = { "function", "cause", "cpu", "block" };

/* --- words --- */

static const char *value_text(char out[32], enum watch_kind kind, double v)
{
	if (kind == WATCH_FUNCTION)
		return str_share(out, 100 * v);
	if (kind == WATCH_BLOCK)
		return str_duration(out, v * 1e9);
	snprintf(out, 32, "%.3f", v);
	return out;
}

static const char *change_text(char out[32], const struct watch_row *r)
{
	double percent = change_percent(&r->change, r->change.delta);

	if (isinf(percent))
		snprintf(out, 32, "new");
	else
		snprintf(out, 32, "%+.1f %%", percent);
	return out;
}

static void put_what(struct buf *b, const struct watch_row *r)
{
	switch (r->kind) {
	case WATCH_CPU:
		buf_puts(b, "CPU time a second, s");
		break;
	case WATCH_BLOCK:
		buf_puts(b, "time of a block");
		break;
	case WATCH_CAUSE:
		buf_puts(b, "threads that wait: ");
		plain_add(b, r->name);
		break;
	default:
		plain_add(b, r->name);
	}
}

static void put_range(struct buf *b, const struct watch_row *r)
{
	double low = change_percent(&r->change, r->change.low), high = change_percent(&r->change, r->change.high);

	if (isfinite(low) && isfinite(high))
		buf_printf(b, "%+.1f to %+.1f %%", low, high);
	else
		buf_puts(b, "-");
}

static bool same_target(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void put_count(struct buf *b, size_t n, const char *word)
{
	buf_printf(b, "%zu %s%s", n, word, n == 1 ? "" : "s");
}

static void put_end(const struct watch *w, struct buf *b)
{
	put_count(b, w->tested, "comparison");
	buf_printf(b, " of functions, causes, CPU time and blocks, at a false discovery rate of %.0f %%; ", 100 * CHANGE_FALSE);
	if (w->common)
		put_count(b, w->common, "node"), buf_puts(b, " on both sides, each compared with itself");
	else
		buf_puts(b, "no node is on both sides: nodes were compared with others");
	buf_puts(b, ".\n");
}

static void put_sides(const struct watch *w, const struct watchtext_names *names, struct buf *b, void (*put)(struct buf *, const char *))
{
	put(b, names->after);
	buf_puts(b, " against ");
	put(b, names->before);
	buf_puts(b, ": ");
	put_count(b, w->nodes[1], "node");
	buf_printf(b, ", %zu measurements of %llu min, and ", w->units[1], (unsigned long long)(w->unit_ns / 60000000000ULL));
	put_count(b, w->nodes[0], "node");
	buf_printf(b, ", %zu", w->units[0]);
}

/* --- for people --- */

static void put_plain(struct buf *b, const char *s)
{
	plain_add(b, s);
}

void watchtext_put(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out)
{
	const char *target = "";
	uint64_t shown = 0;

	put_sides(w, names, out, put_plain);
	buf_puts(out, "\n\n");
	for (size_t i = 0; i < w->list.n && w->list.v[i].change.significant; i++) {
		const struct watch_row *r = &w->list.v[i];
		char before[32], after[32], change[32], right[32];

		if (!i || !same_target(target, r->target)) {
			buf_puts(out, i ? "\n" : "");
			put_plain(out, r->target ? r->target : "All nodes");
			buf_printf(out, "\n%10s  %10s  %10s  %-20s  what\n", "before", "after", "change", "95 % interval");
			shown = 0;
		}
		target = r->target;
		if (r->target && names->limit && shown++ >= names->limit)
			continue;
		buf_printf(out, "%s  ", str_right(right, value_text(before, r->kind, r->change.a), 10));
		buf_printf(out, "%s  ", str_right(right, value_text(after, r->kind, r->change.b), 10));
		buf_printf(out, "%s  ", str_right(right, change_text(change, r), 10));
		{
			_cleanup_(buf_done) struct buf range = { 0 };

			put_range(&range, r);
			buf_printf(out, "%-20s  ", range.data);
		}
		put_what(out, r);
		buf_putc(out, '\n');
	}
	buf_puts(out, w->significant ? "\n" : "Nothing changed beyond noise.\n");
	put_end(w, out);
}

/* --- for a channel --- */

/* What Markdown, HTML and mentions give a meaning; the rest of a cell of a table is itself. */
static void put_markdown(struct buf *b, const char *s)
{
	_cleanup_(buf_done) struct buf safe = { 0 };

	plain_add(&safe, s);
	for (const char *c = safe.n ? safe.data : ""; *c; c++) {
		if (*c == '<')
			buf_puts(b, "&lt;");
		else if (*c == '&')
			buf_puts(b, "&amp;");
		else if (*c == '@')
			buf_puts(b, "&#64;");
		else if (strchr("\\`*_{}[]()#+!|~>", *c))
			buf_printf(b, "\\%c", *c);
		else
			buf_putc(b, *c);
	}
}

static void put_markdown_row(const struct watch_row *r, struct buf *out)
{
	char before[32], after[32], change[32];

	buf_puts(out, "| ");
	if (r->target)
		put_markdown(out, r->target);
	else
		buf_puts(out, "all");
	buf_puts(out, " | ");
	if (r->kind == WATCH_FUNCTION || r->kind == WATCH_CAUSE) {
		buf_puts(out, r->kind == WATCH_CAUSE ? "waits: " : "");
		put_markdown(out, r->name);
	} else {
		put_what(out, r);
	}
	buf_printf(out, " | %s | %s | %s | ", value_text(before, r->kind, r->change.a), value_text(after, r->kind, r->change.b), change_text(change, r));
	put_range(out, r);
	buf_puts(out, " |\n");
}

void watchtext_put_markdown(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out)
{
	uint64_t shown = 0;
	const char *target = "";

	buf_printf(out, "**gasflame watch: %s**\n\n", w->significant ? "something changed" : "nothing changed beyond noise");
	put_sides(w, names, out, put_markdown);
	buf_puts(out, "\n\n");
	if (w->significant)
		buf_puts(out, "| node | what | before | after | change | 95 % interval |\n|---|---|---:|---:|---:|---|\n");
	for (size_t i = 0; i < w->list.n && w->list.v[i].change.significant; i++) {
		const struct watch_row *r = &w->list.v[i];

		shown = same_target(target, r->target) ? shown + 1 : 0;
		target = r->target;
		if (!r->target || !names->limit || shown < names->limit)
			put_markdown_row(r, out);
	}
	buf_puts(out, w->significant ? "\n" : "");
	put_end(w, out);
}

/* --- for programs --- */

void watchtext_put_json(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "before", names->before);
	json_put_string(&j, "after", names->after);
	json_put_uints(&j, { "from_wall_ns_before", o->side[0].from_ns }, { "to_wall_ns_before", o->side[0].to_ns },
		       { "from_wall_ns_after", o->side[1].from_ns }, { "to_wall_ns_after", o->side[1].to_ns }, { "unit_ns", w->unit_ns },
		       { "nodes_before", w->nodes[0] }, { "nodes_after", w->nodes[1] }, { "nodes_common", w->common }, { "units_before", w->units[0] },
		       { "units_after", w->units[1] }, { "tested", w->tested }, { "significant", w->significant },
		       { "hours_without_rollup", w->unrolled }, { "shards_away", w->away });
	json_open_array(&j, "rows");
	for (size_t i = 0; i < w->list.n; i++) {
		const struct watch_row *r = &w->list.v[i];

		json_open_row(&j, 1);
		json_put_string(&j, "target", r->target);
		json_put_string(&j, "kind", kinds[r->kind]);
		json_put_string(&j, "name", r->name);
		json_put_real(&j, "before", r->change.a, 9);
		json_put_real(&j, "after", r->change.b, 9);
		json_put_real(&j, "change_percent", change_percent(&r->change, r->change.delta), 6);
		json_put_real(&j, "low_percent", change_percent(&r->change, r->change.low), 6);
		json_put_real(&j, "high_percent", change_percent(&r->change, r->change.high), 6);
		json_put_real(&j, "p", r->change.p, 6);
		json_put_real(&j, "q", r->change.q, 6);
		json_put_bool(&j, "tested", r->change.tested);
		json_put_bool(&j, "significant", r->change.significant);
		json_close(&j);
	}
	json_close(&j);
	json_end_line(&j);
}
