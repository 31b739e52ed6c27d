/*
 * parts.c - the samples of some spans of time, from the pages that have them.
 *
 * Rows are nearly in the order of their times, but nothing says so: rows come late, and waits reach far. So a first scan
 * notes for each page from when to when its rows reach, which takes 24 bytes for some 150 rows. A part is then read from
 * the pages that touch its spans. Of a file in any other order, all pages touch the first part, and it has all spans.
 *
 * Several threads share the first scan. After that a part is read while the caller looks at the one before it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { THREADS = 4 };

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

/* A part on its way in. */
struct part {
	struct capture_parts *c;
	VEC(struct capture_span) spans; /* that were asked for */
	size_t n, span;                 /* spans that it has; the first that does not end before the last row */
	VEC(struct profile_sample) samples;
	struct before before;
	pthread_t thread;
	bool running; /* the thread is to be joined */
	int r;
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
	struct part next;
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

/* A thread's leaves. */
struct indexer {
	struct capture_parts *c;
	size_t from, to, at; /* at: 1 + the leaf that is being read */
	struct before before;
	VEC(uint64_t) rows;  /* by event */
	pthread_t thread;
	bool running;
	int r;
};

static void list_leaf(void *context, uint32_t page)
{
	struct capture_parts *c = context;

	vec_push(&c->leaves, (struct leaf){ .page = page, .first_ns = UINT64_MAX });
}

static void index_leaf(void *context, uint32_t page)
{
	((struct indexer *)context)->at++;
}

static bool index_row(void *context, const struct tablescan_row *row)
{
	struct indexer *x = context;
	struct leaf *leaf = &x->c->leaves.v[x->at - 1];
	uint32_t event;

	if (!makes_sense(row))
		return true;
	/* The leaf before the first is another thread's: only its last row matters here. */
	if (x->at > x->from) {
		uint64_t end = end_of(&x->before, row);

		leaf->rows++;
		leaf->first_ns = MIN(leaf->first_ns, (uint64_t)row->values[TIME]);
		leaf->last_ns = MAX(leaf->last_ns, end);
		if (ids_get(&x->c->reading.ids[TABLE_EVENT], row->values[EVENT], &event))
			x->rows.v[event]++;
	}
	remember(&x->before, row, false);
	return true;
}

static const struct tablescan leaf_scan = { .table = "sample", .columns = COLUMNS, .leaf = list_leaf };
static const struct tablescan first_scan = { .table = "sample", .columns = COLUMNS, .row = index_row, .leaf = index_leaf };

static void *index_leaves(void *context)
{
	struct indexer *x = context;
	size_t first = x->from - !!x->from;
	VEC(uint32_t) pages = { 0 };

	for (size_t i = first; i < x->to; i++)
		vec_push(&pages, x->c->leaves.v[i].page);
	x->at = first;
	x->r = tablescan_leaves(x->c->db, &first_scan, pages.v, pages.n, x);
	vec_done(&pages);
	return NULL;
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

/* Divides the leaves among as many threads as there are CPUs; a thread that cannot be started is not needed. */
static int index_all(struct capture_parts *c)
{
	size_t n = MIN(MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), THREADS);
	struct indexer list[THREADS] = { 0 };
	int r = 0;

	for (size_t k = n; k-- > 0;) {
		struct indexer *x = &list[k];

		x->c = c;
		x->from = c->leaves.n * k / n;
		x->to = c->leaves.n * (k + 1) / n;
		for (size_t i = 0; i <= c->reading.p->events.n; i++)
			vec_push(&x->rows, 0);
		x->running = k && !pthread_create(&x->thread, NULL, index_leaves, x);
		if (!x->running)
			index_leaves(x);
	}
	for (size_t k = 0; k < n; k++) {
		if (list[k].running)
			pthread_join(list[k].thread, NULL);
		r = r ?: list[k].r;
		for (size_t i = 0; i < c->rows.n; i++)
			c->rows.v[i] += list[k].rows.v[i];
		vec_done(&list[k].rows);
	}
	return r;
}

static int read_index(struct capture_parts *c)
{
	int r = tablescan_pages(c->db, &leaf_scan, c);

	for (size_t i = 0; i <= c->reading.p->events.n; i++)
		vec_push(&c->rows, 0);
	if (!r)
		r = index_all(c);
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
	if (c->next.running)
		pthread_join(c->next.thread, NULL);
	vec_done(&c->next.spans);
	vec_done(&c->next.samples);
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

static bool touches(struct part *t, uint64_t first_ns, uint64_t last_ns)
{
	const struct capture_span *spans = t->spans.v;

	if (t->span >= t->n || spans[t->span].end_ns < first_ns || (t->span && spans[t->span - 1].end_ns >= first_ns))
		t->span = vec_search(i, 0, t->n, spans[i].end_ns < first_ns);
	return t->span < t->n && spans[t->span].start_ns <= last_ns;
}

static void keep(struct part *t, const struct tablescan_row *row)
{
	struct profile_sample s;

	if (reading_sample(&t->c->reading, row, &s))
		vec_push(&t->samples, s);
}

static void keep_before(struct part *t)
{
	struct tablescan_row row = { .nulls = t->before.nulls };

	memcpy(row.values, t->before.values, sizeof(t->before.values));
	keep(t, &row);
}

static bool part_row(void *context, const struct tablescan_row *row)
{
	struct part *t = context;
	bool kept = makes_sense(row) && touches(t, row->values[TIME], end_of(&t->before, row));

	if (kept && !t->before.kept && is_second(&t->before, row))
		keep_before(t);
	if (kept)
		keep(t, row);
	remember(&t->before, row, kept);
	return true;
}

static const struct tablescan part_scan = { .table = "sample", .columns = COLUMNS, .row = part_row };

static void *read_part(void *context)
{
	struct part *t = context;
	const struct capture_parts *c = t->c;
	VEC(uint32_t) pages = { 0 };
	size_t end;

	t->n = choose_spans(c, t->spans.v, t->spans.n);
	t->span = 0;
	t->before.there = false;
	vec_clear(&t->samples);
	end = leaves_until(c, t->spans.v[t->n - 1].end_ns);
	for (size_t i = 0; i < end; i++) {
		const struct leaf *leaf = &c->leaves.v[i];

		if (!leaf->rows || leaf->last_ns < t->spans.v[0].start_ns || !touches(t, leaf->first_ns, leaf->last_ns))
			continue;
		/* Its first row may be the second part of the wait that the last row before it begins. */
		if (i && (!pages.n || pages.v[pages.n - 1] != leaf[-1].page))
			vec_push(&pages, leaf[-1].page);
		vec_push(&pages, leaf->page);
	}
	t->r = tablescan_leaves(c->db, &part_scan, pages.v, pages.n, t);
	vec_done(&pages);
	return NULL;
}

static void ask_for(struct part *t, struct capture_parts *c, const struct capture_span *spans, size_t n)
{
	t->c = c;
	vec_clear(&t->spans);
	for (size_t i = 0; i < n; i++)
		vec_push(&t->spans, spans[i]);
}

/* Has the part that was read ahead what is asked for? */
static bool is_ahead(struct part *t, const struct capture_span *spans, size_t n)
{
	if (!t->running)
		return false;
	pthread_join(t->thread, NULL);
	t->running = false;
	return t->spans.n == n && !memcmp(t->spans.v, spans, n * sizeof(*spans));
}

int capture_parts_read(struct capture_parts *c, const struct capture_span *spans, size_t n, struct err *err)
{
	struct part *t = &c->next;
	struct profile *p = c->reading.p;
	struct profile_sample *samples = p->samples.v;
	size_t capacity = p->samples.capacity, got;

	if (!is_ahead(t, spans, n)) {
		ask_for(t, c, spans, n);
		read_part(t);
	}
	if (t->r)
		return err_set(err, EBUSY, "%s changed while it was read: try again", c->path);
	got = t->n;
	p->samples.v = t->samples.v;
	p->samples.n = t->samples.n;
	p->samples.capacity = t->samples.capacity;
	t->samples.v = samples;
	t->samples.capacity = capacity;
	if (got < n) {
		ask_for(t, c, spans + got, n - got);
		t->running = !pthread_create(&t->thread, NULL, read_part, t);
	}
	return MIN(got, (size_t)INT32_MAX);
}
