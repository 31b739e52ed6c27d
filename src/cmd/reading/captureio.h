/*
 * captureio.h - captures in, results out: what report and diff share.
 *
 * All return 0 or a negative errno with a sentence.
 */
#pragma once

#include <stdbool.h>


#include "cmd/cmd.h"

struct buf;
struct capture_span;
struct err;
struct import_format;
struct import_options;
struct patterns;
struct profile;
struct quality;
struct selection;
struct symbolize_options;

/* Several captures are merged. The caller frees the profile. */
int captureio_read(char **paths, int n, struct profile **ret, struct err *err);
/* The same for what shows sums over the whole recording: of a long one samples are joined, so that it takes no more
 * memory and little more time than a short one (capture_read_most()). */
int captureio_read_sums(char **paths, int n, struct profile **ret, struct err *err);
/* The same for what shows blocks: samples within them are all kept (capture_read_blocks()). */
int captureio_read_blocks(char **paths, int n, struct profile **ret, struct err *err);
/* The same for what shows sums, and one span of time in full (capture_read_span()). */
int captureio_read_span(char **paths, int n, const struct capture_span *span, struct profile **ret, struct err *err);
/* captureio_read() for files in one given format (NULL: by their content), whose own files are where the options say. */
int captureio_read_as(char **paths, int n, const struct import_format *format, const struct import_options *options,
		      struct profile **ret, struct err *err);

/*
 * Symbolizes frames without names: those of a recorder that died before it did, and, if the user says
 * where to look, those that were not found then.
 */
int captureio_find_names(const struct symbolize_options *options, struct profile *p, struct err *err);

/* Reads the patterns of waits: the user's files first, in their order, then the built-in ones. */
int captureio_read_patterns(const struct option_list *paths, struct patterns *t, struct err *err);

/* "slow.gasflame" to "slow.svg"; the caller frees it. */
char *captureio_beside(const char *capture, const char *extension);
/* Is there such a place? Not of the standard input and of what is in a store. */
bool captureio_has_beside(const char *capture);
/*
 * Writes a file that the user named; NULL or "-": the standard output. Never one of the captures. Root gives
 * it to the user behind sudo, or to the owner of the first capture if the folder is that owner's. n 0: there
 * is no capture, and missing folders are made. base/file/newfile.h says what may be there already; a failed
 * write leaves no partial file.
 */
int captureio_write(const char *path, const struct buf *data, char **captures, int n, struct err *err);
/* A file whose name we made from the first capture's (captureio_beside()): a regular file or nothing, as readable as the
 * capture, and its owner's. */
int captureio_write_beside(const char *path, const struct buf *data, char **captures, int n, struct err *err);

/* The quality line and its warnings, on stderr. name: of which recording, NULL where there is one only. */
void captureio_tell_quality(const struct quality *q, const struct selection *s, const char *name);
