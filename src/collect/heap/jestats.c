#include "collect/heap/jestats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "collect/heap/implant.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* All arenas together, as jemalloc numbers them since 5.0. */
#define ALL "stats.arenas.4096."

enum { MOST_CLASSES = 1024 };

static const struct {
	const char *name, *key;
} totals[] = {
	{ "stats.allocated", KEY_JEMALLOC_ALLOCATED }, { "stats.active", KEY_JEMALLOC_ACTIVE },
	{ "stats.metadata", KEY_JEMALLOC_METADATA },   { "stats.resident", KEY_JEMALLOC_RESIDENT },
	{ "stats.mapped", KEY_JEMALLOC_MAPPED },       { "stats.retained", KEY_JEMALLOC_RETAINED },
};

/* A value for each size class. */
struct column {
	uint64_t v[MOST_CLASSES];
};

struct stats {
	uint32_t bins, extents; /* small classes, which share slabs; large ones, which have pages of their own */
	struct column size, slab_size, objects, slabs;
	struct column large_size, large;
	uint64_t totals[ARRAY_LEN(totals)], cached;
};

struct reading {
	struct implant *implant;
	uint64_t control, until_ns; /* mallctl; when patience ends */
	struct err *err;
};

static uint64_t left_ns(const struct reading *r)
{
	uint64_t now = clock_mono_ns();

	return now < r->until_ns ? r->until_ns - now : 1;
}

static int get(const struct reading *r, const char *name, void *value, size_t size)
{
	return implant_control(r->implant, r->control,
			       &(struct implant_control){ .name = name, .old = value, .old_size = size }, left_ns(r), r->err);
}

static int get_column(const struct reading *r, const char *name, const char *rest, size_t width, uint32_t n,
		      struct column *ret)
{
	int e = 0;

	for (uint32_t at = 0; at < n && !e; at += IMPLANT_MANY) {
		const struct implant_many m = { .name = name, .rest = rest, .first = at, .width = width,
						.count = MIN(n - at, (uint32_t)IMPLANT_MANY) };

		e = implant_control_many(r->implant, r->control, &m, ret->v + at, left_ns(r), r->err);
	}
	return e;
}

static int read_classes(const struct reading *r, struct stats *s)
{
	int e = get(r, "arenas.nbins", &s->bins, sizeof(s->bins));

	e = e ?: get(r, "arenas.nlextents", &s->extents, sizeof(s->extents));
	s->bins = MIN(s->bins, (uint32_t)MOST_CLASSES);
	s->extents = MIN(s->extents, (uint32_t)MOST_CLASSES);
	e = e ?: get_column(r, "arenas.bin.", ".size", 8, s->bins, &s->size);
	e = e ?: get_column(r, "arenas.bin.", ".slab_size", 8, s->bins, &s->slab_size);
	e = e ?: get_column(r, ALL "bins.", ".curregs", 8, s->bins, &s->objects);
	e = e ?: get_column(r, ALL "bins.", ".curslabs", 8, s->bins, &s->slabs);
	e = e ?: get_column(r, "arenas.lextent.", ".size", 8, s->extents, &s->large_size);
	return e ?: get_column(r, ALL "lextents.", ".curlextents", 8, s->extents, &s->large);
}

/* All of one jemalloc, before any of it is noted. */
static int read_stats(const struct reading *r, struct stats *s)
{
	uint64_t epoch = 1;
	bool compiled = false;
	int e = get(r, "config.stats", &compiled, sizeof(compiled));

	if (!e && !compiled)
		return -ENOTSUP;
	/* The figures are those of the last time that somebody asked for new ones. */
	e = e ?: implant_control(r->implant, r->control,
				 &(struct implant_control){ .name = "epoch", .new = &epoch, .new_size = sizeof(epoch) },
				 left_ns(r), r->err);
	e = e ?: read_classes(r, s);
	for (size_t i = 0; i < ARRAY_LEN(totals) && !e; i++)
		e = get(r, totals[i].name, &s->totals[i], sizeof(s->totals[i]));
	if (e)
		return implant_gave_up(e) ? e : -ENOTSUP;
	e = get(r, ALL "tcache_bytes", &s->cached, sizeof(s->cached)); /* not in each version */
	return implant_gave_up(e) ? e : 0;
}

static void count_class(struct profile *p, uint64_t size, uint64_t objects, uint64_t slabs, uint64_t held)
{
	char class[24];

	if (!size || !held)
		return;
	snprintf(class, sizeof(class), "%llu", (unsigned long long)size);
	profile_count_of(p, KEY_JEMALLOC_CLASS_OBJECTS_OF, class, objects);
	profile_count_of(p, KEY_JEMALLOC_CLASS_SLABS_OF, class, slabs);
	profile_count_of(p, KEY_JEMALLOC_CLASS_HELD_OF, class, held);
}

/* Adds to what another process, or another jemalloc, has at that moment. */
static void add_total(struct profile *p, const char *key, uint64_t time_ns, uint64_t value)
{
	uint32_t series = profile_series(p, key);

	for (size_t i = p->points.n; i-- > 0;) {
		struct profile_point *point = &p->points.v[i];

		if (point->series == series && point->time_ns == time_ns) {
			point->value += value;
			return;
		}
		if (point->time_ns < time_ns)
			break;
	}
	profile_add_point(p, series, time_ns, value);
}

static void note(const struct stats *s, struct profile *p, uint64_t time_ns)
{
	for (uint32_t i = 0; i < s->bins; i++)
		count_class(p, s->size.v[i], s->objects.v[i], s->slabs.v[i], s->slabs.v[i] * s->slab_size.v[i]);
	for (uint32_t i = 0; i < s->extents; i++)
		count_class(p, s->large_size.v[i], s->large.v[i], 0, s->large_size.v[i] * s->large.v[i]);
	for (size_t i = 0; i < ARRAY_LEN(totals); i++)
		add_total(p, totals[i].key, time_ns, s->totals[i]);
	profile_count(p, KEY_JEMALLOC_CACHED_BYTES, s->cached);
}

int jestats_note(struct profile *p, struct implant *i, uint64_t time_ns, uint64_t wait_ns, struct err *err)
{
	_cleanup_free_ struct stats *s = mem_alloc(sizeof(*s));
	struct reading r = { .implant = i, .until_ns = clock_mono_ns() + wait_ns, .err = err };
	bool any = false, noted = false;
	int e;

	if (!implant_hooked(i))
		return err_set(err, ESRCH, "the process has ended, or no slot of it leads to our hooks any more");
	for (unsigned k = 0; (r.control = implant_control_at(i, k)); k++) {
		any = true;
		memset(s, 0, sizeof(*s));
		e = read_stats(&r, s);
		if (implant_gave_up(e)) {
			profile_count(p, KEY_JEMALLOC_WITHOUT_ANSWER, 1);
			return e;
		}
		if (!e)
			note(s, p, time_ns);
		noted |= !e;
	}
	if (noted)
		return 0;
	if (!any)
		return err_set(err, ENOENT, "there is no jemalloc with symbols among the allocators of the process");
	profile_count(p, KEY_JEMALLOC_WITHOUT_STATS, 1);
	return err_set(err, ENOTSUP, "the jemalloc of the process is built without statistics, or is older than 5.0");
}
