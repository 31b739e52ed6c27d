#include "cmd/flight/keep.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/wait/cause.h"
#include "base/map.h"
#include "base/mem.h"

enum { STEPS = 60 /* pieces of a window, about */ };
static const uint64_t least_step_ns = 900000000; /* looks come about once a second */

#define COPY_VEC(to, from)                                                           \
	do {                                                                         \
		(to)->n = (to)->capacity = (from)->n;                                \
		(to)->v = (from)->n ? mem_resize(NULL, (from)->n, sizeof(*(to)->v)) : NULL; \
		if ((from)->n)                                                       \
			memcpy((to)->v, (from)->v, (from)->n * sizeof(*(to)->v));    \
	} while (0)

#define MOVE_ROWS(to, from)                                                          \
	do {                                                                         \
		vec_reserve(to, (from)->n);                                          \
		if ((from)->n)                                                       \
			memcpy((to)->v + (to)->n, (from)->v, (from)->n * sizeof(*(to)->v)); \
		(to)->n += (from)->n;                                                \
		vec_clear(from);                                                     \
	} while (0)

/* No more is added to it. */
#define FIT_VEC(a)                                                                   \
	do {                                                                         \
		if ((a)->n < (a)->capacity && (a)->n) {                              \
			(a)->v = mem_resize((a)->v, (a)->n, sizeof(*(a)->v));        \
			(a)->capacity = (a)->n;                                      \
		}                                                                    \
	} while (0)

/* --- parts --- */

static void moment_done(struct keep_moment *m)
{
	vec_done(&m->threads);
	vec_done(&m->counters);
	vec_done(&m->histograms);
}

static void moment_copy(struct keep_moment *to, const struct keep_moment *from)
{
	to->time_ns = from->time_ns;
	COPY_VEC(&to->threads, &from->threads);
	COPY_VEC(&to->counters, &from->counters);
	COPY_VEC(&to->histograms, &from->histograms);
}

static void rows_done(struct keep_rows *r)
{
	vec_done(&r->samples);
	vec_done(&r->wakes);
	vec_done(&r->taskwakes);
	vec_done(&r->points);
	vec_done(&r->marks);
}

static void rows_fit(struct keep_rows *r)
{
	FIT_VEC(&r->samples);
	FIT_VEC(&r->wakes);
	FIT_VEC(&r->taskwakes);
	FIT_VEC(&r->points);
	FIT_VEC(&r->marks);
}

static uint64_t rows_bytes(const struct keep_rows *r)
{
	return r->samples.capacity * sizeof(*r->samples.v) + r->wakes.capacity * sizeof(*r->wakes.v) +
	       r->taskwakes.capacity * sizeof(*r->taskwakes.v) + r->points.capacity * sizeof(*r->points.v) +
	       r->marks.capacity * sizeof(*r->marks.v);
}

static uint64_t moment_bytes(const struct keep_moment *m)
{
	return m->threads.capacity * sizeof(*m->threads.v) + m->counters.capacity * sizeof(*m->counters.v) +
	       m->histograms.capacity * sizeof(*m->histograms.v);
}

static void piece_unuse(struct keep_piece *p)
{
	if (--p->users)
		return;
	moment_done(&p->start);
	rows_done(&p->rows);
	free(p);
}

static void begin_piece(struct keep *k)
{
	struct keep_piece *p = mem_alloc(sizeof(*p));

	p->users = 1;
	moment_copy(&p->start, &k->now);
	if (k->pieces.n) {
		struct keep_piece *last = k->pieces.v[k->pieces.n - 1];

		last->end_ns = k->now.time_ns;
		rows_fit(&last->rows);
	}
	vec_push(&k->pieces, p);
}

void keep_init(struct keep *k, struct profile *p, uint64_t keep_ns, uint64_t max_bytes)
{
	*k = (struct keep){ .p = p, .keep_ns = keep_ns, .max_bytes = max_bytes, .step_ns = MAX(keep_ns / STEPS, least_step_ns) };
	begin_piece(k); /* all is 0 at the start */
}

void keep_done(struct keep *k)
{
	for (size_t i = 0; i < k->pieces.n; i++)
		piece_unuse(k->pieces.v[i]);
	vec_done(&k->pieces);
	rows_done(&k->open);
	moment_done(&k->now);
}

/* --- what comes in --- */

static void move_rows(struct keep_rows *to, struct profile *p)
{
	MOVE_ROWS(&to->samples, &p->samples);
	MOVE_ROWS(&to->wakes, &p->wakes);
	MOVE_ROWS(&to->taskwakes, &p->taskwakes);
}

void keep_take(struct keep *k)
{
	struct keep_rows *rows = &k->pieces.v[k->pieces.n - 1]->rows;

	move_rows(rows, k->p);
	MOVE_ROWS(&rows->points, &k->p->points);
	MOVE_ROWS(&rows->marks, &k->p->marks);
}

static void add_counter(struct keep *k, struct map *index, uint32_t name, uint64_t value)
{
	uint64_t *at = map_put(index, name, k->now.counters.n);

	if (*at == k->now.counters.n)
		vec_push(&k->now.counters, (struct profile_counter){ name, value });
	else
		k->now.counters.v[*at].value += value;
}

static void add_histogram(struct keep *k, const struct profile_histogram *h, uint32_t name, uint32_t unit)
{
	struct profile_histogram *to = NULL;

	for (size_t i = 0; i < k->now.histograms.n && !to; i++)
		if (k->now.histograms.v[i].name == name)
			to = &k->now.histograms.v[i];
	if (!to) {
		vec_push(&k->now.histograms, (struct profile_histogram){ .name = name, .unit = unit });
		to = &k->now.histograms.v[k->now.histograms.n - 1];
	}
	for (size_t i = 0; i < ARRAY_LEN(h->counts); i++)
		to->counts[i] += h->counts[i];
}

static void note_counters(struct keep *k, const struct profile *tally)
{
	_cleanup_(map_done) struct map index = { 0 };
	struct profile *p = k->p;

	vec_clear(&k->now.counters);
	vec_clear(&k->now.histograms);
	for (size_t i = 0; i < p->counters.n; i++)
		add_counter(k, &index, p->counters.v[i].name, p->counters.v[i].value);
	for (size_t i = 0; i < p->histograms.n; i++)
		add_histogram(k, &p->histograms.v[i], p->histograms.v[i].name, p->histograms.v[i].unit);
	for (size_t i = 0; tally && i < tally->counters.n; i++)
		add_counter(k, &index, profile_string(p, profile_str(tally, tally->counters.v[i].name)), tally->counters.v[i].value);
	for (size_t i = 0; tally && i < tally->histograms.n; i++) {
		const struct profile_histogram *h = &tally->histograms.v[i];

		add_histogram(k, h, profile_string(p, profile_str(tally, h->name)), profile_string(p, profile_str(tally, h->unit)));
	}
}

/* A target may start a thread for each request: what has ended must not be noted for ever. */
static void note_threads(struct keep *k)
{
	uint64_t from = k->pieces.v[0]->start.time_ns;

	vec_clear(&k->now.threads);
	for (size_t i = 0; i < k->p->threads.n; i++) {
		const struct profile_thread *t = &k->p->threads.v[i];

		if (!t->end_ns || t->end_ns >= from)
			vec_push(&k->now.threads, (struct keep_times){ i, t->run_ns, t->queue_ns, t->blocked_ns });
	}
}

struct keep_times keep_times_of(const struct keep_moment *m, uint32_t thread)
{
	size_t at = vec_search(i, 0, m->threads.n, m->threads.v[i].thread < thread);

	return at < m->threads.n && m->threads.v[at].thread == thread ? m->threads.v[at] : (struct keep_times){ .thread = thread };
}

static void drop_first(struct keep *k)
{
	piece_unuse(k->pieces.v[0]);
	memmove(k->pieces.v, k->pieces.v + 1, --k->pieces.n * sizeof(*k->pieces.v));
}

void keep_look(struct keep *k, const struct profile *tally)
{
	uint64_t now = k->p->duration_ns, from = now > k->keep_ns ? now - k->keep_ns : 0;

	rows_done(&k->open);
	move_rows(&k->open, k->p);
	k->now.time_ns = now;
	note_threads(k);
	note_counters(k, tally);
	if (now >= k->pieces.v[k->pieces.n - 1]->start.time_ns + k->step_ns)
		begin_piece(k);
	while (k->pieces.n > 1 && k->pieces.v[1]->start.time_ns <= from)
		drop_first(k);
}

/* --- the limit --- */

static uint64_t piece_bytes(const struct keep_piece *p)
{
	return sizeof(*p) + rows_bytes(&p->rows) + moment_bytes(&p->start);
}

uint64_t keep_row_bytes(const struct keep *k)
{
	uint64_t bytes = rows_bytes(&k->open) + moment_bytes(&k->now);

	for (size_t i = 0; i < k->pieces.n; i++)
		bytes += piece_bytes(k->pieces.v[i]);
	return bytes;
}

uint64_t keep_table_bytes(const struct keep *k)
{
	const struct profile *p = k->p;

	return p->stacks.capacity * sizeof(*p->stacks.v) + p->stacks.slot_count * 8 + p->frames.capacity * sizeof(*p->frames.v) +
	       p->frame_index.capacity * sizeof(struct map_slot) + p->threads.capacity * sizeof(*p->threads.v) +
	       p->mappings.capacity * sizeof(*p->mappings.v) + p->processes.capacity * sizeof(*p->processes.v) +
	       p->functions.capacity * sizeof(*p->functions.v) + p->strings.n * 100;
}

uint64_t keep_span_ns(const struct keep *k)
{
	return k->now.time_ns - MIN(k->now.time_ns, k->pieces.v[0]->start.time_ns);
}

static void sum_row(struct keep_rows *to, struct map *index, const struct profile_sample *s, uint64_t time_ns)
{
	for (uint64_t key = map_hash(map_pair(s->thread, s->stack)) + s->event;; key++) {
		uint64_t *at = map_put(index, key, to->samples.n), count;
		struct profile_sample *x;

		if (*at == to->samples.n) {
			vec_push(&to->samples, *s);
			return;
		}
		x = &to->samples.v[*at];
		if (x->thread != s->thread || x->stack != s->stack || x->event != s->event)
			continue;
		count = (uint64_t)MAX(x->count, 1) + MAX(s->count, 1);
		x->time_ns = time_ns;
		x->value += s->value;
		x->count = MIN(count, UINT32_MAX);
		return;
	}
}

/* Another piece with the sums of one. */
static struct keep_piece *piece_sum(const struct keep *k, const struct keep_piece *p)
{
	struct keep_piece *to = mem_alloc(sizeof(*to));
	_cleanup_free_ enum role *roles = mem_alloc((k->p->events.n + 1) * sizeof(*roles));
	_cleanup_(map_done) struct map index = { 0 };
	struct profile rows = { 0 };

	for (size_t i = 0; i < k->p->events.n; i++)
		roles[i] = cause_role(k->p, i);
	to->users = 1;
	to->end_ns = p->end_ns;
	to->summed = true;
	to->wakes_left_out = p->wakes_left_out + p->rows.wakes.n + p->rows.taskwakes.n;
	moment_copy(&to->start, &p->start);
	rows.samples.v = p->rows.samples.v;
	for (size_t i = 0; i < p->rows.samples.n; i++) {
		struct profile_sample s = p->rows.samples.v[i];
		uint64_t end;

		/* Time in the queue gets its own beginning: the wait before it may be part of a sum. */
		select_span(&rows, i, roles[s.event], &s.time_ns, &end);
		if (s.time_ns < p->start.time_ns || end > p->end_ns) /* its part in other pieces needs both ends */
			vec_push(&to->rows.samples, s);
		else
			sum_row(&to->rows, &index, &s, p->start.time_ns);
	}
	COPY_VEC(&to->rows.points, &p->rows.points);
	COPY_VEC(&to->rows.marks, &p->rows.marks);
	FIT_VEC(&to->rows.samples);
	return to;
}

static bool sum_oldest(struct keep *k)
{
	for (size_t i = 0; i + 1 < k->pieces.n; i++) {
		struct keep_piece *p = k->pieces.v[i];

		if (p->summed)
			continue;
		k->pieces.v[i] = piece_sum(k, p);
		k->summed_pieces++;
		piece_unuse(p);
		return true;
	}
	return false;
}

void keep_limit(struct keep *k)
{
	uint64_t tables = keep_table_bytes(k), rows = k->max_bytes - MIN(tables, k->max_bytes / 2);

	while (k->max_bytes && keep_row_bytes(k) > rows) {
		if (sum_oldest(k))
			continue;
		if (k->pieces.n < 2)
			return;
		drop_first(k);
		k->dropped_pieces++;
	}
}

/* --- a snap --- */

static void copy_tables(struct profile *to, const struct profile *p)
{
	to->strings.n = p->strings.n;
	to->strings.strings = mem_resize(NULL, p->strings.n + 1, sizeof(*to->strings.strings));
	memcpy(to->strings.strings, p->strings.strings, p->strings.n * sizeof(*to->strings.strings));
	COPY_VEC(&to->events, &p->events);
	COPY_VEC(&to->owners, &p->owners);
	COPY_VEC(&to->processes, &p->processes);
	COPY_VEC(&to->threads, &p->threads);
	COPY_VEC(&to->modules, &p->modules);
	COPY_VEC(&to->mappings, &p->mappings);
	COPY_VEC(&to->functions, &p->functions);
	COPY_VEC(&to->lines, &p->lines);
	COPY_VEC(&to->frames, &p->frames);
	COPY_VEC(&to->stacks, &p->stacks);
	COPY_VEC(&to->series, &p->series);
	COPY_VEC(&to->kernel_bases, &p->kernel_bases);
	to->target = p->target;
	to->host = p->host;
	to->kernel = p->kernel;
	to->start_wall_ns = p->start_wall_ns;
	to->redacted = p->redacted;
}

void keep_snap(struct keep *k, struct keep_snap *ret)
{
	struct keep_piece *last = k->pieces.v[k->pieces.n - 1];

	/* What comes next goes into a piece of its own. */
	if (last->rows.samples.n || last->rows.points.n || last->rows.marks.n || last->rows.wakes.n || last->rows.taskwakes.n)
		begin_piece(k);
	*ret = (struct keep_snap){ .from_ns = k->pieces.v[0]->start.time_ns };
	copy_tables(&ret->tables, k->p);
	for (size_t i = 0; i < k->pieces.n - 1; i++) {
		k->pieces.v[i]->users++;
		vec_push(&ret->pieces, k->pieces.v[i]);
	}
	/* Without rows the start of the window is still that of its only piece. */
	if (!ret->pieces.n) {
		last->users++;
		vec_push(&ret->pieces, last);
		begin_piece(k);
	}
	COPY_VEC(&ret->open.samples, &k->open.samples);
	COPY_VEC(&ret->open.wakes, &k->open.wakes);
	COPY_VEC(&ret->open.taskwakes, &k->open.taskwakes);
	moment_copy(&ret->to, &k->now);
}

void keep_next(struct keep *k)
{
	while (k->pieces.n > 1)
		drop_first(k);
}

void keep_snap_done(struct keep_snap *s)
{
	struct profile *t = &s->tables;

	free(t->strings.strings);
	vec_done(&t->events);
	vec_done(&t->owners);
	vec_done(&t->processes);
	vec_done(&t->threads);
	vec_done(&t->modules);
	vec_done(&t->mappings);
	vec_done(&t->functions);
	vec_done(&t->lines);
	vec_done(&t->frames);
	free(t->stacks.v);
	vec_done(&t->series);
	vec_done(&t->kernel_bases);
	for (size_t i = 0; i < s->pieces.n; i++)
		piece_unuse(s->pieces.v[i]);
	vec_done(&s->pieces);
	rows_done(&s->open);
	moment_done(&s->to);
	*s = (struct keep_snap){ 0 };
}
