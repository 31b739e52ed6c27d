/*
 * jsonl.h - samples as lines of JSON, as `gasflame report --format jsonl` writes them (src/export/foreign/jsonl.c).
 *
 * The first line is about the recording; each other one is a sample or a mark. Members that are not known are passed over, so
 * that other programs may add to it; a line that is neither is an error. Causes and blocks of samples are not read: the first are
 * seen from the stacks, the second from the marks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool jsonl_probe(const char *data, size_t n, bool whole);
int jsonl_import(const struct import_input *in, struct profile **ret, struct err *err);
