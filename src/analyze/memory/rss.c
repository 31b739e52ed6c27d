#include "analyze/memory/rss.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* --- series --- */

static bool is_ours(const char *name)
{
	static const char *const prefixes[] = { "mem.",      "heap.",    "cgroup.",
						"jemalloc.", "machine.", "pressure." };

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	return false;
}

static void add_point(struct rss_series *s, const struct profile_point *point)
{
	if (!s->points++) {
		s->first = s->least = s->most = point->value;
		s->first_ns = point->time_ns;
	}
	s->last = point->value;
	s->last_ns = point->time_ns;
	s->least = MIN(s->least, point->value);
	s->most = MAX(s->most, point->value);
	s->sum += point->value;
}

static void read_series(struct rss *r, const struct profile *p, uint64_t from_ns, uint64_t to_ns)
{
	_cleanup_free_ uint32_t *at = mem_alloc((p->series.n + 1) * sizeof(*at));
	size_t kept = 0;

	for (size_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name);

		at[i] = is_ours(name) ? r->series.n : PROFILE_NONE;
		if (at[i] != PROFILE_NONE)
			vec_push(&r->series,
				 (struct rss_series){ .name = name,
						      .id = i,
						      .unit = profile_str(p, p->series.v[i].unit) });
	}
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];

		if (point->series < p->series.n && at[point->series] != PROFILE_NONE &&
		    point->time_ns >= from_ns && (!to_ns || point->time_ns < to_ns))
			add_point(&r->series.v[at[point->series]], point);
	}
	for (size_t i = 0; i < r->series.n; i++)
		if (r->series.v[i].points)
			r->series.v[kept++] = r->series.v[i];
	r->series.n = kept;
}

const struct rss_series *rss_find(const struct rss *r, const char *name)
{
	for (size_t i = 0; i < r->series.n; i++)
		if (!strcmp(r->series.v[i].name, name))
			return &r->series.v[i];
	return NULL;
}

int64_t rss_last(const struct rss *r, const char *name, int64_t fallback)
{
	const struct rss_series *s = rss_find(r, name);

	return s ? s->last : fallback;
}

double rss_rate(const struct rss *r, const char *name)
{
	const struct rss_series *s = rss_find(r, name);

	/* Each point is what came since the look before it, the first one since the first look. */
	if (!s || s->last_ns <= r->begin_ns)
		return -1;
	return s->sum / ((s->last_ns - r->begin_ns) / 1e9);
}

size_t rss_columns(const struct rss *r, const struct profile *p, uint32_t series, double *columns, size_t n)
{
	const struct rss_series *s = &r->series.v[series];
	_cleanup_free_ size_t *counts = NULL;
	uint64_t length = r->end_ns - r->begin_ns + 1;

	n = MIN(n, s->points);
	if (!n)
		return 0;
	counts = mem_alloc(n * sizeof(*counts));
	memset(columns, 0, n * sizeof(*columns));
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];
		size_t at;

		if (point->series != s->id || point->time_ns < r->begin_ns || point->time_ns > r->end_ns)
			continue;
		at = (double)(point->time_ns - r->begin_ns) / length * n;
		at = MIN(at, n - 1);
		columns[at] += point->value;
		counts[at]++;
	}
	for (size_t i = 0; i < n; i++) {
		if (counts[i])
			columns[i] /= counts[i];
		else
			columns[i] = i ? columns[i - 1] : s->first;
	}
	return n;
}

/* --- the table --- */

static void add_row(struct rss *r, struct rss_row row, const char *series)
{
	const struct rss_series *s = series ? rss_find(r, series) : NULL;

	row.series = s ? (uint32_t)(s - r->series.v) : UINT32_MAX;
	if (!row.note)
		row.note = "";
	vec_push(&r->rows, row);
}

static int compare_rows(const void *a, const void *b)
{
	const struct rss_row *x = a, *y = b;

	return ORDER(y->bytes, x->bytes) ?: strcmp(x->label, y->label);
}

static void add_files(struct rss *r, int64_t files)
{
	size_t first;

	add_row(r, (struct rss_row){ .key = "files", .label = "mapped files", .bytes = files },
		KEY_MEM_PART_FILES);
	first = r->rows.n;
	for (size_t i = 0; i < r->series.n; i++) {
		const struct rss_series *s = &r->series.v[i];
		const char *path = key_rest(KEY_MEM_FILE_OF, s->name);

		/* A file that was unmapped long ago has no point there. */
		if (!path || s->last_ns != r->moment_ns || s->last <= 0)
			continue;
		files -= s->last;
		add_row(r,
			(struct rss_row){ .key = "file",
					  .label = path,
					  .kind = RSS_DETAIL,
					  .bytes = s->last },
			s->name);
	}
	if (r->rows.n > first + 1)
		qsort(r->rows.v + first, r->rows.n - first, sizeof(*r->rows.v), compare_rows);
	if (files > 0 && r->rows.n > first)
		add_row(r, (struct rss_row){ .key = "other_files", .label = "other files", .kind = RSS_DETAIL,
					     .bytes = files }, NULL);
}

/* Finds the known parts of the heap: *live of *arenas is resident and alive. */
static void find_live(struct rss *r, int64_t anonymous, int64_t *live, int64_t *arenas)
{
	const struct rss_series *resident = rss_find(r, KEY_HEAP_RESIDENT), *in = rss_find(r, KEY_HEAP_ARENAS);
	int64_t allocated = rss_last(r, KEY_JEMALLOC_ALLOCATED, -1),
		most = rss_last(r, KEY_JEMALLOC_RESIDENT, -1);

	/* jemalloc knows of all of its heap, samples only of what came since the recording began. */
	if (resident && in && (r->from_start || allocated < 0)) {
		r->source = RSS_FROM_HEAP;
		r->live_bytes = rss_last(r, KEY_HEAP_LIVE, resident->last);
		*arenas = in->last;
		*live = resident->last;
	} else if (allocated >= 0) {
		r->source = RSS_FROM_METRICS;
		r->live_bytes = allocated;
		*arenas = most >= 0 ? most : anonymous;
		*live = allocated;
	} else {
		return;
	}
	*arenas = MAX(MIN(*arenas, anonymous), 0);
	*live = MAX(MIN(*live, *arenas), 0);
}

/* A few words on what live heap is here. */
static const char *live_note(const struct rss *r)
{
	if (r->source == RSS_FROM_METRICS)
		return "allocated, says jemalloc";
	if (r->exact)
		return "objects on resident pages";
	return r->from_start ? "objects on resident pages, by those sampled" :
			       "of what was allocated since the recording began";
}

static const char *slack_note(const struct rss *r)
{
	if (r->source == RSS_FROM_METRICS)
		return "resident less allocated, says jemalloc";
	return r->from_start ? "the rest of the mappings with live objects" :
			       "the same mappings' rest, and heap older than the recording";
}

/* The heap and all other anonymous memory, split as far as it is known. */
static void add_anonymous(struct rss *r)
{
	int64_t heap = rss_last(r, KEY_MEM_PART_HEAP, 0), rest = rss_last(r, KEY_MEM_PART_ANONYMOUS, 0);
	int64_t live = 0, arenas = 0;
	bool from_heap;

	find_live(r, heap + rest, &live, &arenas);
	from_heap = r->source == RSS_FROM_HEAP;
	if (r->source == RSS_NO_SOURCE) {
		add_row(r, (struct rss_row){ "heap", "heap", .bytes = heap,
					     .note = "[heap], arenas of glibc, mappings that an allocator named" },
			KEY_MEM_PART_HEAP);
		add_row(r, (struct rss_row){ "anonymous", "other anonymous",
					     "heap of most allocators, and what the program maps itself",
					     .bytes = rest }, KEY_MEM_PART_ANONYMOUS);
		return;
	}
	add_row(r, (struct rss_row){ "live_heap", "live heap", live_note(r), .bytes = live,
				     .estimate = !r->exact }, from_heap ? KEY_HEAP_RESIDENT : KEY_JEMALLOC_ALLOCATED);
	add_row(r, (struct rss_row){ "slack", "allocator slack", slack_note(r), .bytes = arenas - live,
				     .estimate = !r->exact }, NULL);
	add_row(r, (struct rss_row){ "anonymous", "other anonymous",
				     from_heap ? "mappings without a live object" :
						 "not jemalloc's: the program's own, another allocator's",
				     .bytes = heap + rest - arenas }, NULL);
}

static void add_rows(struct rss *r)
{
	const char *shared = rss_find(r, KEY_HEAP_LIVE) ? "memfd, tmpfs, System V; gasflame's hooks are here, too" :
							"memfd, tmpfs, System V, shared anonymous";
	const struct {
		const char *key, *label, *series, *note;
	} rest[] = {
		{ "shared", "shared memory", KEY_MEM_PART_SHARED, shared },
		{ "stacks", "stacks", KEY_MEM_PART_STACKS, "of threads, and of their signal handlers" },
		{ "data", "program data", KEY_MEM_PART_DATA, "variables of programs and libraries" },
		{ "other", "other", KEY_MEM_PART_OTHER, "[vdso] and the like" },
	};

	add_anonymous(r);
	add_files(r, rss_last(r, KEY_MEM_PART_FILES, 0));
	for (size_t i = 0; i < ARRAY_LEN(rest); i++)
		add_row(r, (struct rss_row){ .key = rest[i].key, .label = rest[i].label, .note = rest[i].note,
					     .bytes = rss_last(r, rest[i].series, 0) }, rest[i].series);
	r->rss = 0;
	for (size_t i = 0; i < r->rows.n; i++)
		r->rss += r->rows.v[i].kind == RSS_PART ? r->rows.v[i].bytes : 0;
}

static void find_group(struct rss *r, const struct profile *p)
{
	r->group = "";
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *path = key_rest(KEY_CGROUP_PATH_OF, profile_str(p, p->counters.v[i].name));

		if (path) {
			r->group = path;
			r->group_version = p->counters.v[i].value;
		}
	}
}

static int compare_classes(const void *a, const void *b)
{
	const struct rss_class *x = a, *y = b;

	return ORDER(y->rounding_bytes, x->rounding_bytes) ?: ORDER(x->size, y->size);
}

static void find_classes(struct rss *r, const struct profile *p)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		_cleanup_free_ char *size = key_which(KEY_HEAP_CLASS_LIVE_OF, profile_str(p, p->counters.v[i].name));
		struct rss_class c = { .live_bytes = p->counters.v[i].value };

		if (!size)
			continue;
		c.size = strtoull(size, NULL, 10);
		c.rounding_bytes = profile_counter_of(p, KEY_HEAP_CLASS_ROUNDING_OF, size);
		vec_push(&r->classes, c);
	}
	vec_sort(&r->classes, compare_classes);
}

void rss_build(struct rss *r, const struct profile *p, uint64_t from_ns, uint64_t to_ns)
{
	const struct rss_series *rss, *parts;
	int64_t active;

	*r = (struct rss){ .fragmentation = -1, .group = "" };
	read_series(r, p, from_ns, to_ns);
	find_classes(r, p);
	rss = rss_find(r, KEY_MEM_RSS);
	if (!rss)
		return;
	r->recorded = true;
	r->begin_ns = rss->first_ns;
	r->end_ns = rss->last_ns;
	r->looks = rss->points;
	r->rss = rss->last;
	r->moment_ns = rss->last_ns;
	r->from_start = profile_counter(p, KEY_HEAP_FROM_START);
	r->exact = r->from_start && rss_find(r, KEY_HEAP_RESIDENT) &&
		   profile_counter(p, KEY_HEAP_INTERVAL_BYTES) <= 1;
	active = rss_last(r, KEY_JEMALLOC_ACTIVE, 0);
	if (active > 0 && rss_find(r, KEY_JEMALLOC_ALLOCATED))
		r->fragmentation = MAX(0, 1 - (double)rss_last(r, KEY_JEMALLOC_ALLOCATED, 0) / active);
	find_group(r, p);
	parts = rss_find(r, KEY_MEM_PART_FILES);
	if (!parts)
		return;
	r->walked = true;
	r->moment_ns = parts->last_ns;
	add_rows(r);
}

void rss_done(struct rss *r)
{
	vec_done(&r->rows);
	vec_done(&r->classes);
	vec_done(&r->series);
}
