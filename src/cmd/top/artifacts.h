/*
 * artifacts.h - what `top` does alike for running programs and for recordings: code and pictures.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct code_text;
struct err;
struct look_file;
struct profile;

void artifacts_code(const struct profile *p, uint32_t module, uint64_t address, const char *const *paths,
		    struct code_text *ret);
/* To profiling/<label>/<what>-<date> and their extensions, the user's own behind sudo. Caller frees *ret_stem. */
int artifacts_write(const char *label, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		    struct err *err);
