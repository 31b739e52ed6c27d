/*
 * inspected.h - what the child said of files, as long as they do not change.
 *
 * Inspecting a file reads all of its names. An agent asks about the same few files for each window of a minute. A file is known by
 * its place, size and times: the change time is the kernel's and cannot be set. Belongs to a worker, and to its thread.
 */
#pragma once

#include <stdbool.h>

#include "base/vec.h"

struct inspected_file;
struct stat;
struct symbols_info;

struct inspected {
	VEC(struct inspected_file *) files;
};

/* True: fd is a file that was inspected, and *ret is what was said of it. *ret_now is how it is now, for _put: a file that is changed
 * while it is inspected is not known afterwards. */
bool inspected_find(const struct inspected *in, int fd, struct stat *ret_now, struct symbols_info *ret);
void inspected_put(struct inspected *in, const struct stat *st, const struct symbols_info *info);
void inspected_done(struct inspected *in);
