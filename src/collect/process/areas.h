/*
 * areas.h - what is mapped where in one process, as the kernel tells it piece by piece.
 *
 * A sorted list without overlaps. What is mapped takes the place of whatever was
 * there; nobody tells when something is unmapped, so what is here may be gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct area {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	uint32_t file;   /* whatever tells files apart, 0 = memory without one */
	uint32_t zero;
};
struct areas {
	VEC(struct area) list;
};

/* False when the very same is there already. */
bool areas_put(struct areas *a, struct area new);
