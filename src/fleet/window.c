#include "fleet/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/samplerows.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { MOST_WINDOWS = 1000000 };

/* --- what stacks and frames are --- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	return map_hash(map_hash(h + 0x9e3779b97f4a7c15ULL) ^ x);
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	return mix(h, map_hash_bytes(s, strlen(s)));
}

/* A frame is the place in a build of a file, and its names: those that are found later make another frame of it. */
static uint64_t hash_frame(const struct profile *p, const struct profile_frame *f)
{
	const struct profile_module *m = f->module < p->modules.n ? &p->modules.v[f->module] : NULL;
	uint64_t h = mix(mix(1, f->kind), f->address);

	if (m) {
		h = mix_text(mix(h, m->kind), profile_str(p, m->path));
		h = mix(h, map_hash_bytes(m->build_id, m->build_id_size));
	}
	for (uint32_t i = 0; i < f->line_count; i++) {
		const struct profile_line *line = &p->lines.v[f->first_line + i];
		const struct profile_function *function = &p->functions.v[line->function];

		h = mix_text(mix_text(mix(h, line->line), profile_str(p, function->name)), profile_str(p, function->file));
		h = mix(h, function->named);
	}
	return h;
}

static void hash_stacks(struct windows *w)
{
	const struct profile *p = w->p;

	w->frame_hashes = mem_resize(NULL, p->frames.n + 1, sizeof(*w->frame_hashes));
	for (size_t i = 0; i < p->frames.n; i++)
		w->frame_hashes[i] = hash_frame(p, &p->frames.v[i]);
	/* Parents come before their children. */
	w->stack_hashes = mem_resize(NULL, p->stacks.n + 1, sizeof(*w->stack_hashes));
	w->stack_hashes[0] = 0;
	for (size_t i = 1; i < p->stacks.n; i++)
		w->stack_hashes[i] = mix(w->stack_hashes[p->stacks.v[i].parent], w->frame_hashes[p->stacks.v[i].frame]) ?: 1;
}

uint64_t window_wall_ns(const struct windows *w, const struct window *x)
{
	return w->p->start_wall_ns + x->start_ns;
}

uint64_t window_id(const char *target, uint64_t wall_ns, uint64_t sequence)
{
	return mix(mix(mix_text(2, target), wall_ns), sequence);
}

uint64_t window_mark_id(const struct windows *w, const char *target, uint32_t mark)
{
	const struct profile *p = w->p;
	const struct profile_mark *m = &p->marks.v[mark];
	uint64_t h = mix(mix(mix_text(3, target), p->start_wall_ns + m->start_ns), p->start_wall_ns + m->end_ns);

	return mix_text(mix_text(h, profile_str(p, m->kind)), profile_str(p, m->name)) ?: 1;
}

/* --- sums --- */

static size_t window_at(const struct windows *w, uint64_t time_ns, uint64_t each_ns)
{
	return MIN(time_ns / each_ns, w->list.n - 1);
}

static int make_list(struct windows *w, uint64_t each_ns, struct err *err)
{
	const struct profile *p = w->p;
	uint64_t duration = MAX(select_duration_ns(p), (uint64_t)1), n = (duration + each_ns - 1) / each_ns;

	if (n > MOST_WINDOWS)
		return err_set(err, EFBIG, "the recording is too long for a store: more than %d windows", MOST_WINDOWS);
	for (uint64_t i = 0; i < n; i++) {
		struct window x = { .start_ns = i * each_ns, .duration_ns = MIN(each_ns, duration - i * each_ns), .sequence = i };

		vec_push(&w->list, x);
		for (size_t k = 0; k < p->events.n; k++)
			vec_push(&w->list.v[i].totals, (struct window_total){ 0 });
	}
	return 0;
}

/* The key of a sum; causes are a few static strings. */
static uint64_t sum_key(const struct window_sample *s, size_t window)
{
	return mix(mix(mix(map_pair(s->event, s->thread), map_pair(s->stack, s->mark)), (uintptr_t)s->cause), window);
}

static void add_rows(struct windows *w, const struct samplerows *rows, uint64_t each_ns)
{
	const struct profile *p = w->p;
	struct map sums = { 0 };

	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *row = &rows->list.v[i];
		const struct profile_sample *s = &p->samples.v[row->sample];
		size_t at = window_at(w, s->time_ns, each_ns);
		struct window *x = &w->list.v[at];
		struct window_sample sum = { .event = s->event, .thread = s->thread, .stack = s->stack, .mark = row->block,
					     .cause = samplerow_cause(row) };
		uint64_t *index = map_put(&sums, sum_key(&sum, at), x->samples.n);

		if (*index == x->samples.n)
			vec_push(&x->samples, sum);
		x->samples.v[*index].value += s->value;
		x->samples.v[*index].count += s->count ? s->count : 1;
		x->totals.v[s->event].value += s->value;
		x->totals.v[s->event].count += s->count ? s->count : 1;
	}
	map_done(&sums);
}

/* Part i of n of a value: all parts are the value, whatever is rounded. */
static uint64_t part_of(uint64_t value, uint64_t i, uint64_t n)
{
	return (uint64_t)((unsigned __int128)value * (i + 1) / n - (unsigned __int128)value * i / n);
}

/* The times of a thread are known for the recording as a whole: each window of its life has the same part. */
static void add_threads(struct windows *w, uint64_t each_ns)
{
	const struct profile *p = w->p;

	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		size_t first = window_at(w, t->start_ns, each_ns), last = t->end_ns ? window_at(w, t->end_ns, each_ns) : w->list.n - 1;
		uint64_t n = last < first ? 1 : last - first + 1;

		for (uint64_t k = 0; k < n; k++)
			vec_push(&w->list.v[first + k].threads,
				 (struct window_thread){ i, part_of(t->cpu_ns, k, n), part_of(t->run_ns, k, n), part_of(t->queue_ns, k, n),
							 part_of(t->blocked_ns, k, n) });
	}
}

static void add_facts(struct windows *w, uint64_t each_ns)
{
	const struct profile *p = w->p;

	for (uint32_t i = 0; i < p->marks.n; i++)
		vec_push(&w->list.v[window_at(w, p->marks.v[i].start_ns, each_ns)].marks, i);
	for (uint32_t i = 0; i < p->points.n; i++)
		vec_push(&w->list.v[window_at(w, p->points.v[i].time_ns, each_ns)].points, i);
}

/* What adds up is spread over the windows; what does not, as a setting, is the same in each of them. */
static void add_counters(struct windows *w)
{
	const struct profile *p = w->p;

	for (uint32_t i = 0; i < p->counters.n; i++) {
		const struct key *key = key_find(profile_str(p, p->counters.v[i].name));
		bool adds_up = !key || key->merge == KEY_SUM;

		for (size_t k = 0; k < w->list.n; k++) {
			uint64_t value = p->counters.v[i].value, part = adds_up ? part_of(value, k, w->list.n) : value;

			if (part || !adds_up)
				vec_push(&w->list.v[k].counters, (struct window_count){ i, part });
		}
	}
}

static void digest(struct windows *w)
{
	for (size_t i = 0; i < w->list.n; i++) {
		struct window *x = &w->list.v[i];
		uint64_t h = mix(4, x->duration_ns);

		for (size_t k = 0; k < x->totals.n; k++)
			if (x->totals.v[k].count) {
				h = mix_text(h, profile_str(w->p, w->p->events.v[k].name));
				h = mix(mix(h, x->totals.v[k].value), x->totals.v[k].count);
			}
		x->digest = mix(h, x->marks.n);
	}
}

int windows_make(struct windows *w, const struct export_job *job, uint64_t each_ns, struct err *err)
{
	struct samplerows rows = { 0 };
	int r;

	*w = (struct windows){ .p = job->profile };
	if (!w->p->start_wall_ns)
		return err_set(err, ENODATA, "it does not say when it was recorded, which a store is ordered by");
	r = make_list(w, each_ns, err);
	if (!r && w->p->samples.n)
		r = samplerows_make(&rows, job, SAMPLEROWS_IDLE | SAMPLEROWS_EVERY, err);
	if (!r) {
		hash_stacks(w);
		add_rows(w, &rows, each_ns);
		add_threads(w, each_ns);
		add_facts(w, each_ns);
		add_counters(w);
		digest(w);
	}
	samplerows_done(&rows);
	return r;
}

void windows_done(struct windows *w)
{
	vec_done_each(&w->list, e, vec_done(&e->samples); vec_done(&e->totals); vec_done(&e->threads); vec_done(&e->counters);
		      vec_done(&e->marks); vec_done(&e->points));
	free(w->frame_hashes);
	free(w->stack_hashes);
	*w = (struct windows){ 0 };
}
