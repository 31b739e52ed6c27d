#include <errno.h>
#include <stdlib.h>

#include "analyze/blocks/phases.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

struct looking {
	struct marks *m;
	const struct profile *p;
	const struct selection *s;
	uint64_t *last; /* by row: where the latest of this and all earlier rows ends */
};

static int compare_rows(const void *a, const void *b)
{
	const struct mark_row *x = a, *y = b;

	/* A mark that encloses others comes before them. */
	return ORDER(x->start_ns, y->start_ns) ?: ORDER(y->end_ns, x->end_ns) ?: ORDER(x->mark, y->mark);
}

/* A moment lasts until the next one of its kind and thread: a pass from the end remembers when that began. */
static void extend_moments(struct looking *l)
{
	_cleanup_(map_done) struct map next = { 0 };
	uint64_t end = select_duration_ns(l->p);

	for (size_t i = l->m->rows.n; i-- > 0;) {
		struct mark_row *row = &l->m->rows.v[i];
		const struct profile_mark *mark = &l->p->marks.v[row->mark];
		uint64_t *at = map_put(&next, map_pair(mark->kind, mark->thread), MAX(end, row->start_ns));

		if (mark->start_ns == mark->end_ns)
			row->end_ns = *at;
		*at = row->start_ns;
	}
}

static void find_marks(struct looking *l)
{
	struct marks *m = l->m;
	uint64_t last = 0;

	for (size_t i = 0; i < l->p->marks.n; i++)
		vec_push(&m->rows, (struct mark_row){ .mark = i, .start_ns = l->p->marks.v[i].start_ns,
						      .end_ns = l->p->marks.v[i].end_ns });
	vec_sort(&m->rows, compare_rows);
	extend_moments(l);
	l->last = mem_alloc((m->rows.n + 1) * sizeof(*l->last));
	for (size_t i = 0; i < m->rows.n; i++)
		l->last[i] = last = MAX(last, m->rows.v[i].end_ns);
}

/* The first row that may reach to time_ns or beyond. */
static size_t first_row(const struct looking *l, uint64_t time_ns)
{
	return vec_search(i, 0, l->m->rows.n, l->last[i] <= time_ns);
}

/* A wait lasts as long as its span is; the sum of a slot is spread over it. */
static uint64_t span_value(const struct looking *l, const struct select_hit *hit, const struct profile_summed *sum,
			   uint64_t from, uint64_t to)
{
	return sum ? select_part(l->p->samples.v[hit->index].value, sum, from, to) : to - from;
}

/* A sample within a mark counts for it, and a sample in none for the outside. */
static void add_hit(void *context, const struct select_hit *hit)
{
	struct looking *l = context;
	const struct select_options *o = &l->s->options;
	uint32_t thread = l->p->samples.v[hit->index].thread;
	const struct profile_summed *sum = profile_summed_of(l->p, &l->p->samples.v[hit->index]);
	uint64_t begin, end, covered, in = 0;
	bool moment, any = false;

	if (hit->idle || (l->s->shaped && l->s->shaped[hit->stack] == PROFILE_NONE))
		return;
	weight_add(&l->m->all, &hit->weight);
	select_span(l->p, hit->index, hit->role, &begin, &end);
	end = sum ? sum->end_ns : end;
	moment = begin == end;
	begin = MAX(begin, o->from_ns);
	end = moment ? begin + 1 : o->to_ns ? MIN(end, o->to_ns) : end;
	covered = begin;
	for (size_t i = first_row(l, begin); i < l->m->rows.n && l->m->rows.v[i].start_ns < end; i++) {
		struct mark_row *row = &l->m->rows.v[i];
		uint32_t about = l->p->marks.v[row->mark].thread;
		uint64_t from = MAX(row->start_ns, begin), to = MIN(row->end_ns, end);

		if (to <= from || (about != PROFILE_NONE && about != thread))
			continue;
		any = true;
		weight_add(&row->weight,
		    &(struct weight){ hit->weight.samples, moment ? hit->weight.value : span_value(l, hit, sum, from, to) });
		if (to > covered) {
			in += span_value(l, hit, sum, MAX(from, covered), to);
			covered = to;
		}
	}
	if (!any)
		weight_add(&l->m->outside, &hit->weight);
	else if (!moment)
		l->m->outside.value += hit->weight.value - MIN(in, hit->weight.value);
}

static void add_kinds(struct looking *l)
{
	struct marks *m = l->m;
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < m->rows.n; i++) {
		const struct mark_row *row = &m->rows.v[i];
		uint32_t kind = l->p->marks.v[row->mark].kind;
		uint64_t *at = map_put(&index, kind, m->kinds.n), ns = row->end_ns - row->start_ns;
		struct mark_kind *k;

		if (*at == m->kinds.n)
			vec_push(&m->kinds, (struct mark_kind){ .name = profile_str(l->p, kind) });
		k = &m->kinds.v[*at];
		k->count++;
		k->time_ns += ns;
		k->longest_ns = MAX(k->longest_ns, ns);
		weight_add(&k->weight, &row->weight);
	}
}

/* Marks that the selected range does not touch are not shown. */
static void drop_outside(struct marks *m, const struct select_options *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->rows.n; i++) {
		const struct mark_row row = m->rows.v[i];

		if (row.end_ns > o->from_ns && (!o->to_ns || row.start_ns < o->to_ns))
			m->rows.v[kept++] = row;
	}
	m->rows.n = kept;
}

int marks_build(struct marks *m, const struct profile *p, const struct selection *s, struct err *err)
{
	struct looking l = { .m = m, .p = p, .s = s };
	int r;

	*m = (struct marks){ 0 };
	if (!p->marks.n)
		return err_set(err, ENODATA,
			       "there are no marks in this recording: --phases takes functions instead");
	find_marks(&l);
	r = select_each(p, &s->options, add_hit, &l, err);
	if (!r) {
		drop_outside(m, &s->options);
		add_kinds(&l);
	}
	free(l.last);
	return r;
}

void marks_done(struct marks *m)
{
	vec_done(&m->rows);
	vec_done(&m->kinds);
}
