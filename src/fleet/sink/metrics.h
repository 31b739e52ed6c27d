/*
 * metrics.h - what Prometheus is told: figures of targets, from their windows, and of the agent itself. One table, which the text page
 * (/metrics) and remote write (sinkprometheus.c) both come from.
 *
 *	struct metrics *m = metrics_new();
 *	metrics_add_window(m, &window);
 *	metrics_set(m, "gasflame_agent_windows_total", (const char *const[]){ "target=reth-1", NULL }, 17);
 *	metrics_put_text(m, &page);
 *	metrics_free(m);
 *
 * Counters of a target begin at 0 when it is first seen, and again when its release or labels change: that is another series. A target
 * that had no window for an hour, and a figure with labels that was not set for an hour, are dropped; there are at most
 * METRICS_TARGETS targets, and the one that was not seen for longest makes room. One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct metrics;
struct sink_window;

enum { METRICS_TARGETS = 256, METRICS_FIGURES = 2048 };

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m); /* NULL is fine */

/* A window that is not later than the last one of its target, by time and by number, came again: it is not counted twice. */
void metrics_add_window(struct metrics *m, const struct sink_window *w);
/* Of the agent: name is one of the table's, gasflame_agent_*; labels are "key=value", NULL-terminated, NULL = none. Of a counter, the value
 * is the sum so far. -EINVAL: the table has no such name. -ENOSPC: there are METRICS_FIGURES of them. */
int metrics_set(struct metrics *m, const char *name, const char *const *labels, double value);
/* Drops what was not seen for an hour before now (CLOCK_MONOTONIC). The calls above do it by themselves. */
void metrics_expire(struct metrics *m, uint64_t now_mono_ns);

/* The page, in the text format 0.0.4: METRICS_TYPE. */
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_put_text(const struct metrics *m, struct buf *out);

/* --- for remote write --- */

struct sinklabels;
/* One sample; labels are those of the series without its name. */
typedef void metrics_fn(void *context, const char *name, const struct sinklabels *labels, double value);
/* All series of a target; NULL: those of the agent. */
void metrics_each(const struct metrics *m, const char *target, metrics_fn *fn, void *context);
