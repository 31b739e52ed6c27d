/*
 * pprof.h - profiles of pprof and of OpenTelemetry (OTLP), for the table of formats.
 *
 * What becomes of their parts is in pprofmodel.h (frames, threads, samples) and pproftypes.h (events). Values below zero, as
 * differences of two profiles have them, are refused: gasflame diff compares two profiles itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool pprof_probe(const char *data, size_t n, bool whole);
int pprof_import(const struct import_input *in, struct profile **ret, struct err *err);

/* ProfilesData and ExportProfilesServiceRequest of the package profiles.v1development: their fields are the same. */
bool otlp_probe(const char *data, size_t n, bool whole);
int otlp_import(const struct import_input *in, struct profile **ret, struct err *err);
