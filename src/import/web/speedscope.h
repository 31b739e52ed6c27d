/*
 * speedscope.h - files of speedscope (.speedscope.json) as profiles: sampled and evented ones, of all versions so far.
 *
 * Each profile of a file is a thread of its name. Samples follow each other: the time of a sample is the sum of the weights
 * before it, where weights are times. Of an evented profile each stretch between two events is a sample, so that self time
 * is exact. Files that gasflame wrote say more (export/foreign/web/speedscope.c): event, thread ids, times and kinds of frames.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool speedscope_probe(const char *data, size_t n, bool whole);
int speedscope_import(const struct import_input *in, struct profile **ret, struct err *err);
