#include "export/foreign/perfetto/threadstates.h"

#include "analyze/select.h"
#include "base/map.h"
#include "export/export.h"
#include "export/samplerows.h"
#include "profile/profile.h"

/* A wait or a sum of waits, or a sample of the CPU. */
struct part {
	uint64_t begin_ns, end_ns, value, count;
	uint32_t thread, stack, block;
	enum role role;
	enum cause cause;
};

struct parts {
	struct part *v;
	size_t n;
};

struct pending {
	uint64_t ns[CAUSE_COUNT], count[CAUSE_COUNT];
};

struct making {
	struct threadstates *t;
	const struct export_job *job;
	VEC(struct part) waits, sums, samples; /* by thread, then by time */
	uint8_t *picked;                       /* threads */
	bool gaps; /* all waits are there: what is between them is time on the CPU */
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->begin_ns, y->begin_ns) ?: ORDER(x->end_ns, y->end_ns) ?: ORDER(x->role, y->role) ?:
	       ORDER(x->stack, y->stack) ?: ORDER(x->value, y->value);
}

const char *threadstate_cause(enum cause cause)
{
	return cause == CAUSE_UNKNOWN ? "waiting" : cause_name(cause);
}

static enum cause cause_of(const struct samplerow *row)
{
	return row->role == ROLE_QUEUE && row->cause == CAUSE_UNKNOWN ? CAUSE_QUEUE : row->cause;
}

static void sort_rows(struct making *m, const struct samplerows *rows)
{
	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *r = &rows->list.v[i];
		struct part part = { r->begin_ns, r->end_ns, r->value, MAX(r->count, 1), r->thread, r->stack, r->block, r->role, cause_of(r) };

		if (r->role == ROLE_CPU)
			vec_push(&m->samples, part);
		else if (r->role != ROLE_OTHER && r->end_ns > r->begin_ns)
			vec_push(&m->waits, part);
		else if (r->role != ROLE_OTHER && r->value)
			vec_push(&m->sums, part);
	}
}

static int compare_lengths(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Makes sums of the shortest waits where there are too many. */
static void join_shortest(struct making *m, size_t limit)
{
	VEC(uint64_t) lengths = { 0 };
	size_t kept = 0;

	if (m->waits.n <= limit)
		return;
	for (size_t i = 0; i < m->waits.n; i++)
		vec_push(&lengths, m->waits.v[i].end_ns - m->waits.v[i].begin_ns);
	vec_sort(&lengths, compare_lengths);
	m->t->joined_ns = lengths.v[lengths.n - limit - 1];
	vec_done(&lengths);
	for (size_t i = 0; i < m->waits.n; i++) {
		struct part part = m->waits.v[i];

		if (part.end_ns - part.begin_ns > m->t->joined_ns) {
			m->waits.v[kept++] = part;
			continue;
		}
		part.end_ns = part.begin_ns;
		vec_push(&m->sums, part);
	}
	m->waits.n = kept;
}

/* --- states of a thread whose waits are known --- */

static struct threadstate *add_state(struct making *m, const struct part *part, uint64_t begin_ns, uint64_t end_ns,
				     enum threadstate_kind kind)
{
	struct threadstates *t = m->t;

	vec_push(&t->list, (struct threadstate){ .begin_ns = begin_ns, .end_ns = end_ns, .thread = part->thread, .stack = part->stack,
						 .block = part->block, .kind = kind, .cause = part->cause });
	return &t->list.v[t->list.n - 1];
}

static void count_short(struct pending *p, const struct part *part, uint64_t ns)
{
	p->ns[part->cause] += ns;
	p->count[part->cause] += part->count;
}

/* What a state has of a cause. Only the last state that has any gets more. */
static struct threadstate_short *short_of(struct threadstates *t, struct threadstate *s, enum cause cause)
{
	if (!s->shorts)
		s->first_short = t->shorts.n;
	for (uint32_t i = 0; i < s->shorts; i++)
		if (t->shorts.v[s->first_short + i].cause == cause)
			return &t->shorts.v[s->first_short + i];
	vec_push(&t->shorts, (struct threadstate_short){ .cause = cause });
	s->shorts++;
	return &t->shorts.v[t->shorts.n - 1];
}

/* Puts what is pending into a state, as much of it as it has room for. */
static void pour(struct threadstates *t, struct threadstate *s, struct pending *p, uint64_t room)
{
	for (int c = 0; c < CAUSE_COUNT; c++) {
		uint64_t ns = MIN(p->ns[c], room);
		struct threadstate_short *x = ns ? short_of(t, s, c) : NULL;

		if (!x)
			continue;
		x->ns += ns;
		x->count += p->count[c];
		room -= ns;
		p->ns[c] -= ns;
		p->count[c] = 0; /* they are counted once, where the first of them were */
	}
}

/* The stack with the most of the time of samples between two moments. *at: where to begin, moved on. */
static void find_samples(const struct parts *samples, size_t *at, struct threadstate *s)
{
	struct map by_stack = { 0 };
	uint64_t most = 0;

	while (*at < samples->n && samples->v[*at].begin_ns < s->begin_ns)
		++*at;
	for (; *at < samples->n && samples->v[*at].begin_ns < s->end_ns; ++*at) {
		const struct part *sample = &samples->v[*at];
		uint64_t *sum = map_put(&by_stack, sample->stack, 0);

		*sum += sample->value;
		s->cpu_ns += sample->value;
		s->samples += MIN(sample->count, UINT32_MAX - s->samples);
		if (*sum > most) {
			most = *sum;
			s->stack = sample->stack;
		}
	}
	map_done(&by_stack);
}

struct walk {
	struct making *m;
	uint32_t thread;
	struct parts waits, sums, samples;
	size_t next_sum, next_sample;
	struct pending pending;
};

/* Time on the CPU up to a moment, with the sums that belong there. */
static void add_running(struct walk *w, uint64_t begin_ns, uint64_t end_ns)
{
	struct threadstate *s;

	if (begin_ns >= end_ns)
		return;
	s = add_state(w->m, &(struct part){ .thread = w->thread, .block = PROFILE_NONE, .cause = CAUSE_CPU }, begin_ns, end_ns,
		      THREADSTATE_RUNNING);
	find_samples(&w->samples, &w->next_sample, s);
	for (; w->next_sum < w->sums.n && w->sums.v[w->next_sum].begin_ns < end_ns; w->next_sum++)
		count_short(&w->pending, &w->sums.v[w->next_sum], w->sums.v[w->next_sum].value);
	pour(w->m->t, s, &w->pending, end_ns - begin_ns);
}

/* What found no room goes to the last span on the CPU; a thread has none only if it waited all the time. */
static void pour_rest(struct walk *w, size_t first)
{
	struct threadstates *t = w->m->t;
	size_t last = t->list.n;

	for (; w->next_sum < w->sums.n; w->next_sum++)
		count_short(&w->pending, &w->sums.v[w->next_sum], w->sums.v[w->next_sum].value);
	if (last == first)
		return;
	for (size_t i = t->list.n; i-- > first && last == t->list.n;)
		if (t->list.v[i].kind == THREADSTATE_RUNNING)
			last = i;
	if (last == t->list.n)
		last--;
	pour(t, &t->list.v[last], &w->pending, UINT64_MAX);
}

/* A recorder's clocks, and sums of one wait that stand at the begin of their slot, let waits overlap, or reach out of the life
 * of their thread: what has no place is counted as a sum. */
static void walk_thread(struct walk *w, uint64_t begin_ns, uint64_t end_ns)
{
	size_t first = w->m->t->list.n;
	uint64_t now = begin_ns;

	for (size_t i = 0; i < w->waits.n; i++) {
		const struct part *part = &w->waits.v[i];
		uint64_t begin = MAX(part->begin_ns, now), end = MIN(part->end_ns, end_ns);

		if (end <= begin) {
			count_short(&w->pending, part, part->end_ns - part->begin_ns);
			continue;
		}
		w->pending.ns[part->cause] += begin - part->begin_ns + part->end_ns - end;
		add_running(w, now, begin);
		add_state(w->m, part, begin, end, part->role == ROLE_QUEUE ? THREADSTATE_QUEUE : THREADSTATE_WAIT);
		now = end;
	}
	add_running(w, now, end_ns);
	pour_rest(w, first);
}

/* --- states of a thread of which there are only samples --- */

/* A sample of a clock stands for the time before it, one that is the sum of a slot for the slot. */
static void sampled_span(const struct profile *p, const struct part *s, uint64_t *begin_ns, uint64_t *end_ns)
{
	const struct profile_summed *slot = s->count > 1 ? profile_summed_at(p, s->begin_ns) : NULL;
	uint64_t period = s->value / s->count;

	*begin_ns = s->begin_ns - MIN(period, s->begin_ns);
	*end_ns = MAX(s->begin_ns, *begin_ns + 1);
	if (slot && slot->start_ns == s->begin_ns) {
		*begin_ns = slot->start_ns;
		*end_ns = MAX(slot->end_ns, slot->start_ns + 1);
	}
}

static void add_sampled(struct making *m, uint32_t thread, const struct parts *samples)
{
	size_t at = 0;

	while (at < samples->n) {
		struct threadstate s = { .thread = thread, .kind = THREADSTATE_SAMPLED, .cause = CAUSE_CPU, .block = PROFILE_NONE };
		uint64_t begin, end, most = 0, run = 0;
		size_t first = at;

		sampled_span(m->job->profile, &samples->v[at], &s.begin_ns, &s.end_ns);
		if (first && m->t->list.n)
			s.begin_ns = MAX(s.begin_ns, m->t->list.v[m->t->list.n - 1].end_ns);
		for (; at < samples->n; at++) {
			const struct part *part = &samples->v[at];

			sampled_span(m->job->profile, part, &begin, &end);
			if (at > first && begin > s.end_ns + part->value / part->count)
				break;
			s.end_ns = MAX(s.end_ns, end);
			s.cpu_ns += part->value;
			s.samples += MIN(part->count, UINT32_MAX - s.samples);
			/* The longest run of one stack. */
			run = at > first && part->stack == samples->v[at - 1].stack ? run + part->value : part->value;
			if (run > most) {
				most = run;
				s.stack = part->stack;
			}
		}
		if (s.end_ns > s.begin_ns)
			vec_push(&m->t->list, s);
	}
}

/* --- all threads --- */

/* When a thread was there; its sums can reach further back than when it was first seen (account.h). */
static void life_of(const struct making *m, const struct walk *w, uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct profile *p = m->job->profile;
	const struct select_options *o = &m->job->selection->options;
	const struct profile_thread *t = &p->threads.v[w->thread];
	uint64_t kept = MAX(MAX(t->run_ns, t->queue_ns), t->blocked_ns) < INT64_MAX / 4 ? t->run_ns + t->queue_ns + t->blocked_ns : 0;
	uint64_t end = MAX(t->end_ns ? t->end_ns : select_duration_ns(p), kept), begin = MIN(t->start_ns, end - kept);

	begin = MAX(begin, o->from_ns);
	if (o->to_ns)
		end = MIN(end, o->to_ns);
	/* An import may say nothing of its threads. Of others no wait is outside: a sum of one stands at the begin of its slot. */
	if (w->waits.n && !kept) {
		begin = MIN(begin, w->waits.v[0].begin_ns);
		end = MAX(end, w->waits.v[w->waits.n - 1].end_ns);
	}
	*ret_begin = begin;
	*ret_end = end;
}

static struct parts of_thread(struct part *v, size_t n, size_t *at, uint32_t thread)
{
	struct parts parts = { n ? v + *at : NULL, 0 };

	while (*at < n && v[*at].thread == thread) {
		++*at;
		parts.n++;
	}
	return parts;
}

static void add_waits_alone(struct making *m, const struct parts *waits, const struct parts *sums)
{
	for (size_t i = 0, k = 0; i < waits->n || k < sums->n;) {
		if (i < waits->n && (k == sums->n || waits->v[i].begin_ns <= sums->v[k].begin_ns)) {
			const struct part *part = &waits->v[i++];
			const struct threadstate *last = m->t->list.n ? &m->t->list.v[m->t->list.n - 1] : NULL;
			uint64_t begin = last && last->thread == part->thread ? MAX(part->begin_ns, last->end_ns) : part->begin_ns;

			if (begin < part->end_ns)
				add_state(m, part, begin, part->end_ns, part->role == ROLE_QUEUE ? THREADSTATE_QUEUE : THREADSTATE_WAIT);
		} else {
			const struct part *part = &sums->v[k++];
			struct pending pending = { 0 };

			count_short(&pending, part, part->value);
			pour(m->t, add_state(m, part, part->begin_ns, part->begin_ns, THREADSTATE_SUM), &pending, UINT64_MAX);
		}
	}
}

static void walk_threads(struct making *m)
{
	const struct profile *p = m->job->profile;
	size_t wait = 0, sum = 0, sample = 0;

	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		struct walk w = { .m = m, .thread = i };
		uint64_t begin, end;

		w.waits = of_thread(m->waits.v, m->waits.n, &wait, i);
		w.sums = of_thread(m->sums.v, m->sums.n, &sum, i);
		w.samples = of_thread(m->samples.v, m->samples.n, &sample, i);
		if (!m->picked[i])
			continue;
		if (!m->gaps) {
			add_waits_alone(m, &w.waits, &w.sums);
			if (!w.waits.n && !w.sums.n)
				add_sampled(m, i, &w.samples);
		} else if (w.waits.n || w.sums.n || t->run_ns || t->queue_ns || t->blocked_ns) {
			life_of(m, &w, &begin, &end);
			walk_thread(&w, begin, end);
		} else {
			add_sampled(m, i, &w.samples);
		}
	}
}

/* Are all waits of the selected threads among the rows? */
static bool has_all_waits(const struct export_job *job)
{
	const struct selection *s = job->selection;

	return select_has_waits(job->profile) && (job->options.every_event || s->options.event == SELECT_WALL) && !s->options.function &&
	       !s->root;
}

int threadstates_make(struct threadstates *t, const struct export_job *job, const struct samplerows *rows, size_t limit, struct err *err)
{
	struct making m = { .t = t, .job = job, .gaps = has_all_waits(job) };
	int r;

	*t = (struct threadstates){ .whole = m.gaps };
	r = select_threads(job->profile, &job->selection->options, &m.picked, err);
	if (r)
		return r;
	sort_rows(&m, rows);
	if (m.gaps)
		join_shortest(&m, limit);
	vec_sort(&m.waits, compare_parts);
	vec_sort(&m.sums, compare_parts);
	vec_sort(&m.samples, compare_parts);
	walk_threads(&m);
	vec_done(&m.waits);
	vec_done(&m.sums);
	vec_done(&m.samples);
	free(m.picked);
	return 0;
}

void threadstates_done(struct threadstates *t)
{
	vec_done(&t->list);
	vec_done(&t->shorts);
}

const struct threadstate *threadstates_at(const struct threadstates *t, uint32_t thread, uint64_t time_ns)
{
	size_t i = vec_search(k, 0, t->list.n,
			      t->list.v[k].thread < thread || (t->list.v[k].thread == thread && t->list.v[k].end_ns <= time_ns));

	return i < t->list.n && t->list.v[i].thread == thread ? &t->list.v[i] : NULL;
}

static uint64_t shorts_ns(const struct threadstates *t, const struct threadstate *s)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->shorts; i++)
		ns += t->shorts.v[s->first_short + i].ns;
	return ns;
}

const char *threadstate_name(const struct threadstates *t, const struct threadstate *s)
{
	switch (s->kind) {
	case THREADSTATE_RUNNING:
		return !s->shorts ? "running" : shorts_ns(t, s) * 2 > s->end_ns - s->begin_ns ? "short waits" : "running, short waits";
	case THREADSTATE_SAMPLED:
		return s->cpu_ns < (s->end_ns - s->begin_ns) / 2 ? "running in part" : "running";
	case THREADSTATE_SUM:
		return "short waits";
	default:
		return threadstate_cause(s->cause);
	}
}
