/*
 * statustext.h - what an agent tells of itself: a page for people, JSON for scripts, lines for a terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct board;
struct buf;

/* The page: one HTML document without scripts, light and dark, that loads nothing and renews itself every ten seconds. */
void statustext_html(const struct board *b, uint64_t now_wall_ns, struct buf *out);
void statustext_json(const struct board *b, uint64_t now_wall_ns, struct buf *out);
/* For a terminal: targets, sinks, cost. */
void statustext_lines(const struct board *b, uint64_t now_wall_ns, bool colour, struct buf *out);
