/*
 * keys.h - the names by which collectors and analyses meet: counters, series and histograms of a profile.
 *
 * A collector writes under a key and an analysis reads under the same one; neither knows the other. All of them are in
 * keys.def, with unit, meaning and merge rule; the rest of the program uses the constants made of it, and
 * tools/check-includes refuses their names as literals.
 *
 *	profile_count(p, KEY_HEAP_LOST, 1);
 *	profile_count_of(p, KEY_IO_CALLS_OF, "pread64", 1);     counts "io.pread64.calls"
 *	series = profile_series(p, KEY_MEM_RSS);
 *
 * Names of another version's capture that are not in the table are kept: they have no unit, and counters add up.
 */
#pragma once

#include <stddef.h>

#define KEY(kind, constant, ...) extern const char KEY_##constant[];
#include "profile/keys.def"

enum key_kind { KEY_COUNTER, KEY_SERIES, KEY_HISTOGRAM };

/* How profile_merge() combines the values of two recordings. */
enum key_merge {
	KEY_SUM,
	KEY_MIN,
	KEY_MAX,
	KEY_ALIKE, /* a setting: the larger one, and KEY_HEAP_INTERVAL_DIFFERS where they differ */
	KEY_ERROR, /* standard errors of independent figures: the root of the sum of their squares */
	KEY_JOIN,  /* points of both, each with the time of its own recording */
};

struct key {
	const char *name; /* the constant itself */
	const char *unit, *meaning;
	enum key_kind kind;
	enum key_merge merge;
};

extern const struct key key_table[];
extern const size_t key_table_size;

/* The key that a name belongs to, itself or as one of a family; NULL: it is not in the table. */
const struct key *key_find(const char *name);
/* Its unit; "" where the name is not in the table. */
const char *key_unit(const char *name);
/* The name of one of a family: KEY_IO_CALLS_OF and "pread64" give "io.pread64.calls". Caller frees. */
char *key_of(const char *family, const char *which);
/* The reverse: "pread64" of "io.pread64.calls"; NULL where the name is not of that family. Caller frees. */
char *key_which(const char *family, const char *name);
/* The same for a family whose '*' is at its end, as a pointer into name. */
const char *key_rest(const char *family, const char *name);
