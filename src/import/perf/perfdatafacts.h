/*
 * perfdatafacts.h - what the header of perf.data and its feature sections say: of a file at its end, in a pipe as records.
 *
 * Sections that make no sense are left out; only the header itself and the events must be right.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "import/perf/perfdataattr.h"
#include "import/perf/perfdatatrace.h"

struct err;

enum { PERFDATA_MAGIC_BYTES = 8, PERFDATA_PIPE_BYTES = 16 };
extern const char perfdata_magic[PERFDATA_MAGIC_BYTES]; /* "PERFILE2" */

struct perfdatafacts_build {
	char *path;
	uint8_t id[20], size;
	bool kernel;
};

struct perfdatafacts {
	struct perfdataattrs attrs;
	struct perfdatatrace trace;
	VEC(struct perfdatafacts_build) builds;
	struct map build_index;                /* hash of the path to the last one of it */
	size_t kernel_build;                   /* 1 + the index of the kernel's */
	char *host, *release, *arch, *command; /* NULL: it does not say */
	uint64_t clock_wall_ns, clock_ns;      /* the same moment on both clocks; 0: it does not say */
	uint64_t data_offset, data_end;        /* of a file */
};

void perfdatafacts_done(struct perfdatafacts *f);
/* Of a file, with all of its sections. */
int perfdatafacts_read(struct perfdatafacts *f, int fd, struct err *err);
/* A section, of a file or a FEATURE record. number: as perf counts them. */
void perfdatafacts_feature(struct perfdatafacts *f, unsigned number, const void *data, size_t n);
/* Records that a pipe has in place of a header. False: it makes no sense. */
bool perfdatafacts_attr_record(struct perfdatafacts *f, const struct perfdataheader *h);
void perfdatafacts_update_record(struct perfdatafacts *f, const struct perfdataheader *h);
void perfdatafacts_build_record(struct perfdatafacts *f, const struct perfdataheader *h);
/* The build-id of a path; NULL: not known. kernel: of the kernel itself, whatever it is called. */
const struct perfdatafacts_build *perfdatafacts_build_of(const struct perfdatafacts *f, const char *path, bool kernel);
