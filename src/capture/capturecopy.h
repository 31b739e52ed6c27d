/*
 * capturecopy.h - a capture that may still be written, as it was at one moment. For src/profile only.
 */
#pragma once

struct capturefile;
struct err;

/* How much data there is in the file and its log, without holes: f->bytes. */
int capturecopy_measure(struct capturefile *f, const char *path, struct err *err);

/* A capture with a log is replaced by copies of both, which have no name; one without is left as it is. Holes stay
 * holes, so that a copy takes no more room than the original. */
int capturecopy_make(struct capturefile *f, const char *path, struct err *err);
