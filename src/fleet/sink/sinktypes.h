/*
 * sinktypes.h - the kinds of sinks: one file and one line of the table in sink.c each. What they share is here, too.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "fleet/sink/sink.h"

struct buf;

extern const struct sink_type sink_clickhouse, sink_otlp, sink_pyroscope, sink_prometheus, sink_files, sink_s3;

/* --- names, that targets and whoever writes a configuration choose --- */

/* "TARGET/2026-11-17/020500-42.gasflame" (UTC): where a window is kept, by files and by S3. Of a target's name only letters, digits and
 * "-_." stay; any other byte, and a dot at its begin, is ~XX, and what is too long for a file's name ends in ~~ and a hash. */
void sinkname_put_path(struct buf *b, const struct sink_window *w);
void sinkname_put_folder(struct buf *b, const char *target);

/* A label as Prometheus and Pyroscope know them: the name has letters, digits and "_" only. */
struct sinklabel {
	char *name, *value; /* plain text, at most SINKLABEL_BYTES */
};
struct sinklabels {
	VEC(struct sinklabel) list;
};
enum { SINKLABEL_BYTES = 200, SINKLABELS_MAX = 32 };

/* Appends; a name that is there already, or one that is full, changes nothing. An empty value is none. name is taken as it is. */
void sinklabels_add(struct sinklabels *l, const char *name, const char *value);
/* target, release, and the window's own labels behind them, the names made such. name: of the target's label. */
void sinklabels_add_window(struct sinklabels *l, const struct sink_window *w, const char *name);
void sinklabels_sort(struct sinklabels *l);
void sinklabels_done(struct sinklabels *l);

/* The name of the machine that a window is of; "" = not known. */
const char *sinkname_host(const struct sink_window *w);
