/*
 * rss.h - where the resident memory is: one table whose rows add up to RSS, and what was measured beside it.
 *
 *	struct rss r;
 *	rss_build(&r, p, 0, 0);
 *	if (r.recorded)
 *		for (size_t i = 0; i < r.rows.n; i++)
 *			printf("%s %lld\n", r.rows.v[i].label, (long long)r.rows.v[i].bytes);
 *	rss_done(&r);
 *
 * Reads the series of the mem collector (docs/keys.md lists them), and heap.live, heap.resident and heap.arenas of the
 * heap collector, which tell live heap from slack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

/* A series within the requested time. */
struct rss_series {
	const char *name, *unit; /* live as long as the profile */
	uint32_t id;             /* in the profile */
	size_t points;
	int64_t first, last, least, most;
	double sum;
	uint64_t first_ns, last_ns;
};

enum rss_kind {
	RSS_PART,     /* these add up to RSS */
	RSS_DETAIL,   /* a part of the row above: a file */
};

struct rss_row {
	const char *key;    /* for programs: "live_heap", "files"; of a file: "file" */
	const char *label;  /* for people; of a file its path */
	const char *note;   /* a few words more, or "" */
	enum rss_kind kind;
	int64_t bytes;
	bool estimate;
	uint32_t series;    /* to draw, index into series; UINT32_MAX = none */
};

/* The live objects of one size class of the allocator. */
struct rss_class {
	uint64_t size, live_bytes, rounding_bytes; /* rounding: bytes added to the requested sizes */
};

/* Where the split into live heap and slack comes from. */
enum rss_source { RSS_NO_SOURCE, RSS_FROM_HEAP, RSS_FROM_METRICS /* or statistics that jemalloc was asked for */ };

struct rss {
	bool recorded;    /* memory was recorded; else the rest is empty */
	bool walked;      /* mappings could be read: there are rows */
	uint64_t moment_ns; /* of the rows: the last walk */
	uint64_t begin_ns, end_ns; /* first and last look */
	size_t looks;
	int64_t rss;      /* at that moment; else the last */
	VEC(struct rss_row) rows;
	VEC(struct rss_series) series;
	VEC(struct rss_class) classes; /* most rounding first */
	enum rss_source source;
	bool from_start;  /* the heap is known since the program began */
	bool exact;       /* and each object of it, not only samples */
	int64_t live_bytes;   /* of the heap, resident or not */
	double fragmentation; /* 1 - allocated / active, from metrics; negative = not known */
	const char *group;    /* path of the cgroup, "" = none of its own */
	unsigned group_version;
};

/* to_ns 0: the end. */
void rss_build(struct rss *r, const struct profile *p, uint64_t from_ns, uint64_t to_ns);
void rss_done(struct rss *r);

/* By key (profile/keys.h). NULL: there is none. */
const struct rss_series *rss_find(const struct rss *r, const char *key);
/* A gauge at its last look, or fallback. */
int64_t rss_last(const struct rss *r, const char *key, int64_t fallback);
/* Returns the growth of a series per second; negative = unknown. */
double rss_rate(const struct rss *r, const char *key);
/* The values of a series in so many columns, the mean of each; a column without a look has that of the one
 * before. How many there are: no more than looks. */
size_t rss_columns(const struct rss *r, const struct profile *p, uint32_t series, double *columns, size_t n);
