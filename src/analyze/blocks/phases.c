#include "analyze/blocks/phases.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/text/match.h"
#include "base/mem.h"
#include "profile/profile.h"

enum { NO_PHASE = UINT8_MAX };

struct looking {
	struct phases *f;
	const struct profile *p;
	const struct selection *s;
	uint64_t *on;       /* by stack: which phases are on it */
	uint8_t *nearest;   /* by stack */
	struct weight *outside; /* by thread */
	uint8_t *seen;      /* by thread: had a phase */
	struct map by_thread; /* phase and thread to value */
};

/* Returns a byte for each function: the first phase that it matches. */
static int match_functions(struct looking *l, const char *const *names, uint8_t **ret, struct err *err)
{
	const struct profile *p = l->p;
	uint8_t *of = mem_alloc(p->functions.n + 1);

	memset(of, NO_PHASE, p->functions.n + 1);
	*ret = of;
	for (size_t k = 0; names[k]; k++) {
		char why[128];
		regex_t regex;
		int r;

		if (k == PHASES_MOST)
			return err_set(err, EINVAL, "more than %d phases: name fewer functions", PHASES_MOST);
		r = regcomp(&regex, names[k], REG_EXTENDED | REG_NOSUB);
		if (r) {
			regerror(r, &regex, why, sizeof(why));
			return err_set(err, EINVAL,
				       "--phases '%s' is not a regular expression: %s (put \\ before "
				       "a bracket that is meant literally)",
				       names[k], why);
		}
		for (size_t i = 0; i < p->functions.n; i++)
			if (of[i] == NO_PHASE &&
			    match_regex(&regex, profile_str(p, p->functions.v[i].name), 0, NULL))
				of[i] = k;
		regfree(&regex);
		vec_push(&l->f->rows, (struct phase){ .name = names[k], .first_ns = UINT64_MAX });
	}
	return 0;
}

/* Parents come before their children: each node adds its frame's functions to what its callers are in. */
static void match_stacks(struct looking *l, const uint8_t *functions)
{
	const struct profile *p = l->p;

	l->on = mem_alloc((p->stacks.n + 1) * sizeof(*l->on));
	l->nearest = mem_alloc(p->stacks.n + 1);
	l->nearest[0] = NO_PHASE;
	for (size_t i = 1; i < p->stacks.n; i++) {
		const struct profile_node *n = &p->stacks.v[i];
		const struct profile_frame *f = &p->frames.v[n->frame];

		l->on[i] = l->on[n->parent];
		l->nearest[i] = l->nearest[n->parent];
		if (f->kind != FRAME_USER && f->kind != FRAME_KERNEL)
			continue;
		for (uint32_t k = f->line_count; k-- > 0;) { /* outermost first */
			uint8_t phase = functions[p->lines.v[f->first_line + k].function];

			if (phase == NO_PHASE)
				continue;
			l->on[i] |= 1ULL << phase;
			l->nearest[i] = phase;
		}
	}
}

static void see(struct looking *l, uint32_t k, uint32_t thread, uint64_t begin, uint64_t end, uint64_t value)
{
	struct phase *row = &l->f->rows.v[k];
	uint64_t *sum = map_put(&l->by_thread, map_pair(k, thread), UINT64_MAX);

	if (*sum == UINT64_MAX) {
		*sum = 0;
		row->threads++;
	}
	*sum += value;
	if (*sum > row->thread_value || row->threads == 1) {
		row->thread_value = *sum;
		row->thread = thread;
	}
	row->first_ns = MIN(row->first_ns, begin);
	row->last_ns = MAX(row->last_ns, end);
}

static void add_hit(void *context, const struct select_hit *hit)
{
	struct looking *l = context;
	const struct select_options *o = &l->s->options;
	uint32_t thread = l->p->samples.v[hit->index].thread, stack = hit->stack;
	uint64_t begin, end;

	if (l->s->shaped)
		stack = l->s->shaped[stack];
	if (hit->idle || stack == PROFILE_NONE)
		return;
	weight_add(&l->f->all, &hit->weight);
	if (l->nearest[stack] == NO_PHASE) {
		weight_add(&l->outside[thread], &hit->weight);
		return;
	}
	l->seen[thread] = 1;
	weight_add(&l->f->rows.v[l->nearest[stack]].weight, &hit->weight);
	select_span(l->p, hit->index, hit->role, &begin, &end);
	begin = MAX(begin, o->from_ns);
	end = o->to_ns ? MIN(end, o->to_ns) : end;
	for (uint32_t k = 0; k < l->f->rows.n; k++) {
		if (!(l->on[stack] >> k & 1))
			continue;
		weight_add(&l->f->rows.v[k].total, &hit->weight);
		see(l, k, thread, begin, end, hit->weight.value);
	}
}

static int compare_phases(const void *a, const void *b)
{
	const struct phase *x = a, *y = b;

	return ORDER(x->first_ns, y->first_ns) ?: strcmp(x->name, y->name);
}

static void finish(struct looking *l)
{
	struct phases *f = l->f;

	for (size_t i = 0; i < l->p->threads.n; i++) {
		weight_add(l->seen[i] ? &f->outside : &f->elsewhere, &l->outside[i]);
		f->threads += l->seen[i];
	}
	vec_sort(&f->rows, compare_phases);
	for (size_t i = 0; i < f->rows.n; i++)
		if (!f->rows.v[i].threads)
			f->rows.v[i].first_ns = 0;
}

int phases_build(struct phases *f, const struct profile *p, const struct selection *s,
		 const char *const *names, struct err *err)
{
	struct looking l = { .f = f, .p = p, .s = s };
	_cleanup_free_ uint8_t *functions = NULL;
	int r;

	*f = (struct phases){ 0 };
	r = match_functions(&l, names, &functions, err);
	if (r)
		return r;
	match_stacks(&l, functions);
	l.outside = mem_alloc((p->threads.n + 1) * sizeof(*l.outside));
	l.seen = mem_alloc(p->threads.n + 1);
	r = select_each(p, &s->options, add_hit, &l, err);
	if (!r)
		finish(&l);
	if (!r && f->all.samples && !f->threads)
		r = err_set(err, ENODATA,
			    "none of these functions is on a stack here: try shorter pieces of their names");
	free(l.on);
	free(l.nearest);
	free(l.outside);
	free(l.seen);
	map_done(&l.by_thread);
	return r;
}

void phases_done(struct phases *f)
{
	vec_done(&f->rows);
}
