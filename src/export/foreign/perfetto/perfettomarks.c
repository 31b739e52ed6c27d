#include "export/foreign/perfetto/perfettomarks.h"

#include "analyze/select.h"
#include "export/export.h"
#include "profile/profile.h"

static int compare_marks(const void *a, const void *b, void *context)
{
	const struct profile *p = context;
	const struct perfettomark *x = a, *y = b;
	const struct profile_mark *m = &p->marks.v[x->mark], *n = &p->marks.v[y->mark];

	return ORDER(m->kind, n->kind) ?: ORDER(m->thread, n->thread) ?: ORDER(x->begin_ns, y->begin_ns) ?: ORDER(x->mark, y->mark);
}

/* The first track of its kind and thread that is free; first: of these tracks. */
static uint32_t find_track(struct perfettomarks *m, const struct profile_mark *mark, const struct perfettomark *x, size_t *first)
{
	size_t i;

	if (*first == m->tracks.n || m->tracks.v[*first].kind != mark->kind || m->tracks.v[*first].thread != mark->thread)
		*first = m->tracks.n;
	for (i = *first; i < m->tracks.n && m->tracks.v[i].last_ns > x->begin_ns; i++)
		;
	if (i == m->tracks.n)
		vec_push(&m->tracks, (struct perfettomark_track){ .kind = mark->kind, .thread = mark->thread });
	m->tracks.v[i].last_ns = x->end_ns;
	return i;
}

void perfettomarks_make(struct perfettomarks *m, const struct export_job *job)
{
	const struct select_options *o = &job->selection->options;
	const struct profile *p = job->profile;
	size_t first = 0;

	*m = (struct perfettomarks){ 0 };
	for (size_t i = 0; i < p->marks.n; i++) {
		uint64_t begin = MAX(p->marks.v[i].start_ns, o->from_ns), end = p->marks.v[i].end_ns;

		if (o->to_ns)
			end = MIN(end, o->to_ns);
		if (end < begin || (o->to_ns && begin >= o->to_ns))
			continue;
		vec_push(&m->list, (struct perfettomark){ begin, end, .mark = i });
	}
	if (m->list.n)
		qsort_r(m->list.v, m->list.n, sizeof(*m->list.v), compare_marks, (void *)p);
	for (size_t i = 0; i < m->list.n; i++)
		m->list.v[i].track = find_track(m, &p->marks.v[m->list.v[i].mark], &m->list.v[i], &first);
}

void perfettomarks_done(struct perfettomarks *m)
{
	vec_done(&m->list);
	vec_done(&m->tracks);
}
