/*
 * logfile.h - a whole log at once, from its beginning to its end: all blocks that it tells of.
 *
 *	r = logfile_read(fd, NULL, NULL, &l, &err);
 *	for (size_t i = 0; i < l.rows.n; i++)
 *		printf("%llu\n", (unsigned long long)l.rows.v[i].block.number);
 *	logfile_done(&l);
 *
 * A line that is longer than LOGFILE_LINE is read as far as that; what it says beyond is not known, and it is counted.
 * The last line may have no end: it is taken as it is, for nothing that could have been cut is believed (clients.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/vec.h"
#include "ethereum/log/blocklog.h"

struct err;

enum { LOGFILE_LINE = 16384, LOGFILE_ROWS = 4000000 };

/* A block, or a group of them; as in struct blocklog_block. */
struct logfile_row {
	struct block block;
	uint64_t first, count, lasted_ns;
	bool inserted, slow, again;
	const char *client; /* by its name in clients.h; NULL = not known */
};

struct logfile {
	VEC(struct logfile_row) rows;  /* in the order of the log */
	struct blocklog_counts counts;
	uint64_t lines, too_long;
	uint64_t beyond;               /* blocks after LOGFILE_ROWS: left out */
};

/* client and pattern as in blocklog_new(); *ret is to be freed also after an error. Reads fd to its end. */
int logfile_read(int fd, const char *client, const char *pattern, struct logfile *ret, struct err *err);
/* The same for a log that may have lines of another kind, which other() knows: true = it took the line, and added its
 * rows itself. */
typedef bool logfile_line_fn(void *context, const char *line, size_t n);
int logfile_read_with(int fd, const char *client, const char *pattern, logfile_line_fn *other, void *context,
		      struct logfile *ret, struct err *err);
void logfile_done(struct logfile *l);
