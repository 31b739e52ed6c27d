/*
 * parts.h - capture_parts_open() with limits, for tests. For src/capture only.
 */
#pragma once

#include <stdint.h>

struct capture_parts;
struct err;
struct profile;

struct parts_limits {
	uint64_t least_rows; /* a capture with fewer is as well read whole */
	uint64_t part_rows;  /* of the pages of a part, about */
};

int parts_open(const char *path, const struct parts_limits *limits, struct capture_parts **ret, struct profile **ret_profile,
	       struct err *err);
