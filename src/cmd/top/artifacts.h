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
/* Writes to profiling/<label>/<what>-<date> and the extensions; behind sudo the files are the user's own. label NULL: a reader's
 * broker writes them (cmd/reading/broker.h), and knows it. The caller frees *ret_stem. */
int artifacts_write(const char *label, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		    struct err *err);
