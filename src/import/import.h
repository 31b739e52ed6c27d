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
struct stream;

/* Where the files are that imported addresses belong to. */
struct import_options {
	const char *root;           /* the paths in the input are below this folder: a container's root; NULL: / */
	const char *const *symbols; /* files, or folders of them, for those that are not at their path; NULL-terminated, or NULL */
};

struct import_input {
	struct stream *stream; /* decompressed, from the first byte on */
	const char *name;      /* of the target where the content does not say */
	struct import_options options;
};

struct import_format {
	const char *name, *describe;
	/* Do these first bytes (STREAM_PEEK_BYTES of them, or all) look like it? whole: there is no more. */
	bool (*probe)(const char *data, size_t n, bool whole);
	/* The error's sentence has no name of the file, but where in it something is wrong: "byte 123: ...", "line 7: ...". */
	int (*read)(const struct import_input *in, struct profile **ret, struct err *err);
};

extern const struct import_format import_formats[];        /* ends in one without a name */
const struct import_format *import_find(const char *name); /* NULL: none */
const struct import_format *import_probe(const char *data, size_t n, bool whole); /* NULL: none */

/* The format of a file, by its beginning. -ENOMSG: it is in none of them. */
int import_check(const char *path, const struct import_format **ret, struct err *err);

/*
 * Reads a file ("-" is the standard input) in the format that its content shows, packed by gzip, zstd or xz or not; forced may
 * name another format, NULL = none. options: NULL = none. -ENOMSG: it is in none of the formats.
 */
int import_read(const char *path, const struct import_format *forced, const struct import_options *options, struct profile **ret,
		struct err *err);
