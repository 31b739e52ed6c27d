/*
 * output.h - the path and the owner of a recording.
 *
 * The default is profiling/<target>/<what>-YYYYMMDD-HHMMSS.gasflame, with -2, -3 and so on before the
 * extension where that exists: two recordings that begin in the same second get two names. Behind sudo, new
 * files and folders belong to the user who typed sudo.
 */
#pragma once

#include "base/file/folder.h"

struct capture;
struct err;
struct profile;

/* Returns the user behind sudo; .given is false when there is none, or we are not root. */
struct owner output_owner(void);

/* "profiling/<label>/<what>-<now>"; the caller frees it. */
char *output_stem(const char *label, const char *what);

/* "gasflame report FILE", as a shell takes it; where FILE is the default, without it: it is the newest one here. The caller
 * frees it. */
char *output_next(const char *path);

/* Creates a capture: at the typed path, or by default under an unused name. Missing folders are made.
 * Caller frees *ret_path, its path. */
int output_create(const char *typed, const char *label, const char *what, char **ret_path, struct capture **ret,
		  struct err *err);
/* The same with all of p, which is finished. */
int output_save(const char *typed, const char *label, const char *what, struct profile *p, char **ret_path,
		struct err *err);
