/*
 * output.h - the path and the owner of a recording.
 *
 * The default is profiling/<target>/<what>-YYYYMMDD-HHMMSS.gasflame, with -2, -3 and so on before the
 * extension where that exists: two recordings that begin in the same second get two names. Behind sudo, new
 * files and folders belong to the user who typed sudo.
 */
#pragma once

#include "base/file/folder.h"

#include <stddef.h>

struct capture;
struct err;
struct profile;

/* A file to be made: all of it, and what its name ends with. */
struct output_file {
	const char *extension;
	const void *data;
	size_t n;
};
enum { OUTPUT_FILES_MAX = 8 };

/* Returns the user behind sudo; .given is false when there is none, or we are not root. */
struct owner output_owner(void);

/* "profiling/<label>/<what>-<now>"; the caller frees it. what may come from a capture: a character of it that could lead to
 * another folder becomes "_". */
char *output_stem(const char *label, const char *what);

/* Makes files with that stem and their extensions, all or none, with -2, -3 and so on behind it where one of the names is taken.
 * Missing folders are made. The caller frees *ret_stem. */
int output_write_new(const char *label, const char *what, const struct output_file *files, size_t n, char **ret_stem,
		     struct err *err);

/* "gasflame report FILE", as a shell takes it; where FILE is the default, without it: it is the newest one here. The caller
 * frees it. */
char *output_next(const char *path);

/* Creates a capture: at the typed path, or by default under an unused name. Missing folders are made.
 * Caller frees *ret_path, its path. */
int output_create(const char *typed, const char *label, const char *what, char **ret_path, struct capture **ret,
		  struct err *err);
/* One of several captures that one command makes: at PREFIX-<now>, prefix without .gasflame; NULL, or a folder ("x/"): by default
 * there. Never replaces anything. */
int output_create_one(const char *prefix, const char *label, const char *what, char **ret_path, struct capture **ret,
		      struct err *err);
/* Can such a capture be made? Makes missing folders. *ret_path, which the caller frees, is where one would be. */
int output_try_one(const char *prefix, const char *label, const char *what, char **ret_path, struct err *err);
/* The same with all of p, which is finished. */
int output_save(const char *typed, const char *label, const char *what, struct profile *p, char **ret_path,
		struct err *err);
