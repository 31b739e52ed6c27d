#include "analyze/memory/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/io.h"
#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum what { ALLOC, FREED, TEMPORARY, HEAP, PEAK, WHATS };

static const char *const events[WHATS] = { "alloc", "freed", "temporary", "heap", "peak" };

struct build {
	struct heap_figures *f;
	const struct profile *p;
	struct map by_stack;    /* to an index of functions */
	struct map by_function; /* identity to the same */
	enum what what;
	uint64_t from_ns, to_ns;
};

double heap_error(const struct heap_sum *s)
{
	return s->variance > 0 ? sqrt(s->variance) : 0;
}

/* w = n / (1 - exp(-n / interval)) is to be solved for n; then the chance is n / w. In units of the interval.
 */
double heap_chance(uint64_t bytes, uint64_t interval)
{
	double w = interval > 1 ? (double)bytes / interval : 0, x;

	if (interval <= 1)
		return 1;
	if (w <= 1)
		return 0; /* of the smallest objects */
	x = w > 2 ? w : 2 * (w - 1);
	for (int i = 0; i < 40; i++) {
		double e = exp(-x), step = (x - w * (1 - e)) / (1 - w * e);

		if (!isfinite(step))
			break;
		x = x - step > 0 ? x - step : x / 2;
		if (fabs(step) < 1e-12 * x)
			break;
	}
	return x < w ? x / w : 1;
}

/* --- functions --- */

/* The innermost of the user's own functions. */
static uint32_t nearest_own(struct heap_figures *f, uint32_t stack)
{
	const struct profile *p = f->idents.p;
	uint32_t n;

	for (; stack; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame;
		const uint32_t *list;

		if (p->frames.v[frame].kind != FRAME_USER)
			continue;
		list = idents_of_frame(&f->idents, frame, &n);
		for (uint32_t k = n; k-- > 0;) {
			const struct ident id = f->idents.list.v[list[k]];

			if (crate_kind(&f->crates, &id) == CODE_OWN && !ownfunction_is_library(id.name, id.module))
				return list[k];
		}
	}
	return OWNFUNCTION_NONE;
}

static struct heap_function *function_of(struct build *b, uint32_t stack)
{
	struct heap_figures *f = b->f;
	uint64_t *known = map_put(&b->by_stack, stack, UINT64_MAX), *at;
	const struct ident *id;
	uint32_t site;

	if (*known != UINT64_MAX)
		return &f->functions.v[*known];
	site = nearest_own(f, stack);
	if (site == OWNFUNCTION_NONE)
		site = ownfunction_of_stack(&f->idents, stack);
	at = map_put(&b->by_function, site, f->functions.n);
	if (*at == f->functions.n) {
		id = site == OWNFUNCTION_NONE ? NULL : &f->idents.list.v[site];
		vec_push(&f->functions, (struct heap_function){ .name = id ? id->name : "[no stack]",
								.module = id ? id->module : "" });
	}
	*known = *at;
	return &f->functions.v[*at];
}

/* --- sums --- */

static void add(struct heap_sum *to, const struct weight *w, double variance)
{
	to->bytes += w->value;
	to->objects += w->samples;
	to->samples++;
	to->variance += variance;
}

/* Adds to the live bytes after each third of the time that the sample precedes. */
static void add_thirds(struct build *b, struct heap_function *g, uint64_t time_ns, int64_t bytes)
{
	uint64_t third = (b->to_ns - b->from_ns) / 3;

	for (int i = 0; i < 3; i++)
		if (i == 2 || time_ns < b->from_ns + (i + 1) * third)
			g->thirds[i] += bytes;
}

static void add_hit(void *context, const struct select_hit *hit)
{
	struct build *b = context;
	struct heap_figures *f = b->f;
	const struct profile_sample *s = &b->p->samples.v[hit->index];
	struct heap_function *g = function_of(b, hit->stack);
	double value = hit->weight.value;
	double variance =
		b->what == PEAK ? 0 : value * value * (1 - heap_chance(hit->weight.value, f->interval));

	switch (b->what) {
	case ALLOC:
		add(&f->allocated, &hit->weight, variance);
		add(&g->allocated, &hit->weight, variance);
		add_thirds(b, g, s->time_ns, hit->weight.value);
		break;
	case FREED:
		add(&f->freed, &hit->weight, variance);
		g->freed_bytes += hit->weight.value;
		add_thirds(b, g, s->time_ns, -(int64_t)hit->weight.value);
		break;
	case TEMPORARY:
		add(&f->temporary, &hit->weight, variance);
		add(&g->temporary, &hit->weight, variance);
		break;
	case HEAP:
		add(&f->live, &hit->weight, variance);
		add(&g->live, &hit->weight, variance);
		g->age_ns += value * (b->to_ns > s->time_ns ? b->to_ns - s->time_ns : 0);
		break;
	case PEAK:
		add(&f->peak, &hit->weight, 0);
		add(&g->peak, &hit->weight, 0);
		f->peak_ns = s->time_ns;
		break;
	case WHATS:
		break;
	}
}

static void add_event(struct build *b, const struct select_options *o)
{
	struct select_options options = *o;

	options.event = profile_find_event(b->p, events[b->what], "bytes");
	if (options.event != PROFILE_NONE)
		select_each(b->p, &options, add_hit, b,
			    NULL); /* a sample that does not pass the filters does not count */
}

/* --- the rest --- */

static void read_counters(struct heap_figures *f, const struct profile *p)
{
	static const double shares[] = { 0.5, 0.9, 0.99 };
	double error = profile_counter(p, KEY_HEAP_PEAK_ERROR_BYTES);

	f->counted_bytes = profile_counter(p, KEY_HEAP_ALLOCATED_BYTES);
	f->counted = profile_counter(p, KEY_HEAP_ALLOCATIONS);
	f->lost = profile_counter(p, KEY_HEAP_LOST) + profile_counter(p, KEY_HEAP_SAMPLES_WITHOUT_ROOM);
	f->execs = profile_counter(p, KEY_HEAP_EXECS);
	f->unseen = profile_counter(p, KEY_HEAP_FREES_UNSEEN);
	f->peak.samples = profile_counter(p, KEY_HEAP_PEAK_SAMPLES);
	f->peak.variance = error * error;
	for (size_t i = 0; i < p->histograms.n; i++) {
		const struct profile_histogram *h = &p->histograms.v[i];

		if (strcmp(profile_str(p, h->name), KEY_HEAP_LIFETIME))
			continue;
		for (int k = 0; k < 64; k++)
			f->lifetimes += h->counts[k];
		for (int k = 0; k < 3; k++)
			f->lifetime_ns[k] = io_percentile(h->counts, shares[k]);
	}
}

static void end_functions(struct heap_figures *f)
{
	for (size_t i = 0; i < f->functions.n; i++) {
		struct heap_function *g = &f->functions.v[i];
		int64_t middle = g->thirds[1] - g->thirds[0], last = g->thirds[2] - g->thirds[1];
		double error = heap_error(&g->live);

		if (g->live.bytes)
			g->age_ns /= g->live.bytes;
		/* A program that has warmed up grows less and less. */
		g->grows = !f->recordings && middle > 0 && last > 0 && last * 4 >= middle && middle + last > 3 * error &&
			   g->live.samples >= 4;
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct heap_function *x = a, *y = b;

	return ORDER(y->live.bytes, x->live.bytes) ?: ORDER(y->allocated.bytes, x->allocated.bytes) ?:
	       strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

bool heap_measure(struct heap_figures *f, const struct profile *p, const struct select_options *o,
		  const char *const *own)
{
	struct build b = { .f = f, .p = p, .from_ns = o->from_ns, .to_ns = select_duration_ns(p) };

	*f = (struct heap_figures){ .interval = profile_counter(p, KEY_HEAP_INTERVAL_BYTES) };
	idents_init(&f->idents, p, 0);
	crates_init(&f->crates, p, own);
	/* "heap" alone may be a dump of another profiler; only a recording knows of "temporary". */
	if (profile_find_event(p, "temporary", "bytes") == PROFILE_NONE)
		return false;
	if (o->to_ns)
		b.to_ns = MIN(b.to_ns, o->to_ns);
	b.to_ns = MAX(b.to_ns, b.from_ns);
	f->duration_ns = b.to_ns - b.from_ns;
	f->recordings = profile_counter(p, KEY_MERGED_RECORDINGS);
	f->no_error = profile_counter(p, KEY_HEAP_INTERVAL_DIFFERS);
	f->exact = f->interval <= 1 && !f->no_error;
	f->filtered = o->from_ns || o->to_ns || o->threads || o->processes || o->function;
	f->ended = p->processes.n && p->processes.v[0].end_ns;
	for (b.what = 0; b.what < WHATS; b.what++)
		add_event(&b, o);
	read_counters(f, p);
	end_functions(f);
	vec_sort(&f->functions, compare_functions);
	map_done(&b.by_stack);
	map_done(&b.by_function);
	if (!f->functions.n && !f->counted)
		return false;
	heap_judge(f, p);
	return true;
}

void heap_done(struct heap_figures *f)
{
	vec_done_each(&f->verdict, e, free(*e));
	vec_done(&f->links);
	vec_done(&f->functions);
	crates_done(&f->crates);
	idents_done(&f->idents);
}
