/*
 * input.h - what commands read: captures, and what can be imported, told apart by their content.
 */
#pragma once

#include <stdbool.h>

struct err;
struct profile;

/* path: a capture, a foreign file, or "-" for the standard input. */
int input_read(const char *path, struct profile **ret, struct err *err);
/* Can it be read? Told by its beginning. *ret_kind: name of its format, NULL = a capture. */
int input_check(const char *path, const char **ret_kind, struct err *err);
/* Is there a capture, or what a recorder that died left of one? */
bool input_is_capture(const char *path);
