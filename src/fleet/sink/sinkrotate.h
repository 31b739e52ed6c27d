/*
 * sinkrotate.h - keeps the folder of a file sink within its limits: the oldest captures go, by the time in their names.
 *
 * Only TARGET/2026-11-17/020500-42.gasflame counts, and is removed; anything else is left alone. Folders that are empty then go, too.
 * One day at a time is in memory.
 */
#pragma once

#include <stdint.h>

struct err;

struct sinkrotate {
	uint64_t bytes; /* of the captures that are there */
};

struct sinkrotate_limits {
	uint64_t keep_bytes, keep_ns; /* 0 = no limit */
	uint64_t room_bytes;          /* to be had within keep_bytes */
};

/* base: the folder, which only we can write to. Where keep_bytes is exceeded, a twentieth more than needed goes, so that not each window
 * has to look through all of it. *state is new. */
int sinkrotate(int base, const struct sinkrotate_limits *limits, uint64_t now_wall_ns, struct sinkrotate *state, struct err *err);
