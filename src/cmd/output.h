/*
 * output.h - where a recording goes, and whose it is.
 *
 * The default is profiling/<target>/<what>-YYYYMMDD-HHMMSS.gasflame. Behind sudo,
 * files and folders that are made belong to the user who typed sudo.
 */
#pragma once

struct err;

/* Caller frees. Never the name of a file that exists. */
char *output_default_path(const char *label, const char *what);
/* Makes the folders of path. */
int output_make_folders(const char *path, struct err *err);
/* Gives a file of ours to the user behind sudo; does nothing elsewhere. */
void output_give(const char *path);
