/*
 * pprofplaces.h - the modules of mappings, and where in them addresses are. Part of pprofmodel.h.
 *
 * Three kinds of addresses are met: those of the process, within their mapping; those of the files, if a location lies outside
 * of its mapping (jemalloc's in nodes); and those of the files because the mapping is said to span all memory (ours).
 */
#pragma once

#include <stdint.h>

struct pproflocation;
struct pprofmodel;

void pprofplaces_prepare(struct pprofmodel *m);
/* PROFILE_NONE: it has no mapping, or that has no name; the address is as it was then. */
uint32_t pprofplaces_module(struct pprofmodel *m, const struct pproflocation *l, uint64_t *ret_address);
