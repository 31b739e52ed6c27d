/* The status page: one table of targets, one of sinks, and what the agent costs beside what was promised. */
#include "fleet/agent/statustext.h"

#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/agent/statusview.h"

static const char head[] =
	"<!doctype html>\n"
	"<html lang=\"en\"><meta charset=\"utf-8\"><title>gasflame agent</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"10\">\n"
	"<style>\n"
	":root { color-scheme: light; --ground: #f6f7f9; --card: #fff; --text: #16181d; --line: #dfe2e8; --dim: #626a76;\n"
	"  --well: #17803d; --idle: #8a93a1; --bad: #c2321f; --meter: #2f6fd0; --rest: #e6e9ef; --warn: #fff4e0; --edge: #e0a030 }\n"
	"@media (prefers-color-scheme: dark) { :root { color-scheme: dark; --ground: #101216; --card: #181b21; --text: #e4e7ec;\n"
	"  --line: #2c313a; --dim: #969fad; --well: #4cc77a; --idle: #7d8695; --bad: #ff7a66; --meter: #6ea8fe; --rest: #2a2f38;\n"
	"  --warn: #2b2416; --edge: #b98a2c } }\n"
	"body { font: 14px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; margin: 28px auto; max-width: 1240px;\n"
	"  padding: 0 24px; background: var(--ground); color: var(--text) }\n"
	"header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; margin-bottom: 18px }\n"
	"h1 { font-size: 19px; margin: 0 } h2 { font-size: 14px; margin: 26px 0 8px }\n"
	"i, small { font-style: normal; color: var(--dim) } small { font-size: 12.5px }\n"
	".cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 14px }\n"
	".card, .table { background: var(--card); border: 1px solid var(--line); border-radius: 8px }\n"
	".card { padding: 12px 16px } .card b { display: block; font-size: 22px; font-weight: 600; line-height: 1.35 }\n"
	".meter { height: 6px; border-radius: 3px; background: var(--rest); margin: 8px 0 6px; overflow: hidden }\n"
	".meter span { display: block; height: 100%; border-radius: 3px; background: var(--meter) }\n"
	".meter .bad { background: var(--bad) }\n"
	".table { overflow-x: auto } table { border-collapse: collapse; width: 100% }\n"
	"th { font-weight: normal; font-size: 12.5px; color: var(--dim) }\n"
	"th, td { text-align: left; padding: 7px 14px; white-space: nowrap; vertical-align: top }\n"
	"tr + tr td, tr.note td { border-top: 1px solid var(--line) } tr.note td { border-top: 0; padding-top: 0; white-space: normal;\n"
	"  color: var(--dim); overflow-wrap: anywhere }\n"
	"td.name { font-weight: 600; white-space: normal; overflow-wrap: anywhere; min-width: 120px; max-width: 340px }\n"
	".n { text-align: right } .zero { color: var(--dim) } .lost { color: var(--bad); font-weight: 600 }\n"
	".dot::before { content: \"\"; display: inline-block; width: 8px; height: 8px; border-radius: 50%; margin-right: 8px;\n"
	"  background: var(--idle) } .dot.well::before { background: var(--well) } .dot.bad::before { background: var(--bad) }\n"
	".dot.bad { color: var(--bad) } .dot.idle { color: var(--dim) }\n"
	".troubles { background: var(--warn); border: 1px solid var(--edge); border-radius: 8px; padding: 10px 16px 10px 34px;\n"
	"  margin: 0 0 18px; overflow-wrap: anywhere }\n"
	"footer { margin: 22px 0; color: var(--dim); font-size: 12.5px } a { color: var(--meter) }\n"
	"</style>\n";

static const char *const mood_class[] = { [STATUSVIEW_WELL] = "well", [STATUSVIEW_IDLE] = "idle", [STATUSVIEW_BAD] = "bad" };

/* --- the top --- */

static void put_top(const struct statusview *v, struct buf *out)
{
	const struct board *b = v->b;
	char age[32], again[32], window[32];

	buf_puts(out, "<header><h1>gasflame agent</h1>");
	if (v->troubles.n)
		buf_printf(out, "<span class=\"dot bad\">%zu to look at</span>", v->troubles.n);
	else
		buf_puts(out, "<span class=\"dot well\">all is well</span>");
	buf_printf(out, "<small>runs for %s", statusview_age(age, v->now_wall_ns, b->started_wall_ns));
	if (b->reloaded_wall_ns)
		buf_printf(out, " &middot; reloaded %s ago", statusview_age(again, v->now_wall_ns, b->reloaded_wall_ns));
	if (b->window_ns)
		buf_printf(out, " &middot; windows of %s", str_duration(window, b->window_ns));
	if (*b->config) {
		buf_puts(out, " &middot; ");
		buf_xml(out, b->config);
	}
	buf_printf(out, " &middot; process %u</small></header>\n", b->pid);
	if (!v->troubles.n)
		return;
	buf_puts(out, "<ul class=\"troubles\">\n");
	for (size_t i = 0; i < v->troubles.n; i++) {
		buf_puts(out, "<li>");
		buf_xml(out, v->troubles.v[i]);
		buf_puts(out, "\n");
	}
	buf_puts(out, "</ul>\n");
}

/* A figure, how much of its limit that is, and a line of words. limit 0: there is none. */
static void put_card(struct buf *out, const char *title, const char *figure, double used, double limit, const char *words)
{
	double percent = MIN(str_percent(used, limit), 100);

	buf_printf(out, "<div class=\"card\"><small>%s</small><b>%s</b>", title, figure);
	if (limit > 0)
		buf_printf(out, "<div class=\"meter\"><span%s style=\"width:%.1f%%\"></span></div>", used > limit ? " class=\"bad\"" : "",
			   percent);
	buf_printf(out, "<small>%s</small></div>\n", words);
}

static void put_cards(const struct statusview *v, struct buf *out)
{
	const struct board *b = v->b;
	char figure[32], limit[32], other[32], words[160];
	uint64_t samples = 0, lost = 0, recording = 0, targets = 0;

	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		const struct board_target *t = &b->targets[i];

		if (!statusview_is_target(t))
			continue;
		targets++;
		recording += t->state == BOARD_RECORDING;
		samples += t->samples;
		lost += t->lost_samples;
	}
	buf_puts(out, "<div class=\"cards\">\n");
	if (b->budget_percent > 0)
		snprintf(words, sizeof(words), "%s promised &middot; %s since the start", str_share(limit, b->budget_percent), str_share(other, v->percent));
	else
		snprintf(words, sizeof(words), "nothing promised &middot; %s since the start", str_share(other, v->percent));
	put_card(out, "CPU of one core, last minutes", str_share(figure, b->recent_percent), b->recent_percent, b->budget_percent, words);
	if (b->budget_bytes)
		snprintf(words, sizeof(words), "%s promised", str_bytes(limit, b->budget_bytes));
	else
		snprintf(words, sizeof(words), "nothing promised");
	put_card(out, "Memory, all processes", str_bytes(figure, b->resident_bytes), b->resident_bytes, b->budget_bytes, words);
	if (b->spool_limit_bytes)
		snprintf(words, sizeof(words), "%s windows &middot; at most %s", str_count(other, b->spool_windows), str_bytes(limit, b->spool_limit_bytes));
	else
		snprintf(words, sizeof(words), "%s windows &middot; no bound", str_count(other, b->spool_windows));
	put_card(out, "Spool", str_bytes(figure, b->spool_bytes), b->spool_bytes, b->spool_limit_bytes, words);
	snprintf(figure, sizeof(figure), "%u of %u", (unsigned)recording, (unsigned)targets);
	snprintf(words, sizeof(words), "%s samples &middot; %s lost", str_count(other, samples), str_count(limit, lost));
	put_card(out, "Targets recorded", figure, recording, targets, words);
	buf_puts(out, "</div>\n");
}

/* --- tables --- */

static void put_text(struct buf *out, const char *open, const char *text)
{
	buf_puts(out, open);
	buf_xml(out, text);
	buf_puts(out, "</td>");
}

static void put_count(struct buf *out, uint64_t n, bool loss)
{
	char text[32];

	buf_printf(out, "<td class=\"n%s\">%s</td>", !n ? " zero" : loss ? " lost" : "", str_count(text, n));
}

/* A figure that is dimmed where there is nothing. */
static void put_figure(struct buf *out, const char *text, bool any)
{
	buf_printf(out, "<td class=\"n%s\">%s</td>", any ? "" : " zero", text);
}

static void put_note(struct buf *out, const char *note, unsigned columns)
{
	if (!*note)
		return;
	buf_printf(out, "<tr class=\"note\"><td colspan=\"%u\">", columns);
	buf_xml(out, note);
	buf_puts(out, "</td></tr>\n");
}

static void put_target(const struct statusview *v, const struct board_target *t, struct buf *out)
{
	char text[32];

	put_text(out, "<tr><td class=\"name\">", t->name);
	buf_printf(out, "<td><span class=\"dot %s\">%s</span> <small>%s", mood_class[statusview_target_mood(t)], statusview_state(t),
		   statusview_age(text, v->now_wall_ns, t->since_wall_ns));
	if (t->restarts)
		buf_printf(out, " &middot; %u restarts", t->restarts);
	put_text(out, *t->what ? "</small></td><td>" : "</small></td><td class=\"zero\">", *t->what ? t->what : "-");
	snprintf(text, sizeof(text), "%u Hz", t->hz);
	put_figure(out, t->hz ? text : "-", t->hz);
	put_count(out, t->windows, false);
	put_count(out, t->lost_windows, true);
	put_count(out, t->samples, false);
	put_count(out, t->lost_samples, true);
	put_count(out, t->blocks, false);
	put_figure(out, str_share(text, statusview_target_percent(v, t)), statusview_target_percent(v, t) > 0);
	put_figure(out, str_bytes(text, t->anon_bytes), t->anon_bytes);
	put_figure(out, statusview_age(text, v->now_wall_ns, t->last_window_wall_ns), t->last_window_wall_ns);
	buf_puts(out, "</tr>\n");
	put_note(out, t->note, 12);
}

static void put_sink(const struct statusview *v, const struct board_sink *s, struct buf *out)
{
	char text[32], state[48];

	put_text(out, "<tr><td class=\"name\">", s->name);
	buf_printf(out, "<td><span class=\"dot %s\">%s</span></td>", mood_class[statusview_sink_mood(s)], statusview_sink_state(v, s, state));
	put_count(out, s->waiting, false);
	put_figure(out, str_bytes(text, s->waiting_bytes), s->waiting_bytes);
	put_figure(out, statusview_age(text, v->now_wall_ns, s->oldest_wall_ns), s->oldest_wall_ns);
	put_count(out, s->delivered, false);
	put_count(out, s->failures, false);
	put_count(out, s->refused, true);
	put_count(out, s->dropped, true);
	put_figure(out, statusview_age(text, v->now_wall_ns, s->last_wall_ns), s->last_wall_ns);
	buf_puts(out, "</tr>\n");
	put_note(out, s->note, 10);
}

/* --- which --- */

static bool put_target_at(const struct statusview *v, size_t i, struct buf *out)
{
	bool is = statusview_is_target(&v->b->targets[i]);

	if (is)
		put_target(v, &v->b->targets[i], out);
	return is;
}

static bool put_sink_at(const struct statusview *v, size_t i, struct buf *out)
{
	bool is = statusview_is_sink(&v->b->sinks[i]);

	if (is)
		put_sink(v, &v->b->sinks[i], out);
	return is;
}

static const struct table {
	const char *title, *none; /* none: the sentence in place of rows */
	bool (*put)(const struct statusview *v, size_t i, struct buf *out);
	size_t most;
	unsigned words;           /* columns that are no figures, from the first on */
	const char *columns[16];
} tables[] = {
	{ "Targets", "No name of the configuration runs, or it has none.", put_target_at, BOARD_TARGETS, 3,
	  { "Name", "State", "Records", "Rate", "Windows", "lost", "Samples", "lost", "Blocks", "CPU", "Memory", "Last window" } },
	{ "Sinks", "No sink is configured: windows go nowhere.", put_sink_at, BOARD_SINKS, 2,
	  { "Name", "State", "Waiting", "Bytes", "Oldest", "Delivered", "Failures", "Refused", "Dropped", "Last delivery" } },
};

static void put_table(const struct statusview *v, const struct table *t, struct buf *out)
{
	size_t rows = 0;
	unsigned columns = 0;

	buf_printf(out, "<h2>%s</h2><div class=\"table\"><table>\n<tr>", t->title);
	for (; columns < ARRAY_LEN(t->columns) && t->columns[columns]; columns++)
		buf_printf(out, "<th%s>%s", columns < t->words ? "" : " class=\"n\"", t->columns[columns]);
	buf_puts(out, "</tr>\n");
	for (size_t i = 0; i < t->most; i++)
		rows += t->put(v, i, out);
	if (!rows)
		buf_printf(out, "<tr><td colspan=\"%u\"><i>%s</i></td></tr>\n", columns, t->none);
	buf_puts(out, "</table></div>\n");
}

void statustext_html(const struct board *b, uint64_t now_wall_ns, struct buf *out)
{
	_cleanup_(statusview_done) struct statusview v;
	time_t now = now_wall_ns / 1000000000;
	char when[32];
	struct tm tm;

	statusview_init(&v, b, now_wall_ns);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	buf_puts(out, head);
	put_top(&v, out);
	put_cards(&v, out);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		put_table(&v, &tables[i], out);
	buf_printf(out, "<footer>As of %s UTC, renewed every ten seconds. CPU of a target: its recorder and BPF programs, of one core, since "
			"the agent began. The same as JSON is below <a href=\"/status.json\">/status.json</a>, for Prometheus below "
			"<a href=\"/metrics\">/metrics</a>.</footer>\n</html>\n", when);
}
