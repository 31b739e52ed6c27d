/*
 * import.h - foreign formats as profiles: one format a file, one table.
 *
 * To add one: write its file, add a line to the table in import.c and its inputs
 * to fuzz/corpus. A format is known by the first bytes of a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct profile;

enum { IMPORT_PROBE_BYTES = 64 << 10 };

struct import_input {
	int fd;
	const char *name;  /* of the target where the content does not say */
	const char *start; /* the bytes that were already read from fd */
	size_t start_n;
};

struct import_format {
	const char *name, *describe;
	/* Do these first bytes look like it? whole: there is no more. */
	bool (*probe)(const char *data, size_t n, bool whole);
	int (*read)(const struct import_input *in, struct profile **ret, struct err *err);
};

extern const struct import_format import_formats[];        /* ends in one without a name */
const struct import_format *import_find(const char *name); /* NULL: none */
const struct import_format *import_probe(const char *data, size_t n, bool whole); /* NULL: none */

/* The format of a file, by its beginning. -ENOMSG: it is in none of them. */
int import_check(const char *path, const struct import_format **ret, struct err *err);

/*
 * Reads a file ("-" is the standard input) in the format that its content shows; forced may name another,
 * NULL = none. -ENOMSG: it is in none of the formats.
 */
int import_read(const char *path, const struct import_format *forced, struct profile **ret, struct err *err);
