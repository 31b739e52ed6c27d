/*
 * heapfiles.h - heaps that other profilers recorded, as profiles; the readers for the table of formats.
 *
 * Events are in bytes, with the number of objects as count where the file has it, and mean what they mean in our own
 * recordings of a heap and in imported dumps (import/jemalloc/heapdumps.h):
 *
 *	              massif   heaptrack   DHAT
 *	heap          yes      yes         yes     alive in the last tree, at the end
 *	peak          yes      yes         yes     alive when it was most
 *	alloc                  yes         yes     allocated, freed or not
 *	freed                  yes                 freed, by where it was allocated, over time
 *	temporary              yes                 freed before the next allocation
 *	rise, fall    yes                          from each tree to the next
 *	growth,shrunk yes                          from the first tree to the last
 *	reads, writes                      yes     bytes that the program read from and wrote to these objects
 *
 * A DHAT file of the mode "copy" has the one event "copied", one of the mode "ad-hoc" the one event "units".
 *
 * Sums that do not fit 63 bits are an error: no figure is another one than the file says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool massif_probe(const char *data, size_t n, bool whole);
int massif_import(const struct import_input *in, struct profile **ret, struct err *err);

bool heaptrack_probe(const char *data, size_t n, bool whole);
int heaptrack_import(const struct import_input *in, struct profile **ret, struct err *err);

bool dhat_probe(const char *data, size_t n, bool whole);
int dhat_import(const struct import_input *in, struct profile **ret, struct err *err);
