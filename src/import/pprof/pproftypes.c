#include "import/pprof/pproftypes.h"

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "profile/profile.h"

/* --- units --- */

static const struct unit {
	const char *name, *base;
	uint64_t scale;
} units[] = {
	{ "nanoseconds", "ns", 1 },
	{ "nanosecond", "ns", 1 },
	{ "ns", "ns", 1 },
	{ "microseconds", "ns", 1000 },
	{ "microsecond", "ns", 1000 },
	{ "us", "ns", 1000 },
	{ "milliseconds", "ns", 1000000 },
	{ "millisecond", "ns", 1000000 },
	{ "ms", "ns", 1000000 },
	{ "seconds", "ns", 1000000000 },
	{ "second", "ns", 1000000000 },
	{ "s", "ns", 1000000000 },
	{ "bytes", "bytes", 1 },
	{ "byte", "bytes", 1 },
	{ "By", "bytes", 1 },
	{ "b", "bytes", 1 },
	{ "kilobytes", "bytes", 1 << 10 },
	{ "kb", "bytes", 1 << 10 },
	{ "KiBy", "bytes", 1 << 10 },
	{ "megabytes", "bytes", 1 << 20 },
	{ "mb", "bytes", 1 << 20 },
	{ "MiBy", "bytes", 1 << 20 },
	{ "gigabytes", "bytes", 1 << 30 },
	{ "gb", "bytes", 1 << 30 },
	{ "GiBy", "bytes", 1 << 30 },
};

static void find_unit(struct pproftype *t)
{
	/* Hundredths and the like, as we write them. */
	t->base = str_starts(t->unit, "count/") ? t->unit : "count";
	t->scale = 1;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(t->unit, units[i].name)) {
			t->base = units[i].base;
			t->scale = units[i].scale;
		}
}

/* --- types that belong together --- */

static bool counts_what(const char *count, const char *value)
{
	static const char *const pairs[][2] = {
		{ "samples", "cpu" },		{ "sample", "cpu" },	       { "alloc_objects", "alloc_space" },
		{ "inuse_objects", "inuse_space" }, { "contentions", "delay" }, { "objects", "space" },
		{ "allocations", "space" },
	};
	size_t n = strlen(value);

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (!strcmp(count, pairs[i][0]) && !strcmp(value, pairs[i][1]))
			return true;
	return !strncmp(count, value, n) && !strcmp(count + n, "_count");
}

/* Of two types the first counts samples, whatever the other one is: "sample", "wall". */
static bool only_two(const struct pproftypes *t, size_t count)
{
	return t->list.n == 2 && !count && (!strcmp(t->list.v[0].name, "samples") || !strcmp(t->list.v[0].name, "sample"));
}

static void find_pairs(struct pproftypes *t)
{
	for (size_t i = 0; i < t->list.n; i++) {
		struct pproftype *count = &t->list.v[i];

		for (size_t k = 0; k < t->list.n && !strcmp(count->base, "count") && count->counts == PROFILE_NONE; k++) {
			struct pproftype *value = &t->list.v[k];
			bool of_it = counts_what(count->name, value->name) || (only_two(t, i) && strcmp(value->base, "count"));

			if (k == i || !of_it || value->counted != PROFILE_NONE || value->counts != PROFILE_NONE ||
			    count->counted != PROFILE_NONE)
				continue;
			count->counts = k;
			value->counted = i;
		}
	}
}

/* --- events --- */

static const char *event_name(const struct pproftype *t)
{
	static const char *const names[][3] = {
		{ "alloc_space", "bytes", "alloc" }, { "alloc_objects", "count", "alloc-objects" },
		{ "inuse_space", "bytes", "heap" },  { "inuse_objects", "count", "heap-objects" },
		{ "goroutine", "count", "goroutines" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(t->name, names[i][0]) && !strcmp(t->base, names[i][1]))
			return names[i][2];
	return *t->name ? t->name : "samples";
}

static char *describe(const struct pproftype *t)
{
	bool plain = strcmp(t->base, "count") || !*t->unit || !strcmp(t->unit, "count");

	if (!strcmp(t->name, event_name(t)) && plain)
		return mem_strdup("");
	return plain ? mem_printf("%s of the imported profile", t->name) : mem_printf("%s, in %s", t->name, t->unit);
}

static void make_event(struct pproftypes *t, struct profile *p, size_t i)
{
	struct pproftype *type = &t->list.v[i];
	_cleanup_free_ char *words = describe(type), *name = mem_strdup(event_name(type));

	if (type->counts != PROFILE_NONE || type->event != PROFILE_NONE)
		return;
	/* Two of one name would be one to --what. */
	for (unsigned k = 2; profile_find_event(p, name, NULL) != PROFILE_NONE; k++) {
		mem_freep(&name);
		name = mem_printf("%s.%u", event_name(type), k);
	}
	type->event = profile_add_event(p, name, type->base, words, 0);
}

void pproftypes_make(struct pproftypes *t, struct profile *p, size_t first)
{
	for (size_t i = 0; i < t->list.n; i++) {
		struct pproftype *type = &t->list.v[i];

		type->event = type->counts = type->counted = PROFILE_NONE;
		type->total = 0;
		find_unit(type);
	}
	find_pairs(t);
	if (first < t->list.n) {
		uint32_t counts = t->list.v[first].counts;

		make_event(t, p, counts == PROFILE_NONE ? first : counts);
	}
	for (size_t i = 0; i < t->list.n; i++)
		make_event(t, p, i);
	for (size_t i = 0; i < t->list.n; i++)
		if (t->list.v[i].counts != PROFILE_NONE)
			t->list.v[i].event = t->list.v[t->list.v[i].counts].event;
}

uint32_t pproftypes_event(const struct pproftypes *t, const char *name)
{
	for (size_t i = 0; i < t->list.n; i++)
		if (!strcmp(t->list.v[i].name, name))
			return t->list.v[i].event;
	return PROFILE_NONE;
}
