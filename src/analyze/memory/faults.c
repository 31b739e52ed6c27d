#include "analyze/memory/faults.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "base/map.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Which field of a weight an event is for. */
static const struct kind {
	const char *event;
	size_t field;
} kinds[] = {
	{ "major-faults", offsetof(struct faults_weight, major) },
	{ "minor-faults", offsetof(struct faults_weight, minor) },
	{ "major-time", offsetof(struct faults_weight, major_ns) },
	{ "minor-time", offsetof(struct faults_weight, minor_ns) },
	{ "reclaims", offsetof(struct faults_weight, reclaims) },
	{ "reclaim-time", offsetof(struct faults_weight, reclaim_ns) },
};

struct build {
	struct faults *faults;
	const struct profile *profile;
	struct map by_function; /* identity to an index of functions */
	struct map by_file;     /* frame of the note to an index of files */
	struct map by_part;     /* those two frames to an index of its file's ranges */
};

static void add(struct faults_weight *w, const struct kind *k, uint64_t value)
{
	*(uint64_t *)((char *)w + k->field) += value;
}

static const struct profile_frame *frame_of(const struct profile *p, uint32_t stack)
{
	return &p->frames.v[p->stacks.v[stack].frame];
}

static const char *name_of(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	return f->line_count ? profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name) : "";
}

/* Returns the end of the notes, where the stack begins; also the outermost note (the touched mapping) and
 * the innermost. */
static uint32_t skip_notes(const struct profile *p, uint32_t stack, uint32_t *ret_place, uint32_t *ret_part)
{
	*ret_place = *ret_part = PROFILE_NONE;
	for (; stack && frame_of(p, stack)->kind == FRAME_NOTE; stack = p->stacks.v[stack].parent) {
		*ret_place = p->stacks.v[stack].frame;
		if (*ret_part == PROFILE_NONE)
			*ret_part = *ret_place;
	}
	return stack;
}

static struct faults_function *function_of(struct build *b, uint32_t stack)
{
	struct faults *f = b->faults;
	uint32_t site = ownfunction_of_stack(&f->idents, stack);
	const struct ident *ident;
	uint64_t *at = map_put(&b->by_function, site, PROFILE_NONE);

	if (*at == PROFILE_NONE) {
		*at = f->functions.n;
		ident = site == OWNFUNCTION_NONE ? NULL : &f->idents.list.v[site];
		vec_push(&f->functions, (struct faults_function){ .name = ident ? ident->name : "[no stack]",
								  .module = ident ? ident->module : "" });
	}
	return &f->functions.v[*at];
}

static struct faults_file *file_of(struct build *b, uint32_t frame)
{
	struct faults *f = b->faults;
	uint64_t *at = map_put(&b->by_file, frame, PROFILE_NONE);

	if (*at == PROFILE_NONE) {
		*at = f->files.n;
		vec_push(&f->files, (struct faults_file){ .name = name_of(b->profile, frame) });
	}
	return &f->files.v[*at];
}

/* "mdbx.dat at 0x40000-0x80000", as the collector wrote it. */
static bool parse_range(const char *note, struct faults_range *ret)
{
	const char *at = NULL;
	unsigned long long from, to;
	int end = 0;

	for (const char *next = note; (next = strstr(next, " at 0x")); next++)
		at = next;
	if (!at || sscanf(at, " at 0x%llx-0x%llx%n", &from, &to, &end) != 2 || at[end] || from >= to)
		return false;
	*ret = (struct faults_range){ .from = from, .to = to };
	return true;
}

static void add_range(struct build *b, uint32_t place, uint32_t part, uint64_t major)
{
	struct faults_file *file = file_of(b, place);
	struct faults_range range;
	uint64_t *at;

	if (!parse_range(name_of(b->profile, part), &range))
		return;
	at = map_put(&b->by_part, map_pair(place, part), file->ranges.n);
	if (*at == file->ranges.n)
		vec_push(&file->ranges, range);
	file->ranges.v[*at].major += major;
}

static void add_entry(struct build *b, const struct kind *k, uint32_t stack, uint64_t value)
{
	uint32_t place, part;

	stack = skip_notes(b->profile, stack, &place, &part);
	add(&b->faults->all, k, value);
	add(&function_of(b, stack)->weight, k, value);
	if (place == PROFILE_NONE)
		return;
	add(&file_of(b, place)->weight, k, value);
	if (k->field == offsetof(struct faults_weight, major) && part != place)
		add_range(b, place, part, value);
}

static void add_event(struct build *b, const struct kind *k, const struct select_options *o)
{
	struct select_options options = *o;
	struct selection s;

	options.event = profile_find_event(b->profile, k->event, NULL);
	if (options.event == PROFILE_NONE)
		return;
	if (selection_make(b->profile, &options, &s, NULL) >= 0) /* else nothing passes the filters */
		for (size_t i = 0; i < s.entries.n; i++)
			add_entry(b, k, s.entries.v[i].stack, s.entries.v[i].weight.value);
	selection_done(&s);
}

static int compare_weights(const struct faults_weight *a, const struct faults_weight *b)
{
	return ORDER(b->major_ns, a->major_ns) ?: ORDER(b->major, a->major) ?:
	       ORDER(b->minor + b->reclaims, a->minor + a->reclaims);
}

static int compare_functions(const void *a, const void *b)
{
	const struct faults_function *x = a, *y = b;

	return compare_weights(&x->weight, &y->weight) ?: strcmp(x->name, y->name);
}

static int compare_files(const void *a, const void *b)
{
	const struct faults_file *x = a, *y = b;

	return compare_weights(&x->weight, &y->weight) ?: strcmp(x->name, y->name);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct faults_range *x = a, *y = b;

	return ORDER(x->from, y->from) ?: ORDER(x->to, y->to);
}

static void add_series(struct faults *f, const struct profile *p, const struct select_options *o)
{
	uint64_t *sums = mem_alloc((p->series.n + 1) * sizeof(*sums));

	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];

		if (point->time_ns >= o->from_ns && (!o->to_ns || point->time_ns < o->to_ns) &&
		    point->value > 0 && point->series < p->series.n)
			sums[point->series] += point->value;
	}
	for (size_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name);

		if (!strncmp(name, "pressure.", 9) || !strncmp(name, "cgroup.", 7))
			vec_push(&f->series,
				 (struct faults_series){ .name = name, .sum = sums[i],
							 .unit = profile_str(p, p->series.v[i].unit) });
	}
	free(sums);
}

static void add_counters(struct faults *f, const struct profile *p)
{
	f->timed = !profile_counter(p, KEY_FAULTS_NO_TIME);
	f->reclaims_seen = !profile_counter(p, KEY_RECLAIM_NOT_SEEN);
	f->kswapd_seen = !profile_counter(p, KEY_KSWAPD_NOT_SEEN);
	f->kswapd_wakes = profile_counter(p, KEY_KSWAPD_WAKES);
	f->without_stack = profile_counter(p, KEY_FAULTS_WITHOUT_EVENT);
	f->walked = profile_counter(p, KEY_FAULTS_STACKS_WALKED);
	f->remembered = profile_counter(p, KEY_FAULTS_STACKS_REMEMBERED);
	f->no_psi = profile_counter(p, KEY_PRESSURE_NO_PSI);
	f->no_cgroup_psi = profile_counter(p, KEY_PRESSURE_NO_CGROUP_PSI);
	f->no_memory_events = profile_counter(p, KEY_PRESSURE_NO_MEMORY_EVENTS);
}

void faults_build(struct faults *f, const struct profile *p, const struct select_options *o)
{
	struct build b = { .faults = f, .profile = p };
	uint64_t end = select_duration_ns(p);

	memset(f, 0, sizeof(*f));
	idents_init(&f->idents, p, 0);
	/* "major-faults" alone may be an event that was recorded by name. */
	f->recorded = profile_find_event(p, "reclaim-time", NULL) != PROFILE_NONE;
	if (!f->recorded)
		return;
	if (o->to_ns && o->to_ns < end)
		end = o->to_ns;
	f->duration_ns = end > o->from_ns ? end - o->from_ns : 0;
	add_counters(f, p);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		add_event(&b, &kinds[i], o);
	add_series(f, p, o);
	vec_sort(&f->functions, compare_functions);
	vec_sort(&f->files, compare_files);
	for (size_t i = 0; i < f->files.n; i++)
		vec_sort(&f->files.v[i].ranges, compare_ranges);
	map_done(&b.by_function);
	map_done(&b.by_file);
	map_done(&b.by_part);
}

void faults_done(struct faults *f)
{
	vec_done_each(&f->files, e, vec_done(&e->ranges));
	vec_done(&f->functions);
	vec_done(&f->series);
	idents_done(&f->idents);
}

double faults_hit_percent(const struct faults *f)
{
	uint64_t all = f->all.major + f->all.minor;

	return all ? 100.0 * f->all.minor / all : 100;
}

uint64_t faults_series_sum(const struct faults *f, const char *name)
{
	for (size_t i = 0; i < f->series.n; i++)
		if (!strcmp(f->series.v[i].name, name))
			return f->series.v[i].sum;
	return 0;
}
