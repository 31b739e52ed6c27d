/*
 * list.c - the list of captures: a table, and a form that compares two of its rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "capture/capture.h"
#include "serve/site.h"

static const char head[] =
	"<!doctype html>\n"
	"<html lang=\"en\"><meta charset=\"utf-8\"><title>gasflame</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<style>\n"
	":root { color-scheme: light; --ground: #fff; --text: #16181d; --line: #d5d8de; --dim: #626a76;\n"
	"  --accent: #0b62c4 }\n"
	"@media (prefers-color-scheme: dark) { :root { color-scheme: dark; --ground: #14161a;\n"
	"  --text: #e4e7ec; --line: #333842; --dim: #969fad; --accent: #78b4ff } }\n"
	"body { font: 13px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums;\n"
	"  margin: 32px auto; max-width: 1180px; padding: 0 24px; background: var(--ground); color: var(--text) }\n"
	"h1 { font-size: 15px } table { border-collapse: collapse; width: 100% }\n"
	"th, i { font-weight: normal; font-style: normal; color: var(--dim) }\n"
	"th, td { text-align: left; padding: 5px 20px 5px 0; border-bottom: 1px solid var(--line);\n"
	"  vertical-align: top; white-space: nowrap }\n"
	".n { text-align: right } td.w { white-space: normal; overflow-wrap: anywhere; min-width: 160px }\n"
	".c { text-align: center; padding-right: 12px } p { margin: 12px 0 }\n"
	"a { display: block; color: var(--accent); font-family: ui-monospace, monospace }\n"
	"@media print { :root { color-scheme: light; --ground: #fff; --text: #16181d; --line: #d5d8de; --dim: #626a76;\n"
	"  --accent: #0b62c4 } }\n"
	/* Where there is no room for columns, a capture is some lines. */
	"@media (max-width: 700px) { body { margin: 12px auto; padding: 0 12px } tr { display: block; padding: 6px 0;\n"
	"  border-bottom: 1px solid var(--line) } tr:has(th) { display: none } td, td.n { display: block; border: 0; padding: 0;\n"
	"  text-align: left } td.c { display: inline-block; padding-right: 16px } td.c::after { content: attr(data-of) } }\n"
	"</style>\n";

/* The folder in small print, and the name as the link. */
static void put_file(struct buf *b, const char *path, size_t i)
{
	const char *name = str_base_name(path);
	_cleanup_free_ char *folder = mem_strndup(path, name - path);

	buf_printf(b, "<td class=\"w\"><a href=\"%zu/\">", i);
	buf_xml(b, name);
	buf_puts(b, "</a><i>");
	buf_xml(b, folder);
	buf_puts(b, "</i>");
}

/* Which one is before, and which after: the last two at first. */
static void put_choice(struct buf *b, size_t i, size_t n)
{
	if (n < 2)
		return;
	buf_printf(b, "<td class=\"c\" data-of=\" before\"><input type=\"radio\" name=\"before\" value=\"%zu\" aria-label=\"before\"%s>", i,
		   i + 2 == n ? " checked" : "");
	buf_printf(b, "<td class=\"c\" data-of=\" after\"><input type=\"radio\" name=\"after\" value=\"%zu\" aria-label=\"after\"%s>", i,
		   i + 1 == n ? " checked" : "");
}

/* "cpu,wait" with room to break the line. */
static void put_what(struct buf *b, const char *what)
{
	for (const char *end; *what; what = end + (*end == ',')) {
		_cleanup_free_ char *word = NULL;

		end = what + strcspn(what, ",");
		word = mem_strndup(what, end - what);
		buf_xml(b, word);
		buf_puts(b, *end ? ", " : "");
	}
}

static void put_facts(struct buf *b, const struct capture_summary *summary)
{
	_cleanup_free_ char *counts = capture_summary_counts(summary);
	char when[64] = "", text[32];
	struct tm tm;
	time_t start = summary->start_wall_ns / 1000000000;

	if (!localtime_r(&start, &tm) || !strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		when[0] = 0;
	buf_puts(b, "<td class=\"w\">");
	buf_xml(b, summary->target ? summary->target : "");
	buf_puts(b, "<td class=\"w\">");
	put_what(b, summary->what ? summary->what : "");
	buf_printf(b, "<td>%s%s", when, summary->finished ? "" : " (unfinished)");
	buf_printf(b, "<td class=\"n\">%s", summary->duration_ns ? str_duration(text, summary->duration_ns) : "-");
	buf_puts(b, "<td class=\"w\">");
	buf_xml(b, counts);
	buf_puts(b, "\n");
}

static void put_row(const struct site_options *o, size_t i, struct buf *b)
{
	const char *path = o->paths[i], *kind = NULL;
	struct capture_summary summary = { 0 };
	struct err err = { 0 };

	buf_puts(b, "<tr>");
	put_choice(b, i, o->n);
	put_file(b, path, i);
	if (o->reader.check && !o->reader.check(path, &kind, &err) && kind) {
		buf_puts(b, "<td class=\"w\">-<td class=\"w\">");
		buf_xml(b, kind);
		buf_puts(b, "<td>-<td class=\"n\">-<td>-\n");
		return;
	}
	err = (struct err){ 0 };
	if (capture_summary(path, &summary, &err)) {
		buf_puts(b, "<td class=\"w\" colspan=\"5\">");
		buf_xml(b, err.text);
		buf_puts(b, "\n");
		return;
	}
	put_facts(b, &summary);
	capture_summary_done(&summary);
}

void list_put(const struct site_options *o, struct buf *b)
{
	bool several = o->n > 1;

	buf_puts(b, head);
	buf_printf(b, "<h1>gasflame &middot; %zu capture%s</h1>\n<form action=\"diff\">\n<table>\n<tr>%s<th>file<th>target<th>what"
		      "<th>when<th class=\"n\">duration<th>recorded\n",
		   o->n, o->n == 1 ? "" : "s", several ? "<th class=\"c\">before<th class=\"c\">after" : "");
	for (size_t i = 0; i < o->n; i++)
		put_row(o, i, b);
	buf_puts(b, "</table>\n");
	if (several)
		buf_puts(b, "<p><button>Compare before with after</button></p>\n");
	buf_puts(b, "</form>\n");
	if (o->fleet)
		buf_puts(b, "<p><a href=\"fleet/\">The nodes of the store, over time</a></p>\n");
}
