/*
 * firefox.h - processed profiles of the Firefox profiler, as samply and the profiler itself save them.
 *
 * Events: "samples", the weights of samples (or "time" and "bytes", where they are such), "cpu", the CPU time between two
 * samples where it was measured (threadCPUDelta), and "allocated", "freed" and "js-allocated" of the tables of allocations.
 * Frames that have an address in a library and no name are left to the symbolizer. Of markers those that are blocks become marks;
 * others are counted as left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool firefox_probe(const char *data, size_t n, bool whole);
int firefox_import(const struct import_input *in, struct profile **ret, struct err *err);
