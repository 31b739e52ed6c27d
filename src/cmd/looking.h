/*
 * looking.h - what `top` does alike for running programs and for recordings: code and pictures.
 */
#pragma once

#include <stdint.h>

struct buf;
struct code_text;
struct err;
struct profile;

void looking_code(const struct profile *p, uint32_t module, uint64_t address, const char *const *paths,
		  struct code_text *ret);
/* To profiling/<label>/<what>-<date><extension>, the user's own behind sudo. Caller frees *ret_path. */
int looking_write(const char *label, const char *what, const char *extension, const struct buf *data,
		  char **ret_path, struct err *err);
