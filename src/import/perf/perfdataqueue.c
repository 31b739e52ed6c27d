#include "import/perf/perfdataqueue.h"

#include <stdlib.h>

#include "base/mem.h"

/* More than rings hold, by far; records keep their chunks, so that little of them may be more. */
enum { MOST_BYTES = 256 << 20, MOST_RECORDS = 4 << 20 };

void perfdataqueue_done(struct perfdataqueue *q)
{
	vec_done_each(&q->list, e, perfdatachunk_free(e->record.chunk));
}

static int compare(const void *a, const void *b)
{
	const struct perfdataqueue_entry *x = a, *y = b;

	return ORDER(x->time, y->time) ?: ORDER(x->number, y->number);
}

/* Hands over the first n, which are sorted. */
static int pass(struct perfdataqueue *q, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		struct perfdataqueue_entry *e = &q->list.v[i];

		if (!r)
			r = q->got(q->context, &e->record, e->time);
		q->passed = MAX(q->passed, e->time);
		q->bytes -= e->record.h->size;
		perfdatachunk_free(e->record.chunk);
	}
	q->list.n -= n;
	for (size_t i = 0; i < q->list.n; i++)
		q->list.v[i] = q->list.v[i + n];
	return r;
}

int perfdataqueue_add(struct perfdataqueue *q, const struct perfdatarecord *record, uint64_t time)
{
	if (!time)
		return q->got(q->context, record, 0);
	if (time < q->passed)
		q->late++;
	q->newest = MAX(q->newest, time);
	q->bytes += record->h->size;
	perfdatachunk_keep(record->chunk);
	vec_push(&q->list, (struct perfdataqueue_entry){ time, q->number++, *record });
	if (q->bytes < MOST_BYTES && q->list.n < MOST_RECORDS)
		return 0;
	vec_sort(&q->list, compare);
	return pass(q, q->list.n / 2 + 1);
}

int perfdataqueue_round(struct perfdataqueue *q)
{
	size_t n;

	vec_sort(&q->list, compare);
	n = vec_search(i, 0, q->list.n, q->list.v[i].time <= q->round);
	q->round = q->newest;
	return pass(q, n);
}

int perfdataqueue_end(struct perfdataqueue *q)
{
	vec_sort(&q->list, compare);
	return pass(q, q->list.n);
}
