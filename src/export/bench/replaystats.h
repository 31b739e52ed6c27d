/*
 * replaystats.h - latencies as a line of a table and as JSON, for replays and loads.
 */
#pragma once

struct buf;
struct json;
struct stats_summary;

void replaystats_head(struct buf *out);
void replaystats_row(const char *name, const struct stats_summary *s, struct buf *out);
/* Puts an object without unknown members. scale: of seconds. */
void replaystats_json(const struct stats_summary *s, double scale, const char *key, struct json *j);
