/*
 * parts.c - the samples of some spans of time, from the pages that have them.
 *
 * Rows are nearly in the order of their times, but nothing says so: rows come late, and waits reach far. So a first scan
 * notes for each page from when to when its rows reach, which takes 24 bytes for some 150 rows. A part is then read from
 * the pages that touch its spans. Of a file in any other order, all pages touch the first part, and it has all spans.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/capture.h"
#include "capture/capturefile.h"
#include "capture/scan/parts.h"
#include "capture/scan/reading.h"
#include "capture/scan/tablescan.h"

/* The samples of a part take some tens of megabytes at most. */
static const struct parts_limits usual = { .least_rows = 4 << 20, .part_rows = 1 << 20 };

enum { EVENT, THREAD, TIME, STACK, VALUE, COUNT, COLUMNS }; /* of the table of samples */

struct leaf {
	uint32_t page;
	uint32_t rows;
	uint64_t first_ns, last_ns; /* last: where the latest of its waits ends */
};

/* What the row before had. Both parts of a wait, blocked and in the queue, have its time: the second begins where the first
 * ends. */
struct before {
	int64_t values[COLUMNS];
	uint32_t nulls;
	bool there, kept;
};

struct capture_parts {
	sqlite3 *db;
	char *path;
	struct reading reading;
	uint64_t part_rows;
	VEC(struct leaf) leaves;   /* by rowid */
	uint64_t *soonest;         /* by leaf: the first time in it and all after it; one more, without end */
	uint64_t *rows_to;         /* by leaf: rows before it */
	VEC(uint64_t) rows;        /* by event */
	struct before before;
	/* The part that is being read. */
	const struct capture_span *spans;
	size_t n, span;            /* span: the first that does not end before the last row */
};

/* --- what a row says --- */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool is_second(const struct before *b, const struct tablescan_row *row)
{
	const int64_t *x = b->values, *y = row->values;

	return b->there && x[THREAD] == y[THREAD] && x[TIME] == y[TIME] && x[STACK] == y[STACK] && x[EVENT] != y[EVENT];
}

/* When it ends, or later: which events are waits is for the analysis to say. Sums are at one moment. */
static uint64_t end_of(const struct before *b, const struct tablescan_row *row)
{
	uint64_t end = row->values[TIME];

	if (row->values[COUNT] > 1)
		return end;
	if (is_second(b, row))
		end = add(end, b->values[VALUE]);
	return add(end, row->values[VALUE]);
}

static bool makes_sense(const struct tablescan_row *row)
{
	return row->values[TIME] >= 0 && row->values[VALUE] >= 0 && row->values[COUNT] >= 0;
}

static void remember(struct before *b, const struct tablescan_row *row, bool kept)
{
	memcpy(b->values, row->values, sizeof(b->values));
	b->nulls = row->nulls;
	b->there = true;
	b->kept = kept;
}

/* --- the first scan --- */

static void index_leaf(void *context, uint32_t page)
{
	struct capture_parts *c = context;

	vec_push(&c->leaves, (struct leaf){ .page = page, .first_ns = UINT64_MAX });
}

static bool index_row(void *context, const struct tablescan_row *row)
{
	struct capture_parts *c = context;
	struct leaf *leaf = &c->leaves.v[c->leaves.n - 1];
	uint64_t end;
	uint32_t event;

	if (!makes_sense(row))
		return true;
	end = end_of(&c->before, row);
	leaf->rows++;
	leaf->first_ns = MIN(leaf->first_ns, (uint64_t)row->values[TIME]);
	leaf->last_ns = MAX(leaf->last_ns, end);
	if (ids_get(&c->reading.ids[TABLE_EVENT], row->values[EVENT], &event))
		c->rows.v[event]++;
	remember(&c->before, row, false);
	return true;
}

static void measure(struct capture_parts *c)
{
	uint64_t soonest = UINT64_MAX, rows = 0, last = 0;

	c->soonest = mem_alloc((c->leaves.n + 1) * sizeof(*c->soonest));
	c->rows_to = mem_alloc((c->leaves.n + 1) * sizeof(*c->rows_to));
	c->soonest[c->leaves.n] = UINT64_MAX;
	for (size_t i = c->leaves.n; i-- > 0;)
		c->soonest[i] = soonest = MIN(soonest, c->leaves.v[i].first_ns);
	for (size_t i = 0; i < c->leaves.n; i++) {
		c->rows_to[i] = rows;
		rows += c->leaves.v[i].rows;
		last = MAX(last, c->leaves.v[i].rows ? c->leaves.v[i].first_ns : 0);
	}
	c->rows_to[c->leaves.n] = rows;
	/* A recorder that died left no duration: analyses take that of the samples, which they do not see together. */
	if (!c->reading.p->duration_ns)
		c->reading.p->duration_ns = last;
}

static const struct tablescan first_scan = { .table = "sample", .columns = COLUMNS, .row = index_row, .leaf = index_leaf };

static int read_index(struct capture_parts *c)
{
	int r;

	for (size_t i = 0; i <= c->reading.p->events.n; i++)
		vec_push(&c->rows, 0);
	r = tablescan_pages(c->db, &first_scan, c);
	if (!r)
		measure(c);
	return r;
}

int capture_parts_open(const char *path, struct capture_parts **ret, struct profile **ret_profile, struct err *err)
{
	return parts_open(path, &usual, ret, ret_profile, err);
}

int parts_open(const char *path, const struct parts_limits *limits, struct capture_parts **ret, struct profile **ret_profile,
	       struct err *err)
{
	struct capture_parts *c;
	sqlite3 *db = NULL;
	int r = capturefile_open(path, &db, err);

	if (!r && reading_rows(db) < limits->least_rows)
		r = -ENOTSUP;
	if (r) {
		capturefile_closep(&db);
		return r;
	}
	c = mem_alloc(sizeof(*c));
	c->db = db;
	c->part_rows = limits->part_rows;
	c->path = mem_strdup(path);
	reading_init(&c->reading, db, c->path);
	c->reading.sums = true;
	r = reading_all(&c->reading, err);
	if (!r)
		r = read_index(c);
	if (r) {
		profile_free(c->reading.p);
		capture_parts_close(c);
		return r;
	}
	*ret = c;
	*ret_profile = c->reading.p;
	return 0;
}

void capture_parts_close(struct capture_parts *c)
{
	if (!c)
		return;
	reading_done(&c->reading);
	capturefile_closep(&c->db);
	vec_done(&c->leaves);
	vec_done(&c->rows);
	free(c->soonest);
	free(c->rows_to);
	free(c->path);
	free(c);
}

const uint64_t *capture_parts_rows(const struct capture_parts *c)
{
	return c->rows.v;
}

/* --- a part --- */

/* The first leaf from which on all rows are after a moment. */
static size_t leaves_until(const struct capture_parts *c, uint64_t time_ns)
{
	return vec_search(i, 0, c->leaves.n, c->soonest[i] <= time_ns);
}

/* As many spans as one part may have. */
static size_t choose_spans(const struct capture_parts *c, const struct capture_span *spans, size_t n)
{
	uint64_t from = c->rows_to[leaves_until(c, spans[0].start_ns)];
	size_t k = 1;

	while (k < n && c->rows_to[leaves_until(c, spans[k].end_ns)] - from <= c->part_rows)
		k++;
	return k;
}

static bool touches(struct capture_parts *c, uint64_t first_ns, uint64_t last_ns)
{
	const struct capture_span *spans = c->spans;

	if (c->span >= c->n || spans[c->span].end_ns < first_ns || (c->span && spans[c->span - 1].end_ns >= first_ns))
		c->span = vec_search(i, 0, c->n, spans[i].end_ns < first_ns);
	return c->span < c->n && spans[c->span].start_ns <= last_ns;
}

static void keep(struct capture_parts *c, const struct tablescan_row *row)
{
	struct profile_sample s;

	if (reading_sample(&c->reading, row, &s))
		profile_add_sample(c->reading.p, &s);
}

static void keep_before(struct capture_parts *c)
{
	struct tablescan_row row = { .nulls = c->before.nulls };

	memcpy(row.values, c->before.values, sizeof(c->before.values));
	keep(c, &row);
}

static bool part_row(void *context, const struct tablescan_row *row)
{
	struct capture_parts *c = context;
	bool kept = makes_sense(row) && touches(c, row->values[TIME], end_of(&c->before, row));

	if (kept && !c->before.kept && is_second(&c->before, row))
		keep_before(c);
	if (kept)
		keep(c, row);
	remember(&c->before, row, kept);
	return true;
}

static const struct tablescan part_scan = { .table = "sample", .columns = COLUMNS, .row = part_row };

int capture_parts_read(struct capture_parts *c, const struct capture_span *spans, size_t n, struct err *err)
{
	VEC(uint32_t) pages = { 0 };
	size_t end;
	int r;

	c->spans = spans;
	c->n = choose_spans(c, spans, n);
	c->span = 0;
	c->before.there = false;
	end = leaves_until(c, spans[c->n - 1].end_ns);
	for (size_t i = 0; i < end; i++) {
		const struct leaf *leaf = &c->leaves.v[i];

		if (!leaf->rows || leaf->last_ns < spans[0].start_ns || !touches(c, leaf->first_ns, leaf->last_ns))
			continue;
		/* Its first row may be the second part of the wait that the last row before it begins. */
		if (i && (!pages.n || pages.v[pages.n - 1] != leaf[-1].page))
			vec_push(&pages, leaf[-1].page);
		vec_push(&pages, leaf->page);
	}
	vec_clear(&c->reading.p->samples);
	r = tablescan_leaves(c->db, &part_scan, pages.v, pages.n, c);
	vec_done(&pages);
	if (r)
		return err_set(err, EBUSY, "%s changed while it was read: try again", c->path);
	return MIN(c->n, (size_t)INT32_MAX);
}
