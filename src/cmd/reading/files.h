/*
 * files.h - captures in, results out: what report and diff share.
 *
 * All return 0 or a negative errno with a sentence.
 */
#pragma once

#include <stdbool.h>

#include "cmd/cmd.h"

struct buf;
struct err;
struct import_format;
struct patterns;
struct profile;
struct quality;
struct selection;
struct symbolize_options;

/* Several captures are merged. The caller frees the profile. */
int files_read(char **paths, int n, struct profile **ret, struct err *err);
/* The same of files in one format, whatever their content shows; NULL: in that which it shows. */
int files_read_as(char **paths, int n, const struct import_format *format, struct profile **ret,
		  struct err *err);

/*
 * Names for frames that have none: those of a recorder that died before it came to that, and, if the user
 * says where to look, those that were not found then.
 */
int files_find_names(const struct symbolize_options *options, struct profile *p, struct err *err);

/* What waits mean: the user's files first, in their order, then what is built in. */
int files_read_patterns(const struct option_list *paths, struct patterns *t, struct err *err);

/* "slow.gasflame" to "slow.svg"; the caller frees it. */
char *files_beside(const char *capture, const char *extension);
/*
 * A file that somebody named; NULL or "-": the standard output. Never one of the captures. Root gives it to the user
 * behind sudo, or to the owner of the first capture if that is his folder. n 0: there is no capture, and missing
 * folders are made. base/file/newfile.h says what may be there already; what cannot be written whole is not written.
 */
int files_write(const char *path, const struct buf *data, char **captures, int n, struct err *err);
/* A file whose name we made from the first capture's (files_beside()): a regular file or nothing, as readable as the
 * capture, and its owner's. */
int files_write_beside(const char *path, const struct buf *data, char **captures, int n, struct err *err);

/* The quality line and its warnings, on stderr. name: of which recording, NULL where there is one only. */
void files_tell_quality(const struct quality *q, const struct selection *s, const char *name);
