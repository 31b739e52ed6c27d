#include "analyze/memory/heapseries.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"

struct gather {
	struct heapseries *h;
	bool down;
};

static void see(void *context, const struct select_hit *hit)
{
	struct gather *g = context;
	const struct profile_sample *s = &g->h->p->samples.v[hit->index];

	vec_push(&g->h->steps, (struct heapseries_step){ s->time_ns, hit->weight.value, hit->weight.samples,
							 s->thread, hit->stack, g->down });
}

/* At equal times an increase comes before a decrease: an object may live for no time at all. */
static int compare_steps(const void *a, const void *b)
{
	const struct heapseries_step *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: x->down - y->down;
}

/* A dump is a moment: all its increases and decreases happen at once. */
static void find_peak(struct heapseries *h)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < h->steps.n; i++) {
		const struct heapseries_step *s = &h->steps.v[i];

		if (s->down)
			bytes -= MIN(bytes, s->bytes);
		else
			bytes += s->bytes;
		if (i + 1 < h->steps.n && h->steps.v[i + 1].time_ns == s->time_ns)
			continue;
		if (bytes > h->peak_bytes) {
			h->peak_bytes = bytes;
			h->peak_ns = s->time_ns;
		}
	}
	h->end_ns = select_duration_ns(h->p);
	if (h->steps.n)
		h->end_ns = MAX(h->end_ns, h->steps.v[h->steps.n - 1].time_ns);
}

int heapseries_make(struct heapseries *h, const struct profile *p, const struct select_options *o,
		    struct err *err)
{
	uint32_t up = profile_find_event(p, "rise", NULL), down = profile_find_event(p, "fall", NULL);
	int r;

	*h = (struct heapseries){ .p = p, .options = *o };
	if (up == PROFILE_NONE || down == PROFILE_NONE) {
		up = profile_find_event(p, "alloc", NULL);
		down = profile_find_event(p, "freed", NULL);
	}
	if (up == PROFILE_NONE || down == PROFILE_NONE)
		return err_set(err, ENODATA,
			       "there is no heap over time in this recording: record with -e heap, or "
			       "take heap dumps");
	h->options.from_ns = h->options.to_ns = 0;
	h->options.causes = NULL;
	h->options.event = up;
	r = select_each(p, &h->options, see, &(struct gather){ h, false }, err);
	h->options.event = down;
	if (!r && select_each(p, &h->options, see, &(struct gather){ h, true }, NULL) == -EINVAL)
		r = err_set(err, EINVAL, "the selection makes no sense");
	vec_sort(&h->steps, compare_steps);
	find_peak(h);
	h->options.event = up;
	return r;
}

void heapseries_done(struct heapseries *h)
{
	vec_done(&h->steps);
	vec_done(&h->cells);
	map_done(&h->index);
}

static void take(struct heapseries *h, const struct heapseries_step *s)
{
	uint64_t *at = map_put(&h->index, map_pair(s->thread, s->stack), h->cells.n);
	struct weight *w;

	if (*at == h->cells.n)
		vec_push(&h->cells, (struct select_entry){ .thread = s->thread, .stack = s->stack });
	w = &h->cells.v[*at].weight;
	if (s->down) {
		w->value -= MIN(w->value, s->bytes);
		w->samples -= MIN(w->samples, s->count);
	} else {
		w->value += s->bytes;
		w->samples += s->count;
	}
}

void heapseries_at(struct heapseries *h, uint64_t time_ns, struct selection *ret)
{
	*ret = (struct selection){
		.options = h->options, .name = "heap", .unit = "bytes", .describe = "alive"
	};
	for (; h->at < h->steps.n && h->steps.v[h->at].time_ns <= time_ns; h->at++)
		take(h, &h->steps.v[h->at]);
	for (size_t i = 0; i < h->cells.n; i++) {
		const struct select_entry *e = &h->cells.v[i];

		if (!e->weight.value)
			continue;
		vec_push(&ret->entries, *e);
		ret->all.value += e->weight.value;
		ret->all.samples += e->weight.samples;
	}
	ret->recorded = ret->all;
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return ORDER(*x, *y);
}

size_t heapseries_moments(const struct heapseries *h, uint64_t *ret, size_t most)
{
	size_t n = 0, distinct = 0, kept = 0;

	for (size_t i = 0; i < h->steps.n; i++)
		distinct += !i || h->steps.v[i].time_ns != h->steps.v[i - 1].time_ns;
	if (distinct + 2 <= most) {
		for (size_t i = 0; i < h->steps.n; i++)
			if (!i || h->steps.v[i].time_ns != h->steps.v[i - 1].time_ns)
				ret[n++] = h->steps.v[i].time_ns;
	} else {
		for (size_t i = 0; i + 2 < most; i++)
			ret[n++] = (uint64_t)((double)h->end_ns / (most - 3) * i);
		ret[n++] = h->peak_ns;
	}
	ret[n++] = h->end_ns;
	qsort(ret, n, sizeof(*ret), compare_times);
	for (size_t i = 0; i < n; i++)
		if (!kept || ret[i] != ret[kept - 1])
			ret[kept++] = ret[i];
	return kept;
}
