/*
 * input.h - reads the input of commands: captures and importable files, recognized by their
 * content, and profiles in a store, by their address (fleet/storeurl.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct capture_span;
struct err;
struct import_format;
struct import_options;
struct profile;

/* path: a capture, a foreign file, "-" for the standard input, or clickhouse://HOST:8123/DATABASE?target=NAME. */
int input_read(const char *path, struct profile **ret, struct err *err);
/* The same with at most about so many samples of a capture (capture_read_most()); 0 = all. blocks: and all of its blocks
 * (capture_read_blocks()). span: and all of this time (capture_read_span()); NULL = none. */
int input_read_most(const char *path, size_t most, bool blocks, const struct capture_span *span, struct profile **ret,
		    struct err *err);
/* A foreign file, in a given format (NULL: by its content), with what was left out of it said. */
int input_read_as(const char *path, const struct import_format *format, const struct import_options *options, struct profile **ret,
		  struct err *err);
/* Checks by its beginning whether a file can be read. *ret_kind: name of its format, NULL = a capture. */
int input_check(const char *path, const char **ret_kind, struct err *err);
/* Is it an address in a store? */
bool input_is_store(const char *path);
/* Takes user and password out of such an address, in place, and keeps them for input_address(): nothing else needs them. Any thread. */
void input_hide(char *path);
/* The address with them; path itself where nothing was hidden. */
const char *input_address(const char *path);
/* Returns whether there is a capture in a store, or in a file, or the rest of one whose recorder died. */
bool input_is_capture(const char *path);
