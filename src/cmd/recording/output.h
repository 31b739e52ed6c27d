/*
 * output.h - where a recording goes, and whose it is.
 *
 * The default is profiling/<target>/<what>-YYYYMMDD-HHMMSS.gasflame, with -2, -3 and so on before the ending where
 * that is taken: two that begin in the same second get two names. Behind sudo, files and folders that are made
 * belong to the user who typed sudo.
 */
#pragma once

#include "base/file/folder.h"

struct capture;
struct err;
struct profile;

/* The user behind sudo; nobody (.given false) when there is none, or we are not root. */
struct owner output_owner(void);

/* "profiling/<label>/<what>-<now>"; the caller frees it. */
char *output_stem(const char *label, const char *what);

/* "gasflame report FILE", as a shell takes it; the caller frees it. */
char *output_next(const char *path);

/* A new capture: typed, or by default one that has no name of another. Missing folders are made. Caller frees
 * *ret_path, which is where it is. */
int output_create(const char *typed, const char *label, const char *what, char **ret_path, struct capture **ret,
		  struct err *err);
/* The same with all of p, which is finished. */
int output_save(const char *typed, const char *label, const char *what, struct profile *p, char **ret_path,
		struct err *err);
