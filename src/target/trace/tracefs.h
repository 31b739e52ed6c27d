/*
 * tracefs.h - the kernel's tracepoints: which there are, and what fields their records have.
 *
 * Nothing is mounted or switched on here: files are read. The text of a format
 * file comes from the kernel, but is parsed as if it did not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;

struct tracefs_field {
	char *type, *name;     /* "unsigned int", "bytes" */
	uint32_t offset, size; /* in the record; an argument of a system call always takes 8 bytes */
	bool is_signed;
	bool integer;          /* 1 to 8 bytes, no array, no string (__data_loc) */
};

struct tracefs_format {
	uint32_t id; /* the config of a perf event of PERF_TYPE_TRACEPOINT */
	VEC(struct tracefs_field) fields; /* but for the common_ ones, which programs cannot read */
};

/* Finds tracefs. -ENOENT: not mounted, -EACCES: not readable for us; the message says what helps. */
int tracefs_root(const char **ret, struct err *err);

/* The text of a format file. -EINVAL: it is none. err->offset is where. */
int tracefs_parse_format(const char *text, size_t n, struct tracefs_format *ret, struct err *err);
/* -ENOENT: this kernel has no such tracepoint. */
int tracefs_read_format(const char *group, const char *name, struct tracefs_format *ret, struct err *err);
void tracefs_format_done(struct tracefs_format *f);
const struct tracefs_field *tracefs_find_field(const struct tracefs_format *f, const char *name);

/* Calls for each tracepoint, sorted. A number below 0 from fn ends it and is returned. */
typedef int tracefs_list_fn(void *context, const char *group, const char *name);
int tracefs_list(tracefs_list_fn *fn, void *context, struct err *err);
