#include "analyze/wait/underway.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/wait/cause.h"
#include "analyze/wait/pattern.h"
#include "profile/profile.h"

enum { NO = 1, YES = 2 };

void underway_init(struct underway *w, const struct profile *p, struct patterns *patterns)
{
	*w = (struct underway){ .p = p, .patterns = patterns };
}

void underway_done(struct underway *w)
{
	free(w->functions);
	free(w->stacks);
	free(w->threads);
	vec_done(&w->spans);
	*w = (struct underway){ 0 };
}

static void grow(uint8_t **list, size_t *n, size_t wanted)
{
	if (wanted <= *n)
		return;
	wanted = MAX(wanted, *n + *n / 2);
	*list = mem_resize(*list, wanted, 1);
	memset(*list + *n, 0, wanted - *n);
	*n = wanted;
}

/* --- stacks --- */

static bool is_work(struct underway *w, uint32_t function)
{
	const struct profile *p = w->p;

	grow(&w->functions, &w->function_count, p->functions.n);
	if (!w->functions[function])
		w->functions[function] =
			patterns_is_work(w->patterns, profile_str(p, p->functions.v[function].name)) ? YES : NO;
	return w->functions[function] == YES;
}

static bool frame_is_work(struct underway *w, uint32_t frame)
{
	const struct profile_frame *f = &w->p->frames.v[frame];

	if (f->kind != FRAME_USER)
		return false;
	for (uint32_t i = 0; i < f->line_count; i++)
		if (is_work(w, w->p->lines.v[f->first_line + i].function))
			return true;
	return false;
}

bool underway_on_stack(struct underway *w, uint32_t stack)
{
	const struct profile *p = w->p;
	uint8_t found = NO;
	uint32_t end = stack;

	grow(&w->stacks, &w->stack_count, p->stacks.n);
	while (end && !w->stacks[end] && found == NO) {
		if (frame_is_work(w, p->stacks.v[end].frame))
			found = YES;
		else
			end = p->stacks.v[end].parent;
	}
	if (end && found == NO)
		found = w->stacks[end];
	/* All callees of a function that is work, and all of a stack without one, have the same answer. */
	for (uint32_t s = stack; s; s = p->stacks.v[s].parent) {
		w->stacks[s] = found;
		if (s == end)
			break;
	}
	return found == YES;
}

/* --- spans --- */

static int compare_spans(const void *a, const void *b)
{
	const struct underway_span *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Spans within each other, or that overlap, become one. */
static void join_spans(struct underway *w)
{
	size_t n = 0;

	vec_sort(&w->spans, compare_spans);
	for (size_t i = 0; i < w->spans.n; i++) {
		struct underway_span *last = n ? &w->spans.v[n - 1] : NULL, *s = &w->spans.v[i];

		if (last && last->thread == s->thread && s->start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, s->end_ns);
		else
			w->spans.v[n++] = *s;
	}
	w->spans.n = n;
}

static void find_spans(struct underway *w)
{
	const struct profile *p = w->p;

	if (w->marks == p->marks.n)
		return;
	w->marks = p->marks.n;
	w->spans.n = 0;
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (m->thread < p->threads.n && m->start_ns < m->end_ns)
			vec_push(&w->spans, (struct underway_span){ m->thread, m->start_ns, m->end_ns });
	}
	join_spans(w);
	for (size_t i = 0; i < w->thread_count; i++)
		w->threads[i] &= ~UNDERWAY_BY_SPANS;
	grow(&w->threads, &w->thread_count, p->threads.n);
	for (size_t i = 0; i < w->spans.n; i++)
		w->threads[w->spans.v[i].thread] |= UNDERWAY_BY_SPANS;
}

bool underway_in_span(struct underway *w, uint32_t thread, uint64_t begin_ns, uint64_t end_ns)
{
	size_t low = 0, high;

	find_spans(w);
	/* The last span that begins not after it. */
	for (high = w->spans.n; low < high;) {
		size_t middle = low + (high - low) / 2;
		const struct underway_span *s = &w->spans.v[middle];

		if (s->thread < thread || (s->thread == thread && s->start_ns <= begin_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low && w->spans.v[low - 1].thread == thread && w->spans.v[low - 1].end_ns >= end_ns;
}

/* --- threads --- */

unsigned underway_known(struct underway *w, uint32_t thread)
{
	const struct profile *p = w->p;

	find_spans(w);
	grow(&w->threads, &w->thread_count, p->threads.n);
	if (w->samples > p->samples.n)
		w->samples = 0;
	for (; w->samples < p->samples.n; w->samples++) {
		const struct profile_sample *s = &p->samples.v[w->samples];

		if (!(w->threads[s->thread] & UNDERWAY_BY_STACKS) && cause_role(p, s->event) != ROLE_OTHER &&
		    underway_on_stack(w, s->stack))
			w->threads[s->thread] |= UNDERWAY_BY_STACKS;
	}
	return w->threads[thread];
}
