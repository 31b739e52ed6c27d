/*
 * statustext.h - what an agent tells of itself: a page for people, JSON for scripts, lines for a terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct board;
struct buf;

/* The board may be written to meanwhile, and hold anything: all of these take a copy first, and make its texts plain. They begin with
 * (the page, JSON: "troubles") or end in (lines) what somebody should look at, a sentence each.
 *
 * The page: one HTML document without scripts, light and dark, that loads nothing and renews itself every ten seconds. It
 * links to /status.json and /metrics. */
void statustext_html(const struct board *b, uint64_t now_wall_ns, struct buf *out);
/*
 * Every figure of board.h under the name that it has there, but for
 *
 *	now_wall_ns, now_mono_ns	when it was asked: of the clocks of the other times
 *	budget	{cpu_percent, bytes}	promised; 0 = nothing
 *	cost	{cpu_percent, recent_cpu_percent, resident_bytes, all_cpu_ns, cpu_ns, sender_cpu_ns, begun_mono_ns, all_mono_ns}
 *	spool	{bytes, limit_bytes, windows, lost_windows}
 *	troubles [sentence]		[] = all is well
 *	targets	[{...}]			state: a word; cpu_percent: of one CPU, with BPF and earlier recorders, since the agent began
 *	sinks	[{...}]
 */
void statustext_json(const struct board *b, uint64_t now_wall_ns, struct buf *out);
/* For a terminal: targets, sinks, cost. */
void statustext_lines(const struct board *b, uint64_t now_wall_ns, bool colour, struct buf *out);
