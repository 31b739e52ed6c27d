/*
 * reading.h - a capture on its way into a profile. For src/capture only.
 *
 * Life: init -> all -> done, which leaves the profile to the caller. Between all and done its ids are known, so that more
 * samples can be read (parts.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/map.h"
#include "base/vec.h"
#include "capture/columns.h"
#include "capture/scan/joining.h"
#include "profile/profile.h"

struct err;
struct tablescan_row;

/*
 * Maps ids of the file to ids of the profile. A sound file numbers its rows 0,
 * 1, 2... and needs no map; after a gap, a dropped row or one that was interned
 * into another, the map takes over.
 */
struct ids {
	uint32_t dense; /* ids below this are the same in both */
	bool sparse;
	struct map map;
};

static inline void ids_add(struct ids *ids, int64_t id, uint32_t index)
{
	if (!ids->sparse && id == index && id == ids->dense) {
		ids->dense++;
		return;
	}
	ids->sparse = true;
	*map_put(&ids->map, id, index) = index;
}

static inline bool ids_get(const struct ids *ids, int64_t id, uint32_t *ret)
{
	uint64_t *index;

	if (id >= 0 && id < ids->dense) {
		*ret = id;
		return true;
	}
	index = ids->sparse ? map_get(&ids->map, id) : NULL;
	if (index)
		*ret = *index;
	return index;
}

struct reading {
	struct profile *p;
	sqlite3 *db;
	const char *path;
	struct ids ids[TABLES];
	uint64_t dropped; /* rows that made no sense */
	/* The most that a sound file of this size can hold. A file whose pages or texts are shared has
	 * more. */
	uint64_t rows_left, text_left;
	size_t most;      /* samples to keep, 0 = all */
	bool keep_blocks; /* and all of those within blocks */
	const struct capture_span *keep_span; /* and all of those within it; NULL = none */
	/* In place of the samples, the recorder's sums of them (weights.h), which have no time. Where the file has none, and many
	 * rows, an even part of them, scaled to the whole. */
	bool sums;
	unsigned every;   /* with sums: one of so many rows stands for all; 0 = it is not so */
	bool brief;       /* wakes and the points of series are left out */
	struct joining joining;

	/* The lines of the frame that is being read. */
	VEC(struct profile_line) lines;
	uint32_t lines_frame;
};

void reading_init(struct reading *r, sqlite3 *db, const char *path);
/* Reads all tables. 0, or a negative errno with a sentence; the profile is there in any case. */
int reading_all(struct reading *r, struct err *err);
/* How many samples the file has, or more: rows that were summed leave gaps. */
uint64_t reading_rows(sqlite3 *db);
/* Makes a sample of a row of the table; false: it makes no sense. */
bool reading_sample(const struct reading *r, const struct tablescan_row *row, struct profile_sample *ret);
void reading_done(struct reading *r);
